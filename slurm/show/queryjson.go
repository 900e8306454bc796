package show

import (
	"bufio"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// member is a row of the tables that make JSON objects: a name and what stands there.
type member[T any] struct {
	name string
	of   func(*T) any
}

// Number is how today's Slurm writes a number that may be unset or infinite.
type Number struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite"`
	Number   int64 `json:"number"`
}

// Num is a number that is set.
func Num[N ~int | ~int64 | ~uint32](n N) Number { return Number{Set: true, Number: int64(n)} }

// maybe is unset where n is 0.
func maybe[N ~int | ~int64 | ~uint32](n N) Number { return Number{Set: n != 0, Number: int64(n)} }

func minutes(d time.Duration) Number {
	if d == cluster.Unlimited {
		return Number{Infinite: true}
	}
	return Number{Set: d != 0, Number: int64(d / time.Minute)}
}

func unixTime(t time.Time) Number {
	if t.IsZero() {
		return Number{Set: true}
	}
	return Number{Set: true, Number: t.Unix()}
}

// exitCode is a status as today's clients read it.
type exitCode struct {
	Status     []string   `json:"status"`
	ReturnCode Number     `json:"return_code"`
	Signal     signalInfo `json:"signal"`
}

type signalInfo struct {
	ID   Number `json:"id"`
	Name string `json:"name"`
}

func newExitCode(e cluster.ExitStatus, over bool) exitCode {
	x := exitCode{Status: []string{"SUCCESS"}, ReturnCode: Num(e.Code), Signal: signalInfo{ID: maybe(e.Signal)}}
	switch {
	case !over:
		x.Status = []string{"PENDING"}
	case e.Signal != 0:
		x.Status = []string{"SIGNALED"}
		x.Signal.Name = strconv.Itoa(e.Signal)
	case e.Code != 0:
		x.Status = []string{"ERROR"}
	}
	return x
}

