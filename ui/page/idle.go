package page

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// viewIdle is the page of GPUs that jobs have and do not use.
func (s *pages) viewIdle(sees visibility.Scope, _ *http.Request) (string, string, any, error) {
	now := time.Now()
	v := ui.One{
		Head: fmt.Sprintf("jobs with GPUs below %d %% for the IdleGPUTime of their partition, %s unless it is set",
			cluster.IdleGPUPercent, span(cluster.IdleGPUTime)),
	}
	for _, one := range s.idle(sees, now) {
		text := fmt.Sprintf("%d of %d GPUs since %s, %s, on %s", one.Idle, one.GPUs, stamped(one.Since),
			span(now.Sub(one.Since)), one.Nodes)
		if one.Rule != "" {
			text += "; the rule of the partition: " + string(one.Rule)
		}
		v.Rows = append(v.Rows, ui.Row{
			Name:  fmt.Sprintf("job %s of %s", jobPath(one.Job)[len("/jobs/"):], one.Job.Spec.User),
			Value: text, To: jobPath(one.Job),
		})
	}
	if len(v.Rows) == 0 {
		v.Note = "No idle GPUs."
	}
	return "one", "Idle GPUs", v, nil
}

// idle are the jobs with idle GPUs that a visitor may see.
func (s *pages) idle(sees visibility.Scope, now time.Time) []api.IdleJob {
	if s.Samples == nil {
		return nil
	}
	return slices.DeleteFunc(s.Samples.Idle(sees.Snap, 0, now), func(j api.IdleJob) bool { return !sees.Job(j.Job) })
}
