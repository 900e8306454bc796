package server

import (
	"context"
	"encoding/csv"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"dev.muster/agent/forms"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// The status page: what it shows is from this server's own snapshot; what is done from it goes the way of the commands
// (page_act.go). Nothing of users' scripts and environments is in it.

// pace is how often a page that follows the cluster is told of a change, at most; pageBeat how often a quiet
// connection is written to, so that both sides notice when the other has gone.
const (
	pace     = time.Second
	pageBeat = 15 * time.Second
)

// maxLive bounds the pages that follow the cluster at a time.
const maxLive = 1000

// guard is what every answer says of how it may be used.
var guard = [...][2]string{
	{"Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"X-Frame-Options", "DENY"},
	{"Cache-Control", "no-store"},
}

// view makes what a page shows; its title is the page's.
type view func(sees visibility, r *http.Request) (name, title string, data any, err error)

// pages are the views of one server, and what they need of it.
type pages struct {
	name, version string
	log           *slog.Logger
	snapshot      func() *cluster.Snapshot
	servers       func() []api.Server
	leads         func() bool
	panics        func() uint64    // defects that Apply has met
	heard         func() time.Time // of the leader
	stats         *stats
	watching      atomic.Int64 // pages that follow the cluster
	sessions      *sessions
	logins        *logins
	submits       *submits
	shells        *shells
	token         func(token, named string) (api.Caller, error) // nil: none is taken
	logOut        func(context.Context, *session)               // everywhere
	call          CallAs
	hooks         *Hooks
	events        *eventLog
	hist          History
	dialect       api.Dialect // words why a job has ended; nil: it is not said
	daily         daily
	past          pastJobs
	curves        curves
	hardware      hardwareCurves
	samples       *samples
	moment        moment
	foretell      func(*cluster.Snapshot, []*cluster.Job) // fills in expected starts
	follow        func(context.Context, api.Caller, api.EventQuery, func([]api.Event) error) error
}

// Pages answers browsers and scrapers; call does what visitors who have logged in ask for.
func (s *Server) Pages(call CallAs) http.Handler {
	s.samples.callAs.Store(&call)
	p := &pages{hooks: &s.cfg.Hooks, name: s.cfg.Name, version: s.cfg.Version, log: s.slog, snapshot: s.Snapshot, servers: s.servers,
		leads: s.Leads, panics: s.panics.Load, heard: s.heard, stats: s.stats, follow: s.follow, sessions: s.sessions,
		logOut: s.logOut, call: call, events: s.events, hist: s.hist, dialect: s.cfg.Dialect,
		foretell: s.foretell, samples: s.samples,
		token: func(token, named string) (api.Caller, error) { return TokenCaller(s, token, named) }}
	return p.handler()
}

// handler is the table of paths.
func (s *pages) handler() http.Handler {
	s.logins, s.submits = newLogins(s), newSubmits(s, s.hooks)
	s.shells = &shells{submits: s.submits, open: forms.NewPerUser(maxShells)}
	mux := http.NewServeMux()
	for path, v := range map[string]view{"/{$}": s.viewOverview, "/map": s.viewMap, "/queue": s.viewQueue, "/jobs/{id}": s.viewJob,
		"/nodes/{name}": s.viewNode, "/gpus/idle": s.viewIdle, "/jobs/{id}/log": s.viewLive, "/jobs/{id}/sooner": s.viewSooner,
		"/events": s.viewEvents, "/accounts": s.viewAccounts, "/reservations": s.viewReservations} {
		mux.HandleFunc("GET "+path, s.page(v))
	}
	mux.HandleFunc("GET /jobs/{id}/live", jobLog)
	mux.HandleFunc("GET /jobs/{id}/log/more", s.with(moreOutput))
	mux.HandleFunc("GET /jobs/{id}/log/file/{stream}", s.with(downloadOutput))
	mux.HandleFunc("GET /plan", s.page(func(sees visibility, r *http.Request) (string, string, any,
		error) {
		return viewPlan(s, sees, r)
	}))
	mux.HandleFunc("GET /find", s.with(search))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s.say(w, r, http.StatusNotFound, "Not here",
			"There is no "+r.URL.Path+" on this page. The views are above; the search finds jobs and nodes.")
	})
	mux.HandleFunc("GET /accounts.csv", s.accountsCSV)
	mux.HandleFunc("GET /usage.csv", s.usageCSV)
	mux.HandleFunc("GET /live", s.live)
	mux.HandleFunc("GET "+api.WatchEvents.Path, s.liveEvents)
	mux.Handle("GET /static/", http.StripPrefix("/static/", ui.Static()))
	mux.HandleFunc("GET /static/{$}", http.NotFound) // no list of them
	s.metricRoutes(mux)
	s.actionRoutes(mux)
	own := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range guard {
			w.Header().Set(h[0], h[1])
		}
		if s.logins.closed(w, r) {
			return
		}
		own.ServeHTTP(w, r)
	})
}

// with makes a handler of a function of pages.
func (s *pages) with(do func(*pages, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { do(s, w, r) }
}

// page renders a view of the present snapshot; for those who follow without a session, of the moment that they all see.
func (s *pages) page(v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, in := s.visitor(r)
		show := func(w http.ResponseWriter, snap *cluster.Snapshot) {
			name, title, data, err := v(visibilityOf(snap, who), r)
			if err != nil {
				e := api.AsError(err)
				code := api.Status(e.Code)
				if e.Kind == gone {
					code = http.StatusGone
				}
				s.say(w, r, code, "Not here", e.Message)
				return
			}
			s.render(w, r, in, http.StatusOK, name, title, data)
		}
		if who.UID == nobody && r.Header.Get("X-Part") != "" {
			s.moment.view(w, r, s.snapshot, show)
			return
		}
		show(w, s.snapshot())
	}
}

// live tells a page of each newer log index.
func (s *pages) live(w http.ResponseWriter, r *http.Request) {
	if s.watching.Add(1) > maxLive {
		s.watching.Add(-1)
		http.Error(w, "too many pages follow this server; reload by hand, or open another server's", http.StatusServiceUnavailable)
		return
	}
	defer s.watching.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	var told uint64
	for quiet := time.Duration(0); ; quiet += pace {
		text := ""
		if at := s.moment.now(s.snapshot).Index; at != told {
			told, text = at, fmt.Sprintf("id: %d\ndata: %d\n\n", at, at)
		} else if quiet >= pageBeat {
			text = ":\n\n"
		}
		if text != "" {
			quiet = 0
			if rc.SetWriteDeadline(time.Now().Add(pageBeat)) != nil {
				return
			}
			if _, err := w.Write([]byte(text)); err != nil || rc.Flush() != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// accountsCSV is the view of accounts for a spreadsheet.
func (s *pages) accountsCSV(w http.ResponseWriter, r *http.Request) {
	who, _ := s.visitor(r)
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	out := csv.NewWriter(w)
	_ = out.Write([]string{"account", "user", "shares", "usage_billing_hours", "gpu_hours", "fair_share"})
	for _, a := range shares(visibilityOf(s.snapshot(), who)) {
		_ = out.Write([]string{a.Account, a.User, a.Shares, a.Usage, a.GPUHours, a.Fair})
	}
	out.Flush()
}
