package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// drainTime is how long an ended step's output waits for a client that is away.
const drainTime = 30 * time.Second

// maxStepsHere bounds the live steps of one job.
const maxStepsHere = 4096

// liveStep is a step managed here: this client's node is the first of its job.
type liveStep struct {
	record   cluster.Step
	spec     cluster.StepSpec
	ids      []step.ID
	lead     cluster.NodeName // the job's first node, of this client
	key      string           // of the request that made it
	told     bool             // its start was reported
	endedAt  time.Time        // all nodes are over
	killAt   time.Time        // TERM was sent; then what is left gets KILL
	goneAt   time.Time        // its srun has died; it is killed then, unless the script has ended, too
	killed   bool             // KILL or TERM was sent to all of it: nothing of it begins any more
	endedBy  *uint32          // the user who cancelled it
	limited  bool             // its time limit has ended it
	attached int              // connections taking its output
	drained  map[cluster.NodeName]bool
}

// note is what comes back from the supervisor after a restart of this daemon.
type note struct {
	Record cluster.Step     `json:"record"`
	Spec   cluster.StepSpec `json:"spec"`
	IDs    []step.ID        `json:"ids"`
	Key    string           `json:"key,omitempty"`
	Lead   cluster.NodeName `json:"lead,omitempty"`
}

// Routes registers what the client of a job's first node answers.
func (c *Client) Routes(m *api.Mux) {
	api.Handle(m, api.CreateStep, func(ctx context.Context, who api.Caller, q api.StepRequest) (api.StepResponse, error) {
		if err := c.await(ctx, c.known, c.told); err != nil {
			return api.StepResponse{}, err
		}
		return c.createStep(ctx, who, q)
	})
	api.Handle(m, api.SignalStep, c.signalStep)
	api.Handle(m, api.UpdateStep, c.updateStep)
	api.Handle(m, api.WaitStep, c.waitStep)
	api.Handle(m, api.MeasureSteps, c.measureSteps)
	api.Handle(m, api.TailOutput, c.tailOutput)
	api.HandleTunnel(m, api.AttachStep, api.User, c.checkAttach, c.attachStep)
	api.Handle(m, api.AdoptSession, c.adoptSession)
	c.partRoutes(m)
}

// startTime bounds how long a call waits for a daemon that has just started.
const startTime = 10 * time.Second

// await waits until the daemon knows enough to answer.
func (c *Client) await(ctx context.Context, conditions ...chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, ok := range conditions {
		select {
		case <-ok:
		case <-ctx.Done():
			return cluster.Errorf(cluster.Unavailable, "", "this node's daemon is starting and has not heard from the servers; try again")
		}
	}
	return nil
}

// jobLedHere finds a live job whose first node is one of this client's, and that is not ending.
func (c *Client) jobLedHere(id cluster.JobID, who api.Caller) (*jobHere, *api.Error) {
	h, err := c.jobKeptHere(id, who)
	if err == nil && (h.job.Phase == cluster.Ending || h.told) {
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrFinished, "job %d is ending", id)
	}
	return h, err
}

// jobKeptHere finds a job whose first node is one of this client's, until the servers take it away.
func (c *Client) jobKeptHere(id cluster.JobID, who api.Caller) (*jobHere, *api.Error) {
	for _, name := range c.order {
		h, ok := c.nodes[name].jobs[id]
		if !ok || h.job.Alloc.Shares[0].Node != name {
			continue
		}
		if who.UID != h.job.Spec.UID && !who.Operator() {
			return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "job %d belongs to user %s", id, h.job.Spec.User)
		}
		if who.Role == cluster.RoleNode && !c.takesPart(who, h) {
			return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d", who.Member, id)
		}
		return h, nil
	}
	return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run here", id)
}

// lead looks at a live job that is led here, once the daemon knows what runs and what should: with mu held.
func (c *Client) lead(ctx context.Context, who api.Caller, id cluster.JobID, look func(*jobHere)) error {
	if err := c.await(ctx, c.known, c.told); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.jobLedHere(id, who)
	if err != nil {
		return err
	}
	look(h)
	return nil
}

// Leads reports whether a job's first node is one of this client's.
func (c *Client) Leads(id cluster.JobID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.order {
		if h, ok := c.nodes[name].jobs[id]; ok && h.job.Alloc.Shares[0].Node == name {
			return true
		}
	}
	return false
}

