// Package eventlog remembers what has happened lately in a cluster, for those who follow it, and words it for them.
package eventlog

import (
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"dev.muster/cluster"
)

// Size is how many events a server remembers for those who follow the cluster: about as many records of jobs, 20 MB.
const Size = 1 << 14

// maxBatch is how many events a follower gets at once, but for those of one index, which stay together.
const maxBatch = 512

// Record is an event and when it was.
type Record struct {
	Index uint64
	At    time.Time
	Past  bool // a later one tells of the same, and more
	cluster.Event
}

// Gather adds the events of one command; an object that is told of twice as it is, is told of once.
func Gather(list []Record, index uint64, at time.Time, events []cluster.Event) []Record {
	last := map[*cluster.Job]int{}
	for i, e := range events {
		if e.Job != nil {
			last[e.Job] = i
		}
	}
	for i, e := range events {
		again := last[e.Job] > i
		if again || e.OfHistory() {
			continue
		}
		list = append(list, Record{Index: index, At: at, Event: e})
	}
	return list
}

// Log is the latest events, oldest first. Those who follow it hold no place in it but the index up to which
// they have read, so nothing is kept for the slow ones.
type Log struct {
	size int

	mu    sync.Mutex
	list  []Record              // at most 2×size; the older half is dropped when it is full
	gone  int                   // how many were dropped
	rests map[cluster.JobID]int // of arrays, where the last event of what still waits is, counted with those dropped
	floor uint64                // up to this index something may be missing
	moved chan struct{}         // closed when there is more
}

func New(size int) *Log {
	return &Log{size: size, rests: map[cluster.JobID]int{}, moved: make(chan struct{})}
}

// Append adds the events of one index.
func (f *Log) Append(events []Record) {
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
		f.floor, f.gone = f.list[old-1].Index, f.gone+old
		f.list = slices.Clone(f.list[old:])
		maps.DeleteFunc(f.rests, func(_ cluster.JobID, at int) bool { return at < f.gone })
	}
	close(f.moved)
	f.moved = make(chan struct{})
}

// supersede forgets what was told last of the tasks of an array that wait, if the new record differs in these
// alone: each start tells of them again, and of an array of a million they are a bit each. Called with mu held.
func (f *Log) supersede(j *cluster.Job) {
	if j == nil || j.Phase != cluster.Pending || j.Tasks.Empty() {
		return
	}
	if at, known := f.rests[j.ID]; known && j.Spec.Array != nil {
		old := &f.list[at-f.gone]
		if sameButTasks(old.Job, j) {
			old.Past, old.Event = true, cluster.Event{}
		}
	}
	f.rests[j.ID] = f.gone + len(f.list)
}

// sameButTasks reports whether two records of an array's tasks that wait differ in which these are, and the older one
// is not of its submission.
func sameButTasks(old, j *cluster.Job) bool {
	if old.Tasks.Equal(j.Tasks) || old.Tasks.Equal(j.Spec.Array.Tasks) {
		return false
	}
	return standingOf(old) == standingOf(j) && old.Eligible.Equal(j.Eligible)
}

// standing is how a job waits.
type standing struct {
	held     cluster.Hold
	wait     cluster.Reason
	spec     *cluster.JobSpec
	priority uint32
	limit    time.Duration
	attempt  int
}

func standingOf(j *cluster.Job) standing {
	return standing{
		held:     j.Held,
		wait:     j.Wait,
		spec:     j.Spec,
		priority: j.Priority,
		limit:    j.Limit,
		attempt:  j.Attempt,
	}
}

// Restart forgets all: the state came in one piece.
func (f *Log) Restart(index uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list, f.floor, f.gone = nil, index, 0
	clear(f.rests)
	close(f.moved)
	f.moved = make(chan struct{})
}

// After returns what happened since an index, as much as makes a batch, and a channel that is closed when there is
// more; ok is false if some of it is forgotten.
func (f *Log) After(index uint64) (events []Record, more <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if index < f.floor {
		return nil, f.moved, false
	}
	from := sort.Search(len(f.list), func(i int) bool { return f.list[i].Index > index })
	to := min(from+maxBatch, len(f.list))
	for to > from && to < len(f.list) && f.list[to].Index == f.list[to-1].Index {
		to++
	}
	return slices.Clone(f.list[from:to]), f.moved, true
}

// Latest are the last events, newest first, that keep lets through.
func (f *Log) Latest(most int, keep func(*Record) bool) (out []Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.list) - 1; i >= 0 && len(out) < most; i-- {
		if !f.list[i].Past && keep(&f.list[i]) {
			out = append(out, f.list[i])
		}
	}
	return out
}
