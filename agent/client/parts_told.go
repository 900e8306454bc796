package client

import (
	"context"
	"slices"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/agent/outbox"
	"dev.muster/agent/sisters"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// heard takes a status of a part elsewhere. Called with mu held.
func (p *parts) heard(st *step.Status) {
	if known := p.have.Get(st.ID); known != nil && known.State != step.Ended {
		p.have.Put(st.ID, st)
		p.changed(st)
	}
}

// ledElsewhere is the peer that leads the step of a part here, if another client does. Called with mu held.
func (p *parts) ledElsewhere(id step.ID) (api.NodePeer, bool) {
	own := p.nodes[id.Node]
	if own == nil || id.Step < 0 {
		return api.NodePeer{}, false
	}
	h := own.jobs[id.Job]
	if h == nil || h.job.Attempt != id.Attempt || p.local(h.job.Alloc.Shares[0].Node) {
		return api.NodePeer{}, false
	}
	peer, ok := p.sisters.Of(h.job.Alloc.Shares[0].Node)
	return peer, ok
}

// mustTell notes that the end of a part has to be told to the client that leads its step. Called with mu held.
func (p *parts) mustTell(st *step.Status) {
	if st.State == step.Ended && st.ID.Step >= 0 {
		if _, elsewhere := p.ledElsewhere(st.ID); elsewhere {
			p.untold[st.ID] = true
			select {
			case p.telling <- struct{}{}:
			default:
			}
		}
	}
}

// tell delivers the ends of parts to the clients that lead their steps, until they have heard.
func (p *parts) tell(ctx context.Context) {
	var wait time.Duration
	for {
		select {
		case <-p.telling:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil {
			batches := p.untoldBy()
			if len(batches) == 0 {
				break
			}
			failed := false
			for addr, ids := range batches {
				if err := p.tellOne(ctx, addr, ids); err != nil {
					failed = true
					p.slog.Debug("telling how parts ended failed", "to", addr, "err", err)
				}
			}
			if failed && !backoff.Pause(ctx, &wait) {
				return
			}
			if !failed {
				wait = 0
			}
		}
	}
}

// untoldBy sorts what is to be told by address, and drops what nobody waits for any more.
func (p *parts) untoldBy() map[string][]step.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string][]step.ID{}
	for id := range p.untold {
		peer, elsewhere := p.ledElsewhere(id)
		if st := p.have.Get(id); st == nil || !elsewhere {
			delete(p.untold, id)
			continue
		}
		out[peer.Addr] = append(out[peer.Addr], id)
	}
	return out
}

func (p *parts) tellOne(ctx context.Context, addr string, ids []step.ID) error {
	var q api.PartsReport
	p.mu.Lock()
	for _, id := range ids {
		if st := p.have.Get(id); st != nil {
			if text, err := wire.Marshal(st); err == nil {
				q.Statuses = append(q.Statuses, text)
			}
		}
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sisters.CallTime)
	defer cancel()
	if _, err := api.Call(ctx, p.cfg.Peer(addr), api.TellParts, q); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.untold, id)
	}
	return nil
}

// loseParts ends the parts of a job's steps on nodes that the job has no more: they were lost.
// Called with mu held.
func (p *parts) loseParts(j *cluster.Job) {
	kept := map[cluster.NodeName]bool{}
	if j.Alloc != nil {
		for _, sh := range j.HeldShares() {
			kept[sh.Node] = true
		}
	}
	for _, ls := range p.live {
		if ls.record.ID.Job != j.ID || ls.record.Attempt != j.Attempt || !ls.endedAt.IsZero() {
			continue
		}
		for _, id := range ls.ids {
			st := p.have.Get(id)
			if p.local(id.Node) || st == nil || st.State == step.Ended || kept[id.Node] {
				continue
			}
			gone := &step.Status{ID: id, State: step.Ended}
			for _, rank := range ls.ranks()[slices.Index(ls.ids, id)] {
				gone.Tasks = append(gone.Tasks, step.TaskStatus{
					Rank: rank, Exit: cluster.ExitStatus{Signal: 9}, Lost: true, Ended: time.Now(),
				})
			}
			p.heard(gone)
			ls.cutOff(id.Node)
		}
	}
}

// settleParts looks, after work for nodes has arrived, for parts that were lost or must be told of.
// Called with mu held.
func (p *parts) settleParts(fresh map[cluster.NodeName]uint64, named map[outbox.Attempt]bool) {
	for n := range fresh {
		for _, h := range p.nodes[n].jobs {
			j := h.job
			lost := j.Shrunk != nil || j.Phase == cluster.Ending && len(j.Alloc.Shares) > 1
			if lost && j.Alloc.Shares[0].Node == n {
				p.loseParts(j)
			}
		}
		for _, st := range p.have[n] {
			p.mustTell(st)
		}
	}
	p.checkHeld(fresh)
	for _, ls := range p.live {
		rec := &ls.record
		key := outbox.Attempt{Job: rec.ID.Job, Attempt: rec.Attempt, Node: ls.lead}
		if _, ok := fresh[ls.lead]; ok && ls.endedAt.IsZero() && !named[key] {
			p.loseParts(&cluster.Job{ID: rec.ID.Job, Attempt: rec.Attempt})
		}
	}
}

// askParts brings back, after a restart, what other clients know of steps led here.
func (p *parts) askParts(ctx context.Context) {
	if p.await(ctx, p.told) != nil || p.cfg.Peer == nil {
		return
	}
	type question struct {
		addr string
		q    api.PartsQuery
	}
	var ask []question
	p.mu.Lock()
	for _, n := range p.nodes {
		for _, h := range n.jobs {
			if h.job.Alloc.Shares[0].Node != n.name {
				continue
			}
			var ids []step.ID
			for _, sh := range h.job.Alloc.Shares {
				ids = append(ids, step.ID{Job: h.job.ID, Attempt: h.job.Attempt, Node: sh.Node})
			}
			for _, g := range p.sisters.Groups(ids) {
				ask = append(ask, question{
					g.Addr,
					api.PartsQuery{Job: h.job.ID, Attempt: h.job.Attempt, Step: cluster.AllSteps, Nodes: g.Nodes},
				})
			}
		}
	}
	p.mu.Unlock()
	for _, a := range ask {
		cctx, cancel := context.WithTimeout(ctx, sisters.CallTime)
		r, err := api.Call(cctx, p.cfg.Peer(a.addr), api.ListParts, a.q)
		cancel()
		if err != nil {
			p.slog.Warn("the parts of a job's steps could not be asked for", "job", a.q.Job, "at", a.addr, "err", err)
			continue
		}
		p.mu.Lock()
		for _, text := range r.Statuses {
			var st step.Status
			if wire.Unmarshal(text, &st) != nil {
				continue
			}
			p.recovered(&st)
			p.heard(&st)
		}
		p.mu.Unlock()
	}
	p.poke()
}
