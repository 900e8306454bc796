package cluster

import (
	"math"
	"testing"
	"time"
)

// qosSpent is what a QOS has used up of a resource, in its seconds.
func (w *world) qosSpent(name, tres string) float64 {
	w.t.Helper()
	q, ok := w.s.QOS(name)
	if !ok {
		w.t.Fatalf("there is no QOS %s", name)
	}
	return amountOf(q.Spent.TRES, tres)
}

// TestBudget: the usage of a QOS with a period of its own does not fade, stops jobs at GrpTRESMins and begins at
// zero with the next period; nothing else does.
func TestBudget(t *testing.T) {
	w := ranked(t, func(cfg *Config) {
		cfg.Enforce.Limits, cfg.Enforce.Associations = true, true
		cfg.Priority.HalfLife = 1000 * time.Second
	})
	w.now = time.Date(2026, 3, 31, 23, 0, 0, 0, time.UTC)
	limits := Limits{}.With(Limit{Name: "GrpTRESMins", TRES: "cpu", Max: 10})
	w.ok(root, &ChangeAccounts{
		Changes: []Change{{QOS: &QOS{Name: "high", UsageFactor: 1, UsageReset: ResetMonthly, Limits: limits}}},
	})
	w.refused(root, &ChangeAccounts{Changes: []Change{{QOS: &QOS{Name: "high", UsageReset: ResetNow}}}}, ErrQOS)
	w.ok(sys, &Decay{})
	high := func(s *JobSpec) { s.QOS = "high" }
	id := w.run(w.submit(high), 3, "n0")
	cpus := amountOf(w.s.AmountsOf(w.job(id)), "cpu")
	spent := 0.0
	for range 2 {
		w.pass(100 * time.Second)
		spent += 100 * cpus
		w.due()
		w.ok(sys, &Decay{})
		if got := w.qosSpent("high", "cpu"); got != spent {
			t.Fatalf("%v CPU-seconds are counted, want %v", got, spent)
		}
	}
	if a, _ := w.s.AssocOf("team-a", "alice", ""); amountOf(a.Spent.TRES, "cpu") >= spent {
		t.Error("the usage of the user does not fade")
	}
	w.pass(700 * time.Second)
	w.ok(sys, &Decay{})
	if j := w.job(id); j.Phase != Ending || j.EndingWhy != TimedOut {
		t.Errorf("with its budget used up the job is %v, %v", j.Phase, j.EndingWhy)
	}
	w.over(id, 0)
	used := w.qosSpent("high", "cpu")
	w.pass(30 * time.Minute)
	w.ok(sys, &Decay{})
	if got := w.qosSpent("high", "cpu"); got != used || got < 600 {
		t.Errorf("within the month %v CPU-seconds are left of %v", got, used)
	}
	a, _ := w.s.AssocOf("team-a", "alice", "")
	w.pass(time.Hour)
	w.ok(sys, &Decay{})
	if got := w.qosSpent("high", "cpu"); got != 0 {
		t.Errorf("in April %v CPU-seconds of March are left", got)
	}
	if b, _ := w.s.AssocOf("team-a", "alice", ""); amountOf(a.Spent.TRES, "cpu") == 0 || amountOf(b.Spent.TRES, "cpu") == 0 {
		t.Error("the user's own usage went with the budget")
	}
}

// TestForgive: RawUsage=0 of an account is for all below it, and what is above has as much less.
func TestForgive(t *testing.T) {
	w := ranked(t, nil)
	w.ok(sys, &Decay{})
	id := w.run(w.submit(nil), 3, "n0")
	w.pass(time.Minute)
	w.over(id, 0)
	a, _ := w.s.AssocOf("team-a", "", "")
	if a.Spent.Raw == 0 {
		t.Fatal("nothing was charged")
	}
	w.ok(root, &ChangeAccounts{Changes: []Change{{Assoc: a, Reset: true}}})
	for _, user := range []string{"", "alice"} {
		if a, _ := w.s.AssocOf("team-a", user, ""); a.Spent.Raw != 0 {
			t.Errorf("team-a %s has still used %v", user, a.Spent.Raw)
		}
	}
	if top, _ := w.s.AssocOf(RootName, "", ""); top.Spent.Raw != 0 {
		t.Errorf("root has still used %v", top.Spent.Raw)
	}
}

