package api

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A call may be held for a minute, and all this time nothing would tell a server that thinks from one that is stopped,
// swapped out or behind a broken network. So a member that is called beats: while it works on a call it sends an
// interim answer (status 102) again and again. Of one that has missed two, nothing more is expected.
const (
	BeatEvery = time.Second
	beatLimit = 2*BeatEvery + 500*time.Millisecond
	beatBytes = 64 << 10 // of a request are to be taken within beatLimit
)

// Beating is a connection that knows whether its other side beats. Others do not, nor do members of older versions.
type Beating interface{ Beats() bool }

// lively reads and writes a connection whose other side may not be silent for long during a call.
type lively struct {
	Conn
	call context.Context // the one under way; nil while nothing is expected
}

func (l *lively) Read(b []byte) (int, error) {
	if err := l.expect(); err != nil {
		return 0, err
	}
	n, err := l.Conn.Read(b)
	return n, l.silent(err)
}

func (l *lively) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		if err := l.expect(); err != nil {
			return done, err
		}
		n, err := l.Conn.Write(b[done:min(done+beatBytes, len(b))])
		done += n
		if err != nil {
			return done, l.silent(err)
		}
	}
	return done, nil
}

// expect gives the other side its time, unless the call has ended: then its deadline has to stay as it is.
func (l *lively) expect() error {
	if l.call == nil {
		return nil
	}
	if err := l.SetDeadline(time.Now().Add(beatLimit)); err != nil {
		return err
	}
	return l.call.Err()
}

var errSilent = errors.New("no sign of life")

// silent says what the end of the time means.
func (l *lively) silent(err error) error {
	late, ok := err.(interface{ Timeout() bool })
	if l.call == nil || !ok || !late.Timeout() || l.call.Err() != nil {
		return err
	}
	return fmt.Errorf("%w for %v", errSilent, beatLimit)
}

// watch has the other side show that it is there during a call.
func (c *clientConn) watch(call context.Context) {
	if c.lively != nil {
		c.lively.call = call
	}
}

// unwatch lets it be silent, on a connection that is more than a call from now on.
func (c *clientConn) unwatch() {
	if c.lively != nil {
		c.lively.call = nil
		_ = c.SetDeadline(time.Time{})
	}
}
