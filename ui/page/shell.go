package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"dev.muster/agent/lookup"
	"dev.muster/agent/session"
	"dev.muster/agent/visibility"
	"dev.muster/cluster"
	"dev.muster/ui"
	"dev.muster/ui/forms"
	"dev.muster/ui/shell"
)

// A terminal in a running job, for its user, where PageShell says so (package shell).

// maxShells bounds the terminals of one user.
const maxShells = 8

// shells are the terminals that this server has open.
type shells struct {
	*submits
	open *forms.PerUser
}

func (x *shells) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /jobs/{id}/shell", x.show)
	mux.HandleFunc("GET /jobs/{id}/shell/socket", x.serve)
}

// link leads to a terminal in a job, if there may be one.
func (x *shells) link(sees visibility.Scope, j *cluster.Job) []ui.Link {
	if x == nil || x.refusal(sees, j) != nil {
		return nil
	}
	return []ui.Link{{Text: "open a shell", To: jobPath(j) + "/shell"}}
}

// refusal is why there is no terminal in a job for somebody.
func (x *shells) refusal(sees visibility.Scope, j *cluster.Job) error {
	switch {
	case !x.logins.settings().Shell || x.commands == nil:
		return refuseShell("Shells are disabled (PageShell in muster.conf).")
	case j == nil || j.Spec.UID != sees.Who.UID:
		return refuseShell("You can open shells only in your own jobs.")
	case j.Phase == cluster.Starting:
		return refuseShell("The job is starting. Try again in a moment.")
	case j.Phase != cluster.Running || !j.Tasks.Empty():
		return refuseShell("The job is not running.")
	}
	return nil
}

func refuseShell(text string) error {
	return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s", text)
}

// checkNode refuses what is no node of the job: srun would read a path as a list of nodes.
func checkNode(j *cluster.Job, node string) error {
	if node == "" || slices.Contains(j.AllocNodes(), cluster.NodeName(node)) {
		return nil
	}
	return refuseShell("Job " + jobName(j) + " has no node " + node + ": choose one of its nodes.")
}

// find is the job of a request, if a terminal may be opened in it; else it has answered.
func (x *shells) find(w http.ResponseWriter, r *http.Request) (*session.Session, *cluster.Job) {
	who, in := x.visitor(r)
	if in == nil {
		x.logins.send(w, r)
		return nil, nil
	}
	sees := visibility.Of(x.Snapshot(), who)
	n := lookup.Living(sees.Snap, r.PathValue("id"))
	err := x.refusal(sees, n.Job)
	if err == nil {
		err = checkNode(n.Job, r.URL.Query().Get("node"))
	}
	if err == nil {
		_, err = safePlace(r)
	}
	if err != nil {
		if n.Job != nil && n.Job.Spec.UID == who.UID && n.Job.Phase == cluster.Starting {
			w.Header().Set("Refresh", "2")
		}
		x.say(w, r, http.StatusForbidden, "No shell", err.Error())
		return nil, nil
	}
	return in, n.Job
}

func (x *shells) show(w http.ResponseWriter, r *http.Request) {
	in, j := x.find(w, r)
	if j == nil {
		return
	}
	node := r.URL.Query().Get("node")
	v := ui.Shell{Job: jobName(j), To: jobPath(j), Socket: jobPath(j) + "/shell/socket?node=" + url.QueryEscape(node)}
	names := j.AllocNodes()
	for _, name := range names[:min(len(names), pageNodes)] {
		v.Nodes = append(v.Nodes, ui.Link{Text: string(name), Here: string(name) == node,
			To: jobPath(j) + "/shell?node=" + url.QueryEscape(string(name))})
	}
	x.render(w, r, in, http.StatusOK, "shell", "Shell in job "+v.Job, v)
}

// serve carries a terminal. Other sites cannot open one: the cookie is Strict, and the library refuses their Origin.
func (x *shells) serve(w http.ResponseWriter, r *http.Request) {
	in, j := x.find(w, r)
	if j == nil {
		return
	}
	u, err := userOfSession(in)
	leave, ok := x.open.Enter(in.UID)
	if ok {
		defer leave()
	}
	if err != nil || !ok {
		x.say(w, r, http.StatusTooManyRequests, "No shell", "You have too many open shells. Close one first.")
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		x.Log.Info("shell refused", "job", jobName(j), "user", u.Name, "from", r.RemoteAddr, "err", err)
		return // it has answered
	}
	begun, node := time.Now(), r.URL.Query().Get("node")
	x.Log.Info("shell opened", "job", jobName(j), "node", node, "user", u.Name, "uid", u.UID, "from", r.RemoteAddr)
	x.Note(r.Context(), in, pageOrigin(r), cluster.AuditNote{
		Action: "job shell", Object: "job " + jobName(j), New: strings.TrimSpace("node " + node),
	})
	stays := func() bool { return x.Sessions.Of(r, time.Now()) != nil && x.logins.settings().Shell }
	site := &x.Snapshot().Config().Srun
	words := shell.Words(jobName(j), node, site.Prolog, site.Epilog)
	why := shell.Serve(r.Context(), ws, x.commands, u, words, stays)
	x.Log.Info("shell closed", "job", jobName(j), "user", u.Name, "uid", u.UID, "after", time.Since(begun), "why", why)
}
