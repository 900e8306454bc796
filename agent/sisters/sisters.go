// Package sisters knows the nodes of jobs here that other clients have, and calls those clients: one node's calls in
// their order, many clients by a tree. It knows neither what is asked of them nor what runs. Start with Clients.
package sisters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// How the clients of other nodes are asked.
const (
	// CallTime is how long one call to another client may take.
	CallTime = 20 * time.Second
	away     = 3 * time.Second // how long a client that restarts is waited for
	width    = 32              // branches of the tree of Spread; calls of Ask at a time
)

// Clients are those of other nodes, and the calls to them.
type Clients struct {
	dial func(addr string) *api.Client // nil where there is no network
	own  func(cluster.NodeName) bool   // a node of this client's

	mu   sync.Mutex // nothing is locked under it
	at   map[cluster.NodeName]api.NodePeer
	last map[cluster.NodeName]chan struct{} // closed once the last call to the node is over
}

// New knows no other client yet. dial calls one by its address, and is nil where there is no network; own reports
// whether a node is this client's.
func New(dial func(addr string) *api.Client, own func(cluster.NodeName) bool) *Clients {
	return &Clients{
		dial: dial, own: own,
		at: map[cluster.NodeName]api.NodePeer{}, last: map[cluster.NodeName]chan struct{}{},
	}
}

const noNetwork = "this machine has no network to reach the job's other nodes"

// Learn keeps where a node is and what it has, as the servers say.
func (s *Clients) Learn(p api.NodePeer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[p.Node] = p
}

// Of is what is known of a node.
func (s *Clients) Of(n cluster.NodeName) (p api.NodePeer, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known = s.at[n]
	return p, known
}

// orderTime is how long a call waits for the one before it, and who signals a step for its parts to have heard.
const orderTime = time.Second

// Call makes a call to a node once those before it are over, so that a step hears its signals in the order
// in which they were sent. A node that does not answer delays each by orderTime. It returns at once.
func (s *Clients) Call(n cluster.NodeName, do func(context.Context)) {
	done := make(chan struct{})
	s.mu.Lock()
	before := s.last[n]
	s.last[n] = done
	s.mu.Unlock()
	go func() { // ends with the call
		defer close(done)
		wait(before, time.After(orderTime))
		ctx, cancel := context.WithTimeout(context.Background(), CallTime)
		defer cancel()
		do(ctx)
	}()
}

// Calls lists the calls to the nodes of parts that may not be over, for Told.
func (s *Clients) Calls(parts []step.ID) (out []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range parts {
		out = append(out, s.last[id.Node])
	}
	return out
}

// Told waits until calls are over, for orderTime at most.
func Told(calls []chan struct{}) {
	limit := time.After(orderTime)
	for _, c := range calls {
		wait(c, limit)
	}
}

// wait waits for the end of a call, if there is one.
func wait(call <-chan struct{}, limit <-chan time.Time) {
	if call == nil {
		return
	}
	select {
	case <-call:
	case <-limit:
	}
}

// Groups sorts nodes of other clients by where they are.
func (s *Clients) Groups(ids []step.ID) []api.PartsGroup {
	by := map[string][]cluster.NodeName{}
	for _, id := range ids {
		if s.own(id.Node) {
			continue
		}
		p, _ := s.Of(id.Node)
		by[p.Addr] = append(by[p.Addr], id.Node)
	}
	var out []api.PartsGroup
	for addr, nodes := range by {
		out = append(out, api.PartsGroup{Addr: addr, Nodes: nodes})
	}
	slices.SortFunc(out, func(a, b api.PartsGroup) int { return cmp.Compare(a.Addr, b.Addr) })
	return out
}

// Spread asks clients to do something: each of at most width gets its share of the rest to pass on.
// It returns once all have done it, or with the failures. A client that does not answer is asked again
// for away: what is asked may be done twice.
func (s *Clients) Spread(ctx context.Context, groups []api.PartsGroup,
	ask func(context.Context, *api.Client, []cluster.NodeName, []api.PartsGroup) error) error {
	if len(groups) == 0 {
		return nil
	}
	if s.dial == nil {
		return errors.New(noNetwork)
	}
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	branches := s.branches(groups)
	var wg sync.WaitGroup
	errs := make([]error, branches)
	for i := range branches {
		first, rest := groups[i], []api.PartsGroup(nil)
		for k := i + branches; k < len(groups); k += branches {
			rest = append(rest, groups[k])
		}
		wg.Go(func() {
			begun, wait := time.Now(), time.Duration(0)
			err := ask(ctx, s.dial(first.Addr), first.Nodes, rest)
			for errors.Is(err, api.ErrUnreachable) && time.Since(begun) < away && backoff.Pause(ctx, &wait) {
				err = ask(ctx, s.dial(first.Addr), first.Nodes, rest)
			}
			if err != nil {
				errs[i] = fmt.Errorf("start on %s: %w", first.Nodes[0], err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// branches is how many clients are asked from here, the others by those. A client knows of its sisters
// only that they are called like their nodes; where they are not, with hollow nodes, all are asked from here.
func (s *Clients) branches(groups []api.PartsGroup) int {
	for _, g := range groups {
		if p, ok := s.Of(g.Nodes[0]); ok && p.Member != string(p.Node) {
			return len(groups)
		}
	}
	return min(len(groups), width)
}

// Ask asks all clients of groups, several at a time, and names the nodes of those that give no answer.
func (s *Clients) Ask(ctx context.Context, groups []api.PartsGroup,
	ask func(context.Context, *api.Client, []cluster.NodeName) error) (missing []api.MissingNode) {
	if len(groups) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	turn := make(chan struct{}, width)
	for _, g := range groups {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			err := error(cluster.Errorf(cluster.Unavailable, cluster.ErrAway, noNetwork))
			if s.dial != nil {
				err = ask(ctx, s.dial(g.Addr), g.Nodes)
			}
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, n := range g.Nodes {
				missing = append(missing, api.MissingNode{Node: n, Why: err.Error()})
			}
		})
	}
	wg.Wait()
	slices.SortFunc(missing, func(a, b api.MissingNode) int { return cmp.Compare(a.Node, b.Node) })
	return missing
}

// TakesPart reports whether a member is the client of one of a job's nodes, or of its other components' as far as they
// are known here.
func (s *Clients) TakesPart(who api.Caller, job *cluster.Job, components []*cluster.Job) bool {
	if who.Member == "" {
		return who.Operator()
	}
	of := func(j *cluster.Job) bool {
		return j.Alloc != nil && slices.ContainsFunc(j.Alloc.Shares, func(sh cluster.Share) bool {
			p, _ := s.Of(sh.Node)
			return p.Member == who.Member || string(sh.Node) == who.Member
		})
	}
	return of(job) || slices.ContainsFunc(components, of)
}
