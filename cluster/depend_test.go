package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func after(kind DependType, ids ...JobID) func(*JobSpec) {
	return func(s *JobSpec) {
		for _, id := range ids {
			s.Depends.Terms = append(s.Depends.Terms, Depend{Type: kind, Job: id, Task: TaskAny})
		}
	}
}

// TestDependencyTypes runs a parent to an end and asks what becomes of a child.
func TestDependencyTypes(t *testing.T) {
	for _, c := range []struct {
		kind          DependType
		begun         bool // may start once the parent runs
		ok, failed    Reason
		cancelPending Reason
	}{
		{After, true, NoReason, NoReason, NoReason},
		{AfterAny, false, NoReason, NoReason, NoReason},
		{AfterOK, false, NoReason, WaitDependencyNever, WaitDependencyNever},
		{AfterNotOK, false, WaitDependencyNever, NoReason, NoReason},
		{AfterCorr, false, NoReason, WaitDependencyNever, WaitDependencyNever},
		{AfterBurst, false, NoReason, NoReason, NoReason},
	} {
		for name, end := range map[string]func(*world, JobID){
			"ok":     func(w *world, p JobID) { w.run(p, 0, "n0"); w.over(p, 0) },
			"failed": func(w *world, p JobID) { w.run(p, 0, "n0"); w.over(p, 1) },
			"cancel": func(w *world, p JobID) { w.ok(alice, &Cancel{Ref: Ref{Job: p}}) },
		} {
			t.Run(string(c.kind)+" "+name, func(t *testing.T) {
				w := newWorld(t, 1)
				p := w.submit(nil)
				child, early := w.submit(after(c.kind, p)), w.submit(after(c.kind, p))
				w.wantWait(child, WaitDependency)
				if name == "ok" {
					w.run(p, 0, "n0")
					if w.ready(early) != c.begun {
						t.Errorf("ready while the parent runs: %v", !c.begun)
					}
					w.over(p, 0)
				} else {
					end(w, p)
				}
				want := map[string]Reason{"ok": c.ok, "failed": c.failed, "cancel": c.cancelPending}[name]
				w.wantWait(child, want)
				if w.ready(child) != (want == NoReason) {
					t.Errorf("ready: %v", w.ready(child))
				}
				late := w.submit(after(c.kind, p))
				w.wantWait(late, want) // judged by the result at once
			})
		}
	}
}

func TestDependAnyOf(t *testing.T) {
	w := newWorld(t, 1)
	a, b := w.submit(nil), w.submit(nil)
	or := func(s *JobSpec) { after(AfterOK, a, b)(s); s.Depends.Any = true }
	child, both := w.submit(or), w.submit(after(AfterOK, a, b))
	w.ok(alice, &Cancel{Ref: Ref{Job: a}})
	w.wantWait(child, WaitDependency)
	w.wantWait(both, WaitDependencyNever)
	w.run(b, 0, "n0")
	w.over(b, 0)
	w.wantWait(child, NoReason)
	if !w.ready(child) || w.ready(both) {
		t.Error("any one is enough for ?, all are needed for ,")
	}
}

func TestDependPlusTime(t *testing.T) {
	w := newWorld(t, 1)
	p := w.submit(nil)
	plus := func(s *JobSpec) { after(After, p)(s); s.Depends.Terms[0].Plus = 5 * time.Minute }
	child := w.submit(plus)
	arr := w.submit(func(s *JobSpec) { plus(s); s.Array = &ArraySpec{Tasks: RangeIDSet(0, 1)} })
	w.run(p, 0, "n0")
	if w.ready(child) || w.ready(arr) {
		t.Error("five minutes have not passed")
	}
	at := w.now.Add(5 * time.Minute)
	if next := w.s.NextTimer(w.now); !next.Equal(at) {
		t.Errorf("next timer %s, want %s", next, at)
	}
	w.now = at
	if !w.ready(child) || !w.ready(arr) { // no entry has moved the state's own time
		t.Error("five minutes have passed")
	}
	w.start(child, TaskAny, 1, "n0")
	w.start(arr, 0, 2, "n0")
}