// createStep places a step in its job's allocation and starts it.
func (c *Client) createStep(ctx context.Context, who api.Caller, q api.StepRequest) (api.StepResponse, error) {
	for {
		c.mu.Lock()
		freed := c.freed
		h, err := c.jobLedHere(q.Job, who)
		var ls *liveStep
		if err == nil {
			if made := c.madeBy(q); made != nil {
				c.mu.Unlock()
				return c.describe(made), nil
			}
			ls, err = c.place(h, &q.Spec)
		}
		if err == nil {
			ls.key = q.Key
		}
		if err == nil && q.Plan {
			c.unplace(h, ls, q.Keep)
			c.mu.Unlock()
			return c.describe(ls), nil
		}
		c.mu.Unlock()
		if err == nil {
			return c.startStep(ctx, h, ls)
		}
		if err.Kind != cluster.ErrBusy || q.NoWait {
			return api.StepResponse{}, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return api.StepResponse{}, ctx.Err()
		}
	}
}

// madeBy finds the step that the same request made before. Called with mu held.
func (c *Client) madeBy(q api.StepRequest) *liveStep {
	for _, ls := range c.steps {
		if q.Key != "" && ls.key == q.Key && ls.record.ID.Job == q.Job {
			return ls
		}
	}
	return nil
}

// describe answers with a step and which ranks run where. Called with mu held.
func (c *Client) describe(ls *liveStep) api.StepResponse {
	out := api.StepResponse{Step: ls.record, Defaults: c.config.Srun, KillWait: c.config.KillWait}
	for i, ranks := range ls.ranks() {
		out.Nodes = append(out.Nodes, api.StepNode{Node: ls.ids[i].Node, Ranks: ranks})
	}
	return out
}

// unplace takes a step back that was placed to see where it would run. The leader of a heterogeneous job may
// keep its number for the components. Called with mu held.
func (c *Client) unplace(h *jobHere, ls *liveStep, keep bool) {
	if !keep {
		h.nextStep = ls.record.ID.Step
	}
	delete(c.steps, ls.record.ID)
	for _, id := range ls.ids {
		c.have.drop(id)
	}
}

// ranks are the ranks of each node.
func (ls *liveStep) ranks() [][]int {
	counts := make([]int, len(ls.record.Shares))
	for i, sh := range ls.record.Shares {
		counts[i] = sh.Tasks
	}
	ranks := cluster.RankLayout(counts, &ls.spec)
	if w := ls.spec.World; w != nil {
		for _, list := range ranks {
			for i := range list {
				list[i] += w.Rank
			}
		}
	}
	return ranks
}

// tasks is how many tasks the whole step has.
func (ls *liveStep) tasks() int {
	if w := ls.spec.World; w != nil {
		return w.Tasks
	}
	return ls.record.Tasks
}

