package api

import (
	"fmt"
	"reflect"
	"testing"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// TestGather: a job of many nodes is in an answer once, in few words, and comes out as it was.
func TestGather(t *testing.T) {
	const nodes = 200
	gang := &cluster.Job{ID: 7, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}, Alloc: &cluster.Alloc{}}
	answer := func() (w Work) {
		for i := range nodes {
			own := &cluster.Job{ID: cluster.JobID(100 + i), Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}
			w.Nodes = append(w.Nodes, NodeWork{Node: gang.Alloc.Shares[i].Node, Jobs: []*cluster.Job{own, gang}})
		}
		return w
	}
	for i := range nodes {
		n := cluster.NodeName(fmt.Sprintf("rack%d-%05d", i%7/4, i))
		sh := cluster.Share{
			Node: n, CPUs: cluster.RangeIDSet(0, 15), GPUs: cluster.NewIDSet(i / 100), MemMB: 5, Tasks: 1,
		}
		if i%50 == 49 {
			sh.Part = &cluster.GPUPart{GPU: 3}
		}
		gang.Alloc.Shares, gang.Waiting = append(gang.Alloc.Shares, sh), append(gang.Waiting, n)
	}
	w := answer()
	w.Gather()
	if len(w.Jobs) != 1 || w.Jobs[0].Job.ID != gang.ID || len(gang.Alloc.Shares) != nodes || len(w.Nodes[3].Jobs) != 1 || !reflect.DeepEqual(w.Nodes[3].Gathered, []cluster.JobID{7}) {
		t.Fatalf("%d jobs are gathered; of a node %d are its own, and %v", len(w.Jobs),
			len(w.Nodes[3].Jobs), w.Nodes[3].Gathered)
	}
	text, err := wire.Append(nil, &w)
	if err != nil || len(text) > 1000*nodes {
		t.Fatalf("the answer has %d bytes: %v", len(text), err)
	}
	var back Work
	if err := wire.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if err := back.Spread(); err != nil {
		t.Fatal(err)
	}
	want, err := wire.Append(nil, answer())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := wire.Append(nil, &back); err != nil || string(got) != string(want) {
		t.Errorf("it comes out as something else: %v, %d bytes, want %d", err, len(got), len(want))
	}
	for _, bad := range []Work{
		{Nodes: []NodeWork{{Node: "n", Gathered: []cluster.JobID{8}}}},
		{Jobs: []GatheredJob{{}}},
		{Jobs: []GatheredJob{{Job: gang, Runs: []ShareRun{{Nodes: "n[1-"}}}}},
	} {
		if bad.Spread() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
