package watches

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/cluster"
)

// TestDealsOfUser: jobs of one user that cannot be told anything delay nobody else's, and are dealt with a few at a
// time.
func TestDealsOfUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bob, alice = 1, 2
		w := &Watcher{Log: slog.New(slog.DiscardHandler)}
		var mu sync.Mutex
		dealt := map[cluster.JobID]int{}
		var bobs []finding
		job := func(id cluster.JobID, uid uint32, deal func(context.Context) error) finding {
			return finding{
				job: &cluster.Job{ID: id, Spec: &cluster.JobSpec{UID: uid}},
				deal: func(ctx context.Context) error {
					mu.Lock()
					dealt[id]++
					mu.Unlock()
					return deal(ctx)
				},
			}
		}
		blocks := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		for i := range dealsOfUser + 1 {
			bobs = append(bobs, job(cluster.JobID(i+1), bob, blocks))
		}
		hers := job(100, alice, func(context.Context) error { return nil })
		row := &watch{name: "test", find: func(*Watcher, *cluster.Snapshot, time.Time) []finding {
			return append(bobs, hers)
		}}
		term, end := context.WithCancel(t.Context())
		tried := w.look(term, row, nil, time.Now(), nil)
		synctest.Wait()
		if len(dealt) != dealsOfUser+1 || dealt[100] != 1 {
			t.Errorf("dealt with at once: %v", dealt)
		}
		tried = w.look(term, row, nil, time.Now(), tried)
		synctest.Wait()
		if len(dealt) != dealsOfUser+1 || dealt[1] != 1 || dealt[100] != 1 {
			t.Errorf("dealt with again: %v", dealt)
		}
		end()
		w.all.Wait()
		w.look(t.Context(), row, nil, time.Now(), tried)
		synctest.Wait()
		if dealt[dealsOfUser+1] != 1 {
			t.Errorf("the last of bob's jobs is not dealt with: %v", dealt)
		}
	})
}
