package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// told lists the waiting messages as KIND EVENT JOB, and takes them.
func (w *world) told() string {
	w.t.Helper()
	var out []string
	var done HooksDone
	for e := range w.s.Hooks() {
		text := fmt.Sprint(e.Kind, " ", e.Event, " ", e.Job.ID)
		if a := e.Array; a != nil {
			text += fmt.Sprintf(" all [%d-%d] %d", a.MinExit, a.MaxExit, a.Outcome)
		}
		out = append(out, text)
		done.Ends = append(done.Ends, HookEnd{ID: e.ID})
	}
	w.ok(sys, &done)
	return strings.Join(out, ", ")
}

func (w *world) wantTold(when, want string) {
	w.t.Helper()
	if got := w.told(); got != want {
		w.t.Errorf("%s: told %q, want %q", when, got, want)
	}
}

var allEvents = []string{"BEGIN", "END", "FAIL", "REQUEUE", "INVALID_DEPEND"}

// TestMailEvents: users are told what they asked for, as the reference does.
func TestMailEvents(t *testing.T) {
	w := newWorld(t, 2)
	mailed := func(types ...string) func(*JobSpec) {
		return func(s *JobSpec) { s.MailType, s.MailUser = types, "alice" }
	}
	id := w.submit(mailed(allEvents...))
	w.run(id, 0, "n0")
	w.wantTold("at the start", "mail BEGIN 1")
	w.over(id, 0)
	w.wantTold("at the end", "mail END 1")
	id = w.submit(mailed("END"))
	w.run(id, 0, "n0")
	w.over(id, 3)
	w.wantTold("at a failure that is not asked for", "")
	id = w.submit(mailed("FAIL"))
	w.run(id, 0, "n0")
	w.over(id, 3)
	w.wantTold("at a failure", "mail FAIL 3")
	id = w.submit(mailed(allEvents...))
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.wantTold("cancelled before it began", "mail END 4")
	id = w.submit(mailed("REQUEUE"))
	w.run(id, 0, "n0")
	w.ok(root, &Requeue{Ref: Ref{Job: id}})
	w.report("n0", id, NodeDone)
	w.wantTold("at a requeue", "mail REQUEUE 5")
	w.ok(root, &Cancel{Ref: Ref{Job: id}})
	bad := w.submit(nil)
	id = w.submit(func(s *JobSpec) {
		mailed(allEvents...)(s)
		s.Depends = Depends{Terms: []Depend{{Type: AfterOK, Job: bad, Task: TaskAny}}}
	})
	w.run(bad, 0, "n0")
	w.over(bad, 1)
	w.wantTold("when the dependency failed", fmt.Sprint("mail INVALID_DEPEND ", id))
	w.submit(func(s *JobSpec) { s.Notify = "https://x" })
	last := w.submit(func(s *JobSpec) { s.Notify, s.MailType = "https://x", []string{"END"} })
	w.ok(alice, &Cancel{Ref: Ref{Job: last - 1}})
	w.ok(alice, &Cancel{Ref: Ref{Job: last}})
	w.wantTold("by calls", fmt.Sprintf("call END %d, mail END %d, call END %d", last-1, last, last))
	cfg := *w.s.Config()
	cfg.MailProg = ""
	w.ok(root, &Configure{Config: &cfg})
	id = w.submit(mailed(allEvents...))
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.wantTold("without a mail program", "")
	w.refused(alice, &HooksDone{Ends: []HookEnd{{ID: 1}}}, ErrUser)
}

// TestMailOfArrays: an array is told of as a whole, unless its tasks are asked for.
func TestMailOfArrays(t *testing.T) {
	w := newWorld(t, 2)
	array := func(types ...string) JobID {
		return w.submit(func(s *JobSpec) {
			s.MailType, s.Array = types, &ArraySpec{Tasks: RangeIDSet(0, 2)}
		})
	}
	a := array(allEvents...)
	var tasks []JobID
	for i := range 3 {
		id := w.start(a, i, i, "n0")
		w.report("n0", id, NodeReady)
		tasks = append(tasks, id)
	}
	w.wantTold("at the start", fmt.Sprintf("mail BEGIN %d all [0-0] 0", tasks[0]))
	w.over(tasks[0], 0)
	w.over(tasks[1], 4)
	w.wantTold("while tasks run", "")
	w.over(tasks[2], 2)
	w.wantTold("at the end", fmt.Sprintf("mail FAIL %d all [0-4] 0", a))
	a = array(allEvents...)
	for i, code := range []int{3, 0, 1} {
		id := w.start(a, i, i, "n0")
		w.report("n0", id, NodeReady)
		if i == 0 {
			w.wantTold("at the start", fmt.Sprintf("mail BEGIN %d all [0-0] 0", id))
		}
		w.over(id, code)
		w.pass(time.Hour)
		w.due() // its record leaves
		if i < 2 {
			w.wantTold("of a task alone", "")
		}
	}
	w.wantTold("at the end, of those that have left as well", fmt.Sprintf("mail FAIL %d all [0-3] 0", a))
	a = array("BEGIN", "ARRAY_TASKS")
	for i := range 2 {
		w.report("n0", w.start(a, i, i, "n0"), NodeReady)
	}
	if got := w.told(); strings.Count(got, "mail BEGIN") != 2 || strings.Contains(got, "all") {
		t.Errorf("of each task: %q", got)
	}
}

