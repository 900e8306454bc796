package history

import (
	"context"
	"slices"
	"sync"
	"time"

	"dev.muster/api"
)

// History is written after the state has changed, so it may lag behind. An answer waits for it; if that takes too
// long, another server answers, or the answer reports what is missing.

const (
	// lagWait limits how long an answer waits for history to catch up.
	lagWait = 2 * time.Second
	// lagNoted is how far behind history may be on the page without a note.
	lagNoted = 2 * time.Second
	// mostNotes bounds the notes; beyond that every second one is dropped, and fewer are made.
	mostNotes = 4096
)

// note records that an entry of the log, made at a time, was applied here.
type note struct {
	index    uint64
	at, here time.Time
}

// notes are of the entries that history does not have yet, and of the last one that it has.
type notes struct {
	mu    sync.Mutex
	list  []note
	every int // entries for one note
	left  int // entries until the next note
}

// Note records that an entry of the log is applied. Call it before Apply.
func (k *Keeper) Note(index uint64, at time.Time) {
	n := &k.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left--; n.left > 0 {
		return
	}
	if len(n.list) >= mostNotes {
		n.drop(k.Reached())
	}
	n.left = n.every
	n.list = append(n.list, note{index, at, time.Now()})
}

// drop forgets entries that history has, and some of the others if there are many.
func (n *notes) drop(reached uint64) {
	first := 0
	for first+1 < len(n.list) && n.list[first+1].index <= reached {
		first++
	}
	n.list = slices.Delete(n.list, 0, first)
	if len(n.list) < mostNotes/2 {
		n.every = 1
		return
	}
	n.every = max(2*n.every, 2)
	kept := n.list[:0]
	for i := 0; i < len(n.list); i += 2 {
		kept = append(kept, n.list[i])
	}
	n.list = kept
}

// around returns the note of the last entry that history has, and of the first that it lacks; zero if unknown.
func (n *notes) around(reached uint64) (last, next note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.list {
		if one.index > reached {
			return last, one
		}
		last = one
	}
	return last, note{}
}

// Behind reports what history lacks; nil if it lacks nothing, or only entries that were applied less than the
// given time ago.
func (k *Keeper) Behind(least time.Duration) *api.Lag {
	known, reached := k.Known(), k.Reached()
	if known <= reached {
		return nil
	}
	last, next := k.notes.around(reached)
	if !next.here.IsZero() && time.Since(next.here) < least {
		return nil
	}
	lag := &api.Lag{AsOf: last.at, Missing: known - reached}
	if last.at.IsZero() {
		lag.AsOf = k.Committed().Now
	}
	return lag
}

// Lag reports what the page lacks.
func (k *Keeper) Lag() *api.Lag { return k.Behind(lagNoted) }

// settle waits until history has what this server knows to have happened, for a short while. If that fails it
// returns api.ErrElsewhere where another server can answer, and else what is missing.
func (k *Keeper) settle(ctx context.Context) (*api.Lag, error) {
	wait, cancel := context.WithTimeout(ctx, lagWait)
	defer cancel()
	err := k.Applied(wait, k.Known())
	if err == nil {
		err = k.Flush(wait)
	}
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case wait.Err() == nil:
		return nil, err
	case k.Elsewhere():
		return nil, api.ErrElsewhere
	}
	return k.Behind(0), nil
}
