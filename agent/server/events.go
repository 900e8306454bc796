package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/wire"
)

// Bounds of the change stream.
const (
	maxFollowers = 1000             // at a time, of one server
	eventBeat    = 15 * time.Second // a quiet stream says so
	// stallTime is how long a follower may take for one batch; then it is cut off.
	stallTime = 15 * time.Second
	// aheadTime is how long a server that is behind the index that is asked for may take to reach it.
	aheadTime = 10 * time.Second
)

// outcomeText names how a job or a step ended.
func outcomeText(o cluster.Outcome) string { return cmp.Or(o.String(), "ended") }

// eventOf words what happened.
func eventOf(t *loggedEvent) api.Event {
	e := api.Event{Index: t.index, Time: t.at}
	switch {
	case t.Job != nil:
		e.Kind, e.Job = api.EventJob, jobEvent(t.Job)
	case t.Purged != 0:
		e.Kind, e.Job = api.EventJob, &api.JobEvent{ID: t.Purged, State: "purged"}
	case t.Step != nil:
		e.Kind, e.Step = api.EventStep, stepEvent(t.Step)
	case t.Node != nil:
		e.Kind, e.Node = api.EventNode, &api.NodeEvent{Name: t.Node.Name, State: nodeWord(t.Node, !t.Idle), Reason: t.Node.Reason, By: t.Node.ReasonBy}
	case t.Gone != "":
		e.Kind, e.Node = api.EventNode, &api.NodeEvent{Name: t.Gone, State: "deleted"}
	case t.Resv != nil:
		state := "planned"
		if t.ResvOver || !t.at.Before(t.Resv.End) {
			state = "over"
		} else if t.Resv.Active(t.at) {
			state = "active"
		}
		e.Kind, e.Reservation = api.EventReservation, &api.ReservationEvent{Name: t.Resv.Name, State: state, Start: t.Resv.Start, End: t.Resv.End, Nodes: hostlist.CompressNames(t.Resv.Nodes)}
	}
	return e
}

func jobEvent(j *cluster.Job) *api.JobEvent {
	e := &api.JobEvent{ID: j.ID, Array: j.ArrayID, Name: j.Spec.Name, User: j.Spec.User, Account: j.Spec.Account, Partition: strings.Join(partitionsOf(j), ","),
		State: stateOf(j), Reason: string(j.Wait), Restarts: j.Restarts}
	switch {
	case j.ArrayID != 0 && !j.Tasks.Empty():
		e.Tasks = j.Tasks.String()
	case j.ArrayID != 0:
		e.Tasks = strconv.Itoa(j.Task)
	}
	if j.Alloc != nil {
		e.Nodes, e.Reason = hostlist.CompressNames(j.AllocNodes()), ""
		for _, sh := range j.Alloc.Shares {
			e.GPUs += sh.GPUs.Len()
		}
	}
	if j.Phase == cluster.Ended {
		e.Reason, e.Exit, e.Signal = string(j.EndReason), &j.Exit.Code, j.Exit.Signal
	}
	return e
}

func stepEvent(st *cluster.Step) *api.StepEvent {
	e := &api.StepEvent{Job: st.ID.Job, Step: st.ID.Step, Name: st.Name, State: "running"}
	names := make([]cluster.NodeName, len(st.Shares))
	for i, sh := range st.Shares {
		names[i] = sh.Node
	}
	e.Nodes = hostlist.CompressNames(names)
	if !st.Ended.IsZero() {
		e.State, e.Exit = outcomeText(st.Outcome), &st.Exit.Code
	}
	return e
}

// follows reports whether somebody who asks so gets an event.
func follows(q *api.EventQuery, sees visibility, t *loggedEvent) bool {
	if t.past {
		return false
	}
	if q.Jobs != nil && t.Purged == 0 {
		return t.Job != nil && sees.job(t.Job) && matchJob(q.Jobs, t.Job) &&
			(len(q.Jobs.Refs) == 0 || slices.ContainsFunc(q.Jobs.Refs, func(r cluster.Ref) bool { return r.Names(t.Job) }))
	}
	switch {
	case t.Job != nil:
		return sees.job(t.Job)
	case t.Step != nil:
		return sees.step(t.Step)
	case t.Node != nil || t.Gone != "":
		return !sees.hides(cluster.PrivateNodes)
	case t.Resv != nil:
		return sees.reservation(t.Resv)
	}
	return !sees.hides(cluster.PrivateJobs) // what is purged says no more whose it was
}

