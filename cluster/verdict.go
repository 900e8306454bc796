package cluster

import "time"

// Blame is what of the platform ended a job before its time, as far as the cluster has seen it.
type Blame struct {
	Node NodeName `json:"node,omitempty"`
	Part string   `json:"part,omitempty"` // UUID of a GPU, or what Fault.Part says
	Text string   `json:"text"`           // the evidence
	// Maybe: the job failed by itself while this was noted of one of its parts.
	Maybe bool `json:"maybe,omitempty"`
}

// TaskEnd is how a task ended that failed.
type TaskEnd struct {
	Rank int        `json:"rank"`
	Node NodeName   `json:"node"`
	Exit ExitStatus `json:"exit,omitzero"`
	At   time.Time  `json:"at"`
	// OOM: processes there were killed because the job's memory was used up.
	OOM bool `json:"oom,omitempty"`
	// Error says why it could not be started.
	Error string `json:"error,omitempty"`
}

// Before reports whether a failure came before another, and is its cause rather than the other way round: what
// could not be started, and what ran out of memory, count first.
func (e *TaskEnd) Before(o *TaskEnd) bool {
	switch {
	case o == nil:
		return true
	case (e.Error != "") != (o.Error != ""):
		return e.Error != ""
	case e.OOM != o.OOM:
		return e.OOM
	case !e.At.Equal(o.At):
		return e.At.Before(o.At)
	}
	return e.Rank < o.Rank
}

// blamed notes what ended a job, unless something else did already.
func (n *Job) blamed(b Blame) {
	if n.Blame == nil && b.Text != "" {
		n.Blame = &b
	}
}

// suspected notes a fault that was seen at a part of a job which fails.
func (t *tx) suspected(n *Job) {
	if n.Alloc == nil || n.Blame != nil {
		return
	}
	for i := range n.Alloc.Shares {
		sh := &n.Alloc.Shares[i]
		node, ok := t.nodes.Get(sh.Node)
		if !ok {
			continue
		}
		for _, f := range node.Inventory.Faults {
			if node.Inventory.partsOf(f).Intersect(sh.GPUs).Empty() {
				continue
			}
			n.blamed(Blame{
				Node:  sh.Node,
				Part:  f.Part,
				Text:  f.Text,
				Maybe: true,
			})
			return
		}
	}
}

// partsOf are the devices that a fault is about.
func (inv *Inventory) partsOf(f Fault) IDSet {
	var out []int
	for i, g := range inv.GPUs {
		if g.UUID == f.Part || g.MIG != nil && g.MIG.Parent == f.Part {
			out = append(out, i)
		}
	}
	return NewIDSet(out...)
}
