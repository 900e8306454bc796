package cluster

import "strings"

// Private is a kind of information that PrivateData keeps from those whom it does not concern; operators see all.
type Private string

// The kinds that muster keeps to themselves.
const (
	PrivateJobs         Private = "jobs"         // others' jobs and steps
	PrivateNodes        Private = "nodes"        // the states of nodes
	PrivateReservations Private = "reservations" // those that one may not use
	PrivateUsers        Private = "users"        // others' records and associations
	PrivateUsage        Private = "usage"        // others' sums
	PrivateEvents       Private = "events"       // what happened to nodes
)

// Hides reports whether PrivateData names a kind.
func (c *Config) Hides(what Private) bool {
	for w := range strings.SplitSeq(c.Keys["privatedata"], ",") {
		if strings.EqualFold(strings.TrimSpace(w), string(what)) {
			return true
		}
	}
	return false
}
