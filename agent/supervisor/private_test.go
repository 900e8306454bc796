package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"dev.muster/agent/step"
)

// TestPrivate: the steps of a job share folders that nobody else sees, also after the supervisor was killed; what
// other jobs and the machine have there stays out of sight.
func TestPrivate(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("folders of a job's own need root")
	}
	g := newRig(t)
	dir, base := filepath.Join(g.own, "scratch"), filepath.Join(g.own, "base")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(g.own, "mark")
	init := filepath.Join(g.own, "init")
	if err := os.WriteFile(init, []byte("#!/bin/sh\necho $X >>"+mark+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := func(script string) step.Spec {
		sp := g.spec(script)
		sp.ID.Step = int(sp.ID.Job)
		sp.Private = &step.Private{Base: base, Make: true, Dirs: []string{dir, "/dev/shm"}, Init: init, Env: []string{"X=1"}}
		return sp
	}
	hold := g.fifo("hold")
	first := spec("echo one >" + dir + "/file; echo two >/dev/shm/muster-private; read x <" + hold)
	g.start(first)
	g.await(first.ID, isRunning)
	same := func(script string) step.Spec {
		sp := spec(script)
		sp.ID.Job = first.ID.Job
		return sp
	}
	read := "cat " + dir + "/file /dev/shm/muster-private"
	until := "until [ -s /dev/shm/muster-private ]; do sleep 0.01; done; "
	check := func(what string, sp step.Spec, code int, want string) {
		t.Helper()
		out := filepath.Join(g.own, "text")
		sp.Tasks[0].Stdout = step.IO{Kind: step.File, Path: out}
		if st := g.run(sp); st.Tasks[0].Exit.Code != code {
			t.Errorf("%s: %+v", what, st)
		}
		if text, _ := os.ReadFile(out); string(text) != want {
			t.Errorf("%s: %q", what, text)
		}
	}
	check("the same job", same(until+read), 0, "one\ntwo\n")
	check("another job", spec("ls "+dir+" /dev/shm"), 0, "/dev/shm:\n\n"+dir+":\n")
	if _, err := os.Stat(filepath.Join(dir, "file")); !os.IsNotExist(err) {
		t.Error("the machine sees the job's file:", err)
	}
	if st, err := os.Stat(filepath.Join(base, first.ID.JobName())); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the job's folder: %v, %v", st, err)
	}
	clear(g.st)
	syscall.Kill(g.supervisorPID(), syscall.SIGKILL)
	g.await(first.ID, isRunning)
	check("the same job, under another supervisor", same(read), 0, "one\ntwo\n")
	if text, _ := os.ReadFile(mark); string(text) != "1\n1\n" {
		t.Errorf("the program for new namespaces, once for each of two jobs: %q", text)
	}
	if err := os.WriteFile(hold, nil, 0); err != nil {
		t.Fatal(err)
	}
	g.await(first.ID, isEnded)
	if err := g.r.Release(first.ID); err != nil {
		t.Fatal(err)
	}
	bad := spec("true")
	bad.Private.Init = "/no-such"
	if st := g.run(bad); !st.Tasks[0].Fault || st.Tasks[0].Error != "give the job folders of its own (job_container/tmpfs): InitScript: start /no-such: no such file or directory" {
		t.Errorf("no such program: %+v", st)
	}
	check("a step without", g.spec("ls "+dir), 0, "")
}
