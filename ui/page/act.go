package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/lookup"
	"dev.muster/agent/session"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// visitor says who looks at the page, and by which session; nil: nobody has logged in.
func (s *pages) visitor(r *http.Request) (api.Caller, *session.Session) {
	if who := s.Sessions.Of(r, time.Now()); who != nil {
		return who.Caller(), who
	}
	if token := bearer(r); token != "" { // a program that looks
		if who, err := s.TokenCaller(token); err == nil {
			return who, nil
		}
	}
	return visibility.Stranger, nil
}

// pageAction is something that may be done from the page: a form that asks, and a call in the visitor's name.
type pageAction struct {
	kind, name string // its path is /kind/OBJECT/name
	label      string
	ask, done  string // with %s for the object
	operator   bool   // only operators see it
	input      string // what has to be said with it; "": nothing
	fits       func(j *cluster.Job, n *cluster.Node) bool
	do         deed
}

// deed does an action to an object, such as a job's id; reason is what was said with it.
type deed func(s *pages, ctx context.Context, who api.Caller, object, reason string) error

// onJob makes the function of an action on a job.
func onJob[Q any](e api.Endpoint[Q, api.WriteResponse], of func(ref cluster.Ref, who api.Caller) Q) deed {
	return func(s *pages, ctx context.Context, who api.Caller, object, _ string) error {
		ref, ok := lookup.Ref(object)
		if !ok {
			return cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %s does not exist", object)
		}
		_, err := api.CallAs(ctx, s.Call, who, e, of(ref, who))
		return err
	}
}

// limitJob gives a job another time limit, written as Slurm's tools take it.
func limitJob(s *pages, ctx context.Context, who api.Caller, object, text string) error {
	limit, err := readLimit(text)
	if err != nil {
		return err
	}
	return onJob(api.UpdateJob, func(ref cluster.Ref, _ api.Caller) cluster.UpdateJob {
		return cluster.UpdateJob{Ref: ref, Patch: cluster.Patch{Limit: &limit}, Runs: true}
	})(s, ctx, who, object, "")
}

// readLimit reads MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, or with DAYS- before hours.
func readLimit(text string) (time.Duration, error) {
	refused := cluster.Errorf(cluster.Invalid, cluster.ErrTimeLimit,
		"a time limit is minutes, H:MM:SS or D-HH:MM:SS, not %q", text)
	days, rest, long := strings.Cut(text, "-")
	if !long {
		days, rest = "0", text
	}
	units := []time.Duration{time.Hour, time.Minute, time.Second}
	parts := strings.Split(rest, ":")
	if !long && len(parts) < 3 {
		units = units[1:]
	}
	d, err := strconv.ParseUint(days, 10, 16)
	if err != nil || len(parts) > len(units) {
		return 0, refused
	}
	limit := time.Duration(d) * 24 * time.Hour
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 24)
		if err != nil {
			return 0, refused
		}
		limit += time.Duration(n) * units[i]
	}
	if limit <= 0 {
		return 0, refused
	}
	return limit, nil
}

// onNode makes the function of an action on a node.
func onNode(act cluster.NodeAction) deed {
	return func(s *pages, ctx context.Context, who api.Caller, object, reason string) error {
		q := cluster.NodeSet{Nodes: []cluster.NodeName{cluster.NodeName(object)}, Action: act}
		if reason != "" {
			q.Reason = &reason
		}
		_, err := api.CallAs(ctx, s.Call, who, api.SetNodes, q)
		return err
	}
}

// actions is the table of all.
func actions() []pageAction {
	living := func(j *cluster.Job, _ *cluster.Node) bool { return j.Phase < cluster.Ending }
	return []pageAction{
		{
			kind: "jobs", name: "cancel", label: "cancel", ask: "Cancel job %s?",
			done: "Job %s is being cancelled.", fits: living,
			do: onJob(api.CancelJob,
				func(ref cluster.Ref, _ api.Caller) cluster.Cancel { return cluster.Cancel{Ref: ref} }),
		},
		{kind: "jobs", name: "hold", label: "hold", ask: "Hold job %s?", done: "Job %s is held.",
			fits: func(j *cluster.Job, _ *cluster.Node) bool {
				return j.Phase == cluster.Pending && j.Held == cluster.NotHeld
			},
			do: onJob(api.HoldJob, func(ref cluster.Ref, who api.Caller) cluster.HoldJobs {
				if who.UID == 0 {
					return cluster.HoldJobs{Ref: ref, Hold: cluster.HeldAdmin}
				}
				return cluster.HoldJobs{Ref: ref, Hold: cluster.HeldUser}
			})},
		{kind: "jobs", name: "release", label: "release", ask: "Release job %s?", done: "Job %s is released.",
			fits: func(j *cluster.Job, _ *cluster.Node) bool {
				return j.Phase == cluster.Pending && j.Held != cluster.NotHeld
			},
			do: onJob(api.HoldJob,
				func(ref cluster.Ref, _ api.Caller) cluster.HoldJobs { return cluster.HoldJobs{Ref: ref} })},
		{
			kind: "jobs", name: "requeue", label: "requeue",
			ask: "Stop and requeue job %s?", done: "Job %s is being requeued.",
			fits: func(j *cluster.Job, _ *cluster.Node) bool {
				return j.Phase > cluster.Pending && j.Spec.Kind == cluster.Batch
			},
			do: onJob(api.RequeueJob,
				func(ref cluster.Ref, _ api.Caller) cluster.Requeue { return cluster.Requeue{Ref: ref} }),
		},
		{kind: "jobs", name: "limit", label: "change time limit", ask: "Change the time limit of job %s?",
			done: "Job %s has the new time limit.", input: "time limit", fits: living, do: limitJob},
		{kind: "nodes", name: "drain", label: "drain", ask: "Drain node %s? It finishes its jobs and starts no others.",
			done: "Node %s is draining.", operator: true, input: "reason",
			fits: func(_ *cluster.Job, n *cluster.Node) bool { return !n.Drain }, do: onNode(cluster.NodeDrain)},
		{
			kind: "nodes", name: "resume", label: "resume", ask: "Resume node %s?",
			done: "Node %s is in service.", operator: true,
			fits: func(_ *cluster.Job, n *cluster.Node) bool { return n.Drain || n.Down },
			do:   onNode(cluster.NodeResume),
		},
	}
}