// place reserves a step's resources. Called with mu held.
func (c *Client) place(h *jobHere, spec *cluster.StepSpec) (*liveStep, *api.Error) {
	used := map[cluster.NodeName]cluster.StepUse{}
	next, live := h.job.NextStep, 0
	for _, ls := range c.steps {
		if ls.record.ID.Job != h.job.ID {
			continue
		}
		if ls.record.Attempt == h.job.Attempt { // each attempt counts its own
			next = max(next, ls.record.ID.Step+1)
		}
		live++
		if ls.spec.Overlap || !ls.endedAt.IsZero() {
			continue
		}
		for _, sh := range ls.record.Shares {
			u := used[sh.Node]
			u.CPUs = u.CPUs.Union(sh.CPUs)
			if len(ls.spec.PerNode)+len(ls.spec.PerTask)+len(ls.spec.PerJob) > 0 {
				u.GPUs = u.GPUs.Union(sh.GPUs)
			}
			u.MemMB += cluster.StepMem(&ls.spec, sh)
			used[sh.Node] = u
		}
	}
	if live >= maxStepsHere {
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrBusy, "job %d has %d live steps", h.job.ID, live)
	}
	next = max(next, h.nextStep)
	for c.takenBefore(h, next) {
		next++
	}
	if w := spec.World; w != nil {
		_, lives := c.steps[cluster.StepID{Job: h.job.ID, Step: w.Number}]
		if h.job.Het == nil || h.job.Het.ID != w.Job || lives {
			return nil, cluster.Errorf(cluster.Conflict, "", "step %d of job %d can not be a part of a step", w.Number, h.job.ID)
		}
		next = w.Number
	}
	if most := c.config.MaxStepCount; most > 0 && next >= most && !spec.Interactive {
		return nil, cluster.Errorf(cluster.Conflict, "", "Step limit reached for this job")
	}
	if spec.Interactive {
		next = cluster.InteractiveStep
		if _, lives := c.steps[cluster.StepID{Job: h.job.ID, Step: next}]; lives {
			return nil, cluster.Errorf(cluster.Conflict, "", "job %d has an interactive step already", h.job.ID)
		}
	}
	shares, err := cluster.PlaceStep(h.job, used, spec, c.inventory)
	if err != nil {
		return nil, err
	}
	h.nextStep = max(h.nextStep, next+1)
	j := h.job
	ls := &liveStep{spec: *spec, lead: h.node, drained: map[cluster.NodeName]bool{}, record: cluster.Step{
		ID: cluster.StepID{Job: j.ID, Step: next}, Attempt: j.Attempt, Name: spec.Name, User: j.Spec.User, UID: j.Spec.UID,
		Shares: shares, Distribution: spec.Distribution, SubmitLine: spec.SubmitLine, CPUFreq: cmp.Or(spec.CPUFreq, j.Spec.CPUFreq), SrunHost: spec.SrunHost,
		SrunPID: spec.SrunPID, Started: time.Now(), Limit: spec.Limit}}
	for _, sh := range shares {
		ls.record.Tasks += sh.Tasks
		ls.ids = append(ls.ids, step.ID{Job: j.ID, Attempt: j.Attempt, Step: next, Node: sh.Node})
	}
	c.steps[ls.record.ID] = ls
	for _, id := range ls.ids {
		c.have.put(id, &step.Status{ID: id, State: step.Starting})
	}
	return ls, nil
}

// startStep starts a placed step on all its nodes.
func (c *Client) startStep(ctx context.Context, h *jobHere, ls *liveStep) (api.StepResponse, error) {
	ranks := ls.ranks()
	programs, err := parseMultiProg(&ls.spec, ls.tasks())
	if err == nil {
		err = c.checkBinds(ls)
	}
	if err != nil {
		c.dropStep(ls)
		return api.StepResponse{}, err
	}
	memo, err := ls.memo()
	if err != nil {
		c.dropStep(ls)
		return api.StepResponse{}, err
	}
	var specs []step.Spec
	for i, id := range ls.ids {
		if c.local(id.Node) {
			sp := c.stepSpec(h, ls, ranks, i, programs)
			if i == 0 || specs == nil {
				sp.Note = memo
			}
			specs = append(specs, sp)
		}
	}
	if err := c.launchStep(ctx, ls, specs); err != nil {
		c.mu.Lock()
		c.signalStepNow(ls, syscall.SIGKILL)
		c.mu.Unlock()
		c.dropStep(ls)
		return api.StepResponse{}, fmt.Errorf("start step %d of job %d: %w", ls.record.ID.Step, ls.record.ID.Job, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ls.endedAt.IsZero() {
		c.tellStep(ls)
	}
	return c.describe(ls), nil
}

// launchStep starts a step's parts, here and through the other clients theirs, once all are ready.
func (c *Client) launchStep(ctx context.Context, ls *liveStep, specs []step.Spec) error {
	c.mu.Lock()
	groups := c.groups(ls.ids)
	c.mu.Unlock()
	rec := &ls.record
	get := api.PartsRequest{Step: *rec, Spec: ls.spec, Key: ls.key, Lead: ls.lead, Hold: true}
	if err := c.ready(ctx, get, groups); err != nil {
		return err
	}
	q := api.PartsQuery{Job: rec.ID.Job, Attempt: rec.Attempt, Step: rec.ID.Step}
	return c.both(func() error {
		if len(specs) == 0 {
			return nil
		}
		c.slog.Debug("parts of a step begin", "job", rec.ID.Job, "step", rec.ID.Step, "node", specs[0].ID.Node)
		return c.cfg.Runner.Start(specs...)
	}, func() error {
		err := c.begin(ctx, q, groups)
		c.mu.Lock()
		killed := ls.killed
		c.mu.Unlock()
		if err == nil || killed {
			return err
		}
		get.Hold = false // a daemon that was restarted holds nothing: whoever has not begun begins now
		return c.ready(ctx, get, groups)
	})
}

// checkBinds refuses a step whose tasks can not be bound as it asks: one line for each node in the
// message; the hint names the step and those nodes.
func (c *Client) checkBinds(ls *liveStep) error {
	var lines []string
	hint := fmt.Sprintf("%d.%d", ls.record.ID.Job, ls.record.ID.Step)
	for i, id := range ls.ids {
		if err := cluster.CheckBind(&ls.spec, ls.record.Shares[i], c.inventory(id.Node)); err != nil {
			lines, hint = append(lines, err.Message), hint+" "+string(id.Node)
		}
	}
	if lines == nil {
		return nil
	}
	e := cluster.Errorf(cluster.Invalid, cluster.ErrStepBind, "%s", strings.Join(lines, "\n"))
	e.Hint = hint
	return e
}

// around are the scripts before and after each task: the cluster's and the user's.
func (c *Client) around(cfg *cluster.Config, n cluster.NodeName, s *cluster.StepSpec) step.Around {
	a := step.Around{Node: n, PIDEnv: c.cfg.PIDEnv}
	add := func(to *[]step.AroundScript, path string, system bool) {
		if path != "" && c.cfg.Around != nil {
			*to = append(*to, step.AroundScript{Path: path, System: system})
		}
	}
	add(&a.Prologs, cfg.TaskProlog, true)
	if s != nil {
		add(&a.Prologs, s.TaskProlog, false)
		add(&a.Epilogs, s.TaskEpilog, false)
	}
	add(&a.Epilogs, cfg.TaskEpilog, true)
	return a
}

func withoutEnv(s cluster.StepSpec) cluster.StepSpec {
	s.Env = nil
	return s
}

func (c *Client) dropStep(ls *liveStep) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.steps, ls.record.ID)
	for _, id := range ls.ids {
		c.have.drop(id)
	}
	c.free()
}

