package guests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/cgroup"
)

const nobody = 65534

// house is one with groups, or without.
func house(t *testing.T, grouped bool) *House {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root's server has guests")
	}
	if !grouped {
		return nil
	}
	h := New(t.TempDir())
	g := h.open()
	if g == nil || !g.Has(cgroup.Memory) || !g.Has(cgroup.PIDs) {
		t.Skip("no control groups here that bound memory and processes")
	}
	t.Cleanup(func() {
		h.Close()
		if left := cgroup.Dirs(h.dir); len(left) > 0 {
			t.Errorf("groups are left: %q", left)
		}
	})
	return h
}

// guest runs a script as nobody, and reads what it prints. Its process has a group of its own.
func guest(ctx context.Context, t *testing.T, h *House, grace time.Duration, script string) (*Guest, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", []string{"PATH=/usr/bin:/bin"}, w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	g, err := h.Start(cmd, grace)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return g, bufio.NewReader(r)
}

// hold makes a pipe with a name, from which a guest reads until release.
func hold(t *testing.T) (path string, release func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "hold")
	if err := errors.Join(os.Chmod(dir, 0o755), syscall.Mkfifo(path, 0o644)); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return path, func() { _, _ = f.WriteString("\n") }
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	text, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return strings.TrimSpace(text)
}

// TestGuestProcesses: all guests of a user together have so many processes.
func TestGuestProcesses(t *testing.T) {
	h := house(t, true)
	const script = `n=0; while [ $n -lt 400 ] && sleep 1000 & do n=$((n+1)); done`
	count := "trap 'exit 0' TERM; (" + script + ") 2>&1 | head -n 1 | sed 's/.*fork.*/none left/'; wait"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, out := guest(ctx, t, h, 0, count)
	if said := line(t, out); said != "none left" {
		t.Errorf("after 400 processes: %q", said)
	}
	if n := len(g.group.PIDs()); n > h.each.PIDs {
		t.Errorf("%d processes", n)
	}
	other, _ := h.groups.Create("job_other", "step_1", &h.each) // of another user
	if other == nil || !other.Remove() {
		t.Error("another user has no group")
	}
	cancel()
	<-g.Over()
}

// TestGuestMemory: a guest that takes more than its user may have is killed, and not the server.
func TestGuestMemory(t *testing.T) {
	h := house(t, true)
	h.each.MemMB = 64
	g, out := guest(t.Context(), t, h, 0, "head -c 300000000 /dev/zero | tail -c 200000000 | wc -c; echo ends")
	<-g.Over()
	if text, err := io.ReadAll(out); err != nil || strings.Contains(string(text), "200000000") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestGuestsAreAlone: the server has nothing of a guest in its own group, and a guest nothing of the server's rank.
func TestGuestsAreAlone(t *testing.T) {
	h := house(t, true)
	g, out := guest(t.Context(), t, h, 0, "nice; cat /proc/self/oom_score_adj /proc/self/cgroup; echo end; "+
		"[ -e /proc/self/fd/3 ] && echo open || echo closed")
	if nice, spared := line(t, out), line(t, out); nice != strconv.Itoa(niceness) || spared != "0" {
		t.Errorf("nice %s, oom_score_adj %s", nice, spared)
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for at := line(t, out); at != "end"; at = line(t, out) {
		f := strings.SplitN(at, ":", 3)
		bounds := f[1] == "" || f[1] == cgroup.Memory || f[1] == cgroup.PIDs
		if bounds && strings.Contains(string(text), at+"\n") {
			t.Errorf("it is in the server's group %s", at)
		}
	}
	if gate := line(t, out); gate != "closed" {
		t.Errorf("descriptor 3 is %s", gate)
	}
	<-g.Over()
}

// TestGuestLeavesNothing: what a guest has started ends with it, however it has hidden that, or after its grace.
func TestGuestLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name, hide string
		grouped    bool
		grace      time.Duration
	}{
		{"in its process group", "", true, 0},
		{"in a session of its own", "setsid ", true, 0},
		{"after its grace", "setsid ", true, 10 * time.Millisecond},
		{"without a control group", "", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := house(t, c.grouped)
			held, release := hold(t)
			g, out := guest(t.Context(), t, h, c.grace, c.hide+"sh -c 'echo $$; exec sleep 1000' & read x <"+held)
			pid := line(t, out)
			release()
			if err := g.Wait(t.Context()); err != nil && !c.grouped {
				t.Logf("ended: %v", err)
			}
			for end := time.Now().Add(20 * time.Second); alive(pid); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("process %s lives", pid)
				}
			}
		})
	}
}

