package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/lookup"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/ui"
)

// Bounds of the page of a job.
const (
	pageScript = 32 << 10 // of its script
	pageNodes  = 64       // to which it leads
	pageAfter  = 20       // jobs that wait for it
)

// viewJob shows a job, or an array as a whole.
func (s *pages) viewJob(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	now := time.Now()
	n, err := lookup.Find(r.Context(), s.History, sees, r.PathValue("id"))
	if err != nil {
		return "", "", nil, err
	}
	if n.Tasks != nil {
		return viewArray(s, sees, r, &n, now)
	}
	j := n.Job
	v := ui.JobPage{Job: jobRow(sees.Snap, j, now), Did: did(r, "jobs", n.Text), Owner: owns(sees, j)}
	v.Timeline = s.timeline(j, now)
	if n.Lives {
		v.Actions = append(offered(sees, j, nil), s.shells.link(sees, j)...)
	} else {
		v.Note = "From the job history: the job has left the queue."
	}
	switch {
	case j.Phase == cluster.Pending:
		waits(r.Context(), s, &v.Waits, sees, j, now)
		v.Priority = priorityRows(sees.Snap, j, now)
	case j.Limit > 0 && j.Limit < cluster.Unlimited && !j.Started.IsZero():
		v.Bar = &ui.Gauge{Name: "minutes", Used: int(j.RunTime(now).Minutes()), Have: int(j.Limit.Minutes())}
	}
	if j.Phase == cluster.Ended && s.Dialect != nil {
		v.Verdict = s.Dialect.Verdict(j, n.Steps)
	}
	if v.Owner && showsNothing(j) == "" {
		v.Log = jobPath(j) + "/log"
	}
	if v.Owner && j.Spec.Kind == cluster.Batch {
		v.Actions = append(v.Actions, again(j))
	}
	if j.ArrayID != 0 {
		strip := stripOf(sees, j.ArrayID, nil)
		v.Strip, v.ArrayID = &strip, strconv.Itoa(int(j.ArrayID))
	}
	v.Components = components(sees, j)
	v.Asked, v.Got, v.Files = askedRows(sees.Snap, j), gotRows(j), fileRows(sees.Snap, j)
	v.Faults = s.faultRows(j)
	v.Depends = dependRows(sees, j)
	v.Attempts = attempts(s, r, j)
	if v.Owner {
		if b, ok := sees.Snap.Blob(j.Spec.Script); ok && j.Spec.Script != "" {
			v.Script = strings.ToValidUTF8(string(b.Text[:min(len(b.Text), pageScript)]), "�")
		}
	}
	for _, name := range j.AllocNodes()[:min(len(j.AllocNodes()), pageNodes)] {
		v.On = append(v.On, ui.Link{Text: string(name), To: "/nodes/" + url.PathEscape(string(name))})
	}
	v.Steps = stepRows(sees.Snap, j, n.Steps)
	v.Curves = jobCurves(r.Context(), s, j)
	return "job", j.Spec.Name, &v, nil
}

// owns reports whether a visitor may see what a job writes and how it was submitted.
func owns(sees visibility.Scope, j *cluster.Job) bool {
	return sees.Who.UID == j.Spec.UID || sees.Who.Operator()
}

// rowList gathers rows that have a value.
type rowList []ui.Row

func (l *rowList) add(name, value string) {
	if value != "" && value != "0" {
		*l = append(*l, ui.Row{Name: name, Value: value})
	}
}

func stamped(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05")
}

// memText words how much memory was asked for.
func memText(m cluster.Mem) string {
	if m.Per == cluster.MemDefault {
		return ""
	}
	per := map[cluster.MemPer]string{cluster.MemPerNode: "node", cluster.MemPerCPU: "CPU",
		cluster.MemPerGPU: "GPU"}[m.Per]
	if m.MB == 0 {
		return "all memory of each node"
	}
	return fmt.Sprintf("%s a %s", mebibytes(int64(m.MB)<<20), per)
}

// askedRows are what a job asks for.
func askedRows(snap *cluster.Snapshot, j *cluster.Job) (rows rowList) {
	s := j.Spec
	rows.add("partition", strings.Join(api.PartitionsOf(j), ", "))
	rows.add("account", s.Account)
	rows.add("QOS", s.QOS)
	rows.add("size", size(snap, j))
	rows.add("memory", memText(s.Mem))
	rows.add("time limit", span(j.Limit))
	rows.add("features", cmp.Or(s.Constraint, s.Prefer))
	rows.add("required nodes", hostlist.CompressNames(s.NodeList))
	rows.add("excluded nodes", hostlist.CompressNames(s.Exclude))
	rows.add("licenses", s.Licenses)
	rows.add("reservation", s.Reservation)
	rows.add("earliest start", stamped(s.Begin))
	rows.add("deadline", stamped(s.Deadline))
	rows.add("comment", s.Comment)
	return rows
}

