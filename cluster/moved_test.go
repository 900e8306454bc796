package cluster

import (
	"testing"
	"time"
)

// TestMoved: a job of another cluster keeps its number, its times and its hold; a second submission with the same key
// makes none.
func TestMoved(t *testing.T) {
	w := newWorld(t, 1)
	ago := func(d time.Duration) time.Time { return w.now.Add(-d) }
	m := &Moved{ID: 700, Submitted: ago(3 * time.Hour), Eligible: ago(2 * time.Hour), Accrue: ago(time.Hour)}
	c := &Submit{Spec: movedSpec(), Key: "slurm/c/700", Moved: m}
	if id := w.ok(root, c).Result.(JobID); id != 700 {
		t.Errorf("it is job %d", id)
	}
	j, _ := w.s.Job(700)
	if !j.Submitted.Equal(m.Submitted) || !j.Eligible.Equal(m.Eligible) || j.Held != NotHeld {
		t.Errorf("submitted %s, eligible %s, held %d", j.Submitted, j.Eligible, j.Held)
	}
	if id := w.ok(root, c).Result.(JobID); id != 700 {
		t.Errorf("a second time it is job %d", id)
	}
	if id := w.ok(alice, &Submit{Spec: movedSpec()}).Result.(JobID); id != 701 {
		t.Errorf("the next job is %d", id)
	}
	taken := &Submit{Spec: movedSpec(), Moved: &Moved{ID: 700, Submitted: ago(time.Hour), Held: HeldAdmin}}
	if id := w.ok(root, taken).Result.(JobID); id != 702 {
		t.Errorf("a job whose number is taken is %d", id)
	}
	if j, _ := w.s.Job(702); j.Held != HeldAdmin || j.Wait != WaitHeldAdmin || j.Priority != 0 {
		t.Errorf("held %d, %s, priority %d", j.Held, j.Wait, j.Priority)
	}
	far := &Submit{Spec: movedSpec(), Moved: &Moved{ID: w.s.Config().MaxJobID + 1, Submitted: ago(time.Hour)}}
	if id := w.ok(root, far).Result.(JobID); id != 703 {
		t.Errorf("a job whose number is too large is %d", id)
	}
}

// TestMovedRefused: an ordinary user chooses neither numbers nor times, and nobody impossible ones.
func TestMovedRefused(t *testing.T) {
	w := newWorld(t, 1)
	ago := w.now.Add(-time.Hour)
	for _, c := range []struct {
		what string
		by   Identity
		m    Moved
		kind ErrKind
	}{
		{"a user", alice, Moved{ID: 700, Submitted: ago}, ErrAccess},
		{"a user without a number", alice, Moved{Submitted: ago}, ErrAccess},
		{"no time", root, Moved{ID: 700}, ""},
		{"to come", root, Moved{Submitted: w.now.Add(time.Hour)}, ""},
		{"unknown hold", root, Moved{Submitted: ago, Held: HeldAdmin + 1}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			w.refused(c.by, &Submit{Spec: movedSpec(), Moved: &c.m}, c.kind)
		})
	}
}

func movedSpec() *JobSpec {
	return &JobSpec{UID: alice.UID, User: "alice", Layout: &Layout{}, Name: "job", GID: alice.GID}
}
