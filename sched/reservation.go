package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Reservations that operators made: a job keeps off the nodes, or the cores and GPUs, of those that it has no part in,
// at any moment of the time that it may run; one that has a part in one stays on its nodes, or its cores and GPUs.

// reservedNodes is a reservation as a cycle sees it.
type reservedNodes struct {
	*cluster.Reservation
	nodes place.NodeSet
	parts *place.ExcludedParts // what it has of them; nil: all
}

// gatherReserved lists the reservations that are not over, by start.
func (c *cycle) gatherReserved() {
	for _, r := range c.s.Reservations() {
		r = r.At(c.now)
		if !r.End.After(c.now) {
			continue
		}
		c.reserved = append(c.reserved, reservedNodesOf(c.free, c.s, r))
	}
	slices.SortStableFunc(c.reserved, func(a, b *reservedNodes) int { return a.Start.Compare(b.Start) })
}

// reservationsUnchanged reports whether the reservations are what they were at the last pass and, though time has
// gone by, still no job that has looked for nodes could run into one.
func (c *cycle) reservationsUnchanged(s *cluster.Snapshot, now time.Time) bool {
	for _, rn := range c.reserved {
		if !rn.End.After(now) || rn.Start.After(c.now) && !rn.Start.After(now.Add(c.longestRun)) {
			return false
		}
	}
	return slices.Equal(s.Reservations(), c.s.Reservations())
}

// reservedNodesOf looks up a reservation's nodes.
func reservedNodesOf(fs *place.FreeSet, s *cluster.Snapshot, r *cluster.Reservation) *reservedNodes {
	rn := &reservedNodes{Reservation: r, nodes: fs.NoNodes()}
	if r.CPUs != nil {
		rn.parts = &place.ExcludedParts{}
	}
	for n, name := range s.Reserved(r) {
		i, ok := fs.Index(name)
		if !ok {
			continue
		}
		rn.nodes[i] = true
		if r.CPUs != nil {
			rn.parts.Exclude(int32(i), r.CPUs[n], r.GPUsAt(n))
		}
	}
	return rn
}

// addTo excludes what the reservation has, too.
func (rn *reservedNodes) addTo(ex place.Exclusion) place.Exclusion {
	if rn.parts == nil {
		return ex.WithNodes(rn.nodes)
	}
	return ex.WithParts(rn.parts)
}

// hasCoresOnly reports whether it has cores of its nodes, and none of their GPUs.
func (rn *reservedNodes) hasCoresOnly() bool { return rn.parts != nil && rn.GPUs == nil }

// gpusOnly returns the GPUs that it has by number.
func (rn *reservedNodes) gpusOnly() *place.ExcludedParts {
	out := &place.ExcludedParts{}
	for _, i := range rn.parts.NodeList() {
		out.Exclude(i, cluster.IDSet{}, rn.parts.GPUsOn(i))
	}
	return out
}

// reservationsFor lists the reservations that a job may run in, nil standing for none of them, and why the
// others that it asks for are no good now.
func (c *cycle) reservationsFor(j *cluster.Job, room []*reservedNodes) ([]*reservedNodes, cluster.Reason) {
	if len(c.reserved) == 0 && j.Spec.Reservation == "" {
		return append(room, nil), cluster.NoReason
	}
	for _, rn := range c.reserved {
		if rn.isAskedFor(j) && rn.Allows(j.Spec) && (rn.Active(c.now) || rn.Flags&cluster.ResvFlex != 0) {
			room = append(room, rn)
		}
	}
	if j.Spec.Reservation == "" {
		room = append(room, nil)
	}
	return room, cluster.WaitReservation
}

// isAskedFor reports whether a job names the reservation, or names none and the reservation draws such jobs.
func (rn *reservedNodes) isAskedFor(j *cluster.Job) bool {
	if j.Spec.Reservation == "" && rn.Flags&cluster.ResvMagnetic != 0 {
		return true
	}
	return slices.Contains(j.Spec.ResvNames(), rn.Name)
}

// exclusionFor is what a job must not use that runs from one time to another.
func (c *cycle) exclusionFor(own *reservedNodes, j *cluster.Job, from, to time.Time) place.Exclusion {
	if from.After(c.now) { // some may be over by then
		return c.computeExclusion(own, j, from, to)
	}
	return c.exclusionNow(own, j, from, to).WithNodes(c.completingNodes)
}

// exclusionNow is exclusionFor from now on; jobs that reach the same reservations share it.
func (c *cycle) exclusionNow(own *reservedNodes, j *cluster.Job, from, to time.Time) place.Exclusion {
	if len(c.reserved) == 0 || j.Spec.Signal.Reservation { // some may let it in
		return c.computeExclusion(own, j, from, to)
	}
	key := exclusionKey{own: own}
	for key.count < len(c.reserved) && c.reserved[key.count].Start.Before(to) {
		key.count++
	}
	ex, ok := c.exclusions[key]
	if !ok {
		ex = c.computeExclusion(own, j, from, to)
		c.exclusions[key] = ex
	}
	return ex
}

// exclusionKey is what decides on the exclusion of a job that starts now.
type exclusionKey struct {
	own   *reservedNodes
	count int
}

