package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/lookup"
	"dev.muster/agent/session"
	"dev.muster/agent/users"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
	"dev.muster/ui/forms"
)

// The form that submits a job: it is sbatch that does so, as the visitor (package forms).

// submits is the form.
type submits struct {
	*pages
	commands *forms.Commands // nil: this process cannot run them
}

// newSubmits is the form of a server that can run muster's commands.
func newSubmits(s *pages) *submits {
	f := &submits{pages: s}
	if s.Front != "" {
		f.commands = forms.NewCommands(s.Front, s.Socket, s.Guests)
	}
	return f
}

// maxSubmitForm bounds the form: a script is in it, and each of its letters may be sent as three.
const maxSubmitForm = 3*forms.MaxScript + maxForm

func (f *submits) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /submit", f.show)
	mux.HandleFunc("POST /submit", f.formOf(maxSubmitForm, f.submit))
	mux.HandleFunc("POST /submit/check", f.formOf(maxSubmitForm, f.check))
}

// unable tells why nothing can be submitted here.
func (f *submits) unable(w http.ResponseWriter, r *http.Request) bool {
	if f.commands == nil {
		f.say(w, r, http.StatusNotFound, "Page not found", "This server cannot run sbatch.")
	}
	return f.commands == nil
}

// show is the empty form, or one that a job or a template of the site has filled in.
func (f *submits) show(w http.ResponseWriter, r *http.Request) {
	who, in := f.visitor(r)
	if in == nil {
		f.logins.send(w, r)
		return
	}
	if f.unable(w, r) {
		return
	}
	sees, v := visibility.Of(f.Snapshot(), who), ui.Submit{}
	values, note := map[string]string{}, ""
	switch q := r.URL.Query(); {
	case q.Get("job") != "":
		values, v.Script, note = f.again(r.Context(), sees, q.Get("job"))
	case q.Get("template") != "":
		v.Script, _ = forms.ReadTemplate(f.logins.settings().Templates, q.Get("template"))
	}
	v.Script = cmp.Or(v.Script, "#!/bin/bash\n\nsrun hostname\n")
	v.Note = note
	f.fill(&v, sees, func(name string) string { return values[name] })
	f.render(w, r, in, http.StatusOK, "submit", "Submit a job", v)
}

