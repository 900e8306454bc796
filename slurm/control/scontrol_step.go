package control

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// updateStep is scontrol update stepid=JOB[.STEP] timelimit=TIME.
func (c *control) updateStep(who front.Setting, rest []front.Setting) int {
	id, ok := parseStepID(who.Value)
	if !ok {
		return c.complain("Invalid StepID parameter: "+who.Text, "Request aborted")
	}
	q := api.StepUpdate{ID: id}
	for _, s := range rest {
		if !front.IsKey(s.Key, 5, "timelimit") {
			return c.complain("Update of this parameter is not supported: "+s.Text, "Request aborted")
		}
		var p cluster.Patch
		if !setLimit(&p, s, time.Time{}) {
			return c.complain("scontrol: error: Invalid TimeLimit value")
		}
		if q.Limit, q.Delta = p.LimitDelta, p.Limit == nil; p.Limit != nil && *p.Limit != cluster.Unlimited {
			q.Limit = *p.Limit
		}
	}
	if len(rest) == 0 {
		return c.complain(noChanges)
	}
	if _, err := front.Call(c.sys, api.UpdateStep, q); err != nil {
		if front.IsKind(err, cluster.ErrAccess) {
			return c.complain(updateError + ": Invalid user id")
		}
		return c.failed(err, "", updateError)
	}
	return 0
}

// parseStepID reads JOB or JOB.STEP; without a step all of the job's are meant.
func parseStepID(text string) (id cluster.StepID, ok bool) {
	job, number, one := strings.Cut(text, ".")
	n, err := strconv.ParseUint(job, 10, 32)
	if err != nil || n == 0 {
		return id, false
	}
	id = cluster.StepID{Job: cluster.JobID(n), Step: cluster.AllSteps}
	if one {
		if id.Step, err = strconv.Atoi(number); err != nil || id.Step < 0 {
			return id, false
		}
	}
	return id, true
}
