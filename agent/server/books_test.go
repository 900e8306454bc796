package server

import (
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/federation"
)

// TestRanked has the jobs that sprio of Slurm 22.05 shows.
func TestRanked(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	here := federation.SetOf(1)
	shared := func(viable federation.Set) cluster.Rarely {
		return cluster.Rarely{Fed: &cluster.SharedJob{Part: federation.Part{Self: 1, Origin: 1, Viable: viable}}}
	}
	for _, c := range []struct {
		name    string
		job     cluster.Job
		running bool // CALCULATE_RUNNING
		want    bool
	}{
		{"pending", cluster.Job{Phase: cluster.Pending, Accrue: now}, false, true},
		{"shared", cluster.Job{Phase: cluster.Pending, Accrue: now, Rarely: shared(here)}, false, true},
		{"for another cluster", cluster.Job{Phase: cluster.Pending, Accrue: now, Rarely: shared(0)}, false, false},
		{"held", cluster.Job{Phase: cluster.Pending, Accrue: now, Held: cluster.HeldUser}, false, false},
		{"not eligible", cluster.Job{Phase: cluster.Pending}, false, false},
		{"later", cluster.Job{Phase: cluster.Pending, Accrue: now.Add(time.Hour)}, false, false},
		{"running", cluster.Job{Phase: cluster.Running, Accrue: now}, false, false},
		{"running, computed", cluster.Job{Phase: cluster.Running, Accrue: now}, true, true},
		{"over", cluster.Job{Phase: cluster.Ended, Accrue: now}, true, false},
	} {
		if got := ranked(&c.job, &cluster.PriorityConfig{CalculateRunning: c.running}, now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
