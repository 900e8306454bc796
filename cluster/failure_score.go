package cluster

import (
	"slices"
	"time"
)

// FailureScore is how much has gone wrong on a node recently. It halves every day.
type FailureScore struct {
	Points int       `json:"points"` // thousandths
	At     time.Time `json:"at"`     // as of when
}

// Points for each kind of trouble.
const (
	troubleNote       = 1 // a fault that is only told
	troubleShun       = 3 // one for which large jobs avoid the node
	troubleDrain      = 3 // one for which the node is drained
	troubleDrainNow   = 5 // one that ends jobs
	troubleNotStarted = 2 // a job could not be started on it
	troubleLost       = 4 // it was lost
	troubleSlow       = 5 // one of its GPUs was slower than the others of a job
)

// troubleOf is what a fault counts.
var troubleOf = map[FaultAction]int{
	FaultNote: troubleNote, FaultShun: troubleShun, FaultDrain: troubleDrain,
	FaultDrainNow: troubleDrainNow,
}

// ShakyPoints is from how many points on large jobs avoid a node if others fit as well.
const ShakyPoints = 5

// troubleHalf is after what time trouble counts half.
const troubleHalf = 24 * time.Hour

// Score is how much has gone wrong on the node recently, in points. Nodes whose clients are of a version before this
// have none.
func (n *Node) Score(now time.Time) float64 { return float64(n.Trouble.points(now)) / 1000 }

// Shaky reports whether large jobs avoid the node: for a fault that it has, or for recent trouble.
func (n *Node) Shaky(now time.Time) bool {
	if slices.ContainsFunc(n.Inventory.Faults, func(f Fault) bool { return f.Action == FaultShun }) {
		return true
	}
	const most = 1000 * ShakyPoints
	return n.Trouble != nil && n.Trouble.Points >= most && n.Trouble.points(now) >= most
}

// points are the thousandths that are left.
func (t *FailureScore) points(now time.Time) int {
	if t == nil || t.Points == 0 {
		return 0
	}
	age := max(now.Sub(t.At), 0)
	return int(float64(float64(t.Points) * half(float64(age)/float64(troubleHalf))))
}

// troubled counts what went wrong on a node.
func (n *Node) troubled(points int, at time.Time) {
	if n.Trouble != nil && points > 0 {
		n.Trouble = &FailureScore{Points: n.Trouble.points(at) + 1000*points, At: at}
	}
}

// troubledBy counts the faults that the node did not have before.
func (n *Node) troubledBy(faults, before []Fault, at time.Time) {
	for _, f := range faults {
		if !f.isIn(before) {
			n.troubled(troubleOf[f.Action], at)
		}
	}
}

// blame counts what went wrong on nodes that are not at hand.
func (t *tx) blame(names []NodeName, points int) {
	for _, name := range names {
		if old, ok := t.nodes.Get(name); ok && old.Trouble != nil {
			n := *old
			n.troubled(points, t.at)
			t.putNode(&n)
		}
	}
}