// alive reports whether a process is there and no zombie.
func alive(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// TestGuestGrace: what a guest has left behind may go on for a while.
func TestGuestGrace(t *testing.T) {
	h := house(t, true)
	g, out := guest(t.Context(), t, h, time.Hour, "(sleep 0.2; echo done) & echo left")
	<-g.Over()
	if left, done := line(t, out), line(t, out); left != "left" || done != "done" {
		t.Errorf("said %q, %q", left, done)
	}
}

// TestGuestsEndWithServer: a server that ends leaves no guests, and starts none.
func TestGuestsEndWithServer(t *testing.T) {
	house(t, true)
	h := New(t.TempDir())
	g, out := guest(t.Context(), t, h, time.Hour, "setsid sh -c 'echo $$; exec sleep 1000' & echo")
	pid := line(t, out)
	if pid == "" {
		pid = line(t, out)
	}
	<-g.Over()
	h.Close()
	if left := cgroup.Dirs(h.dir); alive(pid) || len(left) > 0 {
		t.Errorf("process %s lives, or %q are left", pid, left)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if _, err := h.Start(cmd, 0); err == nil {
		t.Error("another starts")
	}
}

// TestGuestsOfDead: guests of a server that was killed end when it starts again.
func TestGuestsOfDead(t *testing.T) {
	house(t, true)
	dir := t.TempDir()
	was := New(dir)
	g, out := guest(t.Context(), t, was, 0, "setsid sh -c 'echo $$; exec sleep 1000' & wait")
	pid := line(t, out)
	was.groups.Release() // as the kernel does
	again := New(dir)
	defer again.Close()
	<-g.Over()
	if alive(pid) {
		t.Errorf("process %s lives", pid)
	}
}

// TestGuestsGoHome: of guests that have ended no group is left.
func TestGuestsGoHome(t *testing.T) {
	h := house(t, true)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			g, _ := guest(t.Context(), t, h, time.Hour, "true")
			<-g.Over()
		})
	}
	all.Wait()
	dirs := cgroup.Dirs(h.dir)
	if len(dirs) == 0 {
		t.Fatal("no groups")
	}
	left := func() (list []string) {
		for _, d := range dirs {
			in, _ := filepath.Glob(d + "/job_*")
			list = append(list, in...)
		}
		return list
	}
	for end := time.Now().Add(20 * time.Second); len(left()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q are left", left())
		}
	}
}

// TestLimitedGuests: where there are no groups, limits of the process stand for them.
func TestLimitedGuests(t *testing.T) {
	house(t, false)
	g, out := guest(t.Context(), t, nil, 0, "cat /proc/self/limits")
	want := map[string]int{"Max processes": jobPIDs, "Max data size": userMemory << 20,
		"Max locked memory": locked, "Max open files": files}
	for range 17 {
		text := line(t, out)
		for name, most := range want {
			rest, ok := strings.CutPrefix(text, name)
			if !ok {
				continue
			}
			soft, hard := 0, 0
			if _, err := fmt.Sscan(rest, &soft, &hard); err != nil || max(soft, hard) > most {
				t.Errorf("%s: %v", text, err)
			}
			delete(want, name)
		}
	}
	<-g.Over()
	if len(want) > 0 {
		t.Errorf("nothing is said of %v", want)
	}
}
