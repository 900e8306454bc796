package client

import (
	"context"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// drainTime is how long an ended step's output waits for a client that is away.
const drainTime = 30 * time.Second

// maxStepsHere bounds the live steps of one job.
const maxStepsHere = 4096

// liveStep is a step managed here: this client's node is the first of its job.
type liveStep struct {
	record  cluster.Step
	spec    cluster.StepSpec
	ids     []step.ID
	lead    cluster.NodeName // the job's first node, of this client
	key     string           // of the request that made it
	told    bool             // its start was reported
	endedAt time.Time        // all nodes are over
	killAt  time.Time        // TERM was sent; then what is left gets KILL
	goneAt  time.Time        // its srun has died; it is killed then, unless the script has ended, too
	killed  bool             // KILL or TERM was sent to all of it: nothing of it begins any more
	endedBy *uint32          // the user who cancelled it
	limited bool             // its time limit has ended it
	takers  map[*taker]bool  // of its output
	drained map[cluster.NodeName]bool
}

// taker is a connection that takes the output of a node's part of a step.
type taker struct {
	node cluster.NodeName
	cut  context.CancelFunc
}

// take notes that somebody takes the output of a part, until ctx ends. Called with the client's mu held.
func (ls *liveStep) take(ctx context.Context, i int) (context.Context, *taker) {
	ctx, cut := context.WithCancel(ctx)
	t := &taker{ls.ids[i].Node, cut}
	if ls.takers == nil {
		ls.takers = map[*taker]bool{}
	}
	ls.takers[t] = true
	return ctx, t
}

// leave ends that.
func (ls *liveStep) leave(t *taker) {
	t.cut()
	delete(ls.takers, t)
}

// cutOff ends the connections to a node that is lost: it may be silent, and they would wait for it.
func (ls *liveStep) cutOff(n cluster.NodeName) {
	for t := range ls.takers {
		if t.node == n {
			t.cut()
		}
	}
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
	create := func(ctx context.Context, who api.Caller, q api.StepRequest) (api.StepResponse, error) {
		if err := c.await(ctx, c.known, c.told); err != nil {
			return api.StepResponse{}, err
		}
		return c.createStep(ctx, who, q)
	}
	api.Handle(m, api.CreateStep, create)
	api.Handle(m, api.CreateHelped, create)
	api.Handle(m, api.CreateCast, create)
	api.Handle(m, api.SignalStep, c.signalStep)
	api.Handle(m, api.UpdateStep, c.updateStep)
	api.Handle(m, api.WaitStep, c.waitStep)
	api.Handle(m, api.MeasureSteps, c.measureSteps)
	api.Handle(m, api.TailOutput, c.tailOutput)
	noticeRoutes(c, m)
	api.HandleTunnel(m, api.AttachStep, api.User, c.checkAttach, c.attachStep)
	watchRoutes(c, m)
	api.Handle(m, api.AdoptSession, c.adoptSession)
	c.partRoutes(m)
	layersOf(c).Routes(m)
	x11Routes(c, m)
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
			return cluster.Errorf(cluster.Unavailable, "",
				"this node's daemon is starting and has not heard from the servers; try again")
		}
	}
	return nil
}

// jobLedHere finds a live job whose first node is one of this client's, and that is not ending.
func (c *Client) jobLedHere(id cluster.JobID, who api.Caller) (*jobHere, *api.Error) {
	h, err := c.jobKeptHere(id, who)
	if err == nil && (h.job.Phase == cluster.Ending || h.isReported()) {
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
		return jobFor(c, h, who)
	}
	return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run here", id)
}

// jobFor refuses a job to those who have no right to it. Called with mu held.
func jobFor(c *Client, h *jobHere, who api.Caller) (*jobHere, *api.Error) {
	if who.UID != h.job.Spec.UID && !who.Operator() {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "job %d belongs to user %s", h.job.ID,
			h.job.Spec.User)
	}
	if who.Role == cluster.RoleNode && !c.sisters.takesPart(who, h) {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d", who.Member,
			h.job.ID)
	}
	return h, nil
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
			ls, err = placeAny(c, h, &q.Spec)
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
