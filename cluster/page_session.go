package cluster

import (
	"cmp"
	"time"
)

// EndedSession is a session of the page that was logged out before its time: no server takes its cookie any more.
type EndedSession struct {
	ID    string    `json:"id"`
	UID   uint32    `json:"uid"`
	Until time.Time `json:"until"` // when it would have ended
}

// Bounds of ended sessions.
const (
	maxSessionLife  = 24 * time.Hour
	maxSessionID    = 128
	maxUserSessions = 1000
)

// endedLess orders ended sessions by when they are forgotten.
func endedLess(x, y *EndedSession) bool {
	return cmp.Or(x.Until.Compare(y.Until), cmp.Compare(x.ID, y.ID)) < 0
}

// SessionOver reports whether a session was logged out.
func SessionOver(s *Snapshot, id string, until time.Time) bool {
	_, over := s.sessions.Get(&EndedSession{ID: id, Until: until})
	return over
}

// SessionEnd logs a session of the page out.
type SessionEnd struct {
	Session EndedSession `json:"session"`
}

func (*SessionEnd) kind() string { return "session_end" }

func (c *SessionEnd) apply(t *tx) (any, error) {
	s := c.Session
	forgetSessions(t)
	own := 0
	t.sessions.Scan(func(e *EndedSession) bool {
		if e.UID == s.UID {
			own++
		}
		return true
	})
	if err := firstError(
		refuseIf(t.by.UID != s.UID && !t.by.System,
			Denied, ErrAccess, "only its user logs a session out"),
		refuseIf(s.ID == "" || len(s.ID) > maxSessionID || s.Until.After(t.at.Add(maxSessionLife)),
			Invalid, "", "this is not a session of the page"),
		refuseIf(own >= maxUserSessions,
			Conflict, ErrTooBig, "user %d has logged out %d sessions within a day; try again later", s.UID, own),
	); err != nil {
		return nil, err
	}
	if s.Until.After(t.at) {
		putItem(t, t.sessions, &s)
	}
	return nil, nil
}

// forgetSessions drops ended sessions that would have ended by themselves.
func forgetSessions(t *tx) {
	for e, ok := t.sessions.Min(); ok && !e.Until.After(t.at); e, ok = t.sessions.Min() {
		dropItem(t, t.sessions, e)
	}
}

// sessionsDue reports whether ended sessions are to be forgotten.
func sessionsDue(s *Snapshot, now time.Time) bool {
	e, ok := s.sessions.Min()
	return ok && !e.Until.After(now)
}
