package client

import (
	"context"
	"errors"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Parts of a step that another client leads are held here until all of the step's nodes are ready: no
// task begins if some node can not take part, and all begin at nearly the same time.

// heldTime is how long parts are held for a word to begin that does not come.
const heldTime = partsTime + jobTime

// heldKey names a step of a job's attempt.
type heldKey struct {
	step    cluster.StepID
	attempt int
}

// heldParts are this client's parts of one step, ready to begin.
type heldParts struct {
	specs []step.Spec
	late  *time.Timer
}

// hold keeps parts until beginParts, letGo, or heldTime has passed.
func (c *Client) hold(k heldKey, specs []step.Spec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.letGo(k)
	h := &heldParts{specs: specs}
	h.late = time.AfterFunc(heldTime, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held[k] == h {
			c.letGo(k)
		}
	})
	c.held[k] = h
	for _, sp := range specs {
		c.have.Put(sp.ID, &step.Status{ID: sp.ID, State: step.Starting})
	}
}

// letGo drops parts that shall not begin. Called with mu held.
func (c *Client) letGo(k heldKey) {
	h := c.held[k]
	if h == nil {
		return
	}
	h.late.Stop()
	delete(c.held, k)
	for _, sp := range h.specs {
		c.have.Drop(sp.ID)
	}
	c.poke()
}

// checkHeld drops parts of nodes whose job is over. Called with mu held.
func (c *Client) checkHeld(fresh map[cluster.NodeName]uint64) {
	for k, h := range c.held {
		n := h.specs[0].ID.Node
		if _, ok := fresh[n]; !ok {
			continue
		}
		if j := c.nodes[n].jobs[k.step.Job]; j == nil || j.job.Attempt != k.attempt || j.job.Phase == cluster.Ending {
			c.letGo(k)
		}
	}
}

// beginParts starts what is held, and passes the word on.
func (c *Client) beginParts(ctx context.Context, who api.Caller, q api.PartsBegin) (api.Empty, error) {
	k := heldKey{cluster.StepID{Job: q.Job, Step: q.Step}, q.Attempt}
	c.mu.Lock()
	h := c.held[k]
	if h == nil {
		c.mu.Unlock()
		return api.Empty{}, cluster.Errorf(cluster.Conflict, cluster.ErrFinished,
			"step %d.%d is not ready here", q.Job, q.Step)
	}
	n := h.specs[0].ID.Node
	if j := c.nodes[n].jobs[q.Job]; j == nil || !c.sisters.takesPart(who, j) {
		c.mu.Unlock()
		return api.Empty{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d",
			who.Member, q.Job)
	}
	h.late.Stop()
	delete(c.held, k)
	c.mu.Unlock()
	c.slog.Debug("parts of a step begin", "job", q.Job, "step", q.Step, "node", n)
	return api.Empty{}, both(func() error { return c.cfg.Runner.Start(h.specs...) },
		func() error { return c.begin(ctx, q.PartsQuery, q.Onward) })
}

// begin has clients start what they hold.
func (c *Client) begin(ctx context.Context, q api.PartsQuery, groups []api.PartsGroup) error {
	return c.sisters.spread(ctx, groups, func(ctx context.Context, p *api.Client, nodes []cluster.NodeName, onward []api.PartsGroup) error {
		q := q
		q.Nodes = nodes
		_, err := api.Call(ctx, p, api.BeginParts, api.PartsBegin{PartsQuery: q, Onward: onward})
		if e := (*api.Error)(nil); errors.As(err, &e) && e.Code == cluster.NotFound && e.Kind == "" {
			return nil // a client of before BeginParts: it did not wait
		}
		return err
	})
}
