package api

import (
	"time"

	"dev.muster/cluster"
)

// The audit trail. NoteAudit is a server's word of what it has done for a caller.
var (
	ListAudit = Endpoint[AuditQuery, AuditResponse]{"GET", "/v1/audit", User, false, 0}
	NoteAudit = Endpoint[AuditNote, WriteResponse]{"POST", "/v1/audit/note", Peer, true, 0}
)

// AuditQuery asks for changes; empty fields select all.
type AuditQuery struct {
	User   string    `json:"user,omitempty"`
	Action string    `json:"action,omitempty"` // how it begins
	Object string    `json:"object,omitempty"` // a part of it
	Since  time.Time `json:"since,omitzero"`
	Last   int       `json:"last,omitempty"` // at most so many, the latest
}

// AuditResponse has the changes, oldest first. Own says that the caller sees only their own.
type AuditResponse struct {
	Changes []*cluster.Audit `json:"changes"`
	Own     bool             `json:"own,omitempty"`
}

// AuditNote is a change that is not a command of the log, and its actor.
type AuditNote struct {
	By   cluster.Identity  `json:"by"`
	Note cluster.AuditNote `json:"note"`
}
