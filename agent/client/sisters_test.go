package client

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/step"
)

// TestOrderOfCalls: a node hears what it is told in order, however long the first call takes on its way; one
// that does not answer is given up, and holds up neither others nor who signals for longer than orderTime.
func TestOrderOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSisters(nil, nil)
		var mu sync.Mutex
		var heard []string
		say := func(what string, takes time.Duration) func(context.Context) {
			return func(context.Context) {
				time.Sleep(takes)
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, what)
			}
		}
		s.call("n1", say("interrupt", 100*time.Millisecond))
		s.call("n1", say("kill", 0))
		s.call("n2", say("other node", 0))
		began := time.Now()
		told(s.calls([]step.ID{{Node: "n1"}, {Node: "n2"}, {Node: "n3"}}))
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		if want := []string{"other node", "interrupt", "kill"}; !slices.Equal(heard, want) {
			t.Errorf("they heard %q; want %q", heard, want)
		}

		heard = nil
		s.call("n1", func(ctx context.Context) { <-ctx.Done() })
		s.call("n1", say("after one that hangs", 0))
		began = time.Now()
		told(s.calls([]step.ID{{Node: "n1"}}))
		if took := time.Since(began); took != orderTime {
			t.Errorf("waited for a node that hangs for %v", took)
		}
		synctest.Wait()
		if want := []string{"after one that hangs"}; !slices.Equal(heard, want) {
			t.Errorf("then %q; want %q", heard, want)
		}
		time.Sleep(partsTime) // the one that hangs ends by its own limit
	})
}
