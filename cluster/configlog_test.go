package cluster

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dev.muster/wire"
)

// randomConfig is one of many configurations.
func randomConfig(r *rand.Rand) *Config {
	cfg := DefaultConfig()
	cfg.Partitions = nil
	for i := range 1 + r.IntN(6) {
		cfg.Partitions = append(cfg.Partitions, Partition{
			Name: fmt.Sprintf("p%d", (i+r.IntN(2))%9), State: PartitionUp,
			PartitionLimits: PartitionLimits{MaxNodes: r.IntN(3)}, All: true,
		})
	}
	for i := range r.IntN(8) {
		cfg.Declared = append(cfg.Declared, Node{
			Name:      nodeName(i),
			Inventory: Inventory{CPUs: 1 + r.IntN(2), MemMB: 1, Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1},
		})
	}
	if r.IntN(2) > 0 {
		cfg.Keys, cfg.Prolog = map[string]string{"prolog": "/x"}, "/x"
	}
	cfg.KillWait = time.Duration(r.IntN(3)) * time.Second
	return &cfg
}

func jsonOf(t *testing.T, c *Config) string {
	text, err := wire.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestConfigHistory: whatever the changes were, each earlier configuration is found again, also by a server that has
// it all from a snapshot, and the history stays within its bounds.
func TestConfigHistory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := newWorld(t, 0)
	if len(w.s.ConfigHistory()) != 0 {
		t.Fatal("a change that does not say how it was made begins the history")
	}
	want := map[int]*Config{0: w.s.Config()}
	who := root
	who.User = "root"
	for i := range 3 * maxConfigChanges {
		switch {
		case i > 0 && i%5 == 0:
			w.ok(who, &PartitionSet{Partition: Partition{Name: "extra", State: PartitionDown,
				PartitionLimits: PartitionLimits{MaxNodes: i}}})
		case i > 0 && i%7 == 0:
			if d := w.s.Config().Declared; len(d) > 0 {
				w.ok(who, &NodeDelete{Nodes: []NodeName{d[0].Name}})
			}
		default:
			w.ok(who, &Configure{Config: randomConfig(r), How: "apply"})
		}
		h := w.s.ConfigHistory()
		last := h[len(h)-1]
		want[last.N] = w.s.Config()
		if last.By != "root" || !last.At.Equal(w.s.Now) {
			t.Fatalf("change %d was made by %q at %v", last.N, last.By, last.At)
		}
	}
	var b bytes.Buffer
	if err := w.s.Snapshot().Encode(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	h := again.ConfigHistory()
	if len(h) != maxConfigChanges {
		t.Fatalf("%d changes are kept, want %d", len(h), maxConfigChanges)
	}
	for n := h[0].N - 1; n <= h[len(h)-1].N; n++ {
		got, err := again.ConfigAt(n)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := jsonOf(t, got), jsonOf(t, want[n]); a != b {
			t.Fatalf("configuration %d is\n%s\nwant\n%s", n, a, b)
		}
	}
	for _, n := range []int{h[0].N - 2, h[len(h)-1].N + 1} {
		if _, err := again.ConfigAt(n); err == nil || !strings.Contains(err.Error(), "is not remembered: want one from") {
			t.Errorf("configuration %d: %v", n, err)
		}
	}
}

// TestConfigOnto refuses a change that was made with another configuration in view, and one that changes nothing is
// no change.
func TestConfigOnto(t *testing.T) {
	w := newWorld(t, 0)
	first, second := *w.s.Config(), *w.s.Config()
	first.KillWait, second.KillWait = time.Second, 2*time.Second
	w.ok(root, &Configure{Config: &first, How: "apply"})
	w.ok(root, &Configure{Config: &second, How: "apply", Onto: 1})
	if out := w.apply(root, &Configure{Config: &first, How: "undo", Onto: 1}); out.Err == nil || !strings.Contains(out.Err.Message, "uid 0 has changed the configuration meanwhile (apply, number 2)") {
		t.Errorf("another one came first: %v", out.Err)
	}
	w.ok(root, &Configure{Config: &second, How: "apply"})
	if h := w.s.ConfigHistory(); len(h) != 2 {
		t.Errorf("%d changes, want 2", len(h))
	}
}

// TestConfigHistorySize: one that is too large for the history is known of, but cannot be brought back.
func TestConfigHistorySize(t *testing.T) {
	w := newWorld(t, 0)
	small, large := *w.s.Config(), *w.s.Config()
	small.KillWait = time.Second
	large.Keys = map[string]string{"epilog": strings.Repeat("x", maxConfigHistory+1)}
	for _, c := range []*Config{&small, &large, &small} {
		w.ok(root, &Configure{Config: c, How: "apply"})
	}
	if h := w.s.ConfigHistory(); len(h) != 1 || h[0].N != 3 {
		t.Fatalf("%d changes are kept", len(h))
	}
}
