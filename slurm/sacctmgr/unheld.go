package sacctmgr

import (
	"fmt"
	"io"
	"slices"

	"dev.muster/cluster"
	"dev.muster/slurm/show"
)

// noteUnheld tells on the standard error which of some limits hold nothing back as the cluster is configured.
func noteUnheld(to io.Writer, b *show.Books, set ...cluster.Limits) {
	if b.Enforce == nil {
		return
	}
	for _, note := range cluster.Unheld(*b.Enforce, b.Priority, set...) {
		fmt.Fprintln(to, "sacctmgr: note: "+note)
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
func limitsShown(b *show.Books, entity string) (set []cluster.Limits) {
	if slices.Contains([]string{"association", "user", "account"}, entity) {
		for _, a := range b.Assocs {
			set = append(set, a.Limits)
		}
	}
	if entity == "qos" {
		for _, q := range b.QOS {
			set = append(set, q.Limits)
		}
	}
	return set
}
