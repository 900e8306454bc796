package client

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// What others may do with a live step: signal it, wait for it, take its output.

func (c *Client) liveStep(id cluster.StepID, who api.Caller) (*liveStep, *api.Error) {
	ls, ok := c.steps[id]
	if !ok {
		return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "step %d.%d does not run here", id.Job, id.Step)
	}
	if who.UID != ls.record.UID && !who.Operator() {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "step %d.%d belongs to user %s",
			id.Job, id.Step, ls.record.User)
	}
	if h := c.nodes[ls.lead].jobs[id.Job]; who.Role == cluster.RoleNode && (h == nil || !c.sisters.takesPart(who, h)) {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d", who.Member, id.Job)
	}
	return ls, nil
}

func (c *Client) signalStep(ctx context.Context, who api.Caller, q api.StepSignal) (api.Empty, error) {
	if err := c.await(ctx, c.known); err != nil {
		return api.Empty{}, err
	}
	calls, err := c.signalLive(who, q)
	if err != nil {
		return api.Empty{}, err
	}
	told(calls) // what the caller does next is not to overtake the signal
	return api.Empty{}, nil
}

// signalLive returns the calls by which other clients are told.
func (c *Client) signalLive(who api.Caller, q api.StepSignal) ([]chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ls, err := c.liveStep(q.ID, who)
	if err != nil {
		return nil, err
	}
	if ls.alone() {
		signalCast(c, ls, q)
		return nil, nil
	}
	h := c.nodes[ls.lead].jobs[q.ID.Job]
	ending := h != nil && h.job.Phase == cluster.Ending
	switch {
	case q.Gone && !ls.endedAt.IsZero():
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrFinished, "step %d.%d is over", q.ID.Job, q.ID.Step)
	case (q.Kill || q.Term || q.Gone) && ending: // its tasks have the time that the job's end gives them
	case q.Gone && h != nil && h.job.RunsScript():
		ls.goneAt = time.Now().Add(scriptTime)
		ls.endedBy = &who.UID
		c.poke()
	case q.Kill, q.Gone:
		ls.endedBy = &who.UID
		c.sayEnd(ls, cluster.Cancelled, true)
		c.signalStepNow(ls, syscall.SIGKILL)
	case q.Term:
		c.endStep(ls, cluster.Cancelled)
		c.poke()
	default:
		for _, id := range ls.ids {
			if h := c.have.Get(id); h != nil && h.State != step.Ended {
				c.signalPart(id, syscall.Signal(q.Sig), step.Leaders)
			}
		}
	}
	return c.sisters.calls(ls.ids), nil
}

// updateStep changes the time limits of live steps. An ErrJobID says that there is none.
func (c *Client) updateStep(ctx context.Context, who api.Caller, q api.StepUpdate) (api.Empty, error) {
	if err := c.await(ctx, c.known); err != nil {
		return api.Empty{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := false
	for id := range c.steps {
		if id.IsCast() || id.Job != q.ID.Job || q.ID.Step != cluster.AllSteps && id.Step != q.ID.Step {
			continue
		}
		ls, err := c.liveStep(id, who)
		if err != nil {
			return api.Empty{}, err
		}
		found = true
		limit := q.Limit
		if q.Delta && ls.record.Limit > 0 {
			limit = max(ls.record.Limit+q.Limit, time.Minute)
		}
		ls.record.Limit = limit
		c.keepRecord(ls)
		c.tellStep(ls)
	}
	if !found {
		return api.Empty{}, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "step %d.%d does not run",
			q.ID.Job, q.ID.Step)
	}
	c.poke()
	return api.Empty{}, nil
}

// scriptTime is how long it may take until it is known that a script has ended: the sruns that die with it do not
// end their steps, which have the time that the job's end gives them.
const scriptTime = time.Second

// maxStepWait bounds how long one call waits for a step's end.
const maxStepWait = 10 * time.Second

// waitStep returns once other steps may have what this one had.
func (c *Client) waitStep(ctx context.Context, who api.Caller, q api.StepWait) (api.Empty, error) {
	ctx, cancel := context.WithTimeout(ctx, min(q.Timeout, maxStepWait))
	defer cancel()
	if err := c.await(ctx, c.known); err != nil {
		return api.Empty{}, err
	}
	for {
		c.mu.Lock()
		freed := c.freed
		ls := c.steps[q.ID]
		if ls == nil || !ls.endedAt.IsZero() {
			c.mu.Unlock()
			return api.Empty{}, nil
		}
		_, err := c.liveStep(q.ID, who)
		c.mu.Unlock()
		if err != nil {
			return api.Empty{}, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return api.Empty{}, nil
		}
	}
}

// signalStepNow sends a signal to a step's tasks, KILL to every process. Called with mu held.
func (c *Client) signalStepNow(ls *liveStep, sig syscall.Signal) {
	ls.killed = ls.killed || sig == syscall.SIGKILL || sig == syscall.SIGTERM
	scope := step.Leaders
	if sig == syscall.SIGKILL {
		scope = step.All
	}
	for _, id := range ls.ids {
		if h := c.have.Get(id); h != nil && h.State != step.Ended {
			c.signalPart(id, sig, scope)
		}
	}
}

// endStep has a step's tasks end in their own way, and kills them KillWait later. Called with mu held.
func (c *Client) endStep(ls *liveStep, why cluster.Outcome) {
	c.sayEnd(ls, why, true)
	c.signalStepNow(ls, syscall.SIGTERM)
	c.signalStepNow(ls, syscall.SIGCONT)
	ls.killAt = time.Now().Add(c.config.KillWait)
}

// sayEnd writes the line about a step's end into its output; a signal that may be its end is told of, too. Called
// with mu held.
func (c *Client) sayEnd(ls *liveStep, why cluster.Outcome, ends bool) {
	first := ls.ids[0]
	h := c.nodes[ls.lead].jobs[ls.record.ID.Job]
	if st := c.have.Get(first); h == nil || st == nil || st.State == step.Ended {
		return
	}
	ended := *h.job
	ended.EndingWhy = why
	c.sayPart(first, c.cfg.EndNote(&ended, first.Step, first.Node, time.Now()), ends)
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
		return nil, q, 0, cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "step %d.%d has no node %s",
			q.ID.Job, q.ID.Step, q.Node)
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
	ctx, t := ls.take(ctx, i)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		ls.leave(t)
		if !ls.endedAt.IsZero() {
			ls.drained[q.Node] = true
			c.drop(ls)
		}
		c.poke()
	}()
	far, err := c.attachTo(ctx, ls.ids[i])
	if err != nil {
		return fmt.Errorf("attach to step %d.%d on %s: %w", q.ID.Job, q.ID.Step, q.Node, err)
	}
	api.Splice(ctx, conn, far)
	return nil
}

// announceEnd writes Slurm's line about why a job ends into the output of its steps.
func (c *Client) announceEnd(h *jobHere, now time.Time) {
	for id, st := range c.stepsOf(h) {
		if st.State != step.Ended {
			if text := c.cfg.EndNote(h.job, id.Step, id.Node, now); text != "" {
				c.try("note", id, c.cfg.Runner.Say(id, text, true))
			}
		}
	}
}
