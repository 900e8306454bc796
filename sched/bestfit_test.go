package sched

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestBestFit: a job takes the node that it leaves least of, one without GPUs the one with the fewest of them; where
// the site has said nothing about order or nodes, or says so in SchedulerParameters. Else it is the first.
func TestBestFit(t *testing.T) {
	for _, c := range []struct {
		name  string
		words func(*cluster.Config)
		fit   bool
	}{
		{"strict_order", func(*cluster.Config) {}, false},
		{"strict_order,best_fit", func(cfg *cluster.Config) { cfg.BestFit = true }, true},
		{"nothing", func(cfg *cluster.Config) { cfg.StrictOrder = false }, true},
		{"disable_best_fit", func(cfg *cluster.Config) { cfg.StrictOrder, cfg.NoBestFit = false, true }, false},
		{"priority/multifactor", func(cfg *cluster.Config) { cfg.StrictOrder = false; multifactor(cfg) }, false},
	} {
		b := newTestbed(t, 3)
		cfg := *b.S.Config()
		c.words(&cfg)
		b.Apply(&cluster.Configure{Config: &cfg})
		on := func(node cluster.NodeName, cpus int, gpus int64) cluster.NodeName {
			id := b.Submit(func(s *cluster.JobSpec) {
				s.CPUsPerTask = cpus
				if node != "" {
					s.NodeList, s.MinNodes = []cluster.NodeName{node}, 1
				}
				if gpus > 0 {
					s.PerNode = []cluster.GRES{{Name: "gpu", Count: gpus}}
				}
			})
			b.ScheduleAll()
			if j, _ := b.S.Job(id); j.Alloc != nil {
				return j.Alloc.Shares[0].Node
			}
			return "none"
		}
		on("n001", 1, 2) // n000 has 4 GPUs free, n001 2, n002 none
		on("n002", 1, 4)
		got := [3]cluster.NodeName{on("", 1, 1), on("", 4, 0), on("", 1, 4)} // with a GPU, without, with all of a node
		want := [3]cluster.NodeName{"n000", "n000", "none"}
		if c.fit {
			want = [3]cluster.NodeName{"n001", "n002", "n000"}
		}
		if got != want {
			t.Errorf("%s: jobs are on %v, want %v", c.name, got, want)
		}
	}
}

// TestNoGPUsNoBestFit: where no node has GPUs, jobs take the nodes that they would in Slurm.
func TestNoGPUsNoBestFit(t *testing.T) {
	b := newTestbed(t, 0)
	b.UseResponsiveOrder()
	inv := node(1)
	inv.GPUs = nil
	for i := range 3 {
		b.Apply(&cluster.NodeUp{Name: nodeName(i), Inventory: inv})
	}
	b.Submit(func(s *cluster.JobSpec) { s.NodeList, s.MinNodes = []cluster.NodeName{nodeName(1)}, 1 })
	b.ScheduleAll()
	id := b.Submit(nil)
	b.ScheduleAll()
	if got := b.Where(id); !strings.HasPrefix(got, "n000:") {
		t.Errorf("it runs on %s, want n000", got)
	}
}

// TestEqualsAreNearby: of nodes that fit equally well a job takes the one that it would take if there were no others:
// of the leaf with the fewest of them.
func TestEqualsAreNearby(t *testing.T) {
	b := newTestbed(t, 6)
	b.UseResponsiveOrder()
	cfg := *b.S.Config()
	cfg.Topology = []cluster.Switch{{Name: "s0", Switches: []string{"s1", "s2"}}}
	for k, nodes := range [][]cluster.NodeName{{"n000", "n001", "n002", "n003"}, {"n004", "n005"}} {
		cfg.Topology = append(cfg.Topology, cluster.Switch{Name: fmt.Sprint("s", k+1), Nodes: nodes})
	}
	b.Apply(&cluster.Configure{Config: &cfg})
	id := b.Submit(func(s *cluster.JobSpec) { s.PerNode = []cluster.GRES{{Name: "gpu", Count: 1}} })
	b.ScheduleAll()
	if got := b.Where(id); !strings.HasPrefix(got, "n004:") {
		t.Errorf("it runs on %s, want n004", got)
	}
}

// TestGradient: where jobs of two GPUs are usual, a job of one leaves two together if it can, though another node
// would be fuller; and a part of a GPU goes to one that others have a part of.
func TestGradient(t *testing.T) {
	for _, c := range []struct {
		gradient bool
		want     [2]cluster.NodeName
	}{{false, [2]cluster.NodeName{"n000", "n002"}}, {true, [2]cluster.NodeName{"n001", "n002"}}} {
		b := newTestbed(t, 3)
		cfg := *b.S.Config()
		cfg.BestFit, cfg.Gradient = true, c.gradient
		b.Apply(&cluster.Configure{Config: &cfg})
		gpus := func(name string, n int64, change func(*cluster.JobSpec)) cluster.JobID {
			id := b.Submit(func(s *cluster.JobSpec) {
				s.PerNode = []cluster.GRES{{Name: name, Count: n}}
				if change != nil {
					change(s)
				}
			})
			b.ScheduleAll()
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
			gpus("gpu", 2, func(s *cluster.JobSpec) { s.Begin = b.Now.Add(time.Hour) })
		}
		got := [2]cluster.NodeName{}
		for k, id := range []cluster.JobID{gpus("gpu", 1, nil), gpus("shard", 2, nil)} {
			if j, _ := b.S.Job(id); j.Alloc != nil {
				got[k] = j.Alloc.Shares[0].Node
			}
		}
		if got != c.want {
			t.Errorf("fgd %t: a GPU and half of one are on %v, want %v", c.gradient, got, c.want)
		}
	}
}
