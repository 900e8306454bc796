package sched

import (
	"fmt"
	"slices"

	"dev.muster/cluster"
)

// What is told of heterogeneous jobs: what keeps a component may be another one, or that all of them want what each would get.

// idText is a job's number as users write it: 17_4 for a task of an array, and 17+1 for one component, since that of the leader
// stands for all of them.
func idText(j *cluster.Job) string {
	switch {
	case j.Het != nil:
		return fmt.Sprintf("%d+%d", j.Het.ID, j.Het.Offset)
	case j.Task != cluster.TaskAny:
		return fmt.Sprintf("%d_%d", j.ArrayID, j.Task)
	}
	return fmt.Sprint(j.ID)
}

// wholeText is idText, but for all of a heterogeneous job.
func wholeText(j *cluster.Job) string {
	if j.Het != nil {
		return fmt.Sprint(j.Het.ID)
	}
	return idText(j)
}

// componentsText tells which components are meant: "component 1", "components 0-2,4"; nothing of a plain job.
func componentsText(jobs []*cluster.Job) string {
	var set cluster.IDSet
	for _, j := range jobs {
		if j.Het == nil {
			return ""
		}
		set = set.Union(cluster.NewIDSet(j.Het.Offset))
	}
	if len(jobs) == 1 {
		return "component " + set.String()
	}
	return "components " + set.String()
}

// together explains that a component starts with the others.
func (e *Explanation) together(c *cycle, j *cluster.Job) {
	parts, ok := c.components(c.whole(j)[0])
	told := len(e.Causes)
	joint := parts != nil && e.jointly(c, parts)
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
		e.add(why, "muster why "+idText(list[0]), "it starts together with %s of heterogeneous job %d, which %s: %s", componentsText(list), j.Het.ID, verb, why)
	}
	if ok && !joint {
		e.crowded(c, parts)
	}
}

// crowded explains that there is room for each component alone, and not for all of them at once: now, or even if nothing ran.
func (e *Explanation) crowded(c *cycle, parts []*part) {
	nodes := 0
	for _, p := range parts {
		nodes += p.qs[0].want.minNodes
	}
	room := "there is room for each of its %d components, and not for all at once: they want %d nodes of their own"
	empty := func(p *part, k int, taken nodeSet) (*cluster.Job, *cluster.Alloc) {
		return p.job, p.qs[k].want.place(c.idle(), off{nodes: taken})
	}
	switch {
	case !c.fitSet(parts, empty):
		if !slices.ContainsFunc(parts, func(p *part) bool { return p.why != cluster.NoReason }) { // else limits are told
			e.add(cluster.WaitNodesDown, "", "even if nothing ran "+room+", and %s in service", len(parts), nodes, count(len(c.idle().spaces), "node is", "nodes are"))
		}
	case !c.fitSet(parts, c.fitNow) && !slices.ContainsFunc(parts, func(p *part) bool { return !c.alone(p.job) }):
		e.add(cluster.WaitResources, "", room, len(parts), nodes)
	}
}

// alone reports whether a component could start now if it were the only one.
func (c *cycle) alone(j *cluster.Job) bool {
	p := &part{job: c.beforeDeadline(j)}
	defer func(used map[string]int) { c.used = used }(c.used)
	why, _ := c.barred(p, c.limits.Fork())
	return why == cluster.NoReason && p.fits(nil, c.limits.Fork(), c.fitNow)
}

// detained are the components that may run into a reservation which keeps them from nodes that are free; a plain job is
// its own only one.
func (c *cycle) detained(j *cluster.Job, k *keptNodes) []*cluster.Job {
	return slices.DeleteFunc(c.whole(j), func(o *cluster.Job) bool {
		if !k.Keeps(c.now, until(c.now, o.Limit)) || k.Lets(o.Spec) {
			return true
		}
		qs, _, _ := c.questions(o, nil)
		return !slices.ContainsFunc(qs, func(q *question) bool { return k != q.own && c.reservedNote(q, o) != "" })
	})
}
