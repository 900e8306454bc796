package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/fence"
	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

func sortedJobs(jobs map[cluster.JobID]*jobHere) []cluster.JobID {
	return slices.Sorted(maps.Keys(jobs))
}

// act reconciles whenever something changed.
func (c *Client) act(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wakeup:
		case <-timer.C:
		}
		timer.Reset(c.pass(ctx))
	}
}

// confirmAgain is how soon a job is looked at again that could not be confirmed.
const confirmAgain = 250 * time.Millisecond

// pass does one round over all nodes and tells when to look again.
func (c *Client) pass(ctx context.Context) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	next := time.Hour
	var launches []*jobHere
	for _, name := range c.order {
		n := c.nodes[name]
		if n.index == 0 {
			continue // what it should do is not known yet: nothing here is a stray
		}
		actions, again := reconcile(n.jobs, c.have[name], &c.config, now)
		if !again.IsZero() {
			next = min(next, max(again.Sub(now), time.Millisecond))
		}
		for _, a := range actions {
			if a.kind == confirm && c.cfg.Runner.Instance() == "" {
				next = min(next, confirmAgain) // without a supervisor nothing could be run here
				continue
			}
			if a.kind == startBatch {
				a.job.launch.to(launching)
				launches = append(launches, a.job)
				continue
			}
			if a.kind == finished && c.mustSweep(a.job) {
				if a.job.gpus == unswept {
					a.job.gpus.to(sweeping)
					go c.sweep(ctx, a.job) // ends with ctx or when the GPUs are free, within leftTime
				}
				continue
			}
			c.perform(n, a, now)
			if a.job != nil && a.job.end == unkillable && (a.kind == tellStuck || a.job.isOver()) {
				go c.tellStuck(ctx, a.job) // ends with ctx or with the site's program, within stuckLimit for a step
			}
		}
	}
	if len(launches) > 0 {
		go c.launch(ctx, launches) // ends with ctx or when the runner has the specs
	}
	if at := c.expireSteps(now); !at.IsZero() {
		next = min(next, max(at.Sub(now), time.Millisecond))
	}
	return next
}

// perform does one action. Called with mu held; runner calls are local and quick.
func (c *Client) perform(n *node, a action, now time.Time) {
	h := a.job
	say := func(us ...cluster.Update) { c.reports.put(n.name, us...) }
	switch a.kind {
	case confirm:
		h.launch.to(confirmed)
		if h.job.RunsScript() && h.job.Alloc.Shares[0].Node == h.node {
			c.stage(h)
		}
		say(c.update(h, cluster.NodeReady))
	case batchOver:
		c.batchOver(n, h)
	case finished:
		if u, ok := c.batchEnd(h); ok {
			say(u)
		}
		h.launch.to(clean)
		u := c.update(h, cluster.NodeDone)
		if st := c.script(h, epilogStep); st != nil && !st.Succeeded() {
			c.slog.Error("the epilog failed", "job", h.job.ID, "node", h.node, "err", st.ScriptEnd())
			u.Error, u.Fault = cluster.EpilogError, true
		}
		say(u)
		c.forget(h) // only now: a crash in between must not lose what was known
	case lost:
		h.launch.to(clean)
		c.free()
		say(c.update(h, cluster.JobLost))
	case term:
		h.end.to(termed)
		if h.pause == frozen {
			c.freeze(h, false) // else it would not hear of it
		}
		c.announceEnd(h, now)
		c.signalTasks(h, syscall.SIGTERM)
		c.signalTasks(h, syscall.SIGCONT)
	case kill:
		h.kill(now)
		c.killAll(h)
	case tellStuck:
		h.end.to(unkillable)
	case stop, freeze, thaw:
		performPause(c, h, a.kind, now)
	case deliver:
		c.deliver(h)
	case warn:
		h.warned = true
		c.warn(h)
	case stray:
		c.stray(a.step)
	case startProlog, startEpilog, prologFailed, startFetch, fetchFailed, killScript:
		performScript(c, n, a)
	}
}

// performPause does an action about a job's suspension. Called with mu held.
func performPause(c *Client, h *jobHere, kind actionKind, now time.Time) {
	switch kind {
	case stop:
		h.stop(now)
		c.signalTasks(h, syscall.SIGTSTP)
		c.poke()
	case freeze:
		c.freeze(h, true)
	case thaw:
		c.freeze(h, false)
		c.signalTasks(h, syscall.SIGCONT)
	}
}

