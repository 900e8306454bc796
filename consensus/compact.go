package consensus

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// The log is compacted by its bytes, too: raft counts entries, of which one may hold a thousand proposals, and a
// server that starts reads all since the last snapshot.
const (
	mostLog   = 32 << 20 // and as much as the last snapshot has, at least: that is written again
	quietLog  = 1 << 20  // while nothing is written for quietTime
	quietTime = 5 * time.Second
)

// compaction counts what a start would have to read.
type compaction struct {
	read     atomic.Int64  // bytes that were applied since the last snapshot
	snapshot atomic.Int64  // bytes that it has
	moved    chan struct{} // poked when something is applied
}

func newCompaction() *compaction { return &compaction{moved: make(chan struct{}, 1)} }

func (c *compaction) applied(logs []*raft.Log) {
	n := 0
	for _, e := range logs {
		n += len(e.Data)
	}
	c.read.Add(int64(n))
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// due reports whether the log is to be compacted; quiet: nothing is written at the moment.
func (c *compaction) due(quiet bool) bool {
	if quiet {
		return c.read.Load() >= quietLog
	}
	return c.read.Load() >= max(mostLog, c.snapshot.Load())
}

// compact writes snapshots when they are due, until stop.
func (l *Log) compact(stop <-chan struct{}) {
	idle := time.NewTimer(quietTime)
	defer idle.Stop()
	for {
		quiet := false
		select {
		case <-stop:
			return
		case <-l.size.moved:
			idle.Reset(quietTime)
		case <-idle.C:
			quiet = true
		}
		if !l.size.due(quiet) {
			continue
		}
		l.size.read.Store(0) // if it fails it is tried again after as much
		if err := l.TakeSnapshot(); err != nil {
			l.log.Debug("no snapshot of the log", "err", err)
		}
	}
}

// sized counts what is written.
type sized struct {
	io.Writer
	n int64
}

func (s *sized) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	s.n += int64(n)
	return n, err
}
