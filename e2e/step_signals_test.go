package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGrace: tasks of a script's srun that save on SIGTERM have the time for it when their job is cancelled, and
// the step has completed.
func TestGrace(t *testing.T) {
	d := startDev(t)
	id := strings.TrimSpace(d.must("sbatch", "--parsable", "-n2", "-o", "out", "--wrap",
		`srun -n2 sh -c 'trap "sleep 1; echo saved; exit 0" TERM; echo up; while :; do sleep .1; done'`))
	d.wait("both tasks", func() bool { return strings.Count(d.soFar("out"), "up") == 2 })
	d.must("scancel", id)
	d.wait("the end", func() bool {
		return strings.Contains(d.must("sacct", "-n", "-P", "-j", id, "-o", "jobid,state"), id+".0|COMPLETED")
	})
	rows := d.must("sacct", "-n", "-P", "-j", id, "-o", "jobid,state,exitcode")
	if !strings.Contains(rows, id+".0|COMPLETED|0:0") || !strings.Contains(rows, id+"|CANCELLED by") {
		t.Errorf("rows:\n%s", rows)
	}
}

// TestSignalsGoToTasks: a signal for a step, and one that srun passes on, is for its tasks and not for what they
// have started.
func TestSignalsGoToTasks(t *testing.T) {
	d := startDev(t)
	id := strings.TrimSpace(d.must("sbatch", "--parsable", "-n1", "-o", "out", "--wrap",
		`srun sh -c 'sleep 100 & c=$!; trap "kill -0 $c && echo child lives" USR1; echo up; while :; do sleep .1; done'`))
	d.wait("the task", func() bool { return strings.Contains(d.soFar("out"), "up") })
	for n, target := range []string{id, id + ".0"} {
		d.must("scancel", "-s", "USR1", target)
		d.wait("the signal to "+target, func() bool { return strings.Count(d.soFar("out"), "child lives") == n+1 })
	}
}

// TestFullSignalOnce: a signal for all of a job reaches the script, what it has started and each task, which has it once,
// though srun is a process of the script and passes signals on.
func TestFullSignalOnce(t *testing.T) {
	d := startDev(t)
	id := strings.TrimSpace(d.must("sbatch", "--parsable", "-n2", "-o", "out", "--wrap",
		`trap "echo script" USR1
sh -c 'trap "echo child" USR1; echo ready; while :; do sleep .1; done' &
srun -n2 sh -c 'trap "echo task" USR1; echo up; while :; do sleep .1; done' & wait; wait; wait`))
	d.wait("both tasks and the child", func() bool {
		out := d.soFar("out")
		return strings.Count(out, "up") == 2 && strings.Contains(out, "ready")
	})
	for n := 1; n <= 2; n++ {
		d.must("scancel", "-s", "USR1", "--full", id)
		d.wait("all to have the signal", func() bool {
			out := d.soFar("out")
			return strings.Count(out, "script") == n && strings.Count(out, "child") == n && strings.Count(out, "task") >= 2*n
		})
		time.Sleep(time.Second / 2) // for a signal too many
		if got := strings.Count(d.soFar("out"), "task"); got != 2*n {
			t.Errorf("two tasks had the signal %d times after it was sent %d times", got, n)
		}
	}
}

// TestSrunDies: the step of an srun that was killed ends, and so does the job that it had made for it.
func TestSrunDies(t *testing.T) {
	d := startDev(t)
	cmd := exec.Command(filepath.Join(bin, "srun"), "-J", "orphan", "-n2", "-o", "out", "sh", "-c",
		"echo up; exec sleep 100")
	cmd.Dir, cmd.Env = d.work, d.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.wait("the tasks", func() bool { return strings.Count(d.soFar("out"), "up") == 2 })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	d.wait("the end", func() bool {
		return strings.Contains(d.must("sacct", "-n", "-X", "-P", "-o", "jobname,state"), "orphan|CANCELLED by")
	})
	rows := d.must("sacct", "-n", "-P", "-o", "jobid,state,exitcode")
	if os.Getuid() == 0 && !strings.Contains(rows, ".0|CANCELLED by 0|0:9") {
		t.Errorf("rows:\n%s", rows)
	}
}

