package client

import (
	"reflect"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// TestScripts: what a job's prolog and epilog ask for at each point of their lives; one that could not even be
// started has failed.
func TestScripts(t *testing.T) {
	now := time.Now()
	cfg := &cluster.Config{
		NodePrograms: cluster.NodePrograms{Prolog: "/p", Epilog: "/e", PrologTimeout: time.Minute},
	}
	h := newHere(self, &cluster.Job{Phase: cluster.Starting})
	status := func(state step.State, age time.Duration, code int, text string) *step.Status {
		return &step.Status{
			State: state,
			Tasks: []step.TaskStatus{{Started: now.Add(-age), Exit: cluster.ExitStatus{Code: code}, Error: text}},
		}
	}
	for name, c := range map[string]struct {
		own    *step.Status
		prolog actionKind // if it is not ready
		ready  bool
		epilog actionKind
		clean  bool
	}{
		"not begun":           {nil, startProlog, false, startEpilog, false},
		"running":             {status(step.Running, time.Second, 0, ""), nothing, false, nothing, false},
		"running too long":    {status(step.Running, time.Hour, 0, ""), killScript, false, killScript, false},
		"well":                {status(step.Ended, time.Second, 0, ""), prologFailed, true, 0, true},
		"failed":              {status(step.Ended, time.Second, 1, ""), prologFailed, false, 0, true},
		"could not start":     {status(step.Ended, time.Second, 0, "no supervisor"), prologFailed, false, 0, true},
		"lost with its tasks": {&step.Status{State: step.Ended}, prologFailed, false, 0, true},
	} {
		var again time.Time
		next, ready := prolog(h, c.own, cfg, now, func(at time.Time) { again = at })
		if ready != c.ready || !ready && next != c.prolog {
			t.Errorf("%s: prolog %d, ready %v", name, next, ready)
		}
		if name == "running" && !again.Equal(now.Add(59*time.Second)) {
			t.Errorf("%s: looked at again at %v", name, again)
		}
		if next, clean := epilog(h, c.own, cfg, now, func(time.Time) {}); clean != c.clean || !clean && next != c.epilog {
			t.Errorf("%s: epilog %d, clean %v", name, next, clean)
		}
	}
	h.launch = confirmed
	if _, ready := prolog(h, nil, cfg, now, nil); !ready {
		t.Error("a job that was confirmed waits for a prolog")
	}
}

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

// TestPrefetchInFence: what gets a job's image runs programs as the job's user, and these have what the job has.
func TestPrefetchInFence(t *testing.T) {
	cl := newClient(t, Config{Spool: t.TempDir()})
	h := here(cluster.Starting, self)
	h.job.Spec.Prefetch = &cluster.Prefetch{Image: "r#i"}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.config.MemAlloc = true
	h.job.Alloc.Shares = []cluster.Share{{Node: self, CPUs: cluster.NewIDSet(0), MemMB: 100}}
	got, err := cl.build.fetchSpec(h, h.part(fetchStep))
	if err != nil {
		t.Fatal(err)
	}
	session := cl.build.sessionSpec(h, h.part(cluster.ExternStep))
	if got.Fence.MemMB != 100 || !reflect.DeepEqual(got.Fence, session.Fence) {
		t.Errorf("it may use %+v, and a session in the job %+v", got.Fence, session.Fence)
	}
}
