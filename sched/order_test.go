package sched

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// multifactor is a cluster whose queue is in the order of many factors.
func multifactor(cfg *cluster.Config) {
	cfg.Priority = cluster.PriorityConfig{Multifactor: true, MaxAge: time.Hour, CalcPeriod: 5 * time.Minute,
		Weights: cluster.PriorityWeights{
			Age: 1000, Size: 1000, Partition: 1000, TRES: []cluster.Amount{{TRES: "gres/gpu", N: 3000}},
		}}
}

// TestOrder: jobs start in the order of tier and priority.
func TestOrder(t *testing.T) {
	b := newTestbed(t, 1, cluster.Partition{Name: "vip", All: true, State: cluster.PartitionUp, PriorityTier: 5})
	cfg := *b.S.Config()
	multifactor(&cfg)
	b.Apply(&cluster.Configure{Config: &cfg})
	whole := func(change func(*cluster.JobSpec)) cluster.JobID {
		return b.Submit(func(s *cluster.JobSpec) { s.CPUsPerTask = 16; change(s) })
	}
	plain := whole(func(*cluster.JobSpec) {})
	gpus := whole(func(s *cluster.JobSpec) { s.PerNode = []cluster.GRES{{Name: "gpu", Count: 4}} })
	vip := whole(func(s *cluster.JobSpec) { s.Partitions = []string{"vip"} })
	for i, id := range []cluster.JobID{vip, gpus, plain} {
		b.ScheduleAll()
		if j, _ := b.S.Job(id); j.Phase != cluster.Starting {
			t.Fatalf("start %d is not that of job %d, which %s", i, id, b.Where(id))
		}
		j, _ := b.S.Job(id)
		b.Apply(&cluster.Report{
			Node: nodeName(0), Seq: uint64(2*i + 1),
			Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: id, Attempt: j.Attempt, At: b.Now}},
		})
		b.EndJob(id)
	}
}

// TestShortestFirst: with the word a short job goes before a wider one that has waited longer.
func TestShortestFirst(t *testing.T) {
	for _, shortest := range []bool{false, true} {
		b := newTestbed(t, 1)
		b.UseResponsiveOrder()
		cfg := *b.S.Config()
		cfg.ShortestFirst = shortest
		b.Apply(&cluster.Configure{Config: &cfg})
		wide := b.Submit(func(s *cluster.JobSpec) { s.CPUsPerTask, s.Limit = 16, 2*time.Hour })
		b.Now = b.Now.Add(time.Hour)
		short := b.Submit(func(s *cluster.JobSpec) { s.CPUsPerTask, s.Limit = 1, time.Hour })
		b.ScheduleAll()
		for id, starts := range map[cluster.JobID]bool{wide: !shortest, short: shortest} {
			if j, _ := b.S.Job(id); (j.Alloc != nil) != starts {
				t.Errorf("shortest_first %t: job %d %s", shortest, id, b.Where(id))
			}
		}
	}
}

// BenchmarkDecay measures one Decay over 100,000 pending jobs, of which every one's priority changes: 0.5 s beside
// other work.
func BenchmarkDecay(b *testing.B) {
	bed := mixedQueue(b, 100_000)
	cfg := *bed.S.Config()
	multifactor(&cfg)
	bed.Apply(&cluster.Configure{Config: &cfg})
	for b.Loop() {
		bed.Now = bed.Now.Add(5 * time.Minute)
		bed.Apply(&cluster.Decay{})
	}
}

// TestDrainTimeIsBounded: a queue of enormous arrays does not make a job's patience overflow.
func TestDrainTimeIsBounded(t *testing.T) {
	j := &cluster.Job{Limit: cluster.Unlimited, Tasks: cluster.RangeIDSet(0, 999_999)}
	sum := time.Duration(0)
	for range maxLooked {
		sum = min(sum+drainTime(j, 1), longestQueue)
	}
	if sum != longestQueue || minProtectWait+longLimit+queueFactor*sum <= sum {
		t.Errorf("the queue takes %v", sum)
	}
	if d := drainTime(&cluster.Job{Limit: time.Hour}, 0.5); d != 30*time.Minute {
		t.Errorf("half of the cluster for an hour: %v", d)
	}
}

// TestProtectedHalf: nodes are kept free for no other job while those for which they were hold half of the cluster.
func TestProtectedHalf(t *testing.T) {
	b := newTestbed(t, 4)
	b.UseResponsiveOrder()
	wide := func(nodes int, limit time.Duration) cluster.JobID {
		return b.Submit(func(s *cluster.JobSpec) {
			s.MinNodes, s.MaxNodes, s.Tasks, s.CPUsPerTask, s.Limit = nodes, nodes, nodes, 16, limit
		})
	}
	all := wide(4, time.Hour)
	b.ScheduleAll()
	half := wide(2, 10*time.Hour)
	whole := wide(4, 10*time.Hour)
	b.Now = b.Now.Add(100 * time.Hour)
	b.EndJob(all)
	passes := wide(1, 20*time.Hour)
	b.ScheduleAll()
	if j, _ := b.S.Job(half); j.Alloc == nil || !j.Alloc.Protected {
		t.Fatalf("the job of half of the nodes %s", b.Where(half))
	}
	if j, _ := b.S.Job(passes); j.Alloc == nil || j.Alloc.Protected {
		t.Errorf("a job that delays the one of all nodes %s, though nodes are kept free for none", b.Where(passes))
	}
	b.EndJob(half)
	late := wide(1, 40*time.Hour)
	b.ScheduleAll()
	if j, _ := b.S.Job(late); j.Alloc != nil {
		t.Errorf("a job that delays the one of all nodes %s, though nodes are kept free for that one", b.Where(late))
	}
	b.EndJob(passes)
	b.ScheduleAll()
	if j, _ := b.S.Job(whole); j.Alloc == nil || !j.Alloc.Protected {
		t.Errorf("the job of all nodes %s", b.Where(whole))
	}
}
