package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// standing starts a batch job on the first nodes of n, of which the last are spares.
func standing(w *world, n, spares int, change func(*JobSpec)) JobID {
	id := w.submit(func(s *JobSpec) {
		s.Kind, s.MinNodes, s.MaxNodes = Batch, n, n
		s.Requeue = new(bool)
		*s.Requeue = true
		s.Resilience = &Resilience{Spares: spares}
		if change != nil {
			change(s)
		}
	})
	var names []NodeName
	for i := range n {
		names = append(names, nodeName(i))
	}
	return w.run(id, 0, names...)
}

// placed words where a job runs, its spares and the nodes that it has lost.
func placed(j *Job) string { return fmt.Sprint(j.AllocNodes(), SpareNodes(j), LostNodes(j)) }

// TestSpares: a spare takes the place of a node that fails, at its place in the order, until none is left.
func TestSpares(t *testing.T) {
	w := newWorld(t, 6)
	id := standing(w, 5, 2, nil)
	if got := placed(w.job(id)); got != "[n0 n1 n2] [n3 n4] []" {
		t.Fatalf("at first: %s", got)
	}
	if got := amountOf(w.job(id).Amounts(w.s.Config(), nil), "node"); got != 5 {
		t.Errorf("the job is charged for %v nodes, want 5", got)
	}
	if w.s.Load("n4").CPUs.Empty() {
		t.Error("a spare is free for others")
	}
	w.pass(10 * time.Second)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n1"}})
	if got := placed(w.want(id, Running)); got != "[n0 n3 n2] [n4] [n1]" {
		t.Errorf("after n1: %s", got)
	}
	const why = "spare node n3 has taken the place of node n1: the node went down"
	if got := w.job(id).SystemComment; !strings.HasPrefix(got, why) {
		t.Errorf("comment %q", got)
	}
	w.pass(10 * time.Second)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n4"}})
	if got := placed(w.want(id, Running)); got != "[n0 n3 n2] [] [n1]" {
		t.Errorf("after a spare: %s", got)
	}
	if !w.s.Load("n4").CPUs.Empty() {
		t.Error("a spare that has failed is held")
	}
	w.pass(10 * time.Second)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n3"}})
	if j := w.job(id); j.Phase == Running {
		t.Errorf("it goes on without enough nodes: %s", placed(j))
	}
}

// TestSpareEnd: spares are free as soon as their job ends, and its record keeps them.
func TestSpareEnd(t *testing.T) {
	w := newWorld(t, 3)
	id := standing(w, 3, 1, nil)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	if !w.s.Load("n2").CPUs.Empty() {
		t.Error("the spare of a job that ends is held")
	}
	w.report("n0", id, NodeDone)
	w.report("n1", id, NodeDone)
	if got := placed(w.want(id, Ended)); got != "[n0 n1] [n2] []" {
		t.Errorf("its record: %s", got)
	}
}

// TestSpareSuspend: a job that is suspended frees the CPUs of its spares, too, and takes them back.
func TestSpareSuspend(t *testing.T) {
	w := newWorld(t, 3)
	id := standing(w, 3, 1, nil)
	w.ok(root, &Suspend{Ref: Ref{Job: id}})
	if !w.s.Load("n2").CPUs.Empty() {
		t.Error("a suspended job holds the CPUs of its spare")
	}
	w.pass(time.Second)
	w.ok(root, &Suspend{Ref: Ref{Job: id}, Resume: true})
	if w.s.Load("n2").CPUs.Empty() {
		t.Error("its spare is free for others")
	}
}

// TestSpareRestartSignal: a job that wants to be told of a new node gets its own signal.
func TestSpareRestartSignal(t *testing.T) {
	w := newWorld(t, 3)
	id := standing(w, 3, 1, func(s *JobSpec) { s.Resilience.Restart, s.Signal.Num = RestartSignal, 10 })
	w.pass(time.Second)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n1"}})
	if got := w.want(id, Running).Signals; len(got) != 1 || got[0].Sig != 10 {
		t.Errorf("signals %+v", got)
	}
}

// TestSpareRestartRank: a job whose launcher replaces ranks runs on all of its nodes, and goes on without those that
// fail.
func TestSpareRestartRank(t *testing.T) {
	w := newWorld(t, 3)
	id := standing(w, 3, 1, func(s *JobSpec) { s.Resilience.Restart = RestartRank })
	if got := placed(w.job(id)); got != "[n0 n1 n2] [] []" {
		t.Errorf("at first: %s", got)
	}
	w.pass(time.Second)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n1"}})
	if got := placed(w.want(id, Running)); got != "[n0 n2] [] [n1]" {
		t.Errorf("after n1: %s", got)
	}
}

