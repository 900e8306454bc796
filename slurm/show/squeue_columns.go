package show

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/jobfield"
)

// allJobFields is what %all stands for.
const allJobFields = "%a|%b|%c|%d|%e|%f|%g|%h|%i|%j|%k|%l|%m|%n|%o|%p|%q|%r|%s|%t|%u|%v|%w|%x|%y|%z|" +
	"%A|%B|%C|%D|%E|%F|%G|%H|%I|%J|%K|%L|%M|%N|%O|%P|%Q|%R|%S|%T|%U|%V|%W|%X|%Y|%Z"

// jobColumns are the fields of squeue: the letters of -o and the names of -O. Those of which a row of jobfield says all
// come behind the others.
func jobColumns() []format.Column[JobRow] { return allJobColumns.get(buildJobColumns) }

var allJobColumns lazy[[]format.Column[JobRow]]

func buildJobColumns() []format.Column[JobRow] {
	list := slices.Clone(ownColumns)
	for i := range jobfield.Rows {
		if row := &jobfield.Rows[i]; row.Column.Long != "" {
			list = append(list, columnOf(row))
		}
	}
	return list
}

// columnOf is the column of a row.
func columnOf(row *jobfield.Row) format.Column[JobRow] {
	c := format.Column[JobRow]{Code: row.Column.Code, Long: row.Column.Long, Head: row.Column.Head}
	switch row.Form {
	case jobfield.Text:
		at := jobfield.In[string](row)
		c.Of = func(r *JobRow) string { return format.Null(*at(r.Spec)) }
	case jobfield.Count:
		at := jobfield.In[int](row)
		c.Of = func(r *JobRow) string { return strconv.Itoa(*at(r.Spec)) }
	case jobfield.Flag:
		at := jobfield.In[bool](row)
		c.Of = func(r *JobRow) string { return Bit(*at(r.Spec)) }
	}
	return c
}

