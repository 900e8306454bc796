package cluster

import (
	"slices"
	"testing"
)

// TestUnheld: limits that a configuration does not enforce, or whose usage it does not count, are named with the
// setting that would.
func TestUnheld(t *testing.T) {
	held := Limits{{Name: "GrpTRES", TRES: "gres/gpu", Max: 16}}
	spent := Limits{{Name: "GrpTRESMins", TRES: "gres/gpu", Max: 600}}
	const enforce = ": no job waits for it: AccountingStorageEnforce=limits in slurm.conf enforces limits"
	const count = ": nothing counts what is used: PriorityType=priority/multifactor in slurm.conf does"
	for name, c := range map[string]struct {
		limits, counts bool
		set            []Limits
		want           []string
	}{
		"no limit": {false, false, []Limits{nil}, nil},
		"nothing is on": {false, false, []Limits{held, spent},
			[]string{"GrpTRESMins, GrpTRES" + enforce, "GrpTRESMins" + count}},
		"limits alone":       {true, false, []Limits{held, spent}, []string{"GrpTRESMins" + count}},
		"counting alone":     {false, true, []Limits{spent}, []string{"GrpTRESMins" + enforce}},
		"both":               {true, true, []Limits{held, spent}, nil},
		"no usage is needed": {true, false, []Limits{held}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Unheld(Enforce{Limits: c.limits}, PriorityConfig{Multifactor: c.counts}, c.set...)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestUnheldOf: a job is told of the limits of its own account and QOS, and not of those of others.
func TestUnheldOf(t *testing.T) {
	w := newWorld(t, 1)
	limit := Limits{{Name: "GrpTRES", TRES: "gres/gpu", Max: 16}}
	w.ok(root, &ChangeAccounts{Changes: []Change{
		{Account: &Account{Name: "physics"}},
		{Assoc: &Association{Account: "physics", Shares: 1, Limits: limit}},
		{User: &User{Name: "alice", DefaultAccount: "physics"}},
		{Assoc: &Association{Account: "physics", User: "alice", Shares: 1}},
	}})
	for user, notes := range map[string]int{"alice": 1, "bob": 0} {
		j, _ := w.s.Job(w.submit(func(s *JobSpec) { s.User = user }))
		if got := w.s.Snapshot().UnheldOf(j); len(got) != notes {
			t.Errorf("a job of %s is told %q", user, got)
		}
	}
}