// TestExpedite: when its first node fails, a job keeps the others until all are clean, and is first in the queue then.
// It does not wait for new spares.
func TestExpedite(t *testing.T) {
	for _, c := range []struct {
		name   string
		spares int
		change func(*JobSpec)
		least  int // nodes that it asks for then
	}{
		{"spares", 1, nil, 2},
		{"script restarts", 1, func(s *JobSpec) { s.Resilience.Restart = RestartJob }, 2},
		{"expedite", 0, func(s *JobSpec) { s.Resilience.Expedite = true }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 4)
			id := standing(w, 3, c.spares, c.change)
			first := uint32(1e9)
			other := w.submit(func(s *JobSpec) { s.Priority = &first })
			w.pass(10 * time.Second)
			w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}})
			w.want(id, Ending)
			if c.spares == 0 {
				w.report("n2", id, NodeDone)
			}
			for _, name := range []NodeName{"n1", "n2"} {
				if w.s.Load(name).CPUs.Empty() {
					t.Errorf("node %s is free for others before the job starts again", name)
				}
			}
			if j := w.job(id); !Concerns(j, "n1") || Concerns(j, "n2") {
				t.Error("n1 has to clean up, n2 has nothing to do")
			}
			w.report("n1", id, NodeDone)
			j := w.want(id, Pending)
			if !Expedited(j) || j.Eligible.After(w.now) || j.Spec.MinNodes != c.least || j.Spec.MaxNodes != 3 {
				t.Errorf("expedited %v, eligible %v (now %v), nodes %d-%d", Expedited(j), j.Eligible, w.now, j.Spec.MinNodes,
					j.Spec.MaxNodes)
			}
			a, _ := w.s.PlaceOf(id)
			b, _ := w.s.PlaceOf(other)
			if !a.Before(b) {
				t.Error("another job comes before it")
			}
			if !w.s.Load("n1").CPUs.Empty() || !w.s.Load("n2").CPUs.Empty() {
				t.Error("its nodes are still held")
			}
			w.run(id, 0, "n1", "n2", "n3")
			if Expedited(w.job(id)) {
				t.Error("it is still expedited")
			}
		})
	}
}

// TestExpediteCancelled: a job that is canceled while it keeps its nodes frees them at its end.
func TestExpediteCancelled(t *testing.T) {
	w := newWorld(t, 4)
	id := standing(w, 3, 0, func(s *JobSpec) { s.Resilience.Expedite = true })
	w.pass(time.Second)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}})
	w.report("n2", id, NodeDone)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.report("n1", id, NodeDone)
	w.want(id, Ended)
	if !w.s.Load("n1").CPUs.Empty() || !w.s.Load("n2").CPUs.Empty() {
		t.Error("its nodes are still held")
	}
}

// TestSwapNode: a user replaces a node of the own job, and a hang does where its rule says so.
func TestSwapNode(t *testing.T) {
	w := newWorld(t, 4)
	id := standing(w, 4, 2, func(s *JobSpec) { s.Resilience.Hang = "swap" })
	w.pass(time.Second)
	w.refused(bob, &SwapNode{Job: id, Node: "n1"}, ErrAccess)
	w.refused(alice, &SwapNode{Job: id, Node: "n0"}, ErrNodeName)
	w.refused(alice, &SwapNode{Job: id, Node: "n3"}, ErrNodeName)
	if got := w.ok(alice, &SwapNode{Job: id, Node: "n1", Why: "slow"}).Result; got != NodeName("n2") {
		t.Errorf("%v took the place", got)
	}
	if got := placed(w.want(id, Running)); got != "[n0 n2] [n3] [n1]" {
		t.Errorf("after a swap: %s", got)
	}
	if w.s.Load("n1").CPUs.Empty() {
		t.Error("the node is free before it is clean")
	}
	w.report("n1", id, NodeDone)
	w.pass(time.Second)
	found := &HangFound{Job: id, Attempt: 1, Kind: HangRAS, Text: "rank 1", Node: "n2"}
	if got := w.ok(sys, found).Result; got != HangSwap {
		t.Errorf("action %v", got)
	}
	if got := placed(w.want(id, Running)); got != "[n0 n3] [] [n1 n2]" {
		t.Errorf("after a hang: %s", got)
	}
	w.refused(alice, &SwapNode{Job: id, Node: "n3"}, ErrBusy)
	w.pass(2 * time.Hour)
	if got := w.ok(sys, found).Result; got != HangRequeue {
		t.Errorf("without a spare: action %v", got)
	}
	if j := w.job(id); j.Phase != Ending || !j.RequeueAfter {
		t.Errorf("without a spare: phase %v", j.Phase)
	}
}

// TestSparesRefused: what no job can have.
func TestSparesRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*JobSpec)
	}{
		{"all of its nodes", func(s *JobSpec) { s.Resilience.Spares = 2 }},
		{"less than none", func(s *JobSpec) { s.Resilience.Spares = -1 }},
		{"tasks of the job", func(s *JobSpec) { s.Resilience.Spares, s.Tasks = 1, 2 }},
		{"unknown restart", func(s *JobSpec) { s.Resilience.Restart = "never" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &JobSpec{Layout: &Layout{MinNodes: 2, MaxNodes: 2}, Kind: Batch, Resilience: &Resilience{}}
			c.change(spec)
			if err := CheckAsked(spec); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// goldenSpares has a job replace a node, lose a spare, and start again without its first node.
func goldenSpares(w *world) {
	names := []NodeName{"spare0", "spare1", "spare2", "spare3", "spare4"}
	for _, n := range names {
		w.ok(sys, &NodeUp{Name: n, Inventory: smallNode()})
	}
	again := true
	id := w.submit(func(s *JobSpec) {
		s.Kind, s.MinNodes, s.MaxNodes, s.Requeue = Batch, 5, 5, &again
		s.Resilience = &Resilience{Spares: 3, Restart: RestartStep, Expedite: true}
	})
	w.run(id, 0, names...)
	w.pass(10 * time.Second)
	w.ok(alice, &SwapNode{Job: id, Node: names[1], Why: "slow"})
	w.report(names[1], id, NodeDone)
	w.ok(sys, &NodeDown{Nodes: names[3:4]})
	w.pass(10 * time.Second)
	w.ok(sys, &NodeDown{Nodes: names[:1]})
	w.report(names[2], id, NodeDone)
	w.pass(time.Second)
	w.run(id, 0, names[2], names[4])
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.report(names[2], id, NodeDone)
	w.report(names[4], id, NodeDone)
}
