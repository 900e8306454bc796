package api

import (
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Empty is a request or response without content.
type Empty struct{}

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

// AdoptSession puts a process of a session into the newest job of its user on this node. Answered by the node's own client, to
// its root only.
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

// ShowCrontab and PutCrontab are a user's crontab.
var (
	ShowCrontab = Endpoint[CrontabQuery, CrontabResponse]{"GET", "/v1/crontab", User, true, Named | ForOperators}
	PutCrontab  = Endpoint[CrontabRequest, CrontabResponse]{"POST", "/v1/crontab/put", User, true, 0}
)

// CrontabQuery names a user.
type CrontabQuery struct {
	UID uint32 `json:"uid"`
}

// CrontabRequest replaces a crontab; without a text it is taken away.
type CrontabRequest struct {
	UID  uint32           `json:"uid"`
	Text cluster.BlobText `json:"text"`
	Jobs []CrontabJob     `json:"jobs,omitempty"`
}

// CrontabJob is a job of a crontab, with the lines that it is.
type CrontabJob struct {
	Submit SubmitRequest `json:"submit"`
	First  int           `json:"first"`
	Last   int           `json:"last"`
}

// CrontabResponse is a crontab. Text is empty if there is none.
type CrontabResponse struct {
	Text cluster.BlobText `json:"text,omitempty"`
	Jobs []cluster.JobID  `json:"jobs,omitempty"`
}

// SetLogLevel has the server that leads log more or less, until it is started again.
var SetLogLevel = Endpoint[LogLevelRequest, Empty]{
	"POST", "/v1/servers/log-level", User, true, Named | ForAdministrators}

// LogLevelRequest is debug, info, warn or error.
type LogLevelRequest struct {
	Level string `json:"level"`
}

// CopyHistory is the tunnel over which a server fetches the whole history from another one: its length
// as eight bytes, the most significant first, and the file.
const CopyHistory = "/v1/history/copy"

// SaveCluster is the tunnel that carries a saved cluster (agent/server/archive.go).
const SaveCluster = "/v1/save"

// AttachStep is the tunnel that carries a step's frames to srun.
const AttachStep = "/v1/steps/attach"

// WatchStep is the tunnel that carries the frames of a step to who looks on beside its srun. A daemon of
// before it would take that one's end for srun's.
const WatchStep = "/v1/steps/watch"

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
	// Ignored names what was asked for that the site does not allow, by the JSON names of the spec: core_spec, thread_spec.
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
	// Others are further records that were asked for and wait, each for reasons of its own: the first tasks; More: and how many after them.
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

// NodeQuery selects nodes; empty means all.
type NodeQuery struct {
	Names []cluster.NodeName `json:"names,omitempty"`
	After uint64             `json:"after,omitempty"`
}

// NodeInfo is a node and what is given out on it.
type NodeInfo struct {
	cluster.Node
	Load   cluster.Load `json:"load"`
	Ending bool         `json:"ending,omitempty"` // some job there is ending (COMPLETING)
	// Reserved says that a reservation has it now, and Maint that one for maintenance has.
	Reserved bool `json:"reserved,omitempty"`
	Maint    bool `json:"maint,omitempty"`
	// Misplaced says how topology.conf contradicts what the node found.
	Misplaced string `json:"misplaced,omitempty"`
}

// ReservationResponse names a reservation that was made or changed.
type ReservationResponse struct {
	Name  string `json:"name"`
	Index uint64 `json:"index"`
}

// BurninQuery asks for tested parts: of nodes, by ids or by serial numbers; of all if none is named.
type BurninQuery struct {
	Names []string `json:"names,omitempty"`
	After uint64   `json:"after,omitempty"`
}

// BurninsResponse lists parts by id.
type BurninsResponse struct {
	Index uint64                `json:"index"`
	Parts []*cluster.TestedPart `json:"parts"`
}

// ReservationQuery asks for reservations as they are after an entry of the log.
type ReservationQuery struct {
	After uint64 `json:"after,omitempty"`
}

// ReservationsResponse lists reservations by name, with the nodes that they have now.
type ReservationsResponse struct {
	Index        uint64                `json:"index"`
	Now          time.Time             `json:"now"`
	Reservations []cluster.Reservation `json:"reservations"`
	Cores        []int                 `json:"cores"` // of each reservation, together
	CPUs         []int                 `json:"cpus"`
	// CoreIDs are what reservations of cores have of each of their nodes, by name.
	CoreIDs map[string][]cluster.IDSet `json:"core_ids,omitempty"`
}

// NodesResponse lists nodes in their order.
type NodesResponse struct {
	Index      uint64              `json:"index"`
	Now        time.Time           `json:"now"`
	Nodes      []NodeInfo          `json:"nodes"`
	Partitions []cluster.Partition `json:"partitions"`
	Missing    []cluster.NodeName  `json:"missing,omitempty"`
}

// ClusterResponse is the configuration and the servers.
type ClusterResponse struct {
	Config  cluster.Config `json:"config"`
	Servers []Server       `json:"servers"`
	Version string         `json:"version"`
	Booted  time.Time      `json:"booted"`
	Now     time.Time      `json:"now"`
	NextJob cluster.JobID  `json:"next_job"`
	// LicensesUsed counts by name what live jobs hold.
	LicensesUsed map[string]int `json:"licenses_used,omitempty"`
	// LicensesReserved counts by name what reservations have now.
	LicensesReserved map[string]int `json:"licenses_reserved,omitempty"`
	// Restored says what nodes know otherwise than the file from which the cluster was brought back, if it was.
	Restored *cluster.Restored `json:"restored,omitempty"`
}

// ReconfigureResponse tells what of a configuration that was read again is not as the file says.
type ReconfigureResponse struct {
	Index uint64   `json:"index"`
	Notes []string `json:"notes,omitempty"`
}

// ConfigQuery asks for the configuration in force, or for one of its history.
type ConfigQuery struct {
	At *int `json:"at,omitempty"` // its number; nil: the one in force
}

// ConfigResponse is a configuration, and the changes that are remembered, the oldest first, without what was before them.
type ConfigResponse struct {
	Config  *cluster.Config        `json:"config"`
	Changes []cluster.ConfigChange `json:"changes,omitempty"`
}

// AfterQuery asks for all there is, once an index is applied.
type AfterQuery struct {
	After uint64 `json:"after,omitempty"`
}

// BooksResponse is the accounts and what belongs to them.
type BooksResponse struct {
	Index    uint64                 `json:"index"`
	Cluster  string                 `json:"cluster"`
	Accounts []*cluster.Account     `json:"accounts"`
	Users    []*cluster.User        `json:"users"`
	Assocs   []*cluster.Association `json:"assocs"` // by rising number
	QOS      []*cluster.QOS         `json:"qos"`    // by rising number
	TRES     []string               `json:"tres,omitempty"`
	// TrackWCKey says that jobs have one of their user's keys.
	TrackWCKey bool `json:"track_wckey,omitempty"`
	// Priority says how standings are computed.
	Priority cluster.PriorityConfig `json:"priority,omitzero"`
	// RunMins is what runs: resources times the minutes to the jobs' limits.
	RunMins map[cluster.AssocID][]cluster.Amount `json:"run_mins,omitempty"`
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

// Server is one member of the server group.
type Server struct {
	Name   string `json:"name"`
	Addr   string `json:"addr"`
	Leader bool   `json:"leader"`
	Voter  bool   `json:"voter"`
	Up     bool   `json:"up,omitempty"` // it answers, as far as somebody has just asked (Ping)
	// Silent is since when it does not answer the server that tells; zero if it does.
	Silent time.Time `json:"silent,omitzero"`
	// Level is that of the log which it knows, as far as it has said so lately (ListMembers).
	Level int `json:"level,omitempty"`
}

// StepQuery selects live steps.
type StepQuery struct {
	Job   cluster.JobID `json:"job,omitempty"`
	Users []uint32      `json:"users,omitempty"`
	After uint64        `json:"after,omitempty"`
}

// StepsResponse lists live steps with their jobs.
type StepsResponse struct {
	Now   time.Time       `json:"now"`
	Steps []*cluster.Step `json:"steps"`
	Jobs  []*cluster.Job  `json:"jobs"`
}

// PingResponse says which servers there are, and how far the one that answers has come.
type PingResponse struct {
	Servers []Server `json:"servers"`
	Name    string   `json:"name"`
	Applied uint64   `json:"applied"` // index of the log
	// Heard is when the server last heard of the leader: its answers are that old.
	Heard time.Time `json:"heard"`
	Now   time.Time `json:"now"`
	// Partial says that the history of the past is still on its way to the server.
	Partial bool `json:"partial,omitempty"`
	// Revoked are the keys of members that were shut out lately.
	Revoked []string `json:"revoked,omitempty"`
	// Level is that of the log which the server knows (cluster.Newest).
	Level int `json:"level,omitempty"`
}

// BlobRequest asks for a stored text by hash.
type BlobRequest struct {
	Hash cluster.BlobHash `json:"hash"`
}

// BlobResponse is the text.
type BlobResponse struct {
	Text cluster.BlobText `json:"text"`
}

// StepRequest asks the job's first node to start a step. It answers when the step is placed
// and launched, or at once with a busy error if it can not be now and NoWait is set.
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

// LedQuery names a job.
type LedQuery struct {
	Job cluster.JobID `json:"job"`
}

// LedResponse is that job, running or ended.
type LedResponse struct {
	Job *cluster.Job `json:"job"`
}

// NotifyRequest is a line for the errors of a job: of its script, or of the sruns of its steps.
type NotifyRequest struct {
	Job  cluster.JobID `json:"job"`
	Text string        `json:"text"`
}

// TailRequest asks for the end of the output of a batch job that runs or has ended, or for 64 KiB from an offset.
type TailRequest struct {
	Job    cluster.JobID `json:"job"`
	Errors bool          `json:"errors,omitempty"` // what it writes as errors
	From   *int64        `json:"from,omitempty"`   // offset; one beyond the end is 0: the file was begun anew
	Hold   bool          `json:"hold,omitempty"`   // if there is nothing, wait some seconds for more
	Raw    bool          `json:"raw,omitempty"`    // Bytes instead of Text
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

// MeasureResponse has the steps with their usage, in the order of their numbers, and those nodes that could not be asked.
type MeasureResponse struct {
	Steps   []StepUsage   `json:"steps"`
	Missing []MissingNode `json:"missing,omitempty"`
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

// HistoryQuery selects ended and living jobs of the past.
type HistoryQuery struct {
	Refs       []cluster.Ref      `json:"refs,omitempty"`
	Users      []uint32           `json:"users,omitempty"`
	Accounts   []string           `json:"accounts,omitempty"`
	Partitions []string           `json:"partitions,omitempty"`
	Names      []string           `json:"names,omitempty"`
	QOS        []string           `json:"qos,omitempty"`
	Nodes      []cluster.NodeName `json:"nodes,omitempty"`
	States     []HistoryState     `json:"states,omitempty"`
	From       time.Time          `json:"from,omitzero"`
	To         time.Time          `json:"to,omitzero"`
	Duplicates bool               `json:"duplicates,omitempty"`
	Steps      bool               `json:"steps,omitempty"` // with the jobs' steps
	Brief      bool               `json:"brief,omitempty"` // without what only the full record shows, as of JobQuery
	cluster.HistoryFilter
	After uint64 `json:"after,omitempty"`
}

// ChangesQuery asks for the changes of the books in a time.
type ChangesQuery struct {
	Time cluster.Span `json:"time"`
}

// ChangesResponse lists them, oldest first.
type ChangesResponse struct {
	Changes []cluster.Transaction `json:"changes"`
}

// SQLRequest is a question in SQL about history, for operators.
type SQLRequest struct {
	Query string `json:"query,omitempty" text:"65536,lines"`
	// Tables asks for what there is to ask about instead: table, column and meaning.
	Tables bool `json:"tables,omitempty"`
}

// SQLResponse is the answer. A cell is JSON: a number, a text or null.
type SQLResponse struct {
	Columns []string            `json:"columns"`
	Rows    [][]wire.RawMessage `json:"rows"`
	// More says that there were more rows than one answer has.
	More bool `json:"more,omitempty"`
}

// HistoryState is a phase, for ended jobs with an outcome.
type HistoryState struct {
	Phase   cluster.Phase   `json:"phase"`
	Outcome cluster.Outcome `json:"outcome,omitempty"`
}

// HistoryResponse lists jobs in the order they entered history.
type HistoryResponse struct {
	Now     time.Time    `json:"now"`
	Records []JobHistory `json:"records"`
	Brief   bool         `json:"brief,omitempty"` // the jobs travel as brief ones
}

// AppendJSON writes the answer.
func (r *HistoryResponse) AppendJSON(b []byte) ([]byte, error) {
	type plain HistoryResponse
	if !r.Brief {
		return wire.Append(b, (*plain)(r))
	}
	return wire.Append(b, &struct {
		plain
		Records briefHistory `json:"records"`
	}{plain(*r), r.Records})
}

// briefHistory is written as briefJobs are.
type briefHistory []JobHistory

// AppendJSON writes a list of records of brief jobs.
func (l briefHistory) AppendJSON(b []byte) (_ []byte, err error) {
	brief := cluster.Job{Spec: &cluster.JobSpec{}}
	b = append(b, '[')
	for i, r := range l {
		if i > 0 {
			b = append(b, ',')
		}
		r.Job.Brief(&brief)
		if b, err = wire.Append(b, &JobHistory{Job: &brief, Steps: r.Steps}); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// JobHistory is one attempt of one job with its steps.
type JobHistory struct {
	Job   *cluster.Job    `json:"job"`
	Steps []*cluster.Step `json:"steps,omitempty"`
}
