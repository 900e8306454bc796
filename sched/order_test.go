package sched

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// multifactor is a cluster whose queue is in the order of many factors.
func multifactor(cfg *cluster.Config) {
	cfg.Priority = cluster.PriorityConfig{Multifactor: true, MaxAge: time.Hour, CalcPeriod: 5 * time.Minute,
		Weights: cluster.PriorityWeights{Age: 1000, Size: 1000, Partition: 1000, TRES: []cluster.Amount{{TRES: "gres/gpu", N: 3000}}}}
}

// TestOrder: jobs start in the order of tier and priority.
func TestOrder(t *testing.T) {
	b := newBed(t, 1, cluster.Partition{Name: "vip", All: true, State: cluster.PartitionUp, PriorityTier: 5})
	cfg := *b.s.Config()
	multifactor(&cfg)
	b.do(&cluster.Configure{Config: &cfg})
	whole := func(change func(*cluster.JobSpec)) cluster.JobID {
		return b.submit(func(s *cluster.JobSpec) { s.CPUsPerTask = 16; change(s) })
	}
	plain := whole(func(*cluster.JobSpec) {})
	gpus := whole(func(s *cluster.JobSpec) { s.PerNode = []cluster.GRES{{Name: "gpu", Count: 4}} })
	vip := whole(func(s *cluster.JobSpec) { s.Partitions = []string{"vip"} })
	for i, id := range []cluster.JobID{vip, gpus, plain} {
		b.cycle()
		if j, _ := b.s.Job(id); j.Phase != cluster.Starting {
			t.Fatalf("start %d is not that of job %d, which %s", i, id, b.where(id))
		}
		j, _ := b.s.Job(id)
		b.do(&cluster.Report{Node: nodeName(0), Seq: uint64(2*i + 1), Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: id, Attempt: j.Attempt, At: b.now}}})
		b.end(id)
	}
}

// ageBar holds the aim for the clock of priorities: 100,000 pending jobs are ranked anew within it, measured 0.5 s beside other work.
const ageBar = time.Second

// TestDecayIsQuick measures one Decay over a large queue, of which every job's priority changes.
func TestDecayIsQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	b := crowd(t, 100_000)
	cfg := *b.s.Config()
	multifactor(&cfg)
	b.do(&cluster.Configure{Config: &cfg})
	best := time.Hour
	for tries := 0; tries < 10 && best > ageBar; tries++ {
		b.now = b.now.Add(5 * time.Minute)
		began := time.Now()
		b.do(&cluster.Decay{})
		best = min(best, time.Since(began))
	}
	t.Logf("decay: %s", best)
	if best > ageBar {
		t.Errorf("a decay over 100,000 pending jobs takes %s", best)
	}
}
