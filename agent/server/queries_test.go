package server

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
	"github.com/hashicorp/raft"
)

// TestJobPages: the first page of an answer and the ranges that it names of the rest have every job once, whatever
// is asked.
func TestJobPages(t *testing.T) {
	const tasks = 3*api.PageJobs + api.FirstJobs + 7
	s := cluster.NewState()
	at, n := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), uint64(0)
	do := func(c cluster.Command) any {
		n++
		out := s.Apply(cluster.Entry{Index: n, At: at, By: cluster.Identity{System: true}, Cmd: c})
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		return out.Result
	}
	inv := cluster.Inventory{CPUs: tasks, Sockets: 1, CoresPerSocket: tasks, ThreadsPerCore: 1, MemMB: tasks}
	do(&cluster.NodeUp{Name: "n1", Inventory: inv})
	array := do(&cluster.Submit{
		Spec: &cluster.JobSpec{
			Layout: &cluster.Layout{}, Name: "a", Partitions: []string{"main"},
			Array: &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, tasks-1)},
		},
	}).(cluster.JobID)
	for task := range tasks {
		do(&cluster.Decide{Decisions: []cluster.Decision{{Job: array, Task: task,
			Start: &cluster.Alloc{Partition: "main",
				Shares: []cluster.Share{{Node: "n1", CPUs: cluster.NewIDSet(task), MemMB: 1}}}}}})
	}
	snap := s.Snapshot()
	for name, q := range map[string]api.JobQuery{
		"all":       {},
		"what runs": {Phases: []cluster.Phase{cluster.Starting, cluster.Running}},
		"by number": {Refs: []cluster.Ref{{Job: array}}},
		"nothing":   {Phases: []cluster.Phase{cluster.Suspended}},
		"by task, two": {
			Refs: []cluster.Ref{
				{Job: array, Tasks: cluster.RangeIDSet(3000, tasks-1)},
				{Job: array, Tasks: cluster.RangeIDSet(0, 2999)},
			},
		},
	} {
		want := len(selectJobs(snap, &q, visibility.Scope{All: true}).Jobs)
		q.Pages = true
		first := selectJobs(snap, &q, visibility.Scope{All: true})
		var got []cluster.JobID
		add := func(list []*cluster.Job) {
			for _, j := range list {
				got = append(got, j.ID)
			}
		}
		add(first.Jobs)
		for _, r := range first.Rest {
			part := q
			part.Pages, part.From, part.To = false, r.From, r.To
			add(selectJobs(snap, &part, visibility.Scope{All: true}).Jobs)
		}
		slices.Sort(got)
		if once := slices.Compact(slices.Clone(got)); len(got) != want || len(once) != want || name != "nothing" && want < tasks {
			t.Errorf("%s: %d jobs, %d different ones, want %d", name, len(got), len(once), want)
		}
	}
}

// TestNodeNamedOften: a node that a question names a thousand times is told once, as the answer about it is many times
// as long as its name.
func TestNodeNamedOften(t *testing.T) {
	_, trans := raft.NewInmemTransport("s1")
	s, err := New(Config{
		Name: "s1", Log: consensus.Config{ID: "s1", Addr: "s1", Bootstrap: true, Memory: true},
	}, trans, stillHistory{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inv := cluster.Inventory{CPUs: 1, Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, MemMB: 1}
	up := s.state.Apply(cluster.Entry{Index: 1, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.NodeUp{Name: "n1", Inventory: inv}})
	if up.Err != nil {
		t.Fatal(up.Err)
	}
	who := api.Caller{Identity: cluster.Identity{UID: 1000}}
	q := api.NodeQuery{Names: slices.Repeat([]cluster.NodeName{"n1", "none"}, 1000)}
	out, err := s.listNodes(t.Context(), who, q)
	if err != nil || len(out.Nodes) != 1 || out.Nodes[0].Name != "n1" || len(out.Missing) == 0 {
		t.Errorf("%d nodes, %d missing, %v", len(out.Nodes), len(out.Missing), err)
	}
}