// TestReminders: users are told how much of the time is over, once each.
func TestReminders(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(func(s *JobSpec) {
		s.Limit, s.MailType = 100*time.Minute, []string{"TIME_LIMIT", "TIME_LIMIT_50", "TIME_LIMIT_90"}
	})
	w.run(id, 0, "n0")
	for _, c := range []struct {
		minute int
		want   string
	}{
		{49, ""}, {50, "mail TIME_LIMIT_50 1"}, {89, ""}, {90, "mail TIME_LIMIT_90 1"}, {99, ""},
		{100, "mail TIME_LIMIT 1"},
	} {
		w.now = epoch.Add(time.Duration(c.minute) * time.Minute)
		if at := w.s.NextTimer(w.now); c.minute < 100 && (at.IsZero() || at.After(epoch.Add(100*time.Minute))) {
			t.Errorf("at minute %d the clock says %v", c.minute, at)
		}
		w.due()
		w.wantTold(fmt.Sprint("at minute ", c.minute), c.want)
	}
}

// TestHooksAreBounded: messages are left out where too many wait, and what jobs depend on is not.
func TestHooksAreBounded(t *testing.T) {
	w := newWorld(t, 1)
	tx := &tx{tables: &w.s.tables, at: w.now, by: sys}
	j := &Job{ID: 1, Spec: &JobSpec{Layout: &Layout{}, MailType: allEvents}}
	for range maxHooks + 5 {
		tx.inform(EventEnd, j, nil)
	}
	if n, full := w.s.HookCount(); n != maxHooks || !full {
		t.Errorf("%d messages wait, full is %v", n, full)
	}
	tx.send(Hook{Kind: HookEpilog, Job: j})
	if n, _ := w.s.HookCount(); n != maxHooks+1 {
		t.Errorf("an epilog was left out: %d hooks", n)
	}
}

// TestServerProlog: a job whose prolog runs at the server is not begun, nor late; it begins when that succeeds, and
// goes back into the queue, or ends, when it fails.
func TestServerProlog(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.PrologServer, cfg.EpilogServer = "/x", "/y"
	w.ok(root, &Configure{Config: &cfg})
	first := func() *Hook {
		all := slices.Collect(w.s.Hooks())
		if len(all) != 1 {
			t.Fatalf("%d hooks, want one", len(all))
		}
		return all[0]
	}
	id := w.start(w.submit(nil), TaskAny, 0, "n0")
	e := first()
	if e.Kind != HookProlog || e.Job.ID != id || !w.job(id).Preparing() {
		t.Fatalf("hook %+v", e)
	}
	w.pass(time.Hour)
	for range w.s.Unconfirmed(w.now) {
		t.Error("a job is late that its nodes have not heard of")
	}
	w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: e.ID}}})
	if w.job(id).Preparing() || !w.job(id).LaunchLimit(w.s.Config()).After(w.now) {
		t.Errorf("after the prolog: %+v, launch until %v", w.job(id).Prelude, w.job(id).LaunchLimit(w.s.Config()))
	}
	w.report("n0", id, NodeReady)
	w.want(id, Running)
	w.over(id, 0)
	if e = first(); e.Kind != HookEpilog || e.Job.ID != id || e.Job.Phase != Ended {
		t.Errorf("hook at the end: %+v", e)
	}
	w.told()

	id = w.start(w.submit(func(s *JobSpec) { s.Kind = Batch }), TaskAny, 0, "n0")
	w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: first().ID, Failed: "exit status 1"}}})
	if j := w.want(id, Pending); j.Held != NotHeld || j.Restarts != 1 || !j.Eligible.Equal(w.now.Add(prologPause)) {
		t.Errorf("a batch job whose prolog failed: %+v", j)
	}
	w.told()
	id = w.start(w.submit(func(s *JobSpec) { s.Kind = SrunJob }), TaskAny, 0, "n0")
	prolog := first().ID
	w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: prolog, Failed: "exit status 1"}}})
	if j := w.want(id, Ended); j.Outcome != Cancelled || j.WaitNote != ServerPrologError {
		t.Errorf("an srun whose prolog failed: %+v", j)
	}
	w.told()
	id = w.start(w.submit(nil), TaskAny, 0, "n0")
	e = first()
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.want(id, Ended)
	w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: e.ID}}})
	w.want(id, Ended)
}

// TestRequeueExit: a batch job whose exit code the site has named goes back into the queue, held where it says so.
func TestRequeueExit(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.RequeueExit, cfg.RequeueExitHold = NewIDSet(100, 101), NewIDSet(102)
	w.ok(root, &Configure{Config: &cfg})
	ends := func(code int) *Job {
		id := w.run(w.submit(func(s *JobSpec) { s.Kind = Batch }), 0, "n0")
		w.seq["n0"]++
		w.ok(sys, &Report{Node: "n0", Seq: w.seq["n0"], Updates: []Update{
			{Kind: BatchOver, Job: id, Attempt: 1, At: w.now, Exit: ExitStatus{Code: code}},
			{Kind: NodeDone, Job: id, Attempt: 1, At: w.now}}})
		return w.job(id)
	}
	if j := ends(101); j.Phase != Pending || j.Held != NotHeld || j.Restarts != 1 {
		t.Errorf("after 101: %+v", j)
	}
	if j := ends(102); j.Phase != Pending || j.Held != HeldUser || !j.SpecialExit {
		t.Errorf("after 102: %+v", j)
	}
	if j := ends(1); j.Phase != Ended || j.Outcome != Failed {
		t.Errorf("after 1: %+v", j)
	}
}
