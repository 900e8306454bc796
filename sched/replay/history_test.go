package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestHistory replays a small accounting store: a job on both nodes, one behind it, one that still runs, one that
// never ran.
func TestHistory(t *testing.T) {
	base := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return base.Add(time.Duration(s) * time.Second) }
	past := func(id cluster.JobID, submit, eligible, start, end int, limit time.Duration, nodes ...cluster.NodeName) *cluster.Job {
		j := &cluster.Job{ID: id,
			Spec:      &cluster.JobSpec{User: "u", Account: "team", Layout: &cluster.Layout{MinNodes: len(nodes)}},
			Phase:     cluster.Ended,
			Submitted: at(submit), Eligible: at(eligible), Started: at(start), Ended: at(end), Limit: limit,
			Alloc: &cluster.Alloc{Partition: "main"}}
		for _, n := range nodes {
			j.Alloc.Shares = append(j.Alloc.Shares, cluster.Share{Node: n, CPUs: cluster.RangeIDSet(0, 3), MemMB: 1000})
		}
		return j
	}
	running, never := past(3, 0, 0, 10, 20, time.Hour, "a"), past(4, 0, 0, 0, 10, time.Hour)
	running.Phase, never.Alloc = cluster.Running, nil
	jobs := []*cluster.Job{
		past(1, 100, 100, 100, 200, time.Hour, "a", "b"),
		past(2, 110, 150, 300, 360, cluster.Unlimited, "a"), running, never,
	}
	var nodes []*cluster.Node
	for _, n := range []cluster.NodeName{"a", "b"} {
		nodes = append(nodes, &cluster.Node{Name: n, Inventory: cluster.Inventory{CPUs: 4, MemMB: 2000}})
	}
	parts := []cluster.Partition{{Name: "main", All: true}}
	tr, err := History(jobs, "", nodes, parts)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(tr.Left) != "[2 that have not run and ended]" || fmt.Sprint(tr.Nodes) != "[{a 4 0 2000   } {b 4 0 2000   }]" {
		t.Errorf("left out %v, nodes %v", tr.Left, tr.Nodes)
	}
	if got := fmt.Sprint(tr.Jobs); got != "[{1 0 100 3600 2 8 0 2000 u team main  1000} {2 50 60 31536000 1 4 0 1000 u team main  1000}]" {
		t.Errorf("jobs %s", got)
	}
	runs, err := tr.Replay(nil, nil)
	if err != nil || len(runs) != 2 || runs[1].Start != 100 {
		t.Errorf("replayed %v %v", runs, err)
	}
	if tr, err = History(jobs, "", nodes, []cluster.Partition{
		{Name: "x", Nodes: []cluster.NodeName{"a"}}, {Name: "main", Nodes: []cluster.NodeName{"b"}},
	}); err != nil || tr.Nodes[0].Partition != "x" || tr.Nodes[1].Partition != "main" {
		t.Errorf("partitions: %v %v", tr, err)
	}
	for want, f := range map[string]func() (*Trace, error){
		"give --nodes FILE":       func() (*Trace, error) { return History(jobs, "", nil, parts) },
		"give an earlier --since": func() (*Trace, error) { return History(nil, "", nodes, parts) },
		"has run and ended":       func() (*Trace, error) { return History(jobs[2:], "", nodes, parts) },
		"fits the 1 nodes":        func() (*Trace, error) { return History(jobs[:1], "", nodes[:1], parts) },
		"no such file":            func() (*Trace, error) { return History(jobs, "nowhere", nodes, parts) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
