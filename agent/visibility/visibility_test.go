package visibility

import (
	"testing"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestVisibility: PrivateData keeps others' jobs, nodes and reservations from users, and nothing from operators,
// coordinators and owners.
func TestVisibility(t *testing.T) {
	state := agenttest.Cluster(t, 1, 0)
	do := agenttest.Doing(t, state, 100)
	cfg := *state.Config()
	cfg.Keys = map[string]string{"privatedata": "Jobs, nodes,reservations,usage,users"}
	do(&cluster.Configure{Config: &cfg})
	do(&cluster.ChangeAccounts{Changes: []cluster.Change{{
		Account: &cluster.Account{Name: "ml", Coordinators: []string{"boss"}},
	}, {Assoc: &cluster.Association{Account: "ml", Parent: 1, Shares: 1}},
		{User: &cluster.User{Name: "oper", AdminLevel: "Operator", DefaultAccount: "ml"}}}})
	job := &cluster.Job{ID: 1, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, UID: 1000, User: "ada", Account: "ml"}}
	resv := &cluster.Reservation{Name: "r", Users: []string{"ada"}}
	as := func(uid uint32, user string) api.Caller {
		return api.Caller{Identity: cluster.Identity{UID: uid, User: user}}
	}
	for name, c := range map[string]struct {
		who                    api.Caller
		job, nodes, resv, used bool
	}{
		"owner":             {as(1000, "ada"), true, false, true, true},
		"another":           {as(1001, "bob"), false, false, false, false},
		"coordinator":       {as(1002, "boss"), true, false, false, true},
		"operator by books": {as(1003, "oper"), true, true, true, true},
		"root":              {as(0, "root"), true, true, true, true},
		"root of a member":  {api.Caller{Identity: Stranger.Identity, Sees: true}, true, true, true, true},
		"nobody":            {Stranger, false, false, false, false},
	} {
		v := Of(state.Snapshot(), c.who)
		if v.Job(job) != c.job || (v.Nodes() == nil) != c.nodes || v.Reservation(resv) != c.resv || v.Owner(cluster.PrivateUsage, "ada", "ml") != c.used {
			t.Errorf("%s: job %v, nodes %v, reservation %v, usage %v", name, v.Job(job), v.Nodes(),
				v.Reservation(resv), v.Owner(cluster.PrivateUsage, "ada", "ml"))
		}
	}
}

// TestNobodysAccounts: a caller whose name is not known here is no user of an account, whose sums have no user.
func TestNobodysAccounts(t *testing.T) {
	state := agenttest.Cluster(t, 1, 0)
	do := agenttest.Doing(t, state, 100)
	cfg := *state.Config()
	cfg.Keys = map[string]string{"privatedata": "usage"}
	do(&cluster.Configure{Config: &cfg})
	do(&cluster.ChangeAccounts{Changes: []cluster.Change{
		{Account: &cluster.Account{Name: "ml"}},
		{Assoc: &cluster.Association{Account: "ml", Parent: 1, Shares: 1}},
		{User: &cluster.User{Name: "ada", DefaultAccount: "ml"}},
		{Assoc: &cluster.Association{Account: "ml", User: "ada", Parent: 2, Shares: 1}},
	}})
	for user, want := range map[string]bool{"ada": true, "bob": false, "": false} {
		v := Scope{Snap: state.Snapshot(), Who: api.Caller{Identity: cluster.Identity{UID: 4_000_000_001, User: user}}}
		if got := v.Owner(cluster.PrivateUsage, "", "ml"); got != want {
			t.Errorf("%q sees the sums of the account: %v", user, got)
		}
	}
}
