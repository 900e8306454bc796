package show

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/jobfield"
)

// Minutes is a time limit in minutes; none is set where it is 0.
func Minutes(d time.Duration) data.Value {
	if d == cluster.Unlimited {
		return data.Infinite
	}
	return data.Or(int64(d / time.Minute))
}

// Unix is a moment in seconds, 0 where it is not known.
func Unix(t time.Time) data.Value {
	if t.IsZero() {
		return data.Num(0)
	}
	return data.Num(t.Unix())
}

// Seconds are those of a duration.
func Seconds(d time.Duration) data.Value { return data.Num(int64(d / time.Second)) }

// ExitRow is a status of a job or step, which is over or is not.
type ExitRow struct {
	cluster.ExitStatus
	Over bool
}

// ExitTable makes the objects of exit codes.
var ExitTable = data.Table[ExitRow]{Schema: "process_exit_code_verbose", Members: []data.Member[ExitRow]{
	{Path: "status", Of: func(e *ExitRow) data.Value {
		switch {
		case !e.Over:
			return data.Words("PENDING")
		case e.Signal != 0:
			return data.Words("SIGNALED")
		case e.Code != 0:
			return data.Words("ERROR")
		}
		return data.Words("SUCCESS")
	}},
	{Path: "return_code", Of: func(e *ExitRow) data.Value { return data.Num(e.Code) }},
	{Path: "signal.id", Of: func(e *ExitRow) data.Value { return data.Or(e.Signal) }},
	{Path: "signal.name", Of: func(e *ExitRow) data.Value {
		if e.Signal == 0 {
			return data.Unset
		}
		return data.Text(signalName(e.Signal))
	}},
}}

// signalNames are those of the signals that jobs end by, without SIG.
var signalNames = [...]string{1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE",
	9: "KILL", 10: "USR1",
	11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 17: "CHLD", 18: "CONT", 19: "STOP",
	24: "XCPU", 25: "XFSZ"}

func signalName(n int) string {
	if n < len(signalNames) && n > 0 && signalNames[n] != "" {
		return signalNames[n]
	}
	return strconv.Itoa(n)
}

// Exit is a status as an object.
func Exit(e cluster.ExitStatus, over bool) data.Value {
	return data.Record(&ExitTable, &ExitRow{e, over})
}

