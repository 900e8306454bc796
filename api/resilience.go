package api

import "dev.muster/cluster"

// Reports of jobs about their progress, and of nodes about jobs that make none.
var (
	// SaveCheckpoint says that a job has saved a checkpoint: for its user.
	SaveCheckpoint = Endpoint[cluster.CheckpointDone, WriteResponse]{"POST", "/v1/jobs/checkpoint", User, true, 0}
	// TellCheckpoint says so for the node that leads the job, which has seen its file change.
	TellCheckpoint = Endpoint[NodeCheckpoint, Empty]{"POST", "/v1/nodes/checkpoint", Node, true, 0}
	// TellHang says that a job hangs, for the node that leads it.
	TellHang = Endpoint[NodeHang, Empty]{"POST", "/v1/nodes/hang", Node, true, 0}
	// SwapNode has a spare take the place of a node of a job: for its user. The answer is the node that has taken it.
	SwapNode = Endpoint[cluster.SwapNode, SwapResponse]{"POST", "/v1/jobs/swap", User, true, 0}
	// ReportProgress says how far a job has come: to a node that it runs on.
	ReportProgress = Endpoint[ProgressRequest, Empty]{"POST", "/v1/steps/progress", User, false, 0}
)

// SwapResponse names the node that has taken the place of another.
type SwapResponse struct {
	Node cluster.NodeName `json:"node"`
}

// NodeCheckpoint is a checkpoint that a node has seen.
type NodeCheckpoint struct {
	Job     cluster.JobID `json:"job"`
	Attempt int           `json:"attempt"`
	Path    string        `json:"path"`
}

// NodeHang is a job that hangs, as the node that leads it has found.
type NodeHang struct {
	Job     cluster.JobID `json:"job"`
	Attempt int           `json:"attempt"`
	Text    string        `json:"text"`
	Host    string        `json:"host,omitempty"` // the address of the node that is behind; "": not one alone
}

// ProgressRequest is how far a job has come.
type ProgressRequest struct {
	Job  cluster.JobID `json:"job"`
	Step int64         `json:"step"`
	Of   int64         `json:"of,omitempty"`   // how many steps there will be; 0: unknown
	Loss *float64      `json:"loss,omitempty"` // nil: not told
}

// Progress is how far a job has come, as it has told a node.
type Progress struct {
	Step int64    `json:"step"`
	Of   int64    `json:"of,omitempty"`
	Loss *float64 `json:"loss,omitempty"`
	At   int64    `json:"at"`             // when it was told last, Unix seconds
	Pace float64  `json:"pace,omitempty"` // median time between reports, seconds; 0: too few are known
}

// Later returns the report that was made last of p and o, each of which may be nil.
func (p *Progress) Later(o *Progress) *Progress {
	if p == nil || o != nil && o.At > p.At {
		return o
	}
	return p
}

// ShowStacks reads where the processes of a job are in the kernel, on one of its nodes.
var ShowStacks = Endpoint[StackQuery, StackAnswer]{"POST", "/v1/steps/stacks", User, false, 0}

// StackQuery names a job, and one of its nodes; "": the first.
type StackQuery struct {
	Job  cluster.JobID    `json:"job"`
	Node cluster.NodeName `json:"node,omitempty"`
}

// StackAnswer has a few lines for each process. More: how many there are beside those. Traced: how many of them a
// debugger has stopped.
type StackAnswer struct {
	Text   string `json:"text"`
	More   int    `json:"more,omitempty"`
	Traced int    `json:"traced,omitempty"`
}
