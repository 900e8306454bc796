// Package schedtest is what tests of the scheduler share: clusters to schedule on, and jobs for them.
package schedtest

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

// Epoch is when a testbed begins.
var Epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// Testbed is a cluster to schedule on.
type Testbed struct {
	T   testing.TB
	S   *cluster.State
	Now time.Time
	N   uint64 // entries of the log

	Schedule func(*cluster.Snapshot, time.Time) []cluster.Decision // the scheduler, for ScheduleAll
}

// New has so many nodes, and the configuration's partitions and some more.
func New(t testing.TB, nodes int, parts ...cluster.Partition) *Testbed {
	b := Empty(t)
	cfg := StrictOrder()
	cfg.Partitions = append(cfg.Partitions, parts...)
	cfg.GRES = []cluster.GRESLine{{Name: "shard", Count: 16}, {Name: "mps", Count: 400}, {Name: "lscratch", Count: 8}}
	b.Apply(&cluster.Configure{Config: &cfg})
	for i := range nodes {
		b.Apply(&cluster.NodeUp{Name: NodeName(i), Inventory: Node(1)})
	}
	return b
}

// Empty has no nodes and no configuration, and the newest level.
func Empty(t testing.TB) *Testbed {
	b := &Testbed{T: t, S: cluster.NewState(), Now: Epoch}
	b.Apply(&cluster.RaiseLevel{Level: cluster.Newest})
	return b
}

// NodeName is n000 and so on.
func NodeName(i int) cluster.NodeName { return cluster.NodeName(fmt.Sprintf("n%03d", i)) }

// Node has 2 sockets of 8 cores, 64 GB, 2 A100 on socket 0 and 2 H100 on socket 1, each with 4 shards by New, and
// 8 of lscratch.
func Node(threads int) cluster.Inventory {
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

// Apply carries out a command, which must not be refused.
func (b *Testbed) Apply(c cluster.Command) any {
	b.T.Helper()
	b.N++
	out := b.S.Apply(cluster.Entry{Index: b.N, At: b.Now, By: cluster.Identity{System: true}, Cmd: c})
	if out.Err != nil {
		b.T.Fatal(out.Err)
	}
	return out.Result
}

// Submit submits a job of one CPU and one hour that is changed.
func (b *Testbed) Submit(change func(*cluster.JobSpec)) cluster.JobID {
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "j", UID: 1, User: "u", Limit: time.Hour}
	if change != nil {
		change(spec)
	}
	return b.Apply(&cluster.Submit{Spec: spec}).(cluster.JobID)
}

// Where tells a job's shares as node:tasks:cpus:gpus:mem, or why it waits.
func (b *Testbed) Where(id cluster.JobID) string {
	j, ok := b.S.Job(id)
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

// EndJob finishes a job everywhere.
func (b *Testbed) EndJob(id cluster.JobID) {
	j, _ := b.S.Job(id)
	for i, n := range j.AllNodes() {
		nd, ok := b.S.Node(n)
		if !ok {
			continue // it was given back, and is deleted
		}
		us := []cluster.Update{
			{Kind: cluster.BatchOver, Job: id, Attempt: j.Attempt, At: b.Now},
			{Kind: cluster.NodeDone, Job: id, Attempt: j.Attempt},
		}
		if i > 0 {
			us = us[1:]
		}
		b.Apply(&cluster.Report{Node: n, Seq: nd.ReportSeq + 1, Updates: us})
	}
}

// StrictOrder is the configuration in which jobs are tried in the order of the queue.
func StrictOrder() cluster.Config {
	cfg := cluster.DefaultConfig()
	cfg.StrictOrder = true
	return cfg
}

// UseResponsiveOrder has jobs tried in the responsive order from now on.
func (b *Testbed) UseResponsiveOrder() {
	cfg := *b.S.Snapshot().Config()
	cfg.StrictOrder = false
	b.Apply(&cluster.Configure{Config: &cfg})
}

// ScheduleAll schedules until nothing more starts; every decision must be taken.
func (b *Testbed) ScheduleAll() {
	b.T.Helper()
	for range 20 {
		ds := b.Schedule(b.S.Snapshot(), b.Now)
		if len(ds) == 0 {
			break
		}
		for i, e := range b.Apply(&cluster.Decide{Decisions: ds}).([]*cluster.Error) {
			if e != nil {
				b.T.Fatalf("decision %+v was refused: %v", ds[i], e)
			}
		}
		if err := b.S.Check(); err != nil {
			b.T.Fatal(err)
		}
	}
	if ds := b.Schedule(b.S.Snapshot(), b.Now); len(ds) != 0 {
		b.T.Fatalf("the scheduler does not come to rest: %+v", ds)
	}
}
