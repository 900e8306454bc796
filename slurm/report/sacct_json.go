package report

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// printJSON writes the records in the shape of today's clients.
func (o *sacctOptions) printJSON(resp *api.HistoryResponse) int {
	v := &show.View{Sys: o.sys, Now: resp.Now, Raw: true}
	jobs := []any{}
	for i := range resp.Records {
		rows := o.rows(v, &resp.Records[i])
		steps := []any{}
		for k := range rows[1:] {
			steps = append(steps, stepJSON(&rows[k+1]))
		}
		jobs = append(jobs, historyJSON(&rows[0], steps))
	}
	version := map[string]any{"major": "25", "minor": "05", "micro": "0"}
	return o.sys.JSON(map[string]any{"meta": map[string]any{"slurm": map[string]any{"version": version, "release": "25.05.0",
		"cluster": clusterName(v)}},
		"errors": []any{}, "warnings": []any{}, "jobs": jobs})
}

func exitJSON(e cluster.ExitStatus) map[string]any {
	status := "SUCCESS"
	if e.Code != 0 || e.Signal != 0 {
		status = "ERROR"
	}
	return map[string]any{
		"status":      []string{status},
		"return_code": show.Num(int64(e.Code)),
		"signal":      map[string]any{"id": show.Number{Set: e.Signal != 0, Number: int64(e.Signal)}},
	}
}

func historyJSON(r *acctRow, steps []any) map[string]any {
	het := show.HetOf(&r.JobRow)
	task := show.Number{Set: r.Task >= 0, Number: int64(max(r.Task, 0))}
	return map[string]any{
		"job_id":           r.ID,
		"name":             r.Spec.Name,
		"user":             r.Spec.User,
		"group":            r.Group(),
		"account":          r.Spec.Account,
		"partition":        strings.Join(r.partitions(), ","),
		"qos":              r.Spec.QOS,
		"cluster":          clusterName(r.View),
		"nodes":            r.nodeText(),
		"allocation_nodes": r.nodeCount(),
		"array":            map[string]any{"job_id": r.ArrayID, "task_id": task},
		"het":              map[string]any{"job_id": het.ID, "job_offset": het.Offset},
		"exit_code":        exitJSON(r.Exit),

		"derived_exit_code": exitJSON(r.Derived),
		"state":             map[string]any{"current": []string{show.StateOf(r.Job).Long}, "reason": r.whyText()},
		"time":              historyTimes(r),
		"tres":              map[string]any{"allocated": tresList(r.View, r.allocTRES()), "requested": tresList(r.View, r.reqTRES())},
		"association": map[string]any{
			"account":   r.Spec.Account,
			"cluster":   clusterName(r.View),
			"partition": "",
			"user":      r.Spec.User,
			"id":        r.Job.Assoc,
		},
		"wckey": map[string]any{
			"wckey": strings.TrimPrefix(r.Spec.WCKey, cluster.WCKeyDefault),
			"flags": wckeyFlags(r.Spec.WCKey),
		},
		"priority":          show.Num(int64(r.Job.Priority)),
		"reservation":       map[string]any{"id": 0, "name": r.Spec.Reservation},
		"flags":             startFlags(r),
		"constraints":       r.Spec.Constraint,
		"container":         "",
		"mcs":               map[string]any{"label": r.Spec.MCSLabel},
		"licenses":          r.Spec.Licenses,
		"restart_cnt":       r.Restarts,
		"required":          map[string]any{"CPUs": r.NumCPUs(), "memory": r.TotalMem()},
		"working_directory": r.Spec.WorkDir,
		"submit_line":       r.Spec.SubmitLine,
		"comment": map[string]any{
			"administrator": r.Spec.AdminComment,
			"job":           r.Spec.Comment,
			"system":        r.SystemComment,
		},
		"steps": steps,
	}
}