// again fills the form with what a job asked for, if the visitor may see it.
func (f *submits) again(ctx context.Context, sees visibility.Scope, id string) (values map[string]string, script,
	note string) {
	n, err := lookup.Find(ctx, f.History, sees, id)
	if err != nil || !owns(sees, n.Job) {
		return nil, "", "Job " + id + " is not known any more, or is not yours: the form is empty."
	}
	s := n.Job.Spec
	if b, ok := sees.Snap.Blob(s.Script); ok {
		script = strings.ToValidUTF8(string(b.Text), "�")
	}
	number := func(n int) string {
		if n <= 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	nodes := number(s.MinNodes)
	if s.MaxNodes > s.MinNodes && s.MinNodes > 0 {
		nodes += "-" + number(s.MaxNodes)
	}
	values = map[string]string{"name": s.Name, "partition": strings.Join(s.Partitions, ","), "account": s.Account,
		"qos": s.QOS, "nodes": nodes, "tasks": number(s.TasksPerNode), "cpus": number(s.CPUsPerTask),
		"gpus": gpusText(s.PerNode), "folder": s.WorkDir, "time": limitWord(n.Job.Limit)}
	if s.Mem.Per == cluster.MemPerNode && s.Mem.MB > 0 {
		values["mem"] = fmt.Sprint(s.Mem.MB, "M")
	}
	if s.Array != nil {
		values["array"] = s.Array.Text
	}
	note = "Filled in from job " + id + "."
	if script == "" {
		note += " Its script is not kept any more: paste it."
	}
	if s.SubmitLine != "" {
		note += " It was submitted by: " + s.SubmitLine + ". What the form has no field for goes into the script, " +
			"as a line #SBATCH."
	}
	return values, script, note
}

// again leads to the form, filled with what a job asked for.
func again(j *cluster.Job) ui.Link {
	return ui.Link{Text: "run again with changes", To: "/submit?job=" + url.QueryEscape(jobName(j))}
}

// gpusText are GPUs as --gpus-per-node takes them.
func gpusText(list []cluster.GRES) string {
	var words []string
	for _, g := range list {
		if g.Name == "gpu" && g.Count > 0 {
			words = append(words, strings.TrimPrefix(g.Type+":"+strconv.FormatInt(int64(g.Count), 10), ":"))
		}
	}
	return strings.Join(words, ",")
}

// limitWord is a time limit as --time takes it.
func limitWord(d time.Duration) string {
	if d <= 0 || d >= cluster.Unlimited {
		return ""
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d-%02d:%02d:%02d", d/(24*time.Hour), d/time.Hour%24, d/time.Minute%60, d/time.Second%60)
}

// fill adds the fields with what the visitor may choose, and what partitions allow.
func (f *submits) fill(v *ui.Submit, sees visibility.Scope, value func(string) string) {
	choices := map[string][]string{}
	for a := range sees.Snap.Assocs() {
		if a.User == sees.Who.User {
			choices["account"] = append(choices["account"], a.Account)
			choices["qos"] = append(choices["qos"], sees.Snap.AllowedQOS(a.ID)...)
		}
	}
	cfg := sees.Snap.Config()
	for i := range cfg.Partitions {
		if p := &cfg.Partitions[i]; open(p, sees) {
			choices["partition"] = append(choices["partition"], p.Name)
			v.Partitions = append(v.Partitions, allows(p, sees.Snap))
		}
	}
	for _, x := range forms.Fields {
		field := ui.Field{Name: x.Name, Label: x.Label, Hint: x.Hint, Value: value(x.Name)}
		slices.Sort(choices[x.Name])
		field.Choices = slices.Compact(choices[x.Name])
		v.Fields = append(v.Fields, field)
	}
	for _, t := range forms.Templates(f.logins.settings().Templates) {
		v.Templates = append(v.Templates, ui.Template(t))
	}
}

// open reports whether a user may submit to a partition, as far as groups and its state say.
func open(p *cluster.Partition, sees visibility.Scope) bool {
	if sees.Who.Operator() {
		return true
	}
	mine := func(name string) bool {
		gid, ok := users.GroupID(name)
		return ok && (gid == sees.Who.GID || slices.Contains(sees.Who.Groups, gid))
	}
	return !p.RootOnly && !p.Hidden && (p.AllowGroups == nil || slices.ContainsFunc(p.AllowGroups, mine))
}

// allows words what a partition gives a job.
func allows(p *cluster.Partition, snap *cluster.Snapshot) ui.Allows {
	a := ui.Allows{Name: p.Name, Default: p.Default, Time: "no limit", Nodes: strconv.Itoa(p.Size(snap))}
	if p.MaxTime > 0 {
		a.Time = span(p.MaxTime)
	}
	if p.MaxNodes > 0 {
		a.Nodes = strconv.Itoa(min(p.MaxNodes, p.Size(snap)))
	}
	most := func(to *int, n int) { *to = max(*to, n) }
	kinds := map[string]bool{}
	for n := range snap.PartitionNodes(p) {
		most(&a.CPUs, n.Inventory.CPUs)
		most(&a.GPUs, len(n.Inventory.GPUs))
		for _, g := range n.Inventory.GPUs {
			kinds[g.Type] = true
		}
	}
	for kind := range kinds {
		a.Kinds = append(a.Kinds, kind)
	}
	slices.Sort(a.Kinds)
	return a
}

// userOfSession is as whom commands run: with the groups that the system knows now.
func userOfSession(in *session.Session) (forms.User, error) {
	out := forms.User{Name: in.User, UID: in.UID, GID: in.GID, Groups: in.Groups, Home: "/", Shell: "/bin/sh"}
	a, err := users.ByID.Get(in.UID)
	if err != nil {
		return out, err
	}
	out.Name, out.GID, out.Groups = a.Name, a.GID, a.Groups
	if u, err := user.LookupId(strconv.FormatUint(uint64(in.UID), 10)); err == nil && u.HomeDir != "" {
		out.Home = u.HomeDir
	}
	return out, nil
}

// asked are the options, the script and the user of a form that was sent.
func (f *submits) asked(w http.ResponseWriter, r *http.Request, in *session.Session) (u forms.User, words []string,
	script string, ok bool) {
	if f.unable(w, r) {
		return u, nil, "", false
	}
	u, err := userOfSession(in)
	if err != nil {
		f.say(w, r, http.StatusForbidden, "Not done", err.Error())
		return u, nil, "", false
	}
	value := r.PostForm.Get
	words = forms.Words(value)
	if strings.TrimSpace(value("folder")) == "" {
		words = append(words, "--chdir="+u.Home)
	}
	return u, words, forms.Script(value("script")), true
}

// check tells what the form would come to, without submitting.
func (f *submits) check(w http.ResponseWriter, r *http.Request, in *session.Session) {
	u, words, script, ok := f.asked(w, r, in)
	if !ok {
		return
	}
	a := answered(f.commands.Try(r.Context(), u, words, script))
	if r.Header.Get("X-Part") != "" {
		f.render(w, r, in, http.StatusOK, "answer", "", a)
		return
	}
	f.filled(w, r, in, http.StatusOK, a)
}

// filled shows the form again, as it was sent, with an answer.
func (f *submits) filled(w http.ResponseWriter, r *http.Request, in *session.Session, code int, a ui.Answer) {
	v := ui.Submit{Script: r.PostForm.Get("script"), Answer: &a}
	f.fill(&v, visibility.Of(f.Snapshot(), in.Caller()), r.PostForm.Get)
	f.render(w, r, in, code, "submit", "Submit a job", v)
}

// answered is an answer for people.
func answered(a forms.Answer) ui.Answer {
	out := ui.Answer{Refused: a.Refused, CPUs: several(float64(a.CPUs), "CPU"), Nodes: a.Nodes, Partition: a.Partition}
	switch in := time.Until(a.Starts); {
	case a.Starts.IsZero():
	case in < 5*time.Second:
		out.Starts = "now"
	case in < 12*time.Hour:
		out.Starts = "at " + a.Starts.Format("15:04")
	default:
		out.Starts = "on " + a.Starts.Format("Mon 2 Jan 15:04")
	}
	for _, n := range a.Notes {
		place := map[bool]string{true: "line " + strconv.Itoa(n.Line), false: "note"}[n.Line > 0]
		out.Notes = append(out.Notes, ui.Row{Name: place, Value: n.Text})
	}
	return out
}

// submit hands the job over, and shows it.
func (f *submits) submit(w http.ResponseWriter, r *http.Request, in *session.Session) {
	u, words, script, ok := f.asked(w, r, in)
	if !ok {
		return
	}
	a := f.commands.Submit(r.Context(), u, words, script)
	f.Log.Info("job submitted on the page", "job", a.Job, "user", u.Name, "uid", u.UID, "refused", a.Refused)
	if a.Job == "" {
		f.filled(w, r, in, http.StatusUnprocessableEntity, answered(a))
		return
	}
	if ref, ok := lookup.Ref(a.Job); ok { // so that this server has it when the visitor comes
		_, _ = api.CallAs(r.Context(), f.Call, in.Caller(), api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}})
	}
	http.Redirect(w, r, "/jobs/"+a.Job+"?did=submit", http.StatusSeeOther)
}
