package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Heterogeneous jobs: all components start at one instant or none does, on nodes of their own, at the leader's place in
// the queue. While one of them cannot start the others hold nothing; the earliest time at which all can is planned
// for the whole, as one planned start.

// maxSwaps bounds the orders in which components are tried.
const maxSwaps = 8

// component is a component of a heterogeneous job, with its shape in each partition that it may start in.
type component struct {
	job           *cluster.Job   // to end before its deadline, if it may be cut
	why           cluster.Reason // if it may not start now whatever is free, or for limits not where it fits
	note          string
	shapes        []*jobShape
	limitedShapes []*jobShape              // in which limits keep it from starting; nil if others do
	preemptible   []map[cluster.JobID]bool // by shape, those that it may make leave
	fits          int                      // index of the shape that it fits with
	alloc         *cluster.Alloc
	limit         time.Duration // with which it fits
	plan          *place.PlannedStart
}

// decideHet looks at a heterogeneous job, once for all its components: when its leader's turn comes.
func (c *cycle) decideHet(lead *cluster.Job) {
	c.hasHet = true
	if lead.Follows() {
		return
	}
	comps, ok := c.components(lead)
	if comps == nil {
		return
	}
	if ok && c.fitComponents(comps, c.fitComponent) {
		c.startHet(comps)
		return
	}
	if slices.ContainsFunc(comps, func(comp *component) bool { return comp.why != cluster.NoReason }) {
		c.recordComponentWaits(comps)
		return
	}
	if c.preemptForHet(lead, comps) {
		return
	}
	c.timeline(blockedJob{job: lead, at: c.current.at, components: comps})
}

// components are those of a job whose turn has come, none while some are not back yet; false if one of them may not
// start now whatever is free.
func (c *cycle) components(lead *cluster.Job) (comps []*component, ok bool) {
	all := c.s.Components(lead)
	notBack := func(o *cluster.Job) bool { return o.Phase != cluster.Pending }
	if len(all) != lead.Het.Size || slices.ContainsFunc(all, notBack) {
		return nil, false
	}
	meter := c.meter.Fork()
	used := maps.Clone(c.licenses)
	defer func() { c.licenses = used }()
	ok = true
	for _, o := range all {
		comp := &component{job: c.beforeDeadline(o)}
		comp.why, comp.note = c.prepareComponent(comp, meter)
		comps = append(comps, comp)
		ok = ok && comp.why == cluster.NoReason
	}
	return comps, ok
}

// recordComponentWaits notes why components may not start whatever is free; the others have no reason of their own.
// If it is limits alone, they may hold back others in the partitions of those that they keep, as those of plain jobs
// do.
func (c *cycle) recordComponentWaits(comps []*component) {
	otherReason := func(comp *component) bool { return comp.why != cluster.NoReason && comp.limitedShapes == nil }
	if c.s.Config().LimitStop && !slices.ContainsFunc(comps, otherReason) {
		for _, comp := range comps {
			c.stopPartitions(comp.limitedShapes)
		}
	}
	for _, comp := range comps {
		if comp.job.Held == cluster.NotHeld {
			c.recordWait(comp.job, comp.why, comp.note, nil)
		}
	}
}

// prepareComponent finds a component's shapes, or why it has none beside those before it, which the meter has counted.
func (c *cycle) prepareComponent(comp *component, meter *cluster.Meter) (cluster.Reason, string) {
	if _, why := c.readyTasks(comp.job); why != cluster.NoReason {
		return why, ""
	}
	shapes, why, note := c.feasible(comp.job, nil)
	if len(shapes) == 0 {
		return why, note
	}
	if comp.job.Spec.Licenses != "" {
		if !c.licensesFree(comp.job) {
			return cluster.WaitLicenses, ""
		}
		c.licenses = maps.Clone(c.licenses)
		c.takeLicenses(comp.job)
	}
	for _, shape := range shapes {
		why = meter.Blocked(comp.job, shape.part.Name, nil)
		if why == cluster.NoReason {
			comp.shapes = append(comp.shapes, shape)
		}
	}
	if len(comp.shapes) == 0 {
		comp.limitedShapes = shapes
		return why, ""
	}
	one := comp.shapes[0].part
	elsewhere := func(shape *jobShape) bool { return shape.part != one }
	if !slices.ContainsFunc(comp.shapes, elsewhere) { // else nobody knows whose limits count
		meter.Start(comp.job, one.Name, nil) // the next ones run beside it
	}
	return cluster.NoReason, ""
}

