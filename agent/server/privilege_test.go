package server

import (
	"reflect"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestAdministratorOfNode: a compute node that vouches for an administrator, who has a job there, changes no books.
func TestAdministratorOfNode(t *testing.T) {
	st := cluster.NewState()
	apply := func(by cluster.Identity, changes ...cluster.Change) error {
		e := cluster.Entry{Index: st.Index + 1, At: time.Unix(1e9, 0), By: by}
		e.Cmd = &cluster.ChangeAccounts{Changes: changes}
		if out := st.Apply(e); out.Err != nil {
			return out.Err
		}
		return nil
	}
	user := func(name, level string) cluster.Change {
		return cluster.Change{User: &cluster.User{Name: name, AdminLevel: level, DefaultAccount: "root"}}
	}
	if err := apply(cluster.Identity{System: true}, user("boss", "Administrator")); err != nil {
		t.Fatal(err)
	}
	s := &Server{}
	s.ahead.Store(st.Snapshot())
	for role, want := range map[cluster.Role]bool{cluster.RoleNode: false, cluster.RoleLogin: true} {
		who := api.Caller{Member: "n", Role: role, Identity: cluster.Identity{UID: 4_000_000, User: "boss"}}
		err := apply(s.actor(who, api.ChangeAccounts.Rights), user("mallory", "Administrator"))
		if (err == nil) != want {
			t.Errorf("by a %s: %v", role, err)
		}
	}
}

// TestRightsOfEndpoints lists who may do more than any user: a change of one of these is meant.
func TestRightsOfEndpoints(t *testing.T) {
	want := map[string]api.Rights{
		"POST /v1/jobs/cancel":       api.Named | api.ForOperators,
		"POST /v1/jobs/hold":         api.Named | api.ForOperators,
		"POST /v1/jobs/requeue":      api.Named | api.ForOperators,
		"POST /v1/jobs/suspend":      api.ForOperators,
		"POST /v1/jobs/update":       api.Named | api.ForOperators,
		"POST /v1/jobs/top":          api.ForOperators,
		"POST /v1/rest/token":        api.ForOperators,
		"GET /v1/jwt":                api.ForOperators,
		"POST /v1/jwt/rotate":        api.ForAdministrators,
		"POST /v1/jwt/end":           api.Named | api.ForOperators,
		"POST /v1/reservations/put":  api.ForOperators,
		"POST /v1/reservations/drop": api.ForOperators,
		"POST /v1/nodes/set":         api.Named | api.ForAdministrators | api.ForNodeRoot,
		"POST /v1/nodes/reboot":      api.Named | api.ForAdministrators,
		"POST /v1/nodes/create":      api.ForAdministrators,
		"POST /v1/nodes/delete":      api.Named | api.ForAdministrators,
		"POST /v1/partitions/set":    api.Named | api.ForAdministrators,
		"POST /v1/reconfigure":       api.Named | api.ForAdministrators,
		"POST /v1/accounts/change":   api.Named | api.ForDeputies,
		"POST /v1/federation":        api.ForAdministrators,
		"POST /v1/history/amend":     api.Named | api.ForDeputies,
		"POST /v1/history/archive":   api.Named | api.ForDeputies,
		"POST /v1/history/import":    api.Named | api.ForOperators,
		"POST /v1/history/load":      api.Named | api.ForDeputies,
		"GET /v1/crontab":            api.Named | api.ForOperators,
		"POST /v1/triggers/set":      api.Named,
		"POST /v1/triggers/clear":    api.Named | api.ForOperators,
		"POST /v1/servers/log-level": api.Named | api.ForAdministrators,
		"POST /v1/burnins/record":    api.ForNodeRoot,
	}
	got := map[string]api.Rights{}
	m := api.NewMux()
	new(Server).Routes(m)
	for name, r := range m.All() {
		if r.Rights != 0 {
			got[name] = r.Rights
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("rights %v, want %v", got, want)
	}
}
