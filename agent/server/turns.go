package server

import (
	"context"

	"dev.muster/agent/eventlog"
	"dev.muster/agent/guests"
	"dev.muster/agent/turns"
)

// share bounds what each user takes of a server.
type share struct {
	followers eventlog.Followers[uint32] // callers who follow the events
	bursts    turns.Turns                // to have the script for burst buffers called
	guests    *guests.House              // programs that run as users here
}

// placesOfUser is how many questions of one kind are answered at a time for one user; the next wait.
const placesOfUser = 4

// waitForBurst returns when a user may have the script for burst buffers called.
func (s *share) waitForBurst(ctx context.Context, uid uint32) (leave func(), err error) {
	return s.bursts.Wait(ctx, uid, placesOfUser)
}