// historyTimes are a job's times, in seconds since 1970 and seconds.
func historyTimes(r *acctRow) map[string]any {
	return map[string]any{
		"submission": unixOrZero(r.Submitted),
		"eligible":   unixOrZero(r.Job.Eligible),
		"start":      unixOrZero(r.Job.Started),
		"end":        unixOrZero(r.Job.Ended),
		"elapsed":    int64(r.elapsed() / time.Second),
		"suspended":  int64(r.SuspendTotal / time.Second),
		"system":     timeJSON(r.total.SystemCPU),
		"user":       timeJSON(r.total.UserCPU),
		"total":      timeJSON(r.total.SystemCPU + r.total.UserCPU),
		"limit":      show.Number{Set: r.Limit != 0, Infinite: r.Limit == cluster.Unlimited, Number: int64(r.Limit / time.Minute)},
	}
}

func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func stepJSON(r *acctRow) map[string]any {
	u, energy := r.step.Usage, int64(0)
	if m, ok := u.Measured(cluster.MeasuredEnergy, false); ok {
		energy = m.Tot
	}
	tres := usageJSON(&stepUse{Step: r.step})
	tres["allocated"] = tresList(r.View, r.allocTRES())
	nodes := make([]string, 0, len(r.step.Shares))
	for _, sh := range r.step.Shares {
		nodes = append(nodes, string(sh.Node))
	}
	return map[string]any{
		"step":       map[string]any{"id": r.ShownID() + "." + show.StepName(r.step.ID.Step), "name": r.step.Name},
		"state":      []string{r.stateText()},
		"exit_code":  exitJSON(r.step.Exit),
		"tasks":      map[string]any{"count": r.step.Tasks},
		"nodes":      map[string]any{"count": r.nodeCount(), "range": r.nodeText(), "list": nodes},
		"statistics": map[string]any{"energy": map[string]any{"consumed": energy}},
		"tres":       tres,
		"time": map[string]any{
			"start":   r.step.Started.Unix(),
			"end":     unixOrZero(r.step.Ended),
			"elapsed": int64(r.elapsed() / time.Second),
			"system":  timeJSON(u.SystemCPU),
			"user":    timeJSON(u.UserCPU),
			"total":   timeJSON(u.SystemCPU + u.UserCPU),
		},
	}
}

func timeJSON(d time.Duration) map[string]any {
	return map[string]any{"seconds": int64(d / time.Second), "microseconds": int64(d % time.Second / time.Microsecond)}
}

// tresList is a text of amounts as a list: {type, name, id, count} each, memory in megabytes.
func tresList(v *show.View, text string) []any {
	out := []any{}
	for _, word := range front.SplitList(text) {
		tres, amount, _ := strings.Cut(word, "=")
		count, err := strconv.ParseInt(strings.TrimSuffix(amount, "M"), 10, 64)
		if err != nil {
			continue
		}
		kind, name, _ := strings.Cut(tres, "/")
		out = append(out, map[string]any{"type": kind, "name": name, "id": tresID(v, tres), "count": count})
	}
	return out
}

// tresID is the number of a resource, as sacctmgr show tres has it; 0: it is not tracked.
func tresID(v *show.View, tres string) int {
	if k := slices.Index(show.SlurmTRES(), tres); k >= 0 {
		return k + 1
	}
	if k := slices.Index(v.AllBooks().TRES, tres); k >= 0 {
		return FirstOwnTRES + k
	}
	return 0
}

// wckeyFlags tells a wckey that is its user's default.
func wckeyFlags(key string) []string {
	if strings.HasPrefix(key, cluster.WCKeyDefault) {
		return []string{"ASSIGNED_DEFAULT"}
	}
	return []string{}
}

// startFlags tells which part of the scheduler has started a job, in the words of the JSON.
func startFlags(r *acctRow) []string {
	switch {
	case r.Job.Started.IsZero():
		return []string{}
	case r.Backfilled:
		return []string{"STARTED_ON_BACKFILL", "START_RECEIVED"}
	}
	return []string{"STARTED_ON_SCHEDULE", "START_RECEIVED"}
}
