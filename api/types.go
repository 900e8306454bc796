package api

import (
	"time"

	"dev.muster/cluster"
)

// Empty is a request or response without content.
type Empty struct{}

// The contract. Every row is served by server mode but for those under "steps", which the
// client of the job's first node serves.
var (
	SubmitJob = Endpoint[SubmitRequest, SubmitResponse]{"POST", "/v1/jobs/submit", User, true, 0}
	TestJob   = Endpoint[SubmitRequest, TestResponse]{"POST", "/v1/jobs/test", User, false, 0}
	SubmitHet = Endpoint[HetRequest, SubmitResponse]{"POST", "/v1/jobs/submit-het", User, true, 0}
	TestHet   = Endpoint[HetRequest, TestResponse]{"POST", "/v1/jobs/test-het", User, false, 0}
	ListJobs  = Endpoint[JobQuery, JobsResponse]{"GET", "/v1/jobs", User, false, 0}
	WaitJob   = Endpoint[WaitRequest, WaitResponse]{"GET", "/v1/jobs/wait", User, false, 0}
	WhyJob    = Endpoint[WhyRequest, WhyResponse]{"GET", "/v1/jobs/why", User, false, 0}
	CancelJob = Endpoint[cluster.Cancel, WriteResponse]{
		"POST", "/v1/jobs/cancel", User, true, Named | ForOperators}
	FinishJob = Endpoint[cluster.Finish, WriteResponse]{"POST", "/v1/jobs/finish", User, true, 0}
	HoldJob   = Endpoint[cluster.HoldJobs, WriteResponse]{
		"POST", "/v1/jobs/hold", User, true, Named | ForOperators}
	RequeueJob = Endpoint[cluster.Requeue, WriteResponse]{
		"POST", "/v1/jobs/requeue", User, true, Named | ForOperators}
	SuspendJob = Endpoint[cluster.Suspend, WriteResponse]{"POST", "/v1/jobs/suspend", User, true, ForOperators}
	UpdateJob  = Endpoint[cluster.UpdateJob, WriteResponse]{
		"POST", "/v1/jobs/update", User, true, Named | ForOperators}
	JobScript   = Endpoint[ScriptRequest, ScriptResponse]{"GET", "/v1/jobs/script", User, false, 0}
	ListNodes   = Endpoint[NodeQuery, NodesResponse]{"GET", "/v1/nodes", User, false, 0}
	ShowCluster = Endpoint[Empty, ClusterResponse]{"GET", "/v1/cluster", User, false, 0}
	SetNodes    = Endpoint[cluster.NodeSet, WriteResponse]{
		"POST", "/v1/nodes/set", User, true, Named | ForAdministrators | ForNodeRoot}
	CreateNodes = Endpoint[cluster.NodeCreate, WriteResponse]{
		"POST", "/v1/nodes/create", User, true, ForAdministrators}
	DeleteNodes = Endpoint[cluster.NodeDelete, WriteResponse]{
		"POST", "/v1/nodes/delete", User, true, Named | ForAdministrators}
	RebootNodes = Endpoint[cluster.NodeReboot, WriteResponse]{
		"POST", "/v1/nodes/reboot", User, true, Named | ForAdministrators}
	Reconfigure = Endpoint[Empty, ReconfigureResponse]{
		"POST", "/v1/reconfigure", User, true, Named | ForAdministrators}
	PutReservation = Endpoint[cluster.ReservationPut, ReservationResponse]{
		"POST", "/v1/reservations/put", User, true, ForOperators}
	DropReservation = Endpoint[cluster.ReservationDrop, WriteResponse]{
		"POST", "/v1/reservations/drop", User, true, ForOperators}
	ListReservations = Endpoint[ReservationQuery, ReservationsResponse]{"GET", "/v1/reservations", User, false, 0}
	RecordBurnin     = Endpoint[cluster.BurninDone, WriteResponse]{
		"POST", "/v1/burnins/record", User, true, ForNodeRoot}
	ListBurnins  = Endpoint[BurninQuery, BurninsResponse]{"GET", "/v1/burnins", User, false, 0}
	SetPartition = Endpoint[cluster.PartitionSet, WriteResponse]{
		"POST", "/v1/partitions/set", User, true, Named | ForAdministrators}
	Configure      = Endpoint[cluster.Configure, ReconfigureResponse]{"POST", "/v1/configure", User, true, 0}
	ShowConfig     = Endpoint[ConfigQuery, ConfigResponse]{"GET", "/v1/config", User, true, 0}
	ListSteps      = Endpoint[StepQuery, StepsResponse]{"GET", "/v1/steps", User, false, 0}
	ListHistory    = Endpoint[HistoryQuery, HistoryResponse]{"GET", "/v1/history", User, false, 0}
	ListChanges    = Endpoint[ChangesQuery, ChangesResponse]{"GET", "/v1/accounts/changes", User, false, 0}
	ArchiveHistory = Endpoint[cluster.Retain, WriteResponse]{
		"POST", "/v1/history/archive", User, true, Named | ForDeputies}
	LoadHistory = Endpoint[cluster.LoadHistory, WriteResponse]{
		"POST", "/v1/history/load", User, true, Named | ForDeputies}
	ImportHistory = Endpoint[cluster.ImportHistory, WriteResponse]{
		"POST", "/v1/history/import", User, true, Named | ForOperators}
	ListImports = Endpoint[AfterQuery, ImportsResponse]{"GET", "/v1/history/imports", User, true, 0}
	AmendJobs   = Endpoint[cluster.AmendJobs, WriteResponse]{
		"POST", "/v1/history/amend", User, true, Named | ForDeputies}
	AskHistory     = Endpoint[SQLRequest, SQLResponse]{"POST", "/v1/history/sql", User, false, 0}
	ShowStats      = Endpoint[StatsRequest, StatsResponse]{"GET", "/v1/stats", User, true, 0}
	ShowUsage      = Endpoint[UsageRequest, UsageResponse]{"GET", "/v1/usage", User, false, 0}
	WatchEvents    = Endpoint[EventQuery, Event]{"GET", "/v1/events", User, false, 0} // a stream of lines
	Ping           = Endpoint[Empty, PingResponse]{"GET", "/v1/ping", User, false, 0}
	TopJobs        = Endpoint[cluster.TopJobs, WriteResponse]{"POST", "/v1/jobs/top", User, true, ForOperators}
	ListBooks      = Endpoint[AfterQuery, BooksResponse]{"GET", "/v1/accounts", User, false, 0}
	ChangeAccounts = Endpoint[cluster.ChangeAccounts, WriteResponse]{
		"POST", "/v1/accounts/change", User, true, Named | ForDeputies}
	ListPriorities = Endpoint[AfterQuery, PrioritiesResponse]{"GET", "/v1/priorities", User, false, 0}

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
	// CreatePorts is CreateStep of what StartPorts starts.
	CreatePorts = Endpoint[StepRequest, StepResponse]{"POST", "/v1/steps/create-ports", User, false, 0}
	// DescribeStep tells which tasks of a living step run where.
	DescribeStep = Endpoint[StepWait, StepResponse]{"POST", "/v1/steps/describe", User, false, 0}
	SignalStep   = Endpoint[StepSignal, Empty]{"POST", "/v1/steps/signal", User, false, 0}
	UpdateStep   = Endpoint[StepUpdate, Empty]{"POST", "/v1/steps/update", User, false, 0}
	WaitStep     = Endpoint[StepWait, Empty]{"POST", "/v1/steps/wait", User, false, 0}
	// MeasureSteps measures what the job's living steps use now.
	MeasureSteps = Endpoint[MeasureRequest, MeasureResponse]{"POST", "/v1/steps/measure", User, false, 0}
	// HearJob waits for what a job is told, for its salloc.
	HearJob = Endpoint[HearRequest, HearResponse]{"POST", "/v1/steps/hear", User, false, 0}
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

// SaveCluster is the tunnel that carries a saved cluster (agent/server/archive.go).
const SaveCluster = "/v1/save"

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

// ConfigQuery asks for the active configuration, or for one of its history.
type ConfigQuery struct {
	At *int `json:"at,omitempty"` // its number; nil: the active one
}

// ConfigResponse is a configuration, and the changes that are remembered, the oldest first, without what was before
// them.
type ConfigResponse struct {
	Config  *cluster.Config        `json:"config"`
	Changes []cluster.ConfigChange `json:"changes,omitempty"`
}

// AfterQuery asks for all there is, once an index is applied.
type AfterQuery struct {
	After uint64 `json:"after,omitempty"`
}

// ImportsResponse is how far the histories of Slurm clusters are taken.
type ImportsResponse struct {
	Index   uint64            `json:"index"`
	Cluster string            `json:"cluster"` // this one's name
	Imports []*cluster.Import `json:"imports,omitempty"`
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
	// Enforce says what of the books binds jobs; nil: a server of an older version, which does not say.
	Enforce *cluster.Enforce `json:"enforce,omitempty"`
	// RunMins is what runs: resources times the minutes to the jobs' limits.
	RunMins map[cluster.AssocID][]cluster.Amount `json:"run_mins,omitempty"`
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
	// Behind is how many entries of the log it lacked when it last answered the server that tells.
	Behind uint64 `json:"behind,omitempty"`
	// Level is that of the log which it knows, as far as it has said so lately (ListMembers).
	Level int `json:"level,omitempty"`
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
	Job  cluster.JobID    `json:"job,omitempty"` // whose script or environment it is; 0: the client is older
}

// BlobResponse is the text.
type BlobResponse struct {
	Text cluster.BlobText `json:"text"`
}
