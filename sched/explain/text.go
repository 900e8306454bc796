package explain

import (
	"fmt"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
)

// Parts of texts for people.

// maxNamed is how many jobs or nodes of a kind a text names.
const maxNamed = 3

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// named joins the first of a list of names.
func named(names []string, between string) string {
	text := strings.Join(names[:min(len(names), maxNamed)], between)
	if n := len(names) - maxNamed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// updateHint is the command that changes jobs so.
func updateHint(jobs []*cluster.Job, words string) string {
	var ids []string
	for _, j := range jobs {
		ids = append(ids, idText(j))
	}
	return fmt.Sprintf("scontrol update jobid=%s %s", strings.Join(ids, ","), words)
}

// spanText is a time limit in hours and minutes.
func spanText(d time.Duration) string {
	h := int(d / time.Hour)
	m := int(d % time.Hour / time.Minute)
	switch {
	case d >= sched.Endless:
		return "unlimited time"
	case h == 0:
		return fmt.Sprintf("%d min", m)
	case m == 0:
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d h %d min", h, m)
}

// idText is a job's number as users write it: 17_4 for a task of an array, and 17+1 for one component, since that of
// the leader stands for all of them.
func idText(j *cluster.Job) string {
	switch {
	case j.Het != nil:
		return fmt.Sprintf("%d+%d", j.Het.ID, j.Het.Offset)
	case j.Task != cluster.TaskAny:
		return fmt.Sprintf("%d_%d", j.ArrayID, j.Task)
	}
	return fmt.Sprint(j.ID)
}

// hetText is idText, but for all of a heterogeneous job.
func hetText(j *cluster.Job) string {
	if j.Het != nil {
		return fmt.Sprint(j.Het.ID)
	}
	return idText(j)
}

// componentsText tells which components are meant: "component 1", "components 0-2,4"; nothing of a plain job.
func componentsText(jobs []*cluster.Job) string {
	var set cluster.IDSet
	for _, j := range jobs {
		if j.Het == nil {
			return ""
		}
		set = set.Union(cluster.NewIDSet(j.Het.Offset))
	}
	if len(jobs) == 1 {
		return "component " + set.String()
	}
	return "components " + set.String()
}
