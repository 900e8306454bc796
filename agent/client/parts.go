package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// A step of a job whose nodes belong to several clients is managed by the client of the first node.
// It has each other client get that one's parts ready, in a tree, and once all are, begin them; those
// tell it when their parts have ended, until it has heard. Signals of the job itself and its end need none of this:
// every client hears of them from the servers.

// jobTime is how long a part waits for the servers to name its job here.
const jobTime = 10 * time.Second

// partRoutes registers what clients answer each other.
func (c *Client) partRoutes(m *api.Mux) {
	api.Handle(m, api.StartParts, c.startParts)
	api.Handle(m, api.StartHelped, c.startParts)
	api.Handle(m, api.StartCast, c.startParts)
	api.Handle(m, api.BeginParts, c.beginParts)
	api.Handle(m, api.SignalParts, c.signalParts)
	api.Handle(m, api.ForgetParts, c.forgetParts)
	api.Handle(m, api.ListParts, c.listParts)
	api.Handle(m, api.TellParts, c.tellParts)
	api.Handle(m, api.MeasureParts, c.measureParts)
	api.HandleTunnel(m, api.AttachPart, api.Node, c.checkPart, c.attachPart)
}

func (c *Client) local(n cluster.NodeName) bool { return c.nodes[n] != nil }

// inventory is what a node of some job led here has. Called with mu held.
func (c *Client) inventory(n cluster.NodeName) *cluster.Inventory {
	if c.local(n) {
		return c.hardware.inventory(n)
	}
	p, _ := c.sisters.of(n)
	return &p.Inventory
}

// ready has clients get their parts of a step ready.
func (c *Client) ready(ctx context.Context, q api.PartsRequest, groups []api.PartsGroup) error {
	c.mu.Lock()
	start := api.StartParts
	switch {
	case q.Spec.Cast != nil:
		start = api.StartCast
	case q.Spec.Helped(c.config.ManagerOf(&q.Spec)):
		start = api.StartHelped
	}
	c.mu.Unlock()
	return c.sisters.spread(ctx, groups, func(ctx context.Context, p *api.Client, nodes []cluster.NodeName, onward []api.PartsGroup) error {
		sub := q
		sub.Nodes, sub.Onward = nodes, onward
		_, err := api.Call(ctx, p, start, sub)
		return api.OldClient(err)
	})
}

// jobHereFor waits until the servers have named the job's attempt for a node of this client, and checks
// that the caller takes part in it.
func (c *Client) jobHereFor(ctx context.Context, who api.Caller, n cluster.NodeName, id cluster.JobID,
	attempt int) (*jobHere, error) {
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	for {
		c.mu.Lock()
		arrived := c.arrived
		var h *jobHere
		if own := c.nodes[n]; own != nil {
			h = own.jobs[id]
		}
		if h != nil && h.job.Attempt == attempt {
			defer c.mu.Unlock()
			if !c.sisters.takesPart(who, h) {
				return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d",
					who.Member, id)
			}
			if h.job.Phase == cluster.Ending || h.isOver() {
				return nil, cluster.Errorf(cluster.Conflict, cluster.ErrFinished, "job %d is ending", id)
			}
			return h, nil
		}
		c.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run on %s", id, n)
		}
	}
}