// JobTable makes the objects of live jobs.
var JobTable = data.Table[JobRow]{Schema: "job_info", More: fieldMembers, Members: []data.Member[JobRow]{
	{Path: "accrue_time", Of: func(r *JobRow) data.Value { return Unix(r.AccrueTime()) }},
	{Path: "allocating_node", Of: func(r *JobRow) data.Value { return data.Text(r.Spec.SubmitHost) }},
	{Path: "array_job_id", Of: func(r *JobRow) data.Value { return data.Num(r.ArrayID) }},
	{Path: "array_task_id", Of: func(r *JobRow) data.Value {
		if r.Task < 0 {
			return data.Unset
		}
		return data.Num(r.Task)
	}},
	{Path: "array_max_tasks", Of: func(r *JobRow) data.Value { return data.Num(r.Throttle()) }},
	{Path: "array_task_string", Of: func(r *JobRow) data.Value {
		if r.Tasks.Empty() {
			return data.Unset
		}
		return data.Text(format.Tasks(r.Tasks, r.Throttle()))
	}},
	{Path: "association_id", Of: func(r *JobRow) data.Value { return data.Num(r.Assoc) }},
	{Path: "batch_features"},
	{Path: "batch_flag", Of: func(r *JobRow) data.Value { return data.Bool(r.Spec.Kind == cluster.Batch) }},
	{Path: "batch_host", Of: func(r *JobRow) data.Value { return data.Text(r.FirstNode()) }},
	{Path: "flags", Of: func(r *JobRow) data.Value { return data.Words(flagWords(r)...) }},
	{Path: "burst_buffer_state", Of: func(r *JobRow) data.Value { return data.Text(BurstState(r.Job)) }},
	{Path: "cluster", Of: func(r *JobRow) data.Value { return data.Text(r.View.Config().Config.ClusterName) }},
	{Path: "command", Of: func(r *JobRow) data.Value { return data.Text(r.Command()) }},
	{Path: "container", Of: func(r *JobRow) data.Value { return data.Text(image(r)) }},
	{Path: "container_id"},
	{Path: "container_type"},
	{Path: "core_spec", Of: func(r *JobRow) data.Value { return pointed(r.Spec.CoreSpec) }},
	{Path: "thread_spec", Of: func(r *JobRow) data.Value {
		if r.Spec.ThreadSpec == nil {
			return data.Num(noThreadSpec)
		}
		return data.Num(*r.Spec.ThreadSpec)
	}},
	{Path: "cores_per_socket", Of: func(r *JobRow) data.Value { return data.Or(r.Spec.CoresPerSocket) }},
	{Path: "billable_tres", Of: func(r *JobRow) data.Value {
		if r.Alloc == nil || r.Alloc.Billing == nil {
			return data.Unset
		}
		return data.Float(*r.Alloc.Billing)
	}},
	{Path: "cpus_per_task", Of: func(r *JobRow) data.Value { return data.Num(r.Spec.TaskCPUs()) }},
	{Path: "cpu_frequency_minimum"},
	{Path: "cpu_frequency_maximum"},
	{Path: "cpu_frequency_governor"},
	{Path: "cpus_per_tres", Of: func(r *JobRow) data.Value { return data.Text(r.CPUsPerTRES()) }},
	{Path: "cron", Of: func(r *JobRow) data.Value {
		if r.Spec.Cron == nil {
			return data.Unset
		}
		return data.Text(r.Spec.Cron.When)
	}},
	{Path: "deadline", Of: func(r *JobRow) data.Value { return Unix(r.Spec.Deadline) }},
	{Path: "delay_boot", Of: func(r *JobRow) data.Value { return Seconds(r.Spec.DelayBoot) }},
	{Path: "dependency", Of: func(r *JobRow) data.Value { return data.Text(r.DependsText()) }},
	{Path: "derived_exit_code", Of: func(r *JobRow) data.Value { return Exit(r.Derived, r.over()) }},
	{Path: "eligible_time", Of: func(r *JobRow) data.Value { return Unix(r.EligibleTime()) }},
	{Path: "end_time", Of: func(r *JobRow) data.Value { return Unix(r.End()) }},
	{Path: "excluded_nodes", Of: func(r *JobRow) data.Value { return data.Text(front.NodeText(r.Spec.Exclude)) }},
	{Path: "exit_code", Of: func(r *JobRow) data.Value { return Exit(r.Exit, r.over()) }},
	{Path: "failed_node", Of: func(r *JobRow) data.Value { return data.Text(failedNode(r)) }},
	{Path: "federation_origin", Of: func(r *JobRow) data.Value { return sharedData(r, FedOrigin) }},
	{Path: "federation_siblings_active", Of: func(r *JobRow) data.Value { return sharedData(r, FedActive) }},
	{Path: "federation_siblings_viable", Of: func(r *JobRow) data.Value { return sharedData(r, FedViable) }},
	{Path: "gres_detail", Of: func(r *JobRow) data.Value { return data.Words(r.gresDetail()...) }},
	{Path: "group_id", Of: func(r *JobRow) data.Value { return data.Num(r.Spec.GID) }},
	{Path: "group_name", Of: func(r *JobRow) data.Value { return data.Text(r.Group()) }},
	{Path: "het_job_id", Of: func(r *JobRow) data.Value { return data.Num(HetOf(r).ID) }},
	{Path: "het_job_id_set", Of: func(r *JobRow) data.Value {
		if r.Het == nil {
			return data.Unset
		}
		return data.Text(HetSet(r.Het))
	}},
	{Path: "het_job_offset", Of: func(r *JobRow) data.Value { return data.Num(HetOf(r).Offset) }},
	{Path: "job_id", Of: func(r *JobRow) data.Value { return data.Num(r.ID) }},
	{Path: "job_resources", Of: func(r *JobRow) data.Value {
		if r.Alloc == nil {
			return data.Raw("null")
		}
		return data.Record(&resourceTable, r)
	}},
	{Path: "job_size_str"},
	{Path: "job_state", Of: func(r *JobRow) data.Value { return data.Words(r.stateList()...) }},
	{Path: "last_sched_evaluation", Of: func(r *JobRow) data.Value { return Unix(r.EvalTime()) }},
	{Path: "licenses_allocated", Of: func(r *JobRow) data.Value {
		if r.Alloc == nil || r.over() {
			return data.Unset
		}
		return data.Text(r.Spec.Licenses)
	}},
	{Path: "mail_type", Of: func(r *JobRow) data.Value { return data.Words(r.Spec.MailType...) }},
	{Path: "mail_user", Of: func(r *JobRow) data.Value {
		return data.Text(front.Choose(r.Spec.MailUser == "", r.Spec.User, r.Spec.MailUser))
	}},
	{Path: "max_cpus", Of: func(*JobRow) data.Value { return data.Num(0) }},
	{Path: "max_nodes", Of: func(r *JobRow) data.Value { return data.Num(r.Spec.MaxNodes) }},
	{Path: "memory_per_tres", Of: func(r *JobRow) data.Value { return data.Text(r.MemPerTRES()) }},
	{Path: "memory_update_delay", Of: func(*JobRow) data.Value { return data.Num(0) }},
	{Path: "memory_update_margin", Of: func(*JobRow) data.Value { return data.Num(0) }},
	{Path: "nodes", Of: func(r *JobRow) data.Value { return data.Text(r.Nodes()) }},
	{Path: "nice", Of: func(r *JobRow) data.Value { return data.Num(r.Spec.Nice) }},
	{Path: "tasks_per_core", Of: func(r *JobRow) data.Value { return data.Limit(r.Spec.TasksPerCore) }},
	{Path: "tasks_per_socket", Of: func(r *JobRow) data.Value { return data.Limit(r.Spec.TasksPerSocket) }},
	{Path: "tasks_per_board", Of: func(*JobRow) data.Value { return data.Num(0) }},
	{Path: "cpus", Of: func(r *JobRow) data.Value { return data.Num(r.NumCPUs()) }},
	{Path: "node_count", Of: func(r *JobRow) data.Value { return data.Num(r.NumNodes()) }},
	{Path: "tasks", Of: func(r *JobRow) data.Value { return data.Num(r.NumTasks()) }},
	{Path: "partition", Of: func(r *JobRow) data.Value { return data.Text(r.Partition()) }},
	{Path: "memory_per_cpu", Of: func(r *JobRow) data.Value { return r.MemBy(cluster.MemPerCPU) }},
	{Path: "memory_per_node", Of: func(r *JobRow) data.Value { return r.MemBy(cluster.MemPerNode) }},
	{Path: "minimum_cpus_per_node", Of: func(r *JobRow) data.Value { return data.Num(r.MinCPUs()) }},
	{Path: "minimum_tmp_disk_per_node", Of: func(r *JobRow) data.Value { return data.Num(r.Spec.TmpMB) }},
	{Path: "power.flags"},
	{Path: "preempt_time", Of: func(r *JobRow) data.Value {
		if r.Preempt == nil {
			return data.Num(0)
		}
		return Unix(r.Preempt.At)
	}},
	{Path: "preemptable_time", Of: func(r *JobRow) data.Value {
		if r.Job.Started.IsZero() {
			return data.Num(0)
		}
		return Unix(r.Job.Started.Add(r.View.Config().Config.Preempt.Exempt))
	}},
	{Path: "pre_sus_time", Of: func(r *JobRow) data.Value { return Seconds(r.PreSuspend) }},
	{Path: "hold", Of: func(r *JobRow) data.Value { return data.Bool(r.Held != cluster.NotHeld) }},
	{Path: "priority", Of: func(r *JobRow) data.Value { return data.Num(r.Priority) }},
	{Path: "priority_by_partition"},
	{Path: "profile", Of: func(r *JobRow) data.Value {
		return data.Text(front.Choose(r.Spec.Profile == "", "NOT_SET", strings.ToUpper(r.Spec.Profile)))
	}},
	{Path: "required_nodes", Of: func(r *JobRow) data.Value { return data.Text(front.NodeText(r.Spec.NodeList)) }},
	{Path: "requeue", Of: func(r *JobRow) data.Value { return data.Bool(r.Requeues()) }},
	{Path: "resize_time", Of: func(r *JobRow) data.Value { return Unix(r.ResizedAt()) }},
	{Path: "restart_cnt", Of: func(r *JobRow) data.Value { return data.Num(r.Restarts) }},
	{Path: "scheduled_nodes", Of: func(r *JobRow) data.Value { return data.Text(front.NodeText(r.PlannedNodes)) }},
	{Path: "selinux_context"},
	{Path: "shared", Of: func(r *JobRow) data.Value {
		return data.Words(sharedWords[min(int(r.shares()), len(sharedWords)-1)]...)
	}},
	{Path: "step_id.job_id", Of: func(r *JobRow) data.Value { return data.Num(r.ID) }},
	{Path: "step_id.step_het_component"},
	{Path: "step_id.step_id", Of: func(*JobRow) data.Value { return data.Text("entire") }},
	{Path: "step_id.sluid"},
	{Path: "sockets_per_board", Of: func(*JobRow) data.Value { return data.Num(0) }},
	{Path: "sockets_per_node", Of: func(r *JobRow) data.Value { return data.Or(r.Spec.SocketsPerNode) }},
	{Path: "start_time", Of: func(r *JobRow) data.Value { return Unix(r.Start()) }},
	{Path: "state_description", Of: func(r *JobRow) data.Value { return data.Text(r.WaitNote) }},
	{Path: "state_reason", Of: func(r *JobRow) data.Value { return data.Text(r.plainReason()) }},
	{Path: "standard_input", Of: func(r *JobRow) data.Value { return data.Text(r.Spec.Stdin) }},
	{Path: "standard_output", Of: func(r *JobRow) data.Value { return data.Text(plainFile(r, r.Spec.Stdout, 1)) }},
	{Path: "standard_error", Of: func(r *JobRow) data.Value { return data.Text(plainFile(r, r.Spec.Stderr, 2)) }},
	{Path: "stdin_expanded", Of: func(r *JobRow) data.Value { return data.Text(batchFile(r, 0)) }},
	{Path: "stdout_expanded", Of: func(r *JobRow) data.Value { return data.Text(batchFile(r, 1)) }},
	{Path: "stderr_expanded", Of: func(r *JobRow) data.Value { return data.Text(batchFile(r, 2)) }},
	{Path: "submit_time", Of: func(r *JobRow) data.Value { return Unix(r.Submitted) }},
	{Path: "submit_line", Of: func(r *JobRow) data.Value { return data.Text(r.Spec.SubmitLine) }},
	{Path: "suspend_time", Of: func(r *JobRow) data.Value { return Unix(r.SuspendedAt) }},
	{Path: "system_comment", Of: func(r *JobRow) data.Value { return data.Text(r.SystemComment) }},
	{Path: "time_limit", Of: func(r *JobRow) data.Value { return Minutes(r.Limit) }},
	{Path: "time_minimum", Of: func(r *JobRow) data.Value { return data.Num(int64(r.Spec.LimitMin / time.Minute)) }},
	{Path: "threads_per_core", Of: func(r *JobRow) data.Value { return data.Or(r.Spec.ThreadsPerCore) }},
	{Path: "tres_bind", Of: func(r *JobRow) data.Value {
		return data.Text(front.Choose(r.Spec.GPUBind == "", "", "gres/gpu:"+r.Spec.GPUBind))
	}},
	{Path: "tres_freq", Of: func(r *JobRow) data.Value {
		return data.Text(front.Choose(r.Spec.GPUFreq == "", "", "gpu:"+r.Spec.GPUFreq))
	}},
	{Path: "tres_per_job", Of: func(r *JobRow) data.Value { return data.Text(format.GRES(r.Spec.PerJob)) }},
	{Path: "tres_per_node", Of: func(r *JobRow) data.Value { return data.Text(format.GRES(r.Spec.PerNode)) }},
	{Path: "tres_per_socket", Of: func(r *JobRow) data.Value { return data.Text(format.GRES(r.Spec.PerSocket)) }},
	{Path: "tres_per_task", Of: func(r *JobRow) data.Value { return data.Text(format.GRES(r.Spec.PerTask)) }},
	{Path: "tres_req_str", Of: func(r *JobRow) data.Value { return data.Text(r.askedTRES()) }},
	{Path: "tres_alloc_str", Of: func(r *JobRow) data.Value {
		if r.Alloc == nil {
			return data.Unset
		}
		return data.Text(r.TRES())
	}},
	{Path: "user_id", Of: func(r *JobRow) data.Value { return data.Num(r.Spec.UID) }},
	{Path: "user_name", Of: func(r *JobRow) data.Value { return data.Text(r.Spec.User) }},
	{Path: "maximum_switch_wait_time", Of: func(r *JobRow) data.Value { return Seconds(r.Spec.SwitchWait) }},
}}

