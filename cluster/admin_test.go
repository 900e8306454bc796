package cluster

import (
	"testing"
	"time"
)

func TestNodesCreatedAndDeleted(t *testing.T) {
	w := newWorld(t, 1)
	x := func(name NodeName, e Expected) Node { return Node{Name: name, Expected: e, Inventory: smallNode()} }
	w.refused(alice, &NodeCreate{Nodes: []Node{x("x0", ExpectedCloud)}}, ErrUser)
	w.refused(root, &NodeCreate{Nodes: []Node{x("x0", ExpectedCloud), x("x1", "")}}, ErrNodeState)
	w.refused(root, &NodeCreate{Nodes: []Node{x("n0", ExpectedCloud)}}, "")
	w.ok(root, &NodeCreate{Nodes: []Node{x("x0", ExpectedCloud), x("x1", ExpectedFuture)}})
	if n, _ := w.s.Node("x0"); n.Usable() || n.Inventory.CPUs != 8 || n.Order != 1 {
		t.Errorf("a node to come: %+v", n)
	}
	for _, name := range []NodeName{"x0", "x1"} {
		w.ok(sys, &NodeUp{Name: name, Inventory: smallNode()})
	}
	x0, _ := w.s.Node("x0")
	x1, _ := w.s.Node("x1")
	if !x0.Usable() || x0.Expected != ExpectedCloud || !x1.Usable() || x1.Expected != "" {
		t.Errorf("nodes that came: %+v, %+v", x0, x1)
	}

	job := w.run(w.submit(nil), 0, "x0")
	w.refused(alice, &NodeDelete{Nodes: []NodeName{"x0"}}, ErrUser)
	w.refused(root, &NodeDelete{Nodes: []NodeName{"x0"}}, ErrBusy)
	w.refused(root, &NodeDelete{Nodes: []NodeName{"x1"}}, "") // it is up
	w.refused(root, &NodeDelete{Nodes: []NodeName{"zz"}}, ErrNodeName)
	w.over(job, 0)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"x0", "x1"}})
	w.refused(root, &NodeDelete{Nodes: []NodeName{"x0", "zz"}}, ErrNodeName)
	w.ok(root, &NodeDelete{Nodes: []NodeName{"x0"}})
	if _, there := w.s.Node("x0"); there || w.s.NodeCount() != 2 {
		t.Error("a deleted node is still there")
	}
	w.ok(sys, &NodeUp{Name: "x0", Inventory: smallNode()}) // a client makes it known again
	w.run(w.submit(nil), 0, "x0")

	cfg := *w.s.Config()
	cfg.Declared = []Node{x("d0", ""), x("d1", "")}
	w.ok(root, &Configure{Config: &cfg})
	w.ok(root, &NodeDelete{Nodes: []NodeName{"d1"}})
	if d := w.s.Config().Declared; len(d) != 1 || d[0].Name != "d0" {
		t.Errorf("still declared: %+v", d)
	}
}

// booted registers a node after its n-th boot.
func (w *world) booted(name NodeName, id string) *Node {
	w.t.Helper()
	inv := smallNode()
	inv.BootID = id
	w.ok(sys, &NodeUp{Name: name, Inventory: inv, Seq: w.seq[name]})
	n, _ := w.s.Node(name)
	return n
}

