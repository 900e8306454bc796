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
	a, b := &n.Inventory, &old.Inventory
	return n.Usable() == old.Usable() && n.counts() == old.counts() && n.Off() == old.Off() && n.Order == old.Order &&
		a.CPUs == b.CPUs && a.MemMB == b.MemMB && a.TmpMB == b.TmpMB &&
		a.Sockets == b.Sockets && a.CoresPerSocket == b.CoresPerSocket && a.ThreadsPerCore == b.ThreadsPerCore && a.Weight == b.Weight &&
		slices.Equal(a.Features, b.Features) && a.SpecMemMB == b.SpecMemMB && a.SpecCPUs.Equal(b.SpecCPUs) &&
		len(a.GPUs) == len(b.GPUs) && (len(a.GPUs) == 0 || &a.GPUs[0] == &b.GPUs[0]) && // a list is never changed in place
		n.Trouble == old.Trouble && slices.Equal(a.Faults, b.Faults) && // by which large jobs avoid it
		a.Topology == b.Topology && (sameList(a.NICs, b.NICs) || n.leafGroup() == old.leafGroup())
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
