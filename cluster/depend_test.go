package cluster

import (
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

// TestDependCensus: what is counted of an array tells of a term on all of it what a look at each record tells.
func TestDependCensus(t *testing.T) {
	const tasks = 5
	seen := map[verdict]bool{}
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
	w.refused(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Depends: &Depends{Terms: []Depend{{Type: AfterOK, Job: id, Task: TaskAny}}}}}, ErrDependency)
	w.ok(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Depends: &Depends{Terms: []Depend{{Type: AfterOK, Job: 77, Task: TaskAny, Failed: true}}}}})
	w.wantWait(id, NoReason) // users do not say what has failed
}