// noThreadSpec is how Slurm writes that a job leaves no threads for the system.
const noThreadSpec = 32766

func pointed(n *int) data.Value {
	if n == nil {
		return data.Num(0)
	}
	return data.Num(*n)
}

var sharedWords = [...][]string{cluster.ShareDefault: {}, cluster.ShareExclusive: {"none"},
	cluster.ShareUser: {"user"},
	cluster.ShareMCS:  {"mcs"}, cluster.ShareOver: {"oversubscribe"}}

func (r *JobRow) over() bool { return r.Phase == cluster.Ended }

// flagWords are the job's flags, of those that Slurm knows.
func flagWords(r *JobRow) (words []string) {
	s := r.Spec
	for _, f := range [...]struct {
		is   bool
		word string
	}{
		{s.KillInvalidDepend != nil && *s.KillInvalidDepend, "KILL_INVALID_DEPENDENCY"},
		{s.KillInvalidDepend != nil && !*s.KillInvalidDepend, "NO_KILL_INVALID_DEPENDENCY"},
		{strings.Contains(s.GRESFlags, "enforce-binding"), "GRES_BINDING_ENFORCED"},
		{strings.Contains(s.GRESFlags, "disable-binding"), "GRES_BINDING_DISABLED"},
		{s.Spread, "SPREAD_JOB"}, {s.UseMinNodes, "PREFER_MINIMUM_NODE_COUNT"}, {r.Het != nil, "HETEROGENEOUS_JOB"},
		{s.Tasks > 0, "EXACT_TASK_COUNT_REQUESTED"}, {!r.Job.Started.IsZero(), "JOB_WAS_RUNNING"}, {s.Cron != nil,
			"CRON_JOB"},
		{len(r.Depends.Terms) > 0, "DEPENDENT"}, {s.Kind == cluster.External, "EXTERNAL_JOB"},
	} {
		if f.is {
			words = append(words, f.word)
		}
	}
	return append(words, fieldWords(r)...)
}

