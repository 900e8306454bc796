package sched

import (
	"fmt"
	"slices"
	"time"

	"dev.muster/cluster"
)

// Reservations that operators made: a job keeps off the nodes, or the cores, of those that it has no part in, at any
// moment of the time that it may run; one that has a part in one stays on its nodes, or its cores.

// keptNodes is a reservation as a cycle sees it.
type keptNodes struct {
	*cluster.Reservation
	nodes nodeSet
	cpus  *barred // what it has of them; nil: all
}

// gatherReserved lists what is reserved, by start.
func (c *cycle) gatherReserved() {
	for _, r := range c.s.Reservations() {
		if r = r.At(c.now); !r.End.After(c.now) {
			continue
		}
		c.reserved = append(c.reserved, c.free.keep(c.s, r))
	}
	slices.SortStableFunc(c.reserved, func(a, b *keptNodes) int { return a.Start.Compare(b.Start) })
}

// outOfReach reports whether the reservations are what they were when this cycle was last gone on from, and still no job that has
// looked for nodes can have to do with one, though time has gone by.
func (c *cycle) outOfReach(s *cluster.Snapshot, now time.Time) bool {
	for _, k := range c.reserved {
		if !k.End.After(now) || k.Start.After(c.now) && !k.Start.After(now.Add(c.longest)) {
			return false
		}
	}
	return slices.Equal(s.Reservations(), c.s.Reservations())
}

// keep looks up where a reservation's nodes are.
func (p *pool) keep(s *cluster.Snapshot, r *cluster.Reservation) *keptNodes {
	k := &keptNodes{Reservation: r, nodes: make(nodeSet, len(p.spaces))}
	if r.CPUs != nil {
		k.cpus = &barred{}
	}
	for n, name := range s.Reserved(r) {
		i, ok := p.at(name)
		if !ok {
			continue
		}
		k.nodes[i] = true
		if r.CPUs != nil {
			k.cpus.add(int32(i), r.CPUs[n])
		}
	}
	return k
}

// what tells how much a reservation has.
func (k *keptNodes) what(s *cluster.Snapshot) string {
	text := count(len(s.Reserved(k.Reservation)), "node", "nodes")
	if k.CPUs == nil {
		return text
	}
	n := 0
	for _, ids := range k.CPUs {
		n += ids.Len()
	}
	return count(n, "CPU", "CPUs") + " of " + text
}

