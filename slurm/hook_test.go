package slurm

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestSubject: mails are headed as Slurm 22.05 heads them.
func TestSubject(t *testing.T) {
	began := time.Date(2026, 3, 1, 8, 0, 10, 0, time.UTC)
	job := func(change func(*cluster.Job)) *cluster.Job {
		j := &cluster.Job{ID: 9, Task: cluster.TaskAny, Spec: &cluster.JobSpec{Layout: &cluster.Layout{},
			Name: "x"}, Phase: cluster.Running, Submitted: began.Add(-10 * time.Second), Started: began}
		if change != nil {
			change(j)
		}
		return j
	}
	over := func(how cluster.Outcome, code int) func(*cluster.Job) {
		return func(j *cluster.Job) {
			j.Phase, j.Outcome, j.Ended, j.Exit = cluster.Ended, how, began.Add(85*time.Second),
				cluster.ExitStatus{Code: code}
		}
	}
	task := func(j *cluster.Job) { j.ArrayID, j.Task = 4, 1 }
	for _, c := range []struct {
		e    cluster.Hook
		want string
	}{
		{cluster.Hook{Event: cluster.EventBegin, Job: job(nil)}, "Slurm Job_id=9 Name=x Began, Queued time 00:00:10"},
		{cluster.Hook{Event: cluster.EventEnd, Job: job(over(cluster.Cancelled, 0))},
			"Slurm Job_id=9 Name=x Ended, Run time 00:01:25, CANCELLED, ExitCode 0"},
		{cluster.Hook{Event: cluster.EventFail, Job: job(over(cluster.TimedOut, 0))},
			"Slurm Job_id=9 Name=x Failed, Run time 00:01:25, TIMEOUT, ExitCode 0"},
		{cluster.Hook{Event: cluster.EventRequeue, Job: job(nil), At: began.Add(6 * time.Second)},
			"Slurm Job_id=9 Name=x Requeued, Run time 00:00:06"},
		{cluster.Hook{Event: cluster.EventTime50, Job: job(nil), At: began.Add(time.Minute)},
			"Slurm Job_id=9 Name=x Reached 50% of time limit, Run time 00:01:00"},
		{cluster.Hook{Event: cluster.EventNever, Job: job(nil)}, "Slurm Job_id=9 Name=x Invalid dependency"},
		{cluster.Hook{Event: cluster.EventBegin, Job: job(task)},
			"Slurm Array Task Job_id=4_1 (9) Name=x Began, Queued time 00:00:10"},
		{cluster.Hook{Event: cluster.EventBegin, Job: job(task), Array: &cluster.ArraySum{}},
			"Slurm Array Summary Job_id=4_* (4) Name=x Began"},
		{cluster.Hook{Event: cluster.EventFail, Job: job(task), Array: &cluster.ArraySum{MaxExit: 2}},
			"Slurm Array Summary Job_id=4_* (4) Name=x Failed, Mixed, ExitCode [0-2]"},
		{cluster.Hook{Event: cluster.EventEnd, Job: job(task),
			Array: &cluster.ArraySum{Outcome: cluster.Completed}},
			"Slurm Array Summary Job_id=4_* (4) Name=x Ended, COMPLETED, ExitCode [0-0]"},
		{cluster.Hook{Event: cluster.EventNever, Job: job(func(j *cluster.Job) {
			j.Spec.Name = "x\r\nBcc: all@example.org\n\nPay" // a header and a text of their own
		})}, "Slurm Job_id=9 Name=x??Bcc: all@example.org??Pay Invalid dependency"},
	} {
		if got := Subject(&c.e); got != c.want {
			t.Errorf("%s: %q, want %q", c.e.Event, got, c.want)
		}
	}
}

// TestMailAddress: a user's address is an address to the mail program, which runs as SlurmUser: no option, no command
// and no file.
func TestMailAddress(t *testing.T) {
	cfg := cluster.DefaultConfig()
	for to, sent := range map[string]bool{
		"alice": true, "alice@example.org": true, "a.b+jobs@example.org": true, "alice@a.org,bob@b.org": true,
		"_svc": true, "ünal@example.org": true,
		"-oQ/tmp": false, "|/tmp/program": false, "/etc/cron.d/x": false, "./x": false, "+folder": false, "": true,
		"alice,|/tmp/program": false, "alice -oQ/tmp": false, "alice;|id": false, "a`id`": false,
		"alice /tmp/x": false,
	} {
		j := &cluster.Job{ID: 9, Task: cluster.TaskAny, Spec: &cluster.JobSpec{Layout: &cluster.Layout{},
			User: "alice", MailUser: to}}
		p := Dialect{}.HookProgram(&cluster.Hook{Kind: cluster.HookMail, Event: cluster.EventBegin, Job: j}, &cfg)
		if (len(p.Argv) > 0) != sent {
			t.Errorf("%q: %q", to, p.Argv)
		}
	}
}

// TestResumeFile: a job that shares nodes in no way that there is does not break the server that wakes its nodes.
func TestResumeFile(t *testing.T) {
	j := &cluster.Job{ID: 9, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Sharing: 200}}
	j.Alloc = &cluster.Alloc{Partition: "main", Shares: []cluster.Share{{Node: "n0"}}}
	e := &cluster.Hook{Kind: cluster.HookResume, Jobs: []*cluster.Job{j}, Nodes: []cluster.NodeName{"n0"}}
	if text := resumeFile(e); len(text) == 0 {
		t.Error("nothing is told of the nodes to be woken")
	}
}
