package server

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/api"
)

// TestLayerRow: each client is sent to the one before it, never to one that comes after, and who failed is left out.
func TestLayerRow(t *testing.T) {
	r, now := &layerRows{by: map[string]*layerRow{}}, time.Now()
	ask := func(addr, want string, failed ...string) {
		t.Helper()
		if got := r.find(&api.LayerQuery{Key: "k", Addr: addr, Failed: failed}, now); got != want {
			t.Errorf("%s is sent to %q, want %q", addr, got, want)
		}
	}
	ask("a", "")
	ask("b", "a")
	ask("c", "b")
	ask("b", "a") // again
	ask("c", "a", "b")
	ask("b", "c") // it is back, behind
	ask("a", "")
	ask("c", "", "a")
	ask("a", "b")
}

// TestLayersForgotten: the leader's memory is bounded.
func TestLayersForgotten(t *testing.T) {
	r, now := &layerRows{by: map[string]*layerRow{}}, time.Now()
	for i := range layersMost {
		r.find(&api.LayerQuery{Key: fmt.Sprint(i), Addr: "a"}, now.Add(time.Duration(i)*time.Minute))
	}
	late := now.Add(layersMost * time.Minute)
	for i := range 10 {
		r.find(&api.LayerQuery{Key: fmt.Sprint("new", i), Addr: "a"}, late)
	}
	if n := len(r.by); n > layersMost {
		t.Errorf("%d are known", n)
	}
	if r.by[fmt.Sprint(layersMost-1)] == nil {
		t.Error("the last was forgotten before the oldest")
	}
}