// fieldMembers are the members of which a row of jobfield says all.
func fieldMembers() (list []data.Member[JobRow]) {
	for i := range jobfield.Rows {
		if row := &jobfield.Rows[i]; row.Member != "" {
			list = append(list, memberOf(row))
		}
	}
	return list
}

// memberOf is the member of a row.
func memberOf(row *jobfield.Row) data.Member[JobRow] {
	m := data.Member[JobRow]{Path: row.Member}
	switch row.Form {
	case jobfield.Text:
		at := jobfield.In[string](row)
		m.Of = func(r *JobRow) data.Value { return data.Text(*at(r.Spec)) }
	case jobfield.Count:
		at := jobfield.In[int](row)
		m.Of = func(r *JobRow) data.Value { return data.Num(*at(r.Spec)) }
	case jobfield.Flag:
		at := jobfield.In[bool](row)
		m.Of = func(r *JobRow) data.Value { return data.Bool(*at(r.Spec)) }
	}
	return m
}

// fieldFlags find the flags of a job that answers name, by their words.
var fieldFlags lazy[[]fieldFlag]

func findFieldFlags() (list []fieldFlag) {
	for i := range jobfield.Rows {
		if row := &jobfield.Rows[i]; row.Word != "" {
			list = append(list, fieldFlag{jobfield.In[bool](row), row.Word})
		}
	}
	return list
}

