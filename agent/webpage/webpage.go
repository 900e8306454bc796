// Package webpage is what a server gives to the status page that is shown at its port, and the settings of that: the
// page itself stands above the servers (package ui/page), which know it by these types alone.
package webpage

import (
	"context"
	"log/slog"
	"net/http"

	"dev.muster/agent/eventlog"
	"dev.muster/agent/guests"
	"dev.muster/agent/lookup"
	"dev.muster/agent/samples"
	"dev.muster/agent/session"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Server is what the page asks of the server that shows it.
type Server interface {
	Snapshot() *cluster.Snapshot
	// Servers are the members of the group.
	Servers() []api.Server
	// Foretell fills in the expected starts that the scheduler has not planned.
	Foretell(*cluster.Snapshot, []*cluster.Job)
	// Follow sends what happens, as far as a caller may see it, until ctx ends or send fails.
	Follow(ctx context.Context, who api.Caller, q api.EventQuery, send func([]api.Event) error) error
	// TokenCaller says as whom a token lets somebody act.
	TokenCaller(token string) (api.Caller, error)
	// Link is whom a link lets in, which any server has made; open uses it up.
	Link(ctx context.Context, link string, open bool) (session.Session, bool)
	// LogOut ends a session on all servers.
	LogOut(context.Context, *session.Session)
	// Note records in the audit trail a visitor's action that is not a command of the log; from is the origin.
	Note(ctx context.Context, who *session.Session, from string, n cluster.AuditNote)
}

// History is where pages read the past.
type History interface {
	lookup.History
	Usage(context.Context, cluster.UsageQuery) ([]cluster.UsageRow, error)
}

// Config is what the page is made from.
type Config struct {
	Server
	Name, Version string
	Log           *slog.Logger
	Sessions      *session.Store
	Events        *eventlog.Log
	Samples       *samples.Store
	History       History // nil: none is kept
	// Lag reports what history lacks, or nil; nil: nothing ever is.
	Lag     func() *api.Lag
	Dialect api.Dialect // words why a job has ended; nil: it is not said
	// Call does what visitors who have logged in ask for.
	Call api.InNameOf
	// Front and Socket are of the commands that forms run; "" where there are none.
	Front, Socket string
	Guests        *guests.House // where they run
	// More registers what is served beside the views, and kept from the same visitors.
	More func(*http.ServeMux)
}

// Maker makes the page of a server.
type Maker func(Config) http.Handler
