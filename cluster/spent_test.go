package cluster

import (
	"bytes"
	"testing"
	"time"
)

// TestSpentKey: a submission that is made again names the job that it made, also when that has run and been purged;
// a while later it is another one. The names of different users are different ones.
func TestSpentKey(t *testing.T) {
	for name, array := range map[string]*ArraySpec{"job": nil, "array": {Tasks: NewIDSet(0, 1)}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			submit := func(by Identity) JobID {
				t.Helper()
				spec := &JobSpec{Layout: &Layout{}, Name: "job", UID: by.UID, User: by.User, Array: array}
				return w.ok(by, &Submit{Spec: spec, Key: "k"}).Result.(JobID)
			}
			id := submit(alice)
			w.ok(alice, &Cancel{Ref: Ref{Job: id}})
			var all []JobID
			for j := range w.s.Jobs() {
				all = append(all, j.ID)
			}
			w.ok(root, &Purge{Jobs: all})
			if n := w.s.JobCount(); n != 0 {
				t.Fatalf("%d jobs are left", n)
			}
			if again := submit(alice); again != id || w.s.JobCount() != 0 {
				t.Errorf("made again it is job %d, was %d; %d jobs", again, id, w.s.JobCount())
			}
			var file bytes.Buffer
			if err := w.s.Snapshot().Encode(&file); err != nil {
				t.Fatal(err)
			}
			if s, err := Decode(&file); err != nil {
				t.Error(err)
			} else if got, ok := s.SubmittedAs(alice.UID, "k"); !ok || got != id {
				t.Errorf("after a restart: %d, %v", got, ok)
			}
			if other := submit(bob); other == id {
				t.Errorf("bob's is job %d of alice", other)
			}
			w.now = w.now.Add(KeyLife)
			w.ok(root, &Purge{})
			if late := submit(alice); late == id || w.s.spent.Len() != 0 {
				t.Errorf("%v later it is job %d still; %d keys are kept", time.Duration(KeyLife), late, w.s.spent.Len())
			}
		})
	}
}

// TestKeyAfterRequeue: a job that has gone back into the queue is still what its submission made.
func TestKeyAfterRequeue(t *testing.T) {
	w := newWorld(t, 1)
	yes := true
	submit := func() JobID {
		t.Helper()
		spec := &JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID, User: alice.User, Requeue: &yes}
		return w.ok(alice, &Submit{Spec: spec, Key: "k"}).Result.(JobID)
	}
	id := submit()
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.ok(root, &Requeue{Ref: Ref{Job: id}})
	if j, _ := w.s.Job(id); j.Phase != Pending || j.Restarts != 1 {
		t.Fatalf("the job was not requeued: phase %d", j.Phase)
	}
	if again := submit(); again != id {
		t.Errorf("made again it is job %d, was %d", again, id)
	}
}