// ownColumns are those that take more than the value of a field.
var ownColumns = []format.Column[JobRow]{
	{Code: 'A', Long: "jobid", Head: "JOBID", Of: func(r *JobRow) string { return front.UintText(uint32(r.ID)) }},
	{Code: 'b', Long: "tres-per-node gres", Head: "TRES_PER_NODE",
		Of: func(r *JobRow) string { return OrNA(format.GRES(r.Spec.PerNode)) }},
	{Code: 'B', Long: "batchhost", Head: "EXEC_HOST",
		Of: func(r *JobRow) string { return cmp.Or(r.FirstNode(), "n/a") }},
	{Code: 'c', Long: "mincpus", Head: "MIN_CPUS", Of: func(r *JobRow) string { return strconv.Itoa(r.MinCPUs()) }},
	{Code: 'C', Long: "numcpus", Head: "CPUS", Of: func(r *JobRow) string { return strconv.Itoa(r.NumCPUs()) }},
	{Code: 'd', Long: "mintmpdisk", Head: "MIN_TMP_DISK",
		Of: func(r *JobRow) string { return r.View.Mem(cluster.MemMB(r.Spec.TmpMB)) }},
	{Code: 'D', Long: "numnodes", Head: "NODES", Of: func(r *JobRow) string { return strconv.Itoa(r.NumNodes()) }},
	{Code: 'e', Long: "endtime", Head: "END_TIME", Of: func(r *JobRow) string { return r.View.When(r.End()) }},
	{Code: 'E', Long: "dependency", Head: "DEPENDENCY",
		Of: func(r *JobRow) string { return format.Null(r.DependsText()) }},
	{
		Code: 'F', Long: "arrayjobid", Head: "ARRAY_JOB_ID",
		Of: func(r *JobRow) string { return front.UintText(uint32(cmp.Or(r.ArrayID, r.ID))) },
	},
	{Code: 'g', Long: "groupname", Head: "GROUP", Of: func(r *JobRow) string { return r.Group() }},
	{Code: 'G', Long: "groupid", Head: "GROUP", Of: func(r *JobRow) string { return front.UintText(r.Spec.GID) }},
	{Code: 'h', Long: "oversubscribe", Head: "OVER_SUBSCRIBE", Of: func(r *JobRow) string { return r.Sharing() }},
	{
		Code: 'H', Long: "sockets", Head: "SOCKETS_PER_NODE",
		Of: func(r *JobRow) string { return Star(r.Spec.SocketsPerNode) },
	},
	{Code: 'i', Long: "jobarrayid", Head: "JOBID", Of: func(r *JobRow) string { return r.ShownID() }},
	{
		Code: 'I', Long: "cores", Head: "CORES_PER_SOCKET",
		Of: func(r *JobRow) string { return Star(r.Spec.CoresPerSocket) },
	},
	{Code: 'j', Long: "name", Head: "NAME", Of: func(r *JobRow) string { return r.Spec.Name }},
	{
		Code: 'J', Long: "threads", Head: "THREADS_PER_CORE",
		Of: func(r *JobRow) string { return Star(r.Spec.ThreadsPerCore) },
	},
	{Code: 'K', Long: "arraytaskid", Head: "ARRAY_TASK_ID", Of: func(r *JobRow) string { return r.TaskText() }},
	{
		Code: 'l', Long: "timelimit", Head: "TIME_LIMIT", Whole: true,
		Of: func(r *JobRow) string { return format.Duration(r.Limit) },
	},
	{
		Code: 'L', Long: "timeleft", Head: "TIME_LEFT", Whole: true,
		Of: func(r *JobRow) string { return format.Duration(r.timeLeft()) },
	},
	{Code: 'm', Long: "minmemory", Head: "MIN_MEMORY", Of: func(r *JobRow) string { return r.View.Mem(r.MinMemory()) }},
	{
		Code: 'M', Long: "timeused", Head: "TIME", Whole: true,
		Of: func(r *JobRow) string { return format.Duration(r.Elapsed()) },
	},
	{
		Code: 'n', Long: "reqnodes", Head: "REQ_NODES", Whole: true,
		Of: func(r *JobRow) string { return front.NodeText(r.Spec.NodeList) },
	},
	{Code: 'N', Long: "nodelist", Head: "NODELIST", Whole: true, Of: func(r *JobRow) string { return r.Nodes() }},
	{Code: 'o', Long: "command", Head: "COMMAND", Of: func(r *JobRow) string { return format.Null(r.Command()) }},
	{Code: 'p', Long: "priority", Head: "PRIORITY", Of: func(r *JobRow) string {
		return strconv.FormatFloat(float64(r.Priority)/float64(1<<32-1), 'f', 14, 64)
	}},
	{Code: 'P', Long: "partition", Head: "PARTITION", Of: func(r *JobRow) string { return r.Partition() }},
	{
		Code: 'Q', Long: "prioritylong", Head: "PRIORITY",
		Of: func(r *JobRow) string { return front.UintText(r.Priority) },
	},
	{Code: 'r', Long: "reason", Head: "REASON", Of: func(r *JobRow) string { return r.Reason() }},
	{
		Code: 'R', Long: "reasonlist", Head: "NODELIST(REASON)", Whole: true,
		Of: func(r *JobRow) string { return r.NodesOrReason() },
	},
	{Code: 's', Long: "selectjobinfo", Head: "", Of: func(r *JobRow) string { return "" }},
	{Code: 'S', Long: "starttime", Head: "START_TIME", Of: func(r *JobRow) string { return r.View.When(r.Start()) }},
	{Code: 't', Long: "statecompact", Head: "ST", Of: func(r *JobRow) string { return r.State.Short }},
	{Code: 'T', Long: "state", Head: "STATE", Of: func(r *JobRow) string { return r.State.Long }},
	{Code: 'u', Long: "username", Head: "USER", Of: func(r *JobRow) string { return r.Spec.User }},
	{Code: 'U', Long: "userid", Head: "UID", Of: func(r *JobRow) string { return front.UintText(r.Spec.UID) }},
	{
		Code: 'V', Long: "submittime", Head: "SUBMIT_TIME",
		Of: func(r *JobRow) string { return r.View.When(r.Submitted) },
	},
	{
		Code: 'x', Long: "excnodes", Head: "EXC_NODES", Whole: true,
		Of: func(r *JobRow) string { return front.NodeText(r.Spec.Exclude) },
	},
	{Code: 'X', Long: "corespec", Head: "CORE_SPEC", Of: func(r *JobRow) string { return r.CoreSpec() }},
	{Code: 'y', Long: "nice", Head: "NICE", Of: func(r *JobRow) string { return strconv.Itoa(r.Spec.Nice) }},
	{
		Code: 'Y', Long: "schednodes", Head: "SCHEDNODES", Whole: true,
		Of: func(r *JobRow) string { return format.Null(front.NodeText(r.PlannedNodes)) },
	},
	{Code: 'z', Long: "sct", Head: "S:C:T", Of: func(r *JobRow) string {
		return Star(r.Spec.SocketsPerNode) + ":" + Star(r.Spec.CoresPerSocket) + ":" + Star(r.Spec.ThreadsPerCore)
	}},
	{Code: 'Z', Long: "workdir", Head: "WORK_DIR", Of: func(r *JobRow) string { return r.Spec.WorkDir }},

	{Long: "accruetime", Head: "ACCRUE_TIME", Of: func(r *JobRow) string { return r.View.When(r.AccrueTime()) }},
	{Long: "allocnodes", Head: "ALLOC_NODES", Of: func(r *JobRow) string { return r.Spec.SubmitHost }},
	{Long: "allocsid", Head: "ALLOC_SID", Of: func(r *JobRow) string { return strconv.Itoa(r.Spec.AllocSid) }},
	{Long: "associd", Head: "ASSOC_ID", Of: func(r *JobRow) string { return front.UintText(uint32(r.Job.Assoc)) }},
	{Long: "batchflag", Head: "BATCH_FLAG", Of: func(r *JobRow) string { return Bit(r.Spec.Kind == cluster.Batch) }},
	{Long: "boardspernode", Head: "BOARDS_PER_NODE", Of: func(r *JobRow) string { return "0" }},
	{Long: "burstbufferstate", Head: "BURST_BUFFER_STATE",
		Of: func(r *JobRow) string { return format.Null(BurstState(r.Job)) }},
	{Long: "cluster", Head: "CLUSTER", Of: func(r *JobRow) string { return ClusterOf(r.View) }},
	{Long: "container", Head: "CONTAINER", Of: func(r *JobRow) string { return format.Null(image(r)) }},
	{Long: "containerid", Head: "CONTAINERID", Of: func(*JobRow) string { return "(null)" }},
	{Long: "containertype", Head: "CONTAINERTYPE", Of: func(*JobRow) string { return "(null)" }},
	{
		Long: "cpus-per-task cpuspertask", Head: "CPUS_PER_TASK",
		Of: func(r *JobRow) string { return strconv.Itoa(r.Spec.TaskCPUs()) },
	},
	{Long: "cpus-per-tres", Head: "CPUS_PER_TRES", Of: func(r *JobRow) string { return OrNA(r.CPUsPerTRES()) }},
	{Long: "cronjob", Head: "CRON_JOB",
		Of: func(r *JobRow) string { return front.Choose(r.Spec.Cron == nil, "No", "Yes") }},
	{Long: "deadline", Head: "DEADLINE", Of: func(r *JobRow) string { return r.View.When(r.Spec.Deadline) }},
	{
		Long: "delayboot", Head: "DELAY_BOOT", Whole: true,
		Of: func(r *JobRow) string { return format.Duration(r.Spec.DelayBoot) },
	},
	{Long: "derivedec", Head: "DERIVED_EC", Of: func(r *JobRow) string { return strconv.Itoa(waitStatus(r.Derived)) }},
	{Long: "eligibletime", Head: "ELIGIBLE_TIME", Of: func(r *JobRow) string { return r.View.When(r.EligibleTime()) }},
	{Long: "exclusive", Head: "EXCLUSIVE",
		Of: func(r *JobRow) string { return ExclusiveWord(r.shares()) }},
	{Long: "exit_code", Head: "EXIT_CODE", Of: func(r *JobRow) string { return strconv.Itoa(waitStatus(r.Exit)) }},
	{Long: "hetjobid", Head: "HET_JOB_ID", Of: func(r *JobRow) string {
		return r.het(func(h *cluster.HetPart) string { return front.UintText(uint32(h.ID)) })
	}},
	{Long: "hetjobidset", Head: "HET_JOB_ID_SET", Of: func(r *JobRow) string { return r.het(HetSet) }},
	{Long: "hetjoboffset", Head: "HET_JOB_OFFSET", Of: func(r *JobRow) string {
		return r.het(func(h *cluster.HetPart) string { return strconv.Itoa(h.Offset) })
	}},
	{Long: "lastschedeval", Head: "LAST_SCHED_EVAL", Of: func(r *JobRow) string { return r.View.When(r.EvalTime()) }},
	{Long: "licensesalloc", Head: "LICENSES_ALLOC",
		Of: func(r *JobRow) string { return format.Null(heldLicenses(r)) }},
	{Long: "maxcpus", Head: "MAX_CPUS", Of: func(r *JobRow) string { return strconv.Itoa(r.NumCPUs()) }},
	{
		Long: "maxnodes", Head: "MAX_NODES",
		Of: func(r *JobRow) string { return strconv.Itoa(max(r.Spec.MaxNodes, r.NumNodes())) },
	},
	{Long: "mem-per-tres", Head: "MEM_PER_TRES", Of: func(r *JobRow) string { return OrNA(r.MemPerTRES()) }},
	{
		Long: "mintime", Head: "TIME_MIN", Whole: true,
		Of: func(r *JobRow) string { return format.Duration(r.Spec.LimitMin) },
	},
	{Long: "ntperboard", Head: "NTASKS_PER_BOARD", Of: func(r *JobRow) string { return "0" }},
	{Long: "ntpercore", Head: "NTASKS_PER_CORE", Of: func(r *JobRow) string { return countNA(r.Spec.TasksPerCore) }},
	{
		Long: "ntpersocket", Head: "NTASKS_PER_SOCKET",
		Of: func(r *JobRow) string { return countNA(r.Spec.TasksPerSocket) },
	},
	{Long: "numtasks", Head: "TASKS", Of: func(r *JobRow) string { return strconv.Itoa(r.NumTasks()) }},
	{Long: "origin", Head: "ORIGIN", Of: func(r *JobRow) string { return shared(r, FedOrigin) }},
	{Long: "originraw", Head: "ORIGIN_RAW",
		Of: func(r *JobRow) string { return shared(r, originNumber) }},
	{
		Long: "pendingtime", Head: "PENDING_TIME",
		Of: func(r *JobRow) string { return strconv.Itoa(int(r.pendingTime() / time.Second)) },
	},
	{Long: "preempttime", Head: "PREEMPT_TIME", Of: func(r *JobRow) string {
		if r.Preempt == nil || r.Phase == cluster.Pending {
			return "N/A"
		}
		return r.View.When(r.Preempt.At)
	}},
	{Long: "profile", Head: "PROFILE", Of: func(r *JobRow) string { return cmp.Or(r.Spec.Profile, "NotSet") }},
	{Long: "requeue", Head: "REQUEUE", Of: func(r *JobRow) string { return Bit(r.Requeues()) }},
	{Long: "resizetime", Head: "RESIZE_TIME", Of: func(r *JobRow) string { return r.View.When(r.ResizedAt()) }},
	{Long: "restartcnt", Head: "RESTART_COUNT", Of: func(r *JobRow) string { return strconv.Itoa(r.Restarts) }},
	{Long: "segmentsize", Head: "SEGMENT_SIZE",
		Of: func(r *JobRow) string { return countNA(r.Spec.Segment) }},
	{Long: "siblingsactive", Head: "ACTIVE_SIBLINGS", Of: func(r *JobRow) string { return shared(r, FedActive) }},
	{Long: "siblingsactiveraw", Head: "ACTIVE_SIBLINGS_RAW",
		Of: func(r *JobRow) string { return shared(r, activeNumbers) }},
	{Long: "siblingsviable", Head: "VIABLE_SIBLINGS", Of: func(r *JobRow) string { return shared(r, FedViable) }},
	{Long: "siblingsviableraw", Head: "VIALBLE_SIBLINGS_RAW",
		Of: func(r *JobRow) string { return shared(r, viableNumbers) }},
	{Long: "sluid", Head: "SLUID", Of: func(*JobRow) string { return "N/A" }},
	{Long: "sperboard", Head: "SOCKETS_PER_BOARD", Of: func(r *JobRow) string { return "0" }},
	{Long: "stderr", Head: "STDERR", Of: func(r *JobRow) string { return r.StdFile(2) }},
	{Long: "stdin", Head: "STDIN", Of: func(r *JobRow) string { return r.StdFile(0) }},
	{Long: "stdout", Head: "STDOUT", Of: func(r *JobRow) string { return r.StdFile(1) }},
	{Long: "system_comment", Head: "SYSTEM_COMMENT", Of: func(r *JobRow) string { return "(null)" }},
	{Long: "tres-alloc tres", Head: "TRES_ALLOC", Of: func(r *JobRow) string { return r.TRES() }},
	{Long: "tres-bind", Head: "TRES_BIND", Of: func(r *JobRow) string { return OrNA(r.Spec.GPUBind) }},
	{Long: "tres-freq", Head: "TRES_FREQ", Of: func(r *JobRow) string { return OrNA(r.Spec.GPUFreq) }},
	{
		Long: "tres-per-job", Head: "TRES_PER_JOB",
		Of: func(r *JobRow) string { return OrNA(format.GRES(r.Spec.PerJob)) },
	},
	{
		Long: "tres-per-socket", Head: "TRES_PER_SOCKET",
		Of: func(r *JobRow) string { return OrNA(format.GRES(r.Spec.PerSocket)) },
	},
	{
		Long: "tres-per-task", Head: "TRES_PER_TASK",
		Of: func(r *JobRow) string { return OrNA(format.GRES(r.Spec.PerTask)) },
	},
	{
		Long: "wait4switch", Head: "WAIT4SWITCH", Whole: true,
		Of: func(r *JobRow) string { return format.Duration(r.Spec.SwitchWait) },
	},
}

