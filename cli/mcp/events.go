package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cli/look"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

var eventsTool = tool{name: "events", title: "Wait for changes of jobs", help: "Wait until jobs change, start " +
	"or end, and return the changes, and of jobs that failed why. Use it instead of polling jobs. Pass since from " +
	"the last answer to miss nothing."}

type eventsIn struct {
	IDs   []any  `json:"ids,omitempty" jsonschema:"job IDs; default: all jobs of yours"`
	Until string `json:"until,omitempty" jsonschema:"change (default), started or ended: of all jobs in ids"`
	Wait  *int   `json:"wait,omitempty" jsonschema:"seconds to wait at most, up to 50; default 50"`
	Since string `json:"since,omitempty" jsonschema:"value of since: from the last answer"`
}

// Bounds of waiting: clients of the protocol give up after a minute.
const (
	mostWait  = 50 * time.Second
	maxEvents = 100
	settle    = 200 * time.Millisecond // for changes that come together
)

// waiting collects changes until there is something to tell.
type waiting struct {
	until string
	over  bool     // what is waited for has come
	bad   []string // IDs of jobs that have ended without success
	lines []string
	since uint64
}

func (c *caller) events(ctx context.Context, in eventsIn) (string, error) {
	_, refs, err := targets(in.IDs)
	if err != nil {
		return "", err
	}
	w := &waiting{until: in.Until}
	switch {
	case !w.phased() && in.Until != "" && in.Until != "change":
		return "", fmt.Errorf("until %q: use change, started or ended", cutAt(in.Until, 40))
	case w.phased() && len(refs) == 0:
		return "", fmt.Errorf("until=%s: name the jobs in ids", in.Until)
	}
	s := c.sys()
	q := api.EventQuery{Jobs: &api.JobQuery{Refs: refs}}
	if len(refs) == 0 {
		q.Jobs.Users = []uint32{s.UID}
	}
	if in.Since != "" {
		if w.since, err = strconv.ParseUint(in.Since, 10, 64); err != nil {
			return "", fmt.Errorf("since %q: use the value after \"since:\" of the last answer", cutAt(in.Since, 40))
		}
		q.Since = &w.since
	}
	ctx, cancel := context.WithTimeout(ctx, waitOf(in.Wait))
	defer cancel()
	return w.wait(ctx, c, s, refs, q)
}

// wait looks at the jobs, and again after changes of them, until what is waited for has come.
func (w *waiting) wait(ctx context.Context, c *caller, s *front.Sys, refs []cluster.Ref, q api.EventQuery) (string,
	error) {
	client := s.Client()
	defer client.Close()
	for {
		if len(refs) > 0 {
			index, err := w.look(c, s, refs)
			if err != nil {
				return "", err
			}
			if q.Since == nil && index > 0 {
				w.since, q.Since = index, &w.since
			}
		}
		if w.over || len(w.lines) > 0 && !w.phased() || len(w.lines) >= maxEvents {
			return w.text() + c.verdicts(w.bad), nil
		}
		part, cancel := context.WithCancel(ctx)
		first := sync.OnceFunc(func() { time.AfterFunc(settle, cancel) })
		err := api.Follow(part, client, api.WatchEvents, q, func(e *api.Event) error { return w.take(e, first) })
		ended := part.Err() != nil || errors.Is(err, errEnough)
		cancel()
		switch {
		case ctx.Err() != nil:
			return w.text(), nil
		case err != nil && !ended:
			return "", err
		}
		q.Since = &w.since
	}
}

// phased reports whether jobs are waited for to reach a phase.
func (w *waiting) phased() bool { return w.until == "started" || w.until == "ended" }

func waitOf(seconds *int) time.Duration {
	if seconds == nil {
		return mostWait
	}
	return min(max(time.Duration(*seconds)*time.Second, settle), mostWait)
}

// look looks whether all jobs are where they are waited for, and returns of which index of the log that is.
func (w *waiting) look(c *caller, s *front.Sys, refs []cluster.Ref) (index uint64, err error) {
	resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: refs, Brief: true})
	if err != nil && !front.IsKind(err, cluster.ErrJobID) {
		return 0, err
	}
	past := resp.Missing
	if err != nil {
		past = refs
	}
	list := resp.Jobs
	if len(past) > 0 { // jobs of the past have ended
		ended, err := c.find(s, api.JobQuery{Refs: past, Brief: true})
		switch {
		case err != nil:
			return 0, err
		case len(ended) == 0:
			return 0, fmt.Errorf("no such job: %d", past[0].Job)
		}
		list = append(slices.Clone(list), ended...)
	}
	least := cluster.Running
	if w.until == "ended" {
		least = cluster.Ended
	}
	w.bad = nil
	for _, j := range list {
		if j.Phase == cluster.Ended && j.Outcome != cluster.Completed {
			r := show.JobRow{Job: j, View: &show.View{Sys: s, Now: s.Now()}}
			w.bad = append(w.bad, r.ShownID())
		}
	}
	w.over = w.phased() && !slices.ContainsFunc(resp.Jobs, func(j *cluster.Job) bool { return j.Phase < least })
	return resp.Index, nil
}

// maxVerdicts bounds of how many jobs the end is explained at once.
const maxVerdicts = 3

// verdicts tells how jobs ended, as tool why does: it is what an agent asks next.
func (c *caller) verdicts(ids []string) string {
	var b strings.Builder
	for i, id := range ids {
		if i == maxVerdicts {
			fmt.Fprintf(&b, "[%d more jobs ended without success: see tool why]\n", len(ids)-i)
			break
		}
		if text, err := c.run("muster", look.Why, id); err == nil {
			b.WriteString(text)
		}
	}
	return b.String()
}

// take reads an event; first is called at the first one that is to be told.
func (w *waiting) take(e *api.Event, first func()) error {
	if !e.More {
		w.since = e.Index
	}
	switch {
	case e.Kind == api.EventStartOver:
		w.lines = append(w.lines, "[older changes are no longer known: list the jobs again]")
	case e.Job != nil:
		w.lines = append(w.lines, eventLine(e))
	default:
		return nil
	}
	if len(w.lines) >= maxEvents && !e.More {
		return errEnough
	}
	first()
	return nil
}

func eventLine(e *api.Event) string {
	j, t := e.Job, &table{}
	id := strconv.FormatUint(uint64(j.ID), 10)
	switch {
	case j.Array != 0 && strings.ContainsAny(j.Tasks, ",-"):
		id = fmt.Sprintf("%d_[%s]", j.Array, j.Tasks)
	case j.Array != 0 && j.Tasks != "":
		id = fmt.Sprintf("%d_%s", j.Array, j.Tasks)
	}
	exit := "-"
	if j.Exit != nil {
		exit = fmt.Sprintf("exit %d:%d", *j.Exit, j.Signal)
	}
	t.row(e.Time.Local().Format(time.TimeOnly), id, j.State, j.Reason, j.Nodes, exit)
	return strings.TrimSuffix(t.String(), "\n")
}

// text returns the changes, the last ones of many.
func (w *waiting) text() string {
	lines := w.lines
	var b strings.Builder
	if n := len(lines) - maxEvents; n > 0 {
		fmt.Fprintf(&b, "[%d earlier changes]\n", n)
		lines = lines[n:]
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	switch {
	case w.over:
		fmt.Fprintf(&b, "all %s\n", w.until)
	case len(lines) == 0:
		b.WriteString("no change yet: call again\n")
	}
	fmt.Fprintf(&b, "since: %d\n", w.since)
	return b.String()
}
