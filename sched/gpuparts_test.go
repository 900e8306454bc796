package sched

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestGPUParts gives out parts of GPUs: a job's are of one GPU, the fullest that has enough; a GPU of which parts are
// given out is no whole one, until the last part is back; and no GPU has parts of two kinds.
func TestGPUParts(t *testing.T) {
	b := newTestbed(t, 1)
	ask := func(name string, n int64) cluster.JobID {
		return b.Submit(func(s *cluster.JobSpec) { s.PerNode = []cluster.GRES{{Name: name, Count: n}} })
	}
	where := func(id cluster.JobID) string {
		b.ScheduleAll()
		j, _ := b.S.Job(id)
		switch {
		case j.Alloc == nil:
			return "waits"
		case j.Alloc.Shares[0].Part != nil:
			return fmt.Sprintf("%s of %d", j.Alloc.Shares[0].Part.Name, j.Alloc.Shares[0].Part.GPU)
		}
		return "whole " + j.Alloc.Shares[0].GPUs.String()
	}
	expect := func(id cluster.JobID, want string) cluster.JobID {
		t.Helper()
		if got := where(id); got != want {
			t.Errorf("job %d: %s, want %s", id, got, want)
		}
		return id
	}
	first := expect(ask("shard", 2), "shard of 0")
	second := expect(ask("shard", 1), "shard of 0")
	expect(ask("shard", 3), "shard of 1")
	third := expect(ask("shard", 1), "shard of 0") // the first of the two that have one left
	expect(ask("mps", 50), "mps of 2")
	expect(ask("gpu", 1), "whole 3")
	waits := expect(ask("gpu", 1), "waits")
	b.EndJob(first)
	expect(waits, "waits") // two shards of GPU 0 are still out
	b.EndJob(second)
	expect(waits, "waits") // and another
	b.EndJob(third)
	if got := where(waits); got != "whole 0" {
		t.Errorf("the job that waited for a whole GPU: %s", got)
	}
	if err := b.S.Check(); err != nil {
		t.Error(err)
	}
}

// TestGPUPartsRefused: what no GPU has, and what makes no sense.
func TestGPUPartsRefused(t *testing.T) {
	b := newTestbed(t, 1)
	gres := func(name string, n int64) []cluster.GRES { return []cluster.GRES{{Name: name, Count: n}} }
	for name, l := range map[string]cluster.Layout{"more than a GPU has": {PerNode: gres("shard", 5)},
		"for the job":      {PerJob: gres("shard", 1)},
		"with a whole GPU": {PerNode: append(gres("shard", 1), gres("gpu", 1)...)},
		"two kinds":        {PerNode: append(gres("shard", 1), gres("mps", 1)...)}} {
		out := b.S.Apply(cluster.Entry{
			Index: b.N + 1, At: b.Now, By: cluster.Identity{System: true},
			Cmd: &cluster.Submit{Spec: &cluster.JobSpec{UID: 1, User: "u", Layout: &l}},
		})
		b.N++
		if out.Err == nil || out.Err.Kind != cluster.ErrGRES {
			t.Errorf("%s: %v", name, out.Err)
		}
	}
}

// TestLinkedGPUs: of GPUs that would do those are taken that are linked to each other.
func TestLinkedGPUs(t *testing.T) {
	b := newTestbed(t, 0)
	inv := node(1)
	links := [][]int{{-1, 0, 4, 0}, {0, -1, 0, 4}, {4, 0, -1, 0}, {0, 4, 0, -1}} // 0 with 2, 1 with 3
	for i := range inv.GPUs {
		inv.GPUs[i].Type = "v100"
		inv.GPUs[i].Links = links[i]
		inv.GPUs[i].Number = i + 1
		inv.GPUs[i].Cores = cluster.RangeIDSet(0, 15)
	}
	b.Apply(&cluster.NodeUp{Name: "n", Inventory: inv})
	take := func(n int64) string {
		id := b.Submit(func(s *cluster.JobSpec) { s.PerNode = []cluster.GRES{{Name: "gpu", Count: n}} })
		b.ScheduleAll()
		j, _ := b.S.Job(id)
		if j.Alloc == nil {
			return "waits"
		}
		return j.Alloc.Shares[0].GPUs.String()
	}
	for _, want := range []string{"0,2", "1,3"} {
		if got := take(2); got != want {
			t.Errorf("two GPUs: %s, want %s", got, want)
		}
	}
	for j := range b.S.Snapshot().Live() {
		b.EndJob(j.ID)
	}
	if got := take(1); got != "0" {
		t.Errorf("one: %s", got)
	}
	if got := take(2); got != "1,3" {
		t.Errorf("two beside it: %s", got)
	}
}

// TestCounted gives out resources of the site's own: of each node no more than it has, also when a planned start is to
// have them.
func TestCounted(t *testing.T) {
	b := newTestbed(t, 2)
	ask := func(n int64, minutes int) cluster.JobID {
		return b.Submit(func(s *cluster.JobSpec) {
			s.PerNode = []cluster.GRES{{Name: "lscratch", Count: n}}
			s.Limit = time.Duration(minutes) * time.Minute
			s.NodeList = []cluster.NodeName{nodeName(0)}
		})
	}
	runs := func(id cluster.JobID) bool {
		b.ScheduleAll()
		j, _ := b.S.Job(id)
		return j.Alloc != nil
	}
	first := ask(6, 60)
	if !runs(first) {
		t.Fatal("a job that asks for 6 of 8 waits")
	}
	blocked := ask(5, 60)
	if runs(blocked) {
		t.Fatal("two jobs have 11 of 8")
	}
	if long := ask(2, 600); !runs(long) {
		t.Error("2 of the 3 that a planned start leaves are not given")
	}
	if longer := ask(2, 600); runs(longer) {
		t.Error("what a planned start needs is given to a job that runs longer")
	}
	b.EndJob(first)
	if !runs(blocked) {
		t.Error("a job waits for what is free")
	}
	if err := b.S.Check(); err != nil {
		t.Error(err)
	}
}
