package cluster

import "slices"

// The parts of nodes that reservations of cores and of GPUs have.

// nodePart is CPUs and GPUs of one node.
type nodePart struct{ cpus, gpus IDSet }

func partOf(sh *Share) nodePart { return nodePart{sh.CPUs, sh.Devices()} }

// asksForParts reports whether it is of cores or GPUs, not of whole nodes.
func (r *Reservation) asksForParts() bool { return len(r.Cores)+len(r.GRES) > 0 }

// on returns what a reservation of cores or GPUs has of one of its nodes.
func (r *Reservation) on(n NodeName) nodePart {
	k := slices.Index(r.Nodes, n)
	return nodePart{r.CPUs[k], r.GPUsAt(k)}
}

// GPUsAt returns the GPUs that it has by number of the node at a place of its list.
func (r *Reservation) GPUsAt(k int) (none IDSet) {
	if r.GPUs == nil {
		return none
	}
	return r.GPUs[k]
}

// has reports whether it has something of a part of one of its nodes.
func (r *Reservation) has(n NodeName, part nodePart) bool {
	if r.CPUs == nil {
		return true
	}
	own := r.on(n)
	return !own.cpus.Intersect(part.cpus).Empty() || !own.gpus.Intersect(part.gpus).Empty()
}

// leavesGPUsTo reports whether its jobs could take GPUs that another reservation has by number: it is of cores alone.
func (r *Reservation) leavesGPUsTo(o *Reservation) bool {
	return r.CPUs != nil && r.GPUs == nil && o.GPUs != nil
}

// holdsOf reports whether some of the shares are of what a reservation has, or of its GPUs.
func (t *tables) holdsOf(r *Reservation, shares []Share, gpusOnly bool) bool {
	names := t.Reserved(r)
	return slices.ContainsFunc(shares, func(sh Share) bool {
		part := partOf(&sh)
		if gpusOnly {
			part.cpus = IDSet{}
		}
		return slices.Contains(names, sh.Node) && r.has(sh.Node, part)
	})
}

// cut reports whether one that is to take its place has other nodes, cores or GPUs, though one of them is of cores or
// GPUs.
func (r *Reservation) cut(by *Reservation) bool {
	if !r.asksForParts() && !by.asksForParts() {
		return false
	}
	sameCores := slices.Equal(r.Cores, by.Cores) && slices.EqualFunc(r.CPUs, by.CPUs, IDSet.Equal)
	sameGPUs := slices.Equal(r.GRES, by.GRES) && slices.EqualFunc(r.GPUs, by.GPUs, IDSet.Equal)
	sameNodes := r.Count == by.Count && slices.Equal(r.Nodes, by.Nodes)
	return !sameCores || !sameGPUs || r.PerNode != by.PerNode || !sameNodes
}

// nodesToReserve are the nodes of a reservation, which must be there, with the CPUs and GPUs that are named.
func nodesToReserve(t *tx, r *Reservation) (map[NodeName]bool, error) {
	if err := r.checkParts(); err != nil {
		return nil, err
	}
	nodes := map[NodeName]bool{}
	for k, name := range t.Reserved(r) {
		n, ok := t.nodes.Get(name)
		if !ok {
			return nil, Errorf(NotFound, ErrNodeName, "node %s does not exist", name)
		}
		if r.CPUs != nil && (r.CPUs[k].Empty() || r.CPUs[k].Max() >= n.Inventory.CPUs) {
			return nil, Errorf(Invalid, ErrCPUCount, "CPUs %s of node %s cannot be reserved: it has %d",
				r.CPUs[k], name, n.Inventory.CPUs)
		}
		if r.GPUs != nil && (r.GPUs[k].Empty() || !n.Inventory.Devices().Contains(r.GPUs[k])) {
			return nil, Errorf(Invalid, ErrResvGPUs, "GPUs %q of node %s cannot be reserved: it has %q",
				r.GPUs[k], name, n.Inventory.Devices())
		}
		nodes[name] = true
	}
	return nodes, nil
}

// checkParts refuses lists of CPUs and GPUs that do not match the nodes and what was asked for.
func (r *Reservation) checkParts() error {
	if r.asksForParts() != (r.CPUs != nil) || r.CPUs != nil && len(r.CPUs) != len(r.Nodes) {
		return Errorf(Invalid, ErrResvCoreCount,
			"a reservation that asks for %d numbers of cores of %d nodes cannot have CPUs of %d",
			len(r.Cores), len(r.Nodes), len(r.CPUs))
	}
	if (len(r.GRES) > 0) != (r.GPUs != nil) || r.GPUs != nil && len(r.GPUs) != len(r.Nodes) {
		return Errorf(Invalid, ErrResvGPUs,
			"a reservation that asks for %d kinds of GPUs of %d nodes cannot have GPUs of %d",
			len(r.GRES), len(r.Nodes), len(r.GPUs))
	}
	for _, g := range r.GRES {
		if g.Name != "gpu" || g.Count <= 0 {
			return Errorf(Invalid, ErrResvGPUs, "cannot reserve %d of gres/%s: request at least one GPU",
				g.Count, g.Name)
		}
	}
	return nil
}

// GPUAmounts returns how many GPUs a reservation of GPUs has, those of types that it names first.
func (r *Reservation) GPUAmounts() (list []Amount) {
	if r.GPUs == nil {
		return nil
	}
	total := 0
	for _, ids := range r.GPUs {
		total += ids.Len()
	}
	for _, g := range r.GRES {
		if n := g.Count; g.Type != "" {
			if r.PerNode {
				n *= int64(len(r.Nodes))
			}
			list = append(list, Amount{TRES: "gres/gpu:" + g.Type, N: float64(n)})
		}
	}
	return append(list, Amount{TRES: "gres/gpu", N: float64(total)})
}
