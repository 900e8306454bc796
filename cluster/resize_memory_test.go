package cluster

import (
	"testing"
	"time"
)

// memoryTo gives a job that runs other memory on each of its nodes.
func memoryTo(id JobID, mb MemMB) *UpdateJob {
	return &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Mem: &Mem{Per: MemPerNode, MB: mb}}, Memory: true}
}

// goldenMemory has a running job get less memory, and by an operator more.
func goldenMemory(w *world) {
	id := running(w, 2)
	w.pass(10 * time.Second)
	w.ok(alice, memoryTo(id, 60))
	w.pass(10 * time.Second)
	w.ok(root, memoryTo(id, 90))
	w.over(id, 0)
}

// TestMemoryOfRunning: memory that a running job gives back is free at once, and history has a record for each amount.
func TestMemoryOfRunning(t *testing.T) {
	w := newWorld(t, 3)
	id := running(w, 2)
	w.pass(10 * time.Second)
	out := w.ok(alice, memoryTo(id, 60))
	j := w.want(id, Running)
	if j.Spec.Mem != (Mem{MemPerNode, 60}) || !j.ResizedAt().Equal(w.now) {
		t.Errorf("it asks for %+v, resized at %v", j.Spec.Mem, j.ResizedAt())
	}
	for _, n := range []NodeName{"n0", "n1"} {
		sh, _ := j.Share(n)
		if l := w.s.Load(n); sh.MemMB != 60 || l.MemMB != 60 {
			t.Errorf("it has %d MB of %s, which has given %d MB", sh.MemMB, n, l.MemMB)
		}
	}
	was := out.Events[0].Sized
	if was == nil || was.Outcome != Resized || was.Alloc.Shares[0].MemMB != 100 || !was.Ended.Equal(w.now) ||
		was.Spec.Mem == j.Spec.Mem {
		t.Fatalf("history was told of %+v", was)
	}
	w.pass(10 * time.Second)
	w.ok(root, memoryTo(id, 7000)) // of 8000
	if l := w.s.Load("n1"); l.MemMB != 7000 {
		t.Errorf("after the raise n1 has given %d MB", l.MemMB)
	}
	if out := w.ok(alice, memoryTo(id, 7000)); len(out.Events) > 0 && out.Events[0].Sized != nil {
		t.Error("history was told of no change")
	}
	w.over(id, 0)
	for _, n := range []NodeName{"n0", "n1"} {
		if l := w.s.Load(n); l.MemMB != 0 {
			t.Errorf("the job is over and %s has given %d MB", n, l.MemMB)
		}
	}
}

// TestMemoryCharge: each amount is charged for its time.
func TestMemoryCharge(t *testing.T) {
	w := newWorld(t, 1)
	id := running(w, 1)
	w.pass(10 * time.Second)
	events := w.ok(alice, memoryTo(id, 50)).Events
	w.pass(20 * time.Second)
	events = append(events, w.ok(root, memoryTo(id, 200)).Events...)
	w.pass(30 * time.Second)
	var sum int64
	add := func(j *Job, end time.Time) {
		r := j.Record()
		sum += int64(r.Alloc.Shares[0].MemMB) * int64(end.Sub(r.Started)/time.Second)
	}
	for _, e := range events {
		if e.Sized != nil && e.Sized.ID == id {
			add(e.Sized, e.Sized.Ended)
		}
	}
	add(w.job(id), w.now)
	if want := int64(100*10 + 50*20 + 200*30); sum != want {
		t.Errorf("history has %d MB-seconds, want %d", sum, want)
	}
}

func TestMemoryOfRunningRefused(t *testing.T) {
	w := newWorld(t, 2)
	id := running(w, 2)
	for name, c := range map[string]struct {
		by     Identity
		change func(*UpdateJob)
		kind   ErrKind
	}{
		"of another user":      {bob, func(*UpdateJob) {}, ErrUser},
		"by a log of before":   {alice, func(u *UpdateJob) { u.Memory = false }, ErrNotPending},
		"none":                 {alice, func(u *UpdateJob) { u.Patch.Mem.MB = 0 }, ErrStepMem},
		"for each CPU":         {alice, func(u *UpdateJob) { u.Patch.Mem.Per = MemPerCPU }, ErrStepMem},
		"more, by its user":    {alice, func(u *UpdateJob) { u.Patch.Mem.MB = 101 }, ErrStepMem},
		"more than a node has": {root, func(u *UpdateJob) { u.Patch.Mem.MB = 8001 }, ErrStepMem},
		"with its nodes":       {alice, func(u *UpdateJob) { u.Patch.Tasks = new(int) }, ErrNotPending},
	} {
		t.Run(name, func(t *testing.T) {
			u := memoryTo(id, 60)
			c.change(u)
			w.refused(c.by, u, c.kind)
			if sh, _ := w.want(id, Running).Share("n0"); sh.MemMB != 100 {
				t.Errorf("it has %d MB", sh.MemMB)
			}
		})
	}
	other := w.submit(nil)
	w.run(other, 1, "n1")
	w.refused(root, memoryTo(id, 7901), ErrStepMem) // n1 has 100 of 8000 elsewhere
	w.ok(root, memoryTo(id, 7900))
	w.ok(root, &Suspend{Ref: Ref{Job: id}})
	w.refused(alice, memoryTo(id, 60), ErrNotPending)
}
