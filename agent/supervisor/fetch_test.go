package supervisor

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// TestFetchesOfUser: each image that is fetched has a process and threads, so a user's steps that fetch are bounded
// like those that launch; a step of another user does not wait for them.
func TestFetchesOfUser(t *testing.T) {
	dir := t.TempDir()
	log, helper := filepath.Join(dir, "log"), filepath.Join(dir, "helper")
	script := "#!/bin/sh\necho >>" + log + "\necho '{\"error\":\"no registry\"}'\n"
	if err := os.WriteFile(helper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	fetched := func() int {
		text, _ := os.ReadFile(log)
		return len(text)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &supervisor{steps: map[step.ID]*run{}, apart: newApart(), born: make(chan struct{}, 1)}
		fetching := func(uid uint32) *run {
			r := &run{sup: s, spec: step.Spec{UID: uid}}
			r.spec.Container = &container.Spec{Container: cluster.Container{Image: "registry/image"}, Self: helper}
			return r
		}
		for range maxApart {
			s.apart.begin(fetching(bob))
		}
		done := make(chan error, 1)
		last := fetching(bob)
		go func() {
			_, err := last.fetch()
			done <- err
		}()
		synctest.Wait()
		if fetched() > 0 {
			t.Errorf("bob's step number %d fetches its image", maxApart+1)
		}
		if _, err := fetching(alice).fetch(); err == nil || err.Error() != "no registry" {
			t.Errorf("alice's step: %v", err)
		}
		s.apart.end(last)
		if err := <-done; err == nil || err.Error() != "no registry" {
			t.Errorf("bob's step, when another has ended: %v", err)
		}
		if fetched() != 2 || s.apart.n[bob] != maxApart-1 || s.apart.n[alice] != 0 {
			t.Errorf("%d images were fetched, and %v are counted", fetched(), s.apart.n)
		}
	})
}
