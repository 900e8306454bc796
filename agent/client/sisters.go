package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// How the clients of other nodes are asked.
const (
	partsAway  = 3 * time.Second // how long a client that restarts is waited for
	partsWidth = 32              // branches of the tree by which parts are started
	partsTime  = 20 * time.Second
)

// sisters are the nodes of jobs here that other clients have, and the calls to these.
type sisters struct {
	dial func(addr string) *api.Client // nil where there is no network
	own  func(cluster.NodeName) bool   // a node of this client's

	mu   sync.Mutex // nothing is locked under it
	at   map[cluster.NodeName]api.NodePeer
	last map[cluster.NodeName]chan struct{} // closed once the last call to the node is over
}

func newSisters(dial func(addr string) *api.Client, own func(cluster.NodeName) bool) *sisters {
	return &sisters{
		dial: dial, own: own,
		at: map[cluster.NodeName]api.NodePeer{}, last: map[cluster.NodeName]chan struct{}{},
	}
}

// learn keeps where a node is and what it has, as the servers say.
func (s *sisters) learn(p api.NodePeer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[p.Node] = p
}

// of is what is known of a node.
func (s *sisters) of(n cluster.NodeName) (p api.NodePeer, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known = s.at[n]
	return p, known
}

// orderTime is how long a call waits for the one before it, and who signals a step for its parts to have heard.
const orderTime = time.Second

// call makes a call to a node once those before it are over, so that a step hears its signals in the order
// in which they were sent. A node that does not answer delays each by orderTime. It returns at once.
func (s *sisters) call(n cluster.NodeName, do func(context.Context)) {
	done := make(chan struct{})
	s.mu.Lock()
	before := s.last[n]
	s.last[n] = done
	s.mu.Unlock()
	go func() { // ends with the call
		defer close(done)
		wait(before, time.After(orderTime))
		ctx, cancel := context.WithTimeout(context.Background(), partsTime)
		defer cancel()
		do(ctx)
	}()
}

// calls lists the calls to the nodes of parts that may not be over.
func (s *sisters) calls(parts []step.ID) (out []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range parts {
		out = append(out, s.last[id.Node])
	}
	return out
}

// told waits until what was said so far has reached the nodes, for orderTime at most. Called without mu.
func told(calls []chan struct{}) {
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

// groups sorts nodes of other clients by where they are.
func (s *sisters) groups(ids []step.ID) []api.PartsGroup {
	by := map[string][]cluster.NodeName{}
	for _, id := range ids {
		if s.own(id.Node) {
			continue
		}
		p, _ := s.of(id.Node)
		by[p.Addr] = append(by[p.Addr], id.Node)
	}
	var out []api.PartsGroup
	for addr, nodes := range by {
		out = append(out, api.PartsGroup{Addr: addr, Nodes: nodes})
	}
	slices.SortFunc(out, func(a, b api.PartsGroup) int { return cmp.Compare(a.Addr, b.Addr) })
	return out
}

// spread asks clients to do something: each of at most partsWidth gets its share of the rest to pass on.
// It returns once all have done it, or with the failures. A client that does not answer is asked again
// for partsAway: what is asked may be done twice.
func (s *sisters) spread(ctx context.Context, groups []api.PartsGroup,
	ask func(context.Context, *api.Client, []cluster.NodeName, []api.PartsGroup) error) error {
	if len(groups) == 0 {
		return nil
	}
	if s.dial == nil {
		return errors.New("this machine has no network to reach the job's other nodes")
	}
	ctx, cancel := context.WithTimeout(ctx, partsTime)
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
			for errors.Is(err, api.ErrUnreachable) && time.Since(begun) < partsAway && pause(ctx, &wait) {
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
func (s *sisters) branches(groups []api.PartsGroup) int {
	for _, g := range groups {
		if p, ok := s.of(g.Nodes[0]); ok && p.Member != string(p.Node) {
			return len(groups)
		}
	}
	return min(len(groups), partsWidth)
}

// takesPart reports whether a member is the client of one of the job's nodes, or of its other components' as far as
// they are known here.
func (s *sisters) takesPart(who api.Caller, h *jobHere) bool {
	if who.Member == "" {
		return who.Operator()
	}
	of := func(j *cluster.Job) bool {
		return j.Alloc != nil && slices.ContainsFunc(j.Alloc.Shares, func(sh cluster.Share) bool {
			p, _ := s.of(sh.Node)
			return p.Member == who.Member || string(sh.Node) == who.Member
		})
	}
	return of(h.job) || slices.ContainsFunc(h.sisters, of)
}

// both does two things at once.
func both(here, away func() error) error {
	done := make(chan error, 1)
	go func() { done <- away() }() // ends with its calls
	err := here()
	return errors.Join(err, <-done)
}
