package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"dev.muster/agent/ports"
	"dev.muster/agent/sisters"
	"dev.muster/agent/step"
	"dev.muster/agent/x11"
	"dev.muster/api"
	"dev.muster/cluster"
)

// tables are what jobs, steps and parts see and change together: what the servers want of the nodes, and what is known
// of steps. A pass compares the one with the other, a step is placed in the share of its job, and its end may be the
// job's; so all of it has one lock.
type tables struct {
	cfg     *Config
	slog    *slog.Logger
	order   []cluster.NodeName // of this client, as they were given
	sisters *sisters.Clients
	wakeup  chan struct{}
	known   chan struct{} // closed once the supervisor's steps are known here
	told    chan struct{} // closed once the servers have said what to do

	mu      sync.Mutex // guards everything below and the nodes' content
	config  cluster.Config
	confAt  uint64        // index of config
	nextJob cluster.JobID // one more than the highest number of a job that the servers had given, as far as they said
	nodes   map[cluster.NodeName]*node
	have    step.Table
	live    map[cluster.StepID]*liveStep // steps led here
	arrived chan struct{}                // closed and replaced when work has arrived
	queues  queues                       // of those who wait for a step or a job to end: then they look again
	ports   *ports.Table                 // that steps have for themselves
}

func newTables(cfg *Config, log *slog.Logger) *tables {
	t := &tables{
		cfg: cfg, slog: log, nodes: map[cluster.NodeName]*node{}, have: step.Table{},
		live:   map[cluster.StepID]*liveStep{},
		wakeup: make(chan struct{}, 1), known: make(chan struct{}), told: make(chan struct{}),
		arrived: make(chan struct{}),
	}
	for _, n := range cfg.Nodes {
		t.nodes[n.Name] = &node{name: n.Name, jobs: map[cluster.JobID]*jobHere{}}
		t.order = append(t.order, n.Name)
	}
	t.sisters = sisters.New(cfg.Peer, t.local)
	t.ports = ports.New(t.lives)
	return t
}

// node is one of this client's nodes, as the servers want it.
type node struct {
	name     cluster.NodeName
	index    uint64 // of the work
	jobCPUs  int    // that jobs can have, as the servers say
	jobs     map[cluster.JobID]*jobHere
	rebooted time.Time // the reboot that was begun here
	mute     bool      // gets no jobs, since it heard of one that it could not confirm
	excused  bool      // it did not confirm one, and none since
}

// poke has a pass made.
func (t *tables) poke() {
	select {
	case t.wakeup <- struct{}{}:
	default:
	}
}

// startTime bounds how long a call waits for a daemon that has just started.
const startTime = 10 * time.Second

// await waits until the daemon knows enough to answer.
func (t *tables) await(ctx context.Context, conditions ...chan struct{}) error {
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

// lives reports whether a part of a step is ready to begin, or runs. Called with mu held.
func (t *tables) lives(id step.ID) bool {
	st := t.have.Get(id)
	return st != nil && st.State != step.Ended
}

// local reports whether a node is one of this client's.
func (t *tables) local(n cluster.NodeName) bool { return t.nodes[n] != nil }

// try logs a runner's refusal; a step it no longer knows is dropped here too. Called with mu held.
func (t *tables) try(what string, id step.ID, err error) {
	if errors.Is(err, step.ErrUnknown) {
		t.have.Drop(id)
		return
	}
	if err != nil {
		t.slog.Warn("a step could not be told", "what", what, "job", id.Job, "step", id.Step, "node",
			id.Node, "err", err)
	}
}

// stepsOf yields the job's steps on its node.
func (t *tables) stepsOf(h *jobHere) map[step.ID]*step.Status {
	out := t.allOf(h)
	maps.DeleteFunc(out, func(id step.ID, _ *step.Status) bool { return ours(id) })
	return out
}

// allOf yields these, and the node's own for the job.
func (t *tables) allOf(h *jobHere) map[step.ID]*step.Status {
	out := map[step.ID]*step.Status{}
	for id, st := range t.have[h.node] {
		if id.Job == h.job.ID && id.Attempt == h.job.Attempt {
			out[id] = st
		}
	}
	return out
}

// script is the status of a job's prolog or epilog here. Called with mu held.
func (t *tables) script(h *jobHere, which int) *step.Status {
	return t.have.Get(h.part(which))
}

// jobOf is the job of a part of a step, nil if it is no longer here. Called with mu held.
func (t *tables) jobOf(id step.ID) *cluster.Job {
	if n := t.nodes[id.Node]; n != nil && n.jobs[id.Job] != nil {
		return n.jobs[id.Job].job
	}
	return nil
}

func (t *tables) liveStep(id cluster.StepID, who api.Caller) (*liveStep, *api.Error) {
	ls, ok := t.live[id]
	if !ok {
		return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "step %d.%d does not run here", id.Job, id.Step)
	}
	if who.UID != ls.record.UID && !who.Operator() {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "step %d.%d belongs to user %s",
			id.Job, id.Step, ls.record.User)
	}
	if h := t.nodes[ls.lead].jobs[id.Job]; who.Role == cluster.RoleNode && (h == nil || !t.takesPart(who, h)) {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d", who.Member, id.Job)
	}
	return ls, nil
}

