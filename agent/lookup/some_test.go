package lookup

import (
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestSome: who waits for an array of many tasks is not told of all of them, but of the worst end.
func TestSome(t *testing.T) {
	well := func() []*cluster.Job {
		list := make([]*cluster.Job, 10*maxWaited)
		for i := range list {
			list[i] = &cluster.Job{Phase: cluster.Ended, Outcome: cluster.Completed, Started: time.Unix(1, 0)}
		}
		return list
	}
	for name, worst := range map[string]cluster.Job{
		"exit code": {Outcome: cluster.Failed, Exit: cluster.ExitStatus{Code: 3}, Started: time.Unix(1, 0)},
		"signal":    {Outcome: cluster.Failed, Exit: cluster.ExitStatus{Signal: 9}, Started: time.Unix(1, 0)},
		"cancelled": {Outcome: cluster.Cancelled, Started: time.Unix(1, 0)},
	} {
		jobs := well()
		jobs[len(jobs)-5] = &worst
		if got := Some(jobs); len(got) > maxWaited || !slices.Contains(got, &worst) {
			t.Errorf("%s: of %d records %d are told, the worst one: %v", name, len(jobs), len(got), slices.Contains(got, &worst))
		}
	}
	if few := well()[:maxWaited]; len(Some(few)) != maxWaited {
		t.Error("few records are not told as they are")
	}
}