// gotRows are what became of a job.
func gotRows(j *cluster.Job) (rows rowList) {
	rows.add("nodes", hostlist.CompressNames(j.AllocNodes()))
	rows.add("restarts", strconv.Itoa(j.Restarts))
	if j.Phase == cluster.Ended {
		rows.add("exit", exitText(j.Exit))
		rows.add("reason", string(j.EndReason))
	}
	rows.add("system comment", j.SystemComment)
	return rows
}

// faultRows lists the job's progress, checkpoint, hang, spares and lost nodes.
func (s *pages) faultRows(j *cluster.Job) (rows []ui.Row) {
	var told *api.Progress
	if s.Samples != nil {
		told = s.Samples.Progress(j)
	}
	for _, fact := range api.Survival(j, told, stamped) {
		rows = append(rows, ui.Row{Name: fact.Name, Value: fact.Value})
	}
	return rows
}

// fileRows are how a job was submitted and where it reads and writes.
func fileRows(snap *cluster.Snapshot, j *cluster.Job) (rows rowList) {
	s := j.Spec
	script := ""
	if b, ok := snap.Blob(s.Script); ok && s.Script != "" {
		script = string(b.Text)
	}
	rows.add("submitted by", pasted(s, script))
	rows.add("command", strings.TrimSpace(s.Command+" "+strings.Join(s.Args, " ")))
	rows.add("working directory", s.WorkDir)
	rows.add("output", s.Stdout)
	if s.Stderr != s.Stdout {
		rows.add("errors", s.Stderr)
	}
	if s.Stdin != "/dev/null" {
		rows.add("input", s.Stdin)
	}
	return rows
}

// wrapped is how a script begins that sbatch --wrap has made.
const wrapped = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"

// pasted is the line that submitted a job as a shell takes it. The record has its words without quotes, as Slurm has
// them, so those that need some are found by what they have become: the script of --wrap, and texts of the job.
func pasted(s *cluster.JobSpec, script string) string {
	line := s.SubmitLine
	values := []string{s.Name, s.Comment, s.Constraint, s.WorkDir, s.Stdout, s.Stderr}
	if command, ok := strings.CutPrefix(script, wrapped); ok {
		values = append([]string{strings.TrimSuffix(command, "\n")}, values...)
	}
	for _, v := range values {
		if !strings.ContainsAny(v, " \t\n\"'`$&|;<>()*?[]{}~#!\\") {
			continue
		}
		quoted := "'" + strings.ReplaceAll(v, "'", `'\''`) + "'"
		for _, before := range []string{"=", " "} {
			if at := strings.Index(line+" ", before+v+" "); at >= 0 {
				at += len(before)
				line = line[:at] + quoted + line[at+len(v):]
				break
			}
		}
	}
	return line
}

// priorityRows are what a job's priority is made of.
func priorityRows(snap *cluster.Snapshot, j *cluster.Job, now time.Time) (rows rowList) {
	p := snap.Config().Priority
	if !p.Multifactor {
		return nil
	}
	rows.add("priority", strconv.Itoa(int(j.Priority)))
	if len(j.Spec.Partitions) == 0 || j.Spec.Priority != nil {
		return rows
	}
	f := snap.Ranker().Factors(j, j.Spec.Partitions[0], now).Weigh(&p.Weights)
	for _, part := range []struct {
		name string
		n    float64
	}{{"age", f.Age}, {"association", f.Assoc}, {"fair share", f.FairShare}, {"size", f.Size},
		{"partition", f.Partition}, {"QOS", f.QOS}, {"site", float64(f.Site)}, {"nice", 0 - float64(f.Nice)}} {
		rows.add(part.name, strconv.FormatFloat(part.n, 'f', 0, 64))
	}
	return rows
}

// dependRows are what a job waits for, and who waits for it.
func dependRows(sees visibility.Scope, j *cluster.Job) (rows []ui.Row) {
	for _, d := range j.Spec.Depends.Terms {
		row := ui.Row{Name: "pending: " + string(d.Type), Value: "any other job of that name"}
		if d.Job != 0 {
			row.Value = strconv.Itoa(int(d.Job))
			if d.Task >= 0 {
				row.Value += "_" + strconv.Itoa(d.Task)
			}
			row.To = "/jobs/" + row.Value
		}
		if met := !slices.ContainsFunc(j.Depends.Terms, func(o cluster.Depend) bool {
			return o.Job == d.Job &&
				o.Task == d.Task
		}); met {
			row.Name = "waited for: " + string(d.Type)
		}
		rows = append(rows, row)
	}
	for o := range sees.Snap.Queue() {
		for _, d := range o.Depends.Terms {
			if (d.Job == j.ID || d.Job == j.ArrayID && d.Job != 0) && len(rows) < pageAfter && sees.Job(o) {
				rows = append(rows, ui.Row{Name: "required by: " + string(d.Type), Value: jobID(o) + " " +
					o.Spec.Name, To: jobPath(o)})
			}
		}
	}
	return rows
}

