package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// FaultAction is what a fault asks for.
type FaultAction string

// The actions, from the mildest.
const (
	// FaultNote is told in the node's reason; the node serves on.
	FaultNote FaultAction = "note"
	// FaultShun is told so too; large jobs, which one bad part ends, go elsewhere while it lasts if others fit as well.
	FaultShun FaultAction = "shun"
	// FaultDrain keeps new jobs off the node; those that run there go on.
	FaultDrain FaultAction = "drain"
	// FaultDrainNow also ends the jobs that hold the part, which cannot go on; they are requeued if they may be.
	FaultDrainNow FaultAction = "drain_now"
)

// FaultKind is what kind of part has a fault.
type FaultKind string

// The kinds of part.
const (
	FaultGPU    FaultKind = ""       // a GPU
	FaultPort   FaultKind = "port"   // an InfiniBand or RoCE port
	FaultSystem FaultKind = "system" // the machine: a disk, its clock, its memory
)

// Fault is something wrong with a part of a machine. Part and Cause say which one it is: seen again it is the same.
type Fault struct {
	Kind   FaultKind   `json:"kind,omitempty"`
	Part   string      `json:"part"`  // UUID of a GPU, or gpu for all of them; mlx5_0/1: a port
	Cause  string      `json:"cause"` // xid 79, lost, ecc …
	Text   string      `json:"text"`  // names the part and the evidence
	Action FaultAction `json:"action"`
	// Passing faults end with their cause: the node comes back by itself. After any other an operator resumes it.
	Passing bool `json:"passing,omitempty"`
}

func (f Fault) drains() bool {
	return f.Action == FaultDrain || f.Action == FaultDrainNow
}

// DrainingFaults lists the faults for which muster drains a node.
func DrainingFaults(inv *Inventory) []Fault {
	return slices.DeleteFunc(slices.Clone(inv.Faults), func(f Fault) bool { return !f.drains() })
}

// SetFaults replaces the faults of one kind of part.
func (inv *Inventory) SetFaults(kind FaultKind, list []Fault) {
	inv.Faults = append(slices.DeleteFunc(slices.Clone(inv.Faults),
		func(f Fault) bool { return f.Kind == kind }), list...)
	slices.SortStableFunc(inv.Faults, func(a, b Fault) int { return cmp.Compare(a.Kind, b.Kind) })
}

// isIn reports whether a fault is among others.
func (f Fault) isIn(list []Fault) bool {
	return slices.ContainsFunc(list,
		func(o Fault) bool {
			return o.Part == f.Part && o.Cause == f.Cause && o.Action == f.Action
		})
}

// textOf joins what is said of faults.
func textOf(list []Fault) string {
	var parts []string
	for _, f := range list {
		parts = append(parts, f.Text)
	}
	return strings.Join(parts, ", ")
}

// faulty drains the node for faults that it did not have before: one that an operator has resumed it with
// does not drain it again. The reason names all for which it is drained; when the last of them has passed, the
// node comes back. It is to be called with the node's new inventory; what follows for its jobs is for evictParts.
func (n *Node) faulty(t *tx, old []Fault) {
	now := n.Inventory.Faults
	list := slices.DeleteFunc(slices.Clone(n.faultsDrainedFor()),
		func(f Fault) bool {
			return f.Passing && !f.isIn(now)
		})
	for _, f := range now {
		if f.drains() && !f.isIn(old) && !f.isIn(list) {
			list = append(list, f)
		}
	}
	n.drainFor(t, list)
}

// faultsDrainedFor are the faults for which the node is drained, none if it is for another reason.
func (n *Node) faultsDrainedFor() []Fault {
	if n.Drain && n.ReasonBy == "slurm" && len(n.DrainedFor) > 0 && n.Reason == textOf(n.DrainedFor) {
		return n.DrainedFor
	}
	return nil
}

// drainFor drains the node for faults, or has it come back from what it was drained for if there are none.
func (n *Node) drainFor(t *tx, list []Fault) {
	ours := len(n.faultsDrainedFor()) > 0
	byUs := n.ReasonBy == "slurm"
	if !ours {
		n.DrainedFor = nil
	}
	if len(list) == 0 {
		if ours { // all have passed
			n.undrained()
		}
		return
	}
	if n.Drain && !ours && byUs { // for another reason, which stays
		list = slices.Insert(list, 0, Fault{
			Part:   "node",
			Cause:  "before",
			Text:   n.Reason,
			Action: FaultDrain,
		})
	}
	if n.Drain && !ours && !byUs {
		return
	}
	if text := textOf(list); n.Reason != text || !n.Drain {
		n.Drain = true
		n.Reason = text
		n.ReasonBy = "slurm"
		n.ReasonUID = 0
		n.ReasonAt = t.at
	}
	n.DrainedFor = list
}

// undrained has a node come back that was drained for faults.
func (n *Node) undrained() {
	n.Drain = false
	n.Reason = n.Lacks
	n.ReasonBy = ""
	n.DrainedFor = nil
}

// evictParts ends the jobs on parts of a node that have just failed under them.
func (t *tx) evictParts(n *Node, old []Fault) {
	failed := slices.DeleteFunc(slices.Clone(n.Inventory.Faults),
		func(f Fault) bool {
			return f.Action != FaultDrainNow || f.isIn(old)
		})
	if len(failed) == 0 {
		return
	}
	for _, id := range slices.Clone(t.Load(n.Name).Jobs) {
		j, ok := t.jobs.Get(id)
		if !ok || j.Phase == Ending {
			continue
		}
		sh, spare := partOn(j, n.Name)
		i := slices.IndexFunc(failed, func(f Fault) bool { return !n.Inventory.partsOf(f).Intersect(sh.GPUs).Empty() })
		if i < 0 {
			continue
		}
		c := *j
		if spare {
			dropSpare(t, &c, n.Name)
			continue
		}
		if outlives(t, &c, n.Name) {
			goOnWithout(t, &c, n.Name, failed[i].Text)
			continue
		}
		c.RequeueAfter = mayAgain(&c)
		keepNodes(&c)
		c.blamed(Blame{Node: n.Name, Part: failed[i].Part, Text: failed[i].Text})
		t.end(&c, NodeFailed, EndNodeDown)
		t.putJob(&c)
		t.tell(&c)
		t.endRest(&c)
	}
}
