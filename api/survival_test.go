package api

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestSurvival: a job's progress, checkpoint, hang, spares and lost nodes are listed where there are any.
func TestSurvival(t *testing.T) {
	loss := 2.5
	spec := func(r cluster.SpareRestart) *cluster.JobSpec {
		return &cluster.JobSpec{Resilience: &cluster.Resilience{Spares: 2, Restart: r}}
	}
	shares := func(names ...cluster.NodeName) (out []cluster.Share) {
		for _, n := range names {
			out = append(out, cluster.Share{Node: n})
		}
		return out
	}
	lost := func(spare cluster.NodeName, names ...cluster.NodeName) cluster.Rarely {
		return cluster.Rarely{Shrunk: &cluster.Shrunk{Lost: names, Replaced: []cluster.NodeName{spare}}}
	}
	for _, c := range []struct {
		name string
		job  cluster.Job
		p    *Progress
		want string
	}{
		{"nothing", cluster.Job{Spec: &cluster.JobSpec{}}, nil, "[]"},
		{"progress", cluster.Job{Spec: &cluster.JobSpec{}},
			&Progress{Step: 30, Of: 120, Loss: &loss, Pace: 1.5, At: 60},
			"[{progress step 30 of 120 (25%), loss 2.5, one every 1.5s, reported 60}]"},
		{"checkpoint and hang", cluster.Job{Spec: &cluster.JobSpec{}, Rarely: cluster.Rarely{
			Survival: &cluster.Survival{
				Saved: &cluster.Checkpoint{At: time.Unix(5, 0), Path: "a\nb"},
				Hung:  &cluster.Hang{At: time.Unix(7, 0), Text: "no step"}}}}, nil,
			"[{last checkpoint 5 a?b} {hang 7: HANG: no step}]"},
		{"spares", cluster.Job{Spec: spec(""), Alloc: &cluster.Alloc{Spares: shares("n3", "n4")}}, nil,
			"[{spare nodes n[3-4], 2 left of 2}]"},
		{"one used", cluster.Job{Spec: spec(""), Alloc: &cluster.Alloc{Spares: shares("n4")},
			Rarely: lost("n3", "n1")}, nil,
			"[{spare nodes n4, 1 left of 2} {lost nodes n1, replaced by n3}]"},
		{"more lost than replaced", cluster.Job{Spec: spec(""), Alloc: &cluster.Alloc{},
			Rarely: lost("n3", "n1", "n2")}, nil,
			"[{spare nodes none left of 2} {lost nodes n[1-2]; spares in use: n3}]"},
		{"for a launcher", cluster.Job{Spec: spec(cluster.RestartRank), Alloc: &cluster.Alloc{}}, nil,
			"[{spare nodes 2 among its nodes, for its launcher}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stamp := func(at time.Time) string { return fmt.Sprint(at.Unix()) }
			if got := fmt.Sprint(Survival(&c.job, c.p, stamp)); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
