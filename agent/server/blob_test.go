package server

import (
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestTextsOfJobs: the script and the environment of a job are for its first node alone, though all users see by
// which hashes they are stored.
func TestTextsOfJobs(t *testing.T) {
	at := time.Unix(1e9, 0)
	s := &Server{state: cluster.NewState()}
	do := func(c cluster.Command) any {
		t.Helper()
		a := s.state.Apply(cluster.Entry{Index: s.state.Index + 1, At: at, By: cluster.Identity{System: true}, Cmd: c})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a.Result
	}
	cfg := cluster.DefaultConfig()
	do(&cluster.RaiseLevel{Level: cluster.Newest})
	do(&cluster.Configure{Config: &cfg})
	inv := cluster.Inventory{Sockets: 1, CoresPerSocket: 2, ThreadsPerCore: 1, CPUs: 2, MemMB: 100}
	for _, name := range []string{"a", "b", "c"} {
		do(&cluster.NodeUp{Name: cluster.NodeName(name), Owner: name, Inventory: inv})
	}
	script, env := cluster.BlobText("#!/bin/sh"), cluster.BlobText("TOKEN=secret\x00")
	do(&cluster.PutBlob{Hash: cluster.HashBlob(script), Text: script})
	do(&cluster.PutBlob{Hash: cluster.HashBlob(env), Text: env})
	submit := func() cluster.JobID {
		spec := &cluster.JobSpec{Layout: &cluster.Layout{}, UID: 1000, GID: 1000, User: "alice",
			Script: cluster.HashBlob(script), Env: cluster.HashBlob(env)}
		return do(&cluster.Submit{Spec: spec}).(cluster.JobID)
	}
	runs, waits := submit(), submit()
	start := &cluster.Alloc{Partition: "main", Shares: []cluster.Share{
		{Node: "a", CPUs: cluster.NewIDSet(0), Tasks: 1}, {Node: "b", CPUs: cluster.NewIDSet(0), Tasks: 1},
	}}
	do(&cluster.Decide{Decisions: []cluster.Decision{{Job: runs, Task: cluster.TaskAny, Start: start}}})
	for _, c := range []struct {
		member string
		job    cluster.JobID
		want   bool
	}{
		{"a", runs, true}, {"b", runs, false}, {"c", runs, false},
		{"a", waits, false}, {"a", 99, false},
		{"a", 0, true}, {"c", 0, false}, // a client of before
	} {
		for _, text := range []cluster.BlobText{script, env} {
			who := api.Caller{Member: c.member, Role: cluster.RoleNode}
			q := api.BlobRequest{Hash: cluster.HashBlob(text), Job: c.job}
			if got := beginsText(s, s.Snapshot(), who, &q); got != c.want {
				t.Errorf("member %s, job %d, %q: %v", c.member, c.job, text, got)
			}
		}
	}
	q := api.BlobRequest{Hash: cluster.HashBlob(cluster.BlobText("other")), Job: runs}
	if beginsText(s, s.Snapshot(), api.Caller{Member: "a", Role: cluster.RoleNode}, &q) {
		t.Error("a text that is not the job's is sent")
	}
}