// startParts starts this client's parts of a step that another leads.
func (c *Client) startParts(ctx context.Context, who api.Caller, q api.PartsRequest) (api.Empty, error) {
	var none api.Empty
	if err := c.await(ctx, c.known); err != nil {
		return none, err
	}
	ls := &liveStep{record: q.Step, spec: q.Spec, key: q.Key, lead: q.Lead}
	for _, sh := range q.Step.Shares {
		ls.ids = append(ls.ids, step.ID{
			Job: q.Step.ID.Job, Attempt: q.Step.Attempt, Step: q.Step.ID.Step, Node: sh.Node,
		})
	}
	ranks := ls.ranks()
	programs, err := step.ParseMultiProg(&ls.spec, ls.tasks())
	if err != nil {
		return none, err
	}
	memo, err := ls.memo()
	if err != nil {
		return none, err
	}
	var specs []step.Spec
	for _, n := range q.Nodes {
		i := slices.IndexFunc(ls.ids, func(id step.ID) bool { return id.Node == n })
		if i < 0 || !c.local(n) {
			return none, cluster.Errorf(cluster.Invalid, "", "node %s of step %d.%d is not here", n,
				q.Step.ID.Job, q.Step.ID.Step)
		}
		h, err := c.jobHereFor(ctx, who, n, q.Step.ID.Job, q.Step.Attempt)
		if err != nil {
			return none, err
		}
		sp, err := c.stepSpec(h, ls, ranks, i, programs)
		if err != nil {
			return none, err
		}
		sp.Note = memo
		specs = append(specs, sp)
	}
	c.mu.Lock()
	for _, sp := range specs {
		if c.have.Get(sp.ID) == nil {
			c.have.Put(sp.ID, &step.Status{ID: sp.ID, State: step.Starting})
		}
	}
	c.mu.Unlock()
	if q.Hold {
		c.hold(heldKey{q.Step.ID, q.Step.Attempt}, specs)
		return none, c.ready(ctx, q, q.Onward)
	}
	return none, both(func() error { return c.cfg.Runner.Start(specs...) },
		func() error { return c.ready(ctx, q, q.Onward) })
}

// memo is what each part carries, so that the first node's client knows its step after a restart.
func (ls *liveStep) memo() ([]byte, error) {
	return wire.Marshal(note{Record: ls.record, Spec: withoutEnv(ls.spec), IDs: ls.ids, Key: ls.key, Lead: ls.lead})
}

// each yields the parts that a query names and that are here. Called with mu held.
func (c *Client) each(who api.Caller, q api.PartsQuery, f func(step.ID, *step.Status)) error {
	for _, n := range q.Nodes {
		own := c.nodes[n]
		if own == nil {
			continue
		}
		h := own.jobs[q.Job]
		if h == nil || h.job.Attempt != q.Attempt {
			continue // over: nothing is left of it
		}
		if !c.sisters.takesPart(who, h) {
			return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d", who.Member, q.Job)
		}
		for id, st := range c.have[n] {
			if id.Job == q.Job && id.Attempt == q.Attempt && id.Step >= 0 && (q.Step == cluster.AllSteps || id.Step == q.Step) {
				f(id, st)
			}
		}
	}
	return nil
}

func (c *Client) signalParts(_ context.Context, who api.Caller, q api.PartsSignal) (api.Empty, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return api.Empty{}, c.each(who, q.PartsQuery, func(id step.ID, st *step.Status) {
		held := heldKey{cluster.StepID{Job: id.Job, Step: id.Step}, id.Attempt}
		switch {
		case st.State == step.Ended:
		case c.held[held] != nil:
			if syscall.Signal(q.Sig) == syscall.SIGKILL {
				c.letGo(held)
			}
		case q.Say != "":
			c.try("note", id, c.cfg.Runner.Say(id, q.Say, !q.Note))
		default:
			c.try("signal", id, c.cfg.Runner.Signal(id, syscall.Signal(q.Sig), step.Scope(q.Scope)))
		}
	})
}

func (c *Client) forgetParts(_ context.Context, who api.Caller, q api.PartsQuery) (api.Empty, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []step.ID
	err := c.each(who, q, func(id step.ID, st *step.Status) {
		if st.State == step.Ended {
			ids = append(ids, id)
		}
	})
	for _, id := range ids {
		c.have.Drop(id)
		delete(c.untold, id)
		c.try("forget", id, c.cfg.Runner.Forget(id))
	}
	return api.Empty{}, err
}

