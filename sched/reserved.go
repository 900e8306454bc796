package sched

import (
	"fmt"
	"slices"
	"time"

	"dev.muster/cluster"
)

// Reservations that operators made: a job keeps off the nodes of those that it has no part in, at any
// moment of the time that it may run; one that has a part in one stays on its nodes.

// keptNodes is a reservation as a cycle sees it.
type keptNodes struct {
	*cluster.Reservation
	nodes nodeSet
}

// gatherReserved lists what is reserved, by start.
func (c *cycle) gatherReserved() {
	for _, r := range c.s.Reservations() {
		if r = r.At(c.now); !r.End.After(c.now) {
			continue
		}
		k := &keptNodes{r, make(nodeSet, len(c.free.spaces))}
		for _, n := range c.s.Reserved(r) {
			if i, ok := c.free.at[n]; ok {
				k.nodes[i] = true
			}
		}
		c.reserved = append(c.reserved, k)
	}
	slices.SortStableFunc(c.reserved, func(a, b *keptNodes) int { return a.Start.Compare(b.Start) })
}

// parts lists the reservations that a job may run in, nil standing for none of them, and why the
// others that it asks for are no good now.
func (c *cycle) parts(j *cluster.Job, room []*keptNodes) ([]*keptNodes, cluster.Reason) {
	if len(c.reserved) == 0 && j.Spec.Reservation == "" {
		return append(room, nil), cluster.NoReason
	}
	for _, k := range c.reserved {
		asked := slices.Contains(j.Spec.ResvNames(), k.Name) || j.Spec.Reservation == "" && k.Flags&cluster.ResvMagnetic != 0
		if asked && k.Allows(j.Spec) && (k.Active(c.now) || k.Flags&cluster.ResvFlex != 0) {
			room = append(room, k)
		}
	}
	if j.Spec.Reservation == "" {
		room = append(room, nil)
	}
	return room, cluster.WaitReservation
}

// off is the nodes that a job must not use in a span of time; nil if it may use all.
func (c *cycle) off(own *keptNodes, from, to time.Time) nodeSet {
	if len(c.reserved) == 0 {
		return nil
	}
	if from.After(c.now) { // some may be over by then
		return c.offAt(own, from, to)
	}
	key := offKey{own: own}
	for key.upTo < len(c.reserved) && c.reserved[key.upTo].Start.Before(to) {
		key.upTo++
	}
	set, ok := c.offs[key]
	if !ok {
		set = c.offAt(own, from, to)
		c.offs[key] = set
	}
	return set
}

// offKey names a set of nodes to keep off from now on: those of the first reservations, for jobs in one.
type offKey struct {
	own  *keptNodes
	upTo int
}

// outside is the nodes that a job in a reservation must not use because they are not of it.
func (c *cycle) outside(own *keptNodes) nodeSet {
	if own == nil || own.Flags&(cluster.ResvFlex|cluster.ResvAnyNodes) != 0 {
		return nil
	}
	set := make(nodeSet, len(c.free.spaces))
	for i, in := range own.nodes {
		set[i] = !in
	}
	return set
}

func (c *cycle) offAt(own *keptNodes, from, to time.Time) nodeSet {
	set := c.outside(own)
	if own != nil && own.Flags&cluster.ResvFlex == 0 && !own.Active(from) {
		set = make(nodeSet, len(c.free.spaces))
		for i := range set {
			set[i] = true
		}
		return set
	}
	for _, k := range c.reserved {
		if k == own || !k.At(from).Keeps(from, to) || own != nil && own.Flags&cluster.ResvAnyNodes == 0 && k.Flags&cluster.ResvMaint == 0 {
			continue
		}
		set = union(set, k.nodes)
	}
	return set
}

// notReserved is the nodes that are of none of the reservations that a job asks for; nil if it may use all.
func notReserved(s *cluster.Snapshot, spec *cluster.JobSpec, p *pool) nodeSet {
	var set nodeSet
	for _, name := range spec.ResvNames() {
		r, ok := s.Reservation(name)
		if !ok || r.Flags&(cluster.ResvFlex|cluster.ResvAnyNodes) != 0 {
			return nil
		}
		if set == nil {
			set = make(nodeSet, len(p.spaces))
			for i := range set {
				set[i] = true
			}
		}
		for _, n := range s.Reserved(r) {
			if i, ok := p.at[n]; ok {
				set[i] = false
			}
		}
	}
	return set
}

// union is the nodes of either set.
func union(a, b nodeSet) nodeSet {
	if a == nil || b == nil {
		return slices.Concat(a, b) // the one that there is
	}
	out := slices.Clone(a)
	for i, in := range b {
		out[i] = out[i] || in
	}
	return out
}

// reservedNote is what is said of a job that would start if nothing were reserved; of one that names its nodes Slurm
// never says that it is for maintenance.
func (c *cycle) reservedNote(q *question, j *cluster.Job) string {
	off := c.off(q.own, c.now, until(c.now, j.Limit))
	if off == nil || q.want.place(c.row(q.want.over), c.outside(q.own)) == nil {
		return ""
	}
	for _, k := range c.reserved {
		if len(j.Spec.NodeList) == 0 && k != q.own && k.Flags&cluster.ResvMaint != 0 && k.Keeps(c.now, until(c.now, j.Limit)) {
			return "Reserved for maintenance"
		}
	}
	return "May be reserved for other job"
}

