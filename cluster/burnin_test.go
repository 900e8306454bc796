package cluster

import (
	"strings"
	"testing"
	"time"
)

// burnt is what a test tells of one part.
func burnt(id string, v BurninVerdict, text string) TestedPart {
	kind, _, _ := strings.Cut(strings.ToLower(id), "-")
	return TestedPart{
		ID: id, Kind: kind,
		Tests: []PartTest{
			{Verdict: v, Text: text, Figures: []Figure{{Name: "highest temperature", Value: 61, Unit: "C"}}},
		},
	}
}

func goldenBurnin(w *world) {
	w.ok(sys, &NodeUp{Name: "t0", Inventory: smallNode(), Owner: "t0"})
	w.ok(root, &BurninDone{
		Node:  "t0",
		Parts: []TestedPart{burnt("GPU-t0", BurninPassed, ""), burnt("t0/disk", BurninUntested, "no space")},
	})
	w.ok(root, &BurninDone{
		Node: "t0", Parts: []TestedPart{burnt("GPU-t0", BurninFailed, "GPU 0: 3 uncorrected ECC errors")},
	})
	w.refused(alice, &BurninDone{Node: "t0"}, ErrUser)
}

// TestBurnin: a part that fails drains its node with the evidence until it has passed; its tests stay with it.
func TestBurnin(t *testing.T) {
	w := newWorld(t, 2)
	machine := Identity{UID: 65534, Node: "n0", NodeRoot: true}
	test := func(by Identity, n NodeName, parts ...TestedPart) *Node {
		t.Helper()
		w.pass(time.Minute)
		w.ok(by, &BurninDone{Node: n, Parts: parts})
		now, _ := w.s.Node(n)
		return now
	}
	up := func(n NodeName) {
		w.ok(sys, &NodeUp{Name: n, Inventory: smallNode(), Owner: string(n), Again: true, Scored: true})
	}
	up("n0")
	n := test(machine, "n0", burnt("GPU-a", BurninFailed, "GPU 0 (GPU-a): 1 of 2 wrong"),
		burnt("n0/memory", BurninPassed, ""))
	const reason = "burnin: GPU 0 (GPU-a): 1 of 2 wrong"
	if !n.Drain || n.Reason != reason || n.Score(w.now) != troubleDrain {
		t.Errorf("a failure: drained %v for %q, score %v", n.Drain, n.Reason, n.Score(w.now))
	}
	up("n0")
	if n, _ := w.s.Node("n0"); !n.Drain || n.Reason != reason {
		t.Errorf("after it registered again: drained %v for %q", n.Drain, n.Reason)
	}
	if n = test(machine, "n0", burnt("GPU-a", BurninUntested, "no tool")); !n.Drain {
		t.Error("what was not tested makes no node well")
	}
	if n = test(machine, "n0", burnt("GPU-a", BurninPassed, "")); n.Drain || n.Reason != "" {
		t.Errorf("after it has passed: drained %v for %q", n.Drain, n.Reason)
	}
	test(root, "n1", burnt("GPU-a", BurninPassed, ""))
	if at := w.s.Tested([]string{"n0"}); len(at) != 1 || at[0].ID != "n0/memory" {
		t.Errorf("parts of n0: %v", at)
	}
	at := w.s.Tested([]string{"n1"})
	if len(at) != 1 || len(at[0].Tests) != keptPartTests || at[0].Tests[0].Node != "n1" || at[0].Tests[1].Node != "n0" || at[0].Tests[2].Verdict != BurninUntested {
		t.Errorf("parts of n1: %+v", at[0])
	}

	again := burnt("GPU-a", BurninPassed, "")
	again.Tests[0].Job = 7
	test(root, "n1", again)
	test(root, "n1", again)
	if at := w.s.Tested([]string{"GPU-a"}); at[0].Tests[0].Job != 7 || at[0].Tests[1].Job != 0 || at[0].Tests[2].Node != "n0" {
		t.Errorf("told twice: %+v", at[0].Tests)
	}

	w.refused(machine, &BurninDone{Node: "n1"}, ErrUser)
	w.refused(root, &BurninDone{Node: "nowhere"}, ErrNodeName)
	many := burnt("GPU-b", BurninPassed, strings.Repeat("x", maxBurninText+1))
	w.refused(root, &BurninDone{Node: "n1", Parts: []TestedPart{many}}, ErrTooBig)
	w.refused(root, &BurninDone{Node: "n1", Parts: []TestedPart{burnt("", BurninPassed, "")}}, "")
	w.refused(root, &BurninDone{
		Node: "n1", Parts: []TestedPart{burnt("GPU-b", BurninPassed, ""), burnt("GPU-b", BurninPassed, "")},
	}, "")
	w.refused(root, &BurninDone{Node: "n1", Parts: []TestedPart{burnt("GPU-b", "fine", "")}}, "")

	why := "mine"
	w.ok(root, &NodeSet{Nodes: []NodeName{"n1"}, Action: NodeDrain, Reason: &why})
	if n = test(root, "n1", burnt("GPU-a", BurninFailed, "wrong")); n.Reason != "mine" {
		t.Errorf("an operator's reason became %q", n.Reason)
	}
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}})
	w.ok(root, &NodeDelete{Nodes: []NodeName{"n0"}})
	if at := w.s.Tested([]string{"n0/memory"}); len(at) != 0 {
		t.Errorf("tests of a node that is deleted: %v", at)
	}
}
