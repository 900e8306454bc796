package server

import (
	"slices"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestVouchedGroups: a compute node that vouches for a user says neither the user's name nor groups: those count that
// the user's jobs there have, so that the node cannot have a job begin elsewhere with the groups of others.
func TestVouchedGroups(t *testing.T) {
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
	do(&cluster.NodeUp{Name: "n", Owner: "n", Inventory: inv})
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, UID: 1000, GID: 1000, Groups: []uint32{1000, 50}, User: "alice"}
	id := do(&cluster.Submit{Spec: spec}).(cluster.JobID)
	share := cluster.Share{Node: "n", CPUs: cluster.NewIDSet(0), Tasks: 1}
	start := &cluster.Alloc{Partition: "main", Shares: []cluster.Share{share}}
	do(&cluster.Decide{Decisions: []cluster.Decision{{Job: id, Task: cluster.TaskAny, Start: start}}})
	for _, c := range []struct {
		gid, want uint32
	}{{0, 1000}, {1000, 1000}, {50, 50}} {
		who := api.Caller{Member: "n", Role: cluster.RoleNode, Groups: []uint32{0, 6}}
		who.UID, who.GID, who.User = 1000, c.gid, "root"
		as, ok := s.AsJobsSay(t.Context(), who)
		if !ok || as.GID != c.want || as.User != "alice" || !slices.Equal(as.Groups, []uint32{50, 1000}) {
			t.Errorf("with group %d: %t, user %s of groups %d, %d", c.gid, ok, as.User, as.GID, as.Groups)
		}
		if err := owner(s, as, &cluster.JobSpec{UID: 1000, GID: 0}); err == nil {
			t.Errorf("with group %d: a job of group 0 is taken", c.gid)
		}
	}
}
