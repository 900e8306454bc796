package report

import (
	"bufio"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// printData writes the records as objects.
func (o *sacctOptions) printData(list []placed) int {
	rows := make([]pastJob, 0, len(list[0].resp.Records))
	for _, one := range list {
		v := &show.View{Sys: one.sys, Place: one.place, Now: one.resp.Now, Raw: true}
		for i := range one.resp.Records {
			all := o.rows(v, &one.resp.Records[i])
			rows = append(rows, pastJob{&all[0], slices.DeleteFunc(all[1:],
				func(r acctRow) bool { return !o.shows(&r) })})
		}
	}
	here := &show.View{Sys: o.sys}
	return o.sys.Answer(&o.data, bufio.NewWriterSize(o.sys.Stdout, 1<<16), clusterName(here), data.Each("jobs",
		&pastTable, rows))
}

// pastJob is a job of history with its steps.
type pastJob struct {
	*acctRow
	steps []acctRow
}

// pastTable makes the objects of jobs of history.
var pastTable = data.Table[pastJob]{Schema: "job", Members: []data.Member[pastJob]{
	{Path: "account", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Account) }},
	{Path: "comment.administrator", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.AdminComment) }},
	{Path: "comment.job", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Comment) }},
	{Path: "comment.system", Of: func(r *pastJob) data.Value { return data.Text(r.SystemComment) }},
	{Path: "allocation_nodes", Of: func(r *pastJob) data.Value { return data.Num(r.nodeCount()) }},
	{Path: "array.job_id", Of: func(r *pastJob) data.Value { return data.Num(r.ArrayID) }},
	{Path: "array.limits.max.running.tasks", Of: func(r *pastJob) data.Value { return data.Num(r.Throttle()) }},
	{Path: "array.task_id", Of: func(r *pastJob) data.Value {
		if r.Task < 0 {
			return data.Unset
		}
		return data.Num(r.Task)
	}},
	{Path: "array.task", Of: func(r *pastJob) data.Value { return data.Text(r.Tasks.String()) }},
	{Path: "association.account", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Account) }},
	{Path: "association.cluster", Of: func(r *pastJob) data.Value { return data.Text(clusterName(r.View)) }},
	{Path: "association.partition"},
	{Path: "association.user", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.User) }},
	{Path: "association.id", Of: func(r *pastJob) data.Value { return data.Num(r.Job.Assoc) }},
	{Path: "block"},
	{Path: "cluster", Of: func(r *pastJob) data.Value { return data.Text(clusterName(r.View)) }},
	{Path: "constraints", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Constraint) }},
	{Path: "container", Of: func(r *pastJob) data.Value {
		if r.Spec.Inside == nil {
			return data.Unset
		}
		return data.Text(r.Spec.Inside.Image)
	}},
	{Path: "sluid"},
	{Path: "original_sluid"},
	{Path: "derived_exit_code", Of: func(r *pastJob) data.Value { return show.Exit(r.Derived, true) }},
	{Path: "time.elapsed", Of: func(r *pastJob) data.Value { return show.Seconds(r.elapsed()) }},
	{Path: "time.eligible", Of: func(r *pastJob) data.Value { return show.Unix(r.Job.Eligible) }},
	{Path: "time.end", Of: func(r *pastJob) data.Value { return show.Unix(r.Job.Ended) }},
	{Path: "time.planned", Of: func(r *pastJob) data.Value { return show.Seconds(r.waited()) }},
	{Path: "time.start", Of: func(r *pastJob) data.Value { return show.Unix(r.started()) }},
	{Path: "time.submission", Of: func(r *pastJob) data.Value { return show.Unix(r.Submitted) }},
	{Path: "time.suspended", Of: func(r *pastJob) data.Value { return show.Seconds(r.SuspendTotal) }},
	{Path: "time.system.seconds", Of: func(r *pastJob) data.Value { return show.Seconds(r.total.SystemCPU) }},
	{Path: "time.system.microseconds", Of: func(r *pastJob) data.Value { return micros(r.total.SystemCPU) }},
	{Path: "time.limit", Of: func(r *pastJob) data.Value { return show.Minutes(r.Limit) }},
	{Path: "time.total.seconds", Of: func(r *pastJob) data.Value {
		return show.Seconds(r.total.SystemCPU + r.total.UserCPU)
	}},
	{Path: "time.total.microseconds", Of: func(r *pastJob) data.Value {
		return micros(r.total.SystemCPU + r.total.UserCPU)
	}},
	{Path: "time.user.seconds", Of: func(r *pastJob) data.Value { return show.Seconds(r.total.UserCPU) }},
	{Path: "time.user.microseconds", Of: func(r *pastJob) data.Value { return micros(r.total.UserCPU) }},
	{Path: "exclusive", Of: func(r *pastJob) data.Value {
		return data.Text(front.Choose(r.Spec.Sharing == cluster.ShareExclusive, "NODE", "NO"))
	}},
	{Path: "exit_code", Of: func(r *pastJob) data.Value { return show.Exit(r.Exit, true) }},
	{Path: "extra", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Extra) }},
	{Path: "failed_node", Of: func(r *pastJob) data.Value { return data.Text(r.why.Node) }},
	{Path: "flags", Of: func(r *pastJob) data.Value { return data.Words(startFlags(r.acctRow)...) }},
	{Path: "group", Of: func(r *pastJob) data.Value { return data.Text(r.Group()) }},
	{Path: "het.job_id", Of: func(r *pastJob) data.Value { return data.Num(show.HetOf(&r.JobRow).ID) }},
	{Path: "het.job_offset", Of: func(r *pastJob) data.Value {
		if r.Het == nil {
			return data.Unset
		}
		return data.Num(r.Het.Offset)
	}},
	{Path: "job_id", Of: func(r *pastJob) data.Value { return data.Num(r.ID) }},
	{Path: "name", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Name) }},
	{Path: "licenses", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Licenses) }},
	{Path: "mcs.label", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.MCSLabel) }},
	{Path: "nodes", Of: func(r *pastJob) data.Value { return data.Text(r.nodeText()) }},
	{Path: "oversubscribe", Of: func(r *pastJob) data.Value {
		return data.Text(front.Choose(r.Spec.Sharing == cluster.ShareOver, "YES", "NO"))
	}},
	{Path: "partition", Of: func(r *pastJob) data.Value { return data.Words(r.partitions()...) }},
	{Path: "hold", Of: func(r *pastJob) data.Value { return data.Bool(r.Held != cluster.NotHeld) }},
	{Path: "priority", Of: func(r *pastJob) data.Value { return data.Num(r.Job.Priority) }},
	{Path: "qos", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.QOS) }},
	{Path: "qosreq"},
	{Path: "required.CPUs", Of: func(r *pastJob) data.Value { return data.Num(r.NumCPUs()) }},
	{Path: "required.memory_per_cpu", Of: func(r *pastJob) data.Value {
		return r.MemBy(cluster.MemPerCPU)
	}},
	{Path: "required.memory_per_node", Of: func(r *pastJob) data.Value {
		return r.MemBy(cluster.MemPerNode)
	}},
	{Path: "kill_request_user", Of: func(r *pastJob) data.Value { return show.Killer(r.CancelledBy) }},
	{Path: "restart_cnt", Of: func(r *pastJob) data.Value { return data.Num(r.Restarts) }},
	{Path: "reservation.id", Of: func(*pastJob) data.Value { return data.Num(0) }},
	{Path: "reservation.name", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Reservation) }},
	{Path: "reservation.requested", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Reservation) }},
	{Path: "script"},
	{Path: "segment_size", Of: func(r *pastJob) data.Value { return data.Num(r.Spec.Segment) }},
	{Path: "stdin_expanded", Of: func(r *pastJob) data.Value { return data.Text(r.StdFile(0)) }},
	{Path: "stdout_expanded", Of: func(r *pastJob) data.Value { return data.Text(r.StdFile(1)) }},
	{Path: "stderr_expanded", Of: func(r *pastJob) data.Value { return data.Text(r.StdFile(2)) }},
	{Path: "stdout", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Stdout) }},
	{Path: "stderr", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Stderr) }},
	{Path: "stdin", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.Stdin) }},
	{Path: "state.current", Of: func(r *pastJob) data.Value { return data.Words(show.StateOf(r.Job).Long) }},
	{Path: "state.reason", Of: func(r *pastJob) data.Value { return data.Text(r.whyText()) }},
	{Path: "steps", Of: func(r *pastJob) data.Value { return data.Records(&pastStepTable, r.steps) }},
	{Path: "submit_line", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.SubmitLine) }},
	{Path: "tres.allocated", Of: func(r *pastJob) data.Value { return show.TRESList(r.View, r.allocTRES()) }},
	{Path: "tres.requested", Of: func(r *pastJob) data.Value { return show.TRESList(r.View, r.reqTRES()) }},
	{Path: "used_gres"},
	{Path: "user", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.User) }},
	{Path: "wckey.wckey", Of: func(r *pastJob) data.Value {
		return data.Text(strings.TrimPrefix(r.Spec.WCKey, cluster.WCKeyDefault))
	}},
	{Path: "wckey.flags", Of: func(r *pastJob) data.Value {
		if strings.HasPrefix(r.Spec.WCKey, cluster.WCKeyDefault) {
			return data.Words("ASSIGNED_DEFAULT")
		}
		return data.Unset
	}},
	{Path: "working_directory", Of: func(r *pastJob) data.Value { return data.Text(r.Spec.WorkDir) }},
}}