// offered lists what the visitor may do to a job or a node, as links to the forms that ask.
func offered(sees visibility.Scope, j *cluster.Job, n *cluster.Node) (out []ui.Link) {
	if sees.Who.UID == visibility.Nobody {
		return nil
	}
	if j != nil {
		return offeredAs(sees, j, jobName(j))
	}
	return offeredTo(sees, "nodes", string(n.Name), nil, n)
}

// offeredAs lists what the visitor may do to a job that is called so, or to an array of which a record is given.
func offeredAs(sees visibility.Scope, j *cluster.Job, object string) []ui.Link {
	if sees.Who.UID == visibility.Nobody || !sees.Who.Operator() && sees.Who.UID != j.Spec.UID &&
		!sees.Snap.Coordinates(sees.Who.User, j.Spec.Account) {
		return nil
	}
	return offeredTo(sees, "jobs", object, j, nil)
}

func offeredTo(sees visibility.Scope, kind, object string, j *cluster.Job, n *cluster.Node) (out []ui.Link) {
	for _, a := range actions() {
		if a.kind == kind && (!a.operator || sees.Who.Operator()) && a.fits(j, n) {
			out = append(out, ui.Link{Text: a.label, To: "/" + a.kind + "/" + url.PathEscape(object) + "/" + a.name})
		}
	}
	return out
}

// did words what a redirect says was done; only words of the table are shown.
func did(r *http.Request, kind, object string) string {
	if kind == "jobs" && r.URL.Query().Get("did") == "submit" {
		return "Job " + object + " was submitted."
	}
	for _, a := range actions() {
		if a.kind == kind && a.name == r.URL.Query().Get("did") {
			return fmt.Sprintf(a.done, object)
		}
	}
	return ""
}

// actionRoutes registers logging in and out and every action.
func (s *pages) actionRoutes(mux *http.ServeMux) {
	s.logins.routes(mux)
	s.submits.routes(mux)
	s.shells.routes(mux)
	mux.HandleFunc("GET /queue/act", s.with(askBulk))
	mux.HandleFunc("POST /queue/act", s.form(func(w http.ResponseWriter, r *http.Request, in *session.Session) {
		actBulk(s,
			w, r, in)
	}))
	for _, a := range actions() {
		path := "/" + a.kind + "/{object}/" + a.name
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			who, in := s.visitor(r)
			if in == nil {
				s.logins.send(w, r)
				return
			}
			s.askAction(w, r, &a, who, in, http.StatusOK, "")
		})
		mux.HandleFunc("POST "+path,
			s.form(func(w http.ResponseWriter, r *http.Request, in *session.Session) { s.act(w, r, &a, in) }))
	}
}

// form lets only forms of the visitor's own session through: it must come from this page, with its token.
func (s *pages) form(do func(http.ResponseWriter, *http.Request, *session.Session)) http.HandlerFunc {
	return s.formOf(maxForm, do)
}

// formOf is form, of so many bytes at most. Nothing is read from who has no session.
func (s *pages) formOf(most int64, do func(http.ResponseWriter, *http.Request, *session.Session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, in := s.visitor(r)
		if in == nil {
			s.say(w, r, http.StatusForbidden, "Log in first",
				"You have no session, or it has expired. Nothing was changed. "+
					"muster ui prints a link that logs you in.")
			return
		}
		leave, ok := s.sending.Enter(in.UID)
		if !ok {
			s.say(w, r, http.StatusTooManyRequests, "Not done",
				"Too many of your forms are being sent. Nothing was changed. Try again in a moment.")
			return
		}
		defer leave()
		if !readForm(w, r, most) {
			return
		}
		if !s.Sessions.Meant(in, r.PostForm.Get("csrf")) {
			s.say(w, r, http.StatusForbidden, "Not done",
				"The form belongs to another session. Nothing was changed. Reload the page and try again.")
			return
		}
		do(w, r, in)
	}
}