// Bit is 1 or 0.
func Bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func countNA(n int) string {
	if n == 0 {
		return "N/A"
	}
	return strconv.Itoa(n)
}

// ExclusiveWord is what 26.05 shows of a job that keeps others off its nodes.
func ExclusiveWord(s cluster.Sharing) string {
	switch s {
	case cluster.ShareExclusive:
		return "NODE"
	case cluster.ShareUser, cluster.ShareMCS:
		return SharingTexts[s]
	}
	return "NO"
}

// heldLicenses are the licenses that the job has now.
func heldLicenses(r *JobRow) string {
	if r.Alloc == nil || r.over() {
		return ""
	}
	return r.Spec.Licenses
}

// waitStatus is a status as wait(2) gives it.
func waitStatus(e cluster.ExitStatus) int { return e.Code<<8 | e.Signal }

// Requeues reports whether the job goes back into the queue when its nodes are lost.
func (r *JobRow) Requeues() bool { return r.Spec.Requeue != nil && *r.Spec.Requeue }

// EvalTime is when the scheduler last looked at the job.
func (r *JobRow) EvalTime() time.Time {
	if r.LastEval.IsZero() {
		return cmp.Or(r.Started, r.Submitted)
	}
	return r.LastEval
}

func (r *JobRow) pendingTime() time.Duration {
	if r.Started.IsZero() {
		return r.View.Now.Sub(r.Submitted)
	}
	return r.Started.Sub(r.Submitted)
}