// jobMembers are the members of a job in --json, in the shape of data_parser v0.0.42.
var jobMembers = []member[JobRow]{
	{"account", func(r *JobRow) any { return r.Spec.Account }},
	{"accrue_time", func(r *JobRow) any { return unixTime(r.AccrueTime()) }},
	{"admin_comment", func(r *JobRow) any { return r.Spec.AdminComment }},
	{"allocating_node", func(r *JobRow) any { return r.Spec.SubmitHost }},
	{"array_job_id", func(r *JobRow) any { return Num(r.arrayID()) }},
	{"array_task_id", func(r *JobRow) any {
		if r.Task < 0 {
			return Number{}
		}
		return Num(r.Task)
	}},
	{"array_max_tasks", func(r *JobRow) any { return Num(r.Throttle()) }},
	{"array_task_string", func(r *JobRow) any {
		if r.Tasks.Empty() {
			return ""
		}
		return format.Tasks(r.Tasks, r.Throttle())
	}},
	{"batch_flag", func(r *JobRow) any { return r.Spec.Kind == cluster.Batch }},
	{"batch_host", func(r *JobRow) any { return r.FirstNode() }},
	{"cluster", func(r *JobRow) any { return r.View.Config().Config.ClusterName }},
	{"cluster_features", func(r *JobRow) any { return r.Spec.Features }},
	{"command", func(r *JobRow) any { return r.Command() }},
	{"comment", func(r *JobRow) any { return r.Spec.Comment }},
	{"container", func(*JobRow) any { return "" }},
	{"contiguous", func(r *JobRow) any { return r.Spec.Contiguous }},
	{"cores_per_socket", func(r *JobRow) any { return maybe(r.Spec.CoresPerSocket) }},
	{"cpus", func(r *JobRow) any { return Num(r.NumCPUs()) }},
	{"cpus_per_task", func(r *JobRow) any { return Num(r.Spec.TaskCPUs()) }},
	{"cpus_per_tres", func(r *JobRow) any { return r.CPUsPerTRES() }},
	{"current_working_directory", func(r *JobRow) any { return r.Spec.WorkDir }},
	{"deadline", func(r *JobRow) any { return unixTime(r.Spec.Deadline) }},
	{"dependency", func(r *JobRow) any { return r.DependsText() }},
	{"derived_exit_code", func(r *JobRow) any { return newExitCode(r.Derived, r.Phase == cluster.Ended) }},
	{"eligible_time", func(r *JobRow) any { return unixTime(r.EligibleTime()) }},
	{"end_time", func(r *JobRow) any { return unixTime(r.End()) }},
	{"excluded_nodes", func(r *JobRow) any { return front.NodeText(r.Spec.Exclude) }},
	{"exit_code", func(r *JobRow) any { return newExitCode(r.Exit, r.Phase == cluster.Ended) }},
	{"features", func(r *JobRow) any { return r.Spec.Constraint }},
	{"flags", func(r *JobRow) any {
		if r.Spec.Cron != nil {
			return []string{"CRON_JOB"}
		}
		return []string{}
	}},
	{"gres_detail", func(r *JobRow) any { return r.gresDetail() }},
	{"group_id", func(r *JobRow) any { return r.Spec.GID }},
	{"group_name", func(r *JobRow) any { return r.Group() }},
	{"het_job_id", func(r *JobRow) any { return Num(HetOf(r).ID) }},
	{"het_job_id_set", func(r *JobRow) any {
		if r.Het == nil {
			return ""
		}
		return HetSet(r.Het)
	}},
	{"het_job_offset", func(r *JobRow) any { return Num(HetOf(r).Offset) }},
	{"hold", func(r *JobRow) any { return r.Held != cluster.NotHeld }},
	{"job_id", func(r *JobRow) any { return r.ID }},
	{"job_resources", func(r *JobRow) any { return r.resources() }},
	{"job_state", func(r *JobRow) any { return r.stateList() }},
	{"last_sched_evaluation", func(r *JobRow) any { return unixTime(r.EvalTime()) }},
	{"licenses", func(r *JobRow) any { return r.Spec.Licenses }},
	{"max_nodes", func(r *JobRow) any { return Num(r.Spec.MaxNodes) }},
	{"mcs_label", func(r *JobRow) any { return r.Spec.MCSLabel }},
	{"memory_per_cpu", func(r *JobRow) any { return r.memBy(cluster.MemPerCPU) }},
	{"memory_per_node", func(r *JobRow) any { return r.memBy(cluster.MemPerNode) }},
	{"memory_per_tres", func(r *JobRow) any { return r.MemPerTRES() }},
	{"minimum_cpus_per_node", func(r *JobRow) any { return Num(r.MinCPUs()) }},
	{"minimum_tmp_disk_per_node", func(r *JobRow) any { return Num(r.Spec.TmpMB) }},
	{"name", func(r *JobRow) any { return r.Spec.Name }},
	{"network", func(r *JobRow) any { return r.Spec.Network }},
	{"nice", func(r *JobRow) any { return r.Spec.Nice }},
	{"node_count", func(r *JobRow) any { return Num(r.NumNodes()) }},
	{"nodes", func(r *JobRow) any { return r.Nodes() }},
	{"partition", func(r *JobRow) any { return r.Partition() }},
	{"prefer", func(r *JobRow) any { return r.Spec.Prefer }},
	{"pre_sus_time", func(r *JobRow) any { return Num(int64(r.PreSuspend / time.Second)) }},
	{"priority", func(r *JobRow) any { return Num(r.Priority) }},
	{"qos", func(r *JobRow) any { return r.Spec.QOS }},
	{"reboot", func(r *JobRow) any { return r.Spec.Reboot }},
	{"required_nodes", func(r *JobRow) any { return front.NodeText(r.Spec.NodeList) }},
	{"requeue", func(r *JobRow) any { return r.Requeues() }},
	{"restart_cnt", func(r *JobRow) any { return r.Restarts }},
	{"resv_name", func(r *JobRow) any { return r.Spec.Reservation }},
	{"scheduled_nodes", func(r *JobRow) any { return front.NodeText(r.PlannedNodes) }},
	{"shared", func(r *JobRow) any { return sharedWords[min(int(r.shares()), len(sharedWords)-1)] }},
	{"sockets_per_node", func(r *JobRow) any { return maybe(r.Spec.SocketsPerNode) }},
	{"standard_error", func(r *JobRow) any { return r.StdFile(2) }},
	{"standard_input", func(r *JobRow) any { return r.StdFile(0) }},
	{"standard_output", func(r *JobRow) any { return r.StdFile(1) }},
	{"start_time", func(r *JobRow) any { return unixTime(r.Start()) }},
	{"state_description", func(r *JobRow) any { return r.WaitNote }},
	{"state_reason", func(r *JobRow) any { return r.plainReason() }},
	{"submit_line", func(r *JobRow) any { return r.Spec.SubmitLine }},
	{"submit_time", func(r *JobRow) any { return unixTime(r.Submitted) }},
	{"suspend_time", func(r *JobRow) any { return unixTime(r.SuspendedAt) }},
	{"system_comment", func(r *JobRow) any { return "" }},
	{"tasks", func(r *JobRow) any { return Num(r.NumTasks()) }},
	{"tasks_per_core", func(r *JobRow) any { return maybe(r.Spec.TasksPerCore) }},
	{"tasks_per_node", func(r *JobRow) any { return Num(r.Spec.TasksPerNode) }},
	{"tasks_per_socket", func(r *JobRow) any { return maybe(r.Spec.TasksPerSocket) }},
	{"threads_per_core", func(r *JobRow) any { return maybe(r.Spec.ThreadsPerCore) }},
	{"time_limit", func(r *JobRow) any { return minutes(r.Limit) }},
	{"time_minimum", func(r *JobRow) any { return Num(int64(r.Spec.LimitMin / time.Minute)) }},
	{"tres_alloc_str", func(r *JobRow) any {
		if r.Alloc == nil {
			return ""
		}
		return r.TRES()
	}},
	{"tres_per_job", func(r *JobRow) any { return format.GRES(r.Spec.PerJob) }},
	{"tres_per_node", func(r *JobRow) any { return format.GRES(r.Spec.PerNode) }},
	{"tres_per_socket", func(r *JobRow) any { return format.GRES(r.Spec.PerSocket) }},
	{"tres_per_task", func(r *JobRow) any { return format.GRES(r.Spec.PerTask) }},
	{"tres_req_str", func(r *JobRow) any { return r.asked().TRES() }},
	{"user_id", func(r *JobRow) any { return r.Spec.UID }},
	{"user_name", func(r *JobRow) any { return r.Spec.User }},
	{"wckey", func(r *JobRow) any { return r.Spec.WCKey }},
}

