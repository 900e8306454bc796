package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestEar: the salloc of a job hears what the job is told, also what came between two of its calls; once it has gone
// away nobody does.
func TestEar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := here(cluster.Running, self)
		h.job.Spec.Kind = cluster.Allocation
		c := readyClient(t, Config{}, h)
		tell := func(text string) error {
			_, err := c.notifyJob(t.Context(), api.Caller{}, api.NotifyRequest{Job: 1, Text: text})
			return err
		}
		if err := tell("srun: early"); err == nil {
			t.Error("a job is told before its salloc listens")
		}
		heard := make(chan api.HearResponse)
		hear := func() {
			out, err := c.hearJob(t.Context(), api.Caller{}, api.HearRequest{Job: 1})
			if err != nil {
				t.Error(err)
			}
			heard <- out
		}
		go hear()
		synctest.Wait()
		if err := tell("srun: one"); err != nil {
			t.Error(err)
		}
		if got := <-heard; len(got.Texts) != 1 || got.Texts[0] != "one" {
			t.Errorf("%q", got.Texts)
		}
		for _, text := range []string{"two", "three"} {
			if err := tell(text); err != nil {
				t.Error(err)
			}
		}
		go hear()
		if got := <-heard; len(got.Texts) != 2 || got.Texts[1] != "three" {
			t.Errorf("%q", got.Texts)
		}
		go hear()
		if got := <-heard; len(got.Texts) != 0 {
			t.Errorf("after a while: %q", got.Texts)
		}
		time.Sleep(2 * hearPause)
		if err := tell("late"); err == nil {
			t.Error("a job is told whose salloc has gone")
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.hearJob(gone, api.Caller{}, api.HearRequest{Job: 1}); err == nil {
			t.Error("who has gone hears")
		}
		if _, err := c.hearJob(t.Context(), api.Caller{Identity: cluster.Identity{UID: 7}},
			api.HearRequest{Job: 1}); err == nil {
			t.Error("another user hears")
		}
	})
}
