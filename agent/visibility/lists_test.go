package visibility

import (
	"testing"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestLists: lists leave out hidden partitions, those of other groups, and what is in such alone; for users, not for
// operators.
func TestLists(t *testing.T) {
	state := agenttest.Cluster(t, 6, 0)
	do := agenttest.Doing(t, state, 100)
	cfg := *state.Config()
	cfg.Partitions = []cluster.Partition{
		{Name: "open", Nodes: []cluster.NodeName{"n00001", "n00002"}},
		{Name: "hid", Hidden: true, Nodes: []cluster.NodeName{"n00002", "n00003"}},
		{
			Name: "grp", Nodes: []cluster.NodeName{"n00004"},
			PartitionAccess: cluster.PartitionAccess{AllowGroups: []string{"77"}},
		},
	}
	do(&cluster.Configure{Config: &cfg})
	do(&cluster.ChangeAccounts{Changes: []cluster.Change{{
		User: &cluster.User{Name: "oper", AdminLevel: "Operator", DefaultAccount: "root"},
	}}})
	job := func(parts ...string) *cluster.Job {
		return &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Partitions: parts}}
	}
	started := job("open", "hid")
	started.Alloc = &cluster.Alloc{Partition: "hid"}
	as := func(uid uint32, user string, groups ...uint32) api.Caller {
		return api.Caller{Identity: cluster.Identity{UID: uid, User: user, GID: uid}, Groups: groups}
	}
	for name, c := range map[string]struct {
		who      api.Caller
		hid, grp bool
	}{
		"user":              {as(1000, "ada"), false, false},
		"one of the group":  {as(1001, "bob", 77), false, true},
		"operator by books": {as(1002, "oper"), true, true},
		"root":              {as(0, "root"), true, true},
	} {
		l := ListsOf(state.Snapshot(), c.who)
		for what, got := range map[string][2]bool{
			"open":             {l.Partition("open"), true},
			"hid":              {l.Partition("hid"), c.hid},
			"grp":              {l.Partition("grp"), c.grp},
			"a job of hid":     {l.Job(job("hid")), c.hid},
			"a job of both":    {l.Job(job("hid", "open")), true},
			"one that runs":    {l.Job(started), c.hid},
			"a node of open":   {l.Node("n00001"), true},
			"a node of both":   {l.Node("n00002"), true},
			"a node of hid":    {l.Node("n00003"), c.hid},
			"a node of grp":    {l.Node("n00004"), c.grp},
			"a node of no one": {l.Node("n00005"), true},
		} {
			if got[0] != got[1] {
				t.Errorf("%s, %s: listed %v, want %v", name, what, got[0], got[1])
			}
		}
	}
	cfg.Partitions[1].All = true
	do(&cluster.Configure{Config: &cfg})
	if l := ListsOf(state.Snapshot(), as(1000, "ada")); l.Node("n00005") || !l.Node("n00001") {
		t.Errorf("a hidden partition of all nodes: n5 listed %v, n1 %v", l.Node("n00005"), l.Node("n00001"))
	}
}
