package api

import (
	"time"

	"dev.muster/cluster"
)

// AdoptSession puts a process of a session into the newest job of its user on this node. Answered by the node's own
// client, to its root only.
var AdoptSession = Endpoint[AdoptRequest, AdoptResponse]{"POST", "/v1/sessions/adopt", User, false, 0}

// AdoptRequest names a process that somebody else than muster has started.
type AdoptRequest struct {
	User string `json:"user"`
	PID  int    `json:"pid"`
	Only bool   `json:"only,omitempty"` // refuse if the user has several jobs here
}

// AdoptResponse is which job the process belongs to now.
type AdoptResponse struct {
	Job cluster.JobID `json:"job"`
}

// ListProcesses lists the processes of steps on this machine, those of the caller's own jobs; answered by the
// machine's own client.
var ListProcesses = Endpoint[ProcessQuery, ProcessesResponse]{"GET", "/v1/sessions/processes", User, false, 0}

// ProcessQuery selects processes of steps; what is zero selects nothing.
type ProcessQuery struct {
	Job  cluster.JobID    `json:"job,omitempty"`
	Node cluster.NodeName `json:"node,omitempty"` // a hollow one, or this machine's
	PID  int              `json:"pid,omitempty"`
}

// ProcessesResponse has the processes, those of one step one after the other, and the nodes that this machine is.
type ProcessesResponse struct {
	Nodes     []cluster.NodeName `json:"nodes"`
	Processes []StepProcess      `json:"processes"`
	// Job is that of the process that was asked for.
	Job *cluster.Job `json:"job,omitempty"`
	Now time.Time    `json:"now"`
}

// StepProcess is one process of a step. Task is its place among the step's tasks on the node, -1 if a task has
// started it.
type StepProcess struct {
	ID   cluster.StepID   `json:"id"`
	Node cluster.NodeName `json:"node"`
	PID  int              `json:"pid"`
	Task int              `json:"task"`
	Rank int              `json:"rank"`
}

// AttachStep is the tunnel that carries a step's frames to srun.
const AttachStep = "/v1/steps/attach"

// WatchStep is the tunnel that carries the frames of a step to who looks on beside its srun. A daemon of
// before it would take that one's end for srun's.
const WatchStep = "/v1/steps/watch"

// StepQuery selects live steps.
type StepQuery struct {
	Job   cluster.JobID `json:"job,omitempty"`
	Users []uint32      `json:"users,omitempty"`
	// Listed leaves out the steps of jobs that lists leave out, as in JobQuery.
	Listed bool   `json:"listed,omitempty"`
	After  uint64 `json:"after,omitempty"`
}

// StepsResponse lists live steps with their jobs.
type StepsResponse struct {
	Now   time.Time       `json:"now"`
	Steps []*cluster.Step `json:"steps"`
	Jobs  []*cluster.Job  `json:"jobs"`
}

// StepRequest asks the job's first node to start a step. It answers when the step is placed
// and launched, or at once with a busy error if it cannot be now and NoWait is set.
type StepRequest struct {
	Job    cluster.JobID    `json:"job"`
	Spec   cluster.StepSpec `json:"spec"`
	NoWait bool             `json:"no_wait,omitempty"`
	// Key is the caller's own name of this request: made again with the same key, after an answer was
	// lost, it answers with the step that was created then.
	Key string `json:"key,omitempty"`
	// Plan places the step and starts nothing; with Keep a heterogeneous job's leader keeps its number.
	Plan bool `json:"plan,omitempty"`
	Keep bool `json:"keep,omitempty"`
}

// StepResponse describes the step that runs.
type StepResponse struct {
	Step     cluster.Step         `json:"step"`
	Nodes    []StepNode           `json:"nodes"`
	Defaults cluster.SrunDefaults `json:"defaults,omitzero"`
	// KillWait is how long its tasks may go on after TERM when it is ended.
	KillWait time.Duration `json:"kill_wait,omitempty"`
	// Again: the job has spares, with which srun starts the step again when one replaces a node.
	Again bool `json:"again,omitempty"`
}

// StepNode is one node's part in a step: which ranks run there.
type StepNode struct {
	Node  cluster.NodeName `json:"node"`
	Ranks []int            `json:"ranks"`
}

