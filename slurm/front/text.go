package front

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// HetText is a component's number as users see it.
func HetText(h *cluster.HetPart) string {
	return strconv.FormatUint(uint64(h.ID), 10) + "+" + strconv.Itoa(h.Offset)
}

// stampForm is how Slurm writes a time of day.
const stampForm = "2006-01-02T15:04:05"

// Stamp writes a moment as Slurm does.
func Stamp(t time.Time) string { return t.Local().Format(stampForm) }

// NodeText folds node names into a host list.
func NodeText(nodes []cluster.NodeName) string { return hostlist.CompressNames(nodes) }

// TasksText joins rank numbers as srun words them: "task 3", "tasks 0-3".
func TasksText(ranks cluster.IDSet) string {
	text := ranks.String()
	if strings.ContainsAny(text, ",-") {
		return "tasks " + text
	}
	return "task " + text
}
