package client

import (
	"cmp"
	"slices"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/x11"
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
	told      bool         // the batch script's end was reported
	done      bool         // clean, and said so
	sweeping  bool         // its GPUs are being looked at
	swept     bool         // they are free, or it is known why not
	display   *x11.Display // of its submitter's X server; nil: none
	ear       *ear         // its salloc hears what it is told; nil: none does
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
	startFetch
	fetchFailed
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
	r := comparison{cfg: cfg, now: now, again: func(t time.Time) { again = sooner(again, t) }}
	out = r.sort(jobs, have)
	for _, id := range sortedJobs(jobs) {
		h := jobs[id]
		switch h.job.Phase {
		case cluster.Starting, cluster.Running, cluster.Suspended:
			out = append(out, r.live(h)...)
		case cluster.Ending:
			out = append(out, r.ending(h)...)
		}
	}
	return out, again
}

// comparison is what reconcile has found of one node's steps.
type comparison struct {
	cfg   *cluster.Config
	now   time.Time
	again func(time.Time) // has a time looked at again; zero: none

	alive   map[cluster.JobID]int          // steps with processes
	batch   map[cluster.JobID]*step.Status // the jobs' scripts
	scripts map[step.ID]*step.Status       // the node's own
}

// sort puts the steps where they belong; those of no job are strays.
func (r *comparison) sort(jobs map[cluster.JobID]*jobHere, have map[step.ID]*step.Status) (out []action) {
	r.alive = map[cluster.JobID]int{}
	r.batch = map[cluster.JobID]*step.Status{}
	r.scripts = map[step.ID]*step.Status{}
	for id, st := range have {
		h := jobs[id.Job]
		if h == nil || h.job.Attempt != id.Attempt {
			out = append(out, action{kind: stray, step: id})
			continue
		}
		if ours(id) {
			r.scripts[id] = st
			continue
		}
		if st.State != step.Ended {
			r.alive[id.Job]++
		}
		if id.Step == cluster.BatchStep {
			r.batch[id.Job] = st
		}
	}
	return out
}

// script is one of the node's own scripts for a job; nil: it has not begun.
func (r *comparison) script(h *jobHere, which int) *step.Status {
	return r.scripts[step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Step: which, Node: h.node}]
}

// live is what a job that is to run needs.
func (r *comparison) live(h *jobHere) []action {
	next, ready := prolog(h, r.script(h, prologStep), r.cfg, r.now, r.again)
	next, ready = prefetch(h, r.script(h, fetchStep), next, ready)
	switch {
	case ready:
		return runActions(h, r.batch[h.job.ID], r.cfg, r.now, r.again)
	case !h.told && !h.done:
		return []action{{kind: next, job: h}}
	}
	return nil
}

// ending is what a job that is to end needs.
func (r *comparison) ending(h *jobHere) []action {
	alive := r.alive[h.job.ID]
	next, ready := nothing, alive > 0 || h.done || h.launching
	switch {
	case ready:
	case unfinished(r.script(h, prologStep), r.script(h, fetchStep)):
		next = killScript // the job is over before it began
	default:
		next, ready = epilog(h, r.script(h, epilogStep), r.cfg, r.now, r.again)
	}
	if !ready {
		return []action{{kind: next, job: h}}
	}
	return endActions(h, alive, r.cfg, r.now, r.again)
}

// unfinished reports whether a script of the node's own has begun and has not ended.
func unfinished(own ...*step.Status) bool {
	return slices.ContainsFunc(own, func(st *step.Status) bool { return st != nil && st.State != step.Ended })
}

func runActions(h *jobHere, batch *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (out []action) {
	if h.told || h.done {
		return nil // the servers will say that the job ends
	}
	add := func(k actionKind) { out = append(out, action{kind: k, job: h}) }
	j, first := h.job, launchAction(h, batch)
	if first != nothing {
		add(first)
	}
	if first == batchOver || first == lost {
		return out
	}
	if k, at := suspension(h, cfg, now); k != nothing {
		add(k)
	} else {
		sooner(at)
	}
	if n := len(j.Signals); n > 0 && j.Signals[n-1].Num > h.signalled {
		add(deliver)
	}
	at := warnAt(j, cfg)
	switch {
	case at.IsZero() || h.warned || j.Phase != cluster.Running:
	case at.After(now):
		sooner(at)
	default:
		add(warn)
	}
	return out
}

// launchAction is what a job that is to run here needs to begin, or what its script's end asks for.
func launchAction(h *jobHere, batch *step.Status) actionKind {
	j := h.job
	// A gang's script waits until all nodes have confirmed; a job of one node is its own gang.
	single := len(j.Alloc.Shares) == 1 && j.Het == nil
	mayStart := j.Phase == cluster.Running || single
	isBatch := j.RunsScript() && j.Alloc.Shares[0].Node == h.node
	if batch != nil && batch.State == step.Ended {
		return batchOver
	}
	if h.launching {
		return nothing
	}
	if isBatch && batch == nil && mayStart {
		if h.begunBefore(single) {
			return lost // it was confirmed and is gone: this machine was restarted
		}
		return startBatch
	}
	if j.Phase == cluster.Starting && !h.confirmed {
		return confirm
	}
	return nothing
}

// begunBefore reports whether the script of a job, of which no step is here, has begun once.
func (h *jobHere) begunBefore(single bool) bool {
	if single {
		return h.job.Phase != cluster.Starting || h.confirmed || h.before
	}
	return !h.confirmed && !h.staged
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
