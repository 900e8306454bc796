package api

import "dev.muster/cluster"

// FilterScene is what the site's script is told when it looks at a submission or a change (server.JobFilter). It does
// not travel.
type FilterScene struct {
	Snap *cluster.Snapshot
	By   uint32               // who asks
	User string               // the caller's name, for messages; "": not known
	Open []*cluster.Partition // that the user may use
}

// Words is what the site says to the user.
func (r SubmitResponse) Words() []string { return r.Said }

// Words is what the site says to the user.
func (r TestResponse) Words() []string { return r.Said }

// Words is what the site says to the user.
func (r WriteResponse) Words() []string { return r.Said }
