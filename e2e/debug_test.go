package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestDebugPprof: profiles of a daemon are there, for root and its own user alone.
func TestDebugPprof(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x4c8g")
	if out := d.must("muster", "debug", "pprof", "--text", "goroutine"); !strings.Contains(out, "agent/server.(*Server)") {
		t.Errorf("no goroutine of the server: %.300s", out)
	}
	file := t.TempDir() + "/heap"
	d.must("muster", "debug", "pprof", "-o", file, "heap")
	if text, err := os.ReadFile(file); err != nil || len(text) < 100 || text[0] != 0x1f || text[1] != 0x8b { // gzip, as the tool wants it
		t.Errorf("heap: %d bytes, %v", len(text), err)
	}
	if _, errs, code := d.run("muster", "debug", "pprof", "florbl"); code == 0 || !strings.Contains(errs, "usage: muster debug pprof") {
		t.Errorf("a kind that is not there: %d %s", code, errs)
	}
	if out, errs, code := d.as(1, "muster", "debug", "pprof", "heap"); code == 0 || out != "" || !strings.Contains(errs, "permission denied") {
		t.Errorf("a user asks: %d %s%s", code, out, errs)
	}
	if err := os.Chmod(d.dir+"/s.debug", 0o666); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := d.as(1, "muster", "debug", "pprof", "heap"); code == 0 || out != "" {
		t.Errorf("a user asks a socket that is open to all: %d %s%s", code, out, errs)
	}
}
