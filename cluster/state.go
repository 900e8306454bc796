package cluster

import (
	"iter"
)

// State is the cluster. One goroutine applies entries; everybody else reads Snapshots.
type State struct{ tables }

// Snapshot is the state at one moment. It never changes and may be read by anybody.
type Snapshot struct{ tables }

// NewState returns an empty cluster with DefaultConfig.
func NewState() *State {
	cfg := DefaultConfig()
	s := &State{tables{
		level:    First,
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

// Config is the active configuration.
func (t *tables) Config() *Config { return t.config }

// Job finds a record by its own id.
func (t *tables) Job(id JobID) (*Job, bool) { return t.jobs.Get(id) }

// Node finds a node by name.
func (t *tables) Node(name NodeName) (*Node, bool) { return t.nodes.Get(name) }

// Blob finds a stored text.
func (t *tables) Blob(h BlobHash) (*Blob, bool) { return t.blobs.Get(h) }

// Step finds a live step.
func (t *tables) Step(id StepID) (*Step, bool) { return t.steps.Get(&Step{ID: id}) }

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
