package server

import (
	"slices"
	"sort"
	"sync"
	"time"

	"dev.muster/cluster"
)

// maxFeed is how many events a server remembers for those who follow the cluster: about as many records of jobs, 20 MB.
const maxFeed = 1 << 14

// maxBatch is how many events a follower gets at once, but for those of one index, which stay together.
const maxBatch = 512

// told is an event and when it was.
type told struct {
	index uint64
	at    time.Time
	cluster.Event
}

// appendTold adds the events of one command; an object that is told of twice as it is, is told of once.
func appendTold(list []told, index uint64, at time.Time, events []cluster.Event) []told {
	for i, e := range events {
		if e.Forget != nil || e.Load != nil || e.Change != nil || e.Amend != nil {
			continue // of history's records alone
		}
		if e.Job != nil && slices.ContainsFunc(events[i+1:], func(o cluster.Event) bool { return o.Job == e.Job }) {
			continue
		}
		list = append(list, told{index, at, e})
	}
	return list
}

// feed is the latest events, oldest first. Those who follow it hold no place in it but the index up to which they have
// read, so nothing is kept for the slow ones.
type feed struct {
	size int

	mu    sync.Mutex
	list  []told        // at most 2×size; the older half is dropped when it is full
	floor uint64        // up to this index something may be missing
	moved chan struct{} // closed when there is more
}

func newFeed(size int) *feed { return &feed{size: size, moved: make(chan struct{})} }

// note adds the events of one index.
func (f *feed) note(events []told) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, events...)
	if len(f.list) > 2*f.size {
		old := len(f.list) - f.size
		f.floor = f.list[old-1].index
		f.list = slices.Clone(f.list[old:])
	}
	close(f.moved)
	f.moved = make(chan struct{})
}

// restart forgets all: the state came in one piece.
func (f *feed) restart(index uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list, f.floor = nil, index
	close(f.moved)
	f.moved = make(chan struct{})
}

// after returns what happened since an index, as much as makes a batch, and a channel that is closed when there is more;
// ok is false if some of it is forgotten.
func (f *feed) after(index uint64) (events []told, more <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if index < f.floor {
		return nil, f.moved, false
	}
	from := sort.Search(len(f.list), func(i int) bool { return f.list[i].index > index })
	to := min(from+maxBatch, len(f.list))
	for to > from && to < len(f.list) && f.list[to].index == f.list[to-1].index {
		to++
	}
	return f.list[from:to:to], f.moved, true
}

// latest are the last events, newest first, that keep lets through.
func (f *feed) latest(most int, keep func(*told) bool) (out []told) {
	f.mu.Lock()
	list := f.list
	f.mu.Unlock()
	for i := len(list) - 1; i >= 0 && len(out) < most; i-- {
		if keep(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}
