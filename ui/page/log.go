package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/lookup"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// Bounds of showing what a job writes.
const (
	followTime = 12 * time.Second // for a node to answer that there is more
	findBytes  = 1 << 20          // of the end that are looked through for a word
	maxLines   = 500              // found
)

// streams are what a script writes: the name in addresses, and what people call it.
var streams = [][2]string{{"out", "output"}, {"err", "errors"}}

// logOf is the job whose output is asked for, if the visitor may see it.
func (s *pages) logOf(r *http.Request, sees visibility.Scope) (lookup.Found, error) {
	n, err := lookup.Find(r.Context(), s.History, sees, r.PathValue("id"))
	switch {
	case err != nil:
		return n, err
	case n.Tasks != nil:
		return n, cluster.Errorf(cluster.Conflict, "", "%s is an array: each of its tasks has output of its own",
			n.Text)
	case !owns(sees, n.Job):
		return n, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"the output of job %s is shown to %s and to operators, who have logged in (muster ui)", n.Text,
			n.Job.Spec.User)
	}
	return n, nil
}

// viewLive shows what a running job uses and the end of what a job writes or has written, to whom it belongs and to
// operators.
func (s *pages) viewLive(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	n, err := s.logOf(r, sees)
	if err != nil {
		return "", "", nil, err
	}
	j := n.Job
	v := ui.Live{Job: jobID(j), Name: j.Spec.Name, State: api.JobWord(j), To: jobPath(j), Stream: "out",
		Find: strings.TrimSpace(r.FormValue("find"))}
	title := j.Spec.Name + ": output"
	if r.FormValue("stream") == "err" {
		v.Stream = "err"
	}
	if v.Note = showsNothing(j); v.Note != "" {
		return "live", title, v, nil
	}
	v.Shown = true // also in a part, which the page fits around what it has of the output
	ctx, cancel := context.WithTimeout(r.Context(), liveTime)
	defer cancel()
	if j.Phase == cluster.Running {
		use, err := api.CallAs(ctx, s.Call, sees.Who, api.MeasureSteps,
			api.MeasureRequest{Job: j.ID, Step: cluster.AllSteps})
		if err != nil {
			v.Note = "Resource usage is not available: " + api.AsError(err).Message
		}
		for _, st := range use.Steps {
			v.Steps = append(v.Steps, stepFigures(&st.Step))
		}
	}
	if r.Header.Get("X-Part") == "" {
		o, err := outputOf(ctx, s, sees.Who, j, r)
		readTail(ctx, s, sees, &o, err, &v)
	}
	return "live", title, v, nil
}

// readTail fills in the end of a stream, or the lines of it that have a word in them.
func readTail(ctx context.Context, s *pages, sees visibility.Scope, o *output, err error, v *ui.Live) {
	for _, st := range streams {
		if st[0] == "out" || o.parted() {
			to := o.address("/log", st[0])
			v.Streams = append(v.Streams, ui.Link{Text: st[1], To: to, Here: st[0] == v.Stream})
		}
	}
	v.Outputs, v.File = o.choices(), ""
	v.LastTask, v.Tasks = o.tasks()
	v.Task, v.Download = o.task, o.address("/log/file/"+v.Stream, "")
	if err != nil {
		v.NoTail = api.AsError(err).Message
		return
	}
	tail, err := api.CallAs(ctx, s.Call, sees.Who, api.TailOutput, o.tail(nil))
	v.File, v.Tail, v.Cut, v.End = tail.File, tail.Text, tail.Cut, tail.End
	switch {
	case err != nil:
		v.NoTail = fmt.Sprintf("Cannot read the output (%s, on node %s): %s", o.name(),
			cmp.Or(o.node, o.job.Alloc.Shares[0].Node), api.AsError(err).Message)
	case v.Find != "":
		v.Tail, v.Cut = findLines(ctx, s, sees, o, v.Find, tail)
	case !o.over():
		v.More = o.address("/log/more", v.Stream)
	}
}

