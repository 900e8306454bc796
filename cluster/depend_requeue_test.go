package cluster

import "testing"

// TestDependRequeued: what waits for an array of which a task has failed may start after all if that task is requeued
// and ends well, and is not said to wait in vain meanwhile.
func TestDependRequeued(t *testing.T) {
	w := newWorld(t, 1)
	array := w.submit(func(s *JobSpec) { s.Array = &ArraySpec{Tasks: RangeIDSet(0, 2)} })
	child := w.submit(after(AfterOK, array))
	first := w.start(array, 0, 0, "n0")
	w.over(first, 1)
	w.wantWait(child, WaitDependencyNever)
	w.ok(alice, &Requeue{Ref: Ref{Job: first}})
	second := w.start(array, 1, 1, "n0")
	w.over(second, 0)
	w.wantWait(child, WaitDependency)
}
