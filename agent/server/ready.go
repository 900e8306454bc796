package server

import (
	"bytes"
	"context"
	"time"

	"dev.muster/cluster"
)

// How long a call waits for a server that is starting, and a read for one that cannot know what of its
// log is committed: an election takes well under a second.
const (
	maxCatchUp   = 10 * time.Second
	readPatience = time.Second
)

// open lets calls through: the state has caught up with the log.
func (s *Server) open() {
	s.aheadMu.Lock()
	defer s.aheadMu.Unlock()
	s.ahead.Store(nil)
	close(s.current)
}

// ready returns once the state is current, or for a read as good as it gets.
func (s *Server) ready(ctx context.Context, read bool) error {
	select {
	case <-s.current:
		return nil
	default:
	}
	patience := maxCatchUp
	if read {
		patience = time.Until(s.booted.Add(readPatience))
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-s.current:
		return nil
	case <-wait.Done():
	}
	if read && ctx.Err() == nil {
		return s.readAhead()
	}
	return cluster.Errorf(cluster.Unavailable, "", "the server is starting and no leader is known yet; try again")
}

// readAhead makes the state as the log of this server would have it. The newest of it may yet turn out
// never to have been agreed on; nobody was told that it was.
func (s *Server) readAhead() error {
	s.aheadMu.Lock()
	defer s.aheadMu.Unlock()
	select {
	case <-s.current:
		return nil
	default:
	}
	if s.ahead.Load() != nil {
		return nil
	}
	var text bytes.Buffer
	if err := s.committed().Encode(&text); err != nil {
		return err
	}
	state, err := cluster.Decode(&text)
	if err != nil {
		return err
	}
	err = s.log.Unread(func(index uint64, lines [][]byte) error {
		for _, line := range lines {
			e, err := cluster.DecodeEntry(line)
			if err != nil {
				return err
			}
			e.Index = index
			state.Apply(e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if state.Index == 0 {
		return cluster.Errorf(cluster.Unavailable, "",
			"this server has no state yet: it waits to be taken into the group")
	}
	s.slog.Info("until a leader is known, the log is believed as it is here", "index", state.Index, "at", state.Now)
	s.ahead.Store(state.Snapshot())
	return nil
}

// heard is when this server last knew that its state was the newest.
func (s *Server) heard() time.Time {
	at := s.log.LastContact()
	if led := s.led.Load(); led != nil && led.After(at) {
		at = *led
	}
	if at.IsZero() {
		at = s.Snapshot().Now
	}
	return at
}
