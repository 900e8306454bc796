package sisters

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestOrderOfCalls: a node hears what it is told in order, however long the first call takes on its way; one
// that does not answer is given up, and holds up neither others nor who signals for longer than orderTime.
func TestOrderOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil, nil)
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
		s.Call("n1", say("interrupt", 100*time.Millisecond))
		s.Call("n1", say("kill", 0))
		s.Call("n2", say("other node", 0))
		began := time.Now()
		Told(s.Calls([]step.ID{{Node: "n1"}, {Node: "n2"}, {Node: "n3"}}))
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		if want := []string{"other node", "interrupt", "kill"}; !slices.Equal(heard, want) {
			t.Errorf("they heard %q; want %q", heard, want)
		}

		heard = nil
		s.Call("n1", func(ctx context.Context) { <-ctx.Done() })
		s.Call("n1", say("after one that hangs", 0))
		began = time.Now()
		Told(s.Calls([]step.ID{{Node: "n1"}}))
		if took := time.Since(began); took != orderTime {
			t.Errorf("waited for a node that hangs for %v", took)
		}
		synctest.Wait()
		if want := []string{"after one that hangs"}; !slices.Equal(heard, want) {
			t.Errorf("then %q; want %q", heard, want)
		}
		time.Sleep(CallTime) // the one that hangs ends by its own limit
	})
}

// TestAsk: all clients are asked, and the nodes of those that do not answer are named.
func TestAsk(t *testing.T) {
	groups := []api.PartsGroup{{Addr: "a:1", Nodes: []cluster.NodeName{"n3", "n1"}}, {Addr: "b:1", Nodes: []cluster.NodeName{"n2"}}}
	var mu sync.Mutex
	var asked []cluster.NodeName
	ask := func(_ context.Context, _ *api.Client, nodes []cluster.NodeName) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, nodes...)
		if nodes[0] == "n3" {
			return errors.New("away")
		}
		return nil
	}
	missing := New(func(string) *api.Client { return &api.Client{} }, nil).Ask(t.Context(), groups, ask)
	if len(asked) != 3 || len(missing) != 2 || missing[0].Node != "n1" || missing[1].Why != "away" {
		t.Errorf("asked %v, missing %+v", asked, missing)
	}
	asked = nil
	if missing := New(nil, nil).Ask(t.Context(), groups, ask); len(asked) != 0 || len(missing) != 3 {
		t.Errorf("without a network %v were asked, missing %+v", asked, missing)
	}
}

// TestTakesPart: the clients of a job's nodes take part in it, by the node's name or as the servers say, and those of
// its other components.
func TestTakesPart(t *testing.T) {
	s := New(nil, nil)
	s.Learn(api.NodePeer{Node: "n2", Member: "rack"})
	on := func(n cluster.NodeName) *cluster.Job {
		return &cluster.Job{Alloc: &cluster.Alloc{Shares: []cluster.Share{{Node: n}}}}
	}
	for member, want := range map[string]bool{"n1": true, "rack": true, "n3": true, "n4": false, "": false} {
		who := api.Caller{Identity: cluster.Identity{UID: 1000}, Member: member}
		if got := s.TakesPart(who, on("n1"), []*cluster.Job{on("n2"), on("n3"), {}}); got != want {
			t.Errorf("%q takes part: %t", member, got)
		}
	}
}
