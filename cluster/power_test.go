package cluster

import (
	"slices"
	"testing"
	"time"
)

// cloud is a cluster of one node that is there, n0, and two of the cloud, c0 and c1.
func cloud(t *testing.T) *world {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.ResumeTimeout = 10 * time.Minute
	cfg.Power = PowerConfig{
		Resume: "/on", Suspend: "/off", After: 5 * time.Minute, Leaving: time.Minute,
		ExceptNodes: []NodeName{"n0"},
	}
	cfg.Declared = []Node{
		{Name: "c0", Inventory: smallNode(), Expected: ExpectedCloud},
		{Name: "c1", Inventory: smallNode(), Expected: ExpectedCloud},
	}
	w.ok(root, &Configure{Config: &cfg})
	return w
}

func (w *world) wantPower(name NodeName, state PowerState, usable bool) *Node {
	w.t.Helper()
	n, _ := w.s.Node(name)
	got := PowerState("")
	if n.Power != nil {
		got = n.Power.State
	}
	if got != state || n.Usable() != usable {
		w.t.Fatalf("node %s: power %q, usable %v, want %q, %v (%s)", name, got, n.Usable(), state, usable, n.Reason)
	}
	return n
}

// hook takes the only hook there is.
func (w *world) hook(kind HookKind, failed string, nodes ...NodeName) *Hook {
	w.t.Helper()
	all := slices.Collect(w.s.Hooks())
	if len(all) != 1 || all[0].Kind != kind || !slices.Equal(all[0].Nodes, nodes) {
		w.t.Fatalf("hooks %+v, want %s of %v", all, kind, nodes)
	}
	w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: all[0].ID, Failed: failed}}})
	return all[0]
}

func (w *world) comes(name NodeName) {
	w.t.Helper()
	w.ok(sys, &NodeUp{Name: name, Inventory: smallNode(), Seq: w.seq[name]})
}

// TestCloud: a job may have nodes that are off; they are switched on for it, it begins when all have come, and they are
// switched off when they have been idle.
func TestCloud(t *testing.T) {
	w := cloud(t)
	w.wantPower("c0", PowerOff, true)
	w.wantPower("n0", "", true)
	id := w.submit(func(s *JobSpec) { s.Limit = 20 * time.Minute })
	w.start(id, TaskAny, 0, "c0", "c1")
	if j := w.job(id); !j.Preparing() || !slices.Equal(j.Prelude.Nodes, []NodeName{"c0", "c1"}) {
		t.Fatalf("the job waits for %+v", j.Prelude)
	}
	w.wantPower("c0", PowerAsked, true)
	w.due()
	if e := w.hook(HookResume, "", "c0", "c1"); len(e.Jobs) != 1 || e.Jobs[0].ID != id {
		t.Errorf("for jobs %+v", e.Jobs)
	}
	w.wantPower("c0", PowerUp, true)
	w.pass(9 * time.Minute)
	w.comes("c0")
	if j := w.job(id); !j.Preparing() {
		t.Error("the job begins before all of its nodes have come")
	}
	w.comes("c1")
	j := w.job(id)
	if j.Preparing() || !j.EndLimit(w.s.Config()).Equal(w.now.Add(20*time.Minute)) {
		t.Errorf("when all have come: %+v, until %v", j.Prelude, j.EndLimit(w.s.Config()))
	}
	w.report("c0", id, NodeReady)
	w.report("c1", id, NodeReady)
	w.want(id, Running)
	w.pass(6 * time.Minute)
	w.due()
	w.wantPower("c0", "", true) // it has a job
	w.over(id, 0)
	ended := w.now
	if at := w.s.NextTimer(w.now); !at.Equal(ended.Add(5 * time.Minute)) {
		t.Errorf("next timer %v, want five minutes after %v", at, ended)
	}
	w.pass(5 * time.Minute)
	w.due()
	w.hook(HookSuspend, "", "c0", "c1")
	w.wantPower("c0", PowerDown, false)
	w.wantPower("n0", "", true)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"c0"}})
	if n := w.wantPower("c0", PowerDown, false); n.Down {
		t.Error("a node that was switched off counts as lost")
	}
	w.pass(time.Minute)
	w.due()
	w.wantPower("c0", PowerOff, true)
	w.wantPower("c1", "", true) // it did not go
}