type fieldFlag struct {
	at   func(*cluster.JobSpec) *bool
	word string
}

func fieldWords(r *JobRow) (words []string) {
	for _, f := range fieldFlags.get(findFieldFlags) {
		if *f.at(r.Spec) {
			words = append(words, f.word)
		}
	}
	return words
}

// image is the container that the job's script runs in.
func image(r *JobRow) string {
	if r.Spec.Inside == nil {
		return ""
	}
	return r.Spec.Inside.Image
}

// failedNode is the node that ended the job.
func failedNode(r *JobRow) string {
	if r.Blame == nil || r.Outcome != cluster.NodeFailed {
		return ""
	}
	return string(r.Blame.Node)
}

// plainFile is a file as it was asked for; where nothing was, the one that Slurm writes to.
func plainFile(r *JobRow, asked string, fd int) string {
	if asked != "" || fd == 2 || r.Spec.Kind != cluster.Batch {
		return asked
	}
	return r.StdFile(fd)
}

// batchFile is a file of a script with its place-holders replaced.
func batchFile(r *JobRow, fd int) string {
	if r.Spec.Kind != cluster.Batch {
		return ""
	}
	return r.StdFile(fd)
}

// askedTRES is what the job asks for, as if nothing had been given to it yet.
func (r *JobRow) askedTRES() string {
	if r.Alloc == nil {
		return r.TRES()
	}
	j := *r.Job
	j.Alloc = nil
	a := JobRow{Job: &j, View: r.View, part: r.Partition(), State: r.State}
	return a.TRES()
}

