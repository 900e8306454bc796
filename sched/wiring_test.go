package sched

import (
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestFoundLeaves: without topology.conf jobs go below one leaf switch, as the nodes found them, if they fit; a
// larger job waits for none, nor does one that needs nodes of which no leaf is known.
func TestFoundLeaves(t *testing.T) {
	var nodes []cluster.Inventory
	for _, leaf := range []string{"a", "b", "a", "b", "b", ""} {
		inv := machine()
		if leaf != "" {
			inv.NICs = []cluster.NIC{{Device: "mlx5_0", Port: 1, Leaf: leaf}}
		}
		nodes = append(nodes, inv)
	}
	for _, c := range []struct{ ask, want string }{
		{"-N2", "n1 n3"},
		{"-N3", "n2 n4 n5"},
		{"-N6", "n1 n2 n3 n4 n5 n6"},
		{"-N4 --switches=2", "n2 n4 n5 n6"},
	} {
		b := namedBed(t, nil, nodes...)
		id := b.Submit(ask(t, c.ask))
		b.ScheduleAll()
		j, _ := b.S.Job(id)
		if got := words(j.AllocNodes()); got != c.want {
			t.Errorf("%s got %q, want %q", c.ask, got, c.want)
		}
	}
}

func words(names []cluster.NodeName) string {
	var out []string
	for _, n := range names {
		out = append(out, string(n))
	}
	return strings.Join(out, " ")
}

// TestTroubledNodes: a large job leaves out a node that had recent trouble if others fit, and does not wait for
// that; a small one takes it, and weight goes first.
func TestTroubledNodes(t *testing.T) {
	for _, c := range []struct {
		ask, want string
		weigh     bool
	}{
		{ask: "-N8", want: "n2 n3 n4 n5 n6 n7 n8 n9"},
		{ask: "-N9", want: "n1 n2 n3 n4 n5 n6 n7 n8 n9"},
		{ask: "-N2", want: "n1 n2"},
		{ask: "-N8", want: "n1 n2 n3 n4 n5 n6 n7 n8", weigh: true},
	} {
		b := namedBed(t, nil)
		for i := range 9 {
			inv := machine()
			if i == 8 && c.weigh {
				inv.Weight = 2
			}
			b.Apply(&cluster.NodeUp{Name: numbered(i + 1), Inventory: inv, Scored: true})
		}
		for range 2 { // two losses are more than the limit
			b.Apply(&cluster.NodeDown{Nodes: names(1, 1)})
			b.Apply(&cluster.NodeUp{Name: "n1", Inventory: machine(), Scored: true})
		}
		id := b.Submit(ask(t, c.ask))
		b.ScheduleAll()
		j, _ := b.S.Job(id)
		if got := words(j.AllocNodes()); got != c.want {
			t.Errorf("%s got %q, want %q", c.ask, got, c.want)
		}
	}
}

// TestTroubleBetweenCycles: a scheduler that goes on sees that a node has had trouble, and that this was long enough
// ago.
func TestTroubleBetweenCycles(t *testing.T) {
	b := namedBed(t, nil)
	for i := range 9 {
		b.Apply(&cluster.NodeUp{Name: numbered(i + 1), Inventory: machine(), Scored: true})
	}
	var s Scheduler
	large := func(want string) {
		t.Helper()
		id := b.Submit(ask(t, "-N8"))
		snap := b.S.Snapshot()
		got, full := s.Schedule(snap, b.Now), Schedule(snap, b.Now)
		if len(got) != 1 || len(full) != 1 || got[0].Start == nil || words(nodesOf(got[0].Start)) != want || words(nodesOf(full[0].Start)) != want {
			t.Errorf("it decides %v, a full pass %v, want %s", dump(got), dump(full), want)
		}
		b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: id}})
		s.Schedule(b.S.Snapshot(), b.Now)
	}
	large("n1 n2 n3 n4 n5 n6 n7 n8")
	for range 3 { // jobs could not be started there
		id := b.Submit(ask(t, "-N1 -wn1"))
		b.ScheduleAll()
		n, _ := b.S.Node("n1")
		j, _ := b.S.Job(id)
		b.Apply(&cluster.Report{
			Node: "n1", Seq: n.ReportSeq + 1,
			Updates: []cluster.Update{{Kind: cluster.LaunchFailed, Job: id, Attempt: j.Attempt}},
		})
		b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: id}})
		s.Schedule(b.S.Snapshot(), b.Now)
	}
	if n, _ := b.S.Node("n1"); !n.Shaky(b.Now) {
		t.Fatal("n1 has had no trouble")
	}
	large("n2 n3 n4 n5 n6 n7 n8 n9")
	b.Now = b.Now.Add(24 * time.Hour)
	large("n1 n2 n3 n4 n5 n6 n7 n8")
}
