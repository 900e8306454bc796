package client

import (
	"context"
	"syscall"
	"time"

	"dev.muster/cluster"
)

// act reconciles whenever something changed.
func (j *jobs) act(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.wakeup:
		case <-timer.C:
		}
		timer.Reset(j.pass(ctx))
	}
}

// confirmAgain is how soon a job is looked at again that could not be confirmed.
const confirmAgain = 250 * time.Millisecond

// pass does one round over all nodes and tells when to look again.
func (j *jobs) pass(ctx context.Context) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	next := time.Hour
	var launches []*jobHere
	for _, name := range j.order {
		n := j.nodes[name]
		if n.index == 0 {
			continue // what it should do is not known yet: nothing here is a stray
		}
		actions, again := reconcile(n.jobs, j.have[name], &j.config, now)
		if !again.IsZero() {
			next = min(next, max(again.Sub(now), time.Millisecond))
		}
		for _, a := range actions {
			if a.kind == confirm && j.cfg.Runner.Instance() == "" {
				next = min(next, confirmAgain) // without a supervisor nothing could be run here
				continue
			}
			if a.kind == startBatch {
				a.job.launch.to(launching)
				launches = append(launches, a.job)
				continue
			}
			if a.kind == finished && j.mustSweep(a.job) {
				if a.job.gpus == unswept {
					a.job.gpus.to(sweeping)
					go j.sweep(ctx, a.job) // ends with ctx or when the GPUs are free, within leftTime
				}
				continue
			}
			j.perform(n, a, now)
			if a.job != nil && a.job.end == unkillable && (a.kind == tellStuck || a.job.isOver()) {
				go j.tellStuck(ctx, a.job) // ends with ctx or with the site's program, within stuckLimit for a step
			}
		}
	}
	if len(launches) > 0 {
		go j.launch(ctx, launches) // ends with ctx or when the runner has the specs
	}
	if at := j.steps.expireSteps(now); !at.IsZero() {
		next = min(next, max(at.Sub(now), time.Millisecond))
	}
	return next
}

// perform does one action. Called with mu held; runner calls are local and quick.
func (j *jobs) perform(n *node, a action, now time.Time) {
	h := a.job
	say := func(us ...cluster.Update) { j.reports.Put(n.name, us...) }
	switch a.kind {
	case confirm:
		h.launch.to(confirmed)
		n.excused = false
		if h.job.RunsScript() && h.job.Alloc.Shares[0].Node == h.node {
			j.stage(h)
		}
		say(update(h, cluster.NodeReady))
	case batchOver:
		j.batchOver(n, h)
	case finished:
		if u, ok := j.batchEnd(h); ok {
			say(u)
		}
		h.launch.to(clean)
		u := update(h, cluster.NodeDone)
		if st := j.script(h, epilogStep); st != nil && !st.Succeeded() {
			j.slog.Error("the epilog failed", "job", h.job.ID, "node", h.node, "err", st.ScriptEnd())
			u.Error, u.Fault = cluster.EpilogError, true
		}
		say(u)
		j.forget(h) // only now: a crash in between must not lose what was known
	case lost:
		h.launch.to(clean)
		j.queues.free(h.job.ID)
		say(update(h, cluster.JobLost))
	case term:
		h.end.to(termed)
		if h.pause == frozen {
			j.freeze(h, false) // else it would not hear of it
		}
		j.announceEnd(h, now)
		j.signalTasks(h, syscall.SIGTERM)
		j.signalTasks(h, syscall.SIGCONT)
	case kill:
		h.kill(now)
		j.killAll(h)
	case tellStuck:
		h.end.to(unkillable)
	case stop, freeze, thaw:
		j.performPause(h, a.kind, now)
	case deliver:
		j.deliver(h)
	case setMemory:
		limitMemory(j, h)
	case warn:
		h.warned = true
		j.warn(h)
	case stray:
		j.stray(a.step)
	case startProlog, startEpilog, prologFailed, startFetch, fetchFailed, killScript:
		j.performScript(n, a)
	}
}

// performPause does an action about a job's suspension. Called with mu held.
func (j *jobs) performPause(h *jobHere, kind actionKind, now time.Time) {
	switch kind {
	case stop:
		h.stop(now)
		j.signalTasks(h, syscall.SIGTSTP)
		j.poke()
	case freeze:
		j.freeze(h, true)
	case thaw:
		j.freeze(h, false)
		j.signalTasks(h, syscall.SIGCONT)
	}
}
