package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// newBurstWorld has a cluster with a script for burst buffers.
func newBurstWorld(t *testing.T, nodes int, change func(*BurstConfig)) *world {
	w := newWorld(t, nodes)
	cfg := *w.s.Config()
	cfg.Burst = &BurstConfig{Directive: "BB_LUA"}
	if change != nil {
		change(cfg.Burst)
	}
	w.ok(root, &Configure{Config: &cfg})
	return w
}

// staged is a batch job with a burst buffer.
func staged(s *JobSpec) { s.Kind, s.BurstBuffer = Batch, "#BB_LUA x" }

// waits has the scheduler find that nothing but its buffer keeps a job.
func (w *world) waits(id JobID) {
	w.t.Helper()
	_, why := w.s.Ready(w.job(id), w.now)
	if why != WaitBurst {
		w.t.Fatalf("job %d waits for %q, want %q", id, why, WaitBurst)
	}
	w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Wait: why}}})
}

// called ends the function that runs for a job, with what it said if it failed.
func (w *world) called(id JobID, call BurstCall, failed string, env ...string) {
	w.t.Helper()
	for h := range w.s.Hooks() {
		if h.Kind == HookBurst && h.Job.ID == id {
			if h.Burst != call || w.job(id).Burst.Hook != h.ID {
				w.t.Fatalf("%s is called for job %d, want %s", h.Burst, id, call)
			}
			w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: h.ID, Failed: failed, Env: env}}})
			return
		}
	}
	w.t.Fatalf("nothing is called for job %d, want %s", id, call)
}

// stands checks where a job and its buffer stand.
func (w *world) stands(id JobID, p Phase, state BurstState) *Job {
	w.t.Helper()
	j := w.want(id, p)
	if j.Burst == nil || j.Burst.State != state {
		w.t.Fatalf("the buffer of job %d: %+v, want %s", id, j.Burst, state)
	}
	runs := 0
	for h := range w.s.Hooks() {
		if h.Kind == HookBurst && h.Job.ID == id {
			runs++
		}
	}
	if want := min(j.Burst.Hook, 1); runs != int(want) {
		w.t.Fatalf("%d functions run for job %d, want %d", runs, id, want)
	}
	return j
}

// stagedIn is a job that has staged in.
func (w *world) stagedIn(change func(*JobSpec)) JobID {
	w.t.Helper()
	id := w.submit(func(s *JobSpec) {
		staged(s)
		if change != nil {
			change(s)
		}
	})
	w.waits(id)
	w.called(id, CallSetup, "")
	w.called(id, CallDataIn, "")
	w.stands(id, Pending, BurstStagedIn)
	return id
}

// running is a job with a buffer that runs.
func (w *world) running(cpu int, node NodeName) JobID {
	w.t.Helper()
	id := w.start(w.stagedIn(nil), TaskAny, cpu, node)
	w.called(id, CallPreRun, "")
	w.report(node, id, NodeReady)
	w.stands(id, Running, BurstRunning)
	return id
}

