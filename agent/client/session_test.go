package client

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// startRunner is a runner of which a test sees the calls. It can do nothing else.
type startRunner struct {
	step.Runner
	start func(step.ID) error
	adopt error
	calls []string
}

func (r *startRunner) Start(specs ...step.Spec) error {
	r.calls = append(r.calls, "start")
	return r.start(specs[0].ID)
}

func (r *startRunner) Adopt(step.ID, int) error {
	r.calls = append(r.calls, "adopt")
	return r.adopt
}

func (r *startRunner) Forget(...step.ID) error {
	r.calls = append(r.calls, "forget")
	return nil
}

func (r *startRunner) Signal(_ step.ID, sig syscall.Signal, _ step.Scope) error {
	r.calls = append(r.calls, sig.String())
	return nil
}

// A session waits for a job of its user that is about to arrive.
func TestSessionAwaitsJob(t *testing.T) {
	cl := newClient(t, Config{})
	waited := make(chan struct{})
	go func() {
		cl.awaitJob(t.Context(), "alice")
		close(waited)
	}()
	h := here(cluster.Starting, self)
	h.job.Spec.User, h.launch = "alice", confirmed
	cl.mu.Lock()
	cl.nodes[self].jobs[1] = h
	close(cl.arrived)
	cl.arrived = make(chan struct{})
	cl.mu.Unlock()
	<-waited
	if got, _ := cl.newest("alice"); got != h {
		t.Errorf("it has waited, and finds %+v", got)
	}
}

// A job takes sessions in as soon as this client has confirmed it: users see that it runs before this client is
// told so.
func TestNewest(t *testing.T) {
	job := func(id cluster.JobID, phase cluster.Phase, isConfirmed bool) *jobHere {
		h := here(phase, self)
		h.job.ID, h.job.Started = id, now
		h.job.Spec.User = "ann"
		if isConfirmed {
			h.launch = confirmed
		}
		return h
	}
	for _, c := range []struct {
		name    string
		jobs    []*jobHere
		want    cluster.JobID
		several bool
	}{
		{"none", nil, 0, false},
		{"not yet begun", []*jobHere{job(1, cluster.Starting, false)}, 0, false},
		{"confirmed, the servers have not answered yet", []*jobHere{job(1, cluster.Starting, true)}, 1, false},
		{"running", []*jobHere{job(1, cluster.Running, true)}, 1, false},
		{"suspended", []*jobHere{job(1, cluster.Suspended, true)}, 1, false},
		{"ending", []*jobHere{job(1, cluster.Ending, true)}, 0, false},
		{
			"several",
			[]*jobHere{job(1, cluster.Running, true), job(2, cluster.Starting, true), job(3, cluster.Ending, true)},
			2, true,
		},
		{
			"three",
			[]*jobHere{job(1, cluster.Running, true), job(2, cluster.Running, true), job(3, cluster.Running, true)},
			3, true,
		},
	} {
		client := newClient(t, Config{})
		for _, h := range c.jobs {
			client.nodes[self].jobs[h.job.ID] = h
		}
		h, several := client.newest("ann")
		var got cluster.JobID
		if h != nil {
			got = h.job.ID
		}
		if got != c.want || several != c.several {
			t.Errorf("%s: job %d, several %t; want %d, %t", c.name, got, several, c.want, c.several)
		}
	}
}

// TestAdoptOrder: the step that a session is put into is known before it begins, so that a job that ends meanwhile
// ends it too.
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
		{
			name: "all is well", start: func(*Client, *jobHere) error { return nil },
			calls: []string{"start", "adopt"}, known: true,
		},
		{
			name: "its holder was killed before", before: &step.Status{ID: id, State: step.Ended},
			start: func(*Client, *jobHere) error { return nil },
			calls: []string{"forget", "start", "adopt"}, known: true,
		},
		{
			name: "it cannot be started", start: func(*Client, *jobHere) error { return errors.New("no") },
			calls: []string{"start"}, fails: true,
		},
		{
			name:  "the job ends meanwhile",
			start: func(_ *Client, h *jobHere) error { h.job.Phase = cluster.Ending; return nil },
			calls: []string{"start", "killed"}, known: true, fails: true,
		},
		{name: "the job is over and forgotten meanwhile", start: func(c *Client, h *jobHere) error {
			h.launch = clean
			c.have.Drop(id)
			return nil
		}, calls: []string{"start", "killed"}, known: true, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := here(cluster.Running, self)
			h.job.Spec.User = "alice"
			run := &startRunner{}
			cl := readyClient(t, Config{Runner: run}, h)
			if c.before != nil {
				cl.have.Put(id, c.before)
			}
			run.start = func(got step.ID) error {
				cl.mu.Lock()
				defer cl.mu.Unlock()
				if st := cl.have.Get(got); st == nil || st.State != step.Starting {
					t.Errorf("when it begins this is known of it: %+v", st)
				}
				return c.start(cl, h)
			}
			who := api.Caller{Identity: cluster.Identity{Admin: true}, PID: 1}
			_, err := cl.adoptSession(t.Context(), who, api.AdoptRequest{User: "alice", PID: 4711})
			if (err != nil) != c.fails || !slices.Equal(run.calls, c.calls) || (cl.have.Get(id) != nil) != c.known {
				t.Errorf("error %v, calls %v, known: %+v", err, run.calls, cl.have.Get(id))
			}
		})
	}
}

// TestAdoptAfterEnd: a user who ends the job or its external step while a login is under way is one without a job, and
// not let in as after a fault of the node (action_adopt_failure).
func TestAdoptAfterEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase cluster.Phase // when the step has been started
		adopt error
		want  cluster.Code
	}{
		{"the job ends meanwhile", cluster.Ending, nil, cluster.NotFound},
		{"the holder was killed", cluster.Running, fmt.Errorf("the step has ended: %w", unix.ESRCH), cluster.NotFound},
		{"the step was forgotten", cluster.Running, step.ErrUnknown, cluster.NotFound},
		{"the node has no groups", cluster.Running, errors.New("no cgroups"), cluster.Conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := here(cluster.Running, self)
			h.job.Spec.User = "alice"
			run := &startRunner{adopt: c.adopt}
			cl := readyClient(t, Config{Runner: run}, h)
			run.start = func(step.ID) error {
				h.job.Phase = c.phase
				return nil
			}
			who := api.Caller{Identity: cluster.Identity{Admin: true}, PID: 1}
			_, err := cl.adoptSession(t.Context(), who, api.AdoptRequest{User: "alice", PID: 4711})
			var e *cluster.Error
			if !errors.As(err, &e) || e.Code != c.want {
				t.Errorf("error %v, want code %v", err, c.want)
			}
		})
	}
}