// jobLedHere finds a live job whose first node is one of this client's, and that is not ending.
func (t *tables) jobLedHere(id cluster.JobID, who api.Caller) (*jobHere, *api.Error) {
	h, err := t.jobKeptHere(id, who)
	if err == nil && (h.job.Phase == cluster.Ending || h.isReported()) {
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrFinished, "job %d is ending", id)
	}
	return h, err
}

// jobKeptHere finds a job whose first node is one of this client's, until the servers take it away.
func (t *tables) jobKeptHere(id cluster.JobID, who api.Caller) (*jobHere, *api.Error) {
	for _, name := range t.order {
		h, ok := t.nodes[name].jobs[id]
		if !ok || h.job.Alloc.Shares[0].Node != name {
			continue
		}
		return t.jobFor(h, who)
	}
	return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run here", id)
}

// jobFor refuses a job to those who have no right to it. Called with mu held.
func (t *tables) jobFor(h *jobHere, who api.Caller) (*jobHere, *api.Error) {
	if who.UID != h.job.Spec.UID && !who.Operator() {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "job %d belongs to user %s", h.job.ID,
			h.job.Spec.User)
	}
	if who.Role == cluster.RoleNode && !t.takesPart(who, h) {
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d", who.Member,
			h.job.ID)
	}
	return h, nil
}

// takesPart reports whether a member is the client of one of the job's nodes, or of its other components'.
func (t *tables) takesPart(who api.Caller, h *jobHere) bool {
	return t.sisters.TakesPart(who, h.job, h.sisters)
}

// lead looks at a live job that is led here, once the daemon knows what runs and what should: with mu held.
func (t *tables) lead(ctx context.Context, who api.Caller, id cluster.JobID, look func(*jobHere)) error {
	if err := t.await(ctx, t.known, t.told); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h, err := t.jobLedHere(id, who)
	if err != nil {
		return err
	}
	look(h)
	return nil
}

// Leads reports whether a job's first node is one of this client's.
func (t *tables) Leads(id cluster.JobID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range t.order {
		if h, ok := t.nodes[name].jobs[id]; ok && h.job.Alloc.Shares[0].Node == name {
			return true
		}
	}
	return false
}

// each yields the parts that a query names and that are here. Called with mu held.
func (t *tables) each(who api.Caller, q api.PartsQuery, f func(step.ID, *step.Status)) error {
	for _, n := range q.Nodes {
		own := t.nodes[n]
		if own == nil {
			continue
		}
		h := own.jobs[q.Job]
		if h == nil || h.job.Attempt != q.Attempt {
			continue // over: nothing is left of it
		}
		if !t.takesPart(who, h) {
			return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s takes no part in job %d", who.Member, q.Job)
		}
		for id, st := range t.have[n] {
			if id.Step >= 0 && asksFor(&q, id) {
				f(id, st)
			}
		}
	}
	return nil
}

// asksFor reports whether a part is of a step that a query names.
func asksFor(q *api.PartsQuery, id step.ID) bool {
	ofJob := id.Job == q.Job && id.Attempt == q.Attempt
	return ofJob && (q.Step == cluster.AllSteps || q.Step == id.Step)
}

// sessionWait is how long a session waits for a job that its user does not have here: the servers, and so squeue,
// know of what they have just given a moment before its node does.
const sessionWait = 2 * time.Second

// awaitJob waits until a user has a job here, or should have.
func (t *tables) awaitJob(ctx context.Context, user string) {
	late := time.NewTimer(sessionWait)
	defer late.Stop()
	for {
		t.mu.Lock()
		h, _ := t.newest(user)
		arrived := t.arrived
		t.mu.Unlock()
		if h != nil {
			return
		}
		select {
		case <-arrived:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// newest is the job of a user that began last on this client's nodes, nil if there is none, and whether there are
// several. Called with mu held.
func (t *tables) newest(user string) (best *jobHere, several bool) {
	for _, name := range t.order {
		for _, h := range t.nodes[name].jobs {
			if h.job.Spec.User != user || !h.takesSessions() {
				continue
			}
			several = several || best != nil
			if best == nil || startedLater(h.job, best.job) {
				best = h
			}
		}
	}
	return best, several
}

// startedLater orders jobs by their start, and those of one moment by number.
func startedLater(a, b *cluster.Job) bool {
	return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) > 0
}

// displayOf is that of a job on a node, nil if it has none.
func (t *tables) displayOf(job cluster.JobID, on cluster.NodeName) *x11.Display {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[on]
	if n == nil || n.jobs[job] == nil {
		return nil
	}
	return n.jobs[job].display
}
