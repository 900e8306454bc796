package eventlog

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// Word words what happened.
func Word(t *Record) api.Event {
	e := api.Event{Index: t.Index, Time: t.At}
	switch {
	case t.Job != nil:
		e.Kind, e.Job = api.EventJob, jobEvent(t.Job)
	case t.Purged != 0:
		e.Kind, e.Job = api.EventJob, &api.JobEvent{ID: t.Purged, State: "purged"}
	case t.Step != nil:
		e.Kind, e.Step = api.EventStep, stepEvent(t.Step)
	case t.Node != nil:
		e.Kind, e.Node = api.EventNode, nodeEvent(t.Node, !t.Idle)
	case t.Gone != "":
		e.Kind, e.Node = api.EventNode, &api.NodeEvent{Name: t.Gone, State: "deleted"}
	case t.Resv != nil:
		e.Kind, e.Reservation = api.EventReservation, reservationEvent(t)
	}
	return e
}

func reservationEvent(t *Record) *api.ReservationEvent {
	r := t.Resv
	e := &api.ReservationEvent{
		Name:  r.Name,
		State: "planned",
		Start: r.Start,
		End:   r.End,
		Nodes: hostlist.CompressNames(r.Nodes),
	}
	switch {
	case t.ResvOver || !t.At.Before(r.End):
		e.State = "over"
	case r.Active(t.At):
		e.State = "active"
	}
	return e
}

func nodeEvent(n *cluster.Node, busy bool) *api.NodeEvent {
	return &api.NodeEvent{
		Name:   n.Name,
		State:  nodeWord(n, busy),
		Reason: n.Reason,
		By:     n.ReasonBy,
	}
}

func jobEvent(j *cluster.Job) *api.JobEvent {
	e := &api.JobEvent{
		ID:        j.ID,
		Array:     j.ArrayID,
		Tasks:     tasksText(j),
		Name:      j.Spec.Name,
		User:      j.Spec.User,
		Account:   j.Spec.Account,
		Partition: strings.Join(api.PartitionsOf(j), ","),
		State:     api.JobWord(j),
		Reason:    string(j.Wait),
		Restarts:  j.Restarts,
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

// tasksText is which tasks of an array a record is of; "": it is of none.
func tasksText(j *cluster.Job) string {
	if j.ArrayID == 0 {
		return ""
	}
	if j.Tasks.Empty() {
		return strconv.Itoa(j.Task)
	}
	return j.Tasks.String()
}

func stepEvent(st *cluster.Step) *api.StepEvent {
	e := &api.StepEvent{Job: st.ID.Job, Step: st.ID.Step, Name: st.Name, State: "running"}
	names := make([]cluster.NodeName, len(st.Shares))
	for i, sh := range st.Shares {
		names[i] = sh.Node
	}
	e.Nodes = hostlist.CompressNames(names)
	if !st.Ended.IsZero() {
		e.State, e.Exit = api.OutcomeWord(st.Outcome), &st.Exit.Code
	}
	return e
}

// Follows reports whether somebody who asks so gets an event.
func Follows(q *api.EventQuery, sees visibility.Scope, t *Record) bool {
	if t.Past || !visible(sees, t) {
		return false
	}
	if q.Jobs == nil || t.Purged != 0 {
		return true
	}
	return t.Job != nil && asksFor(q.Jobs, t.Job)
}

// visible reports whether somebody may see what an event tells of.
func visible(sees visibility.Scope, t *Record) bool {
	switch {
	case t.Job != nil:
		return sees.Job(t.Job)
	case t.Step != nil:
		return sees.Step(t.Step)
	case t.Node != nil || t.Gone != "":
		return sees.Events() == nil
	case t.Resv != nil:
		return sees.Reservation(t.Resv)
	}
	return !sees.Hides(cluster.PrivateJobs) // what is purged says no more whose it was
}

// asksFor reports whether a query is for a job.
func asksFor(q *api.JobQuery, j *cluster.Job) bool {
	named := len(q.Refs) == 0 || slices.ContainsFunc(q.Refs, func(r cluster.Ref) bool { return r.Names(j) })
	return named && q.Matches(j)
}

// Words words those of some events that somebody gets.
func Words(q *api.EventQuery, sees visibility.Scope, events []Record) (out []api.Event) {
	for i := range events {
		t := &events[i]
		if !Follows(q, sees, t) {
			continue
		}
		e := Word(t)
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

// nodeWord is a node's condition in events and metrics, which called a node unknown before pages called it absent.
func nodeWord(n *cluster.Node, busy bool) string {
	if word := n.Word(busy); word != "absent" {
		return word
	}
	return "unknown"
}