func micros(d time.Duration) data.Value {
	return data.Num(int64(d % time.Second / time.Microsecond))
}

// pastStepTable makes the objects of steps of history.
var pastStepTable = data.Table[acctRow]{Schema: "step", Members: []data.Member[acctRow]{
	{Path: "time.elapsed", Of: func(r *acctRow) data.Value { return show.Seconds(r.elapsed()) }},
	{Path: "time.end", Of: func(r *acctRow) data.Value { return show.Unix(r.step.Ended) }},
	{Path: "time.start", Of: func(r *acctRow) data.Value { return show.Unix(r.step.Started) }},
	{Path: "time.suspended", Of: func(*acctRow) data.Value { return data.Num(0) }},
	{Path: "time.system.seconds", Of: func(r *acctRow) data.Value { return show.Seconds(r.step.Usage.SystemCPU) }},
	{Path: "time.system.microseconds", Of: func(r *acctRow) data.Value { return micros(r.step.Usage.SystemCPU) }},
	{Path: "time.limit", Of: func(r *acctRow) data.Value {
		if r.step.Limit == 0 {
			return data.Infinite
		}
		return show.Minutes(r.step.Limit)
	}},
	{Path: "time.total.seconds", Of: func(r *acctRow) data.Value {
		return show.Seconds(r.step.Usage.SystemCPU + r.step.Usage.UserCPU)
	}},
	{Path: "time.total.microseconds", Of: func(r *acctRow) data.Value {
		return micros(r.step.Usage.SystemCPU + r.step.Usage.UserCPU)
	}},
	{Path: "time.user.seconds", Of: func(r *acctRow) data.Value { return show.Seconds(r.step.Usage.UserCPU) }},
	{Path: "time.user.microseconds", Of: func(r *acctRow) data.Value { return micros(r.step.Usage.UserCPU) }},
	{Path: "exit_code", Of: func(r *acctRow) data.Value { return show.Exit(r.step.Exit, true) }},
	{Path: "nodes.count", Of: func(r *acctRow) data.Value { return data.Num(r.nodeCount()) }},
	{Path: "nodes.range", Of: func(r *acctRow) data.Value { return data.Text(r.nodeText()) }},
	{Path: "nodes.list", Of: func(r *acctRow) data.Value {
		names := make([]string, 0, len(r.step.Shares))
		for _, sh := range r.step.Shares {
			names = append(names, string(sh.Node))
		}
		return data.Words(names...)
	}},
	{Path: "tasks.count", Of: func(r *acctRow) data.Value { return data.Num(r.step.Tasks) }},
	{Path: "pid", Of: func(r *acctRow) data.Value { return data.Num(r.step.SrunPID) }},
	{Path: "CPU.requested_frequency.min", Of: func(*acctRow) data.Value { return data.Num(0) }},
	{Path: "CPU.requested_frequency.max", Of: func(*acctRow) data.Value { return data.Num(0) }},
	{Path: "CPU.governor", Of: func(r *acctRow) data.Value { return data.Text(values.ReqFreq(r.step).Governor) }},
	{Path: "kill_request_user", Of: func(r *acctRow) data.Value { return show.Killer(r.step.CancelledBy) }},
	{Path: "state", Of: func(r *acctRow) data.Value {
		word, _, _ := strings.Cut(r.stateText(), " ")
		return data.Words(word)
	}},
	{Path: "statistics.CPU.actual_frequency", Of: func(r *acctRow) data.Value {
		u := stepUse{Step: r.step}
		return data.Num(u.ave(cluster.MeasuredCPUFreq, false))
	}},
	{Path: "statistics.energy.consumed", Of: func(r *acctRow) data.Value {
		m, _ := r.step.Usage.Measured(cluster.MeasuredEnergy, false)
		return data.Num(m.Tot)
	}},
	{Path: "step.id", Of: func(r *acctRow) data.Value {
		return data.Text(r.ShownID() + "." + show.StepName(r.step.ID.Step))
	}},
	{Path: "step.name", Of: func(r *acctRow) data.Value { return data.Text(r.step.Name) }},
	{Path: "step.stderr"},
	{Path: "step.stdin"},
	{Path: "step.stdout"},
	{Path: "step.stderr_expanded"},
	{Path: "step.stdin_expanded"},
	{Path: "step.stdout_expanded"},
	{Path: "submit_line", Of: func(r *acctRow) data.Value { return data.Text(r.step.SubmitLine) }},
	{Path: "task.distribution", Of: func(r *acctRow) data.Value {
		if r.step.ID.Step < 0 {
			return data.Text("Unknown")
		}
		return data.Text(show.Distribution(r.step.Distribution, r.step.Tasks, len(r.step.Shares)))
	}},
	{Path: "tres.requested.max", Of: func(r *acctRow) data.Value { return usedTRES(r, false, maxUse) }},
	{Path: "tres.requested.min", Of: func(r *acctRow) data.Value { return usedTRES(r, false, minUse) }},
	{Path: "tres.requested.average", Of: func(r *acctRow) data.Value { return usedTRES(r, false, aveUse) }},
	{Path: "tres.requested.total", Of: func(r *acctRow) data.Value { return usedTRES(r, false, totUse) }},
	{Path: "tres.consumed.max", Of: func(r *acctRow) data.Value { return usedTRES(r, true, maxUse) }},
	{Path: "tres.consumed.min", Of: func(r *acctRow) data.Value { return usedTRES(r, true, minUse) }},
	{Path: "tres.consumed.average", Of: func(r *acctRow) data.Value { return usedTRES(r, true, aveUse) }},
	{Path: "tres.consumed.total", Of: func(r *acctRow) data.Value { return usedTRES(r, true, totUse) }},
	{Path: "tres.allocated", Of: func(r *acctRow) data.Value { return show.TRESList(r.View, r.allocTRES()) }},
}}

