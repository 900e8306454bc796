package sched

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// TestNodeCacheFollowsHistories has a node cache follow histories in which nodes come, go, fall silent and change,
// and jobs start and end on them: what it says is always what one says that has just been made, and a scheduler that
// goes on decides what a full pass would.
func TestNodeCacheFollowsHistories(t *testing.T) {
	seed, kept, anew := rand.Uint64(), 0, 0
	for k := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d round %d", seed, k), func(t *testing.T) {
			h := newHistory(t, rand.New(rand.NewPCG(seed, k)))
			free, all := place.NodeCache{}, place.NodeCache{Unloaded: true}
			for range 60 {
				h.step()
				h.changeNode()
				if h.r.IntN(3) == 0 {
					continue // a node cache may follow several changes at once
				}
				snap := h.S.Snapshot()
				snap.Now = h.Now
				rank := ranksOf(&free)
				if got, want := free.FreeSet(snap), place.NewFreeSet(snap); !reflect.DeepEqual(got, want) {
					t.Fatalf("the node cache that followed makes\n%+v\na new one\n%+v", got, want)
				}
				if ranksOf(&free) == rank {
					kept++
				} else {
					anew++
				}
				if got, want := all.FreeSet(snap), place.NewUnloadedSet(snap); !reflect.DeepEqual(got, want) {
					t.Fatalf("the node cache of all nodes that followed makes\n%+v\na new one\n%+v", got, want)
				}
				h.decide()
			}
		})
		if t.Failed() {
			return
		}
	}
	if kept < 1000 || anew < 300 {
		t.Errorf("%d node caches went on and %d were made anew: the histories say little", kept, anew)
	}
}

// ranksOf tells one table of ranks from another.
func ranksOf(nc *place.NodeCache) uintptr {
	return reflect.ValueOf(nc).Elem().FieldByName("rankOf").Pointer()
}

// changeNode has something happen to a node, perhaps.
func (h *history) changeNode() {
	r := h.r
	try := func(c cluster.Command) { // it may be refused
		h.N++
		if out := h.S.Apply(cluster.Entry{
			Index: h.N, At: h.Now, By: cluster.Identity{System: true}, Cmd: c,
		}); out.Panic != "" {
			h.T.Fatal(out.Panic)
		}
	}
	name := nodeName(r.IntN(h.S.Snapshot().NodeCount()))
	switch r.IntN(8) {
	case 0, 1:
		try(&cluster.NodeQuiet{Nodes: []cluster.NodeName{name}, Quiet: r.IntN(2) == 0})
	case 2: // of another make, or with faults
		inv := node(1 + r.IntN(2))
		if inv.MemMB += cluster.MemMB(r.IntN(3)); r.IntN(3) == 0 {
			inv.Faults = []cluster.Fault{{Part: "gpu", Cause: "ecc", Text: "x", Action: cluster.FaultShun}}
		}
		if r.IntN(4) == 0 {
			inv.GPUs[r.IntN(4)].Missing = true
		}
		if r.IntN(4) == 0 {
			name = cluster.NodeName(fmt.Sprintf("n%03d-%d", r.IntN(3), r.IntN(3))) // between others
		}
		try(&cluster.NodeUp{Name: name, Inventory: inv})
	case 3:
		try(&cluster.NodeDown{Nodes: []cluster.NodeName{name}, Why: "x"})
		if r.IntN(2) == 0 {
			try(&cluster.NodeDelete{Nodes: []cluster.NodeName{name}})
			try(&cluster.NodeUp{Name: nodeName(r.IntN(12)), Inventory: node(1)})
		}
	case 4:
		h.Now = h.Now.Add(time.Duration(r.IntN(12)) * time.Hour) // trouble fades
	}
}

// TestLostNodeIsTold: that a node which had fallen silent is lost changes the parts of the cluster
// that jobs ask for, and so how long they wait before nodes are kept free; who follows what changes
// is told of it.
func TestLostNodeIsTold(t *testing.T) {
	b := newTestbed(t, 3)
	b.Apply(&cluster.NodeQuiet{Nodes: []cluster.NodeName{"n001"}, Quiet: true})
	before := b.S.Snapshot()
	b.Apply(&cluster.NodeDown{Nodes: []cluster.NodeName{"n001"}, Why: "silent"})
	touched, ok := b.S.Snapshot().Since(before.Moment())
	told := slices.ContainsFunc(touched, func(c cluster.StateChange) bool { return c.Node == "n001" })
	if !ok || !told {
		t.Errorf("what has changed is %+v (%t), want node n001", touched, ok)
	}
}
