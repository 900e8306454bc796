package consensus

import (
	"errors"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// mostKept bounds how many entries are kept of an end that was cut off: a leader has few in flight.
const mostKept = 2 * maxAppendEntries

// retaining is a log store that remembers the end which raft cuts off until something is stored in its place.
//
// A follower whose last entries contradict the leader's deletes them and then stores his. If that fails, the disk is
// full, hashicorp/raft still takes the deleted ones for its last, and refuses everything afterwards because it cannot
// read them. Entries that were never committed may stay as long as one likes, so they are shown to it until then.
type retaining struct {
	raft.LogStore
	mu  sync.Mutex
	cut map[uint64]*raft.Log
}

func (s *retaining) GetLog(index uint64, out *raft.Log) error {
	err := s.LogStore.GetLog(index, out)
	if !errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.cut[index]; e != nil {
		*out = *e
		return nil
	}
	return err
}

func (s *retaining) DeleteRange(low, high uint64) error {
	last, err := s.LogStore.LastIndex()
	if err != nil {
		return err
	}
	if last == high && high-low < mostKept {
		cut := map[uint64]*raft.Log{}
		for i := low; i <= high; i++ {
			e := &raft.Log{}
			if err := s.LogStore.GetLog(i, e); err != nil {
				return err
			}
			cut[i] = e
		}
		s.mu.Lock()
		s.cut = cut
		s.mu.Unlock()
	}
	return s.LogStore.DeleteRange(low, high)
}

func (s *retaining) StoreLog(e *raft.Log) error { return s.StoreLogs([]*raft.Log{e}) }

func (s *retaining) StoreLogs(list []*raft.Log) error {
	if err := s.LogStore.StoreLogs(list); err != nil {
		return err
	}
	s.mu.Lock()
	s.cut = nil
	s.mu.Unlock()
	return nil
}

// thrifty is a cache of a log's latest entries that leaves out large ones: with scripts of megabytes it would hold
// gigabytes.
type thrifty struct {
	raft.LogStore // the cache, before the disk
	disk          raft.LogStore
}

// StoreLog implements raft.LogStore.
func (s *thrifty) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. It reads entries that the cache lacks from the disk.
func (s *thrifty) StoreLogs(logs []*raft.Log) error {
	if slices.ContainsFunc(logs, func(l *raft.Log) bool { return len(l.Data) > maxCachedBytes }) {
		return s.disk.StoreLogs(logs)
	}
	return s.LogStore.StoreLogs(logs)
}
