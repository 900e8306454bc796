package ports

import (
	"fmt"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// bench is a table, and the parts that live.
type bench struct {
	*Table
	t     *testing.T
	alive map[step.ID]bool
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, alive: map[step.ID]bool{}}
	b.Table = New(func(id step.ID) bool { return b.alive[id] })
	return b
}

// shares are nodes with one task on each.
func shares(nodes ...cluster.NodeName) (out []cluster.Share) {
	for _, n := range nodes {
		out = append(out, cluster.Share{Node: n, Tasks: 1})
	}
	return out
}

var few = cluster.PortRange{First: 12000, Last: 12007}

// begin has a step of a job get n ports on nodes.
func (b *bench) begin(job cluster.JobID, n int, nodes ...cluster.NodeName) string {
	b.t.Helper()
	got, err := b.Choose(few, n, shares(nodes...), cluster.IDSet{})
	if err != nil {
		return string(err.Kind)
	}
	s := &cluster.Step{ID: cluster.StepID{Job: job}, Ports: got.String()}
	if err := b.Hold(s, nodes); err != nil {
		return err.Error()
	}
	for _, node := range nodes {
		b.alive[partOf(s, node)] = true
	}
	return got.String()
}

func (b *bench) end(job cluster.JobID) {
	for id := range b.alive {
		if id.Job == job {
			delete(b.alive, id)
		}
	}
}

func (b *bench) want(got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("got %s, want %s", got, want)
	}
}

// TestChoose: ports go around the range as Slurm's do, and are those that are free on all nodes of the step.
func TestChoose(t *testing.T) {
	b := newBench(t)
	b.want(b.begin(1, 4, "a", "b"), "12001-12004")
	b.want(b.begin(2, 3, "b", "c"), "12005-12007")
	b.want(b.begin(3, 5, "c"), "12000-12004")
	b.want(b.begin(4, 4, "a"), "12000,12005-12007")
	b.want(b.begin(5, 1, "a"), "ports_busy")
	b.want(b.begin(6, 2, "b"), "ports_busy")
	b.want(b.begin(6, 1, "b"), "12000")
	b.want(b.begin(7, 9, "d"), "ports_many")
	b.want(b.begin(7, 8, "d"), "12000-12007")
	b.want(b.begin(8, 0, "a"), "")
}

// TestBack: what a part that is gone has held is free, on its node.
func TestBack(t *testing.T) {
	b := newBench(t)
	b.want(b.begin(1, 8, "a", "b"), "12000-12007")
	b.want(b.begin(2, 1, "a"), "ports_busy")
	delete(b.alive, step.ID{Job: 1, Node: "b"})
	b.want(b.begin(2, 1, "b"), "12001")
	b.want(b.begin(3, 1, "a"), "ports_busy")
	b.end(1)
	b.want(b.begin(3, 8, "a"), "12000-12007")
	b.end(2)
	b.end(3)
	if b.heldOn("a", step.ID{}); len(b.held["a"]) > 0 {
		t.Errorf("what is gone is remembered: %v", b.held)
	}
}

// TestHold: a node refuses what others hold there and tells all of that; what it is asked twice it does once.
func TestHold(t *testing.T) {
	b, a := newBench(t), []cluster.NodeName{"a"}
	b.want(b.begin(1, 3, "a"), "12001-12003")
	other := &cluster.Step{ID: cluster.StepID{Job: 2}, Ports: "12000-12001"}
	err := b.Hold(other, []cluster.NodeName{"b", "a"})
	if err == nil || err.Kind != cluster.ErrPortsBusy {
		t.Fatalf("refused by %v", err)
	}
	b.want(Taken(fmt.Errorf("start on a: %w", err)).String(), "12001-12003")
	b.want(b.begin(3, 8, "b"), "12000-12007") // nothing was held on b
	b.end(3)
	other.Ports = "12000,12004"
	for range 2 {
		if err := b.Hold(other, a); err != nil {
			t.Error(err)
		}
		b.alive[partOf(other, "a")] = true
	}
	b.want(b.begin(4, 3, "a"), "12005-12007")
	if err := b.Hold(&cluster.Step{Ports: "many"}, a); err == nil || err.Kind == cluster.ErrPortsBusy {
		t.Errorf("what is no list of ports: %v", err)
	}
	if err := b.Hold(&cluster.Step{}, a); err != nil {
		t.Errorf("no ports at all: %v", err)
	}
	if !Taken(nil).Empty() || !Taken(cluster.Errorf(cluster.Conflict, cluster.ErrBusy, "")).Empty() {
		t.Error("an error that tells of no ports has some")
	}
}

