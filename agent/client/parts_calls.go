package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// routes registers what clients answer each other.
func (p *parts) routes(m *api.Mux) {
	api.Handle(m, api.StartParts, p.startParts)
	api.Handle(m, api.StartHelped, p.startParts)
	api.Handle(m, api.StartCast, p.startParts)
	api.Handle(m, api.StartPorts, p.startParts)
	api.Handle(m, api.BeginParts, p.beginParts)
	api.Handle(m, api.SignalParts, p.signalParts)
	api.Handle(m, api.ForgetParts, p.forgetParts)
	api.Handle(m, api.ListParts, p.listParts)
	api.Handle(m, api.TellParts, p.tellParts)
	api.HandleTunnel(m, api.AttachPart, api.Node, p.checkPart, p.attachPart)
}

// jobHereFor waits until the servers have named the job's attempt for a node of this client, and checks
// that the caller takes part in it.
func (p *parts) jobHereFor(ctx context.Context, who api.Caller, n cluster.NodeName, id cluster.JobID,
	attempt int) (*jobHere, error) {
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	for {
		p.mu.Lock()
		arrived := p.arrived
		var h *jobHere
		if own := p.nodes[n]; own != nil {
			h = own.jobs[id]
		}
		if h != nil && h.job.Attempt == attempt {
			defer p.mu.Unlock()
			if !p.takesPart(who, h) {
				return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d",
					who.Member, id)
			}
			if h.job.Phase == cluster.Ending || h.isOver() {
				return nil, cluster.Errorf(cluster.Conflict, cluster.ErrFinished, "job %d is ending", id)
			}
			return h, nil
		}
		p.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run on %s", id, n)
		}
	}
}

// startParts starts this client's parts of a step that another leads.
func (p *parts) startParts(ctx context.Context, who api.Caller, q api.PartsRequest) (api.Empty, error) {
	var none api.Empty
	if n := q.Step.ID.Step; n < 0 && n != cluster.InteractiveStep { // the others are this client's own to start
		return none, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"%s may not start step %d of job %d: no step of srun has that number", who.Member, n, q.Step.ID.Job)
	}
	if err := q.Step.CheckParts(&q.Spec); err != nil {
		return none, err
	}
	if err := p.await(ctx, p.known); err != nil {
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
		if i < 0 || !p.local(n) {
			return none, cluster.Errorf(cluster.Invalid, "", "node %s of step %d.%d is not here", n,
				q.Step.ID.Job, q.Step.ID.Step)
		}
		h, err := p.jobHereFor(ctx, who, n, q.Step.ID.Job, q.Step.Attempt)
		if err != nil {
			return none, err
		}
		sp, err := p.build.stepSpec(h, ls, ranks, i, programs)
		if err != nil {
			return none, err
		}
		sp.Note = memo
		specs = append(specs, sp)
	}
	p.mu.Lock()
	if err := p.ports.Hold(&q.Step, q.Nodes); err != nil {
		p.mu.Unlock()
		return none, err
	}
	for _, sp := range specs {
		if p.have.Get(sp.ID) == nil {
			p.have.Put(sp.ID, &step.Status{ID: sp.ID, State: step.Starting})
		}
	}
	p.mu.Unlock()
	if q.Hold {
		p.hold(heldKey{q.Step.ID, q.Step.Attempt}, specs)
		return none, p.ready(ctx, q, q.Onward)
	}
	return none, both(func() error { return p.cfg.Runner.Start(specs...) },
		func() error { return p.ready(ctx, q, q.Onward) })
}

// beginParts starts what is held, and passes the word on.
func (p *parts) beginParts(ctx context.Context, who api.Caller, q api.PartsBegin) (api.Empty, error) {
	k := heldKey{cluster.StepID{Job: q.Job, Step: q.Step}, q.Attempt}
	p.mu.Lock()
	h := p.held[k]
	if h == nil {
		p.mu.Unlock()
		return api.Empty{}, cluster.Errorf(cluster.Conflict, cluster.ErrFinished,
			"step %d.%d is not ready here", q.Job, q.Step)
	}
	n := h.specs[0].ID.Node
	if j := p.nodes[n].jobs[q.Job]; j == nil || !p.takesPart(who, j) {
		p.mu.Unlock()
		return api.Empty{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d",
			who.Member, q.Job)
	}
	h.late.Stop()
	delete(p.held, k)
	p.mu.Unlock()
	p.slog.Debug("parts of a step begin", "job", q.Job, "step", q.Step, "node", n)
	return api.Empty{}, both(func() error { return p.cfg.Runner.Start(h.specs...) },
		func() error { return p.begin(ctx, q.PartsQuery, q.Onward) })
}