// stateList is the state and its flags.
func (r *JobRow) stateList() []string {
	if r.Phase != cluster.Ending && r.State.Short != stagingOut {
		return []string{r.State.Long}
	}
	return []string{StateOf(r.Job.Settled()).Long, r.State.Long}
}

func (r *JobRow) plainReason() string {
	text, _, _ := strings.Cut(r.Reason(), ",")
	return text
}

// MemBy is the memory that a job asks for by what it is counted, if it is counted by that.
func (r *JobRow) MemBy(per cluster.MemPer) data.Value {
	if m := r.Memory(); m.Per == per {
		return data.Num(int64(m.MB))
	}
	return data.Unset
}

func (r *JobRow) gresDetail() (out []string) {
	if r.Alloc == nil {
		return nil
	}
	kind := r.GPUType()
	for _, sh := range r.Alloc.Shares {
		if words := format.ShareGRES(&sh, kind); len(words) > 0 {
			out = append(out, strings.Join(words, ","))
		}
	}
	return out
}

// GPUType is the type of a job's GPUs with a colon behind, if there is just one.
func (r *JobRow) GPUType() string {
	for kind := range r.gpuTypes() {
		if len(r.gpuTypes()) == 1 && kind != "" {
			return kind + ":"
		}
	}
	return ""
}

// resourceTable makes the objects of what was given to a job, node by node.
var resourceTable = data.Table[JobRow]{Schema: "job_res", Members: []data.Member[JobRow]{
	{Path: "select_type", Of: func(*JobRow) data.Value { return data.Words("CR_CORE_MEMORY") }},
	{Path: "nodes.count", Of: func(r *JobRow) data.Value { return data.Num(len(r.Alloc.Shares)) }},
	{Path: "nodes.select_type", Of: func(*JobRow) data.Value { return data.Words("ONE_ROW") }},
	{Path: "nodes.list", Of: func(r *JobRow) data.Value { return data.Text(r.Nodes()) }},
	{Path: "nodes.whole", Of: func(r *JobRow) data.Value {
		return data.Bool(r.Spec.Sharing == cluster.ShareExclusive)
	}},
	{Path: "nodes.allocation", Of: func(r *JobRow) data.Value {
		list := make([]givenNode, len(r.Alloc.Shares))
		for i := range list {
			share := &r.Alloc.Shares[i]
			list[i] = givenNode{i, share, r.View.inventory(share.Node)}
		}
		return data.Records(&givenTable, list)
	}},
	{Path: "cpus", Of: func(r *JobRow) data.Value { return data.Num(r.NumCPUs()) }},
	{Path: "threads_per_core", Of: func(r *JobRow) data.Value { return data.Or(r.Spec.ThreadsPerCore) }},
}}

// givenNode is what one node gives to a job.
type givenNode struct {
	index int
	*cluster.Share
	inv *cluster.Inventory // nil: it is not known
}

var givenTable = data.Table[givenNode]{Schema: "job_res_node", Members: []data.Member[givenNode]{
	{Path: "index", Of: func(g *givenNode) data.Value { return data.Num(g.index) }},
	{Path: "name", Of: func(g *givenNode) data.Value { return data.Text(g.Node) }},
	{Path: "cpus.count", Of: func(g *givenNode) data.Value { return data.Num(g.CPUs.Len()) }},
	{Path: "cpus.used", Of: func(g *givenNode) data.Value { return data.Num(g.CPUs.Len()) }},
	{Path: "memory.used", Of: func(g *givenNode) data.Value { return data.Num(int64(g.MemMB)) }},
	{Path: "memory.allocated", Of: func(g *givenNode) data.Value { return data.Num(int64(g.MemMB)) }},
	{Path: "sockets", Of: func(g *givenNode) data.Value { return data.Records(&givenSocketTable, g.sockets()) }},
}}