// TestAvoid: what another node has refused is not chosen again.
func TestAvoid(t *testing.T) {
	b := newBench(t)
	for range 20 {
		got, err := b.Choose(few, 3, shares("a"), cluster.NewIDSet(12001, 12003, 12005, 12007))
		if err != nil || !cluster.NewIDSet(12000, 12002, 12004, 12006).Contains(got) || got.Len() != 3 {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	if _, err := b.Choose(few, 3, shares("a"), cluster.RangeIDSet(12000, 12005)); err == nil || !Taken(err).Empty() {
		t.Errorf("of two that are left: %v", err)
	}
}

// TestWanted: what a step says; else one more than its most tasks on a node.
func TestWanted(t *testing.T) {
	two, none := 2, 0
	uneven := []cluster.Share{{Node: "a", Tasks: 3}, {Node: "b", Tasks: 2}}
	for _, c := range []struct {
		r    cluster.PortRange
		spec cluster.StepSpec
		want int
	}{
		{few, cluster.StepSpec{}, 4},
		{few, cluster.StepSpec{Interactive: true}, 0},
		{cluster.PortRange{}, cluster.StepSpec{}, 0},
		{few, cluster.StepSpec{StepHelpers: cluster.StepHelpers{Ports: &two}}, 2},
		{few, cluster.StepSpec{StepHelpers: cluster.StepHelpers{Ports: &none}}, 0},
		{cluster.PortRange{}, cluster.StepSpec{StepHelpers: cluster.StepHelpers{Ports: &two}}, 2},
	} {
		if got := Wanted(c.r, &c.spec, uneven); got != c.want {
			t.Errorf("%+v of %v: %d, want %d", c.spec.StepHelpers, c.r, got, c.want)
		}
	}
	tb := newBench(t)
	if _, err := tb.Choose(cluster.PortRange{}, 2, uneven, cluster.IDSet{}); err == nil ||
		err.Kind != cluster.ErrPortsMany {
		t.Errorf("two of none: %v", err)
	}
}

// TestHoldAll: a step that is found again holds its ports on all of its nodes; a range that has become smaller is
// gone around like any.
func TestHoldAll(t *testing.T) {
	b := newBench(t)
	found := &cluster.Step{ID: cluster.StepID{Job: 1}, Attempt: 3, Shares: shares("a", "b"), Ports: "12000-12001"}
	for _, sh := range found.Shares {
		b.alive[partOf(found, sh.Node)] = true
	}
	if err := b.HoldAll(found); err != nil {
		t.Fatal(err)
	}
	b.want(b.begin(2, 5, "b", "c"), "12002-12006")
	small := cluster.PortRange{First: 12000, Last: 12002}
	for range 3 {
		got, err := b.Choose(small, 1, shares("a"), cluster.IDSet{})
		if b.want(got.String(), "12002"); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Choose(small, 2, shares("a"), cluster.IDSet{}); err == nil || err.Kind != cluster.ErrPortsBusy {
		t.Errorf("two of one: %v", err)
	}
}

// TestAgain: only who waits for ports looks again by the clock.
func TestAgain(t *testing.T) {
	if Again(cluster.Errorf(cluster.Conflict, cluster.ErrBusy, "")) != nil {
		t.Error("a node that is busy says when it is not")
	}
	if Again(cluster.Errorf(cluster.Conflict, cluster.ErrPortsBusy, "")) == nil {
		t.Error("nobody says when ports are free")
	}
}
