package consensus

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// writeLimit is how long a leader's log may wait for the disk. A leader that cannot write decides nothing, but its
// heartbeats go on by themselves and would keep the others from electing one who can; so they are held back then.
const writeLimit = 2 * time.Second

var errDiskHangs = errors.New("the log waits for this server's disk: its heartbeats are held back")

// stopwatch tells since when a write of the log is under way.
type stopwatch struct {
	raft.LogStore
	base  time.Time
	since atomic.Int64 // nanoseconds from base; 0: none is
}

func newStopwatch(s raft.LogStore) *stopwatch {
	return &stopwatch{LogStore: s, base: time.Now().Add(-1)}
}

// StoreLog implements raft.LogStore.
func (s *stopwatch) StoreLog(e *raft.Log) error { return s.StoreLogs([]*raft.Log{e}) }

// StoreLogs implements raft.LogStore, which is called by one goroutine at a time.
func (s *stopwatch) StoreLogs(list []*raft.Log) error {
	s.since.Store(int64(time.Since(s.base))) // not by the clock, which may be set
	defer s.since.Store(0)
	return s.LogStore.StoreLogs(list)
}

// hangs reports whether a write takes longer than it may.
func (s *stopwatch) hangs() bool {
	at := s.since.Load()
	return at != 0 && time.Since(s.base)-time.Duration(at) > writeLimit
}

// Verify asks a majority of the servers whether this one still leads. The channel has the answer once it is known,
// which may be never; alone it is known at once.
func (l *Log) Verify() <-chan error {
	answer := make(chan error, 1)
	if l.alone() {
		answer <- nil
		return answer
	}
	f := l.raft.VerifyLeader()
	go func() { answer <- f.Error() }() // ends with the lead, at the latest
	return answer
}

// alone reports whether this server is the only one that votes.
func (l *Log) alone() bool {
	f := l.raft.GetConfiguration()
	if f.Error() != nil {
		return false
	}
	voters := 0
	for _, s := range f.Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	return voters == 1
}

// LeadMoved is closed when another server leads than now, or none.
func (l *Log) LeadMoved() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leadMoved
}

// watchLead closes what LeadMoved gives until stop is closed.
func (l *Log) watchLead(stop <-chan struct{}) {
	news := make(chan raft.Observation, 16)
	o := raft.NewObserver(news, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	l.raft.RegisterObserver(o)
	defer l.raft.DeregisterObserver(o)
	for {
		select {
		case <-stop:
			return
		case <-news:
			l.mu.Lock()
			close(l.leadMoved)
			l.leadMoved = make(chan struct{})
			l.mu.Unlock()
		}
	}
}