// TaskText is a task's number in its array, or those of the tasks that wait.
func (r *JobRow) TaskText() string {
	switch {
	case r.ArrayID == 0:
		return "N/A"
	case r.Task >= 0:
		return strconv.Itoa(r.Task)
	case r.lastTask():
		return r.Tasks.String()
	}
	return format.ShortTasks(r.Tasks, r.Throttle())
}

// CoreSpec is what the job leaves to the system of each node.
func (r *JobRow) CoreSpec() string {
	switch s := r.Spec; {
	case s.CoreSpec != nil:
		return strconv.Itoa(*s.CoreSpec)
	case s.ThreadSpec != nil:
		return strconv.Itoa(*s.ThreadSpec) + " Threads"
	}
	return "N/A"
}

// CPUsPerTRES is --cpus-per-gpu.
func (r *JobRow) CPUsPerTRES() string {
	if r.Spec.CPUsPerGPU == 0 {
		return ""
	}
	return perGPU(r.Spec.ByDefault&cluster.CPUsPerGPUByDefault != 0) + strconv.Itoa(r.Spec.CPUsPerGPU)
}

// MemPerTRES is --mem-per-gpu.
func (r *JobRow) MemPerTRES() string {
	if r.Spec.Mem.Per != cluster.MemPerGPU {
		return ""
	}
	return perGPU(r.Spec.ByDefault&cluster.MemPerGPUByDefault != 0) + strconv.FormatInt(int64(r.Spec.Mem.MB), 10)
}