// TestSetUsage: an operator sets the usage of an association, and those above have as much more.
func TestSetUsage(t *testing.T) {
	w := ranked(t, nil)
	alice, _ := w.s.AssocOf("team-a", "alice", "")
	team, _ := w.s.AssocOf("team-a", "", "")
	raw := func(account, user string) float64 { a, _ := w.s.AssocOf(account, user, ""); return a.Spent.Raw }
	set := func(a *Association, s Spent) *ChangeAccounts {
		return &ChangeAccounts{Changes: []Change{{Assoc: a, Usage: &s}}}
	}
	w.ok(root, set(alice, Spent{Raw: 100, Wall: 7, TRES: []Amount{{"mem", 5}, {"cpu", 60}}}))
	w.ok(root, set(team, Spent{Raw: 150}))
	if a, b, c := raw("team-a", "alice"), raw("team-a", ""), raw(RootName, ""); a != 100 || b != 150 || c != 150 {
		t.Errorf("alice %v, team-a %v, root %v", a, b, c)
	}
	if a, _ := w.s.AssocOf("team-a", "", ""); a.Spent.Wall != 7 || amountOf(a.Spent.TRES, "cpu") != 60 {
		t.Errorf("team-a has used %+v", a.Spent)
	}
	w.ok(root, set(alice, Spent{Raw: 40}))
	if a, b, c := raw("team-a", "alice"), raw("team-a", ""), raw(RootName, ""); a != 40 || b != 90 || c != 90 {
		t.Errorf("alice %v, team-a %v, root %v", a, b, c)
	}
	w.refused(root, set(team, Spent{Raw: 39}), "")
	w.refused(root, set(alice, Spent{Raw: -1}), "")
	w.refused(root, set(alice, Spent{TRES: []Amount{{"cpu", 1}, {"cpu", 2}}}), "")
	boss := *team
	w.ok(root, &ChangeAccounts{Changes: []Change{{Account: &Account{Name: "team-a", Coordinators: []string{"alice"}}}}})
	w.refused(Identity{UID: 1000, User: "alice"}, set(&boss, Spent{Raw: 1000}), ErrAccess)
	w.ok(root, &ChangeAccounts{Changes: []Change{{QOS: &QOS{Name: "high", UsageFactor: 1}, Usage: &Spent{Raw: 5}}}})
	if q, _ := w.s.QOS("high"); q.Spent.Raw != 5 {
		t.Errorf("QOS high has used %+v", q.Spent)
	}
}

// TestRefund: what an attempt was charged that a node's failure ended is given back, as far as it has not faded, at the
// association, those above and the QOS; what others used stays, and so does a job's own failure.
func TestRefund(t *testing.T) {
	w := ranked(t, func(cfg *Config) {
		cfg.Priority.RefundFaults = true
		cfg.Priority.HalfLife = 1000 * time.Second
	})
	w.ok(root, &ChangeAccounts{Changes: []Change{{QOS: &QOS{Name: "high", UsageFactor: 1, UsageReset: ResetMonthly}}}})
	w.ok(sys, &Decay{})
	other := w.run(w.submit(nil), 5, "n1")
	bad := w.run(w.submit(func(s *JobSpec) { s.QOS = "high" }), 3, "n0")
	raw := func(account, user string) float64 { a, _ := w.s.AssocOf(account, user, ""); return a.Spent.Raw }
	for range 3 {
		w.pass(100 * time.Second)
		w.ok(sys, &Decay{})
	}
	both, high := raw("team-a", "alice"), w.qosSpent("high", "cpu")
	if high != 300*amountOf(w.s.AmountsOf(w.job(bad)), "cpu") {
		t.Fatalf("QOS high has used %v", high)
	}
	w.pass(50 * time.Second)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}, Why: "power"})
	w.ok(sys, &Decay{})
	if got := w.qosSpent("high", "cpu"); got > 1e-6 {
		t.Errorf("QOS high has still used %v", got)
	}
	if a, n := raw("team-a", "alice"), raw(RootName, ""); a >= both || a <= both/2 || math.Abs(a-n) > 1e-6 {
		t.Errorf("alice has used %v of %v, root %v", a, both, n)
	}
	alone := raw("team-a", "alice")
	w.over(other, 1)
	if got := raw("team-a", "alice"); got < alone {
		t.Errorf("a job that failed by itself was given back: %v, before %v", got, alone)
	}
}
