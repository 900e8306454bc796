package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// fetch asks a member's port without TLS.
func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := (&http.Client{Timeout: 20 * time.Second}).Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// TestInstallScript installs from a server's port into a folder, by the script that the server gives out, and finds
// nothing else there without TLS.
func TestInstallScript(t *testing.T) {
	g := newGroup(t)
	g.join("c1", "s1", "--hollow", "1x8c16g", "--hollow-prefix", "c1-")
	server, client := "http://"+g.bind("s1"), "http://"+g.bind("c1")
	code, script := fetch(t, server+"/install.sh")
	if code != 200 || !strings.Contains(script, "server='"+g.bind("s1")+"'") {
		t.Fatalf("the script: %d\n%s", code, script)
	}
	program, err := os.ReadFile(filepath.Join(bin, "muster"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	if code, body := fetch(t, server+"/download/muster-linux-"+runtime.GOARCH); code != 200 || sha256.Sum256([]byte(body)) != sum || !strings.Contains(script, hex.EncodeToString(sum[:])) {
		t.Errorf("the program: %d, %d bytes of %d", code, len(body), len(program))
	}
	for _, path := range []string{
		"/", "/v1/nodes", "/v1/jobs", "/v1/members/join", "/v1/tokens", "/v1/cluster", "/download/",
		"/download/../install.sh",
	} {
		if code, body := fetch(t, server+path); code != 404 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := fetch(t, client+"/install.sh"); code != 0 {
		t.Errorf("a client gives out something: %d %s", code, body)
	}
	silent, err := net.Dial("tcp", g.bind("s1")) // it disturbs nobody
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	g.must("s1", "sinfo")
	if os.Getuid() != 0 {
		t.Skip("only root can run the script")
	}
	root := t.TempDir()
	install := func(want string) {
		t.Helper()
		cmd := exec.Command("sh", "-s", "--", "client", "--root", root)
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("the script: %v, want %q\n%s", err, want, out)
		}
	}
	install("muster: write /usr/local/bin/muster\n")
	install("muster: nothing to change\n")
	if out, err := exec.Command(filepath.Join(root, "usr/local/bin/sbatch"), "--version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "slurm ") {
		t.Errorf("what was installed: %v %s", err, out)
	}
	if out, err := exec.Command(filepath.Join(bin, "muster"), "install", "--uninstall", "--purge", "--root", root).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.Command("find", root, "-not", "-type", "d").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("it left %s", out)
	}
}