// bar adds the nodes of a reservation to those that a job must keep off, or the cores.
func (o off) bar(k *keptNodes) off {
	if k.cpus == nil {
		return o.and(k.nodes)
	}
	o.cpus = o.cpus.with(k.cpus)
	return o
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

// off is what a job must not use in a span of time.
func (c *cycle) off(own *keptNodes, j *cluster.Job, from, to time.Time) off {
	if from.After(c.now) { // some may be over by then
		return c.offAt(own, j, from, to)
	}
	return c.offNow(own, j, from, to).and(c.resting)
}

// offNow is what is reserved from now on.
func (c *cycle) offNow(own *keptNodes, j *cluster.Job, from, to time.Time) off {
	if len(c.reserved) == 0 || j.Spec.Signal.Reservation { // some may let it in
		return c.offAt(own, j, from, to)
	}
	key := offKey{own: own}
	for key.upTo < len(c.reserved) && c.reserved[key.upTo].Start.Before(to) {
		key.upTo++
	}
	o, ok := c.offs[key]
	if !ok {
		o = c.offAt(own, j, from, to)
		c.offs[key] = o
	}
	return o
}

// offKey names what to keep off from now on: those of the first reservations, for jobs in one.
type offKey struct {
	own  *keptNodes
	upTo int
}

// outside is what a job in a reservation must not use because it is not of it.
func (c *cycle) outside(own *keptNodes) (o off) {
	if own == nil || own.Beyond() {
		return o
	}
	o.nodes = make(nodeSet, len(c.free.spaces))
	for i, in := range own.nodes {
		o.nodes[i] = !in
	}
	if own.cpus != nil {
		o.cpus = &barred{}
		for _, i := range own.cpus.list() {
			o.cpus.add(i, cluster.RangeIDSet(0, c.free.spaces[i].node.Inventory.CPUs-1).Minus(own.cpus.on(i)))
		}
	}
	return o
}

func (c *cycle) offAt(own *keptNodes, j *cluster.Job, from, to time.Time) off {
	if len(c.reserved) == 0 {
		return off{}
	}
	if own != nil && own.Flags&cluster.ResvFlex == 0 && !own.Active(from) {
		return off{nodes: slices.Repeat(nodeSet{true}, len(c.free.spaces))}
	}
	o := c.outside(own)
	for _, k := range c.reserved {
		if k == own || !k.At(from).Keeps(from, to) || k.Lets(j.Spec) {
			continue
		}
		if own != nil && own.Flags&cluster.ResvAnyNodes == 0 && k.Flags&cluster.ResvMaint == 0 {
			if own.Flags&cluster.ResvFlex == 0 { // it stays on its own nodes
				continue
			}
			k = k.beyond(own)
		}
		o = o.bar(k)
	}
	return o
}

// beyond is what a reservation has that is not of the other one too.
func (k *keptNodes) beyond(other *keptNodes) *keptNodes {
	rest := &keptNodes{Reservation: k.Reservation, nodes: slices.Clone(k.nodes)}
	for i, in := range other.nodes {
		rest.nodes[i] = rest.nodes[i] && !in
	}
	if k.cpus != nil {
		rest.cpus = &barred{}
		for _, i := range k.cpus.list() {
			if rest.nodes[i] {
				rest.cpus.add(i, k.cpus.on(i))
			}
		}
	}
	return rest
}

// notReserved is the nodes that a job can not have for the reservations that it asks for: those of none of them or, if it may
// go beyond and says where, those of others; nil if it may use all.
func notReserved(s *cluster.Snapshot, spec *cluster.JobSpec, p *pool, now time.Time) nodeSet {
	if spec.Reservation == "" {
		return nil
	}
	beyond, set := false, slices.Repeat(nodeSet{true}, len(p.spaces))
	for _, name := range spec.ResvNames() {
		r, ok := s.Reservation(name)
		if !ok {
			return nil
		}
		beyond = beyond || r.Beyond()
		p.mark(set, s.Reserved(r), false)
	}
	switch {
	case !beyond:
		return set
	case len(spec.NodeList) == 0: // it waits for others to end
		return nil
	}
	others := make(nodeSet, len(p.spaces))
	for _, r := range s.Reservations() {
		if r.CPUs == nil && r.At(now).Keeps(now, until(now, s.TimeLimit(spec))) {
			p.mark(others, s.Reserved(r), true)
		}
	}
	for i := range others {
		others[i] = others[i] && set[i]
	}
	return others
}

// mark puts nodes into a set, or takes them out of it.
func (p *pool) mark(set nodeSet, names []cluster.NodeName, in bool) {
	for _, n := range names {
		if i, ok := p.at(n); ok {
			set[i] = in
		}
	}
}

// outsideHint is what Slurm says of a job that names nodes outside of its reservations: it tries one after the other.
func outsideHint(s *cluster.Snapshot, spec *cluster.JobSpec) string {
	names := spec.ResvNames()
	if r, ok := s.Reservation(names[len(names)-1]); ok && r.Beyond() {
		return "Required nodes outside of the reservation"
	}
	return cluster.OutsideReservation
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
	if c.off(q.own, j, c.now, until(c.now, j.Limit)).none() || q.want.place(c.row(q.want.over), c.outside(q.own)) == nil {
		return ""
	}
	for _, k := range c.reserved {
		if len(j.Spec.NodeList) == 0 && k != q.own && k.Flags&cluster.ResvMaint != 0 && !k.Lets(j.Spec) && k.Keeps(c.now, until(c.now, j.Limit)) {
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
			e.add(cluster.WaitReservation, updateHint([]*cluster.Job{j}, "reservationname="), "reservation %s does not exist any more", name)
		case !r.Allows(j.Spec):
			e.add(cluster.WaitReservation, "", "reservation %s is not for user %s and account %s", name, j.Spec.User, j.Spec.Account)
		default:
			e.add(cluster.WaitReservation, "", "reservation %s begins at %s", name, r.Start.Format(time.DateTime))
		}
	}
}

// reserved explains which reservations keep a job from nodes that are free, and what would help.
func (e *Explanation) reserved(c *cycle, q *question, j *cluster.Job) {
	for _, k := range c.reserved {
		if k == q.own || !k.Keeps(c.now, until(c.now, j.Limit)) || k.Lets(j.Spec) {
			continue
		}
		hint := ""
		if left := k.Start.Sub(c.now).Truncate(time.Minute); left > 0 {
			hint = updateHint(c.detained(j, k), fmt.Sprintf("timelimit=%d", int(left.Minutes())))
		} else if k.MaxStartDelay > 0 {
			hint = fmt.Sprintf("sbatch --signal=R:SIGNAL@%d or less: it may run there until a job of the reservation wants its nodes", int(k.MaxStartDelay.Seconds()))
		}
		e.add(cluster.WaitNodeNotAvail, hint, "reservation %s%s has %s from %s to %s, and the job may run until %s", k.Name, map[bool]string{true: ", for maintenance,"}[k.Flags&cluster.ResvMaint != 0],
			k.what(c.s), k.Start.Format(time.DateTime), k.End.Format(time.DateTime), until(c.now, j.Limit).Format(time.DateTime))
	}
}
