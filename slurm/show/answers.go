package show

import (
	"bufio"
	"cmp"
	"slices"

	"dev.muster/slurm/data"
)

// WriteJobs prints jobs as the objects of a version.
func WriteJobs(out *bufio.Writer, v *View, k *data.Ask, rows []JobRow) int {
	return v.Sys.Answer(k, out, v.Config().Config.ClusterName, data.Each("jobs", &JobTable, rows),
		data.Time("last_backfill", v.Now.Unix()), data.Time("last_update", v.Now.Unix()))
}

// WriteSteps prints live steps.
func WriteSteps(out *bufio.Writer, v *View, k *data.Ask, rows []StepRow) int {
	slices.SortStableFunc(rows, func(a, b StepRow) int { return cmp.Compare(a.ID.Job, b.ID.Job) })
	return v.Sys.Answer(k, out, v.Config().Config.ClusterName, data.Each("steps", &StepTable, rows),
		data.Time("last_update", v.Now.Unix()))
}

// nothing is the warning of an empty answer.
func nothing(what string, n int) []data.Problem {
	if n > 0 {
		return nil
	}
	return []data.Problem{{Description: "Zero " + what + " to dump"}}
}

// WriteNodes prints nodes.
func WriteNodes(out *bufio.Writer, v *View, k *data.Ask, rows []NodeRow) int {
	return v.Sys.Answer(k, out, v.Config().Config.ClusterName, data.Each("nodes", &NodeTable, rows),
		data.Time("last_update", v.Now.Unix()))
}

// WritePartitions prints partitions.
func WritePartitions(out *bufio.Writer, v *View, k *data.Ask, rows []InfoRow) int {
	return v.Sys.Answer(k, out, v.Config().Config.ClusterName, data.Each("partitions", &PartitionTable, rows),
		data.Time("last_update", v.Now.Unix()))
}

// WriteReservations prints reservations.
func WriteReservations(out *bufio.Writer, v *View, k *data.Ask, rows []ResvRow) int {
	return v.Sys.Answer(k, out, v.Config().Config.ClusterName, data.Each("reservations", &ResvTable, rows),
		data.Time("last_update", v.Now.Unix()))
}

// WriteLicenses prints licenses.
func WriteLicenses(out *bufio.Writer, v *View, k *data.Ask, rows []LicenseRow) int {
	return v.Sys.AnswerWith(k, out, v.Config().Config.ClusterName, nothing("licenses", len(rows)),
		data.Each("licenses", &LicenseTable, rows), data.Time("last_update", v.Now.Unix()))
}