func TestDependArrays(t *testing.T) {
	w := newWorld(t, 1)
	array := func(s *JobSpec) { s.Array = &ArraySpec{Tasks: RangeIDSet(0, 1)} }
	p := w.submit(array)
	all, bad := w.submit(after(AfterOK, p)), w.submit(after(AfterNotOK, p))
	corr := w.submit(func(s *JobSpec) { array(s); after(AfterCorr, p)(s) })
	one := w.submit(func(s *JobSpec) { after(AfterOK, p)(s); s.Depends.Terms[0].Task = 1 })
	if !w.job(all).Depends.Terms[0].Array || w.job(one).Depends.Terms[0].Array || !w.job(corr).Depends.Terms[0].Array {
		t.Error("an array as a whole is told of as N_*, a task is not")
	}
	t1 := w.start(p, 1, 0, "n0")
	w.report("n0", t1, NodeReady)
	w.over(t1, 0)
	if !w.ready(one) || w.ready(all) || w.ready(bad) {
		t.Error("only the child of task 1 may start")
	}
	if tasks, why := w.s.Ready(w.job(corr), w.now); tasks.String() != "1" || why != NoReason {
		t.Errorf("aftercorr: tasks %q may start (%s), want 1", tasks, why)
	}
	t0 := w.start(p, 0, 0, "n0")
	w.report("n0", t0, NodeReady)
	w.over(t0, 7)
	w.wantWait(all, WaitDependencyNever)
	if !w.ready(bad) {
		t.Error("a task failed")
	}
	if tasks, _ := w.s.Ready(w.job(corr), w.now); tasks.String() != "1" {
		t.Errorf("aftercorr: tasks %q may start, task 0 failed", tasks)
	}
}