// givenSocket is a socket of a node, with all of its cores.
type givenSocket struct {
	index int
	cores []givenCore
}

type givenCore struct {
	index int
	given bool
}

// sockets are those of the node. Of a node that is not known they are one, with the CPUs that the job has.
func (g *givenNode) sockets() (list []givenSocket) {
	if g.inv == nil {
		all := givenSocket{}
		for k := range g.CPUs.All() {
			all.cores = append(all.cores, givenCore{k, true})
		}
		return []givenSocket{all}
	}
	given := g.inv.CoresOf(g.CPUs)
	for n := range g.inv.Sockets {
		s := givenSocket{index: n}
		for k := range g.inv.CoresPerSocket {
			s.cores = append(s.cores, givenCore{k, given.Has(n*g.inv.CoresPerSocket + k)})
		}
		list = append(list, s)
	}
	return list
}

var givenSocketTable = data.Table[givenSocket]{Schema: "job_res_socket", Members: []data.Member[givenSocket]{
	{Path: "index", Of: func(s *givenSocket) data.Value { return data.Num(s.index) }},
	{Path: "cores", Of: func(s *givenSocket) data.Value { return data.Records(&givenCoreTable, s.cores) }},
}}

var givenCoreTable = data.Table[givenCore]{Schema: "job_res_core", Members: []data.Member[givenCore]{
	{Path: "index", Of: func(k *givenCore) data.Value { return data.Num(k.index) }},
	{Path: "status", Of: func(k *givenCore) data.Value {
		return data.Words(front.Choose(k.given, "ALLOCATED", "UNALLOCATED"))
	}},
}}