func (c *Client) free() {
	close(c.freed)
	c.freed = make(chan struct{})
}

// tellStep reports a step's start or end. Called with mu held.
func (c *Client) tellStep(ls *liveStep) {
	ls.told = true
	rec := ls.record
	c.report(ls.lead, cluster.Update{Kind: cluster.StepNow, Job: rec.ID.Job, Attempt: rec.Attempt, At: time.Now(), Step: &rec})
}

// stepSpec is one node's part of a step.
func (c *Client) stepSpec(h *jobHere, ls *liveStep, ranks [][]int, i int, programs map[int][]string) step.Spec {
	s, id := &ls.spec, ls.ids[i]
	c.mu.Lock()
	cfg, n := c.config, c.nodes[id.Node]
	inv, found := n.Inventory, n.detected
	c.mu.Unlock()
	out := step.Spec{ID: id, UID: h.job.Spec.UID, GID: h.job.Spec.GID, Groups: h.job.Spec.Groups, Dir: s.WorkDir,
		Umask: s.Umask, Rlimits: cfg.Propagated(s.Rlimits, s.OwnLimits), Env: s.Env, PTY: s.PTY, HostName: c.hostName(n), Hosts: c.hosts(n), PIDEnv: c.cfg.PIDEnv,
		OOMText: c.oomText(id)}
	for k := range h.job.Alloc.Shares {
		if sh := h.job.Alloc.Shares[k]; sh.Node == id.Node {
			out.Fence = fence(&cfg, &inv, found, sh)
		}
	}
	if s.PTY != nil && i > 0 {
		out.PTY = nil
	}
	bind, mem, around := cluster.Bind(s, ls.record.Shares[i], &inv), cluster.BindMem(s.MemBind), c.around(&cfg, id.Node, s)
	for local, rank := range ranks[i] {
		l := &cluster.Launch{Job: h.job, Config: &cfg, Inventory: &inv, Node: id.Node, NodeID: i, Step: &ls.record,
			Fenced: fenced(&cfg, &inv), Spec: s, Rank: rank, LocalRank: local, Ranks: ranks, Daemon: c.cfg.Daemon}
		l.GPUs = cluster.BindGPUs(s, ls.record.Shares[i].GPUs, local, &inv)
		if out.Private == nil {
			out.Private = c.private(n, id, l)
		}
		t := step.Task{Rank: rank, Argv: s.Argv, Env: c.environ(l, s.Env)}
		if programs != nil {
			t.Argv = programs[rank]
		}
		if !around.Empty() {
			t.Argv = around.Command(c.cfg.Around, t.Argv)
		}
		if !inv.Hollow {
			t.CPUs = bind.Of(local)
		}
		t.Memory, t.Refused = step.BindMemory(mem, local)
		if c.cfg.Greeting != nil {
			t.Greeting = c.cfg.Greeting(l, bind, mem, step.NUMANodes())
		}
		if s.PTY == nil || rank == 0 { // the others have no terminal: they read and write nothing
			c.streams(&t, s, l)
		}
		out.Tasks = append(out.Tasks, t)
	}
	return out
}

