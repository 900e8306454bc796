package cluster

import (
	"fmt"
	"testing"
	"time"
)

// machine is what a node with these GPUs finds; each has a UUID, and the driver numbers them.
func machine(uuids ...string) Inventory {
	inv := smallNode()
	inv.GPUs = nil
	for i, u := range uuids {
		inv.GPUs = append(inv.GPUs, GPU{Index: i, Minor: i, Type: "h100", UUID: u})
	}
	return inv
}

// A node that finds fewer GPUs serves on with the others, under the numbers that its jobs know them by,
// and says what it lacks until all are back.
func TestGPULost(t *testing.T) {
	w := newWorld(t, 0)
	up := func(inv Inventory) *Node {
		t.Helper()
		w.ok(sys, &NodeUp{Name: "n0", Inventory: inv, Seq: w.seq["n0"]})
		n, _ := w.s.Node("n0")
		return n
	}
	if n := up(machine("a", "b", "c", "d")); n.Lacks != "" || n.Reason != "" || n.Inventory.Renumbered() {
		t.Fatalf("a whole node: %+v", n)
	}
	gpu := func(id JobID, gpu, cpu int) *Error {
		t.Helper()
		a := &Alloc{Partition: "main", Shares: []Share{{Node: "n0", CPUs: NewIDSet(cpu), GPUs: NewIDSet(gpu)}}}
		return w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Start: a}}}).Result.([]*Error)[0]
	}
	onLost, onLast := w.submit(nil), w.submit(nil)
	for i, id := range []JobID{onLost, onLast} {
		if e := gpu(id, 1+2*i, i); e != nil { // b and d
			t.Fatal(e)
		}
		w.report("n0", id, NodeReady)
	}

	w.pass(time.Minute)
	n := up(machine("a", "c", "d"))
	if want := "gpu: 3 of 4 found"; !n.Usable() || n.Reason != want || n.Lacks != want || n.ReasonBy != "slurm" || !n.ReasonAt.Equal(w.now) {
		t.Errorf("a node without one of its GPUs: %+v", n)
	}
	if got := n.Inventory.Devices().String(); got != "0,2-3" || !n.Inventory.Renumbered() {
		t.Errorf("devices %s, want 0,2-3", got)
	}
	if g := n.Inventory.GPUs[3]; g.UUID != "d" || g.Index != 3 || g.Minor != 2 {
		t.Errorf("the last device is %+v", g)
	}
	w.want(onLost, Running)
	other := w.submit(nil)
	for k, free := range map[int]bool{0: true, 1: false, 3: false} {
		e := gpu(other, k, 4)
		if (e == nil) != free {
			t.Errorf("GPU %d is given: %v, want %v", k, e == nil, free)
		}
		if e == nil {
			w.report("n0", other, NodeReady)
			w.over(other, 0)
			other = w.submit(nil)
		}
	}
	w.over(onLost, 0) // what is lost is not free
	if e := gpu(other, 1, 4); e == nil {
		t.Error("a GPU that is not there was given")
	}

	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}})
	n = up(machine("a", "c", "d"))
	if n.Reason != n.Lacks || !n.Usable() {
		t.Errorf("a node that was away still lacks what it lacked: %+v", n)
	}
	n = up(machine("d", "c", "b", "a"))
	if n.Lacks != "" || n.Reason != "" || n.ReasonBy != "" || fmt.Sprint(n.Inventory.GPUs[1].UUID, n.Inventory.GPUs[1].Minor) != "b2" || !n.Inventory.Renumbered() {
		t.Errorf("a node whose GPUs are all back: %+v", n)
	}
	n = up(machine("a", "b", "c", "e")) // d was replaced
	if n.Lacks != "" || n.Inventory.GPUs[3].UUID != "e" || len(n.Inventory.GPUs) != 4 {
		t.Errorf("a node with a new GPU: %+v", n)
	}

	why := "disk"
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeDrain, Reason: &why})
	if n = up(machine("a")); n.Reason != why || n.Lacks != "gpu: 1 of 4 found" {
		t.Errorf("an operator's reason is not kept: %+v", n)
	}
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume})
	if n, _ = w.s.Node("n0"); n.Reason != n.Lacks || !n.Usable() {
		t.Errorf("resumed: %+v", n)
	}
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume}) // for good
	if n = up(machine("a")); n.Lacks != "" || n.Reason != "" {
		t.Errorf("a loss that was accepted: %+v", n)
	}
	if n = up(machine("a", "b")); n.Lacks != "" || n.Inventory.Devices().String() != "0-1" {
		t.Errorf("more than was accepted: %+v", n)
	}
	if n = up(machine("a")); n.Lacks != "gpu: 1 of 2 found" {
		t.Errorf("less again: %+v", n)
	}
}

// Fewer CPUs and less memory are told likewise; a node that has less than its jobs hold takes none
// until it has enough again.
func TestHardwareLost(t *testing.T) {
	w := newWorld(t, 1)
	id := w.run(w.submit(nil), 7, "n0")
	up := func(cpus int, mem MemMB) *Node {
		t.Helper()
		inv := smallNode()
		inv.CPUs, inv.MemMB = cpus, mem
		w.ok(sys, &NodeUp{Name: "n0", Inventory: inv, Seq: w.seq["n0"]})
		n, _ := w.s.Node("n0")
		return n
	}
	if n := up(8, 7900); n.Lacks != "" {
		t.Errorf("a little less memory: %+v", n)
	}
	if n := up(8, 4000); n.Reason != "memory: 4000 of 8000 MB found" || !n.Usable() {
		t.Errorf("half of the memory: %+v", n)
	}
	if n := up(4, 8000); n.Reason != lessThanHeld || n.Lacks != "cpu: 4 of 8 found" || n.Usable() {
		t.Errorf("CPUs are gone that a job holds: %+v", n)
	}
	if n := up(8, 8000); n.Reason != "" || n.Lacks != "" || !n.Usable() {
		t.Errorf("they are back: %+v", n)
	}
	up(4, 8000)
	w.over(id, 0)
	if n := up(4, 8000); n.Reason != "cpu: 4 of 8 found" || !n.Usable() {
		t.Errorf("the job is over: %+v", n)
	}
}
