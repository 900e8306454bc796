package sched

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestDrainsIsBounded: a queue of enormous arrays does not make a job's patience overflow.
func TestDrainsIsBounded(t *testing.T) {
	j := &cluster.Job{Limit: cluster.Unlimited, Tasks: cluster.RangeIDSet(0, 999_999)}
	sum := time.Duration(0)
	for range maxLooked {
		sum = min(sum+drains(j, 1), longestQueue)
	}
	if sum != longestQueue || patientFor+longLimit+patience*sum <= sum {
		t.Errorf("the queue takes %v", sum)
	}
	if d := drains(&cluster.Job{Limit: time.Hour}, 0.5); d != 30*time.Minute {
		t.Errorf("half of the cluster for an hour: %v", d)
	}
}
