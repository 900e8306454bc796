package server

import (
	"maps"
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

// loggedEvent is an event and when it was.
type loggedEvent struct {
	index uint64
	at    time.Time
	past  bool // a later one tells of the same, and more
	cluster.Event
}

// appendLogged adds the events of one command; an object that is told of twice as it is, is told of once.
func appendLogged(list []loggedEvent, index uint64, at time.Time, events []cluster.Event) []loggedEvent {
	last := map[*cluster.Job]int{}
	for i, e := range events {
		if e.Job != nil {
			last[e.Job] = i
		}
	}
	for i, e := range events {
		if e.Forget != nil || e.Load != nil || e.Change != nil || e.Amend != nil {
			continue // of history's records alone
		}
		if e.Job != nil && last[e.Job] > i {
			continue
		}
		list = append(list, loggedEvent{index: index, at: at, Event: e})
	}
	return list
}

// eventLog is the latest events, oldest first. Those who follow it hold no place in it but the index up to which
// they have read, so nothing is kept for the slow ones.
type eventLog struct {
	size int

	mu    sync.Mutex
	list  []loggedEvent         // at most 2×size; the older half is dropped when it is full
	gone  int                   // how many were dropped
	rests map[cluster.JobID]int // of arrays, where the last event of what still waits is, counted with those dropped
	floor uint64                // up to this index something may be missing
	moved chan struct{}         // closed when there is more
}

func newEventLog(size int) *eventLog {
	return &eventLog{size: size, rests: map[cluster.JobID]int{}, moved: make(chan struct{})}
}

// append adds the events of one index.
func (f *eventLog) append(events []loggedEvent) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.supersede(e.Job)
		f.list = append(f.list, e)
	}
	if len(f.list) > 2*f.size {
		old := len(f.list) - f.size
		f.floor, f.gone = f.list[old-1].index, f.gone+old
		f.list = slices.Clone(f.list[old:])
		maps.DeleteFunc(f.rests, func(_ cluster.JobID, at int) bool { return at < f.gone })
	}
	close(f.moved)
	f.moved = make(chan struct{})
}

// supersede forgets what was told last of the tasks of an array that wait, if the new record differs in these
// alone: each start tells of them anew, and of an array of a million they are a bit each. Called with mu held.
func (f *eventLog) supersede(j *cluster.Job) {
	if j == nil || j.Phase != cluster.Pending || j.Tasks.Empty() {
		return
	}
	at, known := f.rests[j.ID]
	if known && j.Spec.Array != nil {
		if old := &f.list[at-f.gone]; old.Job.Spec == j.Spec && old.Job.Held == j.Held && old.Job.Wait == j.Wait && old.Job.Priority == j.Priority &&
			old.Job.Limit == j.Limit && old.Job.Eligible.Equal(j.Eligible) && old.Job.Attempt == j.Attempt && !old.Job.Tasks.Equal(j.Tasks) && !old.Job.Tasks.Equal(j.Spec.Array.Tasks) { // but not its submission
			old.past, old.Event = true, cluster.Event{}
		}
	}
	f.rests[j.ID] = f.gone + len(f.list)
}

// restart forgets all: the state came in one piece.
func (f *eventLog) restart(index uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list, f.floor, f.gone = nil, index, 0
	clear(f.rests)
	close(f.moved)
	f.moved = make(chan struct{})
}

// after returns what happened since an index, as much as makes a batch, and a channel that is closed when there is
// more; ok is false if some of it is forgotten.
func (f *eventLog) after(index uint64) (events []loggedEvent, more <-chan struct{}, ok bool) {
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
	return slices.Clone(f.list[from:to]), f.moved, true
}

// latest are the last events, newest first, that keep lets through.
func (f *eventLog) latest(most int, keep func(*loggedEvent) bool) (out []loggedEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.list) - 1; i >= 0 && len(out) < most; i-- {
		if !f.list[i].past && keep(&f.list[i]) {
			out = append(out, f.list[i])
		}
	}
	return out
}
