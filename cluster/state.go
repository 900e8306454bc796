package cluster

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tidwall/btree"
)

// State is the cluster. One goroutine applies entries; everybody else reads Snapshots.
type State struct{ tables }

// Snapshot is the state at one moment. It never changes and may be read by anybody.
type Snapshot struct{ tables }

// NewState returns an empty cluster with DefaultConfig.
func NewState() *State {
	cfg := DefaultConfig()
	s := &State{tables{
		NextID:   cfg.FirstJobID,
		config:   &cfg,
		changes:  changeLog{state: new(origin)},
		interned: newInterned(),
	}}
	for x := range trees {
		x.make(&s.tables)
	}
	return s
}

// Snapshot copies the state in time independent of its size.
func (s *State) Snapshot() *Snapshot {
	c := &Snapshot{s.tables}
	detach(&c.tables)
	return c
}

// detach gives a copy trees of its own.
func detach(t *tables) {
	for x := range trees {
		x.copy(t)
	}
	t.interned = nil
}

// Trial is a state of its own that is as this one is now: what is applied to it shows what would be, and changes
// nothing here.
func (s *State) Trial() *State {
	c := &State{s.tables}
	detach(&c.tables)
	c.changes = changeLog{state: new(origin)} // the list of changes is shared by snapshots, which add nothing to it
	return c
}

// Config is the configuration in force.
func (t *tables) Config() *Config { return t.config }

// Job finds a record by its own id.
func (t *tables) Job(id JobID) (*Job, bool) { return t.jobs.Get(id) }

// Node finds a node by name.
func (t *tables) Node(name NodeName) (*Node, bool) { return t.nodes.Get(name) }

// Load tells what is given out on a node; never nil.
func (t *tables) Load(name NodeName) *Load {
	if l, ok := t.loads.Get(name); ok {
		return l
	}
	return &Load{Node: name}
}

// Blob finds a stored text.
func (t *tables) Blob(h BlobHash) (*Blob, bool) { return t.blobs.Get(h) }

// Step finds a live step.
func (t *tables) Step(id StepID) (*Step, bool) { return t.steps.Get(&Step{ID: id}) }

func valuesOf[K cmp.Ordered, V any](m *btree.Map[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		m.Scan(func(_ K, v V) bool { return yield(v) })
	}
}

// Jobs yields every record by rising id.
func (t *tables) Jobs() iter.Seq[*Job] { return valuesOf(t.jobs) }

// JobsFrom yields the records from an id on, by rising id.
func (t *tables) JobsFrom(id JobID) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		t.jobs.Ascend(id, func(_ JobID, j *Job) bool { return yield(j) })
	}
}

// Latest yields the records by falling id.
func (t *tables) Latest() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		t.jobs.Reverse(func(_ JobID, j *Job) bool { return yield(j) })
	}
}

// JobCount is the number of records.
func (t *tables) JobCount() int { return t.jobs.Len() }

// Live yields the records that hold resources, by rising id.
func (t *tables) Live() iter.Seq[*Job] { return valuesOf(t.live) }

// Nodes yields the nodes by CompareNodes.
func (t *tables) Nodes() iter.Seq[*Node] { return t.listed.Scan }

// Mute yields the nodes that are Quiet, by name.
func (t *tables) Mute() iter.Seq[*Node] { return valuesOf(t.mute) }

// NodeCount is the number of nodes.
func (t *tables) NodeCount() int { return t.nodes.Len() }

// Queue yields the pending records in the order in which they are looked at.
func (t *tables) Queue() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		t.queue.Scan(func(k queueKey) bool {
			j, _ := t.jobs.Get(k.id)
			return yield(j)
		})
	}
}

// QueueLen is the number of pending records.
func (t *tables) QueueLen() int { return t.queue.Len() }

// Steps yields the live steps of a job, or of all jobs if id is 0.
func (t *tables) Steps(id JobID) iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		t.steps.Ascend(&Step{ID: StepID{Job: id, Step: -1 << 31}}, func(s *Step) bool {
			return (id == 0 || s.ID.Job == id) && yield(s)
		})
	}
}

// Members yields the records of an array by rising id; for a plain job's id, nothing.
func (t *tables) Members(array JobID) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		t.members.Ascend(pairKey{a: array}, func(k pairKey) bool {
			if k.a != array {
				return false
			}
			j, ok := t.jobs.Get(k.b)
			return !ok || yield(j)
		})
	}
}

// SettlesUntil is how long a job that ends keeps others from starting (CompleteWait); zero: it does not.
func (c *Config) SettlesUntil(j *Job) time.Time {
	if c.CompleteWait == 0 || j.Phase != Ending {
		return time.Time{}
	}
	return j.EndingAt.Add(c.CompleteWait)
}

// nextSettled is when the next job that ends does so no more, if it has not ended by then; zero: none does.
func (t *tables) nextSettled(now time.Time) (at time.Time) {
	if t.config.CompleteWait == 0 {
		return at
	}
	for j := range t.Live() {
		if x := t.config.SettlesUntil(j); x.After(now) && (at.IsZero() || x.Before(at)) {
			at = x
		}
	}
	return at
}

