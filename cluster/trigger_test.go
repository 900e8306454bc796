package cluster

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// ran takes the hooks of triggers, each in words, in the order in which they were sent.
func (w *world) ran() (list []string) {
	w.t.Helper()
	var ends []HookEnd
	for e := range w.s.Hooks() {
		if e.Kind != HookTrigger {
			continue
		}
		r := e.Trigger
		list = append(list, fmt.Sprintf("%s %d%v%s", r.Program, r.Job, e.Nodes, r.Event))
		ends = append(ends, HookEnd{ID: e.ID})
	}
	if ends != nil {
		w.ok(sys, &HooksDone{Ends: ends})
	}
	return list
}

func (w *world) wantRan(want ...string) {
	w.t.Helper()
	if got := w.ran(); !slices.Equal(got, want) {
		w.t.Fatalf("programs run: %q, want %q", got, want)
	}
}

func (w *world) trigger(g Trigger) uint32 {
	w.t.Helper()
	return w.ok(root, &TriggerSet{Trigger: g}).Result.(uint32)
}

func (w *world) set(action NodeAction, names ...NodeName) {
	w.t.Helper()
	why := "why"
	w.ok(root, &NodeSet{Nodes: names, Action: action, Reason: &why})
}

// TestTriggersOfNodes: what happens to nodes within a moment is told in one call, once, or each time if the trigger
// is permanent.
func TestTriggersOfNodes(t *testing.T) {
	w := newWorld(t, 4)
	w.trigger(Trigger{Events: []TriggerEvent{TriggerDown}, Program: "/down", Permanent: true})
	w.trigger(Trigger{Events: []TriggerEvent{TriggerUp}, Program: "/up", Nodes: []NodeName{"n1"}})
	w.trigger(Trigger{Events: []TriggerEvent{TriggerDrained}, Program: "/drained"})
	w.trigger(Trigger{Events: []TriggerEvent{TriggerFail}, Program: "/fail", Offset: time.Minute})
	w.set(NodeSetDown, "n1")
	w.pass(time.Second)
	w.set(NodeSetDown, "n2")
	w.due()
	w.wantRan()
	w.pass(triggerGather - time.Second)
	w.due()
	w.wantRan("/down 0[n1 n2]")
	w.set(NodeResume, "n1", "n2")
	w.set(NodeFail, "n3")
	w.pass(triggerGather)
	w.due()
	w.wantRan("/up 0[n1]")
	w.set(NodeSetDown, "n1")
	w.set(NodeResume, "n1")
	w.pass(triggerGather)
	w.due()
	w.wantRan("/down 0[n1]")
	w.pass(time.Minute)
	w.due()
	w.wantRan("/fail 0[n3]")

	id := w.run(w.submit(func(s *JobSpec) { s.Kind = Batch }), 0, "n0")
	w.set(NodeDrain, "n0")
	w.pass(time.Minute)
	w.due()
	w.wantRan() // jobs are on it
	w.over(id, 0)
	w.pass(triggerGather)
	w.due()
	w.wantRan("/drained 0[n0]")
	if n := len(w.s.triggers.List); n != 1 {
		t.Errorf("%d triggers are left, want the permanent one", n)
	}
}

