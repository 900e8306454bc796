package client

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/fence"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// unplace takes a step back that was placed to see where it would run. The leader of a heterogeneous job may
// keep its number for the components. Called with mu held.
func (c *Client) unplace(h *jobHere, ls *liveStep, keep bool) {
	if !keep {
		h.nextStep = ls.record.ID.Step
	}
	delete(c.steps, ls.record.ID)
	for _, id := range ls.ids {
		c.have.Drop(id)
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
		if !ls.competes(h.job.ID) {
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
			return nil, cluster.Errorf(cluster.Conflict, "",
				"step %d of job %d can not be a part of a step", w.Number, h.job.ID)
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
	return newStep(c, h, spec, next, shares), nil
}

// newStep is a step that has its place. Called with mu held.
func newStep(c *Client, h *jobHere, spec *cluster.StepSpec, number int, shares []cluster.Share) *liveStep {
	j := h.job
	ls := &liveStep{spec: *spec, lead: h.node, drained: map[cluster.NodeName]bool{}}
	ls.record = cluster.NewStep(j, number, spec, shares, time.Now())
	for _, sh := range shares {
		ls.ids = append(ls.ids, step.ID{Job: j.ID, Attempt: j.Attempt, Step: number, Node: sh.Node})
	}
	c.steps[ls.record.ID] = ls
	for _, id := range ls.ids {
		c.have.Put(id, &step.Status{ID: id, State: step.Starting})
	}
	return ls
}

// startStep starts a placed step on all its nodes.
func (c *Client) startStep(ctx context.Context, h *jobHere, ls *liveStep) (api.StepResponse, error) {
	ranks := ls.ranks()
	programs, err := step.ParseMultiProg(&ls.spec, ls.tasks())
	if err == nil {
		err = c.checkBinds(ls)
	}
	if err == nil {
		c.mu.Lock()
		cfg := c.config
		c.mu.Unlock()
		err = checkManager(&cfg, &ls.spec)
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
			sp, err := c.stepSpec(h, ls, ranks, i, programs)
			if err != nil {
				c.dropStep(ls)
				return api.StepResponse{}, err
			}
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
	groups := c.sisters.groups(ls.ids)
	c.mu.Unlock()
	rec := &ls.record
	get := api.PartsRequest{Step: *rec, Spec: ls.spec, Key: ls.key, Lead: ls.lead, Hold: true}
	if err := c.ready(ctx, get, groups); err != nil {
		return err
	}
	q := api.PartsQuery{Job: rec.ID.Job, Attempt: rec.Attempt, Step: rec.ID.Step}
	return both(func() error {
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
		if path != "" && c.cfg.Program.Around != nil {
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

// stepSpec is one node's part of a step.
func (c *Client) stepSpec(h *jobHere, ls *liveStep, ranks [][]int, i int, programs map[int][]string) (
	out step.Spec, err error) {
	s, id := &ls.spec, ls.ids[i]
	c.mu.Lock()
	cfg := c.config
	c.mu.Unlock()
	inv, found := c.hardware.of(id.Node)
	out = step.Spec{ID: id, UID: h.job.Spec.UID, GID: h.job.Spec.GID, Groups: h.job.Spec.Groups,
		Dir: s.WorkDir, Umask: s.Umask, Rlimits: cfg.Propagated(s.Rlimits, s.OwnLimits), Env: s.Env,
		PTY: s.PTY, HostName: c.hardware.hostName(id.Node), Hosts: c.hardware.hosts(id.Node), PIDEnv: c.cfg.PIDEnv,
		OOMText: c.oomText(id)}
	for k := range h.job.Alloc.Shares {
		if sh := h.job.Alloc.Shares[k]; sh.Node == id.Node {
			out.Fence = fence.OfStep(fence.Of(&cfg, &inv, found, sh), s, ls.record.Shares[i])
		}
	}
	if s.PTY != nil && i > 0 {
		out.PTY = nil
	}
	err = c.cfg.manage(&out, &cfg, ls, ranks, i, inv.Addr)
	if err == nil {
		err = c.cfg.precede(&out, s.Cast)
	}
	if err != nil {
		return out, err
	}
	bind, mem, around := cluster.Bind(s, ls.record.Shares[i], &inv), cluster.BindMem(s.MemBind), c.around(&cfg, id.Node, s)
	if out.Container = c.cfg.inside(s.Inside, cfg.Containers, h.job.Spec, &around); out.Container != nil {
		out.Container.Save = s.Save
		out.Container.First, out.Container.Terminal = i == 0, s.Terminal
		if file := displayOf(c, h.job.ID, id.Node).Path(); file != "" {
			out.Container.Scripts = append(out.Container.Scripts, file)
		}
	}
	for local, rank := range ranks[i] {
		l := &cluster.Launch{Job: h.job, Config: &cfg, Inventory: &inv, Node: id.Node, NodeID: i, Step: &ls.record,
			Fenced: fence.Fenced(&cfg, &inv), Spec: s, Rank: rank, LocalRank: local, Ranks: ranks, Daemon: c.cfg.Daemon}
		l.GPUs = cluster.BindGPUs(s, ls.record.Shares[i].GPUs, local, &inv)
		if out.Private == nil {
			out.Private = c.private(id.Node, id, l)
		}
		if ls.alone() {
			out.Dir = "/"
			out.Tasks = append(out.Tasks, castTask(c, ls, l))
			continue
		}
		t := step.Task{Rank: rank, Argv: s.Argv, Env: c.environ(l, s.Env)}
		t.Env = append(t.Env, managed(out.Server, &ls.record, rank)...)
		if programs != nil {
			t.Argv = programs[rank]
		}
		sent(s, &t, id)
		if !around.Empty() {
			t.Argv = around.Command(c.cfg.Program.aroundIn(out.Container), t.Argv)
		}
		if !inv.Hollow {
			t.CPUs = bind.Of(local)
		}
		t.Memory, t.Refused = step.BindMemory(mem, local)
		t.Greeting = c.cfg.Greeting(l, bind, mem, step.NUMANodes())
		if s.PTY == nil || rank == 0 { // the others have no terminal: they read and write nothing
			c.streams(&t, s, l)
		}
		out.Tasks = append(out.Tasks, t)
	}
	return out, nil
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
	file := step.IO{Kind: step.File, Path: c.absolute(s.WorkDir, c.cfg.FileName(mode, l)), Append: s.Append}
	if s.Label && !input {
		file.Label = cluster.RankLabel(rank, l.Step.Tasks)
	}
	return file
}

// takenBefore reports whether a step of an attempt before still has a number. One that has ended gives it up,
// though nobody came for its output. Called with mu held.
func (c *Client) takenBefore(h *jobHere, number int) bool {
	ls := c.steps[cluster.StepID{Job: h.job.ID, Step: number}]
	if ls == nil || ls.endedAt.IsZero() || ls.record.Attempt == h.job.Attempt {
		return ls != nil
	}
	c.orphaned(ls)
	delete(c.steps, ls.record.ID)
	return false
}
