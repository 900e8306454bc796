package client

import (
	"time"

	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Simulated is one node's part of the client without sockets, files and processes: the same rules of
// what to do next. The simulator drives it.
type Simulated struct {
	Node  cluster.NodeName
	index uint64
	jobs  map[cluster.JobID]*jobHere
	over  map[outbox.Attempt]uint64
	begun map[outbox.Attempt]bool
}

// NewSimulated makes the simulated node of a client that begins its life with reports still on their way.
func NewSimulated(n cluster.NodeName, pending []cluster.Report) *Simulated {
	d := &Simulated{Node: n, jobs: map[cluster.JobID]*jobHere{}, over: map[outbox.Attempt]uint64{}}
	d.begun = outbox.ConfirmedBy(pending)
	for _, r := range pending {
		d.Reported(r)
	}
	return d
}

// Index is that of the work last taken; 0 if none was.
func (d *Simulated) Index() uint64 { return d.index }

// Take replaces what the node should do; older work than known is ignored.
func (d *Simulated) Take(w api.NodeWork) {
	if w.Index > d.index {
		d.index, d.jobs = w.Index, wanted(w, d.jobs, d.isOver, d.begun, map[outbox.Attempt]bool{})
	}
}

func (d *Simulated) isOver(key outbox.Attempt) bool {
	_, over := d.over[key]
	return over
}

// Reported notes a report that is on its way: what it ends is not begun again.
func (d *Simulated) Reported(r cluster.Report) {
	for _, u := range r.Updates {
		if u.Kind.Final() {
			d.over[outbox.Attempt{Job: u.Job, Attempt: u.Attempt, Node: r.Node}] = 0
		}
	}
}

// Todo is what to do next for a job on a node, as the driver must do it.
type Todo string

// The things to do. Those that only report carry what to report.
const (
	Launch Todo = "launch" // start the script, then report NodeReady
	Term   Todo = "term"
	Kill   Todo = "kill"
	Stray  Todo = "stray" // kill and forget a step nobody wants
	Tell   Todo = "tell"  // report Updates
)

// Action is one thing to do.
type Action struct {
	Do      Todo
	Job     *cluster.Job
	Step    step.ID
	Updates []cluster.Update
}

// Reconcile says what to do next, given what runs, and when to look again if nothing happens.
// All that it reports counts as done.
func (d *Simulated) Reconcile(have map[step.ID]*step.Status, cfg *cluster.Config, now time.Time) ([]Action, time.Time) {
	var out []Action
	todo, again := reconcile(d.jobs, have, cfg, now)
	for _, a := range todo {
		h := a.job
		tell := func(kinds ...cluster.UpdateKind) {
			act := Action{Do: Tell, Job: h.job}
			for _, k := range kinds {
				act.Updates = append(act.Updates, cluster.Update{
					Kind: k, Job: h.job.ID, Attempt: h.job.Attempt, At: now,
				})
			}
			out = append(out, act)
		}
		switch a.kind {
		case startBatch:
			h.launch.to(confirmed)
			out = append(out, Action{Do: Launch, Job: h.job})
		case confirm:
			h.launch.to(confirmed)
			tell(cluster.NodeReady)
		case batchOver:
			h.launch.to(reported)
			if len(h.job.Alloc.Shares) > 1 {
				tell(cluster.BatchOver)
				continue
			}
			h.launch.to(clean)
			tell(cluster.BatchOver, cluster.NodeDone)
		case finished:
			h.launch.to(clean)
			tell(cluster.NodeDone)
		case lost:
			h.launch.to(clean)
			tell(cluster.JobLost)
		case term:
			h.end.to(termed)
			out = append(out, Action{Do: Term, Job: h.job})
		case tellStuck:
			h.end.to(unkillable) // what follows is about the machine
		case kill:
			h.kill(now)
			out = append(out, Action{Do: Kill, Job: h.job})
		case stray:
			out = append(out, Action{Do: Stray, Step: a.step})
		}
	}
	return out, again
}
