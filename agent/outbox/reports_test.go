package outbox

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/cluster"
)

// TestReportsArrive: a report is told again until it has arrived; what it says is over stays so until the servers name
// it no more as of a later index, and after a restart as long as it is on its way.
func TestReportsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
		open := func() *Reports {
			r, err := OpenReports(dir, log)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := open()
		key := Attempt{Job: 1, Attempt: 2, Node: self}
		r.Put(self, cluster.Update{Kind: cluster.NodeReady, Job: 1, Attempt: 2})
		r.Put(self, cluster.Update{Kind: cluster.NodeDone, Job: 1, Attempt: 2})
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r = open()
		if !r.IsOver(key) || !r.Begun()[key] || !r.HasEnded(key) || r.NextJob() != 2 {
			t.Errorf("after a restart: over %t, begun %v, remembered %t, next job %d",
				r.IsOver(key), r.Begun(), r.HasEnded(key), r.NextJob())
		}
		ctx, cancel := context.WithCancel(t.Context())
		tries := 0
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			r.Send(ctx, func(_ context.Context, list []cluster.Report) (uint64, error) {
				if tries++; tries < 3 {
					return 0, errors.New("nobody answers")
				}
				if len(list) != 2 {
					t.Errorf("%d reports are told", len(list))
				}
				return 10, nil
			})
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		if tries != 3 || len(r.Pending()) != 0 {
			t.Errorf("after %d tries %d reports have not arrived", tries, len(r.Pending()))
		}
		for _, c := range []struct {
			index uint64
			named bool
			over  bool
		}{{10, false, true}, {11, true, true}, {11, false, false}} {
			r.Forget(map[cluster.NodeName]uint64{self: c.index}, map[Attempt]bool{key: c.named})
			if r.IsOver(key) != c.over {
				t.Errorf("as of %d, named %t: over %t", c.index, c.named, r.IsOver(key))
			}
		}
		cancel()
		<-sent
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}
