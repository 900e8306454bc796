// Package turns gives each user a few places for questions that cost a daemon much, so that a user who asks very often
// delays nobody else. It does not know the questions. Start with Turns.
package turns

import (
	"context"
	"sync"
)

// Turns are the places of users for one kind of question. The zero value is ready.
type Turns struct {
	mu     sync.Mutex
	places map[uint32]*places
}

// places are those of one user.
type places struct {
	taken chan struct{} // has an element for each
	used  int           // questions that have a place or wait for one
}

// Wait returns when a user has one of so many places, or an error when ctx ends first. leave gives the place back; call
// it once.
func (t *Turns) Wait(ctx context.Context, uid uint32, most int) (leave func(), err error) {
	p := t.join(uid, most)
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken; t.quit(uid, p) }, nil
	case <-ctx.Done():
		t.quit(uid, p)
		return nil, context.Cause(ctx)
	}
}

// join counts one more question of a user.
func (t *Turns) join(uid uint32, most int) *places {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places == nil {
		t.places = map[uint32]*places{}
	}
	p := t.places[uid]
	if p == nil {
		p = &places{taken: make(chan struct{}, most)}
		t.places[uid] = p
	}
	p.used++
	return p
}

// quit takes a question off the count, and forgets a user who has none.
func (t *Turns) quit(uid uint32, p *places) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.used--; p.used == 0 {
		delete(t.places, uid)
	}
}