// perGPU begins what is given for each GPU: Slurm writes it in another way if it was not asked for.
func perGPU(byDefault bool) string { return front.Choose(byDefault, "gpu:", "gres:gpu:") }

// allStepFields is what %all stands for with --steps.
const allStepFields = "%A|%i|%j|%l|%M|%N|%P|%S|%u|%U"

// StepRow is one line of squeue --steps.
type StepRow struct {
	*cluster.Step
	Job JobRow
}

// stepColumns are the fields of squeue --steps.
var stepColumns = []format.Column[StepRow]{
	{Code: 'A', Long: "numtasks", Head: "TASKS", Of: func(s *StepRow) string { return strconv.Itoa(s.Tasks) }},
	{Code: 'i', Long: "stepid", Head: "STEPID", Of: func(s *StepRow) string { return s.ShownID() }},
	{Code: 'j', Long: "stepname", Head: "NAME", Of: func(s *StepRow) string { return s.Name }},
	{
		Code: 'l', Long: "timelimit", Head: "TIME_LIMIT", Whole: true,
		Of: func(s *StepRow) string { return format.Duration(s.TimeLimit()) },
	},
	{
		Code: 'M', Long: "timeused", Head: "TIME", Whole: true,
		Of: func(s *StepRow) string { return format.Duration(s.runTime()) },
	},
	{
		Code: 'N', Long: "nodes", Head: "NODELIST", Whole: true,
		Of: func(s *StepRow) string { return front.NodeText(s.NodeNames()) },
	},
	{Code: 'P', Long: "partition", Head: "PARTITION", Of: func(s *StepRow) string { return s.Job.Partition() }},
	{
		Code: 'S', Long: "starttime", Head: "START_TIME",
		Of: func(s *StepRow) string { return s.Job.View.When(s.Started) },
	},
	{Code: 'u', Long: "username", Head: "USER", Of: func(s *StepRow) string { return cmp.Or(s.User, s.Job.Spec.User) }},
	{Code: 'U', Long: "userid", Head: "UID", Of: func(s *StepRow) string { return front.UintText(s.Job.Spec.UID) }},
	{
		Long: "arrayjobid", Head: "ARRAY_JOB_ID",
		Of: func(s *StepRow) string { return front.UintText(uint32(s.Job.ArrayID)) },
	},
	{Long: "arraytaskid", Head: "ARRAY_TASK_ID", Of: func(s *StepRow) string { return s.Job.TaskText() }},
	{Long: "cluster", Head: "CLUSTER", Of: func(s *StepRow) string { return s.Job.View.Config().Config.ClusterName }},
	{Long: "container", Head: "CONTAINER", Of: func(s *StepRow) string { return "(null)" }},
	{Long: "cpufreq", Head: "CPU_FREQ", Of: func(s *StepRow) string { return "Unknown-Unknown:Unknown" }},
	{Long: "cpus-per-tres", Head: "CPUS_PER_TRES", Of: func(s *StepRow) string { return format.Null(s.CPUsPerTRES()) }},
	{Long: "jobid", Head: "JOB_ID", Of: func(s *StepRow) string { return front.UintText(uint32(s.ID.Job)) }},
	{Long: "mem-per-tres", Head: "MEM_PER_TRES", Of: func(s *StepRow) string { return format.Null(s.MemPerTRES()) }},
	{Long: "network", Head: "NETWORK", Of: func(s *StepRow) string { return "(null)" }},
	{Long: "numcpus", Head: "NUM_CPUS", Of: func(s *StepRow) string { return strconv.Itoa(s.CPUs()) }},
	{Long: "resvports", Head: "RESERVED_PORTS", Of: func(s *StepRow) string { return format.Null(s.Ports) }},
	{Long: "stepstate", Head: "STATE", Of: func(s *StepRow) string { return "RUNNING" }},
	{Long: "tres-bind", Head: "TRES_BIND", Of: func(s *StepRow) string { return format.Null(s.TRESBind()) }},
	{Long: "tres-freq", Head: "TRES_FREQ", Of: func(s *StepRow) string { return "(null)" }},
	{
		Long: "tres-per-step tres-per-job", Head: "TRES_PER_STEP",
		Of: func(s *StepRow) string { return format.Null(s.PerStep()) },
	},
	{
		Code: 'b', Long: "tres-per-node", Head: "TRES_PER_JOB",
		Of: func(s *StepRow) string { return format.Null(s.PerNode()) },
	},
	{
		Long: "tres-per-socket", Head: "TRES_PER_SOCKET",
		Of: func(s *StepRow) string { return format.Null(format.GRES(s.AskedOf().PerSocket)) },
	},
	{Long: "tres-per-task", Head: "TRES_PER_TASK", Of: func(s *StepRow) string { return format.Null(s.PerTask()) }},
}