// TestStepsUseAllNodes: steps of one task each are spread over what the job's nodes have room for, none waits.
func TestStepsUseAllNodes(t *testing.T) {
	d := startDev(t)
	d.must("sbatch", "-W", "-N2", "--ntasks-per-node=2", "-o", "out", "--wrap",
		`for i in 1 2 3 4; do srun --exact -N1 -n1 --mem=10 sh -c 'hostname; sleep 1' & done; wait`)
	out := d.soFar("out")
	first := strings.Count(out, "gpu-node-001\n")
	second := strings.Count(out, "gpu-node-002\n")
	if first != 2 || second != 2 || strings.Contains(out, "srun:") {
		t.Errorf("four steps on two nodes:\n%s", out)
	}
}

// TestStepLimit: a step has a time limit of its own, which scontrol can change.
func TestStepLimit(t *testing.T) {
	d := startDev(t)
	id := strings.TrimSpace(d.must("sbatch", "--parsable", "-n1", "-o", "out", "--wrap", `srun -t 30 sleep 100`))
	shows := func(limit string) func() bool {
		return func() bool { return strings.Contains(d.must("squeue", "-h", "-s", "-o", "%i %l"), id+".0 "+limit) }
	}
	d.wait("the step", shows("30:00"))
	d.must("scontrol", "update", "stepid="+id+".0", "timelimit=5")
	d.wait("the new limit", shows("5:00"))
	d.must("scontrol", "update", "stepid="+id, "timelimit=+2")
	d.wait("a longer one", shows("7:00"))
	_, errs, code := d.run("scontrol", "update", "stepid="+id+".7", "timelimit=5")
	if code != 1 || !strings.Contains(errs, "Invalid job id specified") {
		t.Errorf("a step that is not: %d %s", code, errs)
	}
}

// TestBadInterpreter: a script whose interpreter is missing says so in its output, and fails with the error's number.
func TestBadInterpreter(t *testing.T) {
	d := startDev(t)
	script := filepath.Join(t.TempDir(), "job.sh")
	if err := os.WriteFile(script, []byte("#!/no/such/sh\ntrue\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, _, code := d.run("sbatch", "-W", "-o", "out", script)
	if out := d.soFar("out"); code != 2 || !strings.Contains(out, "error: execve(): bad interpreter(/no/such/sh): No such file or directory\n") {
		t.Errorf("exit code %d, %q", code, out)
	}
	if rows := d.must("sacct", "-n", "-P", "-o", "state,exitcode"); !strings.HasPrefix(rows, "FAILED|2:0\nFAILED|2:0") {
		t.Errorf("history: %s", rows)
	}
}

// TestStepsOfAttempts: each attempt of a job counts its steps from 0.
func TestStepsOfAttempts(t *testing.T) {
	d := startDev(t)
	id := strings.TrimSpace(d.must("sbatch", "--parsable", "--requeue", "--open-mode=append", "-o", "out", "--wrap",
		"srun -n1 true; srun -n1 sh -c 'echo begun; exec sleep 100'"))
	d.wait("the first attempt", func() bool { return strings.Count(d.soFar("out"), "begun") == 1 })
	d.must("scontrol", "requeue", id)
	d.wait("the second", func() bool {
		d.run("scontrol", "update", "jobid="+id, "starttime=now")
		return strings.Count(d.soFar("out"), "begun") == 2
	})
	d.must("scancel", id)
	d.wait("the end", func() bool { return d.must("squeue", "-h") == "" })
	rows := d.must("sacct", "-D", "-n", "-P", "-j", id, "-o", "jobid")
	if strings.Count(rows, id+".0\n") != 2 || strings.Contains(rows, id+".2") {
		t.Errorf("steps of both attempts:\n%s", rows)
	}
}
