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
	if len(f.Groups) > 0 && !slices.Contains(f.Groups, j.Spec.GID) || len(f.WCKeys) > 0 && !slices.Contains(f.WCKeys, j.Spec.WCKey) {
		return false
	}
	asked := strings.FieldsFunc(j.Spec.Constraint, func(r rune) bool { return strings.ContainsRune("&|,[]()", r) })
	for _, c := range f.Constraints {
		if !slices.ContainsFunc(asked, func(a string) bool { name, _, _ := strings.Cut(a, "*"); return name == c }) {
			return false
		}
	}
	why := j.Wait
	if j.Phase == Ended {
		why = j.EndReason
	}
	if len(f.Reasons) > 0 && !slices.ContainsFunc(f.Reasons, func(r Reason) bool { return strings.EqualFold(string(r), string(why)) }) {
		return false
	}
	how := StartedInOrder
	if j.Backfilled {
		how = StartedBehind
	}
	if len(f.Starters) > 0 && (j.Started.IsZero() || !slices.Contains(f.Starters, how)) {
		return false
	}
	cpus, nodes := 0, 0
	if j.Alloc != nil {
		nodes = len(j.Alloc.Shares)
		for _, sh := range j.Alloc.Shares {
			cpus += sh.CPUs.Len()
		}
	}
	return f.CPUCount.Has(cpus) && f.NodeCount.Has(nodes) && f.Minutes.Has(int(j.Limit/time.Minute))
}
