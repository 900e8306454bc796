package e2e

import (
	"strings"
	"testing"
)

// TestPreemption evicts jobs of a lower partition for one of a higher: a batch job is requeued and
// finished later, one that forbids it and a step of srun are cancelled, one with grace ends as it likes.
func TestPreemption(t *testing.T) {
	t.Parallel()
	file := confFile(t, `
ClusterName=pre
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=train Nodes=ALL Default=YES
PartitionName=kind Nodes=ALL PreemptMode=CANCEL GraceTime=60
PartitionName=priority Nodes=ALL PriorityTier=2
`)
	d := startDev(t, "--hollow", "3x4c8g", "--hollow-exec", "--conf", file)
	d.wait("three nodes", func() bool { return d.must("sinfo", "-h", "-p", "train", "-t", "idle", "-o", "%D") == "3" })
	state := func(id, want string) {
		t.Helper()
		last := ""
		defer func() {
			if last != want {
				t.Logf("job %s is %s\n%s", id, last, d.must("scontrol", "show", "job", id))
			}
		}()
		d.wait("job "+id+" to be "+want, func() bool {
			last = d.must("sacct", "-nXP", "-D", "-j", id, "-o", "state")
			return last == want
		})
	}
	batch := func(args ...string) string {
		t.Helper()
		return d.must("sbatch", append([]string{"--parsable", "--exclusive"}, args...)...)
	}

	once := "if [ \"$SLURM_RESTART_COUNT\" = 1 ]; then echo again; exit 0; fi; echo first; exec sleep 600"
	again := batch("-w", "node-001", "-o", "again.out", "--open-mode=append", "--wrap", once)
	never := batch("-w", "node-002", "--no-requeue", "-o", "never.out", "--wrap", "exec sleep 600")
	kind := batch("-w", "node-003", "-p", "kind", "-o", "kind.out", "--wrap",
		"srun sh -c 'trap \"echo asked; exit 0\" TERM; echo ready; while :; do sleep .1; done'")
	for _, id := range []string{again, never, kind} {
		state(id, "RUNNING")
	}
	d.wait("the outputs", func() bool { return d.soFar("again.out") == "first\n" && d.soFar("kind.out") == "ready\n" })
	if out := d.must("scontrol", "show", "job", never); !strings.Contains(out, "PreemptTime=None") {
		t.Errorf("before: %s", out)
	}

	first := batch("-p", "priority", "-N3", "-o", "/dev/null", "--wrap", "sleep 1")
	state(never, "PREEMPTED")
	state(kind, "COMPLETED") // well before its grace is over
	state(first, "COMPLETED")
	state(again, "PREEMPTED\nCOMPLETED")
	if out := d.must("scontrol", "-o", "show", "job", again); !strings.Contains(out, " Restarts=1 ") {
		t.Errorf("requeued: %s", out)
	}
	out := d.must("scontrol", "-o", "show", "job", never)
	if !strings.Contains(out, "JobState=PREEMPTED Reason=None ") || strings.Contains(out, "PreemptTime=None") || !strings.Contains(out, " ExitCode=0:15 ") {
		t.Errorf("cancelled: %s", out)
	}
	if out := d.must("squeue", "-h", "-t", "PR", "-o", "%i %t %T"); out != never+" PR PREEMPTED" {
		t.Errorf("squeue: %q", out)
	}
	for name, id := range map[string]string{"again.out": again, "never.out": never} {
		if out := d.read(name); !strings.Contains(out, "error: *** JOB "+id+" ON node-00") || !strings.Contains(out, " DUE TO PREEMPTION ***\n") {
			t.Errorf("%s: %q", name, out)
		}
	}
	if out := d.read("kind.out"); !strings.HasPrefix(out, "ready\n") || !strings.Contains(out, "\nasked\n") { // the shell may tell of its sleep's end between
		t.Errorf("in its grace: %q", out)
	}
	if out := d.must("scontrol", "show", "partition", "kind"); !strings.Contains(out, "GraceTime=60") || !strings.Contains(out, "PreemptMode=CANCEL") {
		t.Errorf("partition: %s", out)
	}
	if out := d.must("sinfo", "-h", "-p", "train", "-O", "preemptmode"); strings.TrimSpace(out) != "REQUEUE" {
		t.Errorf("sinfo: %q", out)
	}
	if out := d.must("scontrol", "show", "config"); !strings.Contains(out, "\nPreemptMode             = REQUEUE\nPreemptType             = preempt/partition_prio\n") {
		t.Errorf("config: %s", out)
	}

	type end struct {
		errs string
		code int
	}
	step := make(chan end, 1)
	go func() {
		_, errs, code := d.run("srun", "-N3", "--exclusive", "sleep", "600")
		step <- end{errs, code}
	}()
	d.wait("the step", func() bool { return d.must("squeue", "-h", "-s") != "" })
	batch("-p", "priority", "-N1", "-o", "/dev/null", "--wrap", "true")
	if e := <-step; e.code != 143 || !strings.Contains(e.errs, " DUE TO PREEMPTION ***") {
		t.Errorf("srun: exit code %d\n%s", e.code, e.errs)
	}
}
