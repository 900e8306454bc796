package server

import (
	"slices"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

func purges(index uint64, ids ...cluster.JobID) (out []loggedEvent) {
	for _, id := range ids {
		out = append(out, loggedEvent{index: index, Event: cluster.Event{Purged: id}})
	}
	return out
}

func indexes(list []loggedEvent) (out []uint64) {
	for _, t := range list {
		out = append(out, t.index)
	}
	return out
}

// TestEventLog: what is remembered is told once and whole from any index on; what is forgotten is said to be.
func TestEventLog(t *testing.T) {
	f := newEventLog(4)
	_, more, ok := f.after(0)
	if !ok {
		t.Fatal("an empty feed has forgotten something")
	}
	f.append(purges(3, 1, 2))
	select {
	case <-more:
	default:
		t.Error("nobody is told of more")
	}
	f.append(nil)
	f.append(purges(5, 3))
	for since, want := range map[uint64][]uint64{0: {3, 3, 5}, 2: {3, 3, 5}, 3: {5}, 4: {5}, 5: nil, 9: nil} {
		if got, _, ok := f.after(since); !ok || !slices.Equal(indexes(got), want) {
			t.Errorf("since %d: %v, %v, want %v", since, indexes(got), ok, want)
		}
	}
	f.append(purges(6, 4, 5, 6, 7, 8, 9)) // nine in all: the last four stay
	if _, _, ok := f.after(5); ok {
		t.Error("what of index 6 is forgotten is not said to be")
	}
	if got, _, ok := f.after(6); !ok || len(got) != 0 {
		t.Errorf("since 6: %v, %v", indexes(got), ok)
	}
	f.restart(20)
	if _, _, ok := f.after(19); ok {
		t.Error("after a restart at index 20 all since 19 is known")
	}
	many := purges(30, slices.Repeat([]cluster.JobID{1}, maxBatch)...)
	f = newEventLog(4 * maxBatch)
	f.append(purges(29, 1))
	f.append(many)
	if got, _, _ := f.after(0); len(got) != maxBatch+1 {
		t.Errorf("an index was torn: %d events", len(got))
	}
}

// TestEventWords: each kind of event in the words of the stream, the last of an index without More.
func TestEventWords(t *testing.T) {
	_, state := pageServer(t, 1, 0)
	sees := visibilityOf(state.Snapshot(), stranger)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "x", User: "ada", Partitions: []string{"a", "b"}}
	alloc := &cluster.Alloc{Partition: "a", Shares: []cluster.Share{{Node: "n1", GPUs: cluster.RangeIDSet(0, 3)}, {Node: "n2", GPUs: cluster.RangeIDSet(0, 3)}}}
	list := []loggedEvent{
		{1, at, false, cluster.Event{Job: &cluster.Job{ID: 7, Spec: spec, Wait: cluster.WaitPriority}}},
		{1, at, false, cluster.Event{Job: &cluster.Job{ID: 7, Spec: spec, Phase: cluster.Running, Alloc: alloc}}},
		{2, at, false, cluster.Event{Job: &cluster.Job{ID: 7, Spec: spec, Phase: cluster.Ended, Outcome: cluster.Failed, Exit: cluster.ExitStatus{Code: 3}, EndReason: cluster.EndNonZeroExit, Alloc: alloc}}},
		{3, at, false, cluster.Event{Step: &cluster.Step{ID: cluster.StepID{Job: 7}, Name: "train", Shares: alloc.Shares[:1]}}},
		{4, at, false, cluster.Event{Node: &cluster.Node{Name: "n1", Drain: true, Reason: "bad fan", ReasonBy: "root"}}},
		{5, at, false, cluster.Event{Resv: &cluster.Reservation{Name: "maint", Start: at, End: at.Add(time.Hour), Nodes: []cluster.NodeName{"n1"}}}},
		{6, at, false, cluster.Event{Purged: 7}},
	}
	text, err := sseText(wordEvents(&api.EventQuery{}, sees, list))
	if err != nil {
		t.Fatal(err)
	}
	const want = `data: {"index":1,"time":"2026-01-02T03:04:05Z","kind":"job","more":true,"job":{"id":7,"name":"x","user":"ada","partition":"a,b","state":"pending","reason":"Priority"}}
data: {"index":1,"time":"2026-01-02T03:04:05Z","kind":"job","job":{"id":7,"name":"x","user":"ada","partition":"a","state":"running","nodes":"n[1-2]","gpus":8}}
id: 1

data: {"index":2,"time":"2026-01-02T03:04:05Z","kind":"job","job":{"id":7,"name":"x","user":"ada","partition":"a","state":"failed","reason":"NonZeroExitCode","nodes":"n[1-2]","gpus":8,"exit":3}}
id: 2

data: {"index":3,"time":"2026-01-02T03:04:05Z","kind":"step","step":{"job":7,"step":0,"name":"train","state":"running","nodes":"n1"}}
id: 3

data: {"index":4,"time":"2026-01-02T03:04:05Z","kind":"node","node":{"name":"n1","state":"draining","reason":"bad fan","by":"root"}}
id: 4

data: {"index":5,"time":"2026-01-02T03:04:05Z","kind":"reservation","reservation":{"name":"maint","state":"active","start":"2026-01-02T03:04:05Z","end":"2026-01-02T04:04:05Z","nodes":"n1"}}
id: 5

data: {"index":6,"time":"2026-01-02T03:04:05Z","kind":"job","job":{"id":7,"state":"purged"}}
id: 6

`
	if string(text) != want {
		t.Errorf("got\n%s", text)
	}
}

// TestEventLogOfArray: of the tasks of an array that wait, the submission and the last record are kept, and each start.
func TestEventLogOfArray(t *testing.T) {
	const tasks = 100
	f := newEventLog(8 * tasks)
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Array: &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, tasks-1)}}
	rest := func(from int, held cluster.Hold) loggedEvent {
		return loggedEvent{index: uint64(from + 1), Event: cluster.Event{Job: &cluster.Job{ID: 1, ArrayID: 1, Spec: spec, Held: held, Tasks: cluster.RangeIDSet(from, tasks-1)}}}
	}
	f.append([]loggedEvent{rest(0, cluster.NotHeld)})
	for k := 1; k < tasks-1; k++ {
		one := loggedEvent{index: uint64(k + 1), Event: cluster.Event{Job: &cluster.Job{ID: cluster.JobID(k + 1), ArrayID: 1, Spec: spec, Task: k, Phase: cluster.Starting}}}
		f.append([]loggedEvent{rest(k, cluster.NotHeld), one})
	}
	f.append([]loggedEvent{rest(tasks-1, cluster.HeldUser)})
	events, _, _ := f.after(0)
	var rests, starts []int
	for i := range events {
		switch e := &events[i]; {
		case e.past && e.Job != nil:
			t.Errorf("event %d is past and kept", e.index)
		case !e.past && e.Job.Phase == cluster.Pending:
			rests = append(rests, e.Job.Tasks.Min())
		case !e.past:
			starts = append(starts, e.Job.Task)
		}
	}
	if !slices.Equal(rests, []int{0, tasks - 2, tasks - 1}) || len(starts) != tasks-2 {
		t.Errorf("of the rest are told %v, and %d starts", rests, len(starts))
	}
	if list := f.latest(1000, func(*loggedEvent) bool { return true }); len(list) != tasks+1 {
		t.Errorf("%d are the latest", len(list))
	}
}