// watchEvents answers a caller of the contract.
func (s *Server) watchEvents(ctx context.Context, who api.Caller, q api.EventQuery, send func([]api.Event) error) error {
	if err := s.ready(ctx, true); err != nil {
		return err
	}
	if s.followers.Add(1) > maxFollowers {
		s.followers.Add(-1)
		return cluster.Errorf(cluster.Unavailable, "", "%d callers follow this server already; ask another one", maxFollowers)
	}
	defer s.followers.Add(-1)
	return s.follow(ctx, who, q, send)
}

// follow sends what happens since an index until ctx ends or send fails.
func (s *Server) follow(ctx context.Context, who api.Caller, q api.EventQuery, send func([]api.Event) error) error {
	at, err := s.reach(ctx, q.Since)
	if err != nil {
		return err
	}
	first := api.Event{Index: at, Time: time.Now(), Kind: api.EventBegin}
	if q.Since != nil && *q.Since > at {
		first = startOver(at, *q.Since)
	}
	if err := send([]api.Event{first}); err != nil {
		return err
	}
	beat := time.NewTicker(eventBeat)
	defer beat.Stop()
	for due := false; ; { // due: nothing was said for a beat
		now := at
		if due {
			now = s.committed().Index // before looking: what happened up to it is in the event log
		}
		events, more, ok := s.events.after(at)
		var out []api.Event
		switch {
		case !ok:
			now = s.committed().Index
			out, at = []api.Event{startOver(now, at)}, now
		case len(events) > 0:
			out, at = wordEvents(&q, s.visibleTo(who), events), events[len(events)-1].index
		case due:
			at = max(at, now)
			out = []api.Event{{Index: at, Time: time.Now(), Kind: api.EventBeat}}
		}
		if len(out) > 0 {
			if err := send(out); err != nil {
				return err
			}
			due = false
			beat.Reset(eventBeat)
		}
		if len(events) > 0 || !ok {
			continue
		}
		select {
		case <-more:
		case <-beat.C:
			due = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wordEvents words those of some events that somebody gets.
func wordEvents(q *api.EventQuery, sees visibility, events []loggedEvent) (out []api.Event) {
	for i := range events {
		t := &events[i]
		if !follows(q, sees, t) {
			continue
		}
		e := eventOf(t)
		if q.Full {
			e.Record = t.Job
		}
		if n := len(out); n > 0 {
			out[n-1].More = out[n-1].Index == e.Index
		}
		out = append(out, e)
	}
	return out
}

// reach is the index to follow from: the present one, or that which is asked for once this server has it, if it comes
// to it in time.
func (s *Server) reach(ctx context.Context, since *uint64) (uint64, error) {
	now := s.committed().Index
	if since == nil || *since <= now {
		if since != nil {
			now = *since
		}
		return now, nil
	}
	wait, cancel := context.WithTimeout(ctx, aheadTime)
	defer cancel()
	_ = s.log.Applied(wait, *since) // what is there is told
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return min(s.committed().Index, *since), nil
}

func startOver(at, since uint64) api.Event {
	why := fmt.Sprintf("what happened since index %d is not known here any more; list again, then follow on from index %d", since, at)
	if since > at {
		why = fmt.Sprintf("index %d has never been here; list again, then follow on from index %d", since, at)
	}
	return api.Event{Index: at, Time: time.Now(), Kind: api.EventStartOver, Code: http.StatusGone, Message: why}
}

// liveEvents is the change stream for browsers: server-sent events whose id is the log index, one for all that
// happened at it, a line of data for each.
func (s *pages) liveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	var q api.EventQuery
	if text := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("since")); text != "" {
		since, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			http.Error(w, "since="+text+" is no log index; leave it out to follow from now on", http.StatusBadRequest)
			return
		}
		q.Since = &since
	}
	if s.watching.Add(1) > maxLive { // of their own: the page's visitors crowd no commands out
		s.watching.Add(-1)
		http.Error(w, "too many follow this server's page; ask another one's", http.StatusServiceUnavailable)
		return
	}
	defer s.watching.Add(-1)
	who, _ := s.visitor(r)
	rc, begun := http.NewResponseController(w), false
	err := s.follow(r.Context(), who, q, func(events []api.Event) error {
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			begun = true
		}
		text, err := sseText(events)
		if err != nil {
			return err
		}
		if err := rc.SetWriteDeadline(time.Now().Add(stallTime)); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		return rc.Flush()
	})
	if err != nil && !begun {
		e := api.AsError(err)
		http.Error(w, e.Message, api.Status(e.Code))
	}
}

// sseText words events for an EventSource.
func sseText(events []api.Event) (text []byte, err error) {
	for i := range events {
		text = append(text, "data: "...)
		if text, err = wire.Append(text, &events[i]); err != nil {
			return nil, err
		}
		text = append(text, '\n')
		if !events[i].More {
			text = fmt.Appendf(text, "id: %d\n\n", events[i].Index)
		}
	}
	return text, nil
}