// StepTable makes the objects of live steps.
var StepTable = data.Table[StepRow]{Schema: "step_info", Members: []data.Member[StepRow]{
	{Path: "array.job_id", Of: func(s *StepRow) data.Value { return data.Num(s.Job.ArrayID) }},
	{Path: "array.task_id", Of: func(s *StepRow) data.Value {
		if s.Job.Task < 0 {
			return data.Num(int64(noTask))
		}
		return data.Num(s.Job.Task)
	}},
	{Path: "cpu.frequency.min", Of: ownFrequency}, {Path: "cpu.frequency.max", Of: ownFrequency},
	{Path: "cpu.frequency.governor", Of: ownFrequency},
	{Path: "cluster", Of: func(s *StepRow) data.Value { return data.Text(s.Job.View.Config().Config.ClusterName) }},
	{Path: "tres.per.cpu", Of: func(s *StepRow) data.Value { return data.Text(s.CPUsPerTRES()) }},
	{Path: "tres.per.memory", Of: func(s *StepRow) data.Value { return data.Text(s.MemPerTRES()) }},
	{Path: "tres.per.step", Of: func(s *StepRow) data.Value { return data.Text(s.PerStep()) }},
	{Path: "tres.per.node", Of: func(s *StepRow) data.Value { return data.Text(s.PerNode()) }},
	{Path: "tres.per.socket", Of: func(s *StepRow) data.Value {
		return data.Text(format.GRES(s.AskedOf().PerSocket))
	}},
	{Path: "tres.per.task", Of: func(s *StepRow) data.Value { return data.Text(s.PerTask()) }},
	{Path: "tres.allocation", Of: func(s *StepRow) data.Value { return data.Text(s.tres()) }},
	{Path: "tres.binding", Of: func(s *StepRow) data.Value { return data.Text(s.TRESBind()) }},
	{Path: "name", Of: func(s *StepRow) data.Value { return data.Text(s.Name) }},
	{Path: "nodes", Of: func(s *StepRow) data.Value { return data.Text(front.NodeText(s.NodeNames())) }},
	{Path: "number_cpus", Of: func(s *StepRow) data.Value { return data.Num(s.CPUs()) }},
	{Path: "number_tasks", Of: func(s *StepRow) data.Value { return data.Num(s.Tasks) }},
	{Path: "partition", Of: func(s *StepRow) data.Value { return data.Text(s.Job.Partition()) }},
	{Path: "time.running", Of: func(s *StepRow) data.Value { return Seconds(s.runTime()) }},
	{Path: "time.start", Of: func(s *StepRow) data.Value { return Unix(s.Started) }},
	{Path: "time.limit", Of: func(s *StepRow) data.Value { return Minutes(s.TimeLimit()) }},
	{Path: "srun.host", Of: func(s *StepRow) data.Value { return data.Text(s.SrunHost) }},
	{Path: "srun.pid", Of: func(s *StepRow) data.Value { return data.Num(s.SrunPID) }},
	{Path: "state", Of: func(*StepRow) data.Value { return data.Words("RUNNING") }},
	{Path: "stdout", Of: func(s *StepRow) data.Value { return data.Text(s.file(false)) }},
	{Path: "stderr", Of: func(s *StepRow) data.Value { return data.Text(s.file(true)) }},
	{Path: "stdout_expanded", Of: func(s *StepRow) data.Value { return data.Text(s.firstFile(false)) }},
	{Path: "stderr_expanded", Of: func(s *StepRow) data.Value { return data.Text(s.firstFile(true)) }},
	{Path: "id", Of: func(s *StepRow) data.Value { return data.Text(s.ShownID()) }},
	{Path: "submit_line", Of: func(s *StepRow) data.Value { return data.Text(s.SubmitLine) }},
	{Path: "task.distribution", Of: func(s *StepRow) data.Value {
		if s.ID.Step < 0 {
			return data.Text("Unknown")
		}
		return data.Text(Distribution(s.Distribution, s.Tasks, len(s.Shares)))
	}},
	{Path: "user", Of: func(s *StepRow) data.Value {
		return data.Text(front.Choose(s.User == "", s.Job.Spec.User, s.User))
	}}, {Path: "tres.frequency", Of: func(s *StepRow) data.Value { return data.Text(s.gpuFreq()) }},
	{Path: "network", Of: func(s *StepRow) data.Value { return data.Text(s.network()) }},
	// Values of steps that are not kept, or not there: OCI bundles, ports that srun reserves, a number by time, input.
	{Path: "container", Of: notOfSteps},
	{Path: "container_id", Of: notOfSteps},
	{Path: "container_type", Of: notOfSteps},
	{Path: "reserved_ports", Of: notOfSteps},
	{Path: "sluid", Of: notOfSteps},
	{Path: "stdin", Of: notOfSteps},
	{Path: "stdin_expanded", Of: notOfSteps},
}}

func notOfSteps(*StepRow) data.Value { return data.Text("") }

// gpuFreq is what --gpu-freq asked for. Steps have it from their job.
func (s *StepRow) gpuFreq() string {
	if s.ID.Step < 0 || s.Job.Spec.GPUFreq == "" {
		return ""
	}
	return "gpu:" + s.Job.Spec.GPUFreq
}

// network is what --network asked for, of the srun that made the job.
func (s *StepRow) network() string {
	if s.ID.Step < 0 || s.Job.Spec.Kind == cluster.Batch {
		return ""
	}
	return s.Job.Spec.Network
}

// tres is what a step got; its script and the external step have nothing of their own.
func (s *StepRow) tres() string {
	if s.ID.Step < 0 {
		return ""
	}
	mem, gpus := cluster.MemMB(0), int64(0)
	for i := range s.Shares {
		mem += s.Shares[i].MemMB
		gpus += int64(s.Shares[i].GPUs.Len())
	}
	types := map[string]int64{}
	for name := range s.Job.gpuTypes() {
		types[name] = gpus
	}
	if len(types) > 1 { // which of them these are the job's nodes know
		types = nil
	}
	return AlphaTRES(s.CPUs(), len(s.Shares), s.Job.View.Mem(mem), gpus, types, 0)
}

// noTask is how Slurm writes that a step's job is no task of an array.
const noTask = 4294967294

// Distribution names a step's distribution of tasks.
func Distribution(asked string, tasks, nodes int) string {
	asked, _, _ = strings.Cut(asked, ":")
	switch {
	case asked == "" && tasks <= nodes:
		return "Cyclic"
	case asked == "":
		return "Block"
	}
	return strings.ToUpper(asked[:1]) + asked[1:]
}