func (c *Client) listParts(ctx context.Context, who api.Caller, q api.PartsQuery) (api.PartsReport, error) {
	var out api.PartsReport
	if err := c.await(ctx, c.known, c.told); err != nil {
		return out, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.each(who, q, func(_ step.ID, st *step.Status) {
		if text, err := wire.Marshal(st); err == nil {
			out.Statuses = append(out.Statuses, text)
		}
	})
	return out, err
}

// tellParts hears from another client how its parts of a step led here stand.
func (c *Client) tellParts(_ context.Context, who api.Caller, q api.PartsReport) (api.Empty, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range q.Statuses {
		var st step.Status
		if err := wire.Unmarshal(text, &st); err != nil {
			return api.Empty{}, cluster.Errorf(cluster.Invalid, "", "status of a part: %v", err)
		}
		if p, ok := c.sisters.of(st.ID.Node); !ok || p.Member != who.Member {
			return api.Empty{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is not node %s",
				who.Member, st.ID.Node)
		}
		c.heard(&st)
	}
	c.poke()
	return api.Empty{}, nil
}

// heard takes a status of a part elsewhere. Called with mu held.
func (c *Client) heard(st *step.Status) {
	if known := c.have.Get(st.ID); known != nil && known.State != step.Ended {
		c.have.Put(st.ID, st)
		c.stepChanged(st)
	}
}

// ledElsewhere is the peer that leads the step of a part here, if another client does. Called with mu held.
func (c *Client) ledElsewhere(id step.ID) (api.NodePeer, bool) {
	own := c.nodes[id.Node]
	if own == nil || id.Step < 0 {
		return api.NodePeer{}, false
	}
	h := own.jobs[id.Job]
	if h == nil || h.job.Attempt != id.Attempt || c.local(h.job.Alloc.Shares[0].Node) {
		return api.NodePeer{}, false
	}
	p, ok := c.sisters.of(h.job.Alloc.Shares[0].Node)
	return p, ok
}

// mustTell notes that the end of a part has to be told to the client that leads its step. Called with mu held.
func (c *Client) mustTell(st *step.Status) {
	if st.State == step.Ended && st.ID.Step >= 0 {
		if _, elsewhere := c.ledElsewhere(st.ID); elsewhere {
			c.untold[st.ID] = true
			select {
			case c.telling <- struct{}{}:
			default:
			}
		}
	}
}

// tell delivers the ends of parts to the clients that lead their steps, until they have heard.
func (c *Client) tell(ctx context.Context) {
	var wait time.Duration
	for {
		select {
		case <-c.telling:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil {
			batches := c.untoldBy()
			if len(batches) == 0 {
				break
			}
			failed := false
			for addr, ids := range batches {
				if err := c.tellOne(ctx, addr, ids); err != nil {
					failed = true
					c.slog.Debug("telling how parts ended failed", "to", addr, "err", err)
				}
			}
			if failed && !pause(ctx, &wait) {
				return
			}
			if !failed {
				wait = 0
			}
		}
	}
}

// untoldBy sorts what is to be told by address, and drops what nobody waits for any more.
func (c *Client) untoldBy() map[string][]step.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string][]step.ID{}
	for id := range c.untold {
		p, elsewhere := c.ledElsewhere(id)
		if st := c.have.Get(id); st == nil || !elsewhere {
			delete(c.untold, id)
			continue
		}
		out[p.Addr] = append(out[p.Addr], id)
	}
	return out
}

func (c *Client) tellOne(ctx context.Context, addr string, ids []step.ID) error {
	var q api.PartsReport
	c.mu.Lock()
	for _, id := range ids {
		if st := c.have.Get(id); st != nil {
			if text, err := wire.Marshal(st); err == nil {
				q.Statuses = append(q.Statuses, text)
			}
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, partsTime)
	defer cancel()
	if _, err := api.Call(ctx, c.cfg.Peer(addr), api.TellParts, q); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		delete(c.untold, id)
	}
	return nil
}

// orParts does something to a part: here by the runner, elsewhere by a call that is not waited for.
// Called with mu held.
func (c *Client) orParts(what string, id step.ID, here func() error,
	elsewhere func(context.Context, *api.Client, api.PartsQuery) error) {
	if c.local(id.Node) {
		c.try(what, id, here())
		return
	}
	p, ok := c.sisters.of(id.Node)
	if !ok || c.cfg.Peer == nil {
		return
	}
	q := api.PartsQuery{Job: id.Job, Attempt: id.Attempt, Step: id.Step, Nodes: []cluster.NodeName{id.Node}}
	c.sisters.call(id.Node, func(ctx context.Context) {
		if err := elsewhere(ctx, c.cfg.Peer(p.Addr), q); err != nil {
			c.slog.Warn("a part of a step could not be told", "what", what, "job", id.Job, "step", id.Step,
				"node", id.Node, "err", err)
		}
	})
}