func maxUse(u *stepUse, m *cluster.Measure) int64 {
	return m.Max
}

func minUse(u *stepUse, m *cluster.Measure) int64 {
	return m.Min
}

func totUse(u *stepUse, m *cluster.Measure) int64 {
	return m.Tot
}

func aveUse(u *stepUse, m *cluster.Measure) int64 {
	return m.Tot / int64(max(u.Tasks, 1))
}

// usedTRES is what an ended step used: what it took in is requested in Slurm's words, what it gave out consumed.
// CPU time is in milliseconds, utilization in percent.
func usedTRES(r *acctRow, out bool, of func(*stepUse, *cluster.Measure) int64) data.Value {
	u := stepUse{Step: r.step}
	names := map[bool][]string{false: listedIn[:], true: listedOut[:]}[out]
	var rows []show.TRESRow
	for _, name := range names {
		m := u.get(name, out)
		if _, measured := u.Usage.Measured(name, out); u.Ended.IsZero() || !measured && strings.HasPrefix(name,
			"gres/") {
			continue
		}
		n := of(&u, &m)
		if name == cluster.MeasuredGPUUtil {
			n = (n + 50) / 100
		}
		rows = append(rows, show.NewTRES(r.View.AllBooks(), name, n))
	}
	return data.Records(&show.TRESTable, rows)
}

// startFlags tells which part of the scheduler has started a job, in the words of the schema.
func startFlags(r *acctRow) []string {
	if r.Job.Started.IsZero() {
		return nil
	}
	return []string{front.Choose(r.Backfilled, "STARTED_ON_BACKFILL", "STARTED_ON_SCHEDULE"), "START_RECEIVED"}
}
