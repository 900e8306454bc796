package slurm

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/api"
)

func (s *Sys) client() *api.Client { return &api.Client{Dial: s.Dial, Aged: s.aged} }

// toldAge is that a command has said how old its answers are.
var toldAge sync.Once

// aged says once that what a command tells is old.
func (s *Sys) aged(age time.Duration) {
	toldAge.Do(func() {
		s.say("as of %v ago: the server that answers does not keep up with the one that leads, or none leads", age.Round(time.Second))
	})
}

// call makes one call with a background context: front-ends end by signals.
func call[Q, R any](s *Sys, e api.Endpoint[Q, R], q Q) (R, error) {
	c := s.client()
	defer c.Close()
	r, err := api.Call(context.Background(), c, e, q)
	away := uint32(0)
	if errors.Is(err, api.ErrUnreachable) {
		away = 1
	}
	atomic.StoreUint32(&s.away, away)
	return r, err
}