// NextTimer is the first moment after now at which the clock alone changes something; zero if never.
func (t *tables) NextTimer(now time.Time) (at time.Time) {
	t.timers.Ascend(timerKey{at: now.Add(1)}, func(k timerKey) bool {
		at = k.at
		return false
	})
	next := func(x time.Time) {
		if x.After(now) && (at.IsZero() || x.Before(at)) {
			at = x
		}
	}
	if _, b, ok := t.idle.Min(); ok {
		next(b.Added.Add(idleBlobAge))
	}
	next(t.nextResv(now))
	next(t.nextTurn(now))
	next(t.decayDue())
	_, retain := t.retainDue(now)
	next(retain)
	_, power := t.powerDue(now)
	next(power)
	_, trigger := triggersDue(t, now)
	next(trigger)
	next(t.nextSettled(now))
	for n := range valuesOf(t.reboots) {
		next(t.rebootEnd(n))
	}
	return at
}

// Partition finds a partition by name.
func (t *tables) Partition(name string) (*Partition, bool) {
	for i := range t.config.Partitions {
		if t.config.Partitions[i].Name == name {
			return &t.config.Partitions[i], true
		}
	}
	return nil, false
}

// DefaultPartition is the one that jobs without -p go to, or nil.
func (t *tables) DefaultPartition() *Partition {
	for i := range t.config.Partitions {
		if t.config.Partitions[i].Default {
			return &t.config.Partitions[i]
		}
	}
	return nil
}

// PartitionNodes yields the nodes of a partition in their order.
func (t *tables) PartitionNodes(p *Partition) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		if p.All {
			for n := range t.Nodes() {
				if !yield(n) {
					return
				}
			}
			return
		}
		for _, name := range p.Nodes {
			if n, ok := t.nodes.Get(name); ok && !yield(n) {
				return
			}
		}
	}
}

// Check verifies the derived half against the first; tests and the simulator call it.
func (t *tables) Check() error {
	used := map[NodeName]*Load{}
	over := t.mostOver()
	for j := range t.Jobs() {
		if !inOrder(j) {
			return fmt.Errorf("job %d was submitted %v, started %v, ended %v", j.ID, j.Submitted, j.Started, j.Ended)
		}
		if !j.holds() {
			continue
		}
		for _, sh := range j.HeldShares() {
			if used[sh.Node] == nil {
				used[sh.Node] = &Load{Node: sh.Node}
			}
			if err := used[sh.Node].add(j, &sh, over); err != nil {
				return err
			}
		}
	}
	for n := range t.Nodes() {
		if err := checkLoad(t, n, cmp.Or(used[n.Name], &Load{})); err != nil {
			return err
		}
	}
	return t.checkTallies()
}

// inOrder reports whether a job was submitted, started and ended in this order.
func inOrder(j *Job) bool {
	if !j.Started.IsZero() && j.Started.Before(j.Submitted) {
		return false
	}
	return j.Ended.IsZero() || !j.Ended.Before(later(j.Started, j.Submitted))
}

// add sums up a share of a job; an error if some of it is given twice.
func (l *Load) add(j *Job, sh *Share, over int) error {
	if j.HoldsCPUs() {
		if err := l.giveAgain(sh.CPUs, j.Alloc.Over, over); err != nil {
			return fmt.Errorf("node %s: %w", sh.Node, err)
		}
	}
	if twice := l.GPUs.Intersect(sh.GPUs); !twice.Empty() {
		return fmt.Errorf("node %s: gpus %s given twice", sh.Node, twice)
	}
	if p := sh.Part; p != nil && l.GPUs.Has(p.GPU) && !partGPUs(l.Parts).Has(p.GPU) {
		return fmt.Errorf("node %s: gpu %d given as a whole and in parts", sh.Node, p.GPU)
	}
	l.addGPUs(sh)
	l.MemMB += sh.MemMB
	return nil
}

// checkLoad compares a node's load with what its jobs hold.
func checkLoad(t *tables, n *Node, held *Load) error {
	l := t.Load(n.Name)
	sameGPUs := l.GPUs.Equal(held.GPUs) && slices.Equal(l.Parts, held.Parts)
	if !sameGPUs || !l.CPUUse.equal(&held.CPUUse) || l.MemMB != held.MemMB {
		return fmt.Errorf("node %s: load cpus=%s gpus=%s mem=%d, its jobs hold cpus=%s gpus=%s mem=%d",
			n.Name, l.CPUs, l.GPUs, l.MemMB, held.CPUs, held.GPUs, held.MemMB)
	}
	if has := n.Inventory.MemMB; has > 0 && l.MemMB > has && n.Usable() {
		return fmt.Errorf("node %s: %d MB given out of %d", n.Name, l.MemMB, has)
	}
	return nil
}
