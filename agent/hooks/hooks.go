// Package hooks does what the state says is to be done outside of it: it runs programs, sends messages and has burst
// buffers staged, and tells what came of each. It knows neither the log nor who leads: the server that does says when
// to begin. A hook that an earlier leader began and did not report runs again. Start with Runner.
package hooks

import (
	"context"
	"log/slog"

	"dev.muster/agent/guests"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Server is the server that leads.
type Server interface {
	// Snapshot is the state now; Committed is what of it the log has brought about.
	Snapshot() *cluster.Snapshot
	Committed() *cluster.Snapshot
	// Moved is closed when there is something else to be done.
	Moved() <-chan struct{}
	// Done writes down what came of hooks; an error is that this may not have been done.
	Done(ctx context.Context, ends []cluster.HookEnd) error
	// Addresses are those of all servers, HOST:PORT.
	Addresses() []string
}

// Runner does hooks for a server.
type Runner struct {
	Server  Server
	Dialect api.Dialect // words and runs what goes out; nil: nothing is done
	Socket  string      // where programs find a server
	Log     *slog.Logger
	Guests  *guests.House // where programs of users run
	// Stage calls a function for a burst buffer.
	Stage func(ctx context.Context, e *cluster.Hook, cfg *cluster.Config, again bool) cluster.HookEnd
	// Retain puts what of history is to go into files.
	Retain func(ctx context.Context, e *cluster.Hook, cfg *cluster.Config) error
}