// performScript does an action about what the node itself runs for a job. Called with mu held.
func performScript(c *Client, n *node, a action) {
	h := a.job
	switch a.kind {
	case startProlog:
		c.startScripts(h, prologStep)
	case startEpilog:
		c.startScripts(h, epilogStep)
	case prologFailed:
		c.takeBackProlog(n, h)
	case startFetch:
		startFetching(c, h)
	case fetchFailed:
		refuseFetch(c, n, h)
	case killScript:
		for _, which := range []int{prologStep, fetchStep, epilogStep} {
			if st := c.script(h, which); st != nil && st.State != step.Ended {
				c.try("kill", st.ID, c.cfg.Runner.Signal(st.ID, syscall.SIGKILL, step.All))
			}
		}
	}
}

func (c *Client) update(h *jobHere, kind cluster.UpdateKind) cluster.Update {
	return cluster.Update{Kind: kind, Job: h.job.ID, Attempt: h.job.Attempt, At: time.Now()}
}

// try logs a runner's refusal; a step it no longer knows is dropped here too. Called with mu held.
func (c *Client) try(what string, id step.ID, err error) {
	if errors.Is(err, step.ErrUnknown) {
		c.have.Drop(id)
		return
	}
	if err != nil {
		c.slog.Warn("a step could not be told", "what", what, "job", id.Job, "step", id.Step, "node",
			id.Node, "err", err)
	}
}

// stepsOf yields the job's steps on its node.
func (c *Client) stepsOf(h *jobHere) map[step.ID]*step.Status {
	out := c.allOf(h)
	maps.DeleteFunc(out, func(id step.ID, _ *step.Status) bool { return ours(id) })
	return out
}

// allOf yields these, and the node's own for the job.
func (c *Client) allOf(h *jobHere) map[step.ID]*step.Status {
	out := map[step.ID]*step.Status{}
	for id, st := range c.have[h.node] {
		if id.Job == h.job.ID && id.Attempt == h.job.Attempt {
			out[id] = st
		}
	}
	return out
}

// signalTasks signals the job's tasks and its script, and not what they have started: that is theirs to end.
// Sessions that were put into the job have no task of their own; all of theirs hear it.
func (c *Client) signalTasks(h *jobHere, sig syscall.Signal) {
	for id, st := range c.stepsOf(h) {
		scope := step.Leaders
		if id.Step == cluster.ExternStep {
			scope = step.All
		}
		if st.State != step.Ended {
			c.try("signal", id, c.cfg.Runner.Signal(id, sig, scope))
		}
	}
}

// freeze stops all of the job without its knowing, or lets it go on.
func (c *Client) freeze(h *jobHere, on bool) {
	next := going
	if on {
		next = frozen
	}
	h.pause.to(next)
	for id := range c.stepsOf(h) {
		c.try("freeze", id, c.cfg.Runner.Freeze(id, on))
	}
}

