package sched

import (
	"slices"

	"dev.muster/cluster"
)

// What is told of heterogeneous jobs: what keeps a component may be another one, or that all of them want what each
// would get.

// explainComponents explains that a component starts with the others.
func (e *Explanation) explainComponents(c *cycle, j *cluster.Job) {
	comps, ok := c.components(c.hetMembers(j)[0])
	told := len(e.Causes)
	joint := comps != nil && e.explainJointLimits(c, comps)
	limits := e.Causes[told:]
	var whys []cluster.Reason
	others := map[cluster.Reason][]*cluster.Job{}
	for _, o := range c.s.Components(j) {
		if o.ID == j.ID {
			continue
		}
		why := o.Wait
		if _, own := c.s.Ready(o, c.now); own != cluster.NoReason {
			why = own
		}
		if others[why] == nil && why != cluster.NoReason {
			whys = append(whys, why)
		}
		others[why] = append(others[why], o)
	}
	for _, why := range whys {
		if why == cluster.WaitPriority || slices.ContainsFunc(limits, func(x Cause) bool { return x.Reason == why }) {
			continue // those ahead are told anyway
		}
		list := others[why]
		verb := "waits"
		if len(list) > 1 {
			verb = "wait"
		}
		e.addCause(why, "muster why "+idText(list[0]), "it starts together with %s of heterogeneous job %d, which %s: %s",
			componentsText(list), j.Het.ID, verb, why)
	}
	if ok && !joint {
		e.explainCrowding(c, comps)
	}
}

// explainCrowding explains that there is room for each component alone, and not for all of them at once: now, or even
// if nothing ran.
func (e *Explanation) explainCrowding(c *cycle, comps []*component) {
	nodes := 0
	for _, comp := range comps {
		nodes += comp.shapes[0].demand.minNodes
	}
	room := "there is room for each of its %d components, and not for all at once: they want %d nodes of their own"
	empty := func(comp *component, k int, taken nodeSet) (*cluster.Job, *cluster.Alloc) {
		return comp.job, comp.shapes[k].demand.allocateIn(c.emptied(), exclusion{nodes: taken})
	}
	switch {
	case !c.fitComponents(comps, empty):
		if !slices.ContainsFunc(comps, func(comp *component) bool { return comp.why != cluster.NoReason }) { // else limits are told
			e.addCause(cluster.WaitNodesDown, "", "even if nothing ran "+room+", and %s in service", len(comps), nodes,
				count(len(c.emptied().nodes), "node is", "nodes are"))
		}
	case !c.fitComponents(comps, c.fitComponent) &&
		!slices.ContainsFunc(comps, func(comp *component) bool { return !c.startsAlone(comp.job) }):
		e.addCause(cluster.WaitResources, "", room, len(comps), nodes)
	}
}

// startsAlone reports whether a component could start now if it were the only one.
func (c *cycle) startsAlone(j *cluster.Job) bool {
	comp := &component{job: c.beforeDeadline(j)}
	defer func(used map[string]int) { c.licenses = used }(c.licenses)
	why, _ := c.prepareComponent(comp, c.meter.Fork())
	return why == cluster.NoReason && comp.findNodes(nil, c.meter.Fork(), c.fitComponent)
}
