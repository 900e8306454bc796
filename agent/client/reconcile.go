package client

import (
	"cmp"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// jobHere is one attempt of a job on one node: what the servers want, and what this client has
// done about it that the supervisor can not tell.
type jobHere struct {
	node      cluster.NodeName
	job       *cluster.Job
	sisters   []*cluster.Job // other components of a heterogeneous job: all of them, or the leader
	confirmed bool
	before    bool      // an earlier life of this client confirmed it
	staged    bool      // a gang led here, confirmed under the present supervisor
	launching bool      // the batch script is being fetched and started
	termed    bool      // TERM was sent
	killed    time.Time // KILL was sent last
	killing   time.Time // and first
	stuck     bool      // processes have outlived that for too long, and this is known
	signalled int       // number of the last signal delivered
	nextStep  int       // number of the next step
	nextCast  int       // and of the next that only puts files on nodes
	warned    bool      // --signal was sent
	stopping  time.Time // TSTP was sent: it will be frozen
	frozen    bool
	told      bool // the batch script's end was reported
	done      bool // clean, and said so
	sweeping  bool // its GPUs are being looked at
	swept     bool // they are free, or it is known why not
}

// kill notes that everything is killed.
func (h *jobHere) kill(now time.Time) {
	h.killed = now
	if h.killing.IsZero() {
		h.killing = now
	}
}

// actionKind is what to do next for a job on a node.
type actionKind uint8

const (
	confirm    actionKind = iota // tell the servers that the attempt is known here
	startBatch                   // run the script
	term                         // TERM, then CONT, to everything
	kill                         // KILL everything
	batchOver                    // the batch script ended: report it
	stop                         // TSTP to the tasks, ahead of freeze
	freeze                       // stop everything
	thaw                         // continue, and say so
	deliver                      // signals that users asked for
	warn                         // the signal ahead of the time limit
	lost                         // the attempt should run here but nothing is known of it
	finished                     // nothing is left: say so
	stray                        // a step nobody wants: kill and forget it
	startProlog
	prologFailed
	startEpilog
	stuck      // processes outlive KILL: tell of them
	killScript // the prolog or epilog takes too long
	nothing    // wait
)

// action is one thing to do; Run does them in order.
type action struct {
	kind actionKind
	job  *jobHere
	step step.ID // for stray
}

// reconcile compares what one node should do with what its steps are and says what to do, and
// when to look again if nothing happens before. Doing an action twice does no harm.
func reconcile(jobs map[cluster.JobID]*jobHere, have map[step.ID]*step.Status,
	cfg *cluster.Config, now time.Time) (out []action, again time.Time) {
	sooner := func(t time.Time) {
		if !t.IsZero() && (again.IsZero() || t.Before(again)) {
			again = t
		}
	}
	alive := map[cluster.JobID]int{} // steps with processes
	batch, scripts := map[cluster.JobID]*step.Status{}, map[step.ID]*step.Status{}
	for id, st := range have {
		h := jobs[id.Job]
		if h == nil || h.job.Attempt != id.Attempt {
			out = append(out, action{kind: stray, step: id})
			continue
		}
		if ours(id) {
			scripts[id] = st
			continue
		}
		if st.State != step.Ended {
			alive[id.Job]++
		}
		if id.Step == cluster.BatchStep {
			batch[id.Job] = st
		}
	}
	for _, id := range sortedJobs(jobs) {
		h := jobs[id]
		script := func(which int) *step.Status {
			return scripts[step.ID{Job: id, Attempt: h.job.Attempt, Step: which, Node: h.node}]
		}
		switch h.job.Phase {
		case cluster.Starting, cluster.Running, cluster.Suspended:
			next, ready := prolog(h, script(prologStep), cfg, now, sooner)
			if ready {
				out = append(out, runActions(h, batch[id], cfg, now, sooner)...)
			} else if !h.told && !h.done {
				out = append(out, action{kind: next, job: h})
			}
		case cluster.Ending:
			next, ready := nothing, alive[id] > 0 || h.done || h.launching
			if before := script(prologStep); !ready && before != nil && before.State != step.Ended {
				next = killScript // the job is over before it began
			} else if !ready {
				next, ready = epilog(h, script(epilogStep), cfg, now, sooner)
			}
			if ready {
				out = append(out, endActions(h, alive[id], cfg, now, sooner)...)
			} else {
				out = append(out, action{kind: next, job: h})
			}
		}
	}
	return out, again
}

func runActions(h *jobHere, batch *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (out []action) {
	j := h.job
	add := func(k actionKind) { out = append(out, action{kind: k, job: h}) }
	leads := j.Alloc.Shares[0].Node == h.node
	isBatch := j.RunsScript() && leads
	// A gang's script waits until all nodes have confirmed; a job of one node is its own gang.
	single := len(j.Alloc.Shares) == 1 && j.Het == nil
	mayStart := j.Phase == cluster.Running || single
	if h.told || h.done {
		return nil // the servers will say that the job ends
	}
	switch {
	case batch != nil && batch.State == step.Ended:
		add(batchOver)
		return out
	case isBatch && batch == nil && !h.launching && mayStart:
		if single && (j.Phase != cluster.Starting || h.confirmed || h.before) || !single && !h.confirmed && !h.staged {
			add(lost) // it was confirmed and is gone: this machine was restarted
			return out
		}
		add(startBatch)
	case j.Phase == cluster.Starting && !h.confirmed && !h.launching && (!isBatch || batch != nil || !mayStart):
		add(confirm)
	}
	if k, at := suspension(h, cfg, now); k != nothing {
		add(k)
	} else {
		sooner(at)
	}
	if n := len(j.Signals); n > 0 && j.Signals[n-1].Num > h.signalled {
		add(deliver)
	}
	if at := warnAt(j, cfg); !at.IsZero() && !h.warned && j.Phase == cluster.Running {
		if !at.After(now) {
			add(warn)
		} else {
			sooner(at)
		}
	}
	return out
}

// suspension is what to do for a job to be suspended as it should be, or when. Its tasks are told a while before
// they are stopped.
func suspension(h *jobHere, cfg *cluster.Config, now time.Time) (k actionKind, at time.Time) {
	suspended := h.job.Phase == cluster.Suspended
	switch {
	case suspended && h.frozen || !suspended && !h.frozen && h.stopping.IsZero():
		return nothing, at
	case !suspended:
		return thaw, at
	case h.stopping.IsZero():
		return stop, at
	}
	if at = h.stopping.Add(cfg.Preempt.StopsAfter()); at.After(now) {
		return nothing, at
	}
	return freeze, at
}

// warnAt is when --signal is due, zero if never.
func warnAt(j *cluster.Job, cfg *cluster.Config) time.Time {
	end := j.EndLimit(cfg)
	if j.Spec.Signal.Num == 0 || end.IsZero() {
		return time.Time{}
	}
	return end.Add(-j.Spec.Signal.Before)
}

func endActions(h *jobHere, alive int, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (out []action) {
	if h.done || h.launching {
		return nil
	}
	if alive == 0 {
		return []action{{kind: finished, job: h}}
	}
	gentle := h.job.EndingWhy.Gentle() // also where the script has ended by itself, and left steps behind
	deadline := h.job.EndingAt.Add(cfg.KillWait)
	if gentle && !h.termed {
		sooner(deadline)
		return []action{{kind: term, job: h}}
	}
	if gentle && now.Before(deadline) {
		sooner(deadline)
		return nil
	}
	if at := h.killing.Add(cmp.Or(cfg.Unkillable.After, unkillable)); !h.killing.IsZero() && !h.stuck {
		if !now.Before(at) {
			sooner(h.killed.Add(killAgain))
			return []action{{kind: stuck, job: h}}
		}
		sooner(at)
	}
	if now.Sub(h.killed) >= killAgain {
		sooner(now.Add(killAgain))
		return []action{{kind: kill, job: h}}
	}
	sooner(h.killed.Add(killAgain))
	return nil
}

// unkillable is how long processes may outlive KILL before it is told, where nothing else is configured, as in Slurm.
const unkillable = 60 * time.Second

// killAgain is how long processes may take to vanish before they are killed once more.
const killAgain = 5 * time.Second
