package sacctmgr

import (
	"fmt"
	"slices"

	"dev.muster/cluster"
)

// noteUnheld tells on the standard error which of some limits hold nothing back as the cluster is configured.
func (m *manager) noteUnheld(set ...cluster.Limits) {
	if m.books.Enforce == nil {
		return
	}
	for _, note := range cluster.Unheld(*m.books.Enforce, m.books.Priority, set...) {
		fmt.Fprintln(m.sys.Stderr, "sacctmgr: note: "+note)
	}
}

// limitsOf are the limits that changes set.
func limitsOf(changes []cluster.Change) (set []cluster.Limits) {
	for _, c := range changes {
		switch {
		case c.Delete:
		case c.Assoc != nil:
			set = append(set, c.Assoc.Limits)
		case c.QOS != nil:
			set = append(set, c.QOS.Limits)
		}
	}
	return set
}

// limitsShown are the limits that the lines of an entity tell of, whichever of these are asked for.
func (m *manager) limitsShown(entity string) (set []cluster.Limits) {
	if slices.Contains([]string{"association", "user", "account"}, entity) {
		for _, a := range m.books.Assocs {
			set = append(set, a.Limits)
		}
	}
	if entity == "qos" {
		for _, q := range m.books.QOS {
			set = append(set, q.Limits)
		}
	}
	return set
}