func (p *parts) signalParts(_ context.Context, who api.Caller, q api.PartsSignal) (api.Empty, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return api.Empty{}, p.each(who, q.PartsQuery, func(id step.ID, st *step.Status) {
		held := heldKey{cluster.StepID{Job: id.Job, Step: id.Step}, id.Attempt}
		switch {
		case st.State == step.Ended:
		case p.held[held] != nil:
			if syscall.Signal(q.Sig) == syscall.SIGKILL {
				p.letGo(held)
			}
		case q.Say != "":
			p.try("note", id, p.cfg.Runner.Say(id, q.Say, !q.Note))
		default:
			p.try("signal", id, p.cfg.Runner.Signal(id, syscall.Signal(q.Sig), step.Scope(q.Scope)))
		}
	})
}

func (p *parts) forgetParts(_ context.Context, who api.Caller, q api.PartsQuery) (api.Empty, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []step.ID
	err := p.each(who, q, func(id step.ID, st *step.Status) {
		if st.State == step.Ended {
			ids = append(ids, id)
		}
	})
	for _, id := range ids {
		p.have.Drop(id)
		delete(p.untold, id)
		p.try("forget", id, p.cfg.Runner.Forget(id))
	}
	return api.Empty{}, err
}

func (p *parts) listParts(ctx context.Context, who api.Caller, q api.PartsQuery) (api.PartsReport, error) {
	var out api.PartsReport
	if err := p.await(ctx, p.known, p.told); err != nil {
		return out, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.each(who, q, func(_ step.ID, st *step.Status) {
		if text, err := wire.Marshal(st); err == nil {
			out.Statuses = append(out.Statuses, text)
		}
	})
	return out, err
}

// tellParts hears from another client how its parts of a step led here stand.
func (p *parts) tellParts(_ context.Context, who api.Caller, q api.PartsReport) (api.Empty, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range q.Statuses {
		var st step.Status
		if err := wire.Unmarshal(text, &st); err != nil {
			return api.Empty{}, cluster.Errorf(cluster.Invalid, "", "status of a part: %v", err)
		}
		if peer, ok := p.sisters.Of(st.ID.Node); !ok || peer.Member != who.Member {
			return api.Empty{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is not node %s",
				who.Member, st.ID.Node)
		}
		p.heard(&st)
	}
	p.poke()
	return api.Empty{}, nil
}

// partTarget finds a part here that a member may attach to. Called with mu held.
func (p *parts) partTarget(who api.Caller, req []byte) (step.ID, error) {
	var q api.PartsQuery
	if err := wire.Unmarshal(req, &q); err != nil || len(q.Nodes) != 1 {
		return step.ID{}, cluster.Errorf(cluster.Invalid, "", "bad request to attach to a part")
	}
	var found *step.ID
	if err := p.each(who, q, func(id step.ID, _ *step.Status) { found = &id }); err != nil {
		return step.ID{}, err
	}
	if found == nil {
		return step.ID{}, cluster.Errorf(cluster.NotFound, cluster.ErrJobID,
			"step %d.%d does not run on %s", q.Job, q.Step, q.Nodes[0])
	}
	return *found, nil
}

func (p *parts) checkPart(who api.Caller, req []byte) error {
	if err := p.await(context.Background(), p.known); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.partTarget(who, req)
	return err
}

// attachPart carries the stream of a part here to the client that leads its step.
func (p *parts) attachPart(ctx context.Context, who api.Caller, req []byte, conn api.Conn) error {
	p.mu.Lock()
	id, err := p.partTarget(who, req)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	far, err := p.cfg.Runner.Attach(id)
	if err != nil {
		return fmt.Errorf("attach to step %d.%d on %s: %w", id.Job, id.Step, id.Node, err)
	}
	api.Splice(ctx, conn, far)
	return nil
}

// attachTo opens the stream of one node's part of a step led here.
func (p *parts) attachTo(ctx context.Context, id step.ID) (api.Conn, error) {
	p.mu.Lock()
	peer, ok := p.sisters.Of(id.Node)
	here := p.local(id.Node)
	p.mu.Unlock()
	switch {
	case here:
		return p.cfg.Runner.Attach(id)
	case !ok || p.cfg.Peer == nil || p.lostPart(id):
		return nil, fmt.Errorf("node %s is out of reach", id.Node)
	}
	q := api.PartsQuery{Job: id.Job, Attempt: id.Attempt, Step: id.Step, Nodes: []cluster.NodeName{id.Node}}
	for wait := time.Duration(0); ; {
		conn, err := api.Tunnel(ctx, p.cfg.Peer(peer.Addr), api.AttachPart, "muster-io", q)
		// A daemon that restarts is waited for, until the servers say that the node is lost.
		if err == nil || !errors.Is(err, api.ErrUnreachable) || p.gone(id) || !backoff.Pause(ctx, &wait) {
			return conn, err
		}
	}
}

// lostPart reports whether a part has ended with its node.
func (p *parts) lostPart(id step.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.have.Get(id)
	return st != nil && len(st.Tasks) > 0 && st.Tasks[0].Lost
}

// gone reports whether a part has ended, or nothing is known of it.
func (p *parts) gone(id step.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.have.Get(id)
	return st == nil || st.State == step.Ended
}