// findLines are the lines of the last findBytes of a stream that have a word in them.
func findLines(ctx context.Context, s *pages, sees visibility.Scope, o *output, word string,
	tail api.TailResponse) (string,
	bool) {
	text := tail.Text
	if tail.Start > 0 {
		from, all := max(tail.End-findBytes, 0), ""
		for from < tail.End && len(all) < findBytes {
			part, err := api.CallAs(ctx, s.Call, sees.Who, api.TailOutput, o.tail(&from))
			if err != nil || part.Text == "" || part.Start != from {
				break
			}
			all, from = all+part.Text, part.End
		}
		text = cmp.Or(all, text)
	}
	found, more := linesWith(text, word)
	return found, more || tail.End > findBytes
}

// linesWith are the last maxLines lines of a text that have a word in them, in capitals or not. Word and lines may be
// of any length.
func linesWith(text, word string) (found string, more bool) {
	word = strings.ToLower(word)
	var list []string
	for line := range strings.Lines(text) {
		if strings.Contains(strings.ToLower(line), word) {
			list = append(list, line)
		}
	}
	return strings.Join(list[max(len(list)-maxLines, 0):], ""), len(list) > maxLines
}

// askedOutput is the output that an address names, for who may see it.
func askedOutput(s *pages, r *http.Request) (o output, who api.Caller, err error) {
	who, _ = s.visitor(r)
	n, err := s.logOf(r, visibility.Of(s.Snapshot(), who))
	if err == nil && showsNothing(n.Job) != "" {
		err = cluster.Errorf(cluster.Conflict, "", "%s", showsNothing(n.Job))
	}
	if err != nil {
		return o, who, err
	}
	o, err = outputOf(r.Context(), s, who, n.Job, r)
	return o, who, err
}

// moreOutput answers with what was written since an offset; nothing new is waited for a while.
func moreOutput(s *pages, w http.ResponseWriter, r *http.Request) {
	o, who, err := askedOutput(s, r)
	if err != nil {
		http.Error(w, api.AsError(err).Message, api.Status(api.AsError(err).Code))
		return
	}
	from, err := strconv.ParseInt(r.FormValue("from"), 10, 64)
	if err != nil {
		http.Error(w, "from must be an offset in bytes", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), followTime)
	defer cancel()
	over, q := o.over(), o.tail(&from)
	q.Hold = !over
	part, err := api.CallAs(ctx, s.Call, who, api.TailOutput, q)
	if err = cmp.Or(err, outdated(part)); err != nil {
		http.Error(w, api.AsError(err).Message, api.Status(api.AsError(err).Code))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Start", strconv.FormatInt(part.Start, 10))
	h.Set("X-End", strconv.FormatInt(part.End, 10))
	if over && part.Text == "" {
		h.Set("X-Over", "1")
	}
	_, _ = w.Write([]byte(part.Text))
}

// downloadOutput sends all that a job has written.
func downloadOutput(s *pages, w http.ResponseWriter, r *http.Request) {
	o, who, err := askedOutput(s, r)
	stream, sent := r.PathValue("stream"), false
	for from := int64(0); err == nil; {
		var part api.TailResponse
		ctx, cancel := context.WithTimeout(r.Context(), liveTime)
		q := o.tail(&from)
		q.Raw = true
		part, err = api.CallAs(ctx, s.Call, who, api.TailOutput, q)
		cancel()
		if err = cmp.Or(err, outdated(part)); err != nil || part.Start != from {
			break
		}
		if !sent {
			sent = true
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Disposition",
				"attachment; filename*=UTF-8''"+url.PathEscape(o.fileName(stream)))
		}
		if _, werr := w.Write(part.Bytes); werr != nil || len(part.Bytes) == 0 {
			return
		}
		from = part.End
	}
	if e := api.AsError(cmp.Or(err, errors.New("the output changed while it was being read"))); !sent {
		http.Error(w, e.Message, api.Status(e.Code))
	}
}

// outdated is the error of a node whose client reads only the end of a file: it was built before parts could be
// asked for.
func outdated(part api.TailResponse) error {
	if part.Text == "" || part.End > 0 {
		return nil
	}
	return cluster.Errorf(cluster.Unavailable, "",
		"the node runs an older version; reload to see more")
}

// jobLog is where a job's output was shown before: the address stays good.
func jobLog(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/jobs/"+url.PathEscape(r.PathValue("id"))+"/log", http.StatusMovedPermanently)
}
