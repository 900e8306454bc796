package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// output is what of a job's output a visitor looks at: that of its script, or of a task of a step.
type output struct {
	job    *cluster.Job
	steps  []*cluster.Step // those that the job has had
	step   *cluster.Step   // nil: the script
	task   int
	node   cluster.NodeName // that reads it; "" is the job's first
	asked  url.Values       // which step and task
	errors bool             // the stream
}

// outputOf finds out what is asked for. An error says why there is nothing of it; what can be chosen is told anyway.
func outputOf(ctx context.Context, s *pages, who api.Caller, j *cluster.Job, r *http.Request) (o output, err error) {
	o = output{job: j, asked: url.Values{}, errors: cmp.Or(r.FormValue("stream"), r.PathValue("stream")) == "err"}
	past, err := api.CallAs(ctx, s.Call, who, api.ListHistory, api.HistoryQuery{
		Refs: []cluster.Ref{refTo(j)}, Steps: true,
	})
	for _, rec := range past.Records {
		for _, st := range rec.Steps {
			if st.ID.Step >= 0 && st.ID.Job == j.ID && st.Attempt == j.Attempt {
				o.steps = append(o.steps, st)
			}
		}
	}
	name := r.FormValue("step")
	if name == "batch" || name == "" && j.RunsScript() {
		return o, nil
	}
	o.asked.Set("step", cmp.Or(name, "0"))
	number, nerr := strconv.Atoi(o.asked.Get("step"))
	i := slices.IndexFunc(o.steps, func(st *cluster.Step) bool { return nerr == nil && st.ID.Step == number })
	if i < 0 {
		return o, cmp.Or(err, error(cluster.Errorf(cluster.NotFound, "", "no such step")))
	}
	o.step = o.steps[i]
	task := -1
	if text := r.FormValue("task"); text != "" {
		if task, err = strconv.Atoi(text); err != nil {
			return o, cluster.Errorf(cluster.Invalid, "", "not a task number: %q", text)
		}
	}
	if _, all := o.step.Files.Name(o.errors); all {
		task = -1
	}
	o.node, o.task, err = o.step.Writes(j, task, o.errors)
	if task >= 0 {
		o.asked.Set("task", strconv.Itoa(task))
	}
	return o, err
}

// tail asks for the end of it, or for what follows an offset.
func (o *output) tail(from *int64) api.TailRequest {
	q := api.TailRequest{Job: o.job.ID, Errors: o.errors, From: from}
	if o.step != nil {
		q.Step, q.Task, q.Node = &o.step.ID.Step, o.task, o.node
	}
	return q
}

// over reports whether nothing more will be written.
func (o *output) over() bool {
	return o.job.Phase == cluster.Ended || o.step != nil && !o.step.Ended.IsZero()
}

// address is one below the job's, for the same output.
func (o *output) address(path, stream string) string {
	asked := url.Values{}
	for k, v := range o.asked {
		asked[k] = v
	}
	if stream != "" {
		asked.Set("stream", stream)
	}
	if len(asked) == 0 {
		return jobPath(o.job) + path
	}
	return jobPath(o.job) + path + "?" + asked.Encode()
}

// parted reports whether errors have a file of their own.
func (o *output) parted() bool {
	spec := o.job.Spec
	if o.step == nil {
		return spec.Stderr != "" && spec.Stderr != spec.Stdout
	}
	out, _ := o.step.Files.Name(false)
	errs, _ := o.step.Files.Name(true)
	return errs != out
}

// choices are the script and the steps whose output may be chosen.
func (o *output) choices() (list []ui.Choice) {
	if o.job.RunsScript() {
		list = append(list, ui.Choice{Value: "batch", Text: "script", Here: o.step == nil})
	}
	for _, st := range o.steps {
		text := fmt.Sprintf("step %d: %s", st.ID.Step, strings.TrimSpace(st.Name))
		list = append(list, ui.Choice{Value: strconv.Itoa(st.ID.Step), Text: text, Here: st == o.step})
	}
	return list
}

// tasks is the highest task that can be chosen, and the one that is; ok: each has a file of its own.
func (o *output) tasks() (last int, ok bool) {
	if o.step == nil {
		return 0, false
	}
	name, all := o.step.Files.Name(o.errors)
	return o.step.Files.First() + o.step.Tasks - 1, name != "" && !all && o.step.Tasks > 1
}

// name is the pattern of the file's name.
func (o *output) name() string {
	name := map[bool]string{true: o.job.Spec.Stderr, false: o.job.Spec.Stdout}[o.errors]
	if o.step != nil {
		name, _ = o.step.Files.Name(o.errors)
	}
	return cmp.Or(name, "no file")
}

// fileName is what a copy of it is called.
func (o *output) fileName(stream string) string {
	if o.step == nil {
		return fmt.Sprintf("job-%s.%s", jobID(o.job), stream)
	}
	return fmt.Sprintf("job-%s.%d-%d.%s", jobID(o.job), o.step.ID.Step, o.task, stream)
}

// refTo names one job, and no other task of its array.
func refTo(j *cluster.Job) cluster.Ref {
	if j.ArrayID == 0 || j.Task == cluster.TaskAny {
		return cluster.Ref{Job: j.ID}
	}
	return cluster.Ref{Job: j.ArrayID, Tasks: cluster.NewIDSet(j.Task)}
}
