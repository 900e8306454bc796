// Package page is the status page: its views, what is done from it, and how visitors log in. It reads a server by one
// interface, and acts by calls in the name of who is logged in.
package page

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"dev.muster/agent/eventlog"
	"dev.muster/agent/lookup"
	"dev.muster/agent/origin"
	"dev.muster/agent/visibility"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched/explain"
	"dev.muster/ui"
	"dev.muster/ui/forms"
)

// The status page: what it shows is from this server's own snapshot; what is done from it goes the way of the commands
// (page_act.go). Nothing of users' scripts and environments is in it.

// pace is how often a page that follows the cluster is told of a change, at most; pageBeat how often a quiet
// connection is written to, so that both sides notice when the other has gone.
const (
	pace     = time.Second
	pageBeat = 15 * time.Second
)

// Bounds of the pages that follow the cluster at a time: of all, and of one address, behind which several may be.
const (
	maxLive     = 1000
	maxLiveFrom = 250
)

// guard is what every answer says of how it may be used.
var guard = [...][2]string{
	{
		"Content-Security-Policy",
		"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"X-Frame-Options", "DENY"},
	{"Cache-Control", "no-store"},
}

// view makes what a page shows; its title is the page's.
type view func(sees visibility.Scope, r *http.Request) (name, title string, data any, err error)

// How old an expected start may be: it costs as much as a pass of the scheduler.
const (
	startsAge   = 10 * time.Second
	startsStale = time.Minute
)

// pages are the views of one server.
type pages struct {
	webpage.Config
	watching eventlog.Followers[netip.Prefix] // pages that follow the cluster, by address
	sending  *forms.PerUser                   // forms that are under way
	logins   *logins
	submits  *submits
	shells   *shells
	daily    daily
	past     pastJobs
	curves   curves
	hardware *later[*ui.CurveSet]
	starts   *later[explain.Explanation]
	today    *later[*ui.Today]
	moment   moment
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
			name, title, data, err := v(visibility.Of(snap, who), r)
			if err != nil {
				e := api.AsError(err)
				code := api.Status(e.Code)
				if e.Kind == lookup.Gone {
					code = http.StatusGone
				}
				s.say(w, r, code, "Page not found", e.Message)
				return
			}
			s.render(w, r, in, http.StatusOK, name, title, data)
		}
		if who.UID == visibility.Nobody && r.Header.Get("X-Part") != "" {
			s.moment.view(w, r, s.Snapshot, show)
			return
		}
		show(w, s.Snapshot())
	}
}

// watch counts one more page that follows, if there may be one. Of an IPv6 address the network counts.
func (s *pages) watch(r *http.Request) (leave func(), ok bool) {
	at := origin.Of(r).Address
	network, _ := at.Prefix(min(at.BitLen(), 64)) // that of no address is none
	return s.watching.Enter(network, true)
}

// live tells a page of each newer log index.
func (s *pages) live(w http.ResponseWriter, r *http.Request) {
	leave, ok := s.watch(r)
	if !ok {
		http.Error(w, "too many pages follow this server; reload manually, or open the page of another server",
			http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	var told uint64
	for quiet := time.Duration(0); ; quiet += pace {
		text := ""
		if at := s.moment.now(s.Snapshot).Index; at != told {
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
		case <-time.After(untilNext(time.Now())):
		case <-r.Context().Done():
			return
		}
	}
}

// untilNext is how long it takes until all pages are told what is new: at the same moment, so that what they show is
// made once.
func untilNext(now time.Time) time.Duration { return now.Truncate(pace).Add(pace).Sub(now) }

// accountsCSV is the view of accounts for a spreadsheet.
func (s *pages) accountsCSV(w http.ResponseWriter, r *http.Request) {
	who, _ := s.visitor(r)
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	out := csv.NewWriter(w)
	_ = out.Write([]string{"account", "user", "shares", "usage_billing_hours", "gpu_hours", "fair_share"})
	for _, a := range shares(visibility.Of(s.Snapshot(), who)) {
		_ = out.Write([]string{a.Account, a.User, a.Shares, a.Usage, a.GPUHours, a.Fair})
	}
	out.Flush()
}