// TestDependTasksGone: how a task ended is known for as long as any record of its array is left, and what waits for a
// counterpart that has failed never starts, not even once all is forgotten (as 22.05 does, which tells so at once).
func TestDependTasksGone(t *testing.T) {
	w := newWorld(t, 1)
	yes := true
	array := func(s *JobSpec) { s.Array = &ArraySpec{Tasks: RangeIDSet(1, 4)} }
	p := w.submit(array)
	ran := func(task, code int) {
		id := w.start(p, task, task, "n0")
		w.report("n0", id, NodeReady)
		w.over(id, code)
	}
	corr := func(change func(*JobSpec)) JobID {
		return w.submit(func(s *JobSpec) { array(s); after(AfterCorr, p)(s); change(s) })
	}
	nameOf := func(array JobID, task int) *Job {
		for m := range w.s.Members(array) {
			if m.Task == task || m.Tasks.Has(task) {
				return m
			}
		}
		return nil
	}
	early := corr(func(*JobSpec) {})
	killed := corr(func(s *JobSpec) { s.KillInvalidDepend = &yes })
	ran(1, 3)
	ran(2, 0)
	late := corr(func(*JobSpec) {})
	check := func(when string) {
		t.Helper()
		for _, a := range []JobID{early, late} {
			if j := nameOf(a, 1); j == nil || !j.Tasks.Empty() || j.Wait != WaitDependencyNever || w.ready(j.ID) {
				t.Errorf("%s, task 1 of array %d, whose counterpart failed: %+v", when, a, j)
			}
			if j := nameOf(a, 3); j == nil || j.Wait == WaitDependencyNever {
				t.Errorf("%s, task 3 of array %d, whose counterpart waits: %+v", when, a, j)
			}
		}
	}
	check("at once")
	w.due()
	if j := nameOf(killed, 1); j == nil || j.Phase != Ended || j.Outcome != Cancelled {
		t.Errorf("--kill-on-invalid-dep: %+v", j)
	}
	if j := nameOf(killed, 3); j == nil || j.Phase != Pending {
		t.Errorf("the others of it: %+v", j)
	}
	w.pass(time.Hour)
	w.due()
	if n := len(slices.Collect(w.s.Members(p))); n != 1 {
		t.Fatalf("%d records of the array are left, of tasks 3 and 4 one should be", n)
	}
	check("after an hour")
	awaited := func(task int, want string) {
		t.Helper()
		list, ok, failed := w.s.Awaited(Depend{Type: AfterAny, Job: p, Task: task})
		if got := fmt.Sprintf("%d records, %s well, %s not", len(list), ok, failed); got != want {
			t.Errorf("what is known of task %d: %s, want %s", task, got, want)
		}
	}
	awaited(TaskAny, "1 records, 2 well, 1 not")
	awaited(1, "0 records,  well, 1 not")
	awaited(3, "1 records,  well,  not")
	one := func(kind DependType, task int) JobID {
		return w.submit(func(s *JobSpec) { after(kind, p)(s); s.Depends.Terms[0].Task = task })
	}
	for _, c := range []struct {
		kind DependType
		task int
		wait Reason
	}{
		{AfterOK, 1, WaitDependencyNever}, {AfterNotOK, 1, NoReason}, {AfterAny, 1, NoReason}, {After, 1, NoReason},
		{AfterOK, 2, NoReason}, {AfterNotOK, 2, WaitDependencyNever}, {AfterOK, 3, WaitDependency},
		{AfterOK, TaskAny, WaitDependencyNever}, {AfterNotOK, TaskAny, WaitDependency},
		{AfterAny, TaskAny, WaitDependency},
	} {
		if j := w.job(one(c.kind, c.task)); j.Wait != c.wait {
			t.Errorf("%s of task %d: %q, want %q", c.kind, c.task, j.Wait, c.wait)
		}
	}
	if j := corr(func(*JobSpec) {}); nameOf(j, 1).Wait != WaitDependencyNever || nameOf(j, 2).Wait != NoReason {
		t.Errorf("who comes late: %+v, %+v", nameOf(j, 1), nameOf(j, 2))
	}
	failed := w.submit(after(AfterNotOK, p))
	ran(3, 0)
	awaited(TaskAny, "2 records, 2 well, 1 not")
	ran(4, 0)
	if !w.ready(failed) {
		t.Error("a task of the array had failed")
	}
	if tasks, _ := w.s.Ready(nameOf(early, 3), w.now); tasks.String() != "2-4" {
		t.Errorf("tasks %s may start", tasks)
	}
	w.pass(time.Hour)
	w.due()
	if n := len(slices.Collect(w.s.Members(p))); n != 0 || w.s.Gone(p) != nil {
		t.Errorf("%d records of the array are left, %+v", n, w.s.Gone(p))
	}
	if j := nameOf(early, 1); j.Wait != WaitDependencyNever || w.ready(j.ID) {
		t.Errorf("once all is forgotten: %+v", j)
	}
	if tasks, _ := w.s.Ready(nameOf(early, 3), w.now); tasks.String() != "2-4" {
		t.Errorf("once all is forgotten tasks %s may start", tasks)
	}
}

// TestDependCensus: what is counted of an array tells of a term on all of it what a look at each record tells.
func TestDependCensus(t *testing.T) {
	const tasks = 5
	seen := map[termState]bool{}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, 1)
		p := w.submit(func(s *JobSpec) { s.Array = &ArraySpec{Tasks: RangeIDSet(0, tasks-1)} })
		var running []JobID
		for next := 0; next < tasks || len(running) > 0; {
			if next < tasks && r.IntN(2) == 0 {
				id := w.start(p, next, next, "n0")
				w.report("n0", id, NodeReady)
				running, next = append(running, id), next+1
			} else if n := len(running); n > 0 {
				i := r.IntN(n)
				w.over(running[i], b2i(r.IntN(6) == 0))
				running = slices.Delete(running, i, i+1)
			}
			for _, kind := range []DependType{After, AfterAny, AfterOK, AfterNotOK, AfterCorr, AfterBurst} {
				d := Depend{Type: kind, Job: p, Task: TaskAny}
				got := w.s.judge(&Job{}, d, TaskAny)
				if want := judgeAll(d, w.s.parents(d), w.s.Now); got != want {
					t.Fatalf("seed %d: %s is %d, its records make it %d", seed, kind, got, want)
				}
				seen[got] = true
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("seen were %v", seen)
	}
}