// TestBurst: a job stages in before it may start, is prepared before its nodes hear of it, and stages out when it is
// over and has given its nodes back.
func TestBurst(t *testing.T) {
	w := newBurstWorld(t, 1, nil)
	id := w.submit(staged)
	w.stands(id, Pending, BurstPending)
	w.waits(id)
	if j := w.stands(id, Pending, BurstStagingIn); j.Wait != WaitStageIn || !j.Burst.Made.Equal(w.now) {
		t.Errorf("while it stages in: %q, %+v", j.Wait, j.Burst)
	}
	w.called(id, CallSetup, "")
	w.stands(id, Pending, BurstStagingIn)
	if _, why := w.s.Ready(w.job(id), w.now); why != WaitStageIn {
		t.Errorf("while data_in runs: %q", why)
	}
	w.called(id, CallDataIn, "")
	w.stands(id, Pending, BurstStagedIn)
	w.start(id, TaskAny, 0, "n0")
	if j := w.stands(id, Starting, BurstPreRun); !j.Preparing() {
		t.Errorf("with its nodes: %+v", j.Prelude)
	}
	w.pass(time.Minute)
	w.called(id, CallPreRun, "", "A=b")
	j := w.stands(id, Starting, BurstRunning)
	if j.Preparing() || !j.Prelude.Over.Equal(w.now) || strings.Join(j.Burst.Env, " ") != "A=b" {
		t.Errorf("when it is prepared: %+v %+v", j.Prelude, j.Burst)
	}
	w.report("n0", id, NodeReady)
	w.over(id, 3)
	if j = w.stands(id, Ended, BurstPostRun); !StagesOut(j) || j.Outcome != Failed || len(w.s.Load("n0").Jobs) != 0 {
		t.Errorf("after its end: %v %+v on %v", j.Outcome, j.Burst, w.s.Load("n0").Jobs)
	}
	w.called(id, CallPostRun, "")
	w.pass(2 * w.s.Config().MinJobAge)
	w.due()
	if j = w.stands(id, Ended, BurstStagingOut); !StagesOut(j) {
		t.Errorf("while data_out runs: %+v", j.Burst)
	}
	w.called(id, CallDataOut, "")
	if j = w.stands(id, Ended, BurstTeardown); StagesOut(j) {
		t.Errorf("in the teardown: %+v", j.Burst)
	}
	w.called(id, CallTeardown, "")
	w.stands(id, Ended, BurstComplete)
	w.due()
	if _, ok := w.s.Job(id); ok {
		t.Error("the job is there though it was over long ago")
	}
}

// TestBurstNone: without the script the text is no more than that.
func TestBurstNone(t *testing.T) {
	w := newWorld(t, 1)
	if j := w.job(w.submit(staged)); j.Burst != nil {
		t.Errorf("without a script: %+v", j.Burst)
	}
	w = newBurstWorld(t, 1, nil)
	spec := *w.job(w.submit(staged)).Spec
	w.refused(alice, &SubmitHet{Specs: []*JobSpec{&spec, {Layout: &Layout{}, Name: "b", UID: alice.UID, User: "alice",
		Kind: Batch}}}, ErrBurst)
}

