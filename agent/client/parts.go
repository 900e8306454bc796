package client

import (
	"context"
	"errors"
	"syscall"
	"time"

	"dev.muster/agent/hardware"
	"dev.muster/agent/sisters"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// A step of a job whose nodes belong to several clients is managed by the client of the first node.
// It has each other client get that one's parts ready, in a tree, and once all are, begin them; those
// tell it when their parts have ended, until it has heard. Signals of the job itself and its end need none of this:
// every client hears of them from the servers.

// parts are those of steps on single nodes: here of steps that other clients lead, elsewhere of those led here.
type parts struct {
	*tables
	hardware *hardware.Nodes
	build    *builder

	// Reports about parts of the steps that this node leads. Called with mu held.
	changed   func(*step.Status)
	recovered func(*step.Status)

	held    map[heldKey]*heldParts // not begun: other nodes of the step are not ready; guarded by mu
	untold  map[step.ID]bool       // ended, and the client that leads the step has not heard of it; guarded by mu
	telling chan struct{}          // something was added to untold
}

func newParts(t *tables, hardware *hardware.Nodes, build *builder) *parts {
	return &parts{
		tables: t, hardware: hardware, build: build,
		held: map[heldKey]*heldParts{}, untold: map[step.ID]bool{}, telling: make(chan struct{}, 1),
	}
}

// inventory is what a node of some job led here has. Called with mu held.
func (p *parts) inventory(n cluster.NodeName) *cluster.Inventory {
	if p.local(n) {
		return p.hardware.Inventory(n)
	}
	peer, _ := p.sisters.Of(n)
	return &peer.Inventory
}

// ready has clients get their parts of a step ready.
func (p *parts) ready(ctx context.Context, q api.PartsRequest, groups []api.PartsGroup) error {
	p.mu.Lock()
	start := api.StartParts
	switch {
	case q.Spec.AsksPorts():
		start = api.StartPorts
	case q.Spec.Cast != nil:
		start = api.StartCast
	case q.Spec.Helped(p.config.ManagerOf(&q.Spec)):
		start = api.StartHelped
	}
	p.mu.Unlock()
	return p.sisters.Spread(ctx, groups, func(ctx context.Context, to *api.Client, nodes []cluster.NodeName,
		onward []api.PartsGroup) error {
		sub := q
		sub.Nodes, sub.Onward = nodes, onward
		_, err := api.Call(ctx, to, start, sub)
		return api.OldClient(err)
	})
}

// orParts does something to a part: here by the runner, elsewhere by a call that is not waited for.
// Called with mu held.
func (p *parts) orParts(what string, id step.ID, here func() error,
	elsewhere func(context.Context, *api.Client, api.PartsQuery) error) {
	if p.local(id.Node) {
		p.try(what, id, here())
		return
	}
	peer, ok := p.sisters.Of(id.Node)
	if !ok || p.cfg.Peer == nil {
		return
	}
	q := api.PartsQuery{Job: id.Job, Attempt: id.Attempt, Step: id.Step, Nodes: []cluster.NodeName{id.Node}}
	p.sisters.Call(id.Node, func(ctx context.Context) {
		if err := elsewhere(ctx, p.cfg.Peer(peer.Addr), q); err != nil {
			p.slog.Warn("a part of a step could not be told", "what", what, "job", id.Job, "step", id.Step,
				"node", id.Node, "err", err)
		}
	})
}

// signalPart sends a signal to one node's part of a step led here. Called with mu held.
func (p *parts) signalPart(id step.ID, sig syscall.Signal, scope step.Scope) {
	p.orParts("signal", id, func() error { return p.cfg.Runner.Signal(id, sig, scope) },
		func(ctx context.Context, to *api.Client, q api.PartsQuery) error {
			_, err := api.Call(ctx, to, api.SignalParts, api.PartsSignal{
				PartsQuery: q, Sig: int(sig), Scope: uint8(scope),
			})
			return err
		})
}

// sayPart writes a line on the standard error of one node's part. Called with mu held.
func (p *parts) sayPart(id step.ID, text string, ends bool) {
	p.orParts("note", id, func() error { return p.cfg.Runner.Say(id, text, ends) },
		func(ctx context.Context, to *api.Client, q api.PartsQuery) error {
			_, err := api.Call(ctx, to, api.SignalParts, api.PartsSignal{PartsQuery: q, Say: text, Note: !ends})
			return err
		})
}

// forgetPart drops one node's part. Called with mu held.
func (p *parts) forgetPart(id step.ID) {
	p.have.Drop(id)
	p.orParts("forget", id, func() error { return p.cfg.Runner.Forget(id) },
		func(ctx context.Context, to *api.Client, q api.PartsQuery) error {
			_, err := api.Call(ctx, to, api.ForgetParts, q)
			return err
		})
}

// Parts of a step that another client leads are held here until all of the step's nodes are ready: no
// task begins if some node cannot take part, and all begin at nearly the same time.

// heldTime is how long parts are held for a word to begin that does not come.
const heldTime = sisters.CallTime + jobTime

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
func (p *parts) hold(k heldKey, specs []step.Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letGo(k)
	h := &heldParts{specs: specs}
	h.late = time.AfterFunc(heldTime, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.held[k] == h {
			p.letGo(k)
		}
	})
	p.held[k] = h
	for _, sp := range specs {
		p.have.Put(sp.ID, &step.Status{ID: sp.ID, State: step.Starting})
	}
}

// letGo drops parts that shall not begin. Called with mu held.
func (p *parts) letGo(k heldKey) {
	h := p.held[k]
	if h == nil {
		return
	}
	h.late.Stop()
	delete(p.held, k)
	for _, sp := range h.specs {
		p.have.Drop(sp.ID)
	}
	p.poke()
}

// checkHeld drops parts of nodes whose job is over. Called with mu held.
func (p *parts) checkHeld(fresh map[cluster.NodeName]uint64) {
	for k, h := range p.held {
		n := h.specs[0].ID.Node
		if _, ok := fresh[n]; !ok {
			continue
		}
		if j := p.nodes[n].jobs[k.step.Job]; j == nil || j.job.Attempt != k.attempt || j.job.Phase == cluster.Ending {
			p.letGo(k)
		}
	}
}

// begin has clients start what they hold.
func (p *parts) begin(ctx context.Context, q api.PartsQuery, groups []api.PartsGroup) error {
	return p.sisters.Spread(ctx, groups, func(ctx context.Context, to *api.Client, nodes []cluster.NodeName,
		onward []api.PartsGroup) error {
		q := q
		q.Nodes = nodes
		_, err := api.Call(ctx, to, api.BeginParts, api.PartsBegin{PartsQuery: q, Onward: onward})
		if e := (*api.Error)(nil); errors.As(err, &e) && e.Code == cluster.NotFound && e.Kind == "" {
			return nil // a client of before BeginParts: it did not wait
		}
		return err
	})
}

// both does two things at once.
func both(here, away func() error) error {
	done := make(chan error, 1)
	go func() { done <- away() }() // ends with its calls
	err := here()
	return errors.Join(err, <-done)
}

// jobTime is how long a part waits for the servers to name its job here.
const jobTime = 10 * time.Second
