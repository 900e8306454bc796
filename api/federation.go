package api

import (
	"dev.muster/cluster"
	"dev.muster/cluster/federation"
)

// Federations: clusters that share jobs.
var (
	ShowFederation = Endpoint[AfterQuery, FederationResponse]{"GET", "/v1/federation", User, false, 0}
	PutFederation  = Endpoint[federation.Record, WriteResponse]{"POST", "/v1/federation", User, true, ForAdministrators}
	CallFederation = Endpoint[FederationCall, FederationAnswer]{"POST", "/v1/federation/call", Peer, true, 0}
)

// FederationResponse is the federation that this cluster is in, if it is.
type FederationResponse struct {
	Index   uint64             `json:"index,omitempty"`
	Cluster string             `json:"cluster"` // this one
	Record  *federation.Record `json:"record,omitempty"`
	Display bool               `json:"display,omitempty"` // FederationParameters=fed_display
	// Away are members that do not answer.
	Away federation.Set `json:"away,omitempty"`
}

// FederationCall is what the leader of a cluster says to another member's.
type FederationCall struct {
	From    string `json:"from"` // the cluster, which the token is of
	Version uint64 `json:"version,omitempty"`
	// Tell is a record that is new to the other.
	Tell *federation.Record `json:"tell,omitempty"`
	// Pull asks for orders about the jobs of the cluster that is asked: all, or what is new after what Epoch and After
	// say that has come.
	Pull  bool   `json:"pull,omitempty"`
	Epoch string `json:"epoch,omitempty"`
	After uint64 `json:"after,omitempty"`
	// Reports are about jobs of the cluster that is asked.
	Reports []cluster.FederationReport `json:"reports,omitempty"`
	// Parents are terms on jobs of the cluster that is asked, for which jobs of the other wait.
	Parents []cluster.Depend `json:"parents,omitempty"`
}

// FederationAnswer is what it says to that.
type FederationAnswer struct {
	Record *federation.Record `json:"record,omitempty"` // that is newer
	Epoch  string             `json:"epoch,omitempty"`
	Next   uint64             `json:"next,omitempty"`
	// Full: there are no other jobs than these, or those of All if that is there.
	Full  bool            `json:"full,omitempty"`
	All   []cluster.JobID `json:"all,omitempty"`
	Index uint64          `json:"index,omitempty"`
	Rows  []FederationRow `json:"rows,omitempty"`
	// Parents are those of the terms that are met, or never will be.
	Parents []cluster.ParentTerm `json:"parents,omitempty"`
}

// FederationRow is an order with what the job is run with.
type FederationRow struct {
	cluster.FederationOrder
	User   string           `json:"user,omitempty"`
	Script cluster.BlobText `json:"script,omitempty"`
	Env    cluster.BlobText `json:"env,omitempty"`
}
