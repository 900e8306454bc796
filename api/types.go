package api

import (
	"time"

	"dev.muster/cluster"
)

// Empty is a request or response without content.
type Empty struct{}

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

// ConfigQuery asks for the configuration in force, or for one of its history.
type ConfigQuery struct {
	At *int `json:"at,omitempty"` // its number; nil: the one in force
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
