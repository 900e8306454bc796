package server

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestHearsayVouchesForNobody: a job that is there by a node's word alone does not let the node speak for its user.
func TestHearsayVouchesForNobody(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	s := &Server{state: cluster.NewState()}
	apply := func(c cluster.Command) any {
		t.Helper()
		a := s.state.Apply(cluster.Entry{Index: s.state.Index + 1, At: at, By: cluster.Identity{System: true}, Cmd: c})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a.Result
	}
	up := func() {
		apply(&cluster.NodeUp{
			Name: "n", Owner: "n",
			Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 2, ThreadsPerCore: 1, CPUs: 2, MemMB: 100},
		})
	}
	cfg := cluster.DefaultConfig()
	apply(&cluster.RaiseLevel{Level: cluster.Newest})
	apply(&cluster.Configure{Config: &cfg})
	up()
	saved := at.Add(-2 * time.Hour)
	s.state.Restore(saved, at.Add(-time.Hour))
	up()
	job := &cluster.Job{ID: 7, Attempt: 1, Phase: cluster.Running, Task: cluster.TaskAny,
		Submitted: saved.Add(time.Minute), Started: saved.Add(time.Minute),
		Spec: &cluster.JobSpec{
			Layout: &cluster.Layout{}, UID: 1000, GID: 1000, User: "alice", Partitions: []string{"main"},
		},
		Alloc: &cluster.Alloc{
			Partition: "main", Shares: []cluster.Share{{Node: "n", CPUs: cluster.NewIDSet(0), Tasks: 1}},
		}}
	apply(&cluster.NodeTell{Node: "n", Jobs: []*cluster.Job{job}})
	if j, ok := s.state.Job(7); !ok || j.Phase != cluster.Running {
		t.Fatalf("the job was not taken in: %v", s.state.Restored().Differs)
	}
	if hasJobOn(s.Snapshot(), "n", 1000) {
		t.Error("a node's own word lets it speak for a user")
	}
	s.state.Restore(saved, saved.Add(time.Second)) // as if the job had been submitted after the restore
	s.snap = nil
	if !hasJobOn(s.Snapshot(), "n", 1000) {
		t.Error("the job is there, and does not count")
	}
}
