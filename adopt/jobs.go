package adopt

import (
	"cmp"
	"math/bits"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Numbers that stand for something else.
const (
	noValue  = 0xfffffffe // none
	infinite = 0xffffffff
)

// phaseOf tells where a job stands by the number of its state; ok is false for one that is not known.
func phaseOf(state uint32) (p cluster.Phase, o cluster.Outcome, ok bool) {
	switch {
	case state == 0:
		return cluster.Pending, 0, true
	case state == 1:
		return cluster.Running, 0, true
	case state == 2:
		return cluster.Suspended, 0, true
	}
	if o, ok = cluster.NumberedOutcome(state); ok {
		return cluster.Ended, o, true
	}
	return 0, 0, false
}

// statusOf reads a wait status: code times 256 and a signal.
func statusOf(n uint32) cluster.ExitStatus {
	if n == noValue {
		return cluster.ExitStatus{}
	}
	return cluster.ExitStatus{Code: int(n >> 8 & 0xff), Signal: int(n & 0x7f)}
}

// job makes a record of a row of the job table.
func (s *Source) job(r *row) *cluster.Job {
	i := s.imported(r)
	phase, outcome, ok := phaseOf(i.State)
	if !ok {
		r.refuse("state is %d", i.State)
	}
	j := &cluster.Job{
		ID: cluster.JobID(r.count("id_job")), Phase: phase, Outcome: outcome, Spec: s.spec(r, i), Task: cluster.TaskAny,
		Priority: r.count("priority"), Submitted: moment(r.seconds("time_submit")), Eligible: moment(i.Eligible),
		Started: moment(i.Start), Ended: moment(i.End), Limit: limitOf(i.Limit), Exit: statusOf(i.Exit),
		Derived: statusOf(i.Derived), SystemComment: r.text("system_comment"),
		Restarts: int(r.number("restart_cnt", 16)),
	}
	if i.Eligible >= infinite {
		j.Eligible = time.Time{}
	}
	if phase == cluster.Ended && i.End == 0 {
		r.refuse("state is %d, and it has no end", i.State)
	}
	if phase != cluster.Ended {
		j.Ended = time.Time{}
	}
	j.Imported = i
	j.Attempt = int(j.Submitted.Unix())
	if !r.null("kill_requid") {
		by := r.count("kill_requid")
		j.CancelledBy = &by
	}
	if phase != cluster.Suspended {
		j.SuspendTotal = time.Duration(i.Suspended) * time.Second
	}
	s.parts(r, j)
	if nodes := r.nodes("nodelist"); len(nodes) > 0 {
		j.Alloc = &cluster.Alloc{Partition: i.Partition, Reservation: j.Spec.Reservation,
			Shares: shares(nodes, i.TRESAlloc, 0), Types: gpuTypes(i.TRESAlloc)}
	}
	return j
}

// parts fills in of which array or heterogeneous job a job is part.
func (s *Source) parts(r *row, j *cluster.Job) {
	array, task := r.count("id_array_job"), r.count("id_array_task")
	if array != 0 {
		j.ArrayID = cluster.JobID(array)
		if task != noValue {
			j.Task = int(task)
		}
		j.Tasks = maskOf(r, "array_task_str")
		j.Spec.Array = &cluster.ArraySpec{Tasks: j.Tasks, Limit: int(j.Imported.ArrayLimit)}
	}
	if het := r.count("het_job_id"); het != 0 {
		offset := int(r.count("het_job_offset"))
		j.Het = &cluster.HetPart{ID: cluster.JobID(het), Offset: offset, Size: offset + 1}
	}
}

// maxMask bounds the digits of a mask of tasks.
const maxMask = 1 << 20

// maskOf reads the tasks that wait: bits, as 0x23 for 0, 1 and 5.
func maskOf(r *row, column string) cluster.IDSet {
	digits, ok := strings.CutPrefix(string(r.value(column)), "0x")
	if !ok {
		return cluster.IDSet{}
	}
	if len(digits) > maxMask {
		r.refuse("%s has %d digits", column, len(digits))
		return cluster.IDSet{}
	}
	var tasks []int
	for k := range len(digits) {
		d := strings.IndexByte("0123456789abcdef", digits[len(digits)-1-k]|0x20)
		if d < 0 {
			r.refuse("%s is %.40q", column, digits)
			return cluster.IDSet{}
		}
		for rest := uint(d); rest != 0; rest &= rest - 1 {
			tasks = append(tasks, 4*k+bits.TrailingZeros(rest))
		}
	}
	return cluster.NewIDSet(tasks...)
}

// limitOf is a time limit in minutes.
func limitOf(minutes uint32) time.Duration {
	switch minutes {
	case infinite:
		return cluster.Unlimited
	case noValue:
		return 0
	}
	return time.Duration(minutes) * time.Minute
}

// gpuTypes counts GPUs by their types.
func gpuTypes(given cluster.TRESList) map[string]int64 {
	types := map[string]int64{}
	total := int64(0)
	for name, n := range given.All() {
		if kind, ok := strings.CutPrefix(name, "gres/gpu:"); ok && n < maxPart {
			types[kind] += int64(n)
		} else if name == "gres/gpu" && n < maxPart {
			total = int64(n)
		}
	}
	if len(types) == 0 && total > 0 {
		types[""] = total
	}
	return types
}

// imported is what of a job muster has no place for.
func (s *Source) imported(r *row) *cluster.ImportedJob {
	i := &cluster.ImportedJob{
		Cluster: s.Cluster, Release: s.Release, Row: r.number("job_db_inx", 64), Changed: r.seconds("mod_time"),
		SLUID: r.number("sluid", 64), State: r.count("state"), Exit: r.count("exit_code"),
		Derived: r.count("derived_ec"), Flags: r.count("flags"), Eligible: r.seconds("time_eligible"),
		Start: r.seconds("time_start"), End: r.seconds("time_end"), Suspended: r.seconds("time_suspended"),
		Limit: r.count("timelimit"), CPUs: r.count("cpus_req"), Nodes: r.count("nodes_alloc"),
		NodeList: r.text("nodelist"), Assoc: r.count("id_assoc"), QOS: r.count("id_qos"), WCKey: r.count("id_wckey"),
		Resv: r.count("id_resv"), Partition: r.text("partition"), ArrayLimit: r.count("array_max_tasks"),
		TRESAlloc: s.tresOf(r, "tres_alloc"), TRESReq: s.tresOf(r, "tres_req"),
	}
	i.ImportedTexts = cluster.ImportedTexts{
		QOSReq: r.text("qos_req"), ResvReq: r.text("resv_req"), Extra: r.text("extra"),
		FailedNode: r.text("failed_node"), Container: r.text("container"), Exclusive: r.text("exclusive"),
		OverSubscribe: r.text("oversubscribe"),
	}
	if n := r.count("state_reason_prev"); int(n) >= len(s.reasons) {
		r.refuse("state_reason_prev is %d", n)
	} else if n > 0 {
		i.Reason = s.reasons[n]
	}
	if i.Row == i.SLUID {
		i.SLUID = 0
	}
	return i
}

// spec is what a job asked for.
func (s *Source) spec(r *row, i *cluster.ImportedJob) *cluster.JobSpec {
	uid, gid := r.count("id_user"), r.count("id_group")
	spec := &cluster.JobSpec{
		Layout: &cluster.Layout{Constraint: r.text("constraints"), Licenses: r.text("licenses"),
			MinNodes: int(min(number(i.TRESReq, "node"), maxPart)), Segment: int(r.count("segment_size"))},
		Name: r.text("job_name"), UID: uid, GID: gid,
		User:    cmp.Or(s.own.users[text(i.Assoc)], s.Names.user(uid)),
		Group:   s.Names.group(gid),
		Account: r.text("account"), WCKey: r.text("wckey"), Reservation: s.own.resvs[text(i.Resv)],
		Comment: r.text("derived_es"), AdminComment: r.text("admin_comment"), MCSLabel: r.text("mcs_label"),
		SubmitLine: r.text("submit_line"), WorkDir: r.text("work_dir"), Stdin: r.text("std_in"),
		Stdout: r.text("std_out"), Stderr: r.text("std_err"), Partitions: strings.Split(i.Partition, ","),
		Limit: limitOf(i.Limit),
	}
	if i.QOS != 0 {
		spec.QOS = cmp.Or(s.qos[text(i.QOS)], "Unknown")
	}
	return spec
}

func number(l cluster.TRESList, name string) uint64 {
	n, _ := l.Count(name)
	return n
}
