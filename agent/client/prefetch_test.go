package client

import (
	"testing"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// TestPrefetch: what a job's image asks for at each point; only a job that is not confirmed waits for it.
func TestPrefetch(t *testing.T) {
	wants := &cluster.JobSpec{Layout: &cluster.Layout{}}
	wants.Prefetch = &cluster.Prefetch{Image: "r#i"}
	waits := *newHere(self, &cluster.Job{Phase: cluster.Starting, Spec: wants})
	with := func(change func(*jobHere)) *jobHere {
		h := waits
		change(&h)
		return &h
	}
	status := func(state step.State, code int) *step.Status {
		return &step.Status{State: state, Tasks: []step.TaskStatus{{Exit: cluster.ExitStatus{Code: code}}}}
	}
	for name, c := range map[string]struct {
		h     *jobHere
		own   *step.Status
		next  actionKind // if it is not ready
		ready bool
	}{
		"not begun": {&waits, nil, startFetch, false},
		"running":   {&waits, status(step.Running, 0), nothing, false},
		"there":     {&waits, status(step.Ended, 0), nothing, true},
		"refused":   {&waits, status(step.Ended, 1), fetchFailed, false},
		"confirmed": {with(func(h *jobHere) { h.launch = confirmed }), nil, nothing, true},
		"before":    {with(func(h *jobHere) { h.launch = confirmedBefore }), nil, nothing, true},
		"not asked": {with(func(h *jobHere) {
			h.job = &cluster.Job{Phase: cluster.Starting, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}
		}), nil, nothing, true},
	} {
		next, ready := prefetch(c.h, c.own, nothing, true)
		if ready != c.ready || !ready && next != c.next {
			t.Errorf("%s: %d, ready %v", name, next, ready)
		}
	}
}
