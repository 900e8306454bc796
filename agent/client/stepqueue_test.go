package client

import (
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestQueuesOfJobs: what ends wakes those who wait for something of the same job, and no others.
func TestQueuesOfJobs(t *testing.T) {
	var q queues
	own, leave := q.enter(1)
	same, leaveSame := q.enter(1)
	other, leaveOther := q.enter(2)
	if own != same || own == other {
		t.Fatal("a job has one queue of its own")
	}
	woken := func(freed <-chan struct{}) bool {
		select {
		case <-freed:
			return true
		default:
			return false
		}
	}
	mine, others := q.next(own), q.next(other)
	q.free(1)
	q.free(3)
	if !woken(mine) || woken(others) {
		t.Error("the end of a step of job 1 has woken others, or not its own")
	}
	if woken(q.next(own)) {
		t.Error("who waits for the next end is woken by the last")
	}
	for _, l := range []func(){leave, leaveSame, leaveOther} {
		l()
	}
	if len(q.of) > 0 {
		t.Errorf("%d queues are left", len(q.of))
	}
}

// TestStepsInTurn: of thousands that want to place steps of one job one at a time waits for the lock of all jobs.
func TestStepsInTurn(t *testing.T) {
	s := &steps{tables: newTables(&Config{}, nil)}
	queue, leave := s.queues.enter(1)
	defer leave()
	s.mu.Lock()
	done := make(chan struct{})
	for range 100 {
		go func() {
			_, _ = tryPlace(s, queue, api.Caller{}, &api.StepRequest{Job: 1}, cluster.IDSet{})
			done <- struct{}{}
		}()
	}
	for queue.gate.TryLock() { // until the first is at the gate
		queue.gate.Unlock()
	}
	s.mu.Unlock()
	for range 100 {
		<-done
	}
}
