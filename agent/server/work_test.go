package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"dev.muster/agent/eventlog"
	"dev.muster/agent/history"
	"dev.muster/agent/metrics"
	"dev.muster/api"
	"dev.muster/cluster"
)

// noHistory is told of everything and keeps nothing.
type noHistory struct{ history.History }

func (noHistory) Apply(uint64, []cluster.Event) {}

// slowHistory is on the disk once that is allowed.
type slowHistory struct {
	noHistory
	disk chan error
}

func (h slowHistory) Sync(context.Context) error { return <-h.disk }

// TestSnapshotWaits: a snapshot, after which the log forgets, is written once history is on the disk, and not if it
// cannot be; the state goes on meanwhile, and is not in it.
func TestSnapshotWaits(t *testing.T) {
	h := slowHistory{disk: make(chan error, 2)}
	s := &Server{slog: slog.New(slog.NewTextHandler(io.Discard, nil)), hist: history.New(h), wakeups: newWakeups(),
		events: eventlog.New(eventlog.Size), stats: metrics.NewStats(),
		state: cluster.NewState(), work: map[cluster.NodeName]uint64{}, wake: make(chan struct{}, 1)}
	write, err := machine{s}.Snapshot() // does not wait
	if err != nil {
		t.Fatal(err)
	}
	line, err := cluster.EncodeEntry(cluster.Entry{
		At: time.Now(), By: cluster.Identity{System: true}, Cmd: &cluster.NodeUp{Name: "n1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	machine{s}.Apply(1, [][]byte{line})
	var file bytes.Buffer
	h.disk <- errors.New("disk full")
	if err := write(&file); err == nil || file.Len() > 0 {
		t.Errorf("%d bytes were written, %v", file.Len(), err)
	}
	h.disk <- nil
	if err := write(&file); err != nil {
		t.Fatal(err)
	}
	if st, err := cluster.Decode(&file); err != nil || st.Index != 0 || st.NodeCount() != 0 {
		t.Errorf("%v, %v", st, err)
	}
}

// TestWorkAsOf: work that is told as of an index of the log has every job that was started up to it, however much
// is started meanwhile: clients do not ask for it again.
func TestWorkAsOf(t *testing.T) {
	const nodes = 300
	s := &Server{slog: slog.New(slog.NewTextHandler(io.Discard, nil)), hist: history.New(noHistory{}),
		wakeups: newWakeups(), events: eventlog.New(eventlog.Size), stats: metrics.NewStats(),
		state: cluster.NewState(), work: map[cluster.NodeName]uint64{}, wake: make(chan struct{}, 1)}
	at, index := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), uint64(0)
	apply := func(cmd cluster.Command) cluster.Applied {
		line, err := cluster.EncodeEntry(cluster.Entry{At: at, By: cluster.Identity{System: true}, Cmd: cmd})
		if err != nil {
			t.Fatal(err)
		}
		index++
		a := machine{s}.Apply(index, [][]byte{line})[0].(applied).Applied
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a
	}
	config := cluster.DefaultConfig()
	apply(&cluster.Configure{Config: &config})
	names, jobs, started := make([]cluster.NodeName, nodes), make([]cluster.JobID, nodes), make([]uint64, nodes)
	for i := range nodes {
		names[i] = cluster.NodeName(fmt.Sprintf("n%03d", i))
		apply(&cluster.NodeUp{
			Name:      names[i],
			Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 1000},
		})
		jobs[i] = apply(&cluster.Submit{
			Spec: &cluster.JobSpec{Layout: &cluster.Layout{MinNodes: 1}},
		}).Result.(cluster.JobID)
	}
	var starting sync.WaitGroup
	starting.Go(func() {
		for i := range nodes {
			apply(&cluster.Decide{Decisions: []cluster.Decision{{Job: jobs[i], Task: cluster.TaskAny,
				Start: &cluster.Alloc{
					Partition: "main",
					Shares:    []cluster.Share{{Node: names[i], CPUs: cluster.NewIDSet(0), Tasks: 1}}}}}})
			started[i] = index
		}
	})
	told := map[cluster.NodeName][]uint64{}
	has := map[cluster.NodeName]bool{} // by the last that was told
	known := map[cluster.NodeName]uint64{}
	ask := func() {
		for _, nw := range s.workOf(names, known).Nodes {
			known[nw.Node], has[nw.Node] = nw.Index, len(nw.Jobs) > 0
			told[nw.Node] = append(told[nw.Node], nw.Index)
		}
	}
	over := make(chan struct{})
	go func() { starting.Wait(); close(over) }()
	for done := false; !done; ask() {
		select {
		case <-over:
			done = true
		default:
		}
	}
	for i, name := range names {
		if !has[name] {
			t.Errorf("node %s was told of its work as of %v; its job started at %d, and it does not know",
				name, told[name], started[i])
		}
	}
	if !slices.IsSorted(started) || started[0] == 0 {
		t.Errorf("the jobs started at %v", started)
	}
}

// TestReportsOfOthers: a node, whose key may be in wrong hands, ends no job that is on other nodes.
func TestReportsOfOthers(t *testing.T) {
	s := &Server{slog: slog.New(slog.NewTextHandler(io.Discard, nil)), state: cluster.NewState()}
	at := time.Now()
	apply := func(c cluster.Command) any {
		t.Helper()
		a := s.state.Apply(cluster.Entry{Index: s.state.Index + 1, At: at, By: cluster.Identity{System: true}, Cmd: c})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a.Result
	}
	cfg := cluster.DefaultConfig()
	apply(&cluster.Configure{Config: &cfg})
	for _, name := range []cluster.NodeName{"n1", "n2"} {
		apply(&cluster.NodeUp{Name: name, Owner: string(name),
			Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 1000}})
	}
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "job", UID: 1000, GID: 1000, User: "alice"}
	id := apply(&cluster.Submit{Spec: spec}).(cluster.JobID)
	apply(&cluster.Decide{Decisions: []cluster.Decision{{Job: id, Task: cluster.TaskAny, Start: &cluster.Alloc{
		Partition: "main", Shares: []cluster.Share{{Node: "n1", CPUs: cluster.NewIDSet(0), Tasks: 1}},
	}}}})
	news := func(node cluster.NodeName) []cluster.Update {
		return ownNews(s, api.Caller{Member: string(node)}, node, []cluster.Update{
			{Kind: cluster.BatchOver, Job: id, Attempt: 1, At: at}, {Kind: cluster.JobLost, Job: id, Attempt: 1, At: at},
		})
	}
	if got := news("n2"); len(got) > 0 {
		t.Errorf("another node's word is taken: %+v", got)
	}
	if got := news("n1"); len(got) != 2 {
		t.Errorf("the node's own word is not taken: %+v", got)
	}
}

// TestNodesMadeUp: a member is heard of its own node alone, though that may not be known (any more), and not of nodes
// that it makes up, which the leader would remember.
func TestNodesMadeUp(t *testing.T) {
	s := &Server{state: cluster.NewState()}
	who := api.Caller{Member: "n1", Role: cluster.RoleNode}
	for name, fails := range map[cluster.NodeName]bool{"n1": false, "made-up": true} {
		if err := s.owns(who, name); (err != nil) != fails {
			t.Errorf("node %s: %v", name, err)
		}
	}
	if err := s.owns(api.Caller{}, "other"); err != nil {
		t.Errorf("the client in this process: %v", err)
	}
}
