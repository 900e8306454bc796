package e2e

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPage: a server shows its page where it is told to, and it follows the cluster; in a browser, if there is one, each
// view comes up without an error and asks no other host.
func TestPage(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "4x8c16g8gpu:h100", "--hollow-time", "100h", "--http", addr)
	d.wait("four nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "4" })
	get := func(path string) string {
		t.Helper()
		r, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("%s: %d %v %s", path, r.StatusCode, err, b)
		}
		return string(b)
	}
	live, err := http.Get("http://" + addr + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Body.Close()
	told := func() string {
		t.Helper()
		var b [256]byte
		n, err := live.Body.Read(b[:])
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	first := told()
	id := d.must("sbatch", "--parsable", "-N2", "--gpus-per-node=8", "-J", "seen", "-o", "/dev/null", "--wrap", "true")
	d.must("sbatch", "-N4", "--gpus-per-node=8", "-o", "/dev/null", "--wrap", "true")
	if next := told(); next == first || !strings.Contains(next, "data: ") {
		t.Errorf("told %q, then %q", first, next)
	}
	d.wait("the job to run", func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%t") == "R" })
	for path, want := range map[string]string{"/": "16 <small>of 32</small>", "/queue": "seen", "/jobs/" + id: "running", "/metrics": "muster_gpus_used{type=\"h100\"} 16", "/healthz": "ok"} {
		if body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s: %q is not in %s", path, want, body)
		}
	}

	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Log("no chromium: views are not looked at in a browser")
		return
	}
	for _, path := range []string{"/", "/map", "/queue", "/jobs/" + id, "/nodes/gpu-node-001", "/accounts", "/reservations"} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		shot := filepath.Join(d.dir, "shot.png")
		cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--enable-logging=stderr",
			"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir="+filepath.Join(d.dir, "browser"), "--window-size=1200,800", "--screenshot="+shot, "http://"+addr+path)
		var said bytes.Buffer
		cmd.Stderr = &said
		err := cmd.Run()
		cancel()
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, said.String())
		}
		if i := strings.Index(said.String(), "CONSOLE"); i >= 0 {
			t.Errorf("%s: the browser says %s", path, said.String()[i:min(len(said.String()), i+300)])
		}
		if st, err := os.Stat(shot); err != nil || st.Size() < 5000 {
			t.Errorf("%s: no picture: %v", path, err)
		}
		if err := os.Remove(shot); err != nil {
			t.Error(err)
		}
	}
}