// componentFinder finds nodes for what a component asks by its shape k, away from some that are taken, and the time
// limit for it.
type componentFinder func(comp *component, k int, taken place.NodeSet) (*cluster.Job, *cluster.Alloc)

// fitComponents finds allocations for all components. One that finds nothing beside those before it is tried first.
func (c *cycle) fitComponents(comps []*component, find componentFinder) bool {
	order := byPriority(comps)
	for range maxSwaps {
		k := c.fitInTurn(order, find)
		if k < 0 {
			return true
		}
		if k == 0 {
			return false
		}
		order = slices.Concat(order[k:k+1], order[:k], order[k+1:])
	}
	return false
}

// byPriority are the components in the order in which they choose their nodes: by their own priorities.
func byPriority(comps []*component) []*component {
	return slices.SortedStableFunc(slices.Values(comps),
		func(a, b *component) int { return cmp.Compare(b.job.Priority, a.job.Priority) })
}

// fitInTurn gives each component nodes that none before it has; the number of the first that finds none, -1 if all do.
func (c *cycle) fitInTurn(order []*component, find componentFinder) int {
	var taken place.NodeSet
	meter := c.meter.Fork()
	for k, comp := range order {
		comp.alloc = nil
		if !comp.findNodes(taken, meter, find) {
			return k
		}
		taken = taken.Union(c.free.NodesOf(comp.alloc))
	}
	return -1
}

// findNodes finds nodes for a component, where limits let it have them beside those before it; else why is the limit,
// if it is limits alone that do not.
func (comp *component) findNodes(taken place.NodeSet, meter *cluster.Meter, find componentFinder) bool {
	comp.why = cluster.NoReason
	comp.limitedShapes = comp.shapes
	full := false
	for k, shape := range comp.shapes {
		j, a := find(comp, k, taken)
		full = full || a == nil
		if a == nil {
			continue
		}
		comp.why = meter.Blocked(j, shape.part.Name, a)
		if comp.why != cluster.NoReason {
			continue
		}
		if shape.reservation != nil {
			a.Reservation = shape.reservation.Name
		}
		comp.fits = k
		comp.alloc = a
		comp.limit = j.Limit
		comp.limitedShapes = nil
		meter.Start(j, a.Partition, a)
		return true
	}
	if full {
		comp.why = cluster.NoReason
		comp.limitedShapes = nil
	}
	return false
}

// fitComponent finds what is free now and delays no planned start, with a shorter time limit if that helps.
func (c *cycle) fitComponent(comp *component, k int, taken place.NodeSet) (*cluster.Job, *cluster.Alloc) {
	shape := comp.shapes[k]
	fit := func(j *cluster.Job) *cluster.Alloc {
		mask, over := c.plannedAcross(j)
		return c.findNow(shape, j, mask, c.exclusionFor(shape.reservation, j, c.now, over).WithNodes(taken))
	}
	j := c.withinPartition(shape.part, comp.job)
	if a := fit(j); a != nil || j.Spec.LimitMin == 0 {
		return j, a
	}
	return c.fitShorter(j, fit)
}

// startHet starts all components by one decision.
func (c *cycle) startHet(comps []*component) {
	at := len(c.decisions)
	wantsLicenses := func(comp *component) bool { return comp.job.Spec.Licenses != "" }
	if c.licenses == nil && slices.ContainsFunc(comps, wantsLicenses) {
		c.licenses = c.s.LicensesUsed()
	}
	for _, comp := range comps {
		short := *comp.job
		short.Limit = comp.limit
		c.startJob(&short, cluster.TaskAny, comp.alloc)
		if full, _ := c.s.Job(comp.job.ID); full.Limit != comp.limit {
			c.decisions[len(c.decisions)-1].Limit = comp.limit
		}
	}
	c.mergeDecisions(at)
}

// mergeDecisions makes one decision of those from an index on, which are for components.
func (c *cycle) mergeDecisions(at int) {
	c.decisions[at].With = slices.Clone(c.decisions[at+1:])
	c.decisions = c.decisions[:at+1]
}

