package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// Load is what is given out on a node: the sum of the shares of its jobs.
type Load struct {
	Node NodeName `json:"node"`
	CPUUse
	GPUs  IDSet   `json:"gpus,omitzero"` // those of which parts are given out, too
	MemMB MemMB   `json:"mem_mb,omitempty"`
	Jobs  []JobID `json:"jobs,omitempty"` // rising
	// Parts sums what is given out of parts of GPUs, by device and name.
	Parts []GPUPart `json:"parts,omitempty"`
	// Counted sums what is given out of the site's own resources, sorted.
	Counted []GRES `json:"counted,omitempty"`
	// Closed is one more than the id of the user for whose jobs alone the node is (--exclusive=user); 0: for all.
	Closed int64 `json:"closed,omitempty"`
}

// Load tells what is given out on a node; never nil.
func (t *tables) Load(name NodeName) *Load {
	if l, ok := t.loads.Get(name); ok {
		return l
	}
	return &Load{Node: name}
}

func (t *tx) putLoad(l *Load) {
	old, had := t.loads.Set(l.Node, l)
	t.changes.add(StateChange{Load: l.Node})
	if len(l.Jobs) == 0 && had && len(old.Jobs) > 0 {
		t.emptied = append(t.emptied, l.Node)
	}
	t.onUndo(func() {
		t.changes.add(StateChange{Load: l.Node})
		restore(t.loads, l.Node, old, had)
	})
}

// give adds the job's shares to the loads of its nodes; take removes those of the given nodes.
func (t *tx) give(j *Job) error {
	for _, sh := range j.Alloc.Parts() {
		n, ok := t.nodes.Get(sh.Node)
		if !ok || !n.Usable() {
			return Errorf(Conflict, ErrBusy, "node %s is not usable", sh.Node)
		}
		if err := t.giveShare(j, sh, n); err != nil {
			return err
		}
	}
	return nil
}

// giveShare gives a job its share of a node, if that is free.
func (t *tx) giveShare(j *Job, sh Share, n *Node) error {
	l := *t.Load(sh.Node)
	if sh.MemMB < 0 || slices.Contains(l.Jobs, j.ID) {
		return Errorf(Internal, "", "job %d: the share of node %s makes no sense", j.ID, sh.Node)
	}
	if !n.Inventory.holds(&sh) || !l.leaves(&sh, j.Alloc.Over, &n.Inventory) {
		return Errorf(Conflict, ErrBusy, "node %s is full", sh.Node)
	}
	if !j.Spec.mayUse(&n.Inventory, &sh) {
		return Errorf(Conflict, ErrBusy, "job %d: its tasks cannot run on CPUs %s of node %s", j.ID,
			sh.Usable, sh.Node)
	}
	if !t.mayJoin(&l, j.Spec) {
		return Errorf(Conflict, ErrBusy, "node %s has jobs of another user, and one of them is not shared", sh.Node)
	}
	if p, ok := t.Partition(j.Alloc.Partition); ok && p.LimitsCPUs() && j.HoldsCPUs() {
		if !p.allows(l.CPUsOf(p.Name, t.jobs.Get).Union(sh.CPUs), &n.Inventory) {
			return Errorf(Conflict, ErrBusy, "jobs of partition %s may have no more CPUs of node %s", p.Name, sh.Node)
		}
	}
	l.hold(j, &sh)
	l.Jobs = append(slices.Clone(l.Jobs), j.ID)
	slices.Sort(l.Jobs)
	t.putLoad(&l)
	return nil
}

func (t *tx) take(j *Job, nodes ...NodeName) {
	for _, sh := range append(slices.Clip(j.Alloc.Parts()), j.Leaving()...) {
		if !slices.Contains(nodes, sh.Node) {
			continue
		}
		l := *t.Load(sh.Node)
		if j.HoldsCPUs() {
			l.TakeBack(sh.CPUs)
		}
		l.dropGPUs(&sh)
		l.MemMB -= sh.MemMB
		l.Counted = AddCounted(l.Counted, sh.Counted, -1)
		l.Jobs = slices.DeleteFunc(slices.Clone(l.Jobs), func(id JobID) bool { return id == j.ID })
		if l.Closed != 0 {
			l.Closed = 0
			for _, id := range l.Jobs {
				if o, ok := t.jobs.Get(id); ok {
					l.Closed = max(l.Closed, closes(o.Spec))
				}
			}
		}
		t.putLoad(&l)
	}
}

// hold adds what a job has of the node, but for its id.
func (l *Load) hold(j *Job, sh *Share) {
	if j.HoldsCPUs() {
		l.Give(sh.CPUs, j.Alloc.Over > 0)
	}
	l.MemMB += sh.MemMB
	l.Counted = AddCounted(l.Counted, sh.Counted, 1)
	l.addGPUs(sh)
	l.Closed = max(l.Closed, closes(j.Spec))
}

// holds reports whether a node has the CPUs and GPUs of a share, given out or not.
func (inv *Inventory) holds(sh *Share) bool {
	return sh.CPUs.Max() < inv.CPUs && sh.GPUs.Minus(inv.Devices()).Empty()
}

