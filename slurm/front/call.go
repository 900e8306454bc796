package front

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
)

// Client reaches the local daemon.
func (s *Sys) Client() *api.Client { return &api.Client{Dial: s.Dial, Aged: s.aged} }

// toldAge is that a command has said how old its answers are.
var toldAge sync.Once

// aged says once that what a command tells is old.
func (s *Sys) aged(age time.Duration) {
	toldAge.Do(func() {
		s.Say("as of %v ago: this server lags behind the leader, or there is no leader",
			age.Round(time.Second))
	})
}

// Call makes one call with a background context: front-ends end by signals.
func Call[Q, R any](s *Sys, e api.Endpoint[Q, R], q Q) (R, error) {
	c := s.Client()
	defer c.Close()
	began := time.Now()
	ctx, done := s.patience(e.Path)
	defer done()
	r, known, err := direct(ctx, s, e, q)
	if !known {
		r, err = api.Call(ctx, c, e, q)
	}
	if err != nil && ctx.Err() != nil { // patience is over
		err = fmt.Errorf("%w: %w", api.ErrUnreachable, err)
	}
	s.tellCall(e.Method, e.Path, time.Since(began), err)
	away := uint32(0)
	if errors.Is(err, api.ErrUnreachable) {
		away = 1
	}
	atomic.StoreUint32(&s.away, away)
	s.sayWords(r, err)
	if err != nil && s.Refused != nil {
		s.Refused(err)
	}
	return r, err
}

// maxRecords bounds the jobs and steps of an answer from history that is made in the memory of a server. Each takes
// some 15 KB.
const maxRecords = 50_000

// History lists the records that a query asks for: all of them, or, in a server, a bounded number.
func History(s *Sys, q api.HistoryQuery) (api.HistoryResponse, error) {
	have, inServer := 0, s.NoFiles && q.Latest == 0
	return api.AllHistory(q, func(q api.HistoryQuery) (api.HistoryResponse, error) {
		one, err := Call(s, api.ListHistory, q)
		have += one.Size()
		if inServer && have > maxRecords {
			return one, cluster.Errorf(cluster.Invalid, "", "one answer has at most %d jobs and steps: ask for "+
				"fewer by a shorter time (start_time and end_time)", maxRecords)
		}
		return one, err
	})
}

// direct has a call answered in this process, where it can be.
func direct[Q, R any](ctx context.Context, s *Sys, e api.Endpoint[Q, R], q Q) (r R, known bool, err error) {
	if s.Direct == nil {
		return r, false, nil
	}
	v, known, err := s.Direct(ctx, e.Method, e.Path, q)
	if known && err == nil {
		r, known = v.(R)
	}
	return r, known, err
}

// sayWords tells what the site's script says to the user: of what is refused as an error.
func (s *Sys) sayWords(r any, err error) {
	var e *api.Error
	if errors.As(err, &e) {
		for _, line := range e.Said {
			s.Say("error: %s", line)
		}
	}
	if w, ok := r.(interface{ Late() string }); ok && err == nil && w.Late() != "" {
		s.warn(w.Late())
	}
	if w, ok := r.(interface{ Words() []string }); ok && err == nil {
		for _, line := range w.Words() {
			s.Say("%s", line)
		}
	}
}

// Unanswered reports whether the daemon did not answer the last call.
func (s *Sys) Unanswered() bool { return atomic.LoadUint32(&s.away) == 1 }

// tellCall tells at -vvv of a call, and what came of it.
func (s *Sys) tellCall(method, path string, took time.Duration, err error) {
	if !s.Tells(Debug2) {
		return
	}
	if err != nil {
		s.Tell(Debug2, "%s %s failed after %v: %v", method, path, took.Round(time.Microsecond), err)
		return
	}
	s.Tell(Debug2, "%s %s answered after %v", method, path, took.Round(time.Microsecond))
}

// warn prints a warning that is also part of an answer in JSON or YAML.
func (s *Sys) warn(text string) {
	s.Say("%s", text)
	s.sharedWarnings()
	*s.warnings = append(*s.warnings, data.Problem{Description: text, Source: s.Prog})
}

// sharedWarnings makes the list of warnings. Call it before s is copied for another cluster.
func (s *Sys) sharedWarnings() {
	if s.warnings == nil {
		s.warnings = new([]data.Problem)
	}
}
