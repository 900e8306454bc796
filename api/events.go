package api

import (
	"time"

	"dev.muster/cluster"
)

// EventQuery asks for what happens from now on, or since a log index.
type EventQuery struct {
	Since *uint64 `json:"since,omitempty"`
	// Jobs leaves only events of jobs that the query selects; its Phases and Outcomes too.
	Jobs *JobQuery `json:"jobs,omitempty"`
	// Full puts the whole record of a job beside what is told of it.
	Full bool `json:"full,omitempty"`
}

// EventKind is what an event is about.
type EventKind string

// The kinds. A stream begins with EventBegin; EventBeat comes when it is quiet. EventStartOver says that what happened
// since the index that was asked for is not known any more: list again what you follow, the stream goes on from its
// index.
const (
	EventBegin       EventKind = "begin"
	EventBeat        EventKind = "beat"
	EventStartOver   EventKind = "start_over"
	EventJob         EventKind = "job"
	EventStep        EventKind = "step"
	EventNode        EventKind = "node"
	EventReservation EventKind = "reservation"
)

// Event is one line of the change stream. Whoever has read the last line of an index (that without More) goes on by
// asking for what happened since it.
type Event struct {
	Index uint64    `json:"index"` // of the log
	Time  time.Time `json:"time"`
	Kind  EventKind `json:"kind"`
	More  bool      `json:"more,omitempty"` // the next line has the same index
	// Code and Message of EventStartOver: 410 and why.
	Code        int               `json:"code,omitempty"`
	Message     string            `json:"message,omitempty"`
	Job         *JobEvent         `json:"job,omitempty"`
	Step        *StepEvent        `json:"step,omitempty"`
	Node        *NodeEvent        `json:"node,omitempty"`
	Reservation *ReservationEvent `json:"reservation,omitempty"`
	Record      *cluster.Job      `json:"record,omitempty"`
}

// JobEvent is a job as it is now. State is one of pending, starting, running, suspended, ending, or how it ended:
// completed, failed, cancelled, timed_out, node_failed, preempted, out_of_memory, deadline, ended; and purged once
// it is forgotten.
type JobEvent struct {
	ID        cluster.JobID `json:"id"`
	Array     cluster.JobID `json:"array,omitempty"`
	Tasks     string        `json:"tasks,omitempty"` // of the array
	Name      string        `json:"name,omitempty"`
	User      string        `json:"user,omitempty"`
	Account   string        `json:"account,omitempty"`
	Partition string        `json:"partition,omitempty"`
	State     string        `json:"state"`
	Reason    string        `json:"reason,omitempty"` // why it waits, or ended
	Nodes     string        `json:"nodes,omitempty"`
	GPUs      int           `json:"gpus,omitempty"`
	Restarts  int           `json:"restarts,omitempty"`
	Exit      *int          `json:"exit,omitempty"` // code, once it has ended
	Signal    int           `json:"signal,omitempty"`
}

// StepEvent is a step as it is now: running, or how it ended.
type StepEvent struct {
	Job   cluster.JobID `json:"job"`
	Step  int           `json:"step"` // -1 and below: not one that srun numbered
	Name  string        `json:"name,omitempty"`
	State string        `json:"state"`
	Nodes string        `json:"nodes,omitempty"`
	Exit  *int          `json:"exit,omitempty"`
}

// NodeEvent is a node as it is now: idle, running, draining, drained, down, silent, unknown or deleted.
type NodeEvent struct {
	Name   cluster.NodeName `json:"name"`
	State  string           `json:"state"`
	Reason string           `json:"reason,omitempty"`
	By     string           `json:"by,omitempty"`
}

// ReservationEvent is a reservation as it is now: planned, active or over.
type ReservationEvent struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Nodes string    `json:"nodes,omitempty"`
}
