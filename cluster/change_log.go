package cluster

import (
	"slices"
)

// StateChange tells what of a state has changed: exactly one field is set.
type StateChange struct {
	Job  JobID    // a record
	Load NodeName // what is given out on a node
	Node NodeName // a node, in a way that matters to where jobs may run
	Book bool     // the accounts, users, associations or QOS, and not only what they have used
}

// changeLog is the last changes of a state. Whoever has derived something from an older snapshot need look at no more
// than these. A snapshot shares the list with its state, which only appends to it.
type changeLog struct {
	state *origin // which state's it is
	past  int     // changes before the list
	list  []StateChange
}

// origin identifies a state among others of this process.
type origin struct{ _ byte }

// keptChanges is how many changes are kept at least.
const keptChanges = 1 << 14

func (t *changeLog) add(c StateChange) {
	if len(t.list) >= 2*keptChanges {
		t.past += len(t.list) - keptChanges
		t.list = slices.Clone(t.list[len(t.list)-keptChanges:])
	}
	t.list = append(t.list, c)
}

// Moment is when a snapshot was taken, as far as its changes go.
type Moment struct {
	state *origin
	past  int // changes until then
}

// Moment tells of which a snapshot is: it may be kept for long, and the snapshot with all that is no more may go.
func (s *Snapshot) Moment() Moment {
	return Moment{s.changes.state, s.changes.past + len(s.changes.list)}
}

// Since lists what has changed since an older snapshot besides the configuration; false if that is
// not known any more. The same may be there several times, and what was undone is there too.
func (s *Snapshot) Since(m Moment) ([]StateChange, bool) {
	at := m.past - s.changes.past
	if s.changes.state != m.state || at < 0 || at > len(s.changes.list) {
		return nil, false
	}
	return s.changes.list[at:], true
}

// hosts reports whether a node is to jobs what it was before: they may use it or not, and their
// shares of the cluster are of it or not.
func (n *Node) hosts(old *Node) bool {
	if n.standing() != old.standing() {
		return false
	}
	a := &n.Inventory
	b := &old.Inventory
	if !a.SpecCPUs.Equal(b.SpecCPUs) || !sameList(a.GPUs, b.GPUs) || !slices.Equal(a.Shared, b.Shared) {
		return false
	}
	if !slices.Equal(a.Features, b.Features) || !slices.Equal(a.Faults, b.Faults) {
		return false
	}
	return sameList(a.NICs, b.NICs) || n.leafGroup() == old.leafGroup()
}

// nodeStanding is what of a node, besides lists, makes a difference to jobs.
type nodeStanding struct {
	usable   bool
	counts   bool
	off      bool
	order    int
	weight   int
	shape    [4]int // sockets, cores, threads, CPUs
	mem      MemMB
	spec     MemMB
	tmp      int64
	topology string
	trouble  *FailureScore // by which large jobs avoid it
}

func (n *Node) standing() nodeStanding {
	inv := &n.Inventory
	return nodeStanding{
		usable:   n.Usable(),
		counts:   n.counts(),
		off:      n.Off(),
		order:    n.Order,
		weight:   inv.Weight,
		shape:    [...]int{inv.Sockets, inv.CoresPerSocket, inv.ThreadsPerCore, inv.CPUs},
		mem:      inv.MemMB,
		spec:     inv.SpecMemMB,
		tmp:      inv.TmpMB,
		topology: inv.Topology,
		trouble:  n.Trouble,
	}
}

// Place is a pending record's place in the queue.
type Place struct{ queueKey }

// Tier is the highest PriorityTier of the job's partitions: all of a higher one go first.
func (p Place) Tier() int { return p.tier }

// Priority is the job's.
func (p Place) Priority() uint32 { return p.prio }

// Before orders places.
func (p Place) Before(o Place) bool { return queueLess(p.queueKey, o.queueKey) }

// PlaceOf finds a pending record's place.
func (t *tables) PlaceOf(id JobID) (Place, bool) {
	k, ok := t.queueAt.Get(id)
	return Place{k}, ok
}
