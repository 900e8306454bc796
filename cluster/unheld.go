package cluster

import (
	"slices"
	"strings"
)

// Unheld tells which limits of accounts and QOS hold nothing back as a cluster is configured, and which setting would
// have them do so; empty where all that are set are active.
func Unheld(e Enforce, p PriorityConfig, set ...Limits) (notes []string) {
	var names, spent []string
	for _, row := range limitTable() {
		isSet := slices.ContainsFunc(set, func(l Limits) bool {
			return slices.ContainsFunc(l, func(x Limit) bool { return x.Name == row.name })
		})
		if !isSet {
			continue
		}
		names = append(names, row.name)
		if row.what == ofSpentMins || row.what == ofSpentWall {
			spent = append(spent, row.name)
		}
	}
	if len(names) > 0 && !e.Limits {
		notes = append(notes, strings.Join(names, ", ")+": no job waits for it: "+
			"AccountingStorageEnforce=limits in slurm.conf enforces limits")
	}
	if len(spent) > 0 && !p.Multifactor {
		notes = append(notes, strings.Join(spent, ", ")+": nothing counts what is used: "+
			"PriorityType=priority/multifactor in slurm.conf does")
	}
	return notes
}

// UnheldOf is Unheld of the limits that a job would have by its association and QOS.
func (s *Snapshot) UnheldOf(j *Job) []string {
	var set []Limits
	for a := range s.Line(j.Assoc) {
		set = append(set, a.Limits)
	}
	if q, ok := s.QOS(j.Spec.QOS); ok {
		set = append(set, q.Limits)
	}
	return Unheld(s.config.Enforce, s.config.Priority, set...)
}
