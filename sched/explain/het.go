package explain

import (
	"fmt"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/place"
)

// Texts about heterogeneous jobs: a component may wait for another one, or all of them want the nodes that each
// of them would get.

// explainComponents explains that a component starts with the others.
func (e *Explanation) explainComponents(t *sched.Together, s *cluster.Snapshot, now time.Time, j *cluster.Job) {
	told := len(e.Causes)
	over := t.Overruns()
	for k := range over {
		e.explainLimit(s, now, fmt.Sprintf("heterogeneous job %d", j.Het.ID), &over[k])
	}
	limits := e.Causes[told:]
	var whys []cluster.Reason
	others := map[cluster.Reason][]*cluster.Job{}
	for _, o := range s.Components(j) {
		if o.ID == j.ID {
			continue
		}
		why := o.Wait
		if _, own := s.Ready(o, now); own != cluster.NoReason {
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
		e.addCause(why, "muster why "+idText(list[0]),
			"it starts together with %s of heterogeneous job %d, which %s: %s",
			componentsText(list), j.Het.ID, verb, why)
	}
	if len(over) > 0 {
		return
	}
	if crowd := t.Crowding(); crowd != nil {
		e.explainCrowding(crowd)
	}
}

// explainCrowding explains that there is room for each component alone, and not for all of them at once: now, or even
// if nothing ran.
func (e *Explanation) explainCrowding(crowd *sched.Crowding) {
	room := "there is room for each of its %d components, and not for all at once: they want %d nodes of their own"
	if !crowd.EvenEmpty {
		e.addCause(cluster.WaitResources, "", room, crowd.Components, crowd.Nodes)
		return
	}
	e.addCause(cluster.WaitNodesDown, "", "even if nothing ran "+room+", and %s in service", crowd.Components,
		crowd.Nodes, place.Count(crowd.InService, "node is", "nodes are"))
}