// StepUpdate changes the time limit of a step, or of all live steps of a job.
type StepUpdate struct {
	ID    cluster.StepID `json:"id"` // with Step AllSteps all of them
	Limit time.Duration  `json:"limit"`
	Delta bool           `json:"delta,omitempty"` // Limit is added to the limit that there is
}

// StepSignal sends a signal to a step's tasks. Kill ends it with SIGKILL everywhere, Term with
// SIGTERM first.
type StepSignal struct {
	ID   cluster.StepID `json:"id"`
	Sig  int            `json:"sig"`
	Kill bool           `json:"kill,omitempty"`
	Term bool           `json:"term,omitempty"`
	Gone bool           `json:"gone,omitempty"` // its srun has died: it is killed, if it is not over
}

// StepWait waits until what a step had of its job is free again; a step that is gone has nothing.
type StepWait struct {
	ID      cluster.StepID `json:"id"`
	Timeout time.Duration  `json:"timeout"` // at most; no error
}

// MeasureRequest asks what the living steps of a job have used so far: all of them, or one.
type MeasureRequest struct {
	Job  cluster.JobID `json:"job"`
	Step int           `json:"step"` // or cluster.AllSteps
}

// LedQuery names a job that the caller's node has led, or that Node, which is the caller's, took part in; and a step
// of it.
type LedQuery struct {
	Job  cluster.JobID    `json:"job"`
	Node cluster.NodeName `json:"node,omitempty"`
	Step *int             `json:"step,omitempty"`
}

// LedResponse is that job, running or ended, and the step.
type LedResponse struct {
	Job  *cluster.Job  `json:"job"`
	Step *cluster.Step `json:"step,omitempty"`
}

// HearRequest asks, for the salloc of a job, for what the job is told; it waits half a minute for that.
type HearRequest struct {
	Job cluster.JobID `json:"job"`
}

// HearResponse is what the job was told since it was last asked; nothing, after a while.
type HearResponse struct {
	Texts []string `json:"texts,omitempty"`
}

// NotifyRequest is a line for the errors of a job: of its script, of its salloc, or of the sruns of its steps.
type NotifyRequest struct {
	Job  cluster.JobID `json:"job"`
	Text string        `json:"text"`
}

// TailRequest asks for the end of the output of a batch job that runs or has ended, or of a task of a step, or for
// 64 KiB from an offset.
type TailRequest struct {
	Job    cluster.JobID `json:"job"`
	Errors bool          `json:"errors,omitempty"` // what it writes as errors
	From   *int64        `json:"from,omitempty"`   // offset; one beyond the end is 0: the file was begun again
	Hold   bool          `json:"hold,omitempty"`   // if there is nothing, wait some seconds for more
	Raw    bool          `json:"raw,omitempty"`    // Bytes instead of Text
	// Of a step: which one, which task, and the node that is to read the file; empty: the job's first.
	Step *int             `json:"step,omitempty"`
	Task int              `json:"task,omitempty"`
	Node cluster.NodeName `json:"node,omitempty"`
}

// TailResponse is a part of a file, 64 KiB at most, and where it begins and ends. Nodes of before say only the text.
type TailResponse struct {
	File  string `json:"file"`
	Text  string `json:"text"`
	Bytes []byte `json:"bytes,omitempty"`
	Cut   bool   `json:"cut,omitempty"` // there is more before it
	Start int64  `json:"start,omitempty"`
	End   int64  `json:"end,omitempty"`
}

// MeasureResponse has the steps with their usage, in the order of their numbers, and those nodes that could not be
// asked.
type MeasureResponse struct {
	Steps   []StepUsage   `json:"steps"`
	Missing []MissingNode `json:"missing,omitempty"`
	// Progress is how far the job says that it has come; nil: it says nothing.
	Progress *Progress `json:"progress,omitempty"`
}

// StepUsage is a living step, its record with what it has used so far, and its processes on each of its nodes.
type StepUsage struct {
	Step cluster.Step               `json:"step"`
	PIDs map[cluster.NodeName][]int `json:"pids,omitempty"`
}

// MissingNode is a node that gave no answer, and why.
type MissingNode struct {
	Node cluster.NodeName `json:"node"`
	Why  string           `json:"why"`
}

// AttachRequest opens the stream of one node's part of a step (package api/stream).
type AttachRequest struct {
	ID   cluster.StepID   `json:"id"`
	Node cluster.NodeName `json:"node"`
}