// streams says where those of a task lead.
func (c *Client) streams(t *step.Task, s *cluster.StepSpec, l *cluster.Launch) {
	t.Stdin = c.stream(s, s.Stdin, t.Rank, l, true)
	t.Stdout = c.stream(s, s.Stdout, t.Rank, l, false)
	t.Stderr = c.stream(s, s.Stderr, t.Rank, l, false)
	if t.Stdout.Kind == step.File && (s.Stderr == "" || s.Stderr == s.Stdout) {
		t.Stderr = step.IO{Kind: step.Same}
	}
}

// stream says where one stream of a task leads: to srun, nowhere, or to a file of the task's own.
// Files that all tasks share are written by srun itself.
func (c *Client) stream(s *cluster.StepSpec, mode string, rank int, l *cluster.Launch, input bool) step.IO {
	switch mode {
	case "", "all":
		if input && s.PTY == nil && mode == "" && !s.StdinOpen {
			return step.IO{Kind: step.Null}
		}
		return step.IO{Kind: step.Stream}
	case "none":
		return step.IO{Kind: step.Null}
	}
	if k, err := strconv.Atoi(mode); err == nil {
		if k == rank {
			return step.IO{Kind: step.Stream}
		}
		return step.IO{Kind: step.Null}
	}
	return step.IO{Kind: step.File, Path: c.absolute(s.WorkDir, c.cfg.FileName(mode, l)), Append: s.Append}
}

// stepChanged looks whether a step managed here is over. Called with mu held.
func (c *Client) stepChanged(st *step.Status) {
	ls, ok := c.steps[cluster.StepID{Job: st.ID.Job, Step: st.ID.Step}]
	if !ok || !ls.endedAt.IsZero() || ls.record.Attempt != st.ID.Attempt {
		return
	}
	for _, id := range ls.ids {
		if h := c.have.get(id); h == nil || h.State != step.Ended {
			return
		}
	}
	ls.endedAt = time.Now()
	rec := &ls.record
	rec.Ended = ls.endedAt
	var used []cluster.RankUsage
	for i, id := range ls.ids {
		for _, t := range c.have.get(id).Tasks {
			e := t.Exit
			if t.Errno != 0 {
				e = cluster.ExitStatus{Code: int(min(t.Errno, 255))}
			}
			if max(e.Code, e.Signal) > max(rec.Exit.Code, rec.Exit.Signal) {
				rec.Exit = e
			}
			if e != (cluster.ExitStatus{}) || t.Error != "" {
				end := cluster.TaskEnd{Rank: t.Rank, Node: id.Node, Exit: e, At: t.Ended, OOM: t.OOM, Error: t.Error}
				if end.Before(rec.Failed) {
					rec.Failed = &end
				}
			}
			used = append(used, cluster.RankUsage{Node: i, Rank: t.Rank, TaskUsage: t.Usage})
		}
	}
	rec.Usage = cluster.SumUsage(used)
	rec.Outcome, rec.CancelledBy = outcomeOf(rec.Exit), ls.endedBy
	if ls.limited {
		rec.Outcome = cluster.TimedOut
	}
	if slices.ContainsFunc(ls.ids, func(id step.ID) bool { return c.have.get(id).OOMKills > 0 }) {
		rec.Outcome, rec.Exit = cluster.OutOfMemory, cluster.OOMExit
	}
	c.tellStep(ls)
	c.free()
	c.drop(ls)
}

// takenBefore reports whether a step of an attempt before still has a number. One that has ended gives it up, though nobody
// came for its output. Called with mu held.
func (c *Client) takenBefore(h *jobHere, number int) bool {
	ls := c.steps[cluster.StepID{Job: h.job.ID, Step: number}]
	if ls == nil || ls.endedAt.IsZero() || ls.record.Attempt == h.job.Attempt {
		return ls != nil
	}
	c.orphaned(ls)
	delete(c.steps, ls.record.ID)
	return false
}

