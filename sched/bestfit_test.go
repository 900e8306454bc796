package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
		cfg := *b.s.Config()
		c.words(&cfg)
		b.apply(&cluster.Configure{Config: &cfg})
		on := func(node cluster.NodeName, cpus int, gpus int64) cluster.NodeName {
			id := b.submit(func(s *cluster.JobSpec) {
				s.CPUsPerTask = cpus
				if node != "" {
					s.NodeList, s.MinNodes = []cluster.NodeName{node}, 1
				}
				if gpus > 0 {
					s.PerNode = []cluster.GRES{{Name: "gpu", Count: gpus}}
				}
			})
			b.scheduleAll()
			if j, _ := b.s.Job(id); j.Alloc != nil {
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
	b.useResponsiveOrder()
	inv := node(1)
	inv.GPUs = nil
	for i := range 3 {
		b.apply(&cluster.NodeUp{Name: nodeName(i), Inventory: inv})
	}
	b.submit(func(s *cluster.JobSpec) { s.NodeList, s.MinNodes = []cluster.NodeName{nodeName(1)}, 1 })
	b.scheduleAll()
	id := b.submit(nil)
	b.scheduleAll()
	if got := b.where(id); !strings.HasPrefix(got, "n000:") {
		t.Errorf("it runs on %s, want n000", got)
	}
}

// TestEqualsAreNearby: of nodes that fit equally well a job takes the one that it would take if there were no others:
// of the leaf with the fewest of them.
func TestEqualsAreNearby(t *testing.T) {
	b := newTestbed(t, 6)
	b.useResponsiveOrder()
	cfg := *b.s.Config()
	cfg.Topology = []cluster.Switch{{Name: "s0", Switches: []string{"s1", "s2"}}}
	for k, nodes := range [][]cluster.NodeName{{"n000", "n001", "n002", "n003"}, {"n004", "n005"}} {
		cfg.Topology = append(cfg.Topology, cluster.Switch{Name: fmt.Sprint("s", k+1), Nodes: nodes})
	}
	b.apply(&cluster.Configure{Config: &cfg})
	id := b.submit(func(s *cluster.JobSpec) { s.PerNode = []cluster.GRES{{Name: "gpu", Count: 1}} })
	b.scheduleAll()
	if got := b.where(id); !strings.HasPrefix(got, "n004:") {
		t.Errorf("it runs on %s, want n004", got)
	}
}

// TestBestRatedByClass: classes of nodes lead to the same candidates as the nodes one by one, as jobs come and go.
func TestBestRatedByClass(t *testing.T) {
	rng, met := rand.New(rand.NewPCG(5, 6)), 0
	for range 30 {
		b := newTestbed(t, 40)
		b.useResponsiveOrder()
		fs := newFreeSet(b.s.Snapshot())
		var views []*nodeFit
		for k := range 6 {
			s := &cluster.JobSpec{Layout: &cluster.Layout{Tasks: 1, CPUsPerTask: 1 + rng.IntN(4)}}
			if k%2 == 0 {
				s.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(1 + rng.IntN(3))}}
			}
			d := newDemand(b.s.Snapshot(), b.s.Snapshot().DefaultPartition(), s, nil)
			views = append(views, newClassFit(d, fs).newNodeFit(fs, nil, 0))
		}
		for range 60 {
			nf := views[rng.IntN(len(views))]
			nf.catchUp()
			c := &choice{nodeFit: nf, candidates: nf.withRoom, minNodes: 1, maxNodes: 1}
			got, want := c.bestRated(), c.bestRatedByNode(nf.withRoom)
			if !slices.Equal(got, want) {
				t.Fatalf("by kind %v, node by node %v", got, want)
			}
			met += b2i(len(want) > 1)
			if len(want) > 0 {
				fs.takeAlloc(nf.allotTo(want[:1]))
			}
		}
	}
	if met < 100 {
		t.Errorf("only %d times there were several", met)
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
		cfg := *b.s.Config()
		cfg.BestFit, cfg.Gradient = true, c.gradient
		b.apply(&cluster.Configure{Config: &cfg})
		gpus := func(name string, n int64, change func(*cluster.JobSpec)) cluster.JobID {
			id := b.submit(func(s *cluster.JobSpec) {
				s.PerNode = []cluster.GRES{{Name: name, Count: n}}
				if change != nil {
					change(s)
				}
			})
			b.scheduleAll()
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

// TestClassesTellGPUPartsApart: how much is left of shared GPUs is part of what a node is, so that shapes with parts
// are answered by classes of nodes.
func TestClassesTellGPUPartsApart(t *testing.T) {
	b := newTestbed(t, 4)
	for k, shards := range []int64{3, 3, 1} {
		b.submit(func(s *cluster.JobSpec) {
			s.PerNode = []cluster.GRES{{Name: "shard", Count: shards}}
			s.NodeList, s.MinNodes = []cluster.NodeName{nodeName(k)}, 1
		})
	}
	b.scheduleAll()
	fs := newFreeSet(b.s.Snapshot())
	of := func(i int) int32 { return fs.classOf(&fs.nodes[i]) }
	if of(0) != of(1) || of(0) == of(2) || of(2) == of(3) {
		t.Errorf("nodes with 3, 3, 1 and no shards given out are of kinds %d, %d, %d, %d", of(0), of(1), of(2), of(3))
	}
	s := &cluster.JobSpec{Layout: &cluster.Layout{PerNode: []cluster.GRES{{Name: "shard", Count: 2}}}}
	if cf := newClassFit(newDemand(b.s.Snapshot(), b.s.Snapshot().DefaultPartition(), s, nil), fs); !cf.byNumbers {
		t.Error("numbers do not tell where a part of a GPU fits")
	}
}

// TestFragmentationSteps: what is spoiled counts in steps, alike above and below nothing.
func TestFragmentationSteps(t *testing.T) {
	for spoilt, want := range map[int64]int64{0: 0, 190: 0, 200: 1, 590: 1, 600: 2, -190: 0, -200: -1, -600: -2} {
		if got := toGrains(spoilt, 10); got != want {
			t.Errorf("%d thousandths over ten jobs are %d grains, want %d", spoilt, got, want)
		}
	}
	if got := toGrains(100, 0); got != 2+1 {
		t.Errorf("without jobs %d", got)
	}
}
