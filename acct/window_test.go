package acct

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestWindowByEligibility: a window without states has the jobs that were eligible by its end, unless they are named.
func TestWindowByEligibility(t *testing.T) {
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name     string
		eligible time.Time
		q        Query
		want     bool
	}{
		{"before the end", at, Query{To: at}, true},
		{"after the end", at.Add(1), Query{To: at}, false},
		{"no end", at, Query{}, true},
		{"never", time.Time{}, Query{To: at}, true},
		{"by its number", at.Add(1), Query{To: at, Refs: []cluster.Ref{{Job: 7}}}, true},
	} {
		if got := c.q.matches(&cluster.Job{ID: 7, Eligible: c.eligible, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
