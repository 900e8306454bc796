package client

import (
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestRestartedMachine asks what a client does for a job whose script it does not see.
func TestRestartedMachine(t *testing.T) {
	cfg := cluster.DefaultConfig()
	ready := []cluster.Report{
		{Node: "a", Seq: 1, Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: 7, Attempt: 1}}},
	}
	for name, c := range map[string]struct {
		phase   cluster.Phase
		nodes   []cluster.NodeName
		pending []cluster.Report
		want    Todo
		kind    cluster.UpdateKind
	}{
		"new":                        {cluster.Starting, []cluster.NodeName{"a"}, nil, Launch, ""},
		"new gang":                   {cluster.Starting, []cluster.NodeName{"a", "b"}, nil, Tell, cluster.NodeReady},
		"confirmed, still in outbox": {cluster.Starting, []cluster.NodeName{"a"}, ready, Tell, cluster.JobLost},
		"ran here":                   {cluster.Running, []cluster.NodeName{"a"}, nil, Tell, cluster.JobLost},
		"was suspended here":         {cluster.Suspended, []cluster.NodeName{"a"}, nil, Tell, cluster.JobLost},
		"led a gang":                 {cluster.Running, []cluster.NodeName{"a", "b"}, nil, Tell, cluster.JobLost},
		"ended here":                 {cluster.Ending, []cluster.NodeName{"a"}, nil, Tell, cluster.NodeDone},
	} {
		t.Run(name, func(t *testing.T) {
			j := &cluster.Job{
				ID: 7, Attempt: 1, Phase: c.phase, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}},
				Alloc: &cluster.Alloc{},
			}
			for _, n := range c.nodes {
				j.Alloc.Shares = append(j.Alloc.Shares, cluster.Share{Node: n})
			}
			d := NewSimulated("a", c.pending)
			d.Take(api.NodeWork{Node: "a", Index: 5, Jobs: []*cluster.Job{j}})
			acts, _ := d.Reconcile(map[step.ID]*step.Status{}, &cfg, time.Now())
			if len(acts) != 1 || acts[0].Do != c.want || c.kind != "" && acts[0].Updates[0].Kind != c.kind {
				t.Fatalf("does %+v, want %s %s", acts, c.want, c.kind)
			}
			if more, _ := d.Reconcile(map[step.ID]*step.Status{}, &cfg, time.Now()); c.want == Tell && len(more) != 0 {
				t.Errorf("and then again %+v", more)
			}
		})
	}
}
