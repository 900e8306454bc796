package show

import (
	"bufio"
	"context"
	"errors"
	"strconv"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// Pace of following through the death of a server or a restart of the local daemon.
const (
	FollowPause    = 200 * time.Millisecond
	followPatience = 2 * time.Minute
)

// errFollowed ends following: all jobs that were named have ended.
var errFollowed = errors.New("all jobs have ended")

// queueFollower prints jobs as their states change.
type queueFollower struct {
	*queueOptions
	sys    *front.Sys
	v      *View
	format *format.Format[JobRow]
	out    *bufio.Writer
	since  *uint64                  // index up to which all was printed; nil before the table was
	shown  map[cluster.JobID]string // the state in which a job was last seen
	living map[cluster.JobID]bool
}

// followQueue prints the table, and then a line whenever a job changes its state.
func followQueue(s *front.Sys, o *queueOptions) int {
	if o.steps || o.start || o.data.On || o.every > 0 {
		return s.Fail("--follow prints jobs as they change: it does not go with --steps, --start, --json or --iterate")
	}
	f, bad := o.jobFormat()
	for _, x := range bad {
		s.Say("error: Invalid job format specification: %s", x)
	}
	w := &queueFollower{queueOptions: o, sys: s,
		v: &View{Sys: s, Raw: o.raw, TimeFmt: TimeFormat(s)}, format: &f,
		out:   bufio.NewWriter(s.Stdout),
		shown: map[cluster.JobID]string{}, living: map[cluster.JobID]bool{}}
	c := s.Client()
	defer c.Close()
	for heard := s.Now(); ; {
		err := api.Follow(context.Background(), c, api.WatchEvents, api.EventQuery{
			Since: w.since, Jobs: &o.query, Full: true,
		}, func(e *api.Event) error {
			heard = s.Now()
			return w.take(e)
		})
		switch {
		case errors.Is(err, errFollowed):
			return 0
		case w.since == nil || !Passing(err) || s.Now().Sub(heard) > followPatience:
			return LoadFailed(s, "slurm_load_jobs error", err)
		}
		time.Sleep(FollowPause)
	}
}

// Passing reports whether a failure may be over in a moment: no server answers, or none leads.
func Passing(err error) bool {
	var e *api.Error
	return errors.Is(err, api.ErrUnreachable) || errors.As(err, &e) && e.Code == cluster.Unavailable
}

// take prints what an event changes.
func (w *queueFollower) take(e *api.Event) error {
	w.v.Now = e.Time
	switch {
	case e.Kind == api.EventStartOver, w.since == nil:
		if err := w.list(e.Index); err != nil {
			return err
		}
	case e.Record != nil:
		w.change(e.Record)
	case e.Job != nil: // it is forgotten
		delete(w.shown, e.Job.ID)
	}
	if !e.More {
		w.since = &e.Index
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	if len(w.query.Refs) > 0 && len(w.living) == 0 {
		return errFollowed
	}
	return nil
}

// list prints the table, or later those jobs that are not as they were seen last.
func (w *queueFollower) list(index uint64) error {
	q := w.query
	q.After = index
	resp, err := ListJobs(w.sys, q)
	if err != nil {
		return err
	}
	w.v.Now = resp.Now
	if w.since != nil {
		for _, j := range resp.Jobs {
			w.change(j)
		}
		return nil
	}
	if len(q.Refs) == 1 && len(resp.Missing) == 1 {
		return cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "no such job")
	}
	var jobs []*cluster.Job
	for _, j := range resp.Jobs {
		w.note(j)
		if j.Phase != cluster.Ended || len(w.states) > 0 || w.allStates {
			jobs = append(jobs, j)
		}
	}
	w.table(w.v, w.out, w.format, w.rows(w.v, jobs))
	return nil
}

// change prints a job whose state is another one than it was.
func (w *queueFollower) change(j *cluster.Job) {
	if !w.note(j) {
		return
	}
	for _, r := range w.rows(w.v, []*cluster.Job{j}) {
		_, _ = w.out.Write(append(w.format.Row(nil, &r), '\n'))
	}
}

// note remembers the state of a job, and reports whether it is another one.
func (w *queueFollower) note(j *cluster.Job) bool {
	state := StateOf(j).Short + " " + strconv.Itoa(j.Restarts)
	if j.Phase == cluster.Ended {
		delete(w.living, j.ID)
	} else {
		w.living[j.ID] = true
	}
	old := w.shown[j.ID]
	w.shown[j.ID] = state
	return old != state
}