// drop forgets an ended step once its output was taken, or nobody came for it.
func (c *Client) drop(ls *liveStep) {
	if ls.endedAt.IsZero() || ls.attached > 0 {
		return
	}
	if len(ls.drained) < len(ls.ids) && time.Since(ls.endedAt) < drainTime {
		return
	}
	if len(ls.drained) < len(ls.ids) {
		c.orphaned(ls)
	}
	delete(c.steps, ls.record.ID)
	var here []step.ID
	for _, id := range ls.ids {
		if c.local(id.Node) {
			here = append(here, id)
			c.have.drop(id)
		} else {
			c.forgetPart(id)
		}
	}
	if len(here) > 0 {
		c.try("forget", here[0], c.cfg.Runner.Forget(here...))
	}
}

// orphaned ends an allocation that srun made for this step and that nobody will end: srun was killed.
func (c *Client) orphaned(ls *liveStep) {
	first := ls.lead
	h := c.nodes[first].jobs[ls.record.ID.Job]
	if h == nil || h.job.Attempt != ls.record.Attempt || h.job.Spec.Kind != cluster.SrunJob || h.told {
		return
	}
	h.told = true
	u := c.update(h, cluster.BatchOver)
	u.Exit = ls.record.Exit
	c.report(first, u)
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// expireSteps drops ended steps whose output nobody takes, and kills those that TERM did not end;
// it tells when to look again.
func (c *Client) expireSteps(now time.Time) (again time.Time) {
	for _, ls := range c.steps {
		c.drop(ls)
		if at := ls.killAt; !at.IsZero() && ls.endedAt.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.killAt = time.Time{}
				c.signalStepNow(ls, syscall.SIGKILL)
			}
		}
		if at := ls.goneAt; !at.IsZero() && ls.endedAt.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.goneAt = time.Time{}
				c.killOrphan(ls)
			}
		}
		if at := c.stepExpires(ls); !at.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.limited = true
				c.endStep(ls, cluster.TimedOut)
				again = sooner(again, ls.killAt)
			}
		}
		if !ls.endedAt.IsZero() {
			again = sooner(again, ls.endedAt.Add(drainTime))
		}
	}
	return again
}

// killOrphan kills a step whose srun has died while its script goes on.
func (c *Client) killOrphan(ls *liveStep) {
	h := c.nodes[ls.lead].jobs[ls.record.ID.Job]
	if h == nil || h.job.Phase != cluster.Running || h.told {
		ls.endedBy = nil
		return
	}
	c.announceEndOf(ls, cluster.Cancelled)
	c.signalStepNow(ls, syscall.SIGKILL)
}

// stepExpires is when a step's own time limit is over, zero: it has none, or is ending. The limit of srun's own job is the job's.
func (c *Client) stepExpires(ls *liveStep) time.Time {
	rec := &ls.record
	h := c.nodes[ls.lead].jobs[rec.ID.Job]
	switch {
	case rec.Limit <= 0 || ls.limited || ls.killed || !ls.endedAt.IsZero() || rec.Started.IsZero():
		return time.Time{}
	case h == nil || h.job.Phase != cluster.Running || h.job.Spec.Kind == cluster.SrunJob:
		return time.Time{}
	}
	return rec.Started.Add(rec.Limit)
}

// recoverStep brings back a step that ran before this daemon started. Called with mu held.
func (c *Client) recoverStep(st *step.Status) {
	if len(st.Note) == 0 {
		return
	}
	var n note
	if wire.Unmarshal(st.Note, &n) != nil {
		return
	}
	if _, known := c.steps[n.Record.ID]; known {
		return
	}
	if n.Lead == "" {
		n.Lead = n.IDs[0].Node // a note of an older muster, whose steps were of one client
	}
	if !c.local(n.Lead) {
		return // another client leads it
	}
	for _, id := range n.IDs {
		if !c.local(id.Node) {
			c.have.put(id, &step.Status{ID: id, State: step.Running}) // until its client tells
		}
	}
	c.steps[n.Record.ID] = &liveStep{record: n.Record, spec: n.Spec, ids: n.IDs, lead: n.Lead, key: n.Key, drained: map[cluster.NodeName]bool{}}
}
