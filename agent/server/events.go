package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"dev.muster/agent/eventlog"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Bounds of the change stream.
const (
	maxFollowers = 1000             // at a time, of one server
	maxFollowing = 125              // of them of one user
	eventBeat    = 15 * time.Second // a quiet stream says so
	// aheadTime is how long a server that is behind the index that is asked for may take to reach it.
	aheadTime = 10 * time.Second
)

// watchEvents answers a caller of the contract.
func (s *Server) watchEvents(ctx context.Context, who api.Caller, q api.EventQuery,
	send func([]api.Event) error) error {
	if err := s.ready(ctx, true); err != nil {
		return err
	}
	leave, ok := s.share.followers.Enter(who.UID, who.UID != 0)
	if !ok {
		return cluster.Errorf(cluster.Unavailable, "",
			"%d callers follow this server already, or %d of yours; ask another one", maxFollowers, maxFollowing)
	}
	defer leave()
	return s.follow(ctx, who, q, send)
}

// follow sends what happens since an index until ctx ends or send fails.
func (s *Server) follow(ctx context.Context, who api.Caller, q api.EventQuery, send func([]api.Event) error) error {
	at, err := s.reach(ctx, q.Since)
	if err != nil {
		return err
	}
	first := api.Event{Index: at, Time: time.Now(), Kind: api.EventBegin}
	if q.Since != nil && *q.Since > at {
		first = startOver(at, *q.Since)
	}
	if err := send([]api.Event{first}); err != nil {
		return err
	}
	beat := time.NewTicker(eventBeat)
	defer beat.Stop()
	for due := false; ; { // due: nothing was said for a beat
		now := at
		if due {
			now = s.committed().Index // before looking: what happened up to it is in the event log
		}
		events, more, ok := s.events.After(at)
		var out []api.Event
		switch {
		case !ok:
			now = s.committed().Index
			out, at = []api.Event{startOver(now, at)}, now
		case len(events) > 0:
			out, at = eventlog.Words(&q, s.visibleTo(who), events), events[len(events)-1].Index
		case due:
			at = max(at, now)
			out = []api.Event{{Index: at, Time: time.Now(), Kind: api.EventBeat}}
		}
		if len(out) > 0 {
			if err := send(out); err != nil {
				return err
			}
			due = false
			beat.Reset(eventBeat)
		}
		if len(events) > 0 || !ok {
			continue
		}
		select {
		case <-more:
		case <-beat.C:
			due = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reach is the index to follow from: the present one, or that which is asked for once this server has it, if it comes
// to it in time.
func (s *Server) reach(ctx context.Context, since *uint64) (uint64, error) {
	now := s.committed().Index
	if since == nil || *since <= now {
		if since != nil {
			now = *since
		}
		return now, nil
	}
	wait, cancel := context.WithTimeout(ctx, aheadTime)
	defer cancel()
	_ = s.log.Applied(wait, *since) // what is there is told
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return min(s.committed().Index, *since), nil
}

func startOver(at, since uint64) api.Event {
	why := fmt.Sprintf("what happened since index %d is not known here any more; list again, then follow on from index %d",
		since, at)
	if since > at {
		why = fmt.Sprintf("index %d has never been here; list again, then follow on from index %d", since, at)
	}
	return api.Event{Index: at, Time: time.Now(), Kind: api.EventStartOver, Code: http.StatusGone, Message: why}
}