// signalPart sends a signal to one node's part of a step led here. Called with mu held.
func (c *Client) signalPart(id step.ID, sig syscall.Signal, scope step.Scope) {
	c.orParts("signal", id, func() error { return c.cfg.Runner.Signal(id, sig, scope) },
		func(ctx context.Context, p *api.Client, q api.PartsQuery) error {
			_, err := api.Call(ctx, p, api.SignalParts, api.PartsSignal{
				PartsQuery: q, Sig: int(sig), Scope: uint8(scope),
			})
			return err
		})
}

// sayPart writes a line on the standard error of one node's part. Called with mu held.
func (c *Client) sayPart(id step.ID, text string, ends bool) {
	c.orParts("note", id, func() error { return c.cfg.Runner.Say(id, text, ends) },
		func(ctx context.Context, p *api.Client, q api.PartsQuery) error {
			_, err := api.Call(ctx, p, api.SignalParts, api.PartsSignal{PartsQuery: q, Say: text, Note: !ends})
			return err
		})
}

// forgetPart drops one node's part. Called with mu held.
func (c *Client) forgetPart(id step.ID) {
	c.have.Drop(id)
	c.orParts("forget", id, func() error { return c.cfg.Runner.Forget(id) },
		func(ctx context.Context, p *api.Client, q api.PartsQuery) error {
			_, err := api.Call(ctx, p, api.ForgetParts, q)
			return err
		})
}

// loseParts ends the parts of a job's steps on nodes that the job has no more: they were lost.
// Called with mu held.
func (c *Client) loseParts(j *cluster.Job) {
	kept := map[cluster.NodeName]bool{}
	if j.Alloc != nil {
		for _, sh := range j.HeldShares() {
			kept[sh.Node] = true
		}
	}
	for _, ls := range c.steps {
		if ls.record.ID.Job != j.ID || ls.record.Attempt != j.Attempt || !ls.endedAt.IsZero() {
			continue
		}
		for _, id := range ls.ids {
			st := c.have.Get(id)
			if c.local(id.Node) || st == nil || st.State == step.Ended || kept[id.Node] {
				continue
			}
			gone := &step.Status{ID: id, State: step.Ended}
			for _, rank := range ls.ranks()[slices.Index(ls.ids, id)] {
				gone.Tasks = append(gone.Tasks, step.TaskStatus{
					Rank: rank, Exit: cluster.ExitStatus{Signal: 9}, Lost: true, Ended: time.Now(),
				})
			}
			c.heard(gone)
			ls.cutOff(id.Node)
		}
	}
}

// settleParts looks, after work for nodes has arrived, for parts that were lost or must be told of.
// Called with mu held.
func (c *Client) settleParts(fresh map[cluster.NodeName]uint64, named map[outbox.Attempt]bool) {
	for n := range fresh {
		for _, h := range c.nodes[n].jobs {
			if j := h.job; j.Alloc.Shares[0].Node == n && (j.Phase == cluster.Ending && len(j.Alloc.Shares) > 1 || j.Shrunk != nil) {
				c.loseParts(j)
			}
		}
		for _, st := range c.have[n] {
			c.mustTell(st)
		}
	}
	c.checkHeld(fresh)
	for _, ls := range c.steps {
		rec := &ls.record
		if _, ok := fresh[ls.lead]; ok && ls.endedAt.IsZero() && !named[outbox.Attempt{Job: rec.ID.Job, Attempt: rec.Attempt, Node: ls.lead}] {
			c.loseParts(&cluster.Job{ID: rec.ID.Job, Attempt: rec.Attempt})
		}
	}
}

