package api

import (
	"time"

	"dev.muster/cluster"
)

// Measurements of nodes go to the servers outside of the log: a sample that is lost is a hole in a curve and no
// more. A node keeps the last minutes until the server that leads has them, and tells them again when
// another one does; the other servers fetch from the leader what it was told.
var (
	TellSamples = Endpoint[SamplesRequest, SamplesResponse]{"POST", "/v1/nodes/samples", Node, true, 0}
	CopySamples = Endpoint[CopyRequest, CopyResponse]{"GET", "/v1/servers/samples", Peer, false, 0}
)

// NodeSample is what a node measured in a time: samples of package telemetry, packed.
type NodeSample struct {
	Node cluster.NodeName `json:"node"`
	At   int64            `json:"at"`   // when it began, Unix seconds
	Span int              `json:"span"` // for how many seconds
	Data []byte           `json:"data,omitempty"`
	Jobs []JobSample      `json:"jobs,omitempty"`
}

// JobSample is what a job did on the node meanwhile.
type JobSample struct {
	Job  cluster.JobID `json:"job"`
	Data []byte        `json:"data"`
	// Progress is how far the job says that it has come; nil: it says nothing.
	Progress *Progress `json:"progress,omitempty"`
}

// SamplesRequest has samples of nodes of one client.
type SamplesRequest struct {
	Samples []NodeSample `json:"samples"`
}

// SamplesResponse says who has taken them. A server that has started again may lack what it was told before.
type SamplesResponse struct {
	Boot string `json:"boot"`
}

// CopyRequest asks a server for what it was told after so much that it was told since it started.
type CopyRequest struct {
	Boot  string `json:"boot,omitempty"`
	After uint64 `json:"after,omitempty"`
}

// CopyResponse is that, or the next part of it, and how much it was told with it.
type CopyResponse struct {
	Boot    string       `json:"boot"`
	After   uint64       `json:"after"`
	More    bool         `json:"more,omitempty"`
	Samples []NodeSample `json:"samples,omitempty"`
}

// ShowSamples reads what a job or a node did, for who may see it.
var ShowSamples = Endpoint[SamplesQuery, SamplesAnswer]{"GET", "/v1/samples", User, false, 0}

// SamplesQuery names a job, as squeue shows it, or a node; or a job on one of its nodes.
type SamplesQuery struct {
	Job   string           `json:"job,omitempty"`
	Node  cluster.NodeName `json:"node,omitempty"`
	Since time.Time        `json:"since,omitzero"`
	Until time.Time        `json:"until,omitzero"`
}

// SamplesAnswer is that, by node and the oldest first. More: there was too much for one answer.
type SamplesAnswer struct {
	Job     *cluster.Job `json:"job,omitempty"`
	Samples []NodeSample `json:"samples,omitempty"` // Data is the job's if one was named
	More    bool         `json:"more,omitempty"`
}

// ListIdle lists jobs that have GPUs which do nothing.
var ListIdle = Endpoint[IdleQuery, IdleAnswer]{"GET", "/v1/gpus/idle", User, false, 0}

// IdleQuery bounds the list to GPUs that do nothing for so long; 0: as long as their partitions allow.
type IdleQuery struct {
	For time.Duration `json:"for,omitempty"`
}

// IdleAnswer is the list, those first that have done nothing for the longest.
type IdleAnswer struct {
	Jobs []IdleJob `json:"jobs,omitempty"`
	Now  time.Time `json:"now"`
}

// IdleJob is a job with GPUs that do nothing.
type IdleJob struct {
	Job   *cluster.Job     `json:"job"`
	Nodes string           `json:"nodes"` // on which, as a host list
	Idle  int              `json:"idle"`
	GPUs  int              `json:"gpus"` // that it has
	Since time.Time        `json:"since"`
	Rule  cluster.IdleRule `json:"rule,omitempty"` // of its partition
}
