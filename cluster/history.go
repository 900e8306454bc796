package cluster

import (
	"slices"
	"strings"
	"time"
)

// HistoryFilter selects jobs of the past by what they asked for and got; empty fields select all.
type HistoryFilter struct {
	// WholeHet: all components of a heterogeneous job of which one is named, or with false only those named; nil: all
	// where the leader is.
	WholeHet    *bool     `json:"whole_het,omitempty"`
	Groups      []uint32  `json:"groups,omitempty"`
	WCKeys      []string  `json:"wckeys,omitempty"`
	Constraints []string  `json:"constraints,omitempty"` // all of them
	Reasons     []Reason  `json:"reasons,omitempty"`     // why it waited, or how it ended
	Starters    []Starter `json:"starters,omitempty"`
	CPUCount    Range     `json:"cpu_count,omitzero"`  // given
	NodeCount   Range     `json:"node_count,omitzero"` // given
	Minutes     Range     `json:"minutes,omitzero"`
}

// Range is the numbers from Min to Max; without a Max, Min alone; zero: all.
type Range struct {
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
}

// Has reports whether n is in the range.
func (r Range) Has(n int) bool {
	return r == Range{} || n >= r.Min && n <= max(r.Max, r.Min)
}

// Starter says which part of the scheduler started a job.
type Starter string

// The starters.
const (
	StartedInOrder Starter = "main"
	StartedBehind  Starter = "backfill" // before the jobs ahead of it
)

// Matches reports whether the filter selects the job.
func (f *HistoryFilter) Matches(j *Job) bool {
	if !takes(f.Groups, j.Spec.GID) || !takes(f.WCKeys, j.Spec.WCKey) {
		return false
	}
	if !f.takesReason(j) || !f.takesStarter(j) {
		return false
	}
	asked := featuresIn(j.Spec.Constraint)
	for _, c := range f.Constraints {
		if !slices.Contains(asked, c) {
			return false
		}
	}
	cpus := 0
	nodes := 0
	if j.Alloc != nil {
		nodes = len(j.Alloc.Shares)
		for _, sh := range j.Alloc.Shares {
			cpus += sh.CPUs.Len()
		}
	}
	return f.CPUCount.Has(cpus) && f.NodeCount.Has(nodes) && f.Minutes.Has(int(j.Limit/time.Minute))
}

// featuresIn are the names in a constraint.
func featuresIn(constraint string) []string {
	names := strings.FieldsFunc(constraint, func(r rune) bool { return strings.ContainsRune("&|,[]()", r) })
	for i := range names {
		names[i], _, _ = strings.Cut(names[i], "*")
	}
	return names
}

// takesReason reports whether a job waits, or has ended, for one of the reasons.
func (f *HistoryFilter) takesReason(j *Job) bool {
	why := j.Wait
	if j.Phase == Ended {
		why = j.EndReason
	}
	is := func(r Reason) bool { return strings.EqualFold(string(r), string(why)) }
	return len(f.Reasons) == 0 || slices.ContainsFunc(f.Reasons, is)
}

// takesStarter reports whether one of the parts of the scheduler has started a job.
func (f *HistoryFilter) takesStarter(j *Job) bool {
	how := StartedInOrder
	if j.Backfilled {
		how = StartedBehind
	}
	if len(f.Starters) > 0 && j.Started.IsZero() {
		return false
	}
	return takes(f.Starters, how)
}
