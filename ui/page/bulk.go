package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dev.muster/agent/lookup"
	"dev.muster/agent/session"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// bulkActions are what may be done to several jobs at once.
var bulkActions = []string{"cancel", "hold", "release", "requeue"}

// bulkOf is what a form asks to be done to several jobs.
func bulkOf(r *http.Request) (a pageAction, jobs []string, ok bool) {
	if !slices.Contains(bulkActions, r.Form.Get("do")) {
		return a, nil, false
	}
	list := actions()
	at := slices.IndexFunc(list, func(a pageAction) bool { return a.kind == "jobs" && a.name == r.Form.Get("do") })
	for _, name := range r.Form["job"] {
		if _, ok := lookup.Ref(name); ok && len(jobs) < pageJobs {
			jobs = append(jobs, name)
		}
	}
	return list[at], jobs, len(jobs) > 0
}

// askBulk asks before something is done to several jobs.
func askBulk(s *pages, w http.ResponseWriter, r *http.Request) {
	who, in := s.visitor(r)
	if in == nil {
		s.logins.send(w, r)
		return
	}
	_ = r.ParseForm() // what cannot be read is not there
	a, jobs, ok := bulkOf(r)
	if !ok {
		s.say(w, r, http.StatusBadRequest, "No jobs selected",
			"Select jobs first, then choose an action.")
		return
	}
	sees, about := visibility.Of(s.Snapshot(), who), []string(nil)
	for _, name := range jobs {
		if text, ok := aboutJob(sees, name); ok {
			about = append(about, name+": "+text)
		}
	}
	v := ui.Ask{Text: strings.ToUpper(a.label[:1]) + a.label[1:] + " " + several(float64(len(jobs)), "job") + "?",
		Do: a.label, To: "/queue/act",
		Back: "/queue", Jobs: jobs, Name: a.name, List: about}
	s.render(w, r, in, http.StatusOK, "ask", v.Text, v)
}

// actBulk does something to several jobs, each by itself, and says which of them it could not be done to.
func actBulk(s *pages, w http.ResponseWriter, r *http.Request, in *session.Session) {
	a, jobs, ok := bulkOf(r)
	if !ok {
		s.say(w, r, http.StatusBadRequest, "No jobs selected",
			"Select jobs first, then choose an action.")
		return
	}
	var refused []string
	for _, name := range jobs {
		err := a.do(s, r.Context(), in.Caller(), name, "")
		s.Log.Info("action on the page", "action", a.name, a.kind, name, "user", in.User, "uid", in.UID, "err", err)
		if err != nil {
			refused = append(refused, name+": "+api.AsError(err).Message)
		}
	}
	v := ui.Ask{Back: "/queue", List: refused, Done: fmt.Sprintf("%s: done to %d of %d.", a.label,
		len(jobs)-len(refused), len(jobs))}
	s.render(w, r, in, http.StatusOK, "ask", v.Done, v)
}

// search leads to the job or node that a word names, or to the jobs that have to do with it.
func search(s *pages, w http.ResponseWriter, r *http.Request) {
	text := strings.TrimSpace(r.FormValue("q"))
	who, _ := s.visitor(r)
	sees := visibility.Of(s.Snapshot(), who)
	to := "/queue?" + url.Values{"q": {text}}.Encode()
	if _, ok := lookup.Ref(text); ok {
		if _, err := lookup.Find(r.Context(), s.History, sees, text); err == nil {
			to = "/jobs/" + url.PathEscape(text)
		}
	} else if _, ok := sees.Snap.Node(cluster.NodeName(text)); ok && sees.Nodes() == nil {
		to = "/nodes/" + url.PathEscape(text)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
