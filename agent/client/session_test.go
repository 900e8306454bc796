package client

import (
	"errors"
	"log/slog"
	"slices"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// startRunner is a runner of which a test sees the calls. It can do nothing else.
type startRunner struct {
	step.Runner
	start func(step.ID) error
	calls []string
}

func (r *startRunner) Start(specs ...step.Spec) error {
	r.calls = append(r.calls, "start")
	return r.start(specs[0].ID)
}

func (r *startRunner) Adopt(step.ID, int) error {
	r.calls = append(r.calls, "adopt")
	return nil
}

func (r *startRunner) Forget(...step.ID) error {
	r.calls = append(r.calls, "forget")
	return nil
}

func (r *startRunner) Signal(_ step.ID, sig syscall.Signal, _ step.Scope) error {
	r.calls = append(r.calls, sig.String())
	return nil
}

// TestAdoptNewest: sessions belong to the job that began last, also if its confirmation has not come back yet; one that is about to
// arrive is waited for.
func TestAdoptNewest(t *testing.T) {
	cl, err := New(Config{Dir: t.TempDir(), Nodes: []NodeConfig{{Name: self}}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	add := func(id cluster.JobID, phase cluster.Phase, change func(*jobHere)) {
		h := here(phase, self)
		h.job.ID, h.job.Spec.User, h.job.Started = id, "alice", now.Add(time.Duration(id))
		change(h)
		cl.nodes[self].jobs[id] = h
	}
	want := func(job cluster.JobID, several bool) {
		t.Helper()
		h, more := cl.newest("alice")
		got := cluster.JobID(0)
		if h != nil {
			got = h.job.ID
		}
		if got != job || more != several {
			t.Errorf("job %d, several: %v; want %d, %v", got, more, job, several)
		}
	}
	add(1, cluster.Running, func(h *jobHere) { h.done = true })
	add(2, cluster.Starting, func(*jobHere) {}) // its prolog is under way
	add(3, cluster.Ending, func(*jobHere) {})
	want(0, false)
	waited := make(chan struct{})
	go func() {
		cl.awaitJob(t.Context(), "alice")
		close(waited)
	}()
	cl.mu.Lock()
	add(4, cluster.Starting, func(h *jobHere) { h.confirmed = true })
	close(cl.arrived)
	cl.arrived = make(chan struct{})
	cl.mu.Unlock()
	<-waited
	want(4, false)
	add(5, cluster.Running, func(*jobHere) {})
	add(6, cluster.Suspended, func(h *jobHere) { h.job.Started = now.Add(-time.Hour) })
	want(5, true)
}

// TestAdoptOrder: the step that a session is put into is known before it begins, so that a job that ends meanwhile ends it too.
func TestAdoptOrder(t *testing.T) {
	id := step.ID{Job: 1, Attempt: 1, Step: cluster.ExternStep, Node: self}
	for _, c := range []struct {
		name   string
		before *step.Status // what is known of the step
		start  func(*Client, *jobHere) error
		calls  []string
		known  bool // afterwards
		fails  bool
	}{
		{name: "all is well", start: func(*Client, *jobHere) error { return nil }, calls: []string{"start", "adopt"}, known: true},
		{name: "its holder was killed before", before: &step.Status{ID: id, State: step.Ended}, start: func(*Client, *jobHere) error { return nil }, calls: []string{"forget", "start", "adopt"}, known: true},
		{name: "it can not be started", start: func(*Client, *jobHere) error { return errors.New("no") }, calls: []string{"start"}, fails: true},
		{name: "the job ends meanwhile", start: func(_ *Client, h *jobHere) error { h.job.Phase = cluster.Ending; return nil }, calls: []string{"start", "killed"}, known: true, fails: true},
		{name: "the job is over and forgotten meanwhile", start: func(c *Client, h *jobHere) error {
			h.done = true
			delete(c.have, id)
			return nil
		}, calls: []string{"start", "killed"}, known: true, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := here(cluster.Running, self)
			h.job.Spec.User = "alice"
			run := &startRunner{}
			cl, err := New(Config{Dir: t.TempDir(), Nodes: []NodeConfig{{Name: self}}, Runner: run}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			close(cl.known)
			close(cl.told)
			cl.nodes[self].jobs[1] = h
			if c.before != nil {
				cl.have[id] = c.before
			}
			run.start = func(got step.ID) error {
				cl.mu.Lock()
				defer cl.mu.Unlock()
				if st := cl.have[got]; st == nil || st.State != step.Starting {
					t.Errorf("when it begins this is known of it: %+v", st)
				}
				return c.start(cl, h)
			}
			who := api.Caller{Identity: cluster.Identity{Admin: true}, PID: 1}
			_, err = cl.adoptSession(t.Context(), who, api.AdoptRequest{User: "alice", PID: 4711})
			if (err != nil) != c.fails || !slices.Equal(run.calls, c.calls) || (cl.have[id] != nil) != c.known {
				t.Errorf("error %v, calls %v, known: %+v", err, run.calls, cl.have[id])
			}
		})
	}
}
