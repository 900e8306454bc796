package control

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// jobRecord writes one job as scontrol show job does.
func (c *control) jobRecord(r *show.JobRow) {
	o, s := c.record(), r.Spec
	head := "JobId=" + front.UintText(uint32(r.ID))
	if r.ArrayID != 0 {
		head += " ArrayJobId=" + front.UintText(uint32(r.ArrayID)) + " ArrayTaskId=" + r.TaskText()
		if t := r.Throttle(); t > 0 {
			head += " ArrayTaskThrottle=" + strconv.Itoa(t)
		}
	}
	if r.Het != nil {
		head += " HetJobId=" + front.UintText(uint32(r.Het.ID)) + " HetJobOffset=" + strconv.Itoa(r.Het.Offset)
	}
	o.line(head, " JobName=", format.Null(s.Name))
	if r.Het != nil {
		o.line("HetJobIdSet=", show.HetSet(r.Het))
	}
	o.line("UserId=", s.User, "(", front.UintText(s.UID), ") GroupId=", r.Group(), "(",
		front.UintText(s.GID), ") MCS_label=", show.OrNA(s.MCSLabel))
	o.line("Priority=", front.UintText(r.Priority), " Nice=", strconv.Itoa(s.Nice), " Account=",
		format.Null(s.Account), " QOS=", format.Null(s.QOS), wckey(s))
	o.line("JobState=", r.State.Long, " Reason=", strings.ReplaceAll(r.Reason(), " ", "_"), " Dependency=",
		format.Null(r.DependsText()))
	o.line("Requeue=", show.Bit(r.Requeues()), " Restarts=", strconv.Itoa(r.Restarts), " BatchFlag=", show.Bit(s.Kind == cluster.Batch),
		" Reboot=", show.Bit(s.Reboot), " ExitCode=", show.ExitText(show.ShownExit(r)))
	if c.details {
		o.line("DerivedExitCode=", show.ExitText(r.Derived))
	}
	c.jobTimes(o, r)
	o.line("Partition=", r.Partition(), " AllocNode:Sid=", s.SubmitHost, ":", strconv.Itoa(s.AllocSid))
	o.line("ReqNodeList=", format.Null(front.NodeText(s.NodeList)), " ExcNodeList=",
		format.Null(front.NodeText(s.Exclude)))
	planned := ""
	if len(r.PlannedNodes) > 0 {
		planned = " SchedNodeList=" + front.NodeText(r.PlannedNodes)
	}
	o.line("NodeList=", r.Nodes(), planned)
	if n := r.FirstNode(); n != "" && (s.Kind == cluster.Batch || s.Kind == cluster.External) {
		o.line("BatchHost=", n)
	}
	if r.Fed != nil {
		p := &r.Fed.Part
		o.line("FedOrigin=", show.FedOrigin(r.View, p), " FedViableSiblings=", show.FedViable(r.View, p),
			" FedActiveSiblings=", show.FedActive(r.View, p))
	}
	c.jobSizes(o, r)
	c.jobFiles(o, r)
	if c.explains && !c.oneLine && r.Phase == cluster.Pending { // scripts take a line apart: one JobId= in it
		c.jobCauses(o, r)
	}
	o.line("")
	c.print(o)
}

// jobCauses writes what -d adds for a pending job that is asked for by its number: what muster why says.
func (c *control) jobCauses(o *record, r *show.JobRow) {
	resp, err := front.Call(c.sys, api.WhyJob, api.WhyRequest{Ref: cluster.Ref{Job: r.ID}})
	if err != nil {
		return // what it waits for is told all the same
	}
	for _, x := range resp.Causes {
		o.line("Why=", string(x.Reason), ": ", x.Text)
	}
	for _, h := range resp.Holders {
		job := ""
		if h.Job != nil {
			job = " JobId=" + front.UintText(uint32(h.Job.ID))
		}
		o.line("HeldBy=", front.NodeText(h.Nodes), job, " Until=", front.Stamp(h.Until))
	}
	for _, x := range resp.Changes {
		when := front.Stamp(x.StartsAt)
		if x.Now {
			when = "now"
		}
		o.line("Sooner=", x.Change, ": ", when)
	}
}

