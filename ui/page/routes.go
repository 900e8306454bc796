package page

import (
	"net/http"
	"net/netip"

	"dev.muster/agent/eventlog"
	"dev.muster/agent/visibility"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/sched/explain"
	"dev.muster/ui"
	"dev.muster/ui/forms"
)

// New answers browsers.
func New(cfg webpage.Config) http.Handler {
	return newPages(cfg).handler()
}

func newPages(cfg webpage.Config) *pages {
	return &pages{Config: cfg,
		watching: eventlog.Followers[netip.Prefix]{All: maxLive, Each: maxLiveFrom},
		sending:  forms.NewPerUser(maxForms),
		hardware: newLater[*ui.CurveSet](curvesAge, curvesStale),
		starts:   newLater[explain.Explanation](startsAge, startsStale),
		today:    newLater[*ui.Today](pastAge, pastStale)}
}

// handler is the table of paths.
func (s *pages) handler() http.Handler {
	s.logins, s.submits = newLogins(s), newSubmits(s)
	s.shells = &shells{submits: s.submits, open: forms.NewPerUser(maxShells)}
	mux := http.NewServeMux()
	for path, v := range map[string]view{
		"/{$}": s.viewOverview, "/map": s.viewMap, "/queue": s.viewQueue, "/jobs/{id}": s.viewJob,
		"/nodes/{name}": s.viewNode, "/gpus/idle": s.viewIdle, "/jobs/{id}/log": s.viewLive,
		"/jobs/{id}/sooner": s.viewSooner, "/events": s.viewEvents, "/accounts": s.viewAccounts,
		"/reservations": s.viewReservations,
	} {
		mux.HandleFunc("GET "+path, s.page(v))
	}
	for typed, path := range map[string]string{"/jobs": "/queue", "/nodes": "/map"} {
		mux.Handle("GET "+typed, http.RedirectHandler(path, http.StatusFound))
		mux.Handle("GET "+typed+"/{$}", http.RedirectHandler(path, http.StatusFound))
	}
	mux.HandleFunc("GET /jobs/{id}/live", jobLog)
	mux.HandleFunc("GET /jobs/{id}/log/more", s.with(moreOutput))
	mux.HandleFunc("GET /jobs/{id}/log/file/{stream}", s.with(downloadOutput))
	mux.HandleFunc("GET /plan", s.page(func(sees visibility.Scope, r *http.Request) (string, string, any,
		error) {
		return viewPlan(s, sees, r)
	}))
	mux.HandleFunc("GET /find", s.with(search))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s.say(w, r, http.StatusNotFound, "Page not found",
			"No page at "+r.URL.Path+". Use the menu above, or search for a job or a node.")
	})
	mux.HandleFunc("GET /accounts.csv", s.accountsCSV)
	mux.HandleFunc("GET /usage.csv", s.usageCSV)
	mux.HandleFunc("GET /live", s.live)
	mux.HandleFunc("GET "+api.WatchEvents.Path, s.liveEvents)
	mux.Handle("GET /static/", http.StripPrefix("/static/", ui.Static()))
	mux.HandleFunc("GET /static/{$}", http.NotFound) // no list of them
	s.More(mux)
	s.actionRoutes(mux)
	own := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range guard {
			w.Header().Set(h[0], h[1])
		}
		withoutBody(w, r)
		if s.logins.closed(w, r) {
			return
		}
		own.ServeHTTP(w, r)
	})
}