// TestManyNodesHit: a switch that is lost costs a trigger no more for each node than one node does.
func TestManyNodesHit(t *testing.T) {
	bytes := func(nodes int) uint64 {
		w := newWorld(t, nodes)
		var all []NodeName
		for n := range w.s.Nodes() {
			all = append(all, n.Name)
		}
		for i := range 5 {
			w.trigger(Trigger{Events: []TriggerEvent{TriggerDown}, Program: fmt.Sprint("/of", i), Nodes: all})
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out := w.s.Apply(Entry{Index: w.s.Index + 1, At: w.now, By: sys, Cmd: &NodeDown{Nodes: all, Why: "lost"}})
		runtime.ReadMemStats(&after)
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		w.pass(triggerGather)
		w.due()
		if list := w.ran(); len(list) != 5 || strings.Count(list[4], " ") != nodes {
			t.Errorf("%d programs run, the last with %d nodes", len(list), strings.Count(list[4], " "))
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := bytes(50), bytes(400)
	if many > 12*few {
		t.Errorf("50 nodes take %d bytes, 400 take %d", few, many)
	}
}

// TestTriggersOfIdleNodes: a node that has been idle for long enough is told of once, until it was busy again.
func TestTriggersOfIdleNodes(t *testing.T) {
	w := newWorld(t, 2)
	id := w.run(w.submit(func(s *JobSpec) { s.Kind = Batch }), 0, "n0")
	w.trigger(Trigger{Events: []TriggerEvent{TriggerIdle}, Program: "/idle", Offset: time.Hour, Permanent: true})
	w.pass(time.Hour - time.Second)
	w.due()
	w.wantRan()
	w.pass(time.Second)
	w.due()
	w.wantRan("/idle 0[n1]")
	w.pass(time.Hour)
	w.due()
	w.wantRan()
	w.over(id, 0)
	w.pass(time.Hour)
	w.due()
	w.wantRan("/idle 0[n0]")
}

// TestTriggersOfJobs: the end of a job, its time limit and a moment before that, and what happens to its nodes.
func TestTriggersOfJobs(t *testing.T) {
	w := newWorld(t, 4)
	limit := func(s *JobSpec) { s.Kind, s.Limit = Batch, time.Hour }
	id := w.run(w.submit(limit), 0, "n0", "n1")
	other := w.run(w.submit(limit), 0, "n2")
	set := func(e TriggerEvent, offset time.Duration) {
		w.trigger(Trigger{Job: id, Events: []TriggerEvent{e}, Offset: offset, Program: "/" + string(e)})
	}
	set(TriggerTime, -10*time.Minute)
	set(TriggerTime, 0)
	set(TriggerFini, 0)
	set(TriggerFini, time.Minute)
	set(TriggerDown, 0)
	w.set(NodeSetDown, "n3")
	w.pass(50 * time.Minute)
	w.due()
	w.wantRan(fmt.Sprintf("/time %d[]", id))
	w.over(other, 0)
	w.wantRan()
	w.pass(10 * time.Minute)
	w.due()
	w.wantRan(fmt.Sprintf("/time %d[]", id))
	w.set(NodeSetDown, "n1")
	w.wantRan(fmt.Sprintf("/down %d[]", id))
	w.over(id, 0)
	w.wantRan(fmt.Sprintf("/fini %d[]", id))
	w.pass(time.Minute)
	w.due()
	w.wantRan(fmt.Sprintf("/fini %d[]", id))
	w.refused(root, &TriggerSet{Trigger{Job: id, Events: []TriggerEvent{TriggerFini}, Program: "/x"}}, ErrJobID)
}

// TestTriggersOfArrays: the number of an array stands for all of its tasks.
func TestTriggersOfArrays(t *testing.T) {
	w := newWorld(t, 2)
	id := w.submit(func(s *JobSpec) { s.Kind, s.Array = Batch, &ArraySpec{Tasks: RangeIDSet(1, 2)} })
	w.trigger(Trigger{Job: id, Events: []TriggerEvent{TriggerFini}, Program: "/fini"})
	a, b := w.start(id, 1, 0, "n0"), w.start(id, 2, 0, "n1")
	w.report("n0", a, NodeReady)
	w.report("n1", b, NodeReady)
	w.over(a, 0)
	w.wantRan()
	w.over(b, 0)
	w.wantRan(fmt.Sprintf("/fini %d[]", id))
}

// TestTriggersOfServers: events of the whole cluster.
func TestTriggersOfServers(t *testing.T) {
	w := newWorld(t, 1)
	w.trigger(Trigger{Events: []TriggerEvent{TriggerReconfig}, Program: "/reconfig"})
	w.trigger(Trigger{Events: []TriggerEvent{TriggerLeaderLost, TriggerAnotherLeads}, Program: "/lead"})
	w.refused(root, &TriggerServer{Events: []TriggerEvent{TriggerLeaderLost}}, ErrUser)
	w.ok(sys, &TriggerServer{Events: []TriggerEvent{TriggerLeaderBegins}})
	w.wantRan()
	w.ok(sys, &TriggerServer{Events: []TriggerEvent{TriggerLeaderLost}})
	w.wantRan("/lead 0[]primary_slurmctld_failure")
	cfg := DefaultConfig()
	w.ok(root, &Configure{Config: &cfg})
	w.wantRan("/reconfig 0[]reconfig")
}

// TestTriggerRights: who may set and clear, and what is no trigger.
func TestTriggerRights(t *testing.T) {
	w := newWorld(t, 1)
	down := Trigger{Events: []TriggerEvent{TriggerDown}, Program: "/x"}
	w.refused(alice, &TriggerSet{Trigger: down}, ErrAccess)
	w.refused(root, &TriggerSet{Trigger{Events: []TriggerEvent{"up and away"}, Program: "/x"}}, "")
	w.refused(root, &TriggerSet{Trigger{Events: []TriggerEvent{TriggerDown}, Program: "x"}}, "")
	w.refused(root, &TriggerSet{Trigger{Events: []TriggerEvent{TriggerDown, TriggerFini}, Program: "/x"}}, "")
	w.refused(root, &TriggerSet{Trigger{Events: []TriggerEvent{TriggerFini}, Program: "/x"}}, ErrJobID)
	w.refused(root, &TriggerSet{Trigger{Events: []TriggerEvent{TriggerFini}, Job: 99, Program: "/x"}}, ErrJobID)
	w.refused(root, &TriggerSet{Trigger{
		Events: []TriggerEvent{TriggerUp}, Nodes: []NodeName{"n9"}, Program: "/x"}}, ErrNodeName)
	first := w.trigger(down)
	w.refused(root, &TriggerSet{Trigger: down}, ErrTrigger)
	cfg := DefaultConfig()
	cfg.Keys = map[string]string{"slurmctldparameters": "foo,allow_user_triggers"}
	w.ok(root, &Configure{Config: &cfg})
	id := w.submit(nil)
	own := Trigger{Events: []TriggerEvent{TriggerFini}, Job: id, Program: "/x"}
	w.refused(bob, &TriggerSet{Trigger: own}, ErrUser)
	second := w.ok(alice, &TriggerSet{Trigger: own}).Result.(uint32)
	w.refused(alice, &TriggerClear{ID: first}, ErrAccess)
	w.refused(alice, &TriggerClear{}, "")
	w.refused(alice, &TriggerClear{ID: 99}, ErrNoTrigger)
	w.ok(alice, &TriggerClear{ID: second})
	w.ok(root, &TriggerClear{UID: new(uint32)})
	if n := len(w.s.triggers.List); n != 0 {
		t.Errorf("%d triggers are left", n)
	}
	if third := w.trigger(down); third != second+1 {
		t.Errorf("the next trigger has number %d after %d", third, second)
	}
}

// TestTriggersOfUser: one user takes no others' room for triggers, and none names more than there is.
func TestTriggersOfUser(t *testing.T) {
	w := newWorld(t, 1)
	cfg := DefaultConfig()
	cfg.Keys = map[string]string{"slurmctldparameters": "allow_user_triggers"}
	w.ok(root, &Configure{Config: &cfg})
	check := func(g Trigger) error { return Check(w.s.Snapshot(), &TriggerSet{Trigger: g}) }
	up := Trigger{Events: []TriggerEvent{TriggerUp}, Program: "/x", UID: alice.UID}
	for i := range maxTriggersOf {
		up.Program = fmt.Sprint("/x", i)
		if err := check(up); err != nil {
			t.Fatal(err)
		}
		w.ok(alice, &TriggerSet{Trigger: up})
	}
	up.Program = "/another"
	if check(up) == nil {
		t.Error("one user may have all triggers")
	}
	for _, uid := range []uint32{0, bob.UID} {
		if up.UID = uid; check(up) != nil {
			t.Errorf("user %d may have none", uid)
		}
	}
	many := up
	many.Nodes = []NodeName{"n0", "n0"}
	if check(many) == nil {
		t.Error("a node is named twice")
	}
	up.Events = slices.Repeat(up.Events, 100)
	if check(up) == nil {
		t.Error("an event is named 100 times")
	}
}
