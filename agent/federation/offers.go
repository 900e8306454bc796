package federation

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	fed "dev.muster/cluster/federation"
	"dev.muster/wire"
)

// Bounds of one answer.
const (
	answerBytes = 4 << 20 // scripts and environments in one answer, one job at least
	answerRows  = 2000
	scanEvery   = 20 * time.Millisecond // how often at most it is looked what is new
)

// Offers are what the leader of a job's origin tells the other members, each of them what it does not know yet. They
// are made again in each term: a member that asks with what another leader has said is told all.
type Offers struct {
	own   Cluster
	epoch string
	mu    sync.Mutex
	to    map[fed.ID]*audience
}

// audience is one member, and what it was told.
type audience struct {
	mu      sync.Mutex
	next    uint64
	known   map[cluster.JobID]message // it has that
	pending map[cluster.JobID]message // it was sent that with next
}

// message is what of a job makes a difference to other members.
type message struct {
	order    fed.Order
	held     cluster.Hold
	spec     *cluster.JobSpec
	restarts int
	gone     bool
}

// NewOffers begins a term.
func NewOffers(own Cluster) *Offers {
	return &Offers{own: own, epoch: rand.Text(), to: map[fed.ID]*audience{}}
}

func (o *Offers) audience(to fed.ID) *audience {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, ok := o.to[to]
	if !ok {
		f = &audience{}
		o.to[to] = f
	}
	return f
}

// Pull answers a member with what is new to it, and waits a while for that.
func (o *Offers) Pull(ctx context.Context, to fed.ID, q *api.FederationCall) api.FederationAnswer {
	f := o.audience(to)
	f.mu.Lock()
	defer f.mu.Unlock()
	end := time.NewTimer(answerWait)
	defer end.Stop()
	full := f.known == nil || q.Epoch != o.epoch || q.After != f.next
	switch {
	case full:
		f.known = map[cluster.JobID]message{}
	default:
		for id, t := range f.pending {
			if t.gone {
				delete(f.known, id)
			} else {
				f.known[id] = t
			}
		}
	}
	f.pending = map[cluster.JobID]message{}
	for {
		began, moved := time.Now(), o.own.Moved()
		snap := o.own.Snapshot()
		out := api.FederationAnswer{Epoch: o.epoch, Index: snap.Index, Next: f.next, Full: full}
		rows, more := f.rows(snap, to)
		looked := time.Since(began)
		if out.Rows = rows; len(rows) > 0 || full {
			f.next++
			if out.Next = f.next; full && more {
				out.All = concerned(snap, to)
			}
			return out
		}
		select {
		case <-moved:
		case <-end.C:
			return out
		case <-ctx.Done():
			return out
		}
		pause(ctx, max(scanEvery, 4*looked))
	}
}

// rows are those that differ from what the member knows.
func (f *audience) rows(snap *cluster.Snapshot, to fed.ID) (rows []api.FederationRow, more bool) {
	size, seen := 0, map[cluster.JobID]bool{}
	full := func() bool { return len(rows) >= answerRows || size >= answerBytes }
	for j := range snap.Jobs() {
		if !concerns(j, to) {
			continue
		}
		seen[j.ID] = true
		now := messageOf(j)
		if was, ok := f.known[j.ID]; ok && was == now {
			continue
		}
		if full() {
			return rows, true
		}
		row := rowOf(snap, j, now, to)
		size += len(row.Script) + len(row.Env)
		rows, f.pending[j.ID] = append(rows, row), now
	}
	for id := range f.known {
		if !seen[id] && !full() {
			f.pending[id] = message{gone: true}
			gone := cluster.FederationOrder{Job: id, Order: fed.Order{Over: true}}
			rows = append(rows, api.FederationRow{FederationOrder: gone})
		}
	}
	return rows, false
}

// concerned are all jobs of which a member is to hear.
func concerned(snap *cluster.Snapshot, to fed.ID) (all []cluster.JobID) {
	for j := range snap.Jobs() {
		if concerns(j, to) {
			all = append(all, j.ID)
		}
	}
	return all
}

// concerns reports whether a member is to hear of a job.
func concerns(j *cluster.Job, to fed.ID) bool {
	if j.Fed == nil || !j.Fed.Part.IsOrigin() {
		return false
	}
	p := &j.Fed.Part
	if p.Active.Has(to) || p.Holder == to {
		return true
	}
	return p.Viable.Has(to) && j.Phase == cluster.Pending && len(j.Depends.Terms) == 0
}

func messageOf(j *cluster.Job) message {
	t := message{order: j.Fed.Part.Order(j.Phase == cluster.Ended), held: j.Held, spec: j.Spec, restarts: j.Restarts}
	if len(j.Depends.Terms) > 0 { // it is not to start anywhere
		t.held = max(t.held, cluster.HeldUser)
	}
	return t
}

// rowOf is what a member is told of a job; one that has no sibling yet gets all that it takes to run it.
func rowOf(snap *cluster.Snapshot, j *cluster.Job, now message, to fed.ID) api.FederationRow {
	spec := cluster.AsAsked(j)
	row := api.FederationRow{User: j.Spec.User, FederationOrder: cluster.FederationOrder{Job: j.ID, Order: now.order,
		Held: now.held, Submitted: j.Submitted, Restarts: j.Restarts}}
	if now.order.Over || now.order.Begun {
		return row
	}
	row.Spec, row.Hash = &spec, hashOf(&spec)
	if !now.order.Active.Has(to) {
		row.Script, row.Env = textOf(snap, spec.Script), textOf(snap, spec.Env)
	}
	return row
}

func textOf(snap *cluster.Snapshot, h cluster.BlobHash) cluster.BlobText {
	if b, ok := snap.Blob(h); ok {
		return b.Text
	}
	return nil
}

func hashOf(spec *cluster.JobSpec) string {
	text, _ := wire.Marshal(spec)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
