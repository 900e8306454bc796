package server

import (
	"context"
	"errors"
	"time"

	"dev.muster/cluster"
)

// A leader that stood still, lost the others or waits for its disk may have been replaced without knowing it. So it
// asks a majority again and again whether it still leads, and what they say counts for a while only: calls that are
// open here and go on for long end when it is over, so that their callers turn to another server, and nobody is
// given up by a leader that is not sure of itself.
const (
	confirmEvery = 250 * time.Millisecond
	leaseTime    = 2 * time.Second
)

var errUnsure = errors.New("this server is not sure any more that it leads")

// reign is how sure this server is that it leads. Guarded by termMu.
type reign struct {
	until time.Time       // when what the majority said is too old
	sure  context.Context // ends with the term, and when the majority has not been heard of for too long
	end   context.CancelCauseFunc
}

// beginReign has this server be sure of its lead from a time on. Called with termMu held.
func (s *Server) beginReign(at time.Time) {
	if s.reign.end != nil {
		s.reign.end(nil)
	}
	s.reign.until = at.Add(leaseTime)
	s.reign.sure, s.reign.end = context.WithCancelCause(s.term)
}

// isSure reports whether this server leads as far as can be known. Called with termMu held.
func (s *Server) isSure(now time.Time) bool {
	return s.term != nil && s.reign.sure.Err() == nil && now.Before(s.reign.until)
}

// confirm asks the majority for one term.
func (s *Server) confirm(term context.Context) {
	for term.Err() == nil {
		asked := time.Now()
		if err := s.await(term, s.log.Verify()); err == nil {
			s.prolong(asked)
		}
		select {
		case <-term.Done():
		case <-time.After(confirmEvery):
		}
	}
}

// await waits for the majority's answer, however long it takes; meanwhile what it said last may lapse.
func (s *Server) await(term context.Context, answer <-chan error) error {
	select {
	case err := <-answer: // a server that is alone has it at once, however long it stood still
		return err
	default:
	}
	lapse := time.NewTimer(time.Until(s.sureUntil()))
	defer lapse.Stop()
	for {
		select {
		case <-term.Done():
			return term.Err()
		case <-lapse.C:
			s.lapse()
		case err := <-answer:
			return err
		}
	}
}

func (s *Server) sureUntil() time.Time {
	s.termMu.Lock()
	defer s.termMu.Unlock()
	return s.reign.until
}

// prolong notes that a majority has taken this server for the leader after it was asked. If it was unsure meanwhile it
// begins as a new leader does: nodes may have found no server that would hear them.
func (s *Server) prolong(asked time.Time) {
	s.termMu.Lock()
	defer s.termMu.Unlock()
	switch {
	case s.term == nil:
	case s.isSure(time.Now()):
		s.reign.until = asked.Add(leaseTime)
	case time.Since(asked) < leaseTime:
		s.slog.Info("sure again to lead")
		s.heartbeats.Grace(s.Snapshot(), time.Now())
		s.beginReign(asked)
		s.poke()
	}
}

// lapse ends what counts on this server's lead.
func (s *Server) lapse() {
	s.termMu.Lock()
	defer s.termMu.Unlock()
	if s.term != nil && s.reign.sure.Err() == nil {
		s.slog.Warn("not sure any more to lead", "since", time.Since(s.reign.until)+leaseTime)
		s.reign.end(errUnsure)
	}
}

// underReign is a context that ends with the caller's, and when this server is not sure any more that it leads;
// there is none if it is not by now. A server that takes the lead just now is bound by nothing yet.
func (s *Server) underReign(ctx context.Context) (context.Context, context.CancelFunc, error) {
	s.termMu.Lock()
	defer s.termMu.Unlock()
	if s.term == nil {
		return ctx, func() {}, nil
	}
	sure := s.reign.sure
	if sure.Err() != nil {
		return nil, nil, NoLeader()
	}
	out, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(sure, cancel)
	return out, func() { stop(); cancel() }, nil
}

// confirmState returns once this server has all that was acknowledged before. Without that a refusal does not count: a
// server that has just been elected may not have applied the newest commands yet, and one that has been replaced
// without knowing it never hears of them.
func confirmState(ctx context.Context, s *Server) error {
	s.termMu.Lock()
	begins := s.term == nil
	s.termMu.Unlock()
	if begins {
		if err := s.log.Barrier(leaseTime); err != nil {
			return NoLeader()
		}
		return nil
	}
	return awaitLead(ctx, s.log.Verify())
}

// awaitLead waits a while for a majority's answer whether this server leads.
func awaitLead(ctx context.Context, answer <-chan error) error {
	patience, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	select {
	case err := <-answer:
		if err != nil {
			return NoLeader()
		}
		return nil
	case <-patience.Done():
		return NoLeader()
	}
}

// Uncertain is the error of a write of which nobody here knows whether it is or will be done.
func Uncertain(why string) error {
	return cluster.Errorf(cluster.Unavailable, cluster.ErrUncertain, "%s: check whether it was carried out", why)
}
