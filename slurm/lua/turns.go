package lua

import (
	"context"
	"sync"

	"dev.muster/cluster"
)

// maxMachines is how many calls of the script run at once.
const maxMachines = 8

// turns lets the calls for one user run one after the other, so that one user's calls never keep out those of others,
// and bounds how many run at once.
type turns struct {
	mu    sync.Mutex
	users map[uint32]*turn
	slots chan struct{}
}

// turn is a user's. Whoever puts a value into the channel has it.
type turn struct {
	taken chan struct{}
	calls int // that have it or wait for it
}

// take waits for a user's turn. Call leave when the call is over.
func (t *turns) take(ctx context.Context, uid uint32) (leave func(), err error) {
	u := t.join(uid)
	if err := acquire(ctx, u.taken); err != nil {
		t.leave(uid)
		return nil, err
	}
	if err := acquire(ctx, t.slots); err != nil {
		<-u.taken
		t.leave(uid)
		return nil, err
	}
	return func() {
		<-t.slots
		<-u.taken
		t.leave(uid)
	}, nil
}

func acquire(ctx context.Context, c chan struct{}) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return cluster.Errorf(cluster.Unavailable, "",
			"%s: your earlier submissions are still being checked; try again later", SubmitFile)
	}
}

func (t *turns) join(uid uint32) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users == nil {
		t.users, t.slots = map[uint32]*turn{}, make(chan struct{}, maxMachines)
	}
	u := t.users[uid]
	if u == nil {
		u = &turn{taken: make(chan struct{}, 1)}
		t.users[uid] = u
	}
	u.calls++
	return u
}

func (t *turns) leave(uid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users[uid].calls--; t.users[uid].calls == 0 {
		delete(t.users, uid)
	}
}
