package slurm

import (
	"errors"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// stampForm is how Slurm writes a time of day.
const stampForm = "2006-01-02T15:04:05"

func stamp(t time.Time) string { return t.Local().Format(stampForm) }

// nodeText folds node names into a host list.
func nodeText(nodes []cluster.NodeName) string { return hostlist.CompressNames(nodes) }

func isKind(err error, kind cluster.ErrKind) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Kind == kind
}

func isUnreachable(err error) bool {
	return errors.Is(err, api.ErrUnreachable) || isKind(err, cluster.ErrAway)
}

// plural joins rank numbers as srun words them: "task 3", "tasks 0-3".
func plural(ranks cluster.IDSet) string {
	text := ranks.String()
	if strings.ContainsAny(text, ",-") {
		return "tasks " + text
	}
	return "task " + text
}