// killAll kills every process of the job.
func (c *Client) killAll(h *jobHere) {
	for id, st := range c.stepsOf(h) {
		if st.State != step.Ended {
			c.try("kill", id, c.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
		}
	}
}

// forget drops what is known of a job that is over here: the batch step; numbered steps are dropped when their
// output was taken.
func (c *Client) forget(h *jobHere) {
	c.leave(h)
	c.free()
	var ids []step.ID
	for id := range c.allOf(h) {
		_, live := c.steps[cluster.StepID{Job: id.Job, Step: id.Step}]
		if h.job.EndingWhy == cluster.Resized && id.Step >= 0 {
			live = true // the job goes on elsewhere, and what leads the step takes the output and says when
		}
		if !live {
			ids = append(ids, id)
			c.have.Drop(id)
		}
	}
	if len(ids) > 0 {
		c.try("forget", ids[0], c.cfg.Runner.Forget(ids...))
	}
}

func (c *Client) stray(id step.ID) {
	if _, live := c.steps[cluster.StepID{Job: id.Job, Step: id.Step}]; live && c.have.Get(id).State == step.Ended {
		return // its output is still being taken
	}
	if c.have.Get(id).State != step.Ended {
		c.try("kill", id, c.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
		return
	}
	c.have.Drop(id)
	c.try("forget", id, c.cfg.Runner.Forget(id))
}

// launchFailedSignal is Slurm's code of a failed launch.
const launchFailedSignal = 53

// batchOver reports how the batch script ended; a job of one node with nothing else left is
// done with the same report.
func (c *Client) batchOver(n *node, h *jobHere) {
	id := step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Step: cluster.BatchStep, Node: h.node}
	st := c.have.Get(id)
	u := c.update(h, cluster.BatchOver)
	if len(st.Tasks) > 0 {
		t := st.Tasks[0]
		if t.Lost { // how it ended, nobody knows: as if the node had been lost
			h.launch.to(clean)
			c.reports.put(n.name, c.update(h, cluster.JobLost))
			c.forget(h)
			return
		}
		u.Exit, u.Usage, u.OOM = t.Exit, st.Usage, t.OOM || st.OOMKills > 0
		if !t.Ended.IsZero() {
			u.At = t.Ended
		}
		if t.Error != "" {
			u.Error = t.Error
			u.Exit = cluster.ExitStatus{Signal: launchFailedSignal}
			if t.NotRun() {
				u.Exit = cluster.ExitStatus{Code: int(min(t.Errno, 255))}
			}
			c.slog.Warn("a batch script could not be run", "job", h.job.ID, "node", h.node, "err", t.Error)
		}
		if t.Fault {
			h.launch.to(reported)
			u.Kind, u.Fault = cluster.LaunchFailed, true
			c.reports.put(n.name, u)
			return
		}
	}
	h.launch.to(reported)
	us := []cluster.Update{
		u, {Kind: cluster.StepNow, Job: u.Job, Attempt: u.Attempt, At: u.At, Step: c.batchRecord(h, u)},
	}
	alive := 0
	for _, o := range c.stepsOf(h) {
		if o.State != step.Ended {
			alive++
		}
	}
	if len(h.job.Alloc.Shares) == 1 && alive == 0 && c.config.Epilog == "" && !c.mustSweep(h) {
		h.launch.to(clean)
		us = append(us, c.update(h, cluster.NodeDone))
	}
	c.reports.put(n.name, us...)
	if h.isOver() {
		c.forget(h) // only now: a crash in between must not lose the exit status
	}
}

// batchEnd is the record of a script that ended because its job was ended.
func (c *Client) batchEnd(h *jobHere) (u cluster.Update, ok bool) {
	st := c.have.Get(step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Step: cluster.BatchStep, Node: h.node})
	if st == nil || st.State != step.Ended || h.isReported() || len(st.Tasks) == 0 || st.Tasks[0].Started.IsZero() {
		return u, false
	}
	u = c.update(h, cluster.StepNow)
	u.Exit, u.Usage, u.OOM = st.Tasks[0].Exit, st.Usage, st.OOMKills > 0
	u.Step = c.batchRecord(h, u)
	return u, true
}

// batchRecord is the history's record of the batch script.
func (c *Client) batchRecord(h *jobHere, u cluster.Update) *cluster.Step {
	j := h.job
	s := &cluster.Step{ID: cluster.StepID{Job: j.ID, Step: cluster.BatchStep}, Attempt: j.Attempt, Name: "batch",
		UID: j.Spec.UID, User: j.Spec.User, Shares: j.Alloc.Shares[:1], Tasks: 1, Started: j.Started, Ended: u.At,
		Exit: u.Exit, Usage: u.Usage, Outcome: u.Exit.Outcome()}
	if st := c.have.Get(step.ID{Job: j.ID, Attempt: j.Attempt, Step: cluster.BatchStep, Node: h.node}); st != nil && len(st.Tasks) > 0 {
		s.Usage = cluster.SumUsage([]cluster.RankUsage{{TaskUsage: st.Tasks[0].Usage}})
	}
	if u.OOM {
		s.Exit, s.Outcome = cluster.OOMExit, cluster.OutOfMemory
	}
	return s
}

// deliver sends the signals that users asked for since the last one.
func (c *Client) deliver(h *jobHere) {
	for i := range h.job.Signals {
		s := &h.job.Signals[i]
		if s.Num <= h.signalled {
			continue
		}
		h.signalled = s.Num
		for id, st := range c.stepsOf(h) {
			if st.State != step.Ended {
				c.deliverTo(h, id, s)
			}
		}
	}
}

