package slurm

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

// number is how today's Slurm writes a number that may be unset or infinite.
type number struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite"`
	Number   int64 `json:"number"`
}

func num[N ~int | ~int64 | ~uint32](n N) number { return number{Set: true, Number: int64(n)} }

// maybe is unset where n is 0.
func maybe[N ~int | ~int64 | ~uint32](n N) number { return number{Set: n != 0, Number: int64(n)} }

func minutes(d time.Duration) number {
	if d == cluster.Unlimited {
		return number{Infinite: true}
	}
	return number{Set: d != 0, Number: int64(d / time.Minute)}
}

func unixTime(t time.Time) number {
	if t.IsZero() {
		return number{Set: true}
	}
	return number{Set: true, Number: t.Unix()}
}

// exitCode is a status as today's clients read it.
type exitCode struct {
	Status     []string   `json:"status"`
	ReturnCode number     `json:"return_code"`
	Signal     signalInfo `json:"signal"`
}

type signalInfo struct {
	ID   number `json:"id"`
	Name string `json:"name"`
}

func newExitCode(e cluster.ExitStatus, over bool) exitCode {
	x := exitCode{Status: []string{"SUCCESS"}, ReturnCode: num(e.Code), Signal: signalInfo{ID: maybe(e.Signal)}}
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
var jobMembers = []member[jobRow]{
	{"account", func(r *jobRow) any { return r.Spec.Account }},
	{"accrue_time", func(r *jobRow) any { return unixTime(r.accrue()) }},
	{"admin_comment", func(r *jobRow) any { return r.Spec.AdminComment }},
	{"allocating_node", func(r *jobRow) any { return r.Spec.SubmitHost }},
	{"array_job_id", func(r *jobRow) any { return num(r.arrayID()) }},
	{"array_task_id", func(r *jobRow) any {
		if r.Task < 0 {
			return number{}
		}
		return num(r.Task)
	}},
	{"array_max_tasks", func(r *jobRow) any { return num(r.throttle()) }},
	{"array_task_string", func(r *jobRow) any {
		if r.Tasks.Empty() {
			return ""
		}
		return format.Tasks(r.Tasks, r.throttle())
	}},
	{"batch_flag", func(r *jobRow) any { return r.Spec.Kind == cluster.Batch }},
	{"batch_host", func(r *jobRow) any { return r.firstNode() }},
	{"cluster", func(r *jobRow) any { return r.v.config().Config.ClusterName }},
	{"cluster_features", func(r *jobRow) any { return r.Spec.Features }},
	{"command", func(r *jobRow) any { return r.command() }},
	{"comment", func(r *jobRow) any { return r.Spec.Comment }},
	{"container", func(*jobRow) any { return "" }},
	{"contiguous", func(r *jobRow) any { return r.Spec.Contiguous }},
	{"cores_per_socket", func(r *jobRow) any { return maybe(r.Spec.CoresPerSocket) }},
	{"cpus", func(r *jobRow) any { return num(r.numCPUs()) }},
	{"cpus_per_task", func(r *jobRow) any { return num(r.Spec.TaskCPUs()) }},
	{"cpus_per_tres", func(r *jobRow) any { return r.cpusPerTRES() }},
	{"current_working_directory", func(r *jobRow) any { return r.Spec.WorkDir }},
	{"deadline", func(r *jobRow) any { return unixTime(r.Spec.Deadline) }},
	{"dependency", func(r *jobRow) any { return r.depends() }},
	{"derived_exit_code", func(r *jobRow) any { return newExitCode(r.Derived, r.Phase == cluster.Ended) }},
	{"eligible_time", func(r *jobRow) any { return unixTime(r.eligible()) }},
	{"end_time", func(r *jobRow) any { return unixTime(r.end()) }},
	{"excluded_nodes", func(r *jobRow) any { return front.NodeText(r.Spec.Exclude) }},
	{"exit_code", func(r *jobRow) any { return newExitCode(r.Exit, r.Phase == cluster.Ended) }},
	{"features", func(r *jobRow) any { return r.Spec.Constraint }},
	{"flags", func(r *jobRow) any { return []string{} }},
	{"gres_detail", func(r *jobRow) any { return r.gresDetail() }},
	{"group_id", func(r *jobRow) any { return r.Spec.GID }},
	{"group_name", func(r *jobRow) any { return r.group() }},
	{"het_job_id", func(r *jobRow) any { return num(hetOf(r).ID) }},
	{"het_job_id_set", func(r *jobRow) any {
		if r.Het == nil {
			return ""
		}
		return hetSet(r.Het)
	}},
	{"het_job_offset", func(r *jobRow) any { return num(hetOf(r).Offset) }},
	{"hold", func(r *jobRow) any { return r.Held != cluster.NotHeld }},
	{"job_id", func(r *jobRow) any { return r.ID }},
	{"job_resources", func(r *jobRow) any { return r.resources() }},
	{"job_state", func(r *jobRow) any { return r.stateList() }},
	{"last_sched_evaluation", func(r *jobRow) any { return unixTime(r.lastEval()) }},
	{"licenses", func(r *jobRow) any { return r.Spec.Licenses }},
	{"max_nodes", func(r *jobRow) any { return num(r.Spec.MaxNodes) }},
	{"mcs_label", func(r *jobRow) any { return r.Spec.MCSLabel }},
	{"memory_per_cpu", func(r *jobRow) any { return r.memBy(cluster.MemPerCPU) }},
	{"memory_per_node", func(r *jobRow) any { return r.memBy(cluster.MemPerNode) }},
	{"memory_per_tres", func(r *jobRow) any { return r.memPerTRES() }},
	{"minimum_cpus_per_node", func(r *jobRow) any { return num(r.minCPUs()) }},
	{"minimum_tmp_disk_per_node", func(r *jobRow) any { return num(r.Spec.TmpMB) }},
	{"name", func(r *jobRow) any { return r.Spec.Name }},
	{"network", func(r *jobRow) any { return r.Spec.Network }},
	{"nice", func(r *jobRow) any { return r.Spec.Nice }},
	{"node_count", func(r *jobRow) any { return num(r.numNodes()) }},
	{"nodes", func(r *jobRow) any { return r.nodes() }},
	{"partition", func(r *jobRow) any { return r.partition() }},
	{"prefer", func(r *jobRow) any { return r.Spec.Prefer }},
	{"pre_sus_time", func(r *jobRow) any { return num(int64(r.PreSuspend / time.Second)) }},
	{"priority", func(r *jobRow) any { return num(r.Priority) }},
	{"qos", func(r *jobRow) any { return r.Spec.QOS }},
	{"reboot", func(r *jobRow) any { return r.Spec.Reboot }},
	{"required_nodes", func(r *jobRow) any { return front.NodeText(r.Spec.NodeList) }},
	{"requeue", func(r *jobRow) any { return r.requeues() }},
	{"restart_cnt", func(r *jobRow) any { return r.Restarts }},
	{"resv_name", func(r *jobRow) any { return r.Spec.Reservation }},
	{"scheduled_nodes", func(r *jobRow) any { return front.NodeText(r.PlannedNodes) }},
	{"shared", func(r *jobRow) any { return sharedWords[min(int(r.shares()), len(sharedWords)-1)] }},
	{"sockets_per_node", func(r *jobRow) any { return maybe(r.Spec.SocketsPerNode) }},
	{"standard_error", func(r *jobRow) any { return r.stdFile(2) }},
	{"standard_input", func(r *jobRow) any { return r.stdFile(0) }},
	{"standard_output", func(r *jobRow) any { return r.stdFile(1) }},
	{"start_time", func(r *jobRow) any { return unixTime(r.start()) }},
	{"state_description", func(r *jobRow) any { return r.WaitNote }},
	{"state_reason", func(r *jobRow) any { return r.plainReason() }},
	{"submit_line", func(r *jobRow) any { return r.Spec.SubmitLine }},
	{"submit_time", func(r *jobRow) any { return unixTime(r.Submitted) }},
	{"suspend_time", func(r *jobRow) any { return unixTime(r.SuspendedAt) }},
	{"system_comment", func(r *jobRow) any { return "" }},
	{"tasks", func(r *jobRow) any { return num(r.numTasks()) }},
	{"tasks_per_core", func(r *jobRow) any { return maybe(r.Spec.TasksPerCore) }},
	{"tasks_per_node", func(r *jobRow) any { return num(r.Spec.TasksPerNode) }},
	{"tasks_per_socket", func(r *jobRow) any { return maybe(r.Spec.TasksPerSocket) }},
	{"threads_per_core", func(r *jobRow) any { return maybe(r.Spec.ThreadsPerCore) }},
	{"time_limit", func(r *jobRow) any { return minutes(r.Limit) }},
	{"time_minimum", func(r *jobRow) any { return num(int64(r.Spec.LimitMin / time.Minute)) }},
	{"tres_alloc_str", func(r *jobRow) any {
		if r.Alloc == nil {
			return ""
		}
		return r.tres()
	}},
	{"tres_per_job", func(r *jobRow) any { return format.GRES(r.Spec.PerJob) }},
	{"tres_per_node", func(r *jobRow) any { return format.GRES(r.Spec.PerNode) }},
	{"tres_per_socket", func(r *jobRow) any { return format.GRES(r.Spec.PerSocket) }},
	{"tres_per_task", func(r *jobRow) any { return format.GRES(r.Spec.PerTask) }},
	{"tres_req_str", func(r *jobRow) any { return r.asked().tres() }},
	{"user_id", func(r *jobRow) any { return r.Spec.UID }},
	{"user_name", func(r *jobRow) any { return r.Spec.User }},
	{"wckey", func(r *jobRow) any { return r.Spec.WCKey }},
}

var sharedWords = [...][]string{cluster.ShareDefault: {}, cluster.ShareExclusive: {"none"}, cluster.ShareUser: {"user"},
	cluster.ShareMCS: {"mcs"}, cluster.ShareOver: {"oversubscribe"}}

func (r *jobRow) arrayID() cluster.JobID { return r.ArrayID }

// asked is the row as if nothing had been given to the job yet.
func (r *jobRow) asked() *jobRow {
	j := *r.Job
	j.Alloc = nil
	a := newRow(r.v, &j)
	a.part = r.partition()
	return &a
}

// stateList is the state and its flags.
func (r *jobRow) stateList() []string {
	if r.Phase != cluster.Ending {
		return []string{r.st.long}
	}
	return []string{stateOf(r.Job.Settled()).long, r.st.long}
}

func (r *jobRow) plainReason() string {
	text, _, _ := strings.Cut(r.reason(), ",")
	return text
}

func (r *jobRow) memBy(per cluster.MemPer) number {
	if m := r.memory(); m.Per == per {
		return num(int64(m.MB))
	}
	return number{}
}

func (r *jobRow) gresDetail() []string {
	out := []string{}
	if r.Alloc == nil {
		return out
	}
	kind := r.gpuType()
	for _, sh := range r.Alloc.Shares {
		if !sh.GPUs.Empty() {
			out = append(out, "gpu:"+kind+strconv.Itoa(sh.GPUs.Len())+"(IDX:"+sh.GPUs.String()+")")
		}
	}
	return out
}

// gpuType is the type of a job's GPUs with a colon behind, if there is just one.
func (r *jobRow) gpuType() string {
	for kind := range r.gpuTypes() {
		if len(r.gpuTypes()) == 1 && kind != "" {
			return kind + ":"
		}
	}
	return ""
}

// resources is what was given to a job, node by node.
func (r *jobRow) resources() any {
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
	out := resources{SelectType: []string{"CR_CORE", "CR_MEMORY"}, CPUs: r.numCPUs(),
		Nodes: nodes{Count: len(r.Alloc.Shares), List: r.nodes(), Whole: r.Spec.Sharing == cluster.ShareExclusive, SelectType: []string{"AVAILABLE"}}}
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

// writeList prints an object with one list, and what today's clients expect around it.
func writeList[T any](out *bufio.Writer, v *view, name string, members []member[T], rows []T) int {
	_, _ = out.WriteString("{\n")
	return writeRest(out, v, name, members, rows)
}

// writeRest prints a list and closes the object.
func writeRest[T any](out *bufio.Writer, v *view, name string, members []member[T], rows []T) int {
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
	stamp, _ := wire.Marshal(unixTime(v.now))
	b = append(b, "\n  ],\n  \"last_update\": "...)
	b = append(b, stamp...)
	b = append(b, `,
  "meta": {
    "plugin": {"type": "", "name": "", "data_parser": "data_parser/v0.0.42", "accounting_storage": ""},
    "slurm": {"version": {"major": "25", "micro": "0", "minor": "05"}, "release": "25.05.0", "cluster": `...)
	b = strconv.AppendQuote(b, v.config().Config.ClusterName)
	b = append(b, "}\n  },\n  \"errors\": [],\n  \"warnings\": []\n}\n"...)
	_, _ = out.Write(b)
	return 0
}

func writeJobs(out *bufio.Writer, v *view, rows []jobRow) int {
	return writeList(out, v, "jobs", jobMembers, rows)
}

// stepMembers are the members of a step in --json.
var stepMembers = []member[stepRow]{
	{"id", func(s *stepRow) any { return s.id() }},
	{"job_id", func(s *stepRow) any { return s.ID.Job }},
	{"name", func(s *stepRow) any { return s.Name }},
	{"nodes", func(s *stepRow) any { return front.NodeText(s.nodeNames()) }},
	{"partition", func(s *stepRow) any { return s.job.partition() }},
	{"start_time", func(s *stepRow) any { return unixTime(s.Started) }},
	{"state", func(s *stepRow) any { return []string{"RUNNING"} }},
	{"tasks", func(s *stepRow) any { return s.Tasks }},
	{"user_name", func(s *stepRow) any { return cmp.Or(s.User, s.job.Spec.User) }},
}

func writeSteps(out *bufio.Writer, v *view, rows []stepRow) int {
	slices.SortStableFunc(rows, func(a, b stepRow) int { return cmp.Compare(a.ID.Job, b.ID.Job) })
	return writeList(out, v, "steps", stepMembers, rows)
}
