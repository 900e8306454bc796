package server

import (
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestVisibility: PrivateData keeps others' jobs, nodes and reservations from users, and nothing from operators,
// coordinators and owners.
func TestVisibility(t *testing.T) {
	_, state := pageServer(t, 1, 0)
	n := uint64(100)
	do := func(c cluster.Command) {
		n++
		if out := state.Apply(cluster.Entry{Index: n, At: time.Now(), By: cluster.Identity{System: true}, Cmd: c}); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	cfg := *state.Config()
	cfg.Keys = map[string]string{"privatedata": "Jobs, nodes,reservations,usage,users"}
	do(&cluster.Configure{Config: &cfg})
	do(&cluster.ChangeAccounts{Changes: []cluster.Change{{Account: &cluster.Account{Name: "ml", Coordinators: []string{"boss"}}}, {Assoc: &cluster.Association{Account: "ml", Parent: 1, Shares: 1}},
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
		"root of a member":  {api.Caller{Identity: stranger.Identity, Sees: true}, true, true, true, true},
		"nobody":            {stranger, false, false, false, false},
	} {
		v := visibilityOf(state.Snapshot(), c.who)
		if v.job(job) != c.job || (v.nodes() == nil) != c.nodes || v.reservation(resv) != c.resv || v.owner(cluster.PrivateUsage, "ada", "ml") != c.used {
			t.Errorf("%s: job %v, nodes %v, reservation %v, usage %v", name, v.job(job), v.nodes(), v.reservation(resv), v.owner(cluster.PrivateUsage, "ada", "ml"))
		}
	}
}
