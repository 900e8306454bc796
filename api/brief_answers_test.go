package api

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// TestBriefJobs: a brief answer reads as brief jobs, and jobs of equal specifications share one.
func TestBriefJobs(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := JobsResponse{Index: 7, Now: at, Missing: []cluster.Ref{{Job: 99}}, Rest: []JobRange{{From: 5, To: 9}}}
	for i := range 40 {
		r.Jobs = append(r.Jobs, &cluster.Job{ID: cluster.JobID(i), Submitted: at,
			Wait: cluster.WaitPriority, Eligible: at,
			Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: fmt.Sprint("job", i/3%10), WorkDir: "/somewhere"}})
	}
	for _, brief := range []bool{false, true} {
		want := r
		want.Brief = brief
		text, err := wire.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got JobsResponse
		if err := wire.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if brief {
			want.Jobs = nil
			for _, j := range r.Jobs {
				c := &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}
				j.Brief(c)
				want.Jobs = append(want.Jobs, c)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("brief %v: read\n%+v\nwant\n%+v", brief, got, want)
		}
		if got.Jobs[0].Spec != got.Jobs[2].Spec || got.Jobs[2].Spec == got.Jobs[3].Spec {
			t.Errorf("brief %v: specifications are not shared as they should be", brief)
		}
	}
}

// TestBriefHistory: so does a brief answer of history, with the steps as they are.
func TestBriefHistory(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "n", WorkDir: "/somewhere"}
	r := HistoryResponse{Now: at, Brief: true}
	want := HistoryResponse{Now: at, Brief: true}
	for i := range 3 {
		j := &cluster.Job{ID: cluster.JobID(i), Submitted: at, Spec: spec, Key: "k"}
		c := &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}
		j.Brief(c)
		steps := []*cluster.Step{{ID: cluster.StepID{Job: j.ID, Step: 1}, Name: "s", Started: at}}
		r.Records = append(r.Records, JobHistory{Job: j, Steps: steps})
		want.Records = append(want.Records, JobHistory{Job: c, Steps: steps})
	}
	text, err := wire.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got HistoryResponse
	if err := wire.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nwant\n%+v", got, want)
	}
}