// planBlockedHet records why a heterogeneous job waits, and when all of it is planned to start.
func (c *cycle) planBlockedHet(b blockedJob) {
	lead := b.job
	first := c.responsive || c.earnsProtection(lead, 0)
	for _, comp := range b.components {
		first = first && slices.ContainsFunc(comp.shapes,
			func(shape *jobShape) bool { return c.firstBlocked[shape.part] == nil })
	}
	why := cluster.WaitPriority
	var whole *place.PlannedStart
	if first {
		why, whole = cluster.WaitResources, c.planHet(lead, b.components)
	}
	for _, comp := range b.components {
		note := ""
		own := why
		if len(c.reserved) > 0 {
			if _, alone := c.fitComponent(comp, 0, nil); alone == nil {
				note = c.reservedNote(comp.shapes[0], comp.job)
			}
			if note != "" {
				own = cluster.WaitNodeNotAvail
			}
		}
		var planned *place.PlannedStart
		if whole != nil {
			planned = comp.plan
		}
		c.recordWait(comp.job, own, note, planned)
	}
}

// planHet plans a start of all components, and keeps their nodes for them.
func (c *cycle) planHet(lead *cluster.Job, comps []*component) *place.PlannedStart {
	for _, comp := range comps {
		for _, shape := range comp.shapes {
			if c.firstBlocked[shape.part] == nil {
				c.firstBlocked[shape.part] = lead
			}
		}
	}
	reservesNothing := func(comp *component) bool {
		return !c.meter.Reserves(comp.job, comp.shapes[0].part.Name)
	}
	if len(c.planned) >= maxPlannedStarts || slices.ContainsFunc(comps, reservesNothing) {
		return nil
	}
	kept := c.plannedNodes()
	all := c.planTogether(lead, comps, c.releaseTimeline(),
		func(_ *place.FreeSet, shape *jobShape, j *cluster.Job, at time.Time) place.Exclusion {
			return c.exclusionFrom(shape.reservation, j, at).WithNodes(kept)
		})
	if all != nil {
		c.planned = append(c.planned, all)
	}
	return all
}

// componentExclusion is what a job of a shape must keep off at a time, with the nodes as they will be.
type componentExclusion func(then *place.FreeSet, shape *jobShape, j *cluster.Job, at time.Time) place.Exclusion

// maxPlanRounds bounds how often the components' plans are brought together.
const maxPlanRounds = 16

// planTogether finds when all components will fit if every job runs to its limit: the latest of their times, as one
// planned start; nil if none is found.
func (c *cycle) planTogether(
	lead *cluster.Job, comps []*component, ends []place.Release, avoid componentExclusion,
) *place.PlannedStart {
	var at time.Time
	for range maxPlanRounds {
		latest, ok := c.planInTurn(comps, ends, avoid)
		if !ok {
			return nil
		}
		if latest.Equal(at) {
			break
		}
		at, ends = latest, slices.Clone(ends)
		for i := range ends { // whatever is free before is free then
			ends[i].At = laterOf(ends[i].At, at)
		}
	}
	if slices.ContainsFunc(comps, func(comp *component) bool { return !comp.plan.At.Equal(at) }) {
		return nil // they do not come together
	}
	return combinedStart(lead, comps, at)
}

// combinedStart is the start of all components as one.
func combinedStart(lead *cluster.Job, comps []*component, at time.Time) *place.PlannedStart {
	list := make([]place.ComponentStart, len(comps))
	for k, comp := range comps {
		list[k] = place.ComponentStart{Job: comp.job, Start: comp.plan}
	}
	return place.CombineStarts(lead.ID, at, list)
}

// planInTurn plans each component away from the nodes of those before it, and tells the latest time.
func (c *cycle) planInTurn(
	comps []*component, ends []place.Release, avoid componentExclusion,
) (latest time.Time, ok bool) {
	var taken place.NodeSet
	for _, comp := range byPriority(comps) {
		comp.plan = nil
		for _, shape := range comp.shapes {
			ps := place.FindStart(c.freeWithOverlap(shape.demand.JobsPerCPU), ends, shape.demand,
				func(then *place.FreeSet, at time.Time) place.Exclusion {
					return avoid(then, shape, comp.job, at).WithNodes(taken)
				}).PlannedStart
			if ps != nil && (comp.plan == nil || ps.At.Before(comp.plan.At)) {
				comp.plan = ps
			}
		}
		if comp.plan == nil {
			return latest, false
		}
		latest, taken = laterOf(latest, comp.plan.At), taken.Union(comp.plan.Nodes)
	}
	return latest, true
}

