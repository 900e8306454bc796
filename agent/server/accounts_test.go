package server

import (
	"slices"
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/cluster"
)

// TestAccountsBeside: accounts are listed only for a job that names another one, where that is taken.
func TestAccountsBeside(t *testing.T) {
	state := agenttest.Cluster(t, 1, 0)
	apply := func(index uint64, cmd cluster.Command) {
		t.Helper()
		if out := state.Apply(cluster.Entry{Index: index, At: time.Now(), By: cluster.Identity{System: true},
			Cmd: cmd}); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	apply(100, &cluster.ChangeAccounts{Changes: []cluster.Change{{Account: &cluster.Account{Name: "vision"}}}})
	names := func(account string) []string { return accountsBeside(state.Snapshot(), account) }
	if got := names("vizion"); !slices.Contains(got, "vision") {
		t.Errorf("an account that is none: %v", got)
	}
	if got := slices.Concat(names("vision"), names("")); got != nil {
		t.Errorf("an account that there is, and none: %v", got)
	}
	cfg := *state.Snapshot().Config()
	cfg.Enforce.Associations = true
	apply(101, &cluster.Configure{Config: &cfg})
	if got := names("vizion"); got != nil {
		t.Errorf("where associations are enforced: %v", got)
	}
}
