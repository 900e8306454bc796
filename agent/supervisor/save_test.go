package supervisor

import (
	"testing"
	"testing/synctest"

	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// TestSavesOfUser: saving a container holds a thread for as long as the user's file lets it, so one user saves a bounded
// number at a time, and others do not wait for them.
func TestSavesOfUser(t *testing.T) {
	store := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &supervisor{steps: map[step.ID]*run{}, apart: newApart(), born: make(chan struct{}, 1)}
		saving := func(uid uint32) *run {
			r := &run{sup: s, spec: step.Spec{UID: uid}}
			r.spec.Container = &container.Spec{Container: cluster.Container{Name: "none"}, Store: store}
			return r
		}
		for range maxApart {
			s.apart.begin(saving(bob))
		}
		last := saving(bob)
		done := make(chan error, 1)
		go func() { done <- last.saveContainer() }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("bob's container number %d is saved: %v", maxApart+1, err)
		default:
		}
		if err := saving(alice).saveContainer(); err == nil { // there is none of that name
			t.Error("alice's container is saved")
		}
		s.apart.end(last)
		if err := <-done; err == nil || s.apart.n[bob] != maxApart-1 || s.apart.n[alice] != 0 {
			t.Errorf("bob's container, when another was saved: %v; %v are counted", err, s.apart.n)
		}
	})
}
