package client

import (
	"maps"
	"slices"
	"time"

	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/agent/x11"
	"dev.muster/api"
	"dev.muster/cluster"
)

// jobHere is one attempt of a job on one node: what the servers want, and what this client has
// done about it that the supervisor cannot tell.
type jobHere struct {
	node      cluster.NodeName
	job       *cluster.Job
	sisters   []*cluster.Job // other components of a heterogeneous job: all of them, or the leader
	sides                    // how far it has come here
	staged    bool           // a gang led here, confirmed under the present supervisor
	warned    bool           // --signal was sent
	signalled int            // number of the last signal delivered
	nextStep  int            // number of the next step
	nextCast  int            // and of the next that only puts files on nodes
	lost      int            // of how many nodes without which it goes on it was told
	display   *x11.Display   // of its submitter's X server; nil: none
	progress  *progress      // how far it says that it has come; nil: it says nothing
	memory    memoryHere     // what its processes are limited to
	ear       *ear           // its salloc hears what it is told; nil: none does
}

// newHere is an attempt that has just arrived at a node.
func newHere(node cluster.NodeName, j *cluster.Job) *jobHere {
	return &jobHere{node: node, job: j, sides: sides{launch: arrived, end: untouched, pause: going, gpus: unswept}}
}

// isConfirmed reports whether the servers may know that it is here, by this life of the client or an earlier one.
func (h *jobHere) isConfirmed() bool {
	return h.hasBegun() && (h.launch != launching || h.job.Phase != cluster.Starting)
}

// confirmsAgain reports whether a node is well that gets no jobs since it did not confirm one: it never heard of that,
// or it was stopped meanwhile. An attempt that was heard of is believed once, and then must be confirmed; able says
// that jobs could be started here, old are all its jobs before.
func (n *node) confirmsAgain(unconfirmed, able bool, old map[cluster.JobID]*jobHere) bool {
	switch {
	case !unconfirmed:
		n.mute = false
		return false
	case n.mute:
		return false
	case !slices.ContainsFunc(slices.Collect(maps.Values(old)), (*jobHere).isUnconfirmed):
		return true
	case n.excused || !able:
		n.mute = true
		return false
	}
	n.excused = true
	return true
}

// isUnconfirmed reports whether it waits here to be confirmed.
func (h *jobHere) isUnconfirmed() bool { return h.job.Phase == cluster.Starting && !h.isConfirmed() }

// takesSessions reports whether a job has begun here, its prolog done: its confirmation may still be on its way.
func (h *jobHere) takesSessions() bool {
	switch h.job.Phase {
	case cluster.Running, cluster.Suspended:
		return !h.isOver()
	case cluster.Starting:
		return h.hasBegun() && !h.isOver()
	}
	return false
}

func sortedJobs(jobs map[cluster.JobID]*jobHere) []cluster.JobID {
	return slices.Sorted(maps.Keys(jobs))
}

// part names one step's part on the attempt's node.
func (h *jobHere) part(number int) step.ID {
	return step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Step: number, Node: h.node}
}

// key names the attempt on its node.
func (h *jobHere) key() outbox.Attempt {
	return outbox.Attempt{Job: h.job.ID, Attempt: h.job.Attempt, Node: h.node}
}

// update begins what is reported of an attempt.
func update(h *jobHere, kind cluster.UpdateKind) cluster.Update {
	return cluster.Update{Kind: kind, Job: h.job.ID, Attempt: h.job.Attempt, At: time.Now()}
}

// wanted is what a node should do, as the servers say, with what is known here of each attempt.
func wanted(nw api.NodeWork, old map[cluster.JobID]*jobHere, isOver func(outbox.Attempt) bool,
	begun, named map[outbox.Attempt]bool) map[cluster.JobID]*jobHere {
	fresh := map[cluster.JobID]*jobHere{}
	for _, j := range nw.Jobs {
		key := outbox.Attempt{Job: j.ID, Attempt: j.Attempt, Node: nw.Node}
		named[key] = true
		if isOver(key) && j.Phase != cluster.Ending {
			continue // the servers will know soon
		}
		h := old[j.ID]
		if h == nil || h.job.Attempt != j.Attempt {
			h = newHere(nw.Node, j)
			if begun[key] {
				h.launch = confirmedBefore
			}
		}
		h.job, h.sisters = j, nil
		for _, o := range nw.Sisters {
			if j.Het != nil && o.Het.ID == j.Het.ID && o.ID != j.ID {
				h.sisters = append(h.sisters, o)
			}
		}
		fresh[j.ID] = h
	}
	return fresh
}
