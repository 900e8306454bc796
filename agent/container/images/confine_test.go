package images

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const confineEnv = "MUSTER_TEST_CONFINE"

// TestConfine looks at what a confined process, and a program that it starts, may still do.
func TestConfine(t *testing.T) {
	if os.Getenv(confineEnv) == "child" {
		if err := confine(); err != nil {
			t.Fatal(err)
		}
		own, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		limits, err := os.ReadFile("/proc/self/limits")
		if err != nil {
			t.Fatal(err)
		}
		started, err := exec.Command("cat", "/proc/self/status").Output()
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(string(own) + string(started) + string(limits))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root has capabilities to give up")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestConfine$")
	cmd.Env = append(os.Environ(), confineEnv+"=child")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := string(out)
	// CAP_CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, KILL 5, SETGID 6, SETUID 7: 0xeb at most.
	for _, m := range regexp.MustCompile(`(?m)^Cap(Eff|Prm|Bnd):\t0*([0-9a-f]+)$`).FindAllStringSubmatch(text, -1) {
		if m[2] != "eb" && m[1] != "Bnd" {
			t.Errorf("Cap%s is %s", m[1], m[2])
		}
	}
	for what, want := range map[string]int{"CapEff:\t00000000000000eb\n": 2, "NoNewPrivs:\t1\n": 2,
		"Max data size             2147483648": 1, "Max cpu time              3600": 1} {
		if strings.Count(text, what) != want {
			t.Errorf("%q is not there %d times:\n%s", what, want, text)
		}
	}
}