func wckey(s *cluster.JobSpec) string {
	if s.WCKey == "" {
		return ""
	}
	return " WCKey=" + s.WCKey
}

// jobTimes writes the lines of a job's times.
func (c *control) jobTimes(o *record, r *show.JobRow) {
	s := r.Spec
	unknown := func(t time.Time) string { return stamp(c, t, "Unknown") }
	none := func(t time.Time) string { return stamp(c, t, "None") }
	limitMin := "N/A"
	if s.LimitMin > 0 {
		limitMin = format.Padded(s.LimitMin)
	}
	o.line("RunTime=", format.Padded(r.Elapsed()), " TimeLimit=", format.Padded(r.Limit), " TimeMin=", limitMin)
	o.line("SubmitTime=", unknown(r.Submitted), " EligibleTime=", unknown(r.EligibleTime()))
	o.line("AccrueTime=", unknown(r.AccrueTime()))
	if at := r.ResizedAt(); !at.IsZero() {
		o.line("ResizeTime=", unknown(at))
	}
	o.line("StartTime=", unknown(r.Start()), " EndTime=", unknown(r.End()), " Deadline=",
		stamp(c, s.Deadline, "N/A"))
	if s.Cron != nil {
		o.line("CronJob=Yes CrontabSpec=\"", s.Cron.When, "\"")
	}
	if !r.Started.IsZero() && r.Phase != cluster.Pending {
		var at time.Time
		if r.Preempt != nil {
			at = r.Preempt.At
		}
		o.line("PreemptEligibleTime=", unknown(r.Started.Add(r.View.Config().Config.Preempt.Exempt)),
			" PreemptTime=", none(at))
	}
	sched := "Main"
	if r.Backfilled {
		sched = "Backfill"
	}
	if r.Phase == cluster.Pending && !r.LastEval.IsZero() {
		sched += ":*"
	}
	o.line("SuspendTime=", none(r.SuspendedAt), " SecsPreSuspend=", strconv.Itoa(int(r.PreSuspend/time.Second)),
		" LastSchedEval=", unknown(r.EvalTime()), " Scheduler=", sched)
}

// jobSizes writes the lines that say what was asked for and given.
func (c *control) jobSizes(o *record, r *show.JobRow) {
	s := r.Spec
	nodes := strconv.Itoa(r.NumNodes())
	if r.Phase == cluster.Pending && min(s.MinNodes, s.MaxNodes) > 0 && s.Array == nil {
		nodes += "-" + strconv.Itoa(max(s.MaxNodes, r.NumNodes()))
	}
	o.line("NumNodes=", nodes, " NumCPUs=", strconv.Itoa(r.NumCPUs()), " NumTasks=", strconv.Itoa(r.NumTasks()),
		" CPUs/Task=", strconv.Itoa(s.TaskCPUs()), " ReqB:S:C:T=0:0:", show.Star(s.CoresPerSocket), ":", show.Star(s.ThreadsPerCore))
	o.line("TRES=", r.TRES())
	left := " CoreSpec=" + strings.ReplaceAll(r.CoreSpec(), "N/A", "*")
	if s.ThreadSpec != nil {
		left = " ThreadSpec=" + strconv.Itoa(*s.ThreadSpec)
	}
	o.line("Socks/Node=", show.Star(s.SocketsPerNode), " NtasksPerN:B:S:C=", zero(s.TasksPerNode), ":0:",
		show.Star(s.TasksPerSocket), ":", show.Star(s.TasksPerCore), left)
	if c.details && r.Alloc != nil {
		c.jobNodes(o, r)
	}
	m := r.Memory()
	per := "Node"
	if m.Per == cluster.MemPerCPU {
		per = "CPU"
	}
	o.line("MinCPUsNode=", strconv.Itoa(r.MinCPUs()), " MinMemory", per, "=", r.View.Mem(r.MinMemory()),
		" MinTmpDiskNode=", r.View.Mem(cluster.MemMB(s.TmpMB)))
	o.line("Features=", format.Null(s.Constraint), " DelayBoot=", format.Padded(s.DelayBoot))
	if s.Features != "" {
		o.line("ClusterFeatures=", s.Features)
	}
	if s.Prefer != "" {
		o.line("Prefer=", s.Prefer)
	}
	if s.Reservation != "" {
		o.line("Reservation=", s.Reservation)
	}
	o.line("OverSubscribe=", r.Sharing(), " Contiguous=", show.Bit(s.Contiguous), " Licenses=",
		format.Null(s.Licenses), " Network=", format.Null(s.Network))
}

