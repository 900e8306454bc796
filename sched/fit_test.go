package sched

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestBestFit: a job takes the node that it leaves least of, one without GPUs the one with the fewest of them; without the word
// in SchedulerParameters it is the first.
func TestBestFit(t *testing.T) {
	for _, fit := range []bool{false, true} {
		b := newBed(t, 3)
		cfg := *b.s.Config()
		cfg.BestFit = fit
		b.do(&cluster.Configure{Config: &cfg})
		on := func(node cluster.NodeName, cpus int, gpus int64) cluster.JobID {
			id := b.submit(func(s *cluster.JobSpec) {
				s.CPUsPerTask = cpus
				if node != "" {
					s.NodeList, s.MinNodes = []cluster.NodeName{node}, 1
				}
				if gpus > 0 {
					s.PerNode = []cluster.GRES{{Name: "gpu", Count: gpus}}
				}
			})
			b.cycle()
			return id
		}
		where := func(id cluster.JobID) cluster.NodeName {
			j, _ := b.s.Job(id)
			if j.Alloc == nil {
				return "none"
			}
			return j.Alloc.Shares[0].Node
		}
		on("n001", 1, 2) // n000 has 4 GPUs free, n001 2, n002 none
		on("n002", 1, 4)
		want := map[bool][2]cluster.NodeName{false: {"n000", "n000"}, true: {"n001", "n002"}}[fit]
		if got := [2]cluster.NodeName{where(on("", 1, 1)), where(on("", 4, 0))}; got != want {
			t.Errorf("best fit %t: with a GPU and without on %v, want %v", fit, got, want)
		}
		if got := where(on("", 1, 4)); got != map[bool]cluster.NodeName{false: "none", true: "n000"}[fit] {
			t.Errorf("best fit %t: all GPUs of a node on %s", fit, got)
		}
	}
}

// TestGradient: where jobs of two GPUs are usual, a job of one leaves two together if it can, though another node would be
// fuller; and a part of a GPU goes to one that others have a part of.
func TestGradient(t *testing.T) {
	for _, c := range []struct {
		gradient bool
		want     [2]cluster.NodeName
	}{{false, [2]cluster.NodeName{"n000", "n002"}}, {true, [2]cluster.NodeName{"n001", "n002"}}} {
		b := newBed(t, 3)
		cfg := *b.s.Config()
		cfg.BestFit, cfg.Gradient = true, c.gradient
		b.do(&cluster.Configure{Config: &cfg})
		gpus := func(name string, n int64, change func(*cluster.JobSpec)) cluster.JobID {
			id := b.submit(func(s *cluster.JobSpec) {
				s.PerNode = []cluster.GRES{{Name: name, Count: n}}
				if change != nil {
					change(s)
				}
			})
			b.cycle()
			return id
		}
		on := func(node cluster.NodeName) func(*cluster.JobSpec) {
			return func(s *cluster.JobSpec) { s.NodeList, s.MinNodes = []cluster.NodeName{node}, 1 }
		}
		gpus("gpu", 2, on("n000")) // two are left
		gpus("gpu", 1, on("n001")) // three
		gpus("gpu", 3, on("n002"))
		gpus("shard", 1, on("n002")) // three quarters of one
		for range 6 {
			gpus("gpu", 2, func(s *cluster.JobSpec) { s.Begin = b.now.Add(time.Hour) })
		}
		got := [2]cluster.NodeName{}
		for k, id := range []cluster.JobID{gpus("gpu", 1, nil), gpus("shard", 2, nil)} {
			if j, _ := b.s.Job(id); j.Alloc != nil {
				got[k] = j.Alloc.Shares[0].Node
			}
		}
		if got != c.want {
			t.Errorf("fgd %t: a GPU and half of one are on %v, want %v", c.gradient, got, c.want)
		}
	}
}

// TestKindsTellPartsApart: how much is left of shared GPUs is part of what a node is, so that questions about parts are
// answered by kinds of nodes.
func TestKindsTellPartsApart(t *testing.T) {
	b := newBed(t, 4)
	for k, shards := range []int64{3, 3, 1} {
		b.submit(func(s *cluster.JobSpec) {
			s.PerNode = []cluster.GRES{{Name: "shard", Count: shards}}
			s.NodeList, s.MinNodes = []cluster.NodeName{nodeName(k)}, 1
		})
	}
	b.cycle()
	p := newPool(b.s.Snapshot())
	of := func(i int) int32 { return p.kindOf(&p.spaces[i]) }
	if of(0) != of(1) || of(0) == of(2) || of(2) == of(3) {
		t.Errorf("nodes with 3, 3, 1 and no shards given out are of kinds %d, %d, %d, %d", of(0), of(1), of(2), of(3))
	}
	s := &cluster.JobSpec{Layout: &cluster.Layout{PerNode: []cluster.GRES{{Name: "shard", Count: 2}}}}
	if g := newGauge(newDemand(b.s.Snapshot(), b.s.Snapshot().DefaultPartition(), s, nil), p); !g.numbers {
		t.Error("numbers do not tell where a part of a GPU fits")
	}
}