// outsideReservation is what a job in a reservation must not use because the reservation does not have it.
func (c *cycle) outsideReservation(own *reservedNodes) (ex place.Exclusion) {
	if own == nil || own.Beyond() {
		return ex
	}
	ex.Nodes = c.free.NoNodes()
	for i, in := range own.nodes {
		ex.Nodes[i] = !in
	}
	if own.parts == nil {
		return ex
	}
	ex.Parts = &place.ExcludedParts{}
	for _, i := range own.parts.NodeList() {
		gpus := cluster.IDSet{}
		if own.GPUs != nil {
			gpus = c.free.GPUsOf(int(i)).Minus(own.parts.GPUsOn(i))
		}
		ex.Parts.Exclude(i, c.free.CPUsOf(int(i)).Minus(own.parts.On(i)), gpus)
	}
	return ex
}

func (c *cycle) computeExclusion(own *reservedNodes, j *cluster.Job, from, to time.Time) place.Exclusion {
	if len(c.reserved) == 0 {
		return place.Exclusion{}
	}
	if own != nil && own.Flags&cluster.ResvFlex == 0 && !own.Active(from) {
		return place.Exclusion{Nodes: c.free.AllNodes()}
	}
	ex := c.outsideReservation(own)
	for _, rn := range c.reserved {
		if rn == own || !rn.At(from).Keeps(from, to) || rn.Lets(j.Spec) {
			continue
		}
		if own != nil && own.Flags&cluster.ResvAnyNodes == 0 && rn.Flags&cluster.ResvMaint == 0 {
			if own.Flags&cluster.ResvFlex == 0 { // it stays on its own nodes
				if own.hasCoresOnly() && rn.GPUs != nil { // whose GPUs others may have
					ex = ex.WithParts(rn.gpusOnly())
				}
				continue
			}
			if rn.Keeps(own.Start, own.End) { // else what both have is that one's when it begins
				rn = rn.minus(own)
			}
		}
		ex = rn.addTo(ex)
	}
	return ex
}

// minus is the reservation without what is another one's too.
func (rn *reservedNodes) minus(other *reservedNodes) *reservedNodes {
	rest := &reservedNodes{Reservation: rn.Reservation, nodes: slices.Clone(rn.nodes)}
	for i, in := range other.nodes {
		rest.nodes[i] = rest.nodes[i] && !in
	}
	if rn.parts == nil {
		return rest
	}
	rest.parts = &place.ExcludedParts{}
	for _, i := range rn.parts.NodeList() {
		switch {
		case rest.nodes[i]:
			rest.parts.Exclude(i, rn.parts.On(i), rn.parts.GPUsOn(i))
		case other.parts != nil:
			cpus := rn.parts.On(i).Minus(other.parts.On(i))
			rest.parts.Exclude(i, cpus, rn.parts.GPUsOn(i).Minus(other.parts.GPUsOn(i)))
		}
	}
	return rest
}

// nodesOutside is the nodes that a job cannot have because of the reservations that it asks for: nodes of none of
// these or, if it may go beyond them and names nodes, nodes of other reservations; nil if it may use all.
func nodesOutside(s *cluster.Snapshot, spec *cluster.JobSpec, fs *place.FreeSet, now time.Time) place.NodeSet {
	if spec.Reservation == "" {
		return nil
	}
	beyond := false
	set := fs.AllNodes()
	for _, name := range spec.ResvNames() {
		r, ok := s.Reservation(name)
		if !ok {
			return nil
		}
		beyond = beyond || r.Beyond()
		fs.MarkNodes(set, s.Reserved(r), false)
	}
	switch {
	case !beyond:
		return set
	case len(spec.NodeList) == 0: // it may wait until the others are over
		return nil
	}
	others := fs.NoNodes()
	for _, r := range s.Reservations() {
		if r.CPUs == nil && r.At(now).Keeps(now, EndOf(now, s.TimeLimit(spec))) {
			fs.MarkNodes(others, s.Reserved(r), true)
		}
	}
	for i := range others {
		others[i] = others[i] && set[i]
	}
	return others
}

// outsideHint is what Slurm says of a job that names nodes outside of its reservations: it tries one after the other.
func outsideHint(s *cluster.Snapshot, spec *cluster.JobSpec) string {
	names := spec.ResvNames()
	if r, ok := s.Reservation(names[len(names)-1]); ok && r.Beyond() {
		return "Required nodes outside of the reservation"
	}
	return cluster.OutsideReservation
}

// reservedNote is what is said of a job that would start if nothing were reserved; of one that names its nodes Slurm
// never says that it is for maintenance.
func (c *cycle) reservedNote(shape *jobShape, j *cluster.Job) string {
	if c.exclusionFor(shape.reservation, j, c.now, EndOf(c.now, j.Limit)).None() {
		return ""
	}
	free := c.freeWithOverlap(shape.demand.JobsPerCPU)
	if shape.demand.FindIn(free, c.outsideReservation(shape.reservation)) == nil {
		return ""
	}
	for _, rn := range c.reserved {
		maintenance := rn != shape.reservation && rn.Flags&cluster.ResvMaint != 0
		inTheWay := !rn.Lets(j.Spec) && rn.Keeps(c.now, EndOf(c.now, j.Limit))
		if maintenance && inTheWay && len(j.Spec.NodeList) == 0 {
			return "Reserved for maintenance"
		}
	}
	return "May be reserved for other job"
}
