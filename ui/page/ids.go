package page

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// maxTaskText bounds the numbers of tasks in the id of a record that stands for several.
const maxTaskText = 24

// jobID is how squeue calls a job: an array's tasks by its id and their numbers, components by their leader's and
// their offset.
func jobID(j *cluster.Job) string {
	switch {
	case j.Het != nil:
		return fmt.Sprintf("%d+%d", j.Het.ID, j.Het.Offset)
	case j.ArrayID != 0 && !j.Tasks.Empty():
		text := j.Tasks.String()
		if len(text) > maxTaskText {
			text = text[:strings.LastIndexByte(text[:maxTaskText], ',')+1] + "…"
		}
		return fmt.Sprintf("%d_[%s]", j.ArrayID, text)
	case j.ArrayID != 0:
		return fmt.Sprintf("%d_%d", j.ArrayID, j.Task)
	}
	return strconv.Itoa(int(j.ID))
}

// jobName is how a job is called in addresses: a record that stands for several tasks is told of with its array.
func jobName(j *cluster.Job) string {
	if j.ArrayID != 0 && !j.Tasks.Empty() {
		return strconv.Itoa(int(j.ArrayID))
	}
	return jobID(j)
}

func jobPath(j *cluster.Job) string { return "/jobs/" + url.PathEscape(jobName(j)) }