// TestBurstFailures: what follows when a function fails, and what becomes of the job then.
func TestBurstFailures(t *testing.T) {
	tears := func(c *BurstConfig) { c.TearFailed = true }
	const said = "burst_buffer/lua: slurm_bb_"
	heldFor := func(w *world, id JobID, why string) {
		t.Helper()
		if j := w.job(id); j.Held != HeldAdmin || j.Burst.Why != why || j.Priority != 0 {
			t.Fatalf("job %d: held %v, %+v", id, j.Held, j.Burst)
		}
	}
	for _, row := range []struct {
		name   string
		change func(*BurstConfig)
		do     func(w *world)
	}{
		{"setup", nil, func(w *world) {
			id := w.submit(staged)
			w.waits(id)
			w.called(id, CallSetup, "no space")
			w.stands(id, Pending, BurstStagingIn)
			heldFor(w, id, said+"setup: no space")
			w.refused(alice, &HoldJobs{Ref: Ref{Job: id}}, ErrAccess)
			w.ok(root, &HoldJobs{Ref: Ref{Job: id}})
			w.called(id, CallTeardown, "")
			w.stands(id, Pending, BurstPending)
			w.waits(id)
			w.called(id, CallSetup, "")
			w.stands(id, Pending, BurstStagingIn)
		}},
		{"data_in", nil, func(w *world) {
			id := w.submit(staged)
			w.waits(id)
			w.called(id, CallSetup, "")
			w.called(id, CallDataIn, "gone")
			w.stands(id, Pending, BurstStagingIn)
			heldFor(w, id, said+"data_in: gone")
			w.ok(alice, &Cancel{Ref: Ref{Job: id}})
			w.stands(id, Ended, BurstTeardown)
			w.called(id, CallTeardown, "")
			w.stands(id, Ended, BurstComplete)
		}},
		{"data_in, and is torn down", tears, func(w *world) {
			id := w.submit(staged)
			w.waits(id)
			w.called(id, CallSetup, "")
			w.called(id, CallDataIn, "gone")
			w.called(id, CallTeardown, "")
			w.stands(id, Pending, BurstPending)
			heldFor(w, id, said+"data_in: gone")
		}},
		{"pre_run", nil, func(w *world) {
			id := w.start(w.stagedIn(nil), TaskAny, 0, "n0")
			w.called(id, CallPreRun, "no")
			w.stands(id, Pending, BurstTeardown)
			heldFor(w, id, PreRunError)
			if n := len(w.s.Load("n0").Jobs); n != 0 {
				t.Errorf("%d jobs are on the node", n)
			}
			w.called(id, CallTeardown, "")
			w.stands(id, Pending, BurstPending)
			w.ok(root, &HoldJobs{Ref: Ref{Job: id}})
			w.pass(time.Hour)
			w.waits(id)
		}},
		{"post_run", nil, func(w *world) {
			id := w.running(0, "n0")
			w.over(id, 0)
			w.called(id, CallPostRun, "no")
			if j := w.stands(id, Ended, BurstStagingOut); !StagesOut(j) || j.Burst.Why != said+"post_run: no" {
				t.Errorf("%+v", j.Burst)
			}
			w.ok(alice, &Cancel{Ref: Ref{Job: id}})
			w.stands(id, Ended, BurstStagingOut)
			w.ok(alice, &Cancel{Ref: Ref{Job: id}, Hurry: true})
			if j := w.stands(id, Ended, BurstTeardown); !StagesOut(j) {
				t.Errorf("%+v", j.Burst)
			}
			w.called(id, CallTeardown, "")
			if j := w.stands(id, Ended, BurstComplete); StagesOut(j) || j.Outcome != Completed {
				t.Errorf("%v %+v", j.Outcome, j.Burst)
			}
			w.refused(alice, &Cancel{Ref: Ref{Job: id}, Hurry: true}, ErrFinished)
		}},
		{"data_out, and is torn down", tears, func(w *world) {
			id := w.running(0, "n0")
			w.over(id, 0)
			w.called(id, CallPostRun, "")
			w.called(id, CallDataOut, "no")
			w.called(id, CallTeardown, "")
			w.stands(id, Ended, BurstComplete)
		}},
		{"job_teardown, until it is given up", nil, func(w *world) {
			id := w.running(0, "n0")
			w.over(id, 0)
			w.called(id, CallPostRun, "")
			w.called(id, CallDataOut, "")
			for i := range maxTeardowns {
				w.stands(id, Ended, BurstTeardown)
				w.called(id, CallTeardown, fmt.Sprint(i))
			}
			j := w.stands(id, Ended, BurstComplete)
			if j.Burst.Why != "burst_buffer/lua: teardown: 2" {
				t.Errorf("%+v", j.Burst)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) { row.do(newBurstWorld(t, 1, row.change)) })
	}
}

// TestBurstCancelled: whatever runs for a job that is cancelled is stopped; one that has not run only cleans up.
func TestBurstCancelled(t *testing.T) {
	for _, row := range []struct {
		name  string
		hurry bool
		do    func(w *world) JobID
		then  []BurstCall
	}{
		{"before it stages in", false, func(w *world) JobID { return w.submit(staged) }, nil},
		{"while it stages in", false, func(w *world) JobID {
			id := w.submit(staged)
			w.waits(id)
			return id
		}, []BurstCall{CallTeardown}},
		{"when it has staged in", false, func(w *world) JobID { return w.stagedIn(nil) }, []BurstCall{CallTeardown}},
		{"while it is prepared", false, func(w *world) JobID {
			return w.start(w.stagedIn(nil), TaskAny, 0, "n0")
		}, []BurstCall{CallTeardown}},
		{"while it runs", false, func(w *world) JobID { return w.running(0, "n0") },
			[]BurstCall{CallPostRun, CallDataOut, CallTeardown}},
		{"in a hurry", true, func(w *world) JobID { return w.running(0, "n0") }, []BurstCall{CallTeardown}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newBurstWorld(t, 1, nil)
			id := row.do(w)
			w.ok(alice, &Cancel{Ref: Ref{Job: id}, Hurry: row.hurry})
			if w.job(id).Phase == Ending {
				w.report("n0", id, NodeDone)
			}
			for _, call := range row.then {
				w.called(id, call, "")
			}
			if j := w.stands(id, Ended, BurstComplete); j.Outcome != Cancelled {
				t.Errorf("it is %v", j.Outcome)
			}
		})
	}
}

