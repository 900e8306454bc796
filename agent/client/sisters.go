package client

import (
	"context"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// sisters are the nodes of jobs here that other clients have. Guarded by the client's mu.
type sisters struct {
	at   map[cluster.NodeName]api.NodePeer
	last map[cluster.NodeName]chan struct{} // closed once the last call to the node is over
}

func newSisters() sisters {
	return sisters{at: map[cluster.NodeName]api.NodePeer{}, last: map[cluster.NodeName]chan struct{}{}}
}

// orderTime is how long a call waits for the one before it, and who signals a step for its parts to have heard.
const orderTime = time.Second

// call makes a call to a node once those before it are over, so that a step hears its signals in the order
// in which they were sent. A node that does not answer delays each by orderTime. It returns at once.
func (s *sisters) call(n cluster.NodeName, do func(context.Context)) {
	before, done := s.last[n], make(chan struct{})
	s.last[n] = done
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
