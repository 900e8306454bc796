package layers

import (
	"fmt"
	"testing"
	"time"
)

// TestLayerRow: each client is sent to the one before it, never to one that comes after, and who failed is left out.
func TestLayerRow(t *testing.T) {
	r, now := NewRows(), time.Now()
	ask := func(addr, want string, failed ...string) {
		t.Helper()
		if got := r.Find("k", Client{"m" + addr, addr}, failed, now); got != want {
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
	r, now := NewRows(), time.Now()
	for i := range mostRows {
		r.Find(fmt.Sprint(i), Client{"m", "a"}, nil, now.Add(time.Duration(i)*time.Minute))
	}
	late := now.Add(mostRows * time.Minute)
	for i := range 10 {
		r.Find(fmt.Sprint("new", i), Client{"m", "a"}, nil, late)
	}
	if n := len(r.by); n > mostRows {
		t.Errorf("%d are known", n)
	}
	if r.by[fmt.Sprint(mostRows-1)] == nil {
		t.Error("the last was forgotten before the oldest")
	}
}

// TestLayersOfMember: a member stands in a row once, with the address that it named last.
func TestLayersOfMember(t *testing.T) {
	r, now := NewRows(), time.Now()
	r.Find("k", Client{"other", "o"}, nil, now)
	for i := range 100 {
		r.Find("k", Client{"m", fmt.Sprint(i)}, nil, now)
	}
	if line := r.by["k"].line; len(line) != 2 || line[1].Addr != "99" {
		t.Errorf("%v", line)
	}
	if got := r.Find("k", Client{"third", "t"}, nil, now); got != "99" {
		t.Errorf("the next is sent to %q", got)
	}
}
