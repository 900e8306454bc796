package api

import (
	"dev.muster/cluster"
)

// Parts of steps: what the client of a job's first node asks of the clients of its sister nodes, and
// what those tell it. They are answered by clients, to members that take part in the job.
var (
	StartParts = Endpoint[PartsRequest, Empty]{"POST", "/v1/parts/start", Node, false, 0}
	// StartHelped is StartParts of a step whose tasks need more than themselves (StepSpec.Helped): a client of
	// before there were such steps does not know it, and so refuses what it would do without.
	StartHelped = Endpoint[PartsRequest, Empty]{"POST", "/v1/parts/start-helped", Node, false, 0}
	// StartCast is StartParts of a step for which files are put on nodes, for the same reason.
	StartCast = Endpoint[PartsRequest, Empty]{"POST", "/v1/parts/start-cast", Node, false, 0}
	// StartPorts is StartParts of a step that asks for ports of its nodes, for the same reason. One that gets some
	// without asking does without them at a client of before there were any.
	StartPorts  = Endpoint[PartsRequest, Empty]{"POST", "/v1/parts/start-ports", Node, false, 0}
	BeginParts  = Endpoint[PartsBegin, Empty]{"POST", "/v1/parts/begin", Node, false, 0}
	SignalParts = Endpoint[PartsSignal, Empty]{"POST", "/v1/parts/signal", Node, false, 0}
	ForgetParts = Endpoint[PartsQuery, Empty]{"POST", "/v1/parts/forget", Node, false, 0}
	ListParts   = Endpoint[PartsQuery, PartsReport]{"POST", "/v1/parts/list", Node, false, 0}
	TellParts   = Endpoint[PartsReport, Empty]{"POST", "/v1/parts/tell", Node, false, 0}
	// MeasureParts measures what the parts use now.
	MeasureParts = Endpoint[PartsQuery, PartsUsage]{"POST", "/v1/parts/measure", Node, false, 0}
)

// AttachPart is the tunnel that carries the frames of one node's part of a step to the first node.
const AttachPart = "/v1/parts/attach"

// NodePeer is where the client of a job's other node is.
type NodePeer struct {
	Node      cluster.NodeName  `json:"node"`
	Addr      string            `json:"addr"`
	Member    string            `json:"member"`
	Inventory cluster.Inventory `json:"inventory"`
}

// PartsRequest asks a client to start its nodes' parts of a step, and to pass on what Onward names.
type PartsRequest struct {
	Step   cluster.Step       `json:"step"`
	Spec   cluster.StepSpec   `json:"spec"`
	Key    string             `json:"key,omitempty"`
	Lead   cluster.NodeName   `json:"lead"`  // the job's first node
	Nodes  []cluster.NodeName `json:"nodes"` // of the client that is asked
	Onward []PartsGroup       `json:"onward,omitempty"`
	// Hold: get ready, but start nothing before BeginParts says so.
	Hold bool `json:"hold,omitempty"`
}

// PartsBegin starts parts that are ready, as PartsRequest with Hold made them.
type PartsBegin struct {
	PartsQuery
	Onward []PartsGroup `json:"onward,omitempty"`
}

// PartsGroup are the nodes of one client.
type PartsGroup struct {
	Addr  string             `json:"addr"`
	Nodes []cluster.NodeName `json:"nodes"`
}

// PartsQuery names a job's attempt, or one step of it, and nodes.
type PartsQuery struct {
	Job     cluster.JobID      `json:"job"`
	Attempt int                `json:"attempt"`
	Step    int                `json:"step"`
	Nodes   []cluster.NodeName `json:"nodes"`
}

// PartsSignal sends a signal to parts, or says a line on the standard error of the first.
type PartsSignal struct {
	PartsQuery
	Sig   int    `json:"sig,omitempty"`
	Scope uint8  `json:"scope,omitempty"` // of package agent/step
	Say   string `json:"say,omitempty"`
	Note  bool   `json:"note,omitempty"` // what is said does not tell of the step's end
}

// PartsReport tells how parts stand: statuses of package agent/step, as it encodes them.
type PartsReport struct {
	Statuses [][]byte `json:"statuses"`
}

// PartsUsage is what living parts of a job's steps have used so far.
type PartsUsage struct {
	Parts []PartUsage `json:"parts"`
	// Progress is how far the job has told these nodes that it has come; nil: it has told them nothing.
	Progress *Progress `json:"progress,omitempty"`
}

// PartUsage is what one node's part of a step has used so far, by rank of its tasks, and which processes it has.
type PartUsage struct {
	Step  int                       `json:"step"`
	Node  cluster.NodeName          `json:"node"`
	Tasks map[int]cluster.TaskUsage `json:"tasks"`
	PIDs  []int                     `json:"pids,omitempty"`
}
