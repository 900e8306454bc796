package slurm

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// hetText is a component's number as users see it.
func hetText(h *cluster.HetPart) string {
	return strconv.FormatUint(uint64(h.ID), 10) + "+" + strconv.Itoa(h.Offset)
}

// stampForm is how Slurm writes a time of day.
const stampForm = "2006-01-02T15:04:05"

func stamp(t time.Time) string { return t.Local().Format(stampForm) }

// nodeText folds node names into a host list.
func nodeText(nodes []cluster.NodeName) string { return hostlist.CompressNames(nodes) }

// plural joins rank numbers as srun words them: "task 3", "tasks 0-3".
func plural(ranks cluster.IDSet) string {
	text := ranks.String()
	if strings.ContainsAny(text, ",-") {
		return "tasks " + text
	}
	return "task " + text
}
