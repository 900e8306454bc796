package acct

import (
	"fmt"
	"testing"

	"dev.muster/cluster"
)

// TestHet: a leader stands for all components, another component for itself, unless it is asked otherwise.
func TestHet(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	var events []cluster.Event
	for id := cluster.JobID(1); id <= 5; id++ {
		j := job(id, cluster.Ended, cluster.Completed)
		if id > 1 && id < 5 {
			j.Het = &cluster.HetPart{ID: 2, Offset: int(id) - 2, Size: 3}
		}
		events = append(events, cluster.Event{Job: j})
	}
	d.Apply(1, events)
	yes, no := true, false
	for _, c := range []struct {
		ref   cluster.Ref
		whole *bool
		want  string
	}{
		{cluster.Ref{Job: 1}, nil, "1 "}, {cluster.Ref{Job: 2}, nil, "2 3 4 "},
		{cluster.Ref{Job: 3}, nil, "3 "}, {cluster.Ref{Job: 2, Part: 3}, nil, "4 "},
		{cluster.Ref{Job: 3}, &yes, "2 3 4 "}, {cluster.Ref{Job: 2, Part: 2}, &yes, "2 3 4 "},
		{cluster.Ref{Job: 5}, &yes, "5 "},
		{cluster.Ref{Job: 2}, &no, "2 "}, {cluster.Ref{Job: 2, Part: 2}, &no, "3 "},
		{cluster.Ref{Job: 1, Part: 2}, nil, ""},
	} {
		got := ""
		for _, r := range all(t, d.DB, Query{
			Refs: []cluster.Ref{c.ref}, HistoryFilter: cluster.HistoryFilter{WholeHet: c.whole},
		}) {
			got += fmt.Sprint(r.Job.ID, " ")
		}
		if got != c.want {
			t.Errorf("%+v (%v): %s, want %s", c.ref, c.whole, got, c.want)
		}
	}
}
