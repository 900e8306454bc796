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
func (q *JobQuery) Matches(j *cluster.Job) bool {
	if j.Phase == cluster.Ended && !among(q.Outcomes, j.Outcome) {
		return false
	}
	spec := j.Spec
	if !among(q.Users, spec.UID) || !among(q.Accounts, spec.Account) || !among(q.Names, spec.Name) {
		return false
	}
	if !among(q.QOS, spec.QOS) || !q.phaseMatches(j) || !anyAmong(q.Partitions, PartitionsOf(j)) {
		return false
	}
	return len(q.Nodes) == 0 || anyAmong(q.Nodes, j.AllocNodes()) // a list of all jobs looks at none's nodes
}

// phaseMatches reports whether the query lets a job through that is in its phase. One that stages out is about to end
// to those who ask for such.
func (q *JobQuery) phaseMatches(j *cluster.Job) bool {
	return among(q.Phases, j.Phase) || cluster.StagesOut(j) && slices.Contains(q.Phases, cluster.Ending)
}

// among reports whether a filter lets a value through.
func among[T comparable](filter []T, value T) bool {
	return len(filter) == 0 || slices.Contains(filter, value)
}

// anyAmong reports whether a filter lets any of some values through.
func anyAmong[T comparable](filter, values []T) bool {
	return len(filter) == 0 || slices.ContainsFunc(values, func(v T) bool { return slices.Contains(filter, v) })
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
