package client

import (
	"cmp"
	"slices"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

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
	return r.scripts[h.part(which)]
}

// live is what a job that is to run needs.
func (r *comparison) live(h *jobHere) []action {
	next, ready := prolog(h, r.script(h, prologStep), r.cfg, r.now, r.again)
	next, ready = prefetch(h, r.script(h, fetchStep), next, ready)
	switch {
	case ready:
		return runActions(h, r.batch[h.job.ID], r.cfg, r.now, r.again)
	case !h.isReported():
		return []action{{kind: next, job: h}}
	}
	return nil
}

// ending is what a job that is to end needs.
func (r *comparison) ending(h *jobHere) []action {
	alive := r.alive[h.job.ID]
	next, ready := nothing, alive > 0 || h.isOver() || h.launch == launching
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

func runActions(h *jobHere, batch *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (
	out []action) {
	if h.isReported() {
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
	if k, at := memoryAction(h, now); k != nothing {
		add(k)
	} else {
		sooner(at)
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
	if h.launch == launching {
		return nothing
	}
	if isBatch && batch == nil && mayStart {
		if h.begunBefore(single) {
			return lost // it was confirmed and is gone: this machine was restarted
		}
		return startBatch
	}
	if j.Phase == cluster.Starting && h.launch != confirmed {
		return confirm
	}
	return nothing
}

// begunBefore reports whether the script of a job, of which no step is here, has begun once.
func (h *jobHere) begunBefore(single bool) bool {
	if single {
		return h.job.Phase != cluster.Starting || h.hasBegun()
	}
	return h.launch != confirmed && !h.staged
}

// suspension is what to do for a job to be suspended as it should be, or when. Its tasks are told a while before
// they are stopped.
func suspension(h *jobHere, cfg *cluster.Config, now time.Time) (k actionKind, at time.Time) {
	suspended := h.job.Phase == cluster.Suspended
	switch {
	case suspended && h.pause == frozen, !suspended && h.pause == going:
		return nothing, at
	case !suspended:
		return thaw, at
	case h.pause == going:
		return stop, at
	}
	if at = h.stoppedAt.Add(cfg.Preempt.StopsAfter()); at.After(now) {
		return nothing, at
	}
	return freeze, at
}

// maxUnwarned is how long a job runs at least before its --signal, if its time limit leaves it.
const maxUnwarned = 30 * time.Second

// warnAt is when --signal is due, zero if never. A job that is shorter than the notice is warned after half its time
// or maxUnwarned: at its start, its programs would not have set their handlers yet, and would die.
func warnAt(j *cluster.Job, cfg *cluster.Config) time.Time {
	end := j.EndLimit(cfg)
	if j.Spec.Signal.Num == 0 || end.IsZero() {
		return time.Time{}
	}
	begun := j.Begun()
	at, first := end.Add(-j.Spec.Signal.Before), begun.Add(min(maxUnwarned, end.Sub(begun)/2))
	if at.Before(first) {
		return first
	}
	return at
}

func endActions(h *jobHere, alive int, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (out []action) {
	if h.isOver() || h.launch == launching {
		return nil
	}
	if alive == 0 {
		return []action{{kind: finished, job: h}}
	}
	gentle := h.job.EndingWhy.Gentle() // also where the script has ended by itself, and left steps behind
	deadline := h.job.EndingAt.Add(cfg.KillWait)
	if gentle && h.end == untouched {
		sooner(deadline)
		return []action{{kind: term, job: h}}
	}
	if gentle && now.Before(deadline) {
		sooner(deadline)
		return nil
	}
	if h.end == killed {
		at := h.killedFirst.Add(cmp.Or(cfg.Unkillable.After, unkillableAfter))
		if !now.Before(at) {
			sooner(h.killedLast.Add(killAgain))
			return []action{{kind: tellStuck, job: h}}
		}
		sooner(at)
	}
	if now.Sub(h.killedLast) >= killAgain {
		sooner(now.Add(killAgain))
		return []action{{kind: kill, job: h}}
	}
	sooner(h.killedLast.Add(killAgain))
	return nil
}

// unkillableAfter is how long processes may outlive KILL before it is told, where nothing else is configured, as in
// Slurm.
const unkillableAfter = 60 * time.Second

// killAgain is how long processes may take to vanish before they are killed once more.
const killAgain = 5 * time.Second

// sooner is the earlier of two times; zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