func zero(n int) string { return strconv.Itoa(n) }

// jobNodes writes what -d adds: what each node gives, like ones in one line.
func (c *control) jobNodes(o *record, r *show.JobRow) {
	kind := r.GPUType()
	o.line("JOB_GRES=", format.JobGRES(r.Alloc, kind, r.NumGPUs()))
	shares := r.Alloc.Shares
	for i := 0; i < len(shares); {
		k := i + 1
		for k < len(shares) && shares[k].GivesAs(&shares[i]) {
			k++
		}
		var names []cluster.NodeName
		for _, sh := range shares[i:k] {
			names = append(names, sh.Node)
		}
		var text []string
		if r.Phase != cluster.Ended {
			text = format.ShareGRES(&shares[i], kind)
		}
		o.line("  Nodes=", front.NodeText(names), " CPU_IDs=", shares[i].TaskCPUs().String(), " Mem=",
			strconv.FormatInt(int64(shares[i].MemMB), 10), " GRES=", strings.Join(text, ","))
		i = k
	}
}

// jobFiles writes the lines of commands and files, and the optional ones at the end.
func (c *control) jobFiles(o *record, r *show.JobRow) {
	s := r.Spec
	o.line("Command=", format.Null(r.Command()))
	o.line("WorkDir=", s.WorkDir)
	optional := func(name, value string) {
		if value != "" {
			o.line(name, "=", value)
		}
	}
	if s.AdminComment != "" {
		o.line("AdminComment=", s.AdminComment, " ")
	}
	jobSurvives(o, r)
	if r.SystemComment != "" {
		o.line("SystemComment=", r.SystemComment, " ")
	}
	if s.Comment != "" {
		o.line("Comment=", s.Comment, " ")
	}
	optional("Extra", s.Extra)
	if s.Kind == cluster.Batch {
		o.line("StdErr=", r.StdFile(2))
		o.line("StdIn=", r.StdFile(0))
		o.line("StdOut=", r.StdFile(1))
	}
	if asked := values.ParseFreq(s.CPUFreq).Shown(); asked != "" {
		o.line(asked, " ")
	}
	if s.Switches > 0 {
		o.line("Switches=", strconv.Itoa(s.Switches), "@",
			format.Padded(min(cmp.Or(s.SwitchWait, maxSwitchWait), maxSwitchWait)))
	}
	optional("BurstBuffer", s.BurstBuffer)
	optional("BurstBufferState", show.BurstState(r.Job))
	o.line("Power=", s.Power)
	if kept := bindingKept(s.GRESFlags); kept != "" || s.Spread {
		spread := ""
		if s.Spread {
			spread = "SpreadJob=Yes"
		}
		o.line(kept, spread)
	}
	optional("CpusPerTres", r.CPUsPerTRES())
	optional("MemPerTres", r.MemPerTRES())
	if s.GPUBind != "" {
		o.line("TresBind=gpu:", s.GPUBind)
	}
	if s.GPUFreq != "" {
		o.line("TresFreq=gpu:", s.GPUFreq)
	}
	optional("TresPerJob", format.GRES(s.PerJob))
	optional("TresPerNode", format.GRES(s.PerNode))
	optional("TresPerSocket", format.GRES(s.PerSocket))
	optional("TresPerTask", format.GRES(s.PerTask))
	if s.TasksPerGPU > 0 {
		o.line("NtasksPerTRES=", strconv.Itoa(s.TasksPerGPU))
	}
	if len(s.MailType) > 0 {
		o.line("MailUser=", format.Null(s.MailUser), " MailType=", strings.Join(s.MailType, ","))
	}
}

