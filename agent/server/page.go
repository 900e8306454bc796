package server

import (
	"context"
	"net/http"

	"dev.muster/agent/metrics"
	"dev.muster/agent/session"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Pages answers browsers and scrapers; call does what visitors who have logged in ask for.
func (s *Server) Pages(call api.InNameOf) http.Handler {
	s.inName.Store(&call)
	scraped := metrics.Exporter{
		Name: s.cfg.Name, Version: s.cfg.Version, Snapshot: s.Snapshot, Servers: s.servers, Leads: s.Leads,
		Panics: s.panics.Load, Heard: s.heard, Stats: s.stats, Samples: s.hist.Samples,
	}
	if s.cfg.Page == nil {
		mux := http.NewServeMux()
		scraped.Routes(mux)
		return mux
	}
	return s.cfg.Page(webpage.Config{
		Server: pageServer{s}, Name: s.cfg.Name, Version: s.cfg.Version, Log: s.slog,
		Sessions: s.credentials.sessions, Events: s.events, Samples: s.hist.Samples, History: s.hist.History,
		Lag:     s.hist.Lag,
		Dialect: s.cfg.Dialect, Call: call, More: scraped.Routes,
		Front: s.cfg.Hooks.Front, Socket: s.cfg.Hooks.Socket, Guests: s.share.guests,
	})
}

// pageServer is what pages see of a server.
type pageServer struct{ s *Server }

func (p pageServer) Snapshot() *cluster.Snapshot { return p.s.Snapshot() }

func (p pageServer) Servers() []api.Server { return p.s.servers() }

func (p pageServer) Foretell(snap *cluster.Snapshot, jobs []*cluster.Job) { p.s.foretell(snap, jobs) }

func (p pageServer) Follow(ctx context.Context, who api.Caller, q api.EventQuery, send func([]api.Event) error) error {
	return p.s.follow(ctx, who, q, send)
}

func (p pageServer) TokenCaller(token string) (api.Caller, error) {
	return p.s.TokenCaller(token, "", "page")
}

func (p pageServer) Link(ctx context.Context, link string, open bool) (session.Session, bool) {
	return linkAnywhere(ctx, p.s, link, open)
}

func (p pageServer) LogOut(ctx context.Context, who *session.Session) { p.s.logOut(ctx, who) }

func (p pageServer) Note(ctx context.Context, who *session.Session, from string, n cluster.AuditNote) {
	by := who.Caller().Identity
	by.Origin = from
	note(ctx, p.s, by, n)
}
