package api

import (
	"cmp"
	"slices"
	"time"

	"dev.muster/cluster"
)

// phaseWords name phases to people.
var phaseWords = [...]string{cluster.Pending: "pending", cluster.Starting: "starting",
	cluster.Running: "running", cluster.Suspended: "suspended",
	cluster.Ending: "ending", cluster.Ended: "ended"}

// PhaseWord names a phase to people.
func PhaseWord(p cluster.Phase) string { return phaseWords[p] }

// OutcomeWord names how a job or a step has ended.
func OutcomeWord(o cluster.Outcome) string { return cmp.Or(o.String(), "ended") }

// JobWord names a job's state: its phase or, once it has ended, how.
func JobWord(j *cluster.Job) string {
	if j.Phase == cluster.Ended {
		return OutcomeWord(j.Outcome)
	}
	return PhaseWord(j.Phase)
}

// WaitWord is why a job waits, in one word.
func WaitWord(j *cluster.Job) string { return cmp.Or(string(j.Wait), "not looked at yet") }

// PartitionsOf are those that a job may start in or, once it has, the one it is in.
func PartitionsOf(j *cluster.Job) []string {
	if j.Alloc != nil {
		return []string{j.Alloc.Partition}
	}
	return j.Spec.Partitions
}

// Matches reports whether a job is one of those that the query's filters let through; empty ones let all. Refs, From
// and To are not looked at.
func (q *JobQuery) Matches(j *cluster.Job) bool { return q.matches(j, &sets{}) }

// Filter is Matches for many jobs: it does not go through long filters for each.
func (q *JobQuery) Filter() func(*cluster.Job) bool {
	s := &sets{setOf(q.Users), setOf(q.Accounts), setOf(q.Names), setOf(q.QOS), setOf(q.Partitions), setOf(q.Nodes)}
	return func(j *cluster.Job) bool { return q.matches(j, s) }
}

// sets are long filters; nil: one is short.
type sets struct {
	users                            map[uint32]bool
	accounts, names, qos, partitions map[string]bool
	nodes                            map[cluster.NodeName]bool
}

// longFilter is how many values are looked up, not gone through.
const longFilter = 16

func setOf[T comparable](filter []T) map[T]bool {
	if len(filter) < longFilter {
		return nil
	}
	set := map[T]bool{}
	for _, v := range filter {
		set[v] = true
	}
	return set
}

func (q *JobQuery) matches(j *cluster.Job, s *sets) bool {
	if j.Phase == cluster.Ended && !among(q.Outcomes, nil, j.Outcome) {
		return false
	}
	spec := j.Spec
	if !among(q.Users, s.users, spec.UID) || !among(q.Accounts, s.accounts, spec.Account) {
		return false
	}
	if !among(q.Names, s.names, spec.Name) || !among(q.QOS, s.qos, spec.QOS) || !q.phaseMatches(j) {
		return false
	}
	if !anyAmong(q.Partitions, s.partitions, PartitionsOf(j)) {
		return false
	}
	return len(q.Nodes) == 0 || anyAmong(q.Nodes, s.nodes, j.AllocNodes()) // a list of all jobs looks at none's nodes
}

// phaseMatches reports whether the query lets a job through that is in its phase. One that stages out is about to end
// to those who ask for such.
func (q *JobQuery) phaseMatches(j *cluster.Job) bool {
	return among(q.Phases, nil, j.Phase) || cluster.StagesOut(j) && slices.Contains(q.Phases, cluster.Ending)
}

// among reports whether a filter lets a value through; set is the filter if it is long.
func among[T comparable](filter []T, set map[T]bool, value T) bool {
	return len(filter) == 0 || set[value] || set == nil && slices.Contains(filter, value)
}

// anyAmong reports whether a filter lets any of some values through.
func anyAmong[T comparable](filter []T, set map[T]bool, values []T) bool {
	return len(filter) == 0 || slices.ContainsFunc(values, func(v T) bool { return among(filter, set, v) })
}

// Bounds of filters, which are gone through for each job, and where somebody follows for each that changes.
const (
	maxWords    = 64      // phases and outcomes
	maxFollowed = 4 << 10 // values of all filters
)

// bound refuses filters that take very long.
func (q JobQuery) bound() error {
	if words := len(q.Phases) + len(q.Outcomes); words > maxWords {
		return cluster.Errorf(cluster.Invalid, "", "%d states are asked for: there are not as many", words)
	}
	return nil
}

// bound refuses to follow very many jobs by name.
func (q EventQuery) bound() error {
	if q.Jobs == nil {
		return nil
	}
	j := q.Jobs
	all := len(j.Refs) + len(j.Users) + len(j.Accounts) + len(j.Names) + len(j.QOS) + len(j.Partitions) + len(j.Nodes)
	if all > maxFollowed {
		return cluster.Errorf(cluster.Invalid, "", "%d names are more than can be followed at once: %d are the most",
			all, maxFollowed)
	}
	return j.bound()
}

// ReservedNow marks the nodes that reservations have at a moment.
func ReservedNow(snap *cluster.Snapshot, now time.Time) func(*NodeInfo) {
	maint := map[cluster.NodeName]bool{}
	for _, r := range snap.Reservations() {
		if !r.At(now).Active(now) {
			continue
		}
		for _, n := range snap.Reserved(r) {
			maint[n] = maint[n] || r.Flags&cluster.ResvMaint != 0
		}
	}
	return func(n *NodeInfo) {
		if m, ok := maint[n.Name]; ok {
			n.Reserved, n.Maint = true, m
		}
	}
}