func (s *pages) askAction(w http.ResponseWriter, r *http.Request, a *pageAction, who api.Caller,
	in *session.Session, code int, refusal string) {
	object := r.PathValue("object")
	if a.operator && !who.Operator() {
		s.say(w, r, http.StatusForbidden, "Not allowed", "Only operators may "+a.label+" nodes; you are "+who.User+".")
		return
	}
	v := ui.Ask{Text: fmt.Sprintf(a.ask, object), Do: a.label, To: r.URL.Path, Back: "/" + a.kind + "/" +
		url.PathEscape(object), Input: a.input, Given: r.PostFormValue("reason"), Refusal: refusal}
	if snap := s.Snapshot(); a.kind == "jobs" {
		about, ok := aboutJob(visibility.Of(snap, who), object)
		if !ok {
			s.say(w, r, http.StatusNotFound, "No such job", "Job "+object+" is not in the queue.")
			return
		}
		v.About = about
	}
	s.render(w, r, in, code, "ask", strings.ToUpper(a.label[:1])+a.label[1:], v)
}

// aboutJob words which job or array something is to be done to.
func aboutJob(sees visibility.Scope, object string) (string, bool) {
	n := lookup.Living(sees.Snap, object)
	if n.Job == nil || !sees.Job(n.Job) {
		return "", false
	}
	text := fmt.Sprintf("%s of %s, %s", n.Job.Spec.Name, n.Job.Spec.User, ui.Words(api.JobWord(n.Job)))
	if n.Tasks != nil {
		text = fmt.Sprintf("%s of %s: all tasks of the array", n.Job.Spec.Name, n.Job.Spec.User)
	}
	return text, true
}

// act does what a form asks for, and says how it went.
func (s *pages) act(w http.ResponseWriter, r *http.Request, a *pageAction, in *session.Session) {
	object, reason := r.PathValue("object"), strings.TrimSpace(r.PostForm.Get("reason"))
	who := in.Caller()
	if a.input != "" && reason == "" {
		refusal := map[string]string{"reason": "Enter a reason: other users will read it."}[a.input]
		s.askAction(w, r, a, who, in, http.StatusUnprocessableEntity, cmp.Or(refusal, "The "+a.input+" is needed."))
		return
	}
	err := a.do(s, r.Context(), who, object, reason)
	s.Log.Info("action on the page", "action", a.name, a.kind, object, "user", who.User, "uid", who.UID, "err", err)
	if err != nil {
		e := api.AsError(err)
		s.askAction(w, r, a, who, in, api.Status(e.Code), "Not done: "+strings.TrimSpace(e.Message+" "+e.Hint))
		return
	}
	http.Redirect(w, r, "/"+a.kind+"/"+url.PathEscape(object)+"?did="+a.name, http.StatusSeeOther)
}

// say shows one message.
func (s *pages) say(w http.ResponseWriter, r *http.Request, code int, title, text string) {
	_, in := s.visitor(r)
	s.render(w, r, in, code, "say", title, text)
}

// packFrom is the size in bytes from which a view is compressed, with and without a session. An attacker who sees the
// lengths of a visitor's compressed pages, and can place text in them, could guess what else they contain (BREACH). The
// only secret on a page is the token of its forms, which is encoded differently each time; and other sites cannot
// request pages in the visitor's name, since browsers do not send them the cookie (SameSite=Strict).
const packFrom = 4 << 10

// packers are kept: each has half a MiB.
var packers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is one
	}
	return z
}}

// packed compresses what a buffer has.
func packed(out *bytes.Buffer) {
	var small bytes.Buffer
	z := packers.Get().(*gzip.Writer)
	defer packers.Put(z)
	z.Reset(&small)
	_, _ = out.WriteTo(z) // into memory
	_ = z.Close()
	*out = small
}

// render writes a view around which the page is.
func (s *pages) render(w http.ResponseWriter, r *http.Request, in *session.Session, code int,
	name, title string, data any) {
	snap := s.Snapshot()
	p := ui.Page{
		Title: title, Cluster: cmp.Or(snap.Config().ClusterName, "cluster"), Version: s.Version,
		Server: s.Name, Now: time.Now(), Index: snap.Index, View: data, Path: r.URL.Path,
		Asked: r.URL.RequestURI(),
	}
	if s.Lag != nil {
		p.Late = s.Lag().Text()
	}
	if in != nil {
		p.User, p.CSRF, p.Operator = in.User, s.Sessions.CSRF(in), in.UID == 0 || in.Admin
	}
	var out bytes.Buffer
	if err := ui.Render(&out, name, p, r.Header.Get("X-Part") != ""); err != nil {
		s.Log.Error("a page could not be made", "path", r.URL.Path, "err", err)
		http.Error(w, "cannot render the page; see the server's log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Accept-Encoding")
	if out.Len() > packFrom && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		packed(&out)
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	w.WriteHeader(code)
	_, _ = out.WriteTo(w)
}
