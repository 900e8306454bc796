package place

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dev.muster/cluster"
	"dev.muster/sched/schedtest"
)

// TestBestRatedByClass: classes of nodes lead to the same candidates as the nodes one by one, as jobs come and go.
func TestBestRatedByClass(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	met := 0
	for range 30 {
		b := schedtest.New(t, 40)
		b.UseResponsiveOrder()
		fs := NewFreeSet(b.S.Snapshot())
		var views []*nodeFit
		for k := range 6 {
			s := &cluster.JobSpec{Layout: &cluster.Layout{Tasks: 1, CPUsPerTask: 1 + rng.IntN(4)}}
			if k%2 == 0 {
				s.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(1 + rng.IntN(3))}}
			}
			d := NewDemand(b.S.Snapshot(), b.S.Snapshot().DefaultPartition(), s, nil)
			views = append(views, newClassFit(d, fs).newNodeFit(fs, nil, 0))
		}
		for range 60 {
			nf := views[rng.IntN(len(views))]
			nf.catchUp()
			c := &choice{nodeFit: nf, candidates: nf.withRoom, minNodes: 1, maxNodes: 1}
			got := c.bestRated()
			want := c.bestRatedByNode(nf.withRoom)
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

// TestClassesTellGPUPartsApart: how much is left of shared GPUs is part of what a node is, so that shapes with parts
// are answered by classes of nodes.
func TestClassesTellGPUPartsApart(t *testing.T) {
	b := schedtest.New(t, 4)
	for k, shards := range []int64{3, 3, 1} {
		b.Submit(func(s *cluster.JobSpec) {
			s.PerNode = []cluster.GRES{{Name: "shard", Count: shards}}
			s.NodeList = []cluster.NodeName{schedtest.NodeName(k)}
			s.MinNodes = 1
		})
	}
	placeAll(b)
	fs := NewFreeSet(b.S.Snapshot())
	of := func(i int) int32 { return fs.classOf(&fs.nodes[i]) }
	if of(0) != of(1) || of(0) == of(2) || of(2) == of(3) {
		t.Errorf("nodes with 3, 3, 1 and no shards given out are of kinds %d, %d, %d, %d", of(0), of(1), of(2), of(3))
	}
	s := &cluster.JobSpec{Layout: &cluster.Layout{PerNode: []cluster.GRES{{Name: "shard", Count: 2}}}}
	if cf := newClassFit(NewDemand(b.S.Snapshot(), b.S.Snapshot().DefaultPartition(), s, nil), fs); !cf.byNumbers {
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

// TestFreeInUnits: CPUs of cores that are free as a whole. The rest of two cores is none.
func TestFreeInUnits(t *testing.T) {
	inv := &cluster.Inventory{CPUs: 32, Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 2}
	for text, want := range map[string]int{
		"": 0, "0-31": 32, "0-1": 2, "1-2": 0, "0,3": 0, "2,9": 0, "0-2,9-15,28-31": 12, "0,2,4": 0, "31": 0,
	} {
		cpus, err := cluster.ParseIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := freeInUnits(inv, cpus, 2); got != want || got != wholeUnits(inv, cpus, 2).Len() {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