// TestCloudFails: a node that does not come is down for a while, longer each time; its job goes back into the queue.
func TestCloudFails(t *testing.T) {
	w := cloud(t)
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		id := w.submit(func(s *JobSpec) { s.Kind = Batch })
		w.start(id, TaskAny, 0, "c0")
		w.due()
		why := "quota"
		if i == 1 {
			why = ""
		}
		w.hook(HookResume, why, "c0")
		if i == 1 {
			w.pass(10 * time.Minute)
			w.due()
		}
		n := w.wantPower("c0", PowerOff, false)
		want := "ResumeProgram failed: quota"
		if i == 1 {
			want = "ResumeTimeout reached"
		}
		if !n.Down || n.Reason != want {
			t.Errorf("try %d: reason %q, want %q", i, n.Reason, want)
		}
		if j := w.want(id, Pending); j.Restarts != 1 {
			t.Errorf("the job: %+v", j)
		}
		w.ok(root, &Cancel{Ref: Ref{Job: id}})
		w.pass(pause - time.Second)
		w.due()
		w.wantPower("c0", PowerOff, false)
		w.pass(time.Second)
		w.due()
		w.wantPower("c0", PowerOff, true)
	}
	id := w.submit(nil)
	w.start(id, TaskAny, 0, "c0")
	w.due()
	w.hook(HookResume, "", "c0")
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.want(id, Ended) // at once: no node has heard of it
	w.comes("c0")
	w.wantPower("c0", "", true)
}

// TestPowerByHand: operators switch nodes; one with jobs goes when they have ended, or loses them.
func TestPowerByHand(t *testing.T) {
	w := cloud(t)
	set := func(a NodeAction, nodes ...NodeName) *NodeSet { return &NodeSet{Nodes: nodes, Action: a} }
	w.refused(alice, set(NodePowerUp, "c0"), ErrUser)
	w.refused(root, set(NodePowerUp, "n0"), ErrNodeState)
	w.ok(root, set(NodePowerUp, "c0"))
	w.due()
	w.hook(HookResume, "", "c0")
	w.comes("c0")
	id := w.run(w.submit(nil), 0, "c0")
	w.ok(root, set(NodePowerDown, "c0"))
	w.wantPower("c0", PowerEmpty, false)
	w.due()
	w.wantPower("c0", PowerEmpty, false)
	w.over(id, 0)
	w.due()
	w.hook(HookSuspend, "", "c0")
	w.wantPower("c0", PowerDown, false)
	w.run(w.submit(nil), 0, "n0")
	w.ok(root, set(NodePowerDownForce, "n0"))
	w.due()
	w.hook(HookSuspend, "", "n0")
	cfg := *w.s.Config()
	cfg.Power = PowerConfig{}
	w.ok(root, &Configure{Config: &cfg})
	w.wantPower("c1", "", false)
	w.refused(root, set(NodePowerUp, "c1"), ErrNodeState)
}