// deliverTo sends a part of a step a signal, if it is meant.
func (c *Client) deliverTo(h *jobHere, id step.ID, s *cluster.JobSignal) {
	scope, wanted := meant(id.Step, s)
	if !wanted {
		return
	}
	ls := c.steps[cluster.StepID{Job: id.Job, Step: id.Step}]
	if s.Step != cluster.AllSteps && s.Sig == 0 {
		c.cancelPart(ls, id, s.UID)
		return
	}
	leads := ls != nil && ls.lead == h.node
	if leads && s.Sig == int(syscall.SIGTERM) {
		c.sayEnd(ls, cluster.Cancelled, false)
	}
	c.try("signal", id, c.cfg.Runner.Signal(id, syscall.Signal(s.Sig), scope))
}

// cancelPart ends a part of one step because a user has asked for its end.
func (c *Client) cancelPart(ls *liveStep, id step.ID, uid uint32) {
	if ls != nil && ls.endedBy == nil {
		ls.endedBy = &uid
		c.sayEnd(ls, cluster.Cancelled, true)
	}
	c.try("kill", id, c.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
}

// meant reports whether a signal is for a step of its job, and for which of its processes.
func meant(number int, s *cluster.JobSignal) (scope step.Scope, wanted bool) {
	batch := number == cluster.BatchStep
	switch {
	case number == cluster.ExternStep: // what is in it ends with the job, and is told of nothing before
		return step.Leaders, false
	case s.Step != cluster.AllSteps:
		return step.Leaders, number == s.Step
	case s.Scope == cluster.SignalBatchShell:
		return step.Leaders, batch
	case s.Scope == cluster.SignalBatchFull:
		return step.All, batch
	case s.Scope == cluster.SignalFull && batch: // the script with what it has started
		return step.All, true
	case s.Scope == cluster.SignalFull:
		return step.Leaders, true
	}
	return step.Leaders, !batch
}

// warn sends the signal of --signal: to the steps, or with B: to the batch shell only.
func (c *Client) warn(h *jobHere) {
	sig := h.job.Spec.Signal
	for id, st := range c.stepsOf(h) {
		if st.State != step.Ended && id.Step != cluster.ExternStep && (id.Step == cluster.BatchStep) == sig.BatchOnly {
			c.try("signal", id, c.cfg.Runner.Signal(id, syscall.Signal(sig.Num), step.Leaders))
		}
	}
}

// launch starts batch scripts.
func (c *Client) launch(ctx context.Context, hs []*jobHere) {
	var specs []step.Spec
	var jobs []*jobHere
	for _, h := range hs {
		spec, err := c.batchSpec(ctx, h)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			c.launchFailed(h, err)
			continue
		}
		specs, jobs = append(specs, spec), append(jobs, h)
	}
	if len(specs) == 0 {
		return
	}
	if err := c.cfg.Runner.Start(specs...); err != nil {
		for _, h := range jobs {
			c.launchFailed(h, err)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, h := range jobs {
		if c.have.Get(specs[i].ID) == nil {
			c.have.Put(specs[i].ID, &step.Status{ID: specs[i].ID, State: step.Starting})
		}
		if h.launch != launching {
			continue // it has ended already, and that was reported
		}
		h.launch.to(confirmed)
		if h.job.Phase == cluster.Starting {
			c.reports.put(h.node, c.update(h, cluster.NodeReady))
		}
	}
	c.poke()
}

func (c *Client) launchFailed(h *jobHere, err error) {
	c.slog.Error("a batch script could not be started", "job", h.job.ID, "node", h.node, "err", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	h.launch.to(reported)
	u := c.update(h, cluster.LaunchFailed)
	u.Error = err.Error()
	c.reports.put(h.node, u)
}

// batchSpec is what the supervisor must know to run a job's script.
func (c *Client) batchSpec(ctx context.Context, h *jobHere) (step.Spec, error) {
	j := h.job
	script, err := c.texts.get(ctx, j.Spec.Script)
	if err != nil {
		return step.Spec{}, err
	}
	env, err := c.texts.get(ctx, j.Spec.Env)
	if err != nil {
		return step.Spec{}, err
	}
	c.mu.Lock()
	cfg := c.config
	c.mu.Unlock()
	inv, found := c.hardware.of(h.node)
	l := &cluster.Launch{Job: j, Config: &cfg, Inventory: &inv, Node: h.node, Daemon: c.cfg.Daemon, Sisters: h.sisters,
		Fenced: fence.Fenced(&cfg, &inv),
		Ranks:  make([][]int, len(j.Alloc.Shares))}
	l.GPUs.GPUs = l.ShareHere().GPUs
	path := filepath.Join(c.cfg.Spool, string(h.node), fmt.Sprintf("job%05d", j.ID), "slurm_script")
	appends := j.Spec.Append || cfg.AppendOutput && !j.Spec.Truncate
	out := step.IO{Kind: step.File, Path: c.absolute(j.Spec.WorkDir, c.cfg.FileName(j.Spec.Stdout, l)), Append: appends}
	stdin, errs := step.IO{}, step.IO{Kind: step.Same}
	if j.Spec.Stdin != "" && j.Spec.Stdin != "/dev/null" {
		stdin = step.IO{Kind: step.File, Path: c.absolute(j.Spec.WorkDir, c.cfg.FileName(j.Spec.Stdin, l))}
	}
	if j.Spec.Stderr != "" {
		p := c.absolute(j.Spec.WorkDir, c.cfg.FileName(j.Spec.Stderr, l))
		if p != out.Path {
			errs = step.IO{Kind: step.File, Path: p, Append: appends}
		}
	}
	argv := append([]string{path}, j.Spec.Args...)
	around := c.around(&cfg, h.node, nil)
	in := c.cfg.inside(j.Spec.Inside, cfg.Containers, j.Spec, &around)
	if in != nil && j.Spec.UserEnv {
		env = append(in.Login(), env...)
	}
	around.Login = j.Spec.UserEnv && c.cfg.Program.Around != nil && in == nil
	if !around.Empty() {
		argv = around.Command(c.cfg.Program.aroundIn(in), argv)
	}
	id := step.ID{Job: j.ID, Attempt: j.Attempt, Step: cluster.BatchStep, Node: h.node}
	return step.Spec{
		ID: id, Private: c.private(h.node, id, l), Container: in,
		Fence: fence.Of(&cfg, &inv, found, l.ShareHere()), OOMText: c.oomText(id),
		UID: j.Spec.UID, GID: j.Spec.GID, Groups: j.Spec.Groups, Dir: j.Spec.WorkDir, Umask: j.Spec.Umask,
		Rlimits: cfg.Propagated(j.Spec.Rlimits, j.Spec.OwnLimits), Env: env, Script: script, ScriptPath: path,
		HostName: c.hardware.hostName(h.node), Hosts: c.hardware.hosts(h.node), PIDEnv: c.cfg.PIDEnv,
		Tasks: []step.Task{{Argv: argv, Env: c.environ(l, env), Stdin: stdin, Stdout: out, Stderr: errs}},
	}, nil
}

// oomText is the dialect's line about processes that were killed for want of memory.
func (c *Client) oomText(id step.ID) string {
	return c.cfg.OOMNote(cluster.StepID{Job: id.Job, Step: id.Step}, id.Node)
}

// environ is what the dialect sets for a task, and a TMPDIR if the user brought none.
func (c *Client) environ(l *cluster.Launch, own cluster.BlobText) []string {
	l.Own = own
	e := c.cfg.TaskEnv(l)
	if !strings.HasPrefix(string(own), "TMPDIR=") && !strings.Contains(string(own), "\x00TMPDIR=") {
		e = append(e, "TMPDIR=/tmp")
	}
	return append(e, displayOf(c, l.Job.ID, l.Node).Environ()...)
}

func (c *Client) absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// stage keeps that this life confirms an attempt. Called with mu held.
func (c *Client) stage(h *jobHere) {
	k := outbox.Attempt{Job: h.job.ID, Attempt: h.job.Attempt, Node: h.node}
	if err := c.staged.Add(k, c.cfg.Runner.Instance()); err != nil {
		c.slog.Warn("a gang could not be staged: a crash of this daemon now would lose it", "job", k.Job, "err", err)
	}
}
