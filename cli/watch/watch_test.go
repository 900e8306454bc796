package watch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func job(phase cluster.Phase, change func(*cluster.Job)) *cluster.Job {
	j := &cluster.Job{ID: 17, Task: cluster.TaskAny, Phase: phase, Attempt: 1, Started: epoch,
		Spec: &cluster.JobSpec{Name: "train", Layout: &cluster.Layout{}, Partitions: []string{"p"}}}
	if change != nil {
		change(j)
	}
	return j
}

func on(names ...cluster.NodeName) func(*cluster.Job) {
	return func(j *cluster.Job) {
		j.Alloc = &cluster.Alloc{Partition: "p"}
		for _, n := range names {
			j.Alloc.Shares = append(j.Alloc.Shares, cluster.Share{Node: n})
		}
	}
}

// TestChanges: each thing that happens to a job is told once.
func TestChanges(t *testing.T) {
	t.Parallel()
	survives := func(change func(*cluster.Survival)) *cluster.Job {
		return job(cluster.Running, func(j *cluster.Job) {
			on("n1")(j)
			j.Survival = &cluster.Survival{}
			change(j.Survival)
		})
	}
	runs := job(cluster.Running, on("n1", "n2"))
	waits := job(cluster.Pending, func(j *cluster.Job) { j.Wait = cluster.WaitResources })
	for _, c := range []struct {
		what     string
		old, now *cluster.Job
		want     string
	}{
		{"first seen, waiting", nil, waits, "waits: Resources"},
		{"waits as before", waits, waits, ""},
		{"another reason", waits, job(cluster.Pending, func(j *cluster.Job) { j.Wait = cluster.WaitDependency }),
			"waits: Dependency"},
		{"starts", waits, job(cluster.Starting, on("n1")), "is starting on n1"},
		{"runs", waits, runs, "runs on n[1-2]"},
		{"a node is replaced", runs, job(cluster.Running, on("n1", "n3")), "runs on n[1,3] now, no longer on n[1-2]"},
		{"a new attempt on the same nodes", runs, job(cluster.Running, func(j *cluster.Job) {
			on("n1", "n2")(j)
			j.Attempt = 2
		}), "runs on n[1-2]"},
		{"suspended", runs, job(cluster.Suspended, on("n1")), "is suspended"},
		{"back in the queue", runs, job(cluster.Pending, func(j *cluster.Job) {
			j.Restarts, j.WaitNote = 2, "node n2 failed"
		}), "is back in the queue (restart 2): node n2 failed"},
		{"ends well", runs, job(cluster.Ended, func(j *cluster.Job) {
			j.Outcome, j.Ended = cluster.Completed, epoch.Add(time.Hour)
		}), "has ended: COMPLETED, exit code 0:0, after 1:00:00"},
		{"time limit", runs, job(cluster.Ended, func(j *cluster.Job) {
			j.Outcome, j.Ended, j.Limit = cluster.TimedOut, epoch.Add(time.Hour), time.Hour
		}), "has ended: TIMEOUT, exit code 0:0, after 1:00:00; limit: its time limit of 1:00:00 was over"},
		{"checkpoint", survives(func(*cluster.Survival) {}), survives(func(s *cluster.Survival) {
			s.Saved = &cluster.Checkpoint{Count: 3, Path: "/ckpt"}
		}), "has saved checkpoint 3 (/ckpt)"},
		{"hang", survives(func(*cluster.Survival) {}), survives(func(s *cluster.Survival) {
			s.Hung = &cluster.Hang{At: epoch, Text: "rank 3 is missing", Action: cluster.HangStack}
		}), "hangs: rank 3 is missing; done about it: stack"},
		{"the same hang", survives(func(s *cluster.Survival) { s.Hung = &cluster.Hang{At: epoch} }),
			survives(func(s *cluster.Survival) { s.Hung = &cluster.Hang{At: epoch} }), ""},
		{"slow", survives(func(*cluster.Survival) {}), survives(func(s *cluster.Survival) {
			s.Slow = &cluster.Straggler{At: epoch, Node: "n9", Text: "its clock is low"}
		}), "is slowed by n9: its clock is low"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(changes(c.old, c.now), "\n"); got != c.want {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// TestDigest: of many jobs the numbers are told, and each one that fails; the exit code is the worst one.
func TestDigest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &watcher{
		sys:    &front.Sys{},
		out:    &out,
		jobs:   map[cluster.JobID]*cluster.Job{},
		since:  new(uint64),
		isMany: true,
	}
	send := func(j *cluster.Job, after time.Duration) error {
		return w.take(&api.Event{Index: 1, Time: epoch.Add(after), Kind: api.EventJob, Record: j})
	}
	for i := range 20 {
		j := job(cluster.Running, on("n1"))
		j.ID += cluster.JobID(i)
		w.jobs[j.ID] = j
	}
	for i := range 20 {
		j := job(cluster.Ended, func(j *cluster.Job) { j.Outcome, j.Ended = cluster.Completed, epoch })
		if j.ID += cluster.JobID(i); i == 4 {
			j.Outcome, j.Exit.Code, j.Spec.Name = cluster.Failed, 9, "a\x1b[2Jb"
		}
		if err := send(j, time.Duration(i)*time.Second); (err == errEnded) != (i == 19) {
			t.Errorf("after job %d: %v", i, err)
		}
	}
	text := out.String()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	want := []string{"jobs: 19 running, 1 completed", "job 21 (a?[2Jb) has ended: FAILED, exit code 9:0, after 0:00; " +
		"program: its script ended with exit code 9", "jobs: 10 completed, 9 running, 1 failed", "jobs: 19 completed, 1 failed"}
	for i, l := range lines {
		if i >= len(want) || !strings.HasSuffix(l, want[i]) {
			t.Errorf("line %d: %q", i, l)
		}
	}
	if len(lines) != len(want) || w.code() != 9 {
		t.Errorf("code %d\n%s", w.code(), text)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "usage: muster watch JOB…", "x": `"x" is no job`, "17.0": `"17.0" is no job`, "17 17_3 18+1": "<nil>",
	} {
		if _, err := parse(strings.Fields(text)); !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
