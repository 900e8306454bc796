package api

import (
	"time"

	"dev.muster/cluster"
)

// UsageRequest asks for sums over history, as sreport shows them. The time is cut at the present.
type UsageRequest struct {
	cluster.UsageQuery
	// Utilization: where all of the cluster's time went; Reservations: those of the time; Nodes how nodes were.
	Utilization  bool   `json:"utilization,omitempty"`
	Reservations bool   `json:"reservations,omitempty"`
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
}
