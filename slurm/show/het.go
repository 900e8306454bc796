package show

import (
	"fmt"

	"dev.muster/cluster"
)

// HetSet is the ids of all components: "16-18".
func HetSet(h *cluster.HetPart) string {
	return fmt.Sprintf("%d-%d", h.ID, h.Last())
}

// het is something of a heterogeneous job's component, N/A for other jobs.
func (r *JobRow) het(of func(*cluster.HetPart) string) string {
	if r.Het == nil {
		return "N/A"
	}
	return of(r.Het)
}

// HetOf is the component that a row is about, empty for other jobs.
func HetOf(r *JobRow) cluster.HetPart {
	if r.Het == nil {
		return cluster.HetPart{}
	}
	return *r.Het
}
