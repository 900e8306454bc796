package api

import (
	"time"

	"dev.muster/cluster"
)

// Triggers run programs when something happens (strigger).
var (
	ListTriggers  = Endpoint[Empty, TriggersResponse]{"GET", "/v1/triggers", User, false, 0}
	SetTrigger    = Endpoint[TriggerRequest, TriggerResponse]{"POST", "/v1/triggers/set", User, true, Named}
	ClearTriggers = Endpoint[TriggerClearRequest, WriteResponse]{
		"POST", "/v1/triggers/clear", User, true, Named | ForOperators,
	}
)

// TriggersResponse are the triggers by number.
type TriggersResponse struct {
	Triggers []TriggerRow `json:"triggers,omitempty"`
}

// TriggerRow is a trigger as it was asked for.
type TriggerRow struct {
	ID   uint32              `json:"id"`
	UID  uint32              `json:"uid"`
	Kind cluster.TriggerKind `json:"kind"`
	TriggerRequest
	Job cluster.JobID `json:"job,omitempty"`
}

// TriggerRequest asks for a trigger.
type TriggerRequest struct {
	Events    []cluster.TriggerEvent `json:"events"`
	Ref       *cluster.Ref           `json:"ref,omitempty"` // the job that it is about
	Nodes     []cluster.NodeName     `json:"nodes,omitempty"`
	Offset    time.Duration          `json:"offset,omitempty"`
	Program   string                 `json:"program"`
	Permanent bool                   `json:"permanent,omitempty"`
}

// TriggerResponse is the number of a trigger.
type TriggerResponse struct {
	ID uint32 `json:"id"`
}

// TriggerClearRequest says which triggers go: all for which everything is true that is said.
type TriggerClearRequest struct {
	ID  uint32       `json:"id,omitempty"`
	Ref *cluster.Ref `json:"ref,omitempty"`
	UID *uint32      `json:"uid,omitempty"`
}