func TestReboot(t *testing.T) {
	w := newWorld(t, 2)
	ask := func(change func(*NodeReboot)) *NodeReboot {
		q := &NodeReboot{Nodes: []NodeName{"n0"}}
		if change != nil {
			change(q)
		}
		return q
	}
	state := func(want string) {
		t.Helper()
		n, _ := w.s.Node("n0")
		got := ""
		for _, word := range []struct {
			text string
			is   bool
		}{
			{"up ", n.Up}, {"down ", n.Down}, {"drain ", n.Drain},
			{"asked ", n.Reboot != nil && !n.Reboot.Issued()}, {"issued ", n.Reboot.Issued()},
		} {
			if word.is {
				got += word.text
			}
		}
		if got += ": " + n.Reason; got != want {
			t.Fatalf("the node is %q, want %q", got, want)
		}
	}
	w.booted("n0", "a")
	w.refused(root, ask(nil), "") // no program
	cfg := *w.s.Config()
	cfg.RebootProgram, cfg.ResumeTimeout = "/sbin/reboot", time.Minute
	w.ok(root, &Configure{Config: &cfg})
	w.refused(alice, ask(nil), ErrUser)
	w.refused(root, ask(func(q *NodeReboot) { q.Nodes = append(q.Nodes, "zz") }), ErrNodeName)
	w.refused(root, ask(func(q *NodeReboot) { q.Next = NodeDrain }), ErrNodeState)
	w.refused(root, ask(func(q *NodeReboot) { q.Cancel = true }), ErrNodeState)

	job := w.run(w.submit(nil), 0, "n0")
	w.ok(root, ask(nil)) // jobs may still start
	state("up asked : reboot requested")
	w.ok(root, ask(func(q *NodeReboot) { q.Asap, q.Reason = true, "kernel" })) // the newer request counts
	state("up drain asked : kernel")
	w.ok(root, ask(nil))
	state("up asked : reboot requested")
	w.run(w.submit(nil), 1, "n0")
	w.ok(root, ask(func(q *NodeReboot) { q.Cancel = true }))
	state("up : ")
	w.ok(root, ask(func(q *NodeReboot) { q.Asap = true }))
	state("up drain asked : Reboot ASAP")
	w.due()
	state("up drain asked : Reboot ASAP")
	w.over(job, 0)
	w.due()
	state("up drain asked : Reboot ASAP")
	w.over(job+1, 0)
	w.due()
	state("up drain issued : Reboot ASAP : reboot issued")
	if at := w.s.NextTimer(w.now); !at.Equal(w.now.Add(time.Minute)) {
		t.Errorf("the clock is looked at next at %s", at)
	}
	w.refused(root, ask(func(q *NodeReboot) { q.Cancel = true }), ErrNodeState)
	w.refused(root, ask(nil), ErrNodeState)
	w.booted("n0", "a") // only its daemon was restarted
	state("up drain issued : Reboot ASAP : reboot issued")
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}})
	state("drain issued : Reboot ASAP : reboot issued")
	w.booted("n0", "b")
	state("up : ")

	why := "disk"
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeDrain, Reason: &why})
	w.ok(root, ask(func(q *NodeReboot) { q.Asap = true }))
	state("up drain asked : disk")
	w.due()
	w.booted("n0", "c")
	state("up drain : disk") // it was so before
	w.ok(root, ask(func(q *NodeReboot) { q.Next = NodeResume }))
	w.due()
	w.booted("n0", "d")
	state("up : ")
	w.ok(root, ask(func(q *NodeReboot) { q.Next, q.Reason, q.Asap = NodeSetDown, "bios", true }))
	w.due()
	w.booted("n0", "e")
	state("up down : bios : reboot issued : reboot complete")
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume})

	w.ok(root, ask(nil))
	w.due()
	w.refusedStart("n0")
	w.pass(time.Minute - 1)
	w.due()
	state("up issued : reboot requested : reboot issued")
	w.pass(1)
	w.due()
	state("up down : reboot requested : reboot issued : reboot timed out")
	w.booted("n0", "f") // late, but there
	state("up : ")
}

// refusedStart wants that no job starts on a node.
func (w *world) refusedStart(n NodeName) {
	w.t.Helper()
	d := Decision{Job: w.submit(nil), Task: TaskAny, Start: &Alloc{Shares: []Share{{Node: n, CPUs: NewIDSet(0)}}}}
	if e := w.ok(sys, &Decide{Decisions: []Decision{d}}).Result.([]*Error)[0]; e == nil {
		w.t.Errorf("a job started on node %s", n)
	}
}
