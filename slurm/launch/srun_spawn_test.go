package launch

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/pmi"
	"dev.muster/slurm/front"
	"dev.muster/slurm/slurmtest"
	"dev.muster/slurm/submit"
)

// spawnedBy is what a task of an srun asks for; errs takes what is said.
func spawnedBy(t *testing.T, sys *front.Sys, line []string, programs ...pmi.Program) (*spawned, *bytes.Buffer) {
	t.Helper()
	req, err := submit.ParseSrun(line, sys)
	if err != nil {
		t.Fatal(err)
	}
	errs := &bytes.Buffer{}
	sys.Stderr = errs
	run := &stepRun{bare: sys, req: req}
	run.resp.Step.ID = cluster.StepID{Job: 7}
	run.resp.Nodes = make([]api.StepNode, 2)
	return &spawned{parent: run, asked: &pmi.Spawn{Programs: programs}}, errs
}

// TestSpawnRequest: what a task asks for is an srun in the job, with some of the options of its own one.
func TestSpawnRequest(t *testing.T) {
	sys := slurmtest.Sys("srun", "/tmp", "A=1", "PATH=/bin", "PMI_SPAWNED=1")
	line := []string{"-n1", "-l", "-K", "-c2", "--cpu-bind=none", "-o", "file", "--overcommit", "-m", "cyclic", "prog", "x"}
	sp, errs := spawnedBy(t, sys, line, pmi.Program{Tasks: 4, Argv: []string{"-p", ":", "a b"},
		Info: []string{"wdir", "/usr", "host", "n1", "path", "/opt", "arch", "x", "zonk", "y"}})
	s := sp.sys()
	r, err := sp.request(s)
	if err != nil {
		t.Fatal(err)
	}
	st := &r.Step
	if st.Tasks != 4 || st.CPUsPerTask != 0 || st.CPUBind != "none" || !st.Overcommit || !st.Label || st.KillOnBadExit != nil || st.Stdout != "" {
		t.Errorf("asks for %+v", st)
	}
	if st.MPI != "pmi2" || st.Distribution != "cyclic" || st.WorkDir != "/usr" || len(st.NodeList) != 1 {
		t.Errorf("asks for %+v", st)
	}
	if !slices.Equal(st.Argv, []string{"-p", ":", "a b"}) || st.MultiProgFile || r.Client.JobID != 7 {
		t.Errorf("job %d, words %q", r.Client.JobID, st.Argv)
	}
	for _, want := range []string{"A=1\x00", "PATH=/opt\x00", "PMI_SPAWNED=1\x00", "SLURM_NNODES=2\x00"} {
		if !strings.Contains(string(st.Env), want) {
			t.Errorf("without %q: %q", want, st.Env)
		}
	}
	want := "srun: error: mpi/pmi2: spawn info key 'arch' not supported\n" +
		"srun: error: mpi/pmi2: unknown spawn info key 'zonk' ignored\n"
	if errs.String() != want {
		t.Errorf("says %q", errs.String())
	}
	if r, _ := submit.ParseSrun([]string{"prog"}, sys); r != nil {
		env, err := submit.JobEnviron(r, sys.Environ)
		if err != nil || strings.Contains(string(env), pmi.SpawnedEnv) {
			t.Errorf("another srun passes on %q, %v", env, err)
		}
	}
}

// TestSpawnContainer: tasks run in a container as those do that ask for them.
func TestSpawnContainer(t *testing.T) {
	sys := slurmtest.Sys("srun", "/tmp")
	line := []string{
		"--mpi=pmi2", "--container-image=lab/mpi:1", "--container-mounts=/data", "--container-readonly",
		"--container-save=/tmp/x", "prog",
	}
	sp, _ := spawnedBy(t, sys, line, pmi.Program{Tasks: 2, Argv: []string{"worker"}})
	r, err := sp.request(sp.sys())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Step.Inside
	if c == nil || c.Image != "lab/mpi:1" || len(c.Mounts) != 1 || c.Writable || r.Step.Save != "" {
		t.Errorf("asks for %+v", c)
	}
}

// TestSpawnPrograms: each of several programs has its tasks, and its words as they are.
func TestSpawnPrograms(t *testing.T) {
	words := []string{"/bin/a", "it's", `"q" \`, "", "two words", "#"}
	programs := []pmi.Program{
		{Tasks: 2, Argv: words, Info: []string{"wdir", "/"}},
		{Tasks: 1, Argv: []string{"b"}},
	}
	sp, errs := spawnedBy(t, slurmtest.Sys("srun", "/tmp"), []string{"prog"}, programs...)
	r, err := sp.request(sp.sys())
	if err != nil {
		t.Fatal(err)
	}
	of, err := step.ParseMultiProg(&r.Step, 3)
	if err != nil || !slices.Equal(of[1], words) || !slices.Equal(of[2], []string{"b"}) {
		t.Errorf("%v, %v", of, err)
	}
	if got := errs.String(); got != "srun: error: mpi/pmi2: spawn info ignored\n" {
		t.Errorf("says %q", got)
	}
	sp.asked.Programs[1].Argv = []string{"b", "two\nlines"}
	if _, err := sp.request(sp.sys()); err == nil {
		t.Error("takes a word of two lines")
	}
}
