package server

import (
	"context"
	"sync"

	"dev.muster/agent/eventlog"
)

// share bounds what each user takes of a server.
type share struct {
	followers eventlog.Followers[uint32] // callers who follow the events
	bursts    turns                      // to have the script for burst buffers called
}

// placesOfUser is how many questions of one kind are answered at a time for one user; the next wait.
const placesOfUser = 4

// turns are the places of users for one kind of questions that cost a server much: whoever asks ever so often holds up
// nobody else.
type turns struct {
	mu     sync.Mutex
	places map[uint32]*places
}

// places are those of one user.
type places struct {
	taken chan struct{} // has an element for each
	used  int           // questions that have a place or wait for one
}

// wait returns when a user has a place. leave gives it back.
func (t *turns) wait(ctx context.Context, uid uint32) (leave func(), err error) {
	t.mu.Lock()
	if t.places == nil {
		t.places = map[uint32]*places{}
	}
	p := t.places[uid]
	if p == nil {
		p = &places{taken: make(chan struct{}, placesOfUser)}
		t.places[uid] = p
	}
	p.used++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if p.used--; p.used == 0 {
			delete(t.places, uid)
		}
	}
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, context.Cause(ctx)
	}
}
