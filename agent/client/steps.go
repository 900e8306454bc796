package client

import (
	"context"
	"fmt"
	"io"
	"maps"
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
	told     bool      // its start was reported
	endedAt  time.Time // all nodes are over
	attached int       // connections taking its output
	drained  map[cluster.NodeName]bool
}

// note is what comes back from the supervisor after a restart of this daemon.
type note struct {
	Record cluster.Step     `json:"record"`
	Spec   cluster.StepSpec `json:"spec"`
	IDs    []step.ID        `json:"ids"`
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
	api.HandleTunnel(m, api.AttachStep, api.User, c.checkAttach, c.attachStep)
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

// jobLedHere finds a live job whose first node is one of this client's.
func (c *Client) jobLedHere(id cluster.JobID, who api.Caller) (*jobHere, *api.Error) {
	for _, name := range c.order {
		h, ok := c.nodes[name].jobs[id]
		if !ok || h.job.Alloc.Shares[0].Node != name {
			continue
		}
		if who.UID != h.job.Spec.UID && !who.Operator() {
			return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "job %d belongs to user %s", id, h.job.Spec.User)
		}
		if h.job.Phase == cluster.Ending || h.told {
			return nil, cluster.Errorf(cluster.Conflict, cluster.ErrFinished, "job %d is ending", id)
		}
		return h, nil
	}
	return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run here", id)
}