// TestBurstRequeued: a job that goes back into the queue stages out and is torn down there, and stages in again.
func TestBurstRequeued(t *testing.T) {
	w := newBurstWorld(t, 1, nil)
	id := w.running(0, "n0")
	w.ok(root, &Requeue{Ref: Ref{Job: id}})
	w.report("n0", id, NodeDone)
	w.stands(id, Pending, BurstPostRun)
	w.pass(time.Hour)
	if _, why := w.s.Ready(w.job(id), w.now); why != WaitBurstOperation {
		t.Errorf("while it stages out: %q", why)
	}
	w.called(id, CallPostRun, "")
	w.called(id, CallDataOut, "")
	w.called(id, CallTeardown, "")
	w.stands(id, Pending, BurstPending)
	w.waits(id)
	w.called(id, CallSetup, "")
	w.ok(root, &Cancel{Ref: Ref{Job: id}})
	w.called(id, CallTeardown, "")
	w.ok(root, &Requeue{Ref: Ref{Job: id}})
	w.stands(id, Pending, BurstPending)
}

// member is the record of a task of an array.
func (w *world) member(array JobID, task int) JobID {
	w.t.Helper()
	for m := range w.s.Members(array) {
		if m.Task == task {
			return m.ID
		}
	}
	w.t.Fatalf("array %d has no task %d of its own", array, task)
	return 0
}

// TestBurstArray: each task has a buffer of its own, and stages in as a record of its own.
func TestBurstArray(t *testing.T) {
	w := newBurstWorld(t, 1, nil)
	id := w.submit(func(s *JobSpec) {
		staged(s)
		s.Array = &ArraySpec{Tasks: RangeIDSet(1, maxStaged+2)}
	})
	w.waits(id)
	begun := 0
	for j := range w.s.Members(id) {
		if j.Burst.State == BurstStagingIn {
			begun++
		}
	}
	if j := w.stands(id, Pending, BurstPending); begun != maxStaged || j.Tasks.Len() != 2 || j.Wait != NoReason {
		t.Errorf("%d tasks stage in, %v wait with %q", begun, j.Tasks, j.Wait)
	}
	if _, why := w.s.Ready(w.job(id), w.now); why != WaitStageIn {
		t.Errorf("while as many stage in as may: %q", why)
	}
	one, two := w.member(id, 1), w.member(id, 2)
	w.called(one, CallSetup, "no") // it is held
	w.called(two, CallSetup, "")
	w.called(two, CallDataIn, "")
	w.start(two, TaskAny, 0, "n0")
	w.waits(id)
	w.stands(id, Pending, BurstStagingIn)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.stands(id, Ended, BurstTeardown)
}

// TestBurstDepend: jobs with a buffer, and those that say so, wait for what their parent stages out.
func TestBurstDepend(t *testing.T) {
	w := newBurstWorld(t, 1, nil)
	parent := w.running(0, "n0")
	after := func(kind DependType, burst bool) JobID {
		return w.submit(func(s *JobSpec) {
			s.Kind, s.Depends = Batch, Depends{Terms: []Depend{{Type: kind, Job: parent, Task: TaskAny}}}
			if burst {
				staged(s)
			}
		})
	}
	plain, with, says := after(AfterAny, false), after(AfterOK, true), after(AfterBurst, false)
	begun := after(After, true)
	reason := func(id JobID) Reason { _, why := w.s.Ready(w.job(id), w.now); return why }
	w.over(parent, 0)
	if a, b, c, d := reason(plain), reason(with), reason(says), reason(begun); a != NoReason || b != WaitDependency ||
		c != WaitDependency || d != WaitBurst {
		t.Errorf("while it stages out: %q %q %q %q", a, b, c, d)
	}
	w.called(parent, CallPostRun, "")
	w.called(parent, CallDataOut, "")
	if a, b := reason(with), reason(says); a != WaitBurst || b != NoReason {
		t.Errorf("when it has staged out: %q %q", a, b)
	}
}

// TestBurstLate: the end of a function that was stopped changes nothing, nor does one that is told twice.
func TestBurstLate(t *testing.T) {
	w := newBurstWorld(t, 1, nil)
	id := w.submit(staged)
	w.waits(id)
	old := w.job(id).Burst.Hook
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: old, Failed: "killed"}}})
	if j := w.stands(id, Ended, BurstTeardown); j.Burst.Why != "" {
		t.Errorf("%+v", j.Burst)
	}
}
