package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogs: muster logs shows what a job's script writes from a machine that runs none of it: whole, its last
// lines, its errors, of a task of an array, as it is written, and of a job that has to wait first.
func TestLogs(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	at := g.others(g.leader("s1"))[0]
	id := g.must(at, "sbatch", "--parsable", "-o", g.dir+"/%x-%j.out", "-e", g.dir+"/%x-%j.err", "-J", "talks", "--wrap",
		"seq 30000; echo oh >&2; while [ ! -e "+g.dir+"/go ]; do sleep .1; done; echo the end")
	g.wait("thirty thousand lines",
		func() bool { return strings.HasSuffix(g.try(g.dir+"/talks-"+id+".out"), "30000\n") })
	d := g.at[at]
	got, cmd := d.lines("muster", "logs", "-f", "-n", "2", id)
	for _, want := range []string{"29999", "30000"} {
		if line := next(t, got); line != want {
			t.Fatalf("followed from its end: %q, want %q", line, want)
		}
	}
	if out := g.must(at, "muster", "logs", id); !strings.HasPrefix(out, "1\n2\n") || strings.Count(out, "\n") != 29999 {
		t.Errorf("whole: %d lines, from %.20q", strings.Count(out, "\n")+1, out)
	}
	if out := g.must(at, "muster", "logs", id, "-n", "20000"); !strings.HasPrefix(out, "10001\n") {
		t.Errorf("its last 20,000 lines begin with %.20q", out)
	}
	if out := g.must(at, "muster", "logs", "--err", id); out != "oh" {
		t.Errorf("its errors: %q", out)
	}

	waits := g.must(at, "sbatch", "--parsable", "-d", "afterok:"+id, "-a", "3-4", "-o", g.dir+"/%A_%a.out",
		"--wrap", "echo task $SLURM_ARRAY_TASK_ID")
	_, errs, code := g.run(at, "muster", "logs", waits+"_3")
	if code != 1 || !strings.Contains(errs, "is pending (Dependency)") {
		t.Errorf("of a job that waits: %d, %q", code, errs)
	}
	late, lateCmd := d.lines("muster", "logs", "-f", waits+"_4")
	if err := os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if line := next(t, got); line != "the end" {
		t.Errorf("as it is written: %q", line)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at the end of the job: %v", err)
	}
	if line := next(t, late); line != "task 4" {
		t.Errorf("once it has started: %q", line)
	}
	if err := lateCmd.Wait(); err != nil {
		t.Errorf("at the end of that job: %v", err)
	}
	_, errs, code = g.run(at, "muster", "logs", "999")
	if code != 1 || !strings.Contains(errs, "999") {
		t.Errorf("of a job that never was: %d, %q", code, errs)
	}
	_, errs, code = g.run(at, "muster", "logs", waits)
	if code != 1 || !strings.Contains(errs, "say of which") {
		t.Errorf("of two tasks: %d, %q", code, errs)
	}
}

// TestLogsOfSteps: muster logs shows what a task of a step writes to a file, from any machine, each task's from the
// node that has run it; where the output is no file it says where it goes.
func TestLogsOfSteps(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 2)
	at := g.others(g.leader("s1"))[0]
	id := g.must(at, "sbatch", "--parsable", "-N2", "-o", g.dir+"/job.out", "--wrap", fmt.Sprintf(`cd %s
srun -n2 -N2 -o each-%%s-%%t.log -e each-%%t.err sh -c 'echo task $SLURM_PROCID on $SLURMD_NODENAME; echo oh >&2
while [ ! -e %[1]s/go ]; do sleep .1; done; echo the end'
srun -n2 -N2 -o shared-%%j.log sh -c 'echo both'
srun -n2 -N2 echo direct`, g.dir))
	g.wait("both tasks", func() bool {
		return g.try(g.dir+"/each-0-0.log") != "" && g.try(g.dir+"/each-0-1.log") != ""
	})
	d := g.at[at]
	got, cmd := d.lines("muster", "logs", "-f", id, "--step", "0", "--task", "1")
	if line := next(t, got); !strings.HasPrefix(line, "task 1 on ") {
		t.Errorf("task 1 as it runs: %q", line)
	}
	g.wait("the record of the step", func() bool { return strings.Contains(g.must(at, "squeue", "-s"), id+".0") })
	if out := g.must(at, "muster", "logs", id+".0"); !strings.HasPrefix(out, "task 0 on ") {
		t.Errorf("the first task: %q", out)
	}
	if out := g.must(at, "muster", "logs", "--err", "--task", "1", id+".0"); out != "oh" {
		t.Errorf("errors of task 1: %q", out)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if line := next(t, got); line != "the end" {
		t.Errorf("as it is written: %q", line)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at the end of the step: %v", err)
	}
	g.ended(at, id)
	if out := g.must(at, "muster", "logs", id, "--task=1"); !strings.HasSuffix(out, "the end") {
		t.Errorf("after the end: %q", out)
	}
	if out := g.must(at, "muster", "logs", id+".1"); out != "both\nboth" {
		t.Errorf("a file of all tasks: %q", out)
	}
	for args, want := range map[string]string{
		id + ".2":             "goes where srun's does",
		id + ".7":             "has 0, 1, 2",
		id + ".0 --task 2":    "2 tasks, 0 to 1",
		id + ".1 --task 1":    "file of all its tasks",
		id + ".2 --err -n 10": "goes where srun's does",
	} {
		_, errs, code := g.run(at, "muster", append([]string{"logs"}, strings.Fields(args)...)...)
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("muster logs %s: %d, %q, want %q", args, code, errs, want)
		}
	}
}

// ended waits for the end of a job.
func (g *group) ended(at, id string) {
	g.wait("the end of job "+id, func() bool {
		return strings.Contains(g.must(at, "scontrol", "show", "job", id), "JobState=COMPLETED")
	})
}

// try reads a file, "" if it is not there yet.
func (g *group) try(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(b)
}
