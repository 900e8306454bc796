package lookup

import (
	"slices"

	"dev.muster/cluster"
)

// maxWaited bounds the records in an answer to a caller who waits: those have no bound but that of connections.
const maxWaited = 100

// Some returns the records of an array that a caller is told of who waits for it: the first of many, and that with the
// worst end.
func Some(jobs []*cluster.Job) []*cluster.Job {
	if len(jobs) <= maxWaited {
		return jobs
	}
	worst := slices.MaxFunc(jobs, func(a, b *cluster.Job) int { return cluster.WaitCode(a) - cluster.WaitCode(b) })
	return append(slices.Clone(jobs[:maxWaited-1]), worst)
}
