package hardware

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/cluster"
)

// silent are servers that do not answer as long as err is set.
type silent struct {
	err  error
	soon int // how often the nodes were to be registered beside
}

func (s *silent) Register(context.Context) error         { return s.err }
func (s *silent) RegisterSoon()                          { s.soon++ }
func (s *silent) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// TestTell: what was found takes the place of what was found before of its cause, beside what is wrong otherwise; if
// that cannot be told at once it is told later.
func TestTell(t *testing.T) {
	other := cluster.Fault{Kind: cluster.FaultSystem, Part: "disk", Cause: "disk"}
	first := cluster.Fault{Kind: cluster.FaultSystem, Part: "gpu1", Cause: "left"}
	then := cluster.Fault{Kind: cluster.FaultSystem, Part: "gpu2", Cause: "left"}
	servers := &silent{}
	n := machine.Node{Name: "n1"}
	n.Inventory.SetFaults(cluster.FaultSystem, []cluster.Fault{other})
	w := New(Config{Nodes: []machine.Node{n}, Servers: servers, Log: slog.New(slog.DiscardHandler)})
	for _, c := range []struct {
		faults []cluster.Fault
		err    error
		want   []string
		soon   int
	}{
		{[]cluster.Fault{first}, nil, []string{"disk", "gpu1"}, 0},
		{[]cluster.Fault{then}, errors.New("away"), []string{"disk", "gpu2"}, 1},
		{nil, nil, []string{"disk"}, 1},
	} {
		servers.err = c.err
		w.Tell(t.Context(), w.First(), "left", c.faults)
		var got []string
		for _, f := range machine.FaultsOf(w.Inventory("n1"), cluster.FaultSystem) {
			got = append(got, f.Part)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) || servers.soon != c.soon {
			t.Errorf("%v: faults %v, told later %d times; want %v, %d", c.faults, got, servers.soon, c.want, c.soon)
		}
	}
}

// TestSecluded: jobs have folders of their own only where steps are processes and nothing that jobs need lies in them.
func TestSecluded(t *testing.T) {
	site := &cluster.Config{}
	site.PrivateDirs = []cluster.PrivateDirs{{Base: "/var/lib/own", Dirs: []string{"/tmp"}}}
	for name, c := range map[string]struct {
		runs   bool
		needed string
	}{
		"nothing is a process":   {false, "/run/muster.sock"},
		"the socket lies in one": {true, "/tmp/muster.sock"},
	} {
		w := New(Config{Nodes: []machine.Node{{Name: "n1"}}, Runs: c.runs, Needed: []string{c.needed},
			Log: slog.New(slog.DiscardHandler)})
		if w.Secluded(site, "n1") != nil {
			t.Errorf("%s: jobs have folders of their own", name)
		}
		w.TellHindrances(site)
	}
}
