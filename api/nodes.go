package api

import (
	"time"

	"dev.muster/cluster"
)

// NodeQuery selects nodes; empty means all.
type NodeQuery struct {
	Names []cluster.NodeName `json:"names,omitempty"`
	// Listed leaves out hidden partitions and what they alone have, but for operators.
	Listed bool   `json:"listed,omitempty"`
	After  uint64 `json:"after,omitempty"`
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
	Federal    bool                `json:"federal,omitempty"` // as of JobsResponse
}
