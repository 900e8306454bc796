package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// The status page: read only, from this server's own snapshot. Nothing of users' scripts, environments or output is in it.

// pace is how often a page that follows the cluster is told of a change, at most; pageBeat how often a quiet connection is
// written to, so that both sides notice when the other has gone.
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
type view func(snap *cluster.Snapshot, r *http.Request) (name, title string, data any, err error)

// pages are the views of one server, and what they need of it.
type pages struct {
	name, version string
	log           *slog.Logger
	snapshot      func() *cluster.Snapshot
	servers       func() []api.Server
	leads         func() bool
	heard         func() time.Time // of the leader
	watching      atomic.Int64     // pages that follow the cluster
	follow        func(context.Context, api.Caller, api.EventQuery, func([]api.Event) error) error
}

// Pages answers browsers and scrapers.
func (s *Server) Pages() http.Handler {
	p := &pages{name: s.cfg.Name, version: s.cfg.Version, log: s.slog, snapshot: s.Snapshot, servers: s.servers, leads: s.Leads, heard: s.heard, follow: s.follow}
	return p.handler()
}

// handler is the table of paths.
func (s *pages) handler() http.Handler {
	mux := http.NewServeMux()
	for path, v := range map[string]view{"/{$}": s.viewOverview, "/map": s.viewMap, "/queue": s.viewQueue, "/jobs/{id}": s.viewJob,
		"/nodes/{name}": s.viewNode, "/accounts": s.viewAccounts, "/reservations": s.viewReservations} {
		mux.HandleFunc("GET "+path, s.page(v))
	}
	mux.HandleFunc("GET /accounts.csv", s.accountsCSV)
	mux.HandleFunc("GET /live", s.live)
	mux.HandleFunc("GET "+api.WatchEvents.Path, s.liveEvents)
	mux.Handle("GET /static/", http.StripPrefix("/static/", ui.Static()))
	s.metricRoutes(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range guard {
			w.Header().Set(h[0], h[1])
		}
		if private := s.snapshot().Config().Keys["privatedata"]; private != "" && !strings.HasPrefix(r.URL.Path, "/livez") && !strings.EqualFold(private, "none") {
			http.Error(w, "PrivateData="+private+" is set: this page is for nobody without a login, which it does not have yet; use squeue, sinfo and sacct", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// page renders a view of the present snapshot.
func (s *pages) page(v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		snap := s.snapshot()
		name, title, data, err := v(snap, r)
		if err != nil {
			code := http.StatusInternalServerError
			if e := (*cluster.Error)(nil); errors.As(err, &e) && e.Code == cluster.NotFound {
				code = http.StatusNotFound
			}
			http.Error(w, err.Error(), code)
			return
		}
		var out bytes.Buffer
		p := ui.Page{Title: title, Cluster: cmp.Or(snap.Config().ClusterName, "cluster"), Version: s.version, Server: s.name,
			Now: time.Now(), Index: snap.Index, View: data}
		if err := ui.Render(&out, name, p, r.Header.Get("X-Part") != ""); err != nil {
			s.log.Error("a page could not be made", "path", r.URL.Path, "err", err)
			http.Error(w, "the page could not be made; see the server's log", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
		_, _ = out.WriteTo(w)
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
		if at := s.snapshot().Index; at != told {
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
func (s *pages) accountsCSV(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	out := csv.NewWriter(w)
	_ = out.Write([]string{"account", "user", "shares", "usage_billing_hours", "gpu_hours", "fair_share"})
	for _, a := range shares(s.snapshot()) {
		_ = out.Write([]string{a.Account, a.User, a.Shares, a.Usage, a.GPUHours, a.Fair})
	}
	out.Flush()
}