var sharedWords = [...][]string{cluster.ShareDefault: {}, cluster.ShareExclusive: {"none"}, cluster.ShareUser: {"user"},
	cluster.ShareMCS: {"mcs"}, cluster.ShareOver: {"oversubscribe"}}

func (r *JobRow) arrayID() cluster.JobID { return r.ArrayID }

// asked is the row as if nothing had been given to the job yet.
func (r *JobRow) asked() *JobRow {
	j := *r.Job
	j.Alloc = nil
	a := NewRow(r.View, &j)
	a.part = r.Partition()
	return &a
}

// stateList is the state and its flags.
func (r *JobRow) stateList() []string {
	if r.Phase != cluster.Ending {
		return []string{r.State.Long}
	}
	return []string{StateOf(r.Job.Settled()).Long, r.State.Long}
}

func (r *JobRow) plainReason() string {
	text, _, _ := strings.Cut(r.Reason(), ",")
	return text
}

func (r *JobRow) memBy(per cluster.MemPer) Number {
	if m := r.Memory(); m.Per == per {
		return Num(int64(m.MB))
	}
	return Number{}
}

func (r *JobRow) gresDetail() []string {
	out := []string{}
	if r.Alloc == nil {
		return out
	}
	kind := r.GPUType()
	for _, sh := range r.Alloc.Shares {
		if !sh.GPUs.Empty() {
			out = append(out, "gpu:"+kind+strconv.Itoa(sh.GPUs.Len())+"(IDX:"+sh.GPUs.String()+")")
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

// resources is what was given to a job, node by node.
func (r *JobRow) resources() any {
	type cpus struct {
		Count int `json:"count"`
		Used  int `json:"used"`
	}
	type memory struct {
		Used      int64 `json:"used"`
		Allocated int64 `json:"allocated"`
	}
	type node struct {
		Index  int    `json:"index"`
		Name   string `json:"name"`
		CPUs   cpus   `json:"cpus"`
		Memory memory `json:"memory"`
	}
	type nodes struct {
		Count      int      `json:"count"`
		List       string   `json:"list"`
		Whole      bool     `json:"whole"`
		SelectType []string `json:"select_type"`
		Allocation []node   `json:"allocation"`
	}
	type resources struct {
		SelectType []string `json:"select_type"`
		Nodes      nodes    `json:"nodes"`
		CPUs       int      `json:"cpus"`
	}
	if r.Alloc == nil {
		return nil
	}
	out := resources{SelectType: []string{"CR_CORE", "CR_MEMORY"}, CPUs: r.NumCPUs(),
		Nodes: nodes{Count: len(r.Alloc.Shares), List: r.Nodes(), Whole: r.Spec.Sharing == cluster.ShareExclusive, SelectType: []string{"AVAILABLE"}}}
	for i, sh := range r.Alloc.Shares {
		out.Nodes.Allocation = append(out.Nodes.Allocation,
			node{i, string(sh.Node), cpus{sh.CPUs.Len(), 0}, memory{0, int64(sh.MemMB)}})
	}
	return out
}

// object appends one value as a JSON object.
func object[T any](b []byte, members []member[T], v *T) []byte {
	b = append(b, "    {"...)
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n      \""...)
		b = append(b, m.name...)
		b = append(b, "\": "...)
		text, err := wire.AppendIndent(b, m.of(v), "      ", "  ")
		if err != nil {
			text = append(b, "null"...)
		}
		b = text
	}
	return append(b, "\n    }"...)
}

// WriteList prints an object with one list, and what today's clients expect around it.
func WriteList[T any](out *bufio.Writer, v *View, name string, members []member[T], rows []T) int {
	_, _ = out.WriteString("{\n")
	return writeRest(out, v, name, members, rows)
}

// writeRest prints a list and closes the object.
func writeRest[T any](out *bufio.Writer, v *View, name string, members []member[T], rows []T) int {
	b := []byte("  \"" + name + "\": [")
	for i := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = object(append(b, '\n'), members, &rows[i])
		if len(b) > 1<<15 {
			_, _ = out.Write(b)
			b = b[:0]
		}
	}
	stamp, _ := wire.Marshal(unixTime(v.Now))
	b = append(b, "\n  ],\n  \"last_update\": "...)
	b = append(b, stamp...)
	b = append(b, `,
  "meta": {
    "plugin": {"type": "", "name": "", "data_parser": "data_parser/v0.0.42", "accounting_storage": ""},
    "slurm": {"version": {"major": "25", "micro": "0", "minor": "05"}, "release": "25.05.0", "cluster": `...)
	b = strconv.AppendQuote(b, v.Config().Config.ClusterName)
	b = append(b, "}\n  },\n  \"errors\": [],\n  \"warnings\": []\n}\n"...)
	_, _ = out.Write(b)
	return 0
}

// WriteJobs prints jobs for --json.
func WriteJobs(out *bufio.Writer, v *View, rows []JobRow) int {
	return WriteList(out, v, "jobs", jobMembers, rows)
}

// stepMembers are the members of a step in --json.
var stepMembers = []member[StepRow]{
	{"id", func(s *StepRow) any { return s.ShownID() }},
	{"job_id", func(s *StepRow) any { return s.ID.Job }},
	{"name", func(s *StepRow) any { return s.Name }},
	{"nodes", func(s *StepRow) any { return front.NodeText(s.NodeNames()) }},
	{"partition", func(s *StepRow) any { return s.Job.Partition() }},
	{"start_time", func(s *StepRow) any { return unixTime(s.Started) }},
	{"state", func(s *StepRow) any { return []string{"RUNNING"} }},
	{"tasks", func(s *StepRow) any { return s.Tasks }},
	{"user_name", func(s *StepRow) any { return cmp.Or(s.User, s.Job.Spec.User) }},
}

func writeSteps(out *bufio.Writer, v *View, rows []StepRow) int {
	slices.SortStableFunc(rows, func(a, b StepRow) int { return cmp.Compare(a.ID.Job, b.ID.Job) })
	return WriteList(out, v, "steps", stepMembers, rows)
}
