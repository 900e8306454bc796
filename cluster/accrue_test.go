package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestAccrueLimits: of pending jobs only so many grow older, the oldest first; who leaves makes room for the next.
func TestAccrueLimits(t *testing.T) {
	for _, c := range []struct {
		what   string
		change Change
		want   string // after each calculation: which jobs have an age
	}{
		{"no limit", Change{QOS: &QOS{Name: "high", UsageFactor: 1}}, "0123"},
		{
			"of a QOS",
			Change{QOS: &QOS{Name: "high", UsageFactor: 1, Limits: Limits{{Name: "GrpJobsAccrue", Max: 3}}}},
			"012",
		},
		{
			"of a user in a QOS",
			Change{QOS: &QOS{Name: "high", UsageFactor: 1, Limits: Limits{{Name: "MaxJobsAccruePerUser", Max: 1}}}},
			"0",
		},
		{
			"of an account in a QOS",
			Change{QOS: &QOS{Name: "high", UsageFactor: 1, Limits: Limits{{Name: "MaxJobsAccruePerAccount", Max: 2}}}},
			"01",
		},
		{
			"of an association",
			Change{
				Assoc: &Association{
					Account: "team-a", User: "alice", Shares: 1, QOS: []string{"normal", "high"},
					Limits: Limits{{Name: "MaxJobsAccrue", Max: 1}},
				},
			},
			"0",
		},
		{
			"of an account",
			Change{Assoc: &Association{Account: "team-a", Shares: 1, Limits: Limits{{Name: "GrpJobsAccrue", Max: 2}}}},
			"01",
		},
		{
			"none at all",
			Change{Assoc: &Association{Account: "team-a", Shares: 1, Limits: Limits{{Name: "GrpJobsAccrue", Max: 0}}}},
			"",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := ranked(t, func(cfg *Config) { cfg.Enforce.Limits = true })
			w.ok(root, &ChangeAccounts{Changes: []Change{c.change}})
			var ids []JobID
			for range 4 {
				ids = append(ids, w.submit(func(s *JobSpec) { s.QOS, s.Account = "high", "team-a" }))
				w.pass(time.Second)
			}
			grows := func() string {
				var b strings.Builder
				w.pass(5 * time.Minute)
				w.ok(sys, &Decay{})
				w.pass(5 * time.Minute)
				for i, id := range ids {
					if j := w.job(id); j.Phase == Pending && w.s.Ranker().Factors(j, "main", w.now).Age > 0 {
						fmt.Fprint(&b, i)
					}
				}
				return b.String()
			}
			for range 2 {
				if got := grows(); got != c.want {
					t.Fatalf("%q grow older, want %q", got, c.want)
				}
			}
			if len(c.want) == 0 || len(c.want) == 4 {
				return
			}
			w.ok(alice, &Cancel{Ref: Ref{Job: ids[0]}})
			if got, want := grows(), c.want[1:]+fmt.Sprint(len(c.want)); got != want {
				t.Errorf("after the first has left, %q grow older, want %q", got, want)
			}
		})
	}
}