// noReservation explains that none of the reservations that a job asks for is in force.
func (e *Explanation) noReservation(s *cluster.Snapshot, j *cluster.Job) {
	for _, name := range j.Spec.ResvNames() {
		switch r, ok := s.Reservation(name); {
		case !ok:
			e.add(cluster.WaitReservation, fmt.Sprintf("scontrol update jobid=%d reservationname=", j.ID), "reservation %s does not exist any more", name)
		case !r.Allows(j.Spec):
			e.add(cluster.WaitReservation, "", "reservation %s is not for user %s and account %s", name, j.Spec.User, j.Spec.Account)
		default:
			e.add(cluster.WaitReservation, "", "reservation %s begins at %s", name, r.Start.Format(time.DateTime))
		}
	}
}

// reserved explains which reservations keep a job from nodes that are free, and what would help.
func (e *Explanation) reserved(c *cycle, q *question, j *cluster.Job, note string) {
	for _, k := range c.reserved {
		if k == q.own || !k.Keeps(c.now, until(c.now, j.Limit)) {
			continue
		}
		hint := ""
		if left := k.Start.Sub(c.now).Truncate(time.Minute); left > 0 {
			hint = fmt.Sprintf("scontrol update jobid=%d timelimit=%d", j.ID, int(left.Minutes()))
		}
		e.add(cluster.WaitNodeNotAvail, hint, "%s: reservation %s has %s from %s to %s, and the job may run until %s", note, k.Name,
			count(len(c.s.Reserved(k.Reservation)), "node", "nodes"), k.Start.Format(time.DateTime), k.End.Format(time.DateTime), until(c.now, j.Limit).Format(time.DateTime))
	}
}

// ReserveNodes chooses nodes for a reservation that asks for a number of them: those that no other
// reservation has then, and that no job will have, if there are enough; in the order of a job's.
// The error says what is missing.
func ReserveNodes(s *cluster.Snapshot, r *cluster.Reservation, now time.Time) ([]cluster.NodeName, *cluster.Error) {
	return reserveNodes(s, r, now, false)
}

// reserveNodes is ReserveNodes; more looks for usable nodes beside those that the reservation has.
func reserveNodes(s *cluster.Snapshot, r *cluster.Reservation, now time.Time, more bool) ([]cluster.NodeName, *cluster.Error) {
	part, ok := s.Partition(r.Partition)
	if r.Partition == "" {
		part = s.DefaultPartition()
		ok = part != nil
	}
	if !ok {
		return nil, cluster.Errorf(cluster.Invalid, cluster.ErrPartition, "partition %s does not exist", r.Partition)
	}
	c := newCycle(s, now)
	all := whole(s)
	taken := make(nodeSet, len(all.spaces))
	mark := func(n cluster.NodeName) {
		if i, ok := all.at[n]; ok {
			taken[i] = true
		}
	}
	if r.Flags&(cluster.ResvMaint|cluster.ResvOverlap) == 0 {
		for _, k := range c.reserved {
			if k.Name != r.Name && k.Keeps(r.Start, r.End) && k.Flags&(cluster.ResvMaint|cluster.ResvOverlap) == 0 {
				for _, n := range s.Reserved(k.Reservation) {
					mark(n)
				}
			}
		}
	}
	if r.Flags&cluster.ResvIgnoreJobs == 0 {
		for j := range s.Live() {
			if end := j.EndLimit(s.Config()); !end.IsZero() && !end.After(r.Start) {
				continue
			}
			for _, n := range j.AllocNodes() {
				mark(n)
			}
		}
	}
	if more {
		for _, n := range r.Nodes {
			mark(n)
		}
	}
	d := newDemand(s, part, &cluster.JobSpec{Layout: &cluster.Layout{MinNodes: r.Count, MaxNodes: r.Count, Constraint: r.Features}}, nil)
	d.exclusive = true
	for pass := range 2 - b2i(more) { // nodes that are up, if there are enough
		off := taken
		if pass == 0 {
			off = slices.Clone(taken)
			for i := range all.spaces {
				off[i] = off[i] || !all.spaces[i].node.Usable()
			}
		}
		if a := d.place(all, off); a != nil {
			var out []cluster.NodeName
			for _, sh := range a.Shares {
				out = append(out, sh.Node)
			}
			return out, nil
		}
	}
	return nil, cluster.Errorf(cluster.Conflict, cluster.ErrResvBusy, "partition %s has no %d nodes that are free from %s on", part.Name, r.Count, r.Start.Format(time.DateTime))
}

// Replenish replaces nodes of reservations that asked for a number of them by idle ones: those that can not be used, and with
// REPLACE those on which jobs run. What can not be replaced stays.
func Replenish(s *cluster.Snapshot, now time.Time) (out []cluster.Command) {
	for _, r := range s.Reservations() {
		if r = r.At(now); !r.Replaces() || !r.End.After(now) {
			continue
		}
		var drop []cluster.NodeName
		for _, name := range r.Nodes {
			n, ok := s.Node(name)
			if !ok || !n.Usable() || r.Flags&cluster.ResvReplace != 0 && len(s.Load(name).Jobs) > 0 {
				drop = append(drop, name)
			}
		}
		if len(drop) == 0 || !spare(s, r) {
			continue
		}
		for ; len(drop) > 0; drop = drop[:len(drop)-1] { // as many as there are
			want := *r
			want.Count = len(drop)
			add, err := reserveNodes(s, &want, now, true)
			if err == nil {
				out = append(out, &cluster.ReservationNodes{Name: r.Name, Drop: drop, Add: add})
				break
			}
		}
	}
	return out
}

// spare reports whether there is an idle node that the reservation has not: looking for one is not in vain.
func spare(s *cluster.Snapshot, r *cluster.Reservation) bool {
	for n := range s.Nodes() {
		if n.Usable() && len(s.Load(n.Name).Jobs) == 0 && !slices.Contains(r.Nodes, n.Name) {
			return true
		}
	}
	return false
}