// TestReclaim: the jobs of a node that its provider takes back are warned, and leave it in time; a node of the
// cloud may come again.
func TestReclaim(t *testing.T) {
	w := cloud(t)
	w.ok(root, &NodeSet{Nodes: []NodeName{"c0"}, Action: NodePowerUp})
	w.due()
	w.hook(HookResume, "", "c0")
	w.comes("c0")
	yes := true
	own := w.run(w.submit(func(s *JobSpec) {
		s.Kind, s.Requeue, s.Signal = Batch, &yes, Signal{Num: 10, BatchOnly: true}
	}), 0, "c0")
	plain := w.run(w.submit(func(s *JobSpec) { s.Kind = SrunJob }), 1, "c0")
	set := &NodeSet{Nodes: []NodeName{"c0"}, Action: NodeReclaim, Grace: 2 * time.Minute}
	w.refused(alice, set, ErrUser)
	w.ok(root, set)
	if s := w.job(own).Signals; len(s) != 2 || s[1].Sig != 10 || s[1].Scope != SignalBatchShell {
		t.Errorf("warned by %+v", s)
	}
	if s := w.job(plain).Signals; len(s) != 2 || s[1].Sig != sigTerm {
		t.Errorf("warned by %+v", s)
	}
	w.wantPower("c0", PowerEmpty, false)
	w.pass(119 * time.Second)
	w.due()
	w.want(own, Running)
	w.pass(time.Second)
	w.due()
	w.report("c0", own, NodeDone)
	w.report("c0", plain, NodeDone)
	w.want(own, Pending)
	if j := w.want(plain, Ended); j.Outcome != Preempted || j.Blame == nil || j.Blame.Node != "c0" {
		t.Errorf("an srun on it: %+v", j)
	}
	w.due()
	w.hook(HookSuspend, "", "c0")
	w.ok(sys, &NodeDown{Nodes: []NodeName{"c0"}})
	w.pass(time.Minute)
	w.due()
	w.wantPower("c0", PowerOff, true)
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeReclaim})
	if n := w.wantPower("n0", "", false); n.Reason != reclaimReason {
		t.Errorf("a node that does not come again: %q", n.Reason)
	}
}

// TestResumeRate: no more nodes are switched in a minute than the site says.
func TestResumeRate(t *testing.T) {
	w := cloud(t)
	cfg := *w.s.Config()
	cfg.Power.ResumeRate = 1
	w.ok(root, &Configure{Config: &cfg})
	w.start(w.submit(nil), TaskAny, 0, "c0", "c1")
	w.due()
	w.hook(HookResume, "", "c0")
	w.pass(30 * time.Second)
	w.due()
	w.wantPower("c1", PowerAsked, true)
	w.pass(31 * time.Second)
	w.due()
	w.hook(HookResume, "", "c1")
}

// TestKeepOn: of a set as many idle nodes stay on as it says, and partitions have a time of their own, of which the
// longest counts.
func TestKeepOn(t *testing.T) {
	w := newWorld(t, 5)
	cfg := *w.s.Config()
	cfg.Power = PowerConfig{
		Resume: "/on", Suspend: "/off", After: 5 * time.Minute, Leaving: time.Minute,
		KeepOn: []KeepOn{{Nodes: []NodeName{"n0", "n1", "n2"}, Count: 1}},
	}
	short, long, never := time.Minute, 10*time.Minute, time.Duration(Unlimited)
	cfg.Partitions = append(cfg.Partitions, Partition{
		Name: "a", State: PartitionUp, Nodes: []NodeName{"n0", "n1", "n2"},
		PartitionPower: PartitionPower{SuspendTime: &short, SuspendTimeout: &long},
	},
		Partition{
			Name: "b", State: PartitionUp, Nodes: []NodeName{"n2"},
			PartitionPower: PartitionPower{SuspendTime: &long},
		}, Partition{
			Name: "c", State: PartitionUp, Nodes: []NodeName{"n4"},
			PartitionPower: PartitionPower{SuspendTime: &never},
		})
	w.ok(root, &Configure{Config: &cfg})
	w.submitTo("n0", t)
	w.pass(time.Minute)
	w.due() // n0 has a job, so n1 is kept on; n2 is in b too
	w.wantPower("n0", "", true)
	w.wantPower("n1", "", true)
	w.wantPower("n2", "", true)
	w.pass(4 * time.Minute)
	w.due()
	w.wantPower("n1", "", true)
	w.wantPower("n2", "", true)
	w.hook(HookSuspend, "", "n3")
	w.pass(5 * time.Minute)
	w.due()
	w.hook(HookSuspend, "", "n2")
	w.pass(9 * time.Minute)
	w.due()
	w.wantPower("n2", PowerDown, false) // the SuspendTimeout of a
	w.wantPower("n4", "", true)
}

// submitTo has a job begin on a node.
func (w *world) submitTo(node NodeName, t *testing.T) {
	t.Helper()
	id := w.submit(func(s *JobSpec) { s.Limit = time.Hour })
	w.start(id, TaskAny, 0, node)
	w.report(node, id, NodeReady)
	w.want(id, Running)
}
