package sched

import (
	"testing"

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
