package explain_test

import (
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/explain"
	"dev.muster/sched/schedtest"
)

// TestChangesWorthwhile: no change is offered that gains less than a minute, and none that leaves half of a job's
// nodes or less. A job without a time limit is named as what hides the start of those behind it.
func TestChangesWorthwhile(t *testing.T) {
	b := schedtest.New(t, 8)
	b.Schedule = sched.Schedule
	whole := func(nodes int, limit time.Duration) cluster.JobID {
		return b.Submit(func(s *cluster.JobSpec) {
			s.Sharing, s.MinNodes, s.Limit = cluster.ShareExclusive, nodes, limit
		})
	}
	changes := func(id cluster.JobID) string {
		var texts []string
		for _, c := range explain.Changes(b.S.Snapshot(), b.Now, id, func(*cluster.Partition) bool { return false }) {
			texts = append(texts, c.Text)
		}
		return strings.Join(texts, "; ")
	}
	whole(3, time.Hour)
	b.ScheduleAll()
	b.Now = b.Now.Add(10 * time.Second)
	endless := whole(3, cluster.Unlimited)
	b.ScheduleAll()
	wide := whole(8, time.Hour)
	b.ScheduleAll()
	if got := changes(wide); strings.Contains(got, "node") && !strings.Contains(got, "with 5 nodes instead of 8") {
		t.Errorf("a job of 8 nodes behind one without a limit: %s", got)
	}
	e := explain.Job(b.S.Snapshot(), b.Now, wide)
	named := false
	for _, h := range e.Holders {
		named = named || h.Job.ID == endless && h.Endless
	}
	if !named {
		t.Errorf("the job without a limit is not named: %+v", e.Holders)
	}

	b = schedtest.New(t, 8)
	b.Schedule = sched.Schedule
	whole(4, time.Hour)
	b.ScheduleAll()
	b.Now = b.Now.Add(10 * time.Second)
	whole(4, time.Hour)
	b.ScheduleAll()
	if got := changes(whole(8, time.Hour)); strings.Contains(got, "node") {
		t.Errorf("a gain of seconds is offered: %s", got)
	}
}

// TestTooFewGPUs: where nodes have room but not the GPUs that a job wants in all, the refusal says that.
func TestTooFewGPUs(t *testing.T) {
	b := schedtest.New(t, 4)
	gpus := func(nodes, n int) string {
		spec := &cluster.JobSpec{UID: 1000, User: "ada", Name: "x", Partitions: []string{"main"},
			Layout: &cluster.Layout{MinNodes: nodes, MaxNodes: nodes, Tasks: nodes, CPUsPerTask: 1}}
		spec.PerJob = []cluster.GRES{{Name: "gpu", Count: int64(n)}}
		if err := new(sched.Judge).Feasible(b.S.Snapshot(), spec, b.Now); err != nil {
			return err.Error()
		}
		return "it fits"
	}
	for _, c := range []struct {
		nodes, gpus int
		want        string
	}{{1, 99, "none has 99 GPUs (at most "}, {2, 99, "2 nodes have "}, {1, 1, "it fits"}} {
		if got := gpus(c.nodes, c.gpus); !strings.Contains(got, c.want) || strings.Contains(got, "can take") {
			t.Errorf("%d GPUs on %d nodes: %s", c.gpus, c.nodes, got)
		}
	}
}
