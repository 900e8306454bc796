package server

import (
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestPrivateRunMins: what runs of an association is told only to those who see that.
func TestPrivateRunMins(t *testing.T) {
	state := agenttest.Cluster(t, 1, 0)
	do := agenttest.Doing(t, state, 100)
	cfg := *state.Config()
	cfg.Keys = map[string]string{"privatedata": "users,usage"}
	do(&cluster.Configure{Config: &cfg})
	do(&cluster.ChangeAccounts{Changes: []cluster.Change{
		{Account: &cluster.Account{Name: "ml"}},
		{Assoc: &cluster.Association{Account: "ml", Parent: 1, Shares: 1}},
		{User: &cluster.User{Name: "ada", DefaultAccount: "ml"}},
		{Assoc: &cluster.Association{Account: "ml", User: "ada", Parent: 2, Shares: 1}},
	}})
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, UID: 1000, GID: 1000, User: "ada", Account: "ml",
		Limit: time.Hour}
	do(&cluster.Submit{Spec: spec})
	id := state.NextID - 1
	share := cluster.Share{Node: "n00000", CPUs: cluster.NewIDSet(0), Tasks: 1}
	part := state.Config().Partitions[0].Name
	start := &cluster.Alloc{Partition: part, Shares: []cluster.Share{share}}
	got := do(&cluster.Decide{Decisions: []cluster.Decision{{Job: id, Task: cluster.TaskAny, Start: start}}})
	j, _ := state.Job(id)
	if j.Assoc == 0 || j.Alloc == nil {
		t.Fatalf("the job does not run in an association: %v", got)
	}
	s := &Server{state: state}
	for user, want := range map[string]bool{"ada": true, "bob": false} {
		who := api.Caller{Identity: cluster.Identity{UID: 4_000_000_001, User: user}}
		got, err := s.listBooks(t.Context(), who, api.AfterQuery{})
		if _, told := got.RunMins[j.Assoc]; err != nil || told != want {
			t.Errorf("%s: %v, %v, want %v", user, got.RunMins, err, want)
		}
	}
}
