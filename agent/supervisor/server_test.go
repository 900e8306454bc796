package supervisor

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
	"dev.muster/pmi"
	"golang.org/x/sys/unix"
)

// managed is a step of tasks that speak PMI-1 by their descriptor 3. say does so in the shell of a task.
func (g *rig) managed(tasks int, script string) step.Spec {
	sp := g.streamSpec(tasks, `say() { echo "$1" >&3; read answer <&3; echo "$answer"; }; `+script)
	setup := &pmi.Setup{Job: "1.0", Size: tasks, Universe: tasks, Ranks: [][]int{nil}, Hosts: []string{"n1"}}
	for i := range tasks {
		setup.Ranks[0] = append(setup.Ranks[0], i)
	}
	text, err := setup.Encode()
	if err != nil {
		g.t.Fatal(err)
	}
	sp.Server = &step.Server{Argv: []string{selfExe(g.t), "internal", "pmi"}, Setup: text, Tasks: true}
	return sp
}

// hub is srun's part of a step on one node: it returns what the tasks write, once the step has ended.
func (g *rig) hub(sp step.Spec) (out, note string) {
	g.t.Helper()
	st := g.stream(sp.ID)
	r, w := io.Pipe()
	hub := pmi.NewHub([]io.Writer{toServer{st}}, func(pmi.Aborted) {})
	defer hub.Close()
	go func() { _ = hub.Serve(0, r) }()
	for {
		f, err := st.Next()
		switch {
		case err != nil:
			g.t.Fatal(err)
		case f.Kind == stream.Done:
			_ = w.Close()
			return out, note
		case f.Task == stream.StepServer && f.Kind == stream.Stdout:
			_, _ = w.Write(f.Data)
		case f.Task == stream.StepServer && f.Kind == stream.Stderr:
			note += string(f.Data)
		case f.Kind == stream.Stdout:
			out += string(f.Data)
		}
	}
}

type toServer struct{ to *stream.Stream }

func (w toServer) Write(b []byte) (int, error) { return len(b), w.to.Input(stream.StepServer, b) }

// TestServer: the tasks of a step find each other by its server; a supervisor that is upgraded between two fences
// changes nothing.
func TestServer(t *testing.T) {
	for _, upgrade := range []bool{false, true} {
		t.Run(map[bool]string{true: "upgraded", false: "plain"}[upgrade], func(t *testing.T) {
			g := newRig(t)
			dir := filepath.Join(g.own, "server")
			sp := g.managed(2, "test -d "+dir+" || exit 9; say 'cmd=init pmi_version=1 pmi_subversion=1' >/dev/null; say cmd=barrier_in; "+
				"read x <$GO; say cmd=barrier_in; say cmd=finalize")
			sp.Server.Dir = dir
			for i, name := range []string{"go0", "go1"} {
				sp.Tasks[i].Env = []string{"GO=" + g.fifo(name)}
			}
			g.start(sp)
			ended := make(chan [2]string)
			go func() {
				out, note := g.hub(sp)
				ended <- [2]string{out, note}
			}()
			g.await(sp.ID, isRunning)
			if upgrade {
				if err := g.r.Upgrade(""); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"go0", "go1"} {
				if err := os.WriteFile(filepath.Join(g.own, name), []byte("\n"), 0); err != nil {
					t.Fatal(err)
				}
			}
			got := <-ended
			lines := strings.Fields(strings.ReplaceAll(got[0], " ", "_"))
			want := map[string]int{"cmd=barrier_out_rc=0": 4, "cmd=finalize_ack_rc=0": 2}
			for _, l := range lines {
				want[l]--
			}
			for l, n := range want {
				if n != 0 {
					t.Errorf("%d times too few: %s", n, l)
				}
			}
			g.await(sp.ID, isEnded)
			if _, err := os.Stat(dir); err == nil {
				t.Error("the server's folder is left")
			}
			if got[1] != "" {
				t.Errorf("the server says %q", got[1])
			}
		})
	}
}

// TestServerFails: without its server no task begins, and each tells why.
func TestServerFails(t *testing.T) {
	g := newRig(t)
	said := filepath.Join(g.own, "said")
	if err := os.WriteFile(said, []byte("#!/bin/sh\nprintf '{\"error\":\"there is no libfoo: install it\"}' >&4\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	wordy := filepath.Join(g.own, "wordy")
	if err := os.WriteFile(wordy, []byte("#!/bin/sh\n"+
		"{ printf '{\"env\":[[]'; yes ,[] | tr -d '\\n' | head -c 3000000; printf ']}'; } >&4\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, want string }{
		{wordy, "the process manager of MPI says more than 81920 bytes when it is ready: " +
			"is its library changed, by LD_LIBRARY_PATH?"},
		{"/bin/false", "the process manager of MPI has ended before it was ready"},
		{"/nowhere", "start the process manager of MPI: execve /nowhere: no such file or directory"},
		{said, "there is no libfoo: install it"},
	} {
		sp := g.managed(2, "echo began")
		sp.Server.Argv = []string{c.program}
		g.start(sp)
		out, _ := g.hub(sp)
		st := g.await(sp.ID, isEnded)
		for _, k := range st.Tasks {
			if k.Error != c.want || k.Fault {
				t.Errorf("%s: task %d: %q, the node's fault: %v; want %q", c.program, k.Rank, k.Error, k.Fault, c.want)
			}
		}
		if out != "" {
			t.Errorf("%s: a task began", c.program)
		}
	}
}

// TestSlowServer: steps whose servers are never ready, as their user may have it, hold up no launches of other users.
func TestSlowServer(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	var slow []step.Spec
	for range 3 * launchThreads {
		sp := g.managed(1, "true")
		sp.UID, sp.GID = bob, bob
		sp.Server.Argv = []string{"/bin/sleep", "60"}
		slow = append(slow, sp)
	}
	g.start(slow...)
	hers := g.spec("true")
	hers.UID, hers.GID = alice, alice
	g.run(hers)
	for _, sp := range slow {
		if isEnded(g.st[sp.ID]) {
			t.Fatalf("step %v of bob's had to end before alice's began", sp.ID)
		}
	}
	for _, sp := range slow {
		if err := g.r.Signal(sp.ID, unix.SIGKILL, step.All); err != nil {
			t.Fatal(err)
		}
	}
	for _, sp := range slow {
		g.await(sp.ID, isEnded)
	}
}

// TestKilledBeforeServer: a step that is killed at any moment of its launch does not wait until its server is ready.
func TestKilledBeforeServer(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	for range 60 {
		sp := g.managed(1, "true")
		sp.UID, sp.GID = bob, bob
		sp.Server.Argv = []string{"/bin/sleep", "60"}
		g.start(sp)
		if err := g.r.Signal(sp.ID, unix.SIGKILL, step.All); err != nil {
			t.Fatal(err)
		}
		g.await(sp.ID, isEnded)
	}
}

// TestFullFolder: a step whose user has filled the folder of its server ends before all of that is removed.
func TestFullFolder(t *testing.T) {
	gone, ended := make(chan struct{}), make(chan struct{})
	go func() {
		removeSoon("/full", func(string) error { <-gone; return nil })
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * removeTime):
		t.Error("the end waits for the removal")
	}
	close(gone)
	dir := t.TempDir()
	if removeSoon(dir, os.RemoveAll); exists(dir) {
		t.Error("the folder is left")
	}
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}
