package api

import (
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// SubmitRequest asks for a new job. Script and Env are stored by hash.
type SubmitRequest struct {
	Spec   cluster.JobSpec  `json:"spec"`
	Script cluster.BlobText `json:"script,omitempty"`
	Env    cluster.BlobText `json:"env,omitempty"`
	Key    string           `json:"key,omitempty"` // see cluster.Submit
	// Filtered says that the site's cli_filter.lua has seen the options: the hash of its text. NotByCommand: it is
	// not asked.
	Filtered cluster.BlobHash `json:"filtered,omitempty"`
	// Explain has TestJob say what the site's plugins change.
	Explain bool `json:"explain,omitempty"`
	// Moved is set by operators who move a job from another workload manager.
	Moved *cluster.Moved `json:"moved,omitempty"`
}

// NotByCommand is what those say in Filtered who are no commands with options.
const NotByCommand cluster.BlobHash = "none"

// HetRequest asks for a heterogeneous job; its first component has the script.
type HetRequest struct {
	Specs  []cluster.JobSpec `json:"specs"`
	Script cluster.BlobText  `json:"script,omitempty"`
	Env    cluster.BlobText  `json:"env,omitempty"`
	Key    string            `json:"key,omitempty"` // see cluster.Submit
	// Filtered is as in SubmitRequest.
	Filtered cluster.BlobHash `json:"filtered,omitempty"`
}

// SubmitResponse names the job.
type SubmitResponse struct {
	Job   cluster.JobID `json:"job"`
	Index uint64        `json:"index"`
	// Ignored names what was asked for that the site does not allow, by the JSON names of the spec: core_spec,
	// thread_spec.
	Ignored []string `json:"ignored,omitempty"`
	Said    []string `json:"said,omitempty"` // by the site's script
	// Accounts are those that there are, if the job's is none of them and was taken all the same.
	Accounts []string `json:"accounts,omitempty"`
}

// TestResponse says when and where a job would start (--test-only).
type TestResponse struct {
	StartsAt  time.Time          `json:"starts_at,omitzero"`
	Nodes     []cluster.NodeName `json:"nodes,omitempty"`
	CPUs      int                `json:"cpus"`
	Partition string             `json:"partition"`
	Job       cluster.JobID      `json:"job"`               // the id it would get
	Ignored   []string           `json:"ignored,omitempty"` // see SubmitResponse
	Said      []string           `json:"said,omitempty"`
	Changed   []FieldChange      `json:"changed,omitempty"` // of SubmitRequest.Explain
}

// FieldChange is a field of job_submit.lua's job_desc that was changed, each value as Lua has it: nil, "text", 4.
type FieldChange struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// WriteResponse answers every other command.
type WriteResponse struct {
	Index uint64          `json:"index"`
	Jobs  []cluster.JobID `json:"jobs,omitempty"`
	Said  []string        `json:"said,omitempty"` // see SubmitResponse
}

// JobQuery selects live jobs; every filter that is not empty must match.
type JobQuery struct {
	Refs       []cluster.Ref      `json:"refs,omitempty"`
	Users      []uint32           `json:"users,omitempty"`
	Accounts   []string           `json:"accounts,omitempty"`
	Partitions []string           `json:"partitions,omitempty"`
	Names      []string           `json:"names,omitempty"`
	QOS        []string           `json:"qos,omitempty"`
	Nodes      []cluster.NodeName `json:"nodes,omitempty"`
	Phases     []cluster.Phase    `json:"phases,omitempty"`
	Outcomes   []cluster.Outcome  `json:"outcomes,omitempty"` // with Phases: ended jobs must have one of these
	// Brief leaves out what only the full record shows (submit line, limits, groups).
	Brief bool `json:"brief,omitempty"`
	// Pages lets the answer end after FirstJobs jobs and name the id ranges of the rest, which can be
	// fetched side by side; From and To (both included) ask for one of them.
	Pages bool          `json:"pages,omitempty"`
	From  cluster.JobID `json:"from,omitempty"`
	To    cluster.JobID `json:"to,omitempty"`
	// Listed leaves out what hidden partitions alone have, but for operators. Refs show it all the same.
	Listed bool `json:"listed,omitempty"`
	// Starts foretells also the starts that the scheduler has not planned.
	Starts bool `json:"starts,omitempty"`
	// After waits until this index is applied (read your writes).
	After uint64 `json:"after,omitempty"`
}

// JobsResponse lists jobs by rising id.
type JobsResponse struct {
	Index   uint64         `json:"index"`
	Now     time.Time      `json:"now"`
	Jobs    []*cluster.Job `json:"jobs"`
	Missing []cluster.Ref  `json:"missing,omitempty"` // asked for, not there
	Rest    []JobRange     `json:"rest,omitempty"`    // what is still to be fetched
	Brief   bool           `json:"brief,omitempty"`   // the jobs travel as brief ones
	Federal bool           `json:"federal,omitempty"` // the site shows the whole federation (fed_display)
}

// AppendJSON writes the answer.
func (r *JobsResponse) AppendJSON(b []byte) ([]byte, error) {
	type plain JobsResponse
	if !r.Brief {
		return wire.Append(b, (*plain)(r))
	}
	return wire.Append(b, &struct {
		plain
		Jobs briefJobs `json:"jobs"`
	}{plain(*r), r.Jobs})
}

// briefJobs are written one after the other from one place in memory: copies of all would be 20 MB
// of garbage for a list of 10,000.
type briefJobs []*cluster.Job

// AppendJSON writes a list of brief jobs.
func (l briefJobs) AppendJSON(b []byte) (_ []byte, err error) {
	brief := cluster.Job{Spec: &cluster.JobSpec{}}
	b = append(b, '[')
	for i, j := range l {
		if i > 0 {
			b = append(b, ',')
		}
		j.Brief(&brief)
		if b, err = wire.Append(b, &brief); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// FirstJobs and PageJobs are the sizes of the first page of jobs and of the others.
const (
	FirstJobs = 500
	PageJobs  = 2000
)

// JobRange is a range of job ids, both ends included.
type JobRange struct {
	From cluster.JobID `json:"from"`
	To   cluster.JobID `json:"to"`
}

// WaitRequest waits for a job to reach a phase (or any later one), at most Timeout.
type WaitRequest struct {
	Job     cluster.JobID `json:"job"`
	Array   bool          `json:"array,omitempty"` // all tasks of an array
	Phase   cluster.Phase `json:"phase"`
	Timeout time.Duration `json:"timeout,omitempty"`
	After   uint64        `json:"after,omitempty"` // wait until this index is applied first
}

// WaitResponse is the job (or the array's records, some of many and that with the worst exit code) as it is then;
// Reached is false after a timeout.
type WaitResponse struct {
	Reached bool           `json:"reached"`
	Jobs    []*cluster.Job `json:"jobs"`
	// Gone sums up tasks of an array that have ended and are not among Jobs any more.
	Gone *cluster.GoneTasks `json:"gone,omitempty"`
}

// WhyRequest asks why a job, some tasks of an array or a component of a heterogeneous job wait.
type WhyRequest struct {
	cluster.Ref
}

// WhyResponse lists every cause with numbers, most decisive first.
type WhyResponse struct {
	Job      *cluster.Job       `json:"job"`
	Causes   []Cause            `json:"causes"`
	StartsAt time.Time          `json:"starts_at,omitzero"`
	Nodes    []cluster.NodeName `json:"nodes,omitempty"`
	// Holders are the jobs that hold what it is to get there, the last to be over last.
	Holders []Holder `json:"holders,omitempty"`
	// Changes are single changes with which it would start sooner, soonest first.
	Changes []Change `json:"changes,omitempty"`
	// Notes tell of limits of its account and QOS that hold nothing back.
	Notes []string `json:"notes,omitempty"`
	// Others are further records that were asked for and wait, each for reasons of its own: the first tasks; More:
	// and how many after them.
	Others []*cluster.Job `json:"others,omitempty"`
	More   int            `json:"more,omitempty"`
	// Progress is how far the job says that it has come; nil: it says nothing.
	Progress *Progress `json:"progress,omitempty"`
}

// Holder is a job that holds some of what another one is to get.
type Holder struct {
	Job   *cluster.Job       `json:"job,omitempty"` // nil: the caller may not see it
	Nodes []cluster.NodeName `json:"nodes"`
	From  time.Time          `json:"from,omitzero"` // of a planned start; zero: it has them now
	Until time.Time          `json:"until"`         // at most
	// Endless: the job has no time limit, so Until is a guess, and nothing can be planned behind it.
	Endless bool `json:"endless,omitempty"`
}

// Change is a change of a job, in words and where there is one as a command, and when the job would start with it.
type Change struct {
	Change   string             `json:"change"`
	Hint     string             `json:"hint,omitempty"`
	StartsAt time.Time          `json:"starts_at"`
	Now      bool               `json:"now,omitempty"` // with the next cycle
	Nodes    []cluster.NodeName `json:"nodes,omitempty"`
}

// Cause is one cause of waiting.
type Cause struct {
	Reason cluster.Reason `json:"reason"`
	Text   string         `json:"text"`
	Hint   string         `json:"hint,omitempty"`
}

// ScriptRequest asks for a job's script, or for its environment.
type ScriptRequest struct {
	Job cluster.JobID `json:"job"`
	Env bool          `json:"env,omitempty"`
}

// ScriptResponse is the script as stored, or the environment, each variable with a NUL behind.
type ScriptResponse struct {
	Script cluster.BlobText `json:"script"`
}

// PrioritiesResponse lists what the priorities of pending jobs are made of, by rising id.
type PrioritiesResponse struct {
	Priority    cluster.PriorityConfig `json:"priority,omitzero"`
	TRESWeights string                 `json:"tres_weights,omitempty"` // as configured
	Jobs        []JobPriority          `json:"jobs"`
	Federal     bool                   `json:"federal,omitempty"` // as of JobsResponse
}

// JobPriority is one pending job in one of its partitions, as it was last ranked.
type JobPriority struct {
	Job       *cluster.Job    `json:"job"` // a brief one
	Partition string          `json:"partition"`
	Factors   cluster.Factors `json:"factors"` // before they are weighed
	Sum       uint32          `json:"sum"`
}