// createStep places a step in its job's allocation and starts it.
func (c *Client) createStep(ctx context.Context, who api.Caller, q api.StepRequest) (api.StepResponse, error) {
	for {
		c.mu.Lock()
		freed := c.freed
		h, err := c.jobLedHere(q.Job, who)
		var ls *liveStep
		if err == nil {
			ls, err = c.place(h, &q.Spec)
		}
		c.mu.Unlock()
		if err == nil {
			return c.startStep(h, ls)
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

// place reserves a step's resources. Called with mu held.
func (c *Client) place(h *jobHere, spec *cluster.StepSpec) (*liveStep, *api.Error) {
	used := map[cluster.NodeName]cluster.StepUse{}
	next, live := h.job.NextStep, 0
	for _, ls := range c.steps {
		if ls.record.ID.Job != h.job.ID {
			continue
		}
		next = max(next, ls.record.ID.Step+1)
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
			used[sh.Node] = u
		}
	}
	if live >= maxStepsHere {
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrBusy, "job %d has %d live steps", h.job.ID, live)
	}
	next = max(next, h.nextStep)
	shares, err := cluster.PlaceStep(h.job, used, spec)
	if err != nil {
		return nil, err
	}
	h.nextStep = next + 1
	j := h.job
	ls := &liveStep{spec: *spec, drained: map[cluster.NodeName]bool{}, record: cluster.Step{
		ID: cluster.StepID{Job: j.ID, Step: next}, Attempt: j.Attempt, Name: spec.Name, User: j.Spec.User, UID: j.Spec.UID,
		Shares: shares, Distribution: spec.Distribution, SubmitLine: spec.SubmitLine, SrunHost: spec.SrunHost,
		SrunPID: spec.SrunPID, Started: time.Now(), Limit: spec.Limit}}
	for _, sh := range shares {
		ls.record.Tasks += sh.Tasks
		ls.ids = append(ls.ids, step.ID{Job: j.ID, Attempt: j.Attempt, Step: next, Node: sh.Node})
	}
	c.steps[ls.record.ID] = ls
	for _, id := range ls.ids {
		c.have[id] = &step.Status{ID: id, State: step.Starting}
	}
	return ls, nil
}

// startStep starts a placed step on all its nodes.
func (c *Client) startStep(h *jobHere, ls *liveStep) (api.StepResponse, error) {
	counts := make([]int, len(ls.record.Shares))
	for i, sh := range ls.record.Shares {
		counts[i] = sh.Tasks
	}
	ranks := cluster.RankLayout(counts, &ls.spec)
	programs, err := parseMultiProg(ls.spec.MultiProg, ls.record.Tasks)
	if err != nil {
		c.dropStep(ls)
		return api.StepResponse{}, err
	}
	memo, _ := wire.Marshal(note{Record: ls.record, Spec: withoutEnv(ls.spec), IDs: ls.ids})
	out := api.StepResponse{Step: ls.record}
	var specs []step.Spec
	for i, id := range ls.ids {
		sp := c.stepSpec(h, ls, ranks, i, programs)
		if i == 0 {
			sp.Note = memo
		}
		specs = append(specs, sp)
		out.Nodes = append(out.Nodes, api.StepNode{Node: id.Node, Ranks: ranks[i]})
	}
	if err := c.cfg.Runner.Start(specs...); err != nil {
		c.dropStep(ls)
		return api.StepResponse{}, fmt.Errorf("start step %d of job %d: %w", ls.record.ID.Step, ls.record.ID.Job, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ls.endedAt.IsZero() {
		c.tellStep(ls)
	}
	return out, nil
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
		delete(c.have, id)
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
	c.report(ls.ids[0].Node, cluster.Update{Kind: cluster.StepNow, Job: rec.ID.Job, Attempt: rec.Attempt, At: time.Now(), Step: &rec})
}

// stepSpec is one node's part of a step.
func (c *Client) stepSpec(h *jobHere, ls *liveStep, ranks [][]int, i int, programs map[int][]string) step.Spec {
	s, id := &ls.spec, ls.ids[i]
	n := c.nodes[id.Node]
	c.mu.Lock()
	cfg := c.config
	c.mu.Unlock()
	out := step.Spec{ID: id, UID: h.job.Spec.UID, GID: h.job.Spec.GID, Groups: h.job.Spec.Groups, Dir: s.WorkDir,
		Umask: s.Umask, Rlimits: s.Rlimits, Env: s.Env, PTY: s.PTY, HostName: c.hostName(n), Hosts: c.hosts(n), PIDEnv: c.cfg.PIDEnv}
	if s.PTY != nil && i > 0 {
		out.PTY = nil
	}
	bind := cluster.Bind(s, ls.record.Shares[i], &n.Inventory)
	for local, rank := range ranks[i] {
		l := &cluster.Launch{Job: h.job, Config: &cfg, Inventory: &n.Inventory, Node: id.Node, NodeID: i, Step: &ls.record,
			Spec: s, Rank: rank, LocalRank: local, Ranks: ranks, Daemon: c.cfg.Daemon}
		l.TaskGPUs = cluster.TaskGPUs(s, ls.record.Shares[i].GPUs, local, &n.Inventory)
		t := step.Task{Rank: rank, Argv: s.Argv, Env: c.environ(l, s.Env)}
		if programs != nil {
			t.Argv = programs[rank]
		}
		if bind.Kind != "none" && !n.Inventory.Hollow {
			t.CPUs = bind.Of(local)
		}
		t.Stdin = c.stream(s, s.Stdin, rank, l, true)
		t.Stdout = c.stream(s, s.Stdout, rank, l, false)
		t.Stderr = c.stream(s, s.Stderr, rank, l, false)
		if s.Stderr == "" && t.Stdout.Kind == step.File || s.Stderr == s.Stdout && t.Stdout.Kind == step.File {
			t.Stderr = step.IO{Kind: step.Same}
		}
		out.Tasks = append(out.Tasks, t)
	}
	return out
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

// parseMultiProg reads a --multi-prog file: lines of "ranks program arguments", with %t the rank
// and %o its offset in the line's ranks.
func parseMultiProg(text string, tasks int) (map[int][]string, error) {
	if text == "" {
		return nil, nil
	}
	out := map[int][]string{}
	for i, line := range strings.Split(text, "\n") {
		words := splitWords(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		ranks := cluster.RangeIDSet(0, tasks-1).Minus(cluster.NewIDSet(slices.Collect(maps.Keys(out))...)) // *: all others
		if words[0] != "*" {
			set, err := cluster.ParseIDSet(words[0])
			if err != nil || len(words) < 2 {
				return nil, cluster.Errorf(cluster.Invalid, "", "Line %d of configuration file invalid", i+1)
			}
			ranks = set
		}
		offset := 0
		for r := range ranks.All() {
			if _, twice := out[r]; twice {
				return nil, cluster.Errorf(cluster.Invalid, "", "Duplicate record for task %d", r)
			}
			argv := slices.Clone(words[1:])
			for k := range argv {
				argv[k] = strings.NewReplacer("%t", strconv.Itoa(r), "%o", strconv.Itoa(offset)).Replace(argv[k])
			}
			out[r] = argv
			offset++
		}
	}
	for r := range tasks {
		if out[r] == nil {
			return nil, cluster.Errorf(cluster.Invalid, "", "Configuration file invalid, no record for task id %d", r)
		}
	}
	return out, nil
}

// splitWords splits at blanks, honouring quotes and backslashes.
func splitWords(line string) (out []string) {
	var b strings.Builder
	quote, in := rune(0), false
	esc := false
	for _, r := range line {
		switch {
		case esc:
			b.WriteRune(r)
			esc = false
		case r == '\\' && quote != '\'':
			esc, in = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, in = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if in {
				out = append(out, b.String())
				b.Reset()
				in = false
			}
		default:
			b.WriteRune(r)
			in = true
		}
	}
	if in {
		out = append(out, b.String())
	}
	return out
}

// stepChanged looks whether a step managed here is over. Called with mu held.
func (c *Client) stepChanged(st *step.Status) {
	ls, ok := c.steps[cluster.StepID{Job: st.ID.Job, Step: st.ID.Step}]
	if !ok || !ls.endedAt.IsZero() || ls.record.Attempt != st.ID.Attempt {
		return
	}
	for _, id := range ls.ids {
		if h := c.have[id]; h == nil || h.State != step.Ended {
			return
		}
	}
	ls.endedAt = time.Now()
	rec := &ls.record
	rec.Ended = ls.endedAt
	for _, id := range ls.ids {
		for _, t := range c.have[id].Tasks {
			e := t.Exit
			if t.Errno != 0 {
				e = cluster.ExitStatus{Code: int(min(t.Errno, 255))}
			}
			if max(e.Code, e.Signal) > max(rec.Exit.Code, rec.Exit.Signal) {
				rec.Exit = e
			}
			rec.Usage.UserCPU += t.Usage.UserCPU
			rec.Usage.SystemCPU += t.Usage.SystemCPU
			rec.Usage.MaxRSS = max(rec.Usage.MaxRSS, t.Usage.MaxRSS)
		}
	}
	rec.Outcome = outcomeOf(rec.Exit)
	c.tellStep(ls)
	c.free()
	c.drop(ls)
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
	for _, id := range ls.ids {
		delete(c.have, id)
	}
	c.try("forget", ls.ids[0], c.cfg.Runner.Forget(ls.ids...))
}

// orphaned ends an allocation that srun made for this step and that nobody will end: srun was killed.
func (c *Client) orphaned(ls *liveStep) {
	first := ls.ids[0].Node
	h := c.nodes[first].jobs[ls.record.ID.Job]
	if h == nil || h.job.Attempt != ls.record.Attempt || h.job.Spec.Kind != cluster.SrunJob || h.told {
		return
	}
	h.told = true
	u := c.update(h, cluster.BatchOver)
	u.Exit = ls.record.Exit
	c.report(first, u)
}

// expireSteps drops ended steps whose output nobody takes; it tells when to look again.
func (c *Client) expireSteps(time.Time) (again time.Time) {
	for _, ls := range c.steps {
		c.drop(ls)
		if !ls.endedAt.IsZero() {
			if at := ls.endedAt.Add(drainTime); again.IsZero() || at.Before(again) {
				again = at
			}
		}
	}
	return again
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
	c.steps[n.Record.ID] = &liveStep{record: n.Record, spec: n.Spec, ids: n.IDs, drained: map[cluster.NodeName]bool{}}
}

func (c *Client) liveStep(id cluster.StepID, who api.Caller) (*liveStep, *api.Error) {
	ls, ok := c.steps[id]
	if !ok {
		return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "step %d.%d does not run here", id.Job, id.Step)
	}
	if who.UID != ls.record.UID && !who.Operator() {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "step %d.%d belongs to user %s", id.Job, id.Step, ls.record.User)
	}
	return ls, nil
}

func (c *Client) signalStep(ctx context.Context, who api.Caller, q api.StepSignal) (api.Empty, error) {
	if err := c.await(ctx, c.known); err != nil {
		return api.Empty{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ls, err := c.liveStep(q.ID, who)
	if err != nil {
		return api.Empty{}, err
	}
	for _, id := range ls.ids {
		if h := c.have[id]; h == nil || h.State == step.Ended {
			continue
		}
		if q.Kill && c.cfg.EndNote != nil && id == ls.ids[0] {
			if h, _ := c.jobLedHere(q.ID.Job, who); h != nil {
				ended := *h.job
				ended.EndingWhy = cluster.Cancelled
				c.try("note", id, c.cfg.Runner.Say(id, c.cfg.EndNote(&ended, id.Step, id.Node, time.Now())))
			}
		}
		if q.Kill {
			c.try("kill", id, c.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
			continue
		}
		c.try("signal", id, c.cfg.Runner.Signal(id, syscall.Signal(q.Sig), step.Groups))
	}
	return api.Empty{}, nil
}

// checkAttach refuses what can not be attached to.
func (c *Client) checkAttach(who api.Caller, req []byte) error {
	if err := c.await(context.Background(), c.known); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _, _, err := c.attachTarget(who, req)
	return err
}

// attachTarget finds the step and the node's place in it. Called with mu held.
func (c *Client) attachTarget(who api.Caller, req []byte) (ls *liveStep, q api.AttachRequest, i int, err error) {
	if err := wire.Unmarshal(req, &q); err != nil {
		return nil, q, 0, cluster.Errorf(cluster.Invalid, "", "bad request to attach: %v", err)
	}
	ls, lerr := c.liveStep(q.ID, who)
	if lerr != nil {
		return nil, q, 0, lerr
	}
	if i = slices.IndexFunc(ls.ids, func(id step.ID) bool { return id.Node == q.Node }); i < 0 {
		return nil, q, 0, cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "step %d.%d has no node %s", q.ID.Job, q.ID.Step, q.Node)
	}
	return ls, q, i, nil
}

// attachStep carries the stream of one node's part of a step between srun and the supervisor.
func (c *Client) attachStep(ctx context.Context, who api.Caller, req []byte, conn api.Conn) error {
	c.mu.Lock()
	ls, q, i, err := c.attachTarget(who, req)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	ls.attached++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		ls.attached--
		if !ls.endedAt.IsZero() {
			ls.drained[q.Node] = true
			c.drop(ls)
		}
		c.poke()
	}()
	far, err := c.cfg.Runner.Attach(ls.ids[i])
	if err != nil {
		return fmt.Errorf("attach to step %d.%d on %s: %w", q.ID.Job, q.ID.Step, q.Node, err)
	}
	splice(ctx, conn, far)
	return nil
}

// splice copies both ways until either side ends or ctx does.
func splice(ctx context.Context, a, b io.ReadWriteCloser) {
	stop := context.AfterFunc(ctx, func() { a.Close(); b.Close() })
	defer stop()
	done := make(chan struct{})
	go func() { // ends when either connection is closed, below at the latest
		defer close(done)
		_, _ = io.Copy(b, a)
		b.Close()
		a.Close()
	}()
	_, _ = io.Copy(a, b)
	a.Close()
	b.Close()
	<-done
}

// announceEnd writes Slurm's line about why a job ends into the output of its steps.
func (c *Client) announceEnd(h *jobHere, now time.Time) {
	if c.cfg.EndNote == nil {
		return
	}
	for id, st := range c.stepsOf(h) {
		if st.State != step.Ended {
			if text := c.cfg.EndNote(h.job, id.Step, id.Node, now); text != "" {
				c.try("note", id, c.cfg.Runner.Say(id, text))
			}
		}
	}
}
