package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// forgetEnv has the test program forget a token and show what is left.
const forgetEnv = "MUSTER_TEST_FORGET"

// TestForgetVariable looks at the environment of a process that forgot a variable, from outside and in a child.
func TestForgetVariable(t *testing.T) {
	if os.Getenv(forgetEnv) == "child" {
		if err := forgetVariable("MUSTER_TOKEN"); err != nil {
			t.Fatal(err)
		}
		seen, err := os.ReadFile("/proc/self/environ")
		if err != nil {
			t.Fatal(err)
		}
		inherited, err := exec.Command("env").Output()
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("seen " + string(seen) + " inherited " + string(inherited))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestForgetVariable$")
	cmd.Env = append(os.Environ(), "MUSTER_TOKEN=mst1.secret", "AFTER=still there", forgetEnv+"=child")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "mst1.secret") || strings.Count(string(out), "AFTER=still there") != 2 {
		t.Errorf("%q", out)
	}
}
