package api

import (
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// The contract. Every row is served by server mode but for those under "steps", which the
// client of the job's first node serves.
var (
	SubmitJob        = Endpoint[SubmitRequest, SubmitResponse]{"POST", "/v1/jobs/submit", User, true, 0}
	TestJob          = Endpoint[SubmitRequest, TestResponse]{"POST", "/v1/jobs/test", User, false, 0}
	SubmitHet        = Endpoint[HetRequest, SubmitResponse]{"POST", "/v1/jobs/submit-het", User, true, 0}
	TestHet          = Endpoint[HetRequest, TestResponse]{"POST", "/v1/jobs/test-het", User, false, 0}
	ListJobs         = Endpoint[JobQuery, JobsResponse]{"GET", "/v1/jobs", User, false, 0}
	WaitJob          = Endpoint[WaitRequest, WaitResponse]{"GET", "/v1/jobs/wait", User, false, 0}
	WhyJob           = Endpoint[WhyRequest, WhyResponse]{"GET", "/v1/jobs/why", User, false, 0}
	CancelJob        = Endpoint[cluster.Cancel, WriteResponse]{"POST", "/v1/jobs/cancel", User, true, Named | ForOperators}
	FinishJob        = Endpoint[cluster.Finish, WriteResponse]{"POST", "/v1/jobs/finish", User, true, 0}
	HoldJob          = Endpoint[cluster.HoldJobs, WriteResponse]{"POST", "/v1/jobs/hold", User, true, Named | ForOperators}
	RequeueJob       = Endpoint[cluster.Requeue, WriteResponse]{"POST", "/v1/jobs/requeue", User, true, Named | ForOperators}
	SuspendJob       = Endpoint[cluster.Suspend, WriteResponse]{"POST", "/v1/jobs/suspend", User, true, ForOperators}
	UpdateJob        = Endpoint[cluster.UpdateJob, WriteResponse]{"POST", "/v1/jobs/update", User, true, Named | ForOperators}
	JobScript        = Endpoint[ScriptRequest, ScriptResponse]{"GET", "/v1/jobs/script", User, false, 0}
	ListNodes        = Endpoint[NodeQuery, NodesResponse]{"GET", "/v1/nodes", User, false, 0}
	ShowCluster      = Endpoint[Empty, ClusterResponse]{"GET", "/v1/cluster", User, false, 0}
	SetNodes         = Endpoint[cluster.NodeSet, WriteResponse]{"POST", "/v1/nodes/set", User, true, Named | ForAdministrators | ForNodeRoot}
	CreateNodes      = Endpoint[cluster.NodeCreate, WriteResponse]{"POST", "/v1/nodes/create", User, true, ForAdministrators}
	DeleteNodes      = Endpoint[cluster.NodeDelete, WriteResponse]{"POST", "/v1/nodes/delete", User, true, Named | ForAdministrators}
	RebootNodes      = Endpoint[cluster.NodeReboot, WriteResponse]{"POST", "/v1/nodes/reboot", User, true, Named | ForAdministrators}
	Reconfigure      = Endpoint[Empty, ReconfigureResponse]{"POST", "/v1/reconfigure", User, true, Named | ForAdministrators}
	PutReservation   = Endpoint[cluster.ReservationPut, ReservationResponse]{"POST", "/v1/reservations/put", User, true, ForOperators}
	DropReservation  = Endpoint[cluster.ReservationDrop, WriteResponse]{"POST", "/v1/reservations/drop", User, true, ForOperators}
	ListReservations = Endpoint[ReservationQuery, ReservationsResponse]{"GET", "/v1/reservations", User, false, 0}
	RecordBurnin     = Endpoint[cluster.BurninDone, WriteResponse]{"POST", "/v1/burnins/record", User, true, ForNodeRoot}
	ListBurnins      = Endpoint[BurninQuery, BurninsResponse]{"GET", "/v1/burnins", User, false, 0}
	SetPartition     = Endpoint[cluster.PartitionSet, WriteResponse]{"POST", "/v1/partitions/set", User, true, Named | ForAdministrators}
	Configure        = Endpoint[cluster.Configure, ReconfigureResponse]{"POST", "/v1/configure", User, true, 0}
	ShowConfig       = Endpoint[ConfigQuery, ConfigResponse]{"GET", "/v1/config", User, true, 0}
	ListSteps        = Endpoint[StepQuery, StepsResponse]{"GET", "/v1/steps", User, false, 0}
	ListHistory      = Endpoint[HistoryQuery, HistoryResponse]{"GET", "/v1/history", User, false, 0}
	ListChanges      = Endpoint[ChangesQuery, ChangesResponse]{"GET", "/v1/accounts/changes", User, false, 0}
	ArchiveHistory   = Endpoint[cluster.Retain, WriteResponse]{"POST", "/v1/history/archive", User, true, Named | ForDeputies}
	LoadHistory      = Endpoint[cluster.LoadHistory, WriteResponse]{"POST", "/v1/history/load", User, true, Named | ForDeputies}
	AmendJobs        = Endpoint[cluster.AmendJobs, WriteResponse]{"POST", "/v1/history/amend", User, true, Named | ForDeputies}
	AskHistory       = Endpoint[SQLRequest, SQLResponse]{"POST", "/v1/history/sql", User, false, 0}
	ShowStats        = Endpoint[StatsRequest, StatsResponse]{"GET", "/v1/stats", User, true, 0}
	ShowUsage        = Endpoint[UsageRequest, UsageResponse]{"GET", "/v1/usage", User, false, 0}
	WatchEvents      = Endpoint[EventQuery, Event]{"GET", "/v1/events", User, false, 0} // a stream of lines
	Ping             = Endpoint[Empty, PingResponse]{"GET", "/v1/ping", User, false, 0}
	TopJobs          = Endpoint[cluster.TopJobs, WriteResponse]{"POST", "/v1/jobs/top", User, true, ForOperators}
	ListBooks        = Endpoint[AfterQuery, BooksResponse]{"GET", "/v1/accounts", User, false, 0}
	ChangeAccounts   = Endpoint[cluster.ChangeAccounts, WriteResponse]{"POST", "/v1/accounts/change", User, true, Named | ForDeputies}
	ListPriorities   = Endpoint[AfterQuery, PrioritiesResponse]{"GET", "/v1/priorities", User, false, 0}

	RegisterNodes = Endpoint[RegisterRequest, RegisterResponse]{"POST", "/v1/nodes/register", Node, true, 0}
	GetWork       = Endpoint[WorkRequest, Work]{"GET", "/v1/nodes/work", Node, true, 0}
	ReportWork    = Endpoint[ReportRequest, WriteResponse]{"POST", "/v1/nodes/report", Node, true, 0}
	// LedJob is the record of a job whose first node is, or was, one of the member's.
	LedJob  = Endpoint[LedQuery, LedResponse]{"GET", "/v1/nodes/led", Node, false, 0}
	GetBlob = Endpoint[BlobRequest, BlobResponse]{"GET", "/v1/blobs", Node, false, 0}

	// Members of the cluster. Join and Renew are for machines that have no valid certificate.
	Join         = Endpoint[JoinRequest, JoinResponse]{"POST", "/v1/join", Joiner, false, 0}
	Renew        = Endpoint[RenewRequest, RenewResponse]{"POST", "/v1/renew", Joiner, false, 0}
	AdmitMember  = Endpoint[cluster.MemberJoin, WriteResponse]{"POST", "/v1/members/admit", Peer, true, 0}
	ListMembers  = Endpoint[Empty, MembersResponse]{"GET", "/v1/members", User, false, 0}
	MayVouch     = Endpoint[VouchQuery, VouchAnswer]{"GET", "/v1/members/vouch", Node, false, 0}
	RevokeMember = Endpoint[cluster.MemberRevoke, WriteResponse]{"POST", "/v1/members/revoke", User, true, 0}
	// LeaveMember is a compute node's or login host's own farewell.
	LeaveMember  = Endpoint[Empty, WriteResponse]{"POST", "/v1/members/leave", Node, true, 0}
	AddServer    = Endpoint[ServerRequest, Empty]{"POST", "/v1/servers/add", Peer, true, 0}
	PingServer   = Endpoint[Empty, PingResponse]{"GET", "/v1/servers/ping", Node, false, 0}
	GossipKeys   = Endpoint[Empty, GossipResponse]{"GET", "/v1/gossip/keys", Node, false, 0}
	RemoveServer = Endpoint[ServerRequest, Empty]{"POST", "/v1/servers/remove", User, true, 0}
	TransferLead = Endpoint[ServerRequest, Empty]{"POST", "/v1/servers/transfer", User, true, 0}
	CreateToken  = Endpoint[TokenRequest, TokenResponse]{"POST", "/v1/tokens/create", User, true, 0}
	ListTokens   = Endpoint[Empty, TokensResponse]{"GET", "/v1/tokens", User, false, 0}
	RevokeToken  = Endpoint[cluster.TokenRevoke, WriteResponse]{"POST", "/v1/tokens/revoke", User, true, 0}

	// Steps: answered by the client of the job's first node.
	CreateStep = Endpoint[StepRequest, StepResponse]{"POST", "/v1/steps/create", User, false, 0}
	// CreateHelped is CreateStep of what StartHelped starts.
	CreateHelped = Endpoint[StepRequest, StepResponse]{"POST", "/v1/steps/create-helped", User, false, 0}
	// CreateCast is CreateStep of what StartCast starts.
	CreateCast = Endpoint[StepRequest, StepResponse]{"POST", "/v1/steps/create-cast", User, false, 0}
	// DescribeStep tells which tasks of a living step run where.
	DescribeStep = Endpoint[StepWait, StepResponse]{"POST", "/v1/steps/describe", User, false, 0}
	SignalStep   = Endpoint[StepSignal, Empty]{"POST", "/v1/steps/signal", User, false, 0}
	UpdateStep   = Endpoint[StepUpdate, Empty]{"POST", "/v1/steps/update", User, false, 0}
	WaitStep     = Endpoint[StepWait, Empty]{"POST", "/v1/steps/wait", User, false, 0}
	// MeasureSteps measures what the job's living steps use now.
	MeasureSteps = Endpoint[MeasureRequest, MeasureResponse]{"POST", "/v1/steps/measure", User, false, 0}
	// NotifyJob tells whoever reads the errors of a job.
	NotifyJob = Endpoint[NotifyRequest, Empty]{"POST", "/v1/steps/notify", User, false, 0}
	// TailOutput reads the end of what the job's script has written.
	TailOutput = Endpoint[TailRequest, TailResponse]{"POST", "/v1/steps/tail", User, false, 0}
)

// ShowCrontab and PutCrontab are a user's crontab.
var (
	ShowCrontab = Endpoint[CrontabQuery, CrontabResponse]{"GET", "/v1/crontab", User, true, Named | ForOperators}
	PutCrontab  = Endpoint[CrontabRequest, CrontabResponse]{"POST", "/v1/crontab/put", User, true, 0}
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

// WaitResponse is the job (or the array's records) as it is then; Reached is false after a timeout.
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
	// Others are further records that were asked for and wait, each for reasons of its own: the first tasks; More:
	// and how many after them.
	Others []*cluster.Job `json:"others,omitempty"`
	More   int            `json:"more,omitempty"`
}

// Holder is a job that holds some of what another one is to get.
type Holder struct {
	Job   *cluster.Job       `json:"job,omitempty"` // nil: the caller may not see it
	Nodes []cluster.NodeName `json:"nodes"`
	From  time.Time          `json:"from,omitzero"` // of a planned start; zero: it has them now
	Until time.Time          `json:"until"`         // at most
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
}

// JobPriority is one pending job in one of its partitions, as it was last ranked.
type JobPriority struct {
	Job       *cluster.Job    `json:"job"` // a brief one
	Partition string          `json:"partition"`
	Factors   cluster.Factors `json:"factors"` // before they are weighed
	Sum       uint32          `json:"sum"`
}
