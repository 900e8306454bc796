// Package watch tells what happens to jobs as it happens, in words (muster watch).
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// Bounds of what is told.
const (
	digestPause = 10 * time.Second // between two digests of an array
	maxSingle   = 8                // more jobs than that are told of as a digest, but for those that fail
	patience    = 10 * time.Minute // without an answer of a server
)

// Command returns muster watch.
func Command(sys func() *front.Sys) *cli.Command {
	return &cli.Command{
		Name:      "watch",
		ArgsUsage: "JOB…",
		Usage: "tell what happens to jobs until they have ended: starts, waits, checkpoints, hangs, slow GPUs, nodes " +
			"that are replaced, and why they failed. Exits with the highest exit code of the jobs",
		Action: func(c *cli.Context) error {
			s := sys()
			refs, err := parse(c.Args().Slice())
			if err != nil {
				return err
			}
			code, err := run(s, refs)
			if err != nil {
				code = s.Failed(err)
			}
			return cli.Exit("", code)
		},
	}
}

// parse reads the jobs that are named.
func parse(words []string) (refs []cluster.Ref, err error) {
	if len(words) == 0 {
		return nil, errors.New("usage: muster watch JOB…")
	}
	for _, w := range words {
		t, ok := front.ParseTarget(w)
		if !ok || t.Step != nil {
			return nil, fmt.Errorf("%q is no job: want an id such as 17, 17_3 or 17+1", w)
		}
		refs = append(refs, t.Ref)
	}
	return refs, nil
}

// errEnded ends following: all jobs have ended.
var errEnded = errors.New("all jobs have ended")

// run follows jobs until they have ended, and returns the highest exit code.
func run(s *front.Sys, refs []cluster.Ref) (code int, err error) {
	w := &watcher{sys: s, refs: refs, out: s.Stdout, jobs: map[cluster.JobID]*cluster.Job{}}
	c := s.Client()
	defer c.Close()
	for heard := s.Now(); ; {
		q := api.EventQuery{Since: w.since, Jobs: &api.JobQuery{Refs: refs}, Full: true}
		err := api.Follow(context.Background(), c, api.WatchEvents, q, func(e *api.Event) error {
			heard = s.Now()
			return w.take(e)
		})
		switch {
		case errors.Is(err, errEnded):
			return w.code(), nil
		case w.since == nil || !show.Passing(err) || s.Now().Sub(heard) > patience:
			return 0, err
		}
		time.Sleep(show.FollowPause)
	}
}

// watcher is what is known of the jobs.
type watcher struct {
	sys      *front.Sys
	refs     []cluster.Ref
	out      io.Writer
	since    *uint64 // index up to which all was told; nil before the first list
	jobs     map[cluster.JobID]*cluster.Job
	isMany   bool      // they are told of as a digest
	digest   string    // the last
	digested time.Time // when
}

// take tells what an event changes.
func (w *watcher) take(e *api.Event) error {
	switch {
	case e.Kind == api.EventStartOver, w.since == nil:
		if err := w.list(e.Index); err != nil {
			return err
		}
	case e.Record != nil:
		w.change(e.Record, e.Time)
	}
	if !e.More {
		w.since = &e.Index
	}
	isOver := !slices.ContainsFunc(slices.Collect(maps.Values(w.jobs)), isLive)
	w.tellDigest(e.Time, isOver)
	if isOver {
		return errEnded
	}
	return nil
}

func isLive(j *cluster.Job) bool { return j.Phase != cluster.Ended }

// list asks for the jobs as they are at an index.
func (w *watcher) list(index uint64) error {
	resp, err := show.ListJobs(w.sys, api.JobQuery{Refs: w.refs, After: index})
	if err != nil {
		return err
	}
	if len(resp.Jobs) == 0 {
		return cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "no such job is in the queue: "+
			"sacct shows jobs of the past")
	}
	w.isMany = len(resp.Jobs) > maxSingle
	for _, j := range resp.Jobs {
		w.change(j, resp.Now)
	}
	return nil
}

// change tells how a job differs from what it was.
func (w *watcher) change(j *cluster.Job, now time.Time) {
	old := w.jobs[j.ID]
	w.jobs[j.ID] = j
	lines := changes(old, j)
	if w.isMany = w.isMany || len(w.jobs) > maxSingle; w.isMany {
		lines = nil
		if j.Phase == cluster.Ended && j.Outcome != cluster.Completed {
			lines = []string{ending(j)}
		}
	}
	for _, l := range lines {
		w.say(now, jobName(j)+" "+l)
	}
}

// say prints a line with its time. Names and texts of jobs control no terminal.
func (w *watcher) say(now time.Time, text string) {
	_, _ = fmt.Fprintln(w.out, now.Local().Format(time.TimeOnly), cluster.PlainLine(text))
}

// tellDigest counts the jobs by their states, where they are many.
func (w *watcher) tellDigest(now time.Time, isOver bool) {
	if !w.isMany || !isOver && now.Sub(w.digested) < digestPause {
		return
	}
	if text := digest(w.jobs); text != w.digest {
		w.say(now, text)
		w.digest, w.digested = text, now
	}
}

// digest counts jobs by their states, the most frequent first.
func digest(jobs map[cluster.JobID]*cluster.Job) string {
	n := map[string]int{}
	for _, j := range jobs {
		n[strings.ToLower(show.StateOf(j).Long)] += max(j.Tasks.Len(), 1)
	}
	states := slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		return cmp.Or(n[b]-n[a], strings.Compare(a, b))
	})
	var words []string
	for _, s := range states {
		words = append(words, fmt.Sprintf("%d %s", n[s], s))
	}
	return "jobs: " + strings.Join(words, ", ")
}

// code is the highest exit code of the jobs; one that ended badly without a code has 1.
func (w *watcher) code() (code int) {
	for _, j := range w.jobs {
		switch {
		case j.Exit.Code > 0:
			code = max(code, j.Exit.Code)
		case j.Outcome != cluster.Completed:
			code = max(code, 1)
		}
	}
	return code
}