// askParts brings back, after a restart, what other clients know of steps led here.
func (c *Client) askParts(ctx context.Context) {
	if c.await(ctx, c.told) != nil || c.cfg.Peer == nil {
		return
	}
	type question struct {
		addr string
		q    api.PartsQuery
	}
	var ask []question
	c.mu.Lock()
	for _, n := range c.nodes {
		for _, h := range n.jobs {
			if h.job.Alloc.Shares[0].Node != n.name {
				continue
			}
			var ids []step.ID
			for _, sh := range h.job.Alloc.Shares {
				ids = append(ids, step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Node: sh.Node})
			}
			for _, g := range c.sisters.groups(ids) {
				ask = append(ask, question{
					g.Addr,
					api.PartsQuery{Job: h.job.ID, Attempt: h.job.Attempt, Step: cluster.AllSteps, Nodes: g.Nodes},
				})
			}
		}
	}
	c.mu.Unlock()
	for _, a := range ask {
		cctx, cancel := context.WithTimeout(ctx, partsTime)
		r, err := api.Call(cctx, c.cfg.Peer(a.addr), api.ListParts, a.q)
		cancel()
		if err != nil {
			c.slog.Warn("the parts of a job's steps could not be asked for", "job", a.q.Job, "at", a.addr, "err", err)
			continue
		}
		c.mu.Lock()
		for _, text := range r.Statuses {
			var st step.Status
			if wire.Unmarshal(text, &st) != nil {
				continue
			}
			c.recoverStep(&st)
			c.heard(&st)
		}
		c.mu.Unlock()
	}
	c.poke()
}

// partTarget finds a part here that a member may attach to. Called with mu held.
func (c *Client) partTarget(who api.Caller, req []byte) (step.ID, error) {
	var q api.PartsQuery
	if err := wire.Unmarshal(req, &q); err != nil || len(q.Nodes) != 1 {
		return step.ID{}, cluster.Errorf(cluster.Invalid, "", "bad request to attach to a part")
	}
	var found *step.ID
	if err := c.each(who, q, func(id step.ID, _ *step.Status) { found = &id }); err != nil {
		return step.ID{}, err
	}
	if found == nil {
		return step.ID{}, cluster.Errorf(cluster.NotFound, cluster.ErrJobID,
			"step %d.%d does not run on %s", q.Job, q.Step, q.Nodes[0])
	}
	return *found, nil
}

func (c *Client) checkPart(who api.Caller, req []byte) error {
	if err := c.await(context.Background(), c.known); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.partTarget(who, req)
	return err
}

// attachPart carries the stream of a part here to the client that leads its step.
func (c *Client) attachPart(ctx context.Context, who api.Caller, req []byte, conn api.Conn) error {
	c.mu.Lock()
	id, err := c.partTarget(who, req)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	far, err := c.cfg.Runner.Attach(id)
	if err != nil {
		return fmt.Errorf("attach to step %d.%d on %s: %w", id.Job, id.Step, id.Node, err)
	}
	api.Splice(ctx, conn, far)
	return nil
}

// attachTo opens the stream of one node's part of a step led here.
func (c *Client) attachTo(ctx context.Context, id step.ID) (api.Conn, error) {
	c.mu.Lock()
	p, ok := c.sisters.of(id.Node)
	here := c.local(id.Node)
	c.mu.Unlock()
	switch {
	case here:
		return c.cfg.Runner.Attach(id)
	case !ok || c.cfg.Peer == nil || lostPart(c, id):
		return nil, fmt.Errorf("node %s is out of reach", id.Node)
	}
	q := api.PartsQuery{Job: id.Job, Attempt: id.Attempt, Step: id.Step, Nodes: []cluster.NodeName{id.Node}}
	for wait := time.Duration(0); ; {
		conn, err := api.Tunnel(ctx, c.cfg.Peer(p.Addr), api.AttachPart, "muster-io", q)
		// A daemon that restarts is waited for, until the servers say that the node is lost.
		if err == nil || !errors.Is(err, api.ErrUnreachable) || c.gone(id) || !pause(ctx, &wait) {
			return conn, err
		}
	}
}

// lostPart reports whether a part has ended with its node.
func lostPart(c *Client, id step.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.have.Get(id)
	return st != nil && len(st.Tasks) > 0 && st.Tasks[0].Lost
}

// gone reports whether a part has ended, or nothing is known of it.
func (c *Client) gone(id step.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.have.Get(id)
	return st == nil || st.State == step.Ended
}