// bindingKept tells whether a job's GPUs must be near its CPUs, if --gres-flags said so; 22.05 leaves no blank
// behind it.
func bindingKept(flags string) string {
	switch {
	case strings.Contains(flags, "enforce-binding"):
		return "GresEnforceBind=Yes"
	case strings.Contains(flags, "disable-binding"):
		return "GresEnforceBind=No"
	}
	return ""
}

// rowsOf are the records of jobs.
func rowsOf(v *show.View, jobs []*cluster.Job) []show.JobRow {
	rows := make([]show.JobRow, 0, len(jobs))
	for _, j := range jobs {
		rows = append(rows, show.NewRow(v, j))
	}
	return rows
}

// showJobs is scontrol show job [ID].
func (c *control) showJobs(arg string) int {
	q := api.JobQuery{Listed: !c.all}
	if arg != "" {
		t, ok := front.ParseTarget(arg)
		if !ok {
			return c.complain("scontrol_print_job error: Invalid job id specified")
		}
		q.Refs, q.Starts, c.explains = []cluster.Ref{t.Ref}, true, c.details
	}
	resp, err := front.Call(c.sys, api.ListJobs, q)
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_jobs error", err)
	}
	v := c.view(resp.Now)
	rows := rowsOf(v, resp.Jobs)
	if c.fed.Wants(c.clusters, resp.Federal) {
		rows = show.FederalRows(v, q, c.fed.Sibling, rows, rowsOf)
	}
	if c.data.On {
		return show.WriteJobs(c.out, v, &c.data, rows)
	}
	switch {
	case len(rows) == 0 && strings.Contains(arg, "+"):
		_, _ = c.out.WriteString("Job " + arg + " not found\n")
		return 1
	case len(rows) == 0 && arg != "":
		return c.complain("slurm_load_jobs error: Invalid job id specified")
	case len(rows) == 0:
		_, _ = c.out.WriteString("No jobs in the system\n")
		return 0
	}
	for _, r := range rows {
		j := r.Job
		if len(q.Refs) == 1 && !q.Refs[0].Tasks.Empty() && !j.Tasks.Empty() {
			one := *j
			one.Tasks = j.Tasks.Intersect(q.Refs[0].Tasks)
			if one.Tasks.Len() == 1 {
				one.Task, one.Tasks = one.Tasks.Min(), cluster.IDSet{}
			}
			r = show.NewRow(r.View, &one)
		}
		c.jobRecord(&r)
	}
	return 0
}

// jobSurvives writes what a job asks for against faults, and its last checkpoint: muster's own lines.
func jobSurvives(o *record, r *show.JobRow) {
	asked, known := r.Spec.Survives(), cluster.Survived(r.Job)
	if asked != (cluster.Resilience{}) {
		o.line("Hang=", cmp.Or(asked.Hang, "default"), " Straggler=",
			cmp.Or(string(asked.Straggler), "default"), " Chain=", upperYesNo(asked.Chain), " CheckpointSignal=",
			upperYesNo(asked.SavesOnSignal), " CheckpointFile=", format.Null(asked.CheckpointFile))
	}
	if asked.Spares > 0 {
		names := front.NodeText(cluster.SpareNodes(r.Job))
		o.line("SpareNodes=", strconv.Itoa(asked.Spares), " SpareNodeList=", format.Null(names),
			" SpareRestart=", cmp.Or(string(asked.Restart), string(cluster.RestartStep)))
	}
	if lost := cluster.LostNodes(r.Job); len(lost) > 0 {
		o.line("LostNodes=", front.NodeText(lost), " ReplacedBy=",
			format.Null(front.NodeText(cluster.ReplacedNodes(r.Job))))
	}
	if saved := known.Saved; saved != nil {
		o.line("LastCheckpoint=", format.Stamp(saved.At, ""), " Checkpoints=", strconv.Itoa(saved.Count),
			" CheckpointName=", format.Null(saved.Path))
	}
}