// StepName is what stands behind the point of a step's id.
func StepName(step int) string {
	switch step {
	case cluster.BatchStep:
		return "batch"
	case cluster.ExternStep:
		return "extern"
	case cluster.InteractiveStep:
		return "interactive"
	}
	return strconv.Itoa(step)
}

// StepTarget reads JOB[.STEP], where a step may be one without a number, such as batch.
func StepTarget(arg string) (front.Target, bool) {
	job, name, _ := strings.Cut(arg, ".")
	for _, own := range [...]int{cluster.BatchStep, cluster.ExternStep, cluster.InteractiveStep} {
		if name == StepName(own) {
			t, ok := front.ParseTarget(job)
			t.Step = &own
			return t, ok
		}
	}
	return front.ParseTarget(arg)
}

// ShownID is how users write the step: 42.0, 42.batch.
func (s *StepRow) ShownID() string {
	job := s.Job.ShownID()
	if s.Job.Het != nil { // as Slurm does, for steps alone
		job = front.UintText(uint32(s.Job.ID))
	}
	return job + "." + StepName(s.ID.Step)
}

// TimeLimit is the step's own limit.
func (s *StepRow) TimeLimit() time.Duration {
	if s.Limit == 0 {
		return cluster.Unlimited
	}
	return s.Limit
}