// leaderOf is the number of a job, of a heterogeneous one that of its leader.
func leaderOf(j *cluster.Job) cluster.JobID {
	if j.Het == nil {
		return j.ID
	}
	return j.Het.ID
}

// hetMembers lists the components of a job's heterogeneous job, or the job alone.
func (c *cycle) hetMembers(j *cluster.Job) []*cluster.Job {
	if j.Het == nil {
		return []*cluster.Job{j}
	}
	return c.s.Components(j)
}

// partitionsOf lists those that a job, or any component of a heterogeneous one, may start in.
func (c *cycle) partitionsOf(j *cluster.Job) (out []string) {
	if j.Het == nil {
		return j.Spec.Partitions
	}
	for _, o := range c.s.Components(j) {
		out = append(out, o.Spec.Partitions...)
	}
	return out
}

// shareOf is the part of the cluster that a job asks for, or a heterogeneous one as a whole.
func (c *cycle) shareOf(j *cluster.Job) (sum float64) {
	if j.Het == nil {
		return c.scaleOfCluster().Share(j)
	}
	for _, o := range c.s.Components(j) {
		sum += c.scaleOfCluster().Share(o)
	}
	return sum
}

// recordHetStart is recordStart for a heterogeneous job: all components are told with the leader.
func (f *forecast) recordHetStart(lead *cluster.Job, must bool, look func()) {
	if lead.Follows() {
		return
	}
	out := len(f.decisions)
	planned := len(f.planned)
	blocked := len(f.blocked)
	look()
	if len(f.blocked) > blocked {
		return // it is looked at again
	}
	for _, o := range f.s.Components(lead) {
		f.starts[o.ID] = Start{Why: o.Wait, Note: o.WaitNote}
	}
	for _, d := range f.decisions[out:] {
		if o, ok := f.s.Job(d.Job); !ok || o.Het == nil || o.Het.ID != lead.ID {
			continue
		}
		for _, one := range append([]cluster.Decision{d}, d.With...) {
			f.starts[one.Job] = Start{Why: one.Wait, Note: one.Note}
			if one.Start != nil {
				f.starts[one.Job] = Start{At: f.now, Alloc: one.Start}
			}
		}
		if d.Start != nil {
			return
		}
	}
	var ps *place.PlannedStart
	if len(f.planned) > planned {
		ps = f.planned[len(f.planned)-1]
	} else if must || f.extraPlanned < maxForecast {
		ps = f.planLaterHet(lead)
		f.extraPlanned++
	}
	if ps == nil {
		return
	}
	at := laterOf(ps.At, f.now)
	longest := time.Duration(0)
	for _, comp := range ps.Components {
		st := f.starts[comp.Job.ID]
		st.At = at
		st.Alloc = comp.Start.Alloc
		longest = max(longest, comp.Job.Limit)
		f.starts[comp.Job.ID] = st
	}
	f.takeSpan(&plannedSpan{from: at, to: EndOf(at, longest), heededFrom: BeginsAt(lead)}, ps.Components...)
}

// planLaterHet is planLater for a heterogeneous job.
func (f *forecast) planLaterHet(lead *cluster.Job) *place.PlannedStart {
	from := f.now
	var comps []*component
	for _, o := range f.s.Components(lead) {
		switch f.starts[o.ID].Why {
		case cluster.NoReason, cluster.WaitPriority, cluster.WaitResources:
		case cluster.WaitNodeNotAvail, cluster.WaitReservation:
		case cluster.WaitBegin:
			from = laterOf(from, BeginsAt(o))
		default:
			return nil
		}
		comp := &component{job: o}
		shapes, _, _ := f.feasible(o, nil)
		for _, shape := range shapes {
			if f.meter.Blocked(o, shape.part.Name, nil) == cluster.NoReason {
				comp.shapes = append(comp.shapes, shape)
			}
		}
		comps = append(comps, comp)
	}
	return f.planTogether(lead, comps, f.releaseMoments(from),
		func(fs *place.FreeSet, shape *jobShape, j *cluster.Job, at time.Time) place.Exclusion {
			if at.Before(from) {
				return place.Exclusion{Nodes: f.free.AllNodes()}
			}
			return f.exclusionWithTaken(fs, f.exclusionFor(shape.reservation, j, at, EndOf(at, j.Limit)),
				at, EndOf(at, j.Limit))
		})
}