func TestSingleton(t *testing.T) {
	w := newWorld(t, 1)
	a := w.submit(nil)
	single := after(SingletonOf, 0)
	b, c := w.submit(single), w.submit(single)
	other := w.submit(func(s *JobSpec) { single(s); s.Name = "other" })
	if !w.ready(other) || w.ready(b) || w.ready(c) {
		t.Error("singleton is by user and name")
	}
	w.run(a, 0, "n0")
	w.over(a, 0)
	w.wantWait(b, NoReason) // told at once, not at the next look
	if !w.ready(b) || w.ready(c) {
		t.Error("b is next, c waits for b")
	}
}

func TestDependencyNeverIsKilled(t *testing.T) {
	w := newWorld(t, 1)
	yes := true
	p := w.submit(nil)
	child := w.submit(func(s *JobSpec) { after(AfterOK, p)(s); s.KillInvalidDepend = &yes })
	stays := w.submit(after(AfterOK, p))
	grand := w.submit(after(AfterAny, child))
	w.ok(sys, &Expire{Jobs: []JobID{child}, Why: WaitDependencyNever})
	w.want(child, Pending) // nothing is lost yet: a stale decision changes nothing
	w.ok(alice, &Cancel{Ref: Ref{Job: p}})
	w.due()
	if j := w.want(child, Ended); j.Outcome != Cancelled || j.EndReason != WaitDependencyNever {
		t.Errorf("killed as %+v", j)
	}
	w.wantWait(stays, WaitDependencyNever)
	w.wantWait(grand, NoReason)
	w.ok(alice, &Requeue{Ref: Ref{Job: p}})
	w.run(p, 0, "n0")
	w.over(p, 0)
	w.wantWait(stays, NoReason) // the parent came back and made it
}

func TestFailedDependencyOutlivesItsParent(t *testing.T) {
	w := newWorld(t, 1)
	p := w.submit(nil)
	child := w.submit(after(AfterOK, p))
	w.ok(alice, &Cancel{Ref: Ref{Job: p}})
	w.pass(time.Hour)
	w.due()
	if _, ok := w.s.Job(p); ok {
		t.Fatal("the parent is still there")
	}
	name := "renamed"
	w.ok(alice, &UpdateJob{Ref: Ref{Job: child}, Patch: Patch{Name: &name}})
	w.wantWait(child, WaitDependencyNever)
	free := w.submit(after(AfterOK, p))
	w.wantWait(free, NoReason) // an id that nobody knows counts as met
}

func TestDependencyOnItself(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(nil)
	w.refused(alice, &UpdateJob{
		Ref:   Ref{Job: id},
		Patch: Patch{Depends: &Depends{Terms: []Depend{{Type: AfterOK, Job: id, Task: TaskAny}}}},
	}, ErrDependency)
	w.ok(alice, &UpdateJob{
		Ref:   Ref{Job: id},
		Patch: Patch{Depends: &Depends{Terms: []Depend{{Type: AfterOK, Job: 77, Task: TaskAny, Failed: true}}}},
	})
	w.wantWait(id, NoReason) // users do not say what has failed
}

// String tells what tests compare: counts that are counted again says the same.
func (c arrayCount) String() string {
	gone := ""
	if c.gone != nil {
		gone = fmt.Sprintf(" gone %+v %t %t", c.gone.Sum, c.gone.Begun, c.gone.Unwell)
	}
	return fmt.Sprintf("%d pending %d live %d ended of %s ok %s failed %s%s", c.pending, c.live, c.ended,
		c.all, c.ok, c.failed, gone)
}
