package lookup

import (
	"cmp"
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
	bad := func(j *cluster.Job) int {
		begun := j.Outcome != cluster.Cancelled || !j.Started.IsZero()
		if begun && j.Exit.Code == 0 && (j.Exit.Signal != 0 || j.Outcome != cluster.Completed) {
			return 1
		}
		return j.Exit.Code
	}
	worst := slices.MaxFunc(jobs, func(a, b *cluster.Job) int { return cmp.Compare(bad(a), bad(b)) })
	return append(slices.Clone(jobs[:maxWaited-1]), worst)
}
