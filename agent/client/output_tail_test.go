package client

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/tail"
	"dev.muster/agent/usage"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestOwnFolderOver: a job that is clean is kept until the servers take it away, but the folders it had for itself
// are gone.
func TestOwnFolderOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("jobs have folders of their own only where the client is root's")
	}
	for dir, runs := range map[string]string{"/tmp": "", "/dev/shm": "memory that only the job sees"} {
		h := here(cluster.Running, self)
		h.job.Spec.Kind, h.job.Spec.Stdout = cluster.Batch, dir+"/out"
		c := readyClient(t, Config{Sampler: &usage.Sampler{}}, h)
		c.config.PrivateDirs = []cluster.PrivateDirs{{Base: "/var/lib/own", Dirs: []string{"/tmp", "/dev/shm"}}}
		for _, done := range []bool{false, true} {
			want := runs
			if done {
				h.launch = clean
				want = "went with the job"
			}
			w, err := c.writtenBy(context.Background(), api.Caller{}, api.TailRequest{Job: 1})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && w.Own == "" {
				t.Errorf("%s, clean %t: %+v, %v; want %q", dir, done, w, err, want)
			}
		}
	}
}

// plainDialect adds nothing to what tasks are told, and takes patterns for names.
type plainDialect struct{ api.Dialect }

func (plainDialect) FileName(p string, _ *cluster.Launch) string                   { return p }
func (plainDialect) OOMNote(cluster.StepID, cluster.NodeName) string               { return "" }
func (plainDialect) LostNote(cluster.NodeName) string                              { return "" }
func (plainDialect) EndNote(*cluster.Job, int, cluster.NodeName, time.Time) string { return "" }

// TestUntilOver: who waits for more is told as soon as the job is over on the node, or the step.
func TestUntilOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := here(cluster.Running, self)
		id := cluster.StepID{Job: 1, Step: 0}
		ls := &liveStep{}
		c := readyClient(t, Config{}, h)
		c.live[id] = ls
		job := c.untilOver(t.Context(), self, api.TailRequest{Job: 1})
		ofStep := c.untilOver(t.Context(), self, api.TailRequest{Job: 1, Step: &id.Step})
		at := func(over <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-over:
				return true
			default:
				return false
			}
		}
		change := func(do func()) {
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			do()
			c.queues.free(1)
		}
		change(func() {})
		if at(job) || at(ofStep) {
			t.Error("both go on")
		}
		change(func() { ls.endedAt = time.Now() })
		if at(job) || !at(ofStep) {
			t.Error("the step is over, the job goes on")
		}
		change(func() { h.launch = clean })
		if !at(job) {
			t.Error("the job is over")
		}
		late := c.untilOver(t.Context(), self, api.TailRequest{Job: 1})
		if at(late) {
			t.Error("who comes late waits a moment")
		}
		time.Sleep(tail.Pause)
		if !at(late) {
			t.Error("and no longer")
		}
	})
}

// TestSeatsOfReaders: the readers of one user's output leave places for those of others.
func TestSeatsOfReaders(t *testing.T) {
	for name, s := range map[string]*seats{
		"at once":   newSeats(tailers, tailersEach),
		"that wait": newSeats(holders, holdersEach),
	} {
		var leave []func()
		for range 2 * s.all {
			if l, ok := s.take(1000); ok {
				leave = append(leave, l)
			}
		}
		l, ok := s.take(1001)
		if !ok || len(leave) != s.each {
			t.Fatalf("%s: %d of one user, another has a place: %t", name, len(leave), ok)
		}
		l()
		leave[0]()
		if _, ok := s.take(1000); !ok {
			t.Errorf("%s: a place that was left is not to be had", name)
		}
	}
}