func (s *StepRow) runTime() time.Duration { return max(s.Job.View.Now.Sub(s.Started), 0) }

// NodeNames are the step's nodes.
func (s *StepRow) NodeNames() (names []cluster.NodeName) {
	for _, sh := range s.Shares {
		names = append(names, sh.Node)
	}
	return names
}

// CPUs is how many CPUs the step has.
func (s *StepRow) CPUs() (n int) {
	if s.ID.Step < 0 {
		return 0
	}
	for _, sh := range s.Shares {
		n += sh.CPUs.Len()
	}
	return n
}

// AskedOf is what the step asked for of GPUs and for tasks.
func (s *StepRow) AskedOf() cluster.StepAsked {
	if s.Asked == nil {
		return cluster.StepAsked{}
	}
	return *s.Asked
}

// hasGPUs: only of a step with devices Slurm tells what it asked for.
func (s *StepRow) hasGPUs() bool {
	return slices.ContainsFunc(s.Shares, func(sh cluster.Share) bool { return !sh.GPUs.Empty() })
}

// PerStep is what it has in all: a CPU for each task, or more, or those of its GPUs, and what --gpus asks for.
func (s *StepRow) PerStep() string {
	if s.ID.Step < 0 || !s.hasGPUs() {
		return ""
	}
	a := s.AskedOf()
	if a.CPUsPerGPU > 0 && len(a.PerTask) > 0 { // Slurm has these CPUs by task
		return format.GRES(a.PerJob)
	}
	gpus := 0
	for _, sh := range s.Shares {
		gpus += sh.GPUs.Len()
	}
	cpus := max(s.Tasks*max(a.CPUsPerTask, 1), gpus*a.CPUsPerGPU)
	return withComma("cpu:"+strconv.Itoa(cpus), format.GRES(a.PerJob))
}

