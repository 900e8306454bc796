package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lines runs a front-end and hands its lines on as they come; the channel is closed when it has ended.
func (d *dev) lines(name string, args ...string) (<-chan string, *exec.Cmd) {
	d.t.Helper()
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Env, cmd.Dir = d.env, d.work
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	c := make(chan string, 1000)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			c <- s.Text()
		}
		close(c)
	}()
	d.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return c, cmd
}

// next is the next line, which has to come soon.
func next(t *testing.T, c <-chan string) string {
	t.Helper()
	select {
	case line, ok := <-c:
		if !ok {
			return "(end)"
		}
		return line
	case <-time.After(patience(time.Minute)):
		t.Fatal("waited too long for a line")
	}
	return ""
}

// TestFollow: squeue --follow prints the table, each change of state once, and ends with the last job; the same
// over the death of the leader.
func TestFollow(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	lead := g.leader("s1")
	by := g.others(lead)[0]
	d := g.at["c1"]
	id := g.must(by, "sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap",
		"while [ ! -e "+g.dir+"/go ]; do sleep .1; done")
	other := g.must(by, "sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true")
	got, cmd := d.lines("squeue", "--follow", "-j", id+","+other, "-o", "%i %t")
	for _, want := range []string{"JOBID ST", id + " PD", other + " PD"} {
		if line := next(t, got); line != want {
			t.Fatalf("%q, want %q", line, want)
		}
	}
	g.must(by, "scontrol", "release", id)
	if line := next(t, got); line != id+" R" {
		t.Errorf("after the release: %q", line)
	}
	g.at[lead].kill()
	g.awaitLeader(by)
	g.must(by, "scancel", other)
	if line := next(t, got); line != other+" CA" {
		t.Errorf("after the cancellation: %q", line)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	line := next(t, got)
	if line == id+" CG" {
		line = next(t, got)
	}
	if line != id+" CD" {
		t.Errorf("at the end: %q", line)
	}
	if line := next(t, got); line != "(end)" {
		t.Errorf("after the end: %q", line)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, errs, code := d.run("squeue", "--follow", "--json"); code != 1 || !strings.Contains(errs, "--iterate") {
		t.Errorf("with --json: %d, %s", code, errs)
	}
}
