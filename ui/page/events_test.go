package page

import (
	"testing"
	"time"

	"dev.muster/agent/eventlog"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestEventWords: each kind of event in the words of the stream, the last of an index without More.
func TestEventWords(t *testing.T) {
	_, state := pageServer(t, 1, 0)
	sees := visibility.Of(state.Snapshot(), visibility.Stranger)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "x", User: "ada", Partitions: []string{"a", "b"}}
	alloc := &cluster.Alloc{
		Partition: "a",
		Shares: []cluster.Share{
			{Node: "n1", GPUs: cluster.RangeIDSet(0, 3)}, {Node: "n2", GPUs: cluster.RangeIDSet(0, 3)},
		},
	}
	list := []eventlog.Record{
		{Index: 1, At: at, Event: cluster.Event{Job: &cluster.Job{ID: 7, Spec: spec, Wait: cluster.WaitPriority}}},
		{
			Index: 1, At: at,
			Event: cluster.Event{Job: &cluster.Job{ID: 7, Spec: spec, Phase: cluster.Running, Alloc: alloc}},
		},
		{
			Index: 2, At: at,
			Event: cluster.Event{
				Job: &cluster.Job{
					ID: 7, Spec: spec, Phase: cluster.Ended, Outcome: cluster.Failed,
					Exit: cluster.ExitStatus{Code: 3}, EndReason: cluster.EndNonZeroExit, Alloc: alloc,
				},
			},
		},
		{
			Index: 3, At: at,
			Event: cluster.Event{
				Step: &cluster.Step{ID: cluster.StepID{Job: 7}, Name: "train", Shares: alloc.Shares[:1]},
			},
		},
		{
			Index: 4, At: at,
			Event: cluster.Event{Node: &cluster.Node{Name: "n1", Drain: true, Reason: "bad fan", ReasonBy: "root"}},
		},
		{
			Index: 5, At: at,
			Event: cluster.Event{
				Resv: &cluster.Reservation{
					Name: "maint", Start: at, End: at.Add(time.Hour), Nodes: []cluster.NodeName{"n1"},
				},
			},
		},
		{Index: 6, At: at, Event: cluster.Event{Purged: 7}},
	}
	text, err := sseText(eventlog.Words(&api.EventQuery{}, sees, list))
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

// TestNeeds: what may need an administrator are faults of nodes and of the platform, and no mistakes of users.
func TestNeeds(t *testing.T) {
	ended := func(o cluster.Outcome, why cluster.Reason, b *cluster.Blame) cluster.Event {
		return cluster.Event{Job: &cluster.Job{Phase: cluster.Ended, Outcome: o, EndReason: why, Blame: b}}
	}
	for name, c := range map[string]struct {
		event cluster.Event
		want  bool
	}{
		"refused":            {ended(cluster.Failed, cluster.EndBadConstraints, nil), false},
		"its program failed": {ended(cluster.Failed, cluster.EndNonZeroExit, nil), false},
		"its own memory":     {ended(cluster.OutOfMemory, cluster.NoReason, nil), false},
		"a fault":            {ended(cluster.Failed, cluster.EndNonZeroExit, &cluster.Blame{Text: "fan"}), true},
		"maybe a fault":      {ended(cluster.Failed, cluster.EndNonZeroExit, &cluster.Blame{Maybe: true}), false},
		"not launched":       {ended(cluster.Failed, cluster.EndLaunchFailure, nil), true},
		"its node is lost":   {ended(cluster.NodeFailed, cluster.NoReason, nil), true},
		"a node is drained":  {cluster.Event{Node: &cluster.Node{Drain: true}}, true},
		"a node is well":     {cluster.Event{Node: &cluster.Node{Up: true}}, false},
	} {
		if got := needs(&eventlog.Record{Event: c.event}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