// PerNode is what it asked for on each node, else what its job did.
func (s *StepRow) PerNode() string {
	switch {
	case !s.hasGPUs() || s.ID.Step < 0:
		return ""
	case len(s.AskedOf().PerNode) > 0 || s.Job.Spec.Layout == nil:
		return format.GRES(s.AskedOf().PerNode)
	}
	return format.GRES(s.Job.Spec.PerNode)
}

// PerTask is what it asked for each task.
func (s *StepRow) PerTask() string {
	a := s.AskedOf()
	if a.CPUsPerTask == 0 || !s.hasGPUs() {
		return format.GRES(a.PerTask)
	}
	return withComma("cpu:"+strconv.Itoa(a.CPUsPerTask), format.GRES(a.PerTask))
}

// TRESBind is --gpu-bind, and what --gpus-per-task means by itself.
func (s *StepRow) TRESBind() string {
	a := s.AskedOf()
	switch {
	case a.GPUBind != "":
		return "gpu:" + strings.TrimPrefix(a.GPUBind, "gpu:")
	case len(a.PerTask) > 0:
		return "gpu:per_task:" + strconv.FormatInt(a.PerTask[0].Count, 10)
	}
	return ""
}

// CPUsPerTRES is the step's --cpus-per-gpu.
func (s *StepRow) CPUsPerTRES() string {
	if n := s.AskedOf().CPUsPerGPU; n > 0 {
		return "gres:gpu:" + strconv.Itoa(n)
	}
	return ""
}

// MemPerTRES is the step's --mem-per-gpu.
func (s *StepRow) MemPerTRES() string {
	if mb := s.AskedOf().MemPerGPU; mb > 0 {
		return "gres:gpu:" + strconv.FormatInt(int64(mb), 10)
	}
	return ""
}

// withComma puts a comma between two texts, if there are two.
func withComma(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}

// StdFile is where one of the three standard files of a batch job is.
func (r *JobRow) StdFile(fd int) string { return env.File(r.Job, fd) }
