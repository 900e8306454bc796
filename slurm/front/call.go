package front

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/api"
)

// Client reaches the local daemon.
func (s *Sys) Client() *api.Client { return &api.Client{Dial: s.Dial, Aged: s.aged} }

// toldAge is that a command has said how old its answers are.
var toldAge sync.Once

// aged says once that what a command tells is old.
func (s *Sys) aged(age time.Duration) {
	toldAge.Do(func() {
		s.Say("as of %v ago: the server that answers does not keep up with the one that leads, or none leads", age.Round(time.Second))
	})
}

// Call makes one call with a background context: front-ends end by signals.
func Call[Q, R any](s *Sys, e api.Endpoint[Q, R], q Q) (R, error) {
	c := s.Client()
	defer c.Close()
	r, err := api.Call(context.Background(), c, e, q)
	away := uint32(0)
	if errors.Is(err, api.ErrUnreachable) {
		away = 1
	}
	atomic.StoreUint32(&s.away, away)
	return r, err
}

// Unanswered reports whether the daemon did not answer the last call.
func (s *Sys) Unanswered() bool { return atomic.LoadUint32(&s.away) == 1 }