// components lists the other parts of a heterogeneous job.
func components(sees visibility.Scope, j *cluster.Job) (out []ui.Row) {
	for _, o := range sees.Snap.Components(j) {
		row := ui.Row{Name: jobID(o), Value: size(sees.Snap, o) + ", " + ui.Words(api.JobWord(o))}
		if o.ID != j.ID {
			row.To = jobPath(o)
		}
		out = append(out, row)
	}
	return out
}

// attempts are the earlier runs of a job that was put back into the queue.
func attempts(s *pages, r *http.Request, j *cluster.Job) (out []ui.Row) {
	if j.Restarts == 0 || s.History == nil || !s.History.Whole() {
		return nil
	}
	q := acct.Query{Refs: []cluster.Ref{{Job: j.ID}}, Duplicates: true}
	q.WholeHet = new(bool)
	for rec, err := range s.History.Jobs(r.Context(), q) {
		if o := rec.Job; err == nil && o.ID == j.ID && o.Attempt != j.Attempt && !o.Started.IsZero() {
			out = append(out, ui.Row{Name: fmt.Sprintf("start %d", o.Attempt),
				Value: fmt.Sprintf("%s, %s after %s on %s",
					stamped(o.Started), ui.Words(api.JobWord(o)), span(o.RunTime(time.Now())),
					hostlist.CompressNames(o.AllocNodes()))})
		}
	}
	return out
}

// stepRows are the steps of a job.
func stepRows(snap *cluster.Snapshot, j *cluster.Job, past []*cluster.Step) (rows []ui.Row) {
	step := func(st *cluster.Step, text string) {
		name := fmt.Sprintf("%s.%s", jobID(j), st.Name) // the job's own: batch, extern
		if st.ID.Step >= 0 {
			name = fmt.Sprintf("%s.%d %s", jobID(j), st.ID.Step, st.Name)
		}
		rows = append(rows, ui.Row{Name: name, Value: several(float64(st.Tasks), "task") + text})
	}
	for st := range snap.Steps(j.ID) {
		step(st, " since "+stamped(st.Started))
	}
	for _, st := range past {
		if st.Ended.IsZero() {
			continue
		}
		step(st, fmt.Sprintf(" for %s from %s, %s", span(st.Ended.Sub(st.Started)), stamped(st.Started),
			exitText(st.Exit)))
	}
	return rows
}

// viewArray shows an array as a whole: how many of its tasks are in which state, and the tasks.
func viewArray(s *pages, sees visibility.Scope, r *http.Request, n *lookup.Found, now time.Time) (
	name, title string, data any, err error,
) {
	strip := stripOf(sees, n.Ref.Job, n.Tasks)
	v := ui.JobPage{Job: jobRow(sees.Snap, n.Job, now), Did: did(r, "jobs", n.Text), Owner: owns(sees, n.Job)}
	v.Strip = &strip
	v.ID, v.ArrayID, v.Array = n.Text, n.Text, true
	waiting := n.Job
	for _, j := range n.Tasks {
		if j.Phase == cluster.Pending {
			waiting = j
		}
	}
	if n.Lives {
		v.Actions = offeredAs(sees, waiting, n.Text)
	} else {
		v.Note = "From the job history: the array has left the queue."
	}
	if waiting.Phase == cluster.Pending {
		waits(r.Context(), s, &v.Waits, sees, waiting, now)
		v.Priority = priorityRows(sees.Snap, waiting, now)
	}
	if v.Owner && n.Job.Spec.Kind == cluster.Batch {
		v.Actions = append(v.Actions, again(n.Job))
	}
	v.Asked, v.Files, v.Depends = askedRows(sees.Snap, n.Job), fileRows(sees.Snap, n.Job), dependRows(sees, n.Job)
	if a := n.Job.Spec.Array; a != nil && a.Limit > 0 {
		v.Asked = append(v.Asked, ui.Row{Name: "concurrent tasks", Value: strconv.Itoa(a.Limit)})
	}
	slices.SortStableFunc(n.Tasks, func(a, b *cluster.Job) int {
		return cmp.Or(cmp.Compare(taskOrder(a), taskOrder(b)), cmp.Compare(a.Task, b.Task))
	})
	for _, j := range n.Tasks[:min(len(n.Tasks), pageJobs)] {
		row := jobRow(sees.Snap, j, now)
		v.Tasks = append(v.Tasks, row)
	}
	return "job", n.Job.Spec.Name, &v, nil
}

// taskOrder has the tasks first that somebody looks for: those that run, then those that failed.
func taskOrder(j *cluster.Job) int {
	switch {
	case j.Phase == cluster.Pending:
		return 2
	case j.Phase != cluster.Ended:
		return 0
	case !slices.Contains(wellEnded, j.Outcome):
		return 1
	}
	return 3
}
