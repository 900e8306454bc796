package cluster

import (
	"bytes"
	"testing"
)

// TestTrial: what is applied to a trial changes nothing of the state that it is of, nor what readers derive from that.
func TestTrial(t *testing.T) {
	w := newWorld(t, 2)
	id := w.submit(func(*JobSpec) {})
	before, moment := text(t, w.s), w.s.Snapshot().Moment()
	trial := w.s.Trial()
	for _, cmd := range []Command{
		&Cancel{Ref: Ref{Job: id}}, &NodeSet{Nodes: []NodeName{nodeName(0)}},
		&Submit{Spec: &JobSpec{Layout: &Layout{}, UID: alice.UID, User: "alice"}},
	} {
		trial.Apply(Entry{Index: w.s.Index, At: w.now, By: root, Cmd: cmd})
	}
	if j, _ := trial.Job(id); j.Phase != Ended || trial.JobCount() != 2 {
		t.Errorf("the trial has %d jobs, the first in phase %d", trial.JobCount(), j.Phase)
	}
	if text(t, w.s) != before {
		t.Error("the state has changed")
	}
	w.submit(func(*JobSpec) {})
	touched, known := w.s.Snapshot().Since(moment)
	for _, c := range touched {
		if c.Job == id || c.Node != "" {
			t.Errorf("readers are told of %+v", c)
		}
	}
	if !known || len(touched) == 0 {
		t.Errorf("readers know of %d changes, %v", len(touched), known)
	}
}

func text(t *testing.T, s *State) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot().Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
