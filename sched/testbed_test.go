package sched

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// testbed is a cluster to schedule on.
type testbed struct {
	t   testing.TB
	s   *cluster.State
	now time.Time
	n   uint64
}

func newTestbed(t testing.TB, nodes int, parts ...cluster.Partition) *testbed {
	b := &testbed{t: t, s: cluster.NewState(), now: epoch}
	cfg := strictOrderConfig()
	cfg.Partitions = append(cfg.Partitions, parts...)
	cfg.GRES = []cluster.GRESLine{{Name: "shard", Count: 16}, {Name: "mps", Count: 400}}
	b.apply(&cluster.Configure{Config: &cfg})
	for i := range nodes {
		b.apply(&cluster.NodeUp{Name: nodeName(i), Inventory: node(1)})
	}
	return b
}

func nodeName(i int) cluster.NodeName { return cluster.NodeName(fmt.Sprintf("n%03d", i)) }

// node has 2 sockets of 8 cores, 64 GB, 2 A100 on socket 0 and 2 H100 on socket 1, each with 4 shards by newBed.
func node(threads int) cluster.Inventory {
	inv := cluster.Inventory{Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: threads, CPUs: 16 * threads, MemMB: 64000}
	for i := range 4 {
		g := cluster.GPU{Index: i, Type: "a100", Cores: cluster.RangeIDSet(0, 8*threads-1)}
		if i > 1 {
			g.Type, g.Cores = "h100", cluster.RangeIDSet(8*threads, 16*threads-1)
		}
		inv.GPUs = append(inv.GPUs, g)
	}
	return inv
}

func (b *testbed) apply(c cluster.Command) any {
	b.t.Helper()
	b.n++
	out := b.s.Apply(cluster.Entry{Index: b.n, At: b.now, By: cluster.Identity{System: true}, Cmd: c})
	if out.Err != nil {
		b.t.Fatal(out.Err)
	}
	return out.Result
}

func (b *testbed) submit(change func(*cluster.JobSpec)) cluster.JobID {
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "j", UID: 1, User: "u", Limit: time.Hour}
	if change != nil {
		change(spec)
	}
	return b.apply(&cluster.Submit{Spec: spec}).(cluster.JobID)
}

// scheduleAll schedules until nothing more starts; every decision must be taken.
func (b *testbed) scheduleAll() {
	b.t.Helper()
	for range 20 {
		ds := Schedule(b.s.Snapshot(), b.now)
		if len(ds) == 0 {
			break
		}
		for i, e := range b.apply(&cluster.Decide{Decisions: ds}).([]*cluster.Error) {
			if e != nil {
				b.t.Fatalf("decision %+v was refused: %v", ds[i], e)
			}
		}
		if err := b.s.Check(); err != nil {
			b.t.Fatal(err)
		}
	}
	if ds := Schedule(b.s.Snapshot(), b.now); len(ds) != 0 {
		b.t.Fatalf("the scheduler does not come to rest: %+v", ds)
	}
}

// where tells a job's shares as node:tasks:cpus:gpus:mem, or why it waits.
func (b *testbed) where(id cluster.JobID) string {
	j, ok := b.s.Job(id)
	if !ok {
		return "gone"
	}
	if j.Alloc == nil {
		return "waits " + string(j.Wait)
	}
	out := ""
	for i, sh := range j.Alloc.Shares {
		if i > 0 {
			out += " "
		}
		out += fmt.Sprintf("%s:%d:%s:%s:%d", sh.Node, sh.Tasks, sh.CPUs, sh.GPUs, sh.MemMB)
	}
	return out
}

// endJob finishes a job everywhere.
func (b *testbed) endJob(id cluster.JobID) {
	j, _ := b.s.Job(id)
	for i, n := range j.AllNodes() {
		nd, ok := b.s.Node(n)
		if !ok {
			continue // it was given back, and is deleted
		}
		us := []cluster.Update{
			{Kind: cluster.BatchOver, Job: id, Attempt: j.Attempt, At: b.now},
			{Kind: cluster.NodeDone, Job: id, Attempt: j.Attempt},
		}
		if i > 0 {
			us = us[1:]
		}
		b.apply(&cluster.Report{Node: n, Seq: nd.ReportSeq + 1, Updates: us})
	}
}

// strictOrderConfig is the configuration in which jobs are tried in the order of the queue.
func strictOrderConfig() cluster.Config {
	cfg := cluster.DefaultConfig()
	cfg.StrictOrder = true
	return cfg
}

// useResponsiveOrder has jobs tried in the responsive order from now on.
func (b *testbed) useResponsiveOrder() {
	cfg := *b.s.Snapshot().Config()
	cfg.StrictOrder = false
	b.apply(&cluster.Configure{Config: &cfg})
}
