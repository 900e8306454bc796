package api

import (
	"time"

	"dev.muster/cluster"
)

// UsageRequest asks for sums over history, as sreport shows them. The time is cut at the present.
type UsageRequest struct {
	cluster.UsageQuery
	// Utilization: where all of the cluster's time went; Reservations: those of the time, up to now; Ahead: also
	// those to come; NodeSpans how nodes were.
	Utilization  bool   `json:"utilization,omitempty"`
	Reservations bool   `json:"reservations,omitempty"`
	Ahead        bool   `json:"ahead,omitempty"`
	NodeSpans    bool   `json:"node_spans,omitempty"`
	After        uint64 `json:"after,omitempty"`
}

// UsageResponse are the sums, in order of account, user and wckey.
type UsageResponse struct {
	Now          time.Time             `json:"now"`
	Cluster      string                `json:"cluster"`
	Rows         []cluster.UsageRow    `json:"rows,omitempty"`
	Utilization  []cluster.Utilization `json:"utilization,omitempty"`
	Reservations []cluster.ResvSpan    `json:"reservations,omitempty"`
	Nodes        []cluster.NodeSpan    `json:"nodes,omitempty"`
	// KeptSince is the Unix second before which records of use are gone, 0 if none are; the sums begin there at the
	// earliest.
	KeptSince int64 `json:"kept_since,omitempty"`
	Lag       *Lag  `json:"lag,omitempty"` // nil: nothing is missing
}

// StatsRequest asks what the leader has done since it was started, or its counts were reset.
type StatsRequest struct {
	Reset bool `json:"reset,omitempty"` // by operators: count again
}

// StatsResponse are the leader's counts.
type StatsResponse struct {
	Now     time.Time   `json:"now"`
	Since   time.Time   `json:"since"`
	Threads int         `json:"threads"` // goroutines
	Pending int         `json:"pending"` // jobs
	Running int         `json:"running"`
	Jobs    JobCounts   `json:"jobs"`
	Cycles  CycleCounts `json:"cycles"`
	Calls   []CallCount `json:"calls"` // by endpoint, most first
	Users   []CallCount `json:"users"` // by who called, most first
}

// JobCounts are what jobs did.
type JobCounts struct {
	Submitted  int `json:"submitted"`
	Started    int `json:"started"`
	Completed  int `json:"completed"`
	Canceled   int `json:"canceled"`
	Failed     int `json:"failed"`
	Backfilled int `json:"backfilled"` // of those started
	// BackfilledHet are components of heterogeneous jobs among them.
	BackfilledHet int `json:"backfilledHet,omitempty"`
}

// CycleCounts are the passes of the scheduler: each looks at all of the queue that may matter and starts jobs behind
// others too, so that there is no backfill besides.
type CycleCounts struct {
	Count int           `json:"count"`
	Last  time.Duration `json:"last"`
	Max   time.Duration `json:"max"`
	Sum   time.Duration `json:"sum"`
	Queue int           `json:"queue"` // jobs that waited in the last one
	Depth int           `json:"depth"` // their sum over all
	At    time.Time     `json:"at,omitzero"`
}

// CallCount is how often something was called, and how long that took in all.
type CallCount struct {
	Name string        `json:"name,omitempty"`
	UID  uint32        `json:"uid"`
	N    int           `json:"n"`
	Time time.Duration `json:"time"`
}
