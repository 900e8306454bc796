package cluster

// A running job may get less memory on each of its nodes, as in Slurm, and by an operator more, where the nodes have
// it. The nodes set the limit of its processes when they hear of it. Its charge, its limits and history follow at once,
// as when it gets another number of nodes (resize.go).

// resizesMemory reports whether the command changes the memory of a job that runs; waiting: some of the jobs wait, and
// they alone are meant.
func (c *UpdateJob) resizesMemory(j *Job, waiting bool) bool {
	return c.Memory && c.Patch.Mem != nil && j.Phase == Running && !waiting
}

// resizeMemory gives a running job other memory on each of its nodes; n is a copy of old. It returns what is left of
// the patch.
func resizeMemory(t *tx, old, n *Job, p Patch) (Patch, error) {
	want := *p.Mem
	p.Mem = nil
	if err := firstError(
		refuseIf(!t.config.MemAlloc,
			Invalid, ErrUnsupported,
			"job %d has no memory of its own: jobs get none, as SelectTypeParameters has no CR_..._Memory", n.ID),
		refuseIf(want.Per != MemPerNode,
			Invalid, ErrStepMem,
			"job %d runs, so its memory can change for each node only: minmemorynode=MB", n.ID),
		refuseIf(want.Per == MemPerNode && want.MB <= 0,
			Invalid, ErrStepMem, "job %d runs and cannot be left without memory: minmemorynode=1 or more", n.ID),
	); err != nil {
		return p, err
	}
	alloc := *n.Alloc
	alloc.Shares = withMemory(alloc.Shares, want.MB)
	alloc.Spares = withMemory(alloc.Spares, want.MB)
	changed := false
	for i, sh := range n.Alloc.Parts() {
		if err := mayHaveMemory(t, n, &sh, want.MB); err != nil {
			return p, err
		}
		changed = changed || alloc.Parts()[i].MemMB != sh.MemMB
	}
	if !changed {
		return p, nil
	}
	at := later(t.at, n.since().Add(1)) // records of history are told apart by it
	sized(t, n, at)
	t.events[len(t.events)-1].Sized.Spec = old.Spec // with what it had asked for until now
	for _, sh := range n.Alloc.Parts() {
		l := *t.Load(sh.Node)
		l.MemMB += want.MB - sh.MemMB
		t.putLoad(&l)
	}
	n.Alloc = &alloc
	n.Spec.Mem = want // what it asks for if it comes back
	n.Shrunk = &Shrunk{At: at, Leaving: n.Leaving(), Lost: LostNodes(n), Replaced: ReplacedNodes(n)}
	bill(t, n)
	return p, nil
}

// withMemory is shares with other memory.
func withMemory(shares []Share, mb MemMB) (out []Share) {
	for _, sh := range shares {
		sh.MemMB = mb
		out = append(out, sh)
	}
	return out
}

// mayHaveMemory refuses a running job more memory than its user may give it, or than the node of a share has.
func mayHaveMemory(t *tx, j *Job, sh *Share, mb MemMB) error {
	more := mb - sh.MemMB
	if more <= 0 {
		return nil
	}
	if !t.by.Operator() {
		return Errorf(Denied, ErrStepMem,
			"job %d has %d MB on node %s: only operators may raise the memory of a running job", j.ID, sh.MemMB, sh.Node)
	}
	n, ok := t.nodes.Get(sh.Node)
	if !ok {
		return Errorf(Conflict, ErrStepMem, "node %s of job %d is gone", sh.Node, j.ID)
	}
	free := n.Inventory.MemMB - n.Inventory.SpecMemMB - t.Load(sh.Node).MemMB
	return refuseIf(more > free,
		Conflict, ErrStepMem,
		"job %d needs %d MB more on node %s, which has %d MB free: minmemorynode=%d or less",
		j.ID, more, sh.Node, max(free, 0), sh.MemMB+max(free, 0))
}