// leaves reports whether a share is free of what is given out on a node.
func (l *Load) leaves(sh *Share, over int, inv *Inventory) bool {
	if !l.Taken(over).Intersect(sh.CPUs).Empty() || !l.GPUs.Intersect(sh.GPUs).Empty() {
		return false
	}
	enough := sh.MemMB <= 0 || l.MemMB+sh.MemMB <= inv.MemMB
	return enough && inv.mayGive(l, sh.Part) && inv.hasCounted(sh.Counted, l.Counted)
}

// CPUsOf is the CPUs of the node that jobs of a partition have.
func (l *Load) CPUsOf(partition string, job func(JobID) (*Job, bool)) (cpus IDSet) {
	for _, id := range l.Jobs {
		j, ok := job(id)
		if !ok || j.Alloc == nil || j.Alloc.Partition != partition || !j.HoldsCPUs() {
			continue
		}
		for _, sh := range j.HeldShares() {
			if sh.Node == l.Node {
				cpus = cpus.Union(sh.CPUs)
			}
		}
	}
	return cpus
}

// allows reports whether the partition's jobs together may have these CPUs of a node: MaxCPUsPerNode, MaxCPUsPerSocket.
func (l *PartitionLimits) allows(all IDSet, inv *Inventory) bool {
	if l.MaxCPUsPerNode > 0 && all.Len() > l.MaxCPUsPerNode {
		return false
	}
	if l.MaxCPUsPerSocket == 0 {
		return true
	}
	return !slices.ContainsFunc(inv.SocketCPUs(), func(socket IDSet) bool {
		return all.Intersect(socket).Len() > l.MaxCPUsPerSocket
	})
}

// SocketCPUs lists the CPUs of each socket; what is beyond the last one is counted to that.
func (inv *Inventory) SocketCPUs() []IDSet {
	sockets := max(inv.Sockets, 1)
	per := max(inv.CoresPerSocket, 1) * max(inv.ThreadsPerCore, 1)
	out := make([]IDSet, sockets)
	for s := range out {
		upTo := min((s+1)*per, inv.CPUs)
		if s == sockets-1 {
			upTo = inv.CPUs
		}
		out[s] = RangeIDSet(s*per, upTo-1)
	}
	return out
}

// closes is what Load.Closed becomes of a job.
func closes(s *JobSpec) int64 {
	if s.Sharing != ShareUser {
		return 0
	}
	return int64(s.UID) + 1
}

// mayJoin reports whether users let a job onto a node beside those that are there.
func (t *tables) mayJoin(l *Load, s *JobSpec) bool {
	if l.Closed != 0 && l.Closed != int64(s.UID)+1 {
		return false
	}
	return s.Sharing != ShareUser || t.AllOf(l, s.UID)
}

// AllOf reports whether all jobs of a node are one user's.
func (t *tables) AllOf(l *Load, uid uint32) bool {
	return !slices.ContainsFunc(l.Jobs, func(id JobID) bool { j, ok := t.jobs.Get(id); return ok && j.Spec.UID != uid })
}

// mayGive reports whether a node has what a part asks for beside its load.
func (inv *Inventory) mayGive(l *Load, p *GPUPart) bool {
	if p == nil {
		return true
	}
	if p.GPU < 0 || p.GPU >= len(inv.GPUs) || p.Count <= 0 || inv.GPUs[p.GPU].Missing {
		return false
	}
	used, ofOne := l.partsOf(p)
	if !ofOne || used == 0 && l.GPUs.Has(p.GPU) {
		return false
	}
	return used+p.Count <= inv.PartsOf(p.Name)
}

// partsOf is how many parts like one are given out of its GPU; false if parts of another kind are: a GPU has those of
// one kind at a time.
func (l *Load) partsOf(p *GPUPart) (used int64, ofOne bool) {
	for _, o := range l.Parts {
		if o.GPU != p.GPU {
			continue
		}
		if o.Name != p.Name {
			return 0, false
		}
		used = o.Count
	}
	return used, true
}

// addGPUs adds what a share has of GPUs to a load.
func (l *Load) addGPUs(sh *Share) {
	l.GPUs = l.GPUs.Union(sh.GPUs)
	if sh.Part != nil {
		l.Parts = AddPart(l.Parts, *sh.Part)
		l.GPUs = l.GPUs.Union(NewIDSet(sh.Part.GPU))
	}
}

// dropGPUs takes it off again.
func (l *Load) dropGPUs(sh *Share) {
	l.GPUs = l.GPUs.Minus(sh.GPUs)
	if sh.Part != nil {
		l.Parts = AddPart(l.Parts, GPUPart{Name: sh.Part.Name, GPU: sh.Part.GPU, Count: -sh.Part.Count})
		l.GPUs = l.GPUs.Minus(NewIDSet(sh.Part.GPU).Minus(partGPUs(l.Parts)))
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
	l.Counted = AddCounted(l.Counted, sh.Counted, 1)
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
	if !slices.Equal(l.Counted, held.Counted) {
		return fmt.Errorf("node %s: load has %v, its jobs hold %v", n.Name, l.Counted, held.Counted)
	}
	if has := n.Inventory.MemMB; has > 0 && l.MemMB > has && n.Usable() {
		return fmt.Errorf("node %s: %d MB given out of %d", n.Name, l.MemMB, has)
	}
	return nil
}
