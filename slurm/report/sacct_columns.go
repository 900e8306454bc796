package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/imported"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// acctRow is one line of sacct: a job, or one of its steps.
type acctRow struct {
	show.JobRow
	step  *cluster.Step // nil: the job itself
	total cluster.Usage // of the job: the sum over its steps
	joule int64         // energy of the same
	why   show.Verdict  // of the job
	steps []*cluster.Step
}

// imported returns the line as the Slurm cluster wrote it that the job ran in.
func (r *acctRow) imported() *imported.Row {
	return &imported.Row{
		Job: r.Job, Steps: r.steps, Step: r.step, Now: r.View.Now, Raw: r.View.Raw, Unit: r.View.Unit, When: r.at,
	}
}

// acctColumn is one field of sacct. Job columns leave steps empty unless step is set too, or the field is one of
// usageColumns.
type acctColumn struct {
	name  string // as its header spells it
	width int    // default; negative: left-justified
	job   func(*acctRow) string
	step  func(*acctRow) string // nil: empty for steps
}

// acctColumns are the fields, in the order of sacct -e.
var acctColumns = [...]acctColumn{
	{
		"Account", 10, func(r *acctRow) string { return r.Spec.Account },
		func(r *acctRow) string { return r.Spec.Account },
	},
	{"AdminComment", 19, func(r *acctRow) string { return r.Spec.AdminComment }, nil},
	{
		"AllocCPUS", 10, func(r *acctRow) string { return strconv.Itoa(r.cpus()) },
		func(r *acctRow) string { return strconv.Itoa(r.cpus()) },
	},
	{"AllocGRES", 12, func(r *acctRow) string { return r.oldGRES() }, func(r *acctRow) string { return r.oldGRES() }},
	{
		"AllocNodes", 10, func(r *acctRow) string { return strconv.Itoa(r.nodeCount()) },
		func(r *acctRow) string { return strconv.Itoa(r.nodeCount()) },
	},
	{
		"AllocTRES", 10, func(r *acctRow) string { return r.allocTRES() },
		func(r *acctRow) string { return r.allocTRES() },
	},
	{
		"AssocID", 7, func(r *acctRow) string { return assocText(r.Job.Assoc) },
		func(r *acctRow) string { return assocText(r.Job.Assoc) },
	},
	{"AveCPU", 10, none, nil},
	{"AveCPUFreq", 10, none, nil},
	{"AveDiskRead", 14, none, nil},
	{"AveDiskWrite", 14, none, nil},
	{"AvePages", 10, none, nil},
	{"AveRSS", 10, none, nil},
	{"AveVMSize", 10, none, nil},
	{"BlockID", 16, none, nil},
	{
		"Cluster", 10, func(r *acctRow) string { return clusterName(r.View) },
		func(r *acctRow) string { return clusterName(r.View) },
	},
	{"Comment", 14, func(r *acctRow) string { return r.Spec.Comment }, nil},
	{"Constraints", 11, func(r *acctRow) string { return r.Spec.Constraint }, nil},
	{"ConsumedEnergy", 14, func(r *acctRow) string { return shortened(r.joule) }, nil},
	{"ConsumedEnergyRaw", 17, func(r *acctRow) string { return decimal(r.joule) }, nil},
	{"Container", 25, func(r *acctRow) string { return "" }, nil},
	{
		"CPUTime", 10, func(r *acctRow) string { return format.Padded(r.cpuTime()) },
		func(r *acctRow) string { return format.Padded(r.cpuTime()) },
	},
	{
		"CPUTimeRAW", 10, func(r *acctRow) string { return wholeSeconds(r.cpuTime()) },
		func(r *acctRow) string { return wholeSeconds(r.cpuTime()) },
	},
	{
		"DBIndex", -20, func(r *acctRow) string { return front.UintText(uint32(r.ID)) },
		func(r *acctRow) string { return front.UintText(uint32(r.ID)) },
	},
	{"DerivedExitCode", 15, func(r *acctRow) string { return acctExit(r.Derived) }, nil},
	{
		"Elapsed", 10, func(r *acctRow) string { return format.Padded(r.elapsed()) },
		func(r *acctRow) string { return format.Padded(r.elapsed()) },
	},
	{
		"ElapsedRaw", 10, func(r *acctRow) string { return wholeSeconds(r.elapsed()) },
		func(r *acctRow) string { return wholeSeconds(r.elapsed()) },
	},
	{"Eligible", 19, func(r *acctRow) string { return r.at(r.Job.Eligible, "Unknown") }, nil},
	{
		"End", 19, func(r *acctRow) string { return r.at(r.ended(), "Unknown") },
		func(r *acctRow) string { return r.at(r.ended(), "Unknown") },
	},
	{"ExitCode", 8, func(r *acctRow) string { return r.exitCode() }, func(r *acctRow) string { return r.exitCode() }},
	{"Flags", 20, func(r *acctRow) string { return r.flags() }, nil},
	{"GID", 6, func(r *acctRow) string { return front.UintText(r.Spec.GID) }, nil},
	{"Group", 9, func(r *acctRow) string { return r.Group() }, nil},
	{
		"JobID", -12, func(r *acctRow) string { return r.ShownID() },
		func(r *acctRow) string { return r.ShownID() + "." + show.StepName(r.step.ID.Step) },
	},
	{
		"JobIDRaw", -12, func(r *acctRow) string { return front.UintText(uint32(r.ID)) },
		func(r *acctRow) string { return front.UintText(uint32(r.ID)) + "." + show.StepName(r.step.ID.Step) },
	},
	{"JobName", 10, func(r *acctRow) string { return r.Spec.Name }, func(r *acctRow) string { return r.step.Name }},
	{"Layout", 9, none, func(r *acctRow) string { return r.layout() }},
	{"MaxDiskRead", 12, none, nil},
	{"MaxDiskReadNode", 15, none, nil},
	{"MaxDiskReadTask", 15, none, nil},
	{"MaxDiskWrite", 12, none, nil},
	{"MaxDiskWriteNode", 16, none, nil},
	{"MaxDiskWriteTask", 16, none, nil},
	{"MaxPages", 8, none, nil},
	{"MaxPagesNode", 12, none, nil},
	{"MaxPagesTask", 14, none, nil},
	{"MaxRSS", 10, none, nil},
	{"MaxRSSNode", 10, none, nil},
	{"MaxRSSTask", 10, none, nil},
	{"MaxVMSize", 10, none, nil},
	{"MaxVMSizeNode", 14, none, nil},
	{"MaxVMSizeTask", 14, none, nil},
	{"McsLabel", 10, func(r *acctRow) string { return r.Spec.MCSLabel }, nil},
	{"MinCPU", 10, none, nil},
	{"MinCPUNode", 10, none, nil},
	{"MinCPUTask", 10, none, nil},
	{
		"NCPUS", 10, func(r *acctRow) string { return strconv.Itoa(r.cpus()) },
		func(r *acctRow) string { return strconv.Itoa(r.cpus()) },
	},
	{
		"NNodes", 8, func(r *acctRow) string { return strconv.Itoa(max(r.nodeCount(), r.asked())) },
		func(r *acctRow) string { return strconv.Itoa(r.nodeCount()) },
	},
	{"NodeList", 15, func(r *acctRow) string { return r.nodeText() }, func(r *acctRow) string { return r.nodeText() }},
	{"NTasks", 8, none, func(r *acctRow) string { return strconv.Itoa(r.step.Tasks) }},
	{"Partition", 10, func(r *acctRow) string { return strings.Join(r.partitions(), ",") }, nil},
	{"Priority", 10, func(r *acctRow) string { return front.UintText(r.Job.Priority) }, nil},
	{"QOS", 10, func(r *acctRow) string { return r.Spec.QOS }, nil},
	{"QOSRAW", 6, func(r *acctRow) string { return front.UintText(r.View.QOSID(r.Spec.QOS)) }, nil},
	{"Reason", 22, func(r *acctRow) string { return r.whyText() }, nil},
	{"ReqCPUFreq", 10, unknown, func(r *acctRow) string { return values.ReqFreq(r.step).Max }},
	{"ReqCPUFreqGov", 13, unknown, func(r *acctRow) string { return values.ReqFreq(r.step).Governor }},
	{"ReqCPUFreqMax", 13, unknown, func(r *acctRow) string { return values.ReqFreq(r.step).Max }},
	{"ReqCPUFreqMin", 13, unknown, func(r *acctRow) string { return values.ReqFreq(r.step).Min }},
	{
		"ReqCPUS", 8, func(r *acctRow) string { return strconv.Itoa(r.NumCPUs()) },
		func(r *acctRow) string { return strconv.Itoa(r.cpus()) },
	},
	{"ReqGRES", 12, func(r *acctRow) string { return r.reqGRES() }, nil},
	{"ReqMem", 10, func(r *acctRow) string { return r.View.Mem(r.TotalMem()) }, nil},
	{
		"ReqNodes", 8, func(r *acctRow) string { return strconv.Itoa(r.asked()) },
		func(r *acctRow) string { return strconv.Itoa(r.nodeCount()) },
	},
	{"ReqTRES", 10, func(r *acctRow) string { return r.reqTRES() }, nil},
	{"Reservation", 20, func(r *acctRow) string { return r.Spec.Reservation }, nil},
	{"ReservationId", 13, none, nil},
	{"Reserved", 10, func(r *acctRow) string { return format.Padded(r.waited()) }, nil},
	{"ResvCPU", 10, func(r *acctRow) string { return format.Padded(r.waited() * time.Duration(r.NumCPUs())) }, nil},
	{"ResvCPURAW", 10, func(r *acctRow) string { return wholeSeconds(r.waited() * time.Duration(r.NumCPUs())) }, nil},
	{
		"Start", 19, func(r *acctRow) string { return r.at(r.started(), r.noStart()) },
		func(r *acctRow) string { return r.at(r.started(), "Unknown") },
	},
	{"State", 10, func(r *acctRow) string { return r.stateText() }, func(r *acctRow) string { return r.stateText() }},
	{
		"Submit", 19, func(r *acctRow) string { return r.at(r.Submitted, "Unknown") },
		func(r *acctRow) string { return r.at(r.started(), "Unknown") },
	},
	{
		"SubmitLine", 20, func(r *acctRow) string { return r.Spec.SubmitLine },
		func(r *acctRow) string { return r.step.SubmitLine },
	},
	{
		"Suspended", 10, func(r *acctRow) string { return format.Padded(r.SuspendTotal) },
		func(r *acctRow) string { return format.Padded(0) },
	},
	{"SystemComment", 14, func(r *acctRow) string { return r.SystemComment }, nil},
	{
		"SystemCPU", 10, func(r *acctRow) string { return millis(r.usage().SystemCPU) },
		func(r *acctRow) string { return millis(r.usage().SystemCPU) },
	},
	{"Timelimit", 10, func(r *acctRow) string { return r.limitText() }, nil},
	{"TimelimitRaw", 12, func(r *acctRow) string { return r.limitRaw() }, nil},
	{
		"TotalCPU", 10, func(r *acctRow) string { return millis(r.usage().UserCPU + r.usage().SystemCPU) },
		func(r *acctRow) string { return millis(r.usage().UserCPU + r.usage().SystemCPU) },
	},
	{"TRESUsageInAve", 14, none, nil},
	{"TRESUsageInMax", 14, none, nil},
	{"TRESUsageInMaxNode", 18, none, nil},
	{"TRESUsageInMaxTask", 18, none, nil},
	{"TRESUsageInMin", 14, none, nil},
	{"TRESUsageInMinNode", 18, none, nil},
	{"TRESUsageInMinTask", 18, none, nil},
	{"TRESUsageInTot", 14, none, nil},
	{"TRESUsageOutAve", 15, none, nil},
	{"TRESUsageOutMax", 15, none, nil},
	{"TRESUsageOutMaxNode", 19, none, nil},
	{"TRESUsageOutMaxTask", 19, none, nil},
	{"TRESUsageOutMin", 15, none, nil},
	{"TRESUsageOutMinNode", 19, none, nil},
	{"TRESUsageOutMinTask", 19, none, nil},
	{"TRESUsageOutTot", 15, none, nil},
	{"UID", 6, func(r *acctRow) string { return front.UintText(r.Spec.UID) }, nil},
	{"User", 9, func(r *acctRow) string { return r.Spec.User }, nil},
	{
		"UserCPU", 10, func(r *acctRow) string { return millis(r.usage().UserCPU) },
		func(r *acctRow) string { return millis(r.usage().UserCPU) },
	},
	{"WCKey", 10, func(r *acctRow) string { return r.Spec.WCKey }, nil},
	{"WCKeyID", 10, func(r *acctRow) string { return front.UintText(r.View.WCKeyID(r.Spec.User, r.Spec.WCKey)) }, nil},
	{"WorkDir", 20, func(r *acctRow) string { return r.Spec.WorkDir }, nil},
	{"Verdict", 40, func(r *acctRow) string { return r.why.String() }, nil}, // why it did not end well
	{"BlameNode", 15, func(r *acctRow) string { return string(r.why.Node) }, nil},
	// Fields that came after 22.05 stand last, so that what abbreviates one of its fields goes on to.
	{"Exclusive", 14, func(r *acctRow) string { return show.ExclusiveWord(r.Spec.Sharing) }, nil},
	{"Extra", 14, func(r *acctRow) string { return r.Spec.Extra }, nil},
	{"FailedNode", 8, func(r *acctRow) string { return string(r.why.Node) }, nil},
	{"Licenses", 10, func(r *acctRow) string { return r.Spec.Licenses }, nil},
	{"OriginalSLUID", 14, none, nil},
	{
		"OverSubscribe", 14,
		func(r *acctRow) string { return front.Choose(r.Spec.Sharing == cluster.ShareOver, "YES", "NO") }, nil,
	},
	{"Planned", 10, func(r *acctRow) string { return format.Padded(r.waited()) }, nil},
	{"PlannedCPU", 10, func(r *acctRow) string { return format.Padded(r.plannedCPU()) }, nil},
	{"PlannedCPURAW", 13, func(r *acctRow) string { return wholeSeconds(r.plannedCPU()) }, nil},
	{"QOSREQ", 10, func(r *acctRow) string { return r.Spec.QOS }, nil},
	{"ReqReservation", 20, func(r *acctRow) string { return r.Spec.Reservation }, nil},
	{"Restarts", 8, func(r *acctRow) string { return strconv.Itoa(r.Restarts) }, nil},
	{"SegmentSize", 11, func(r *acctRow) string { return countOf(r.Spec.Segment) }, nil},
	{"SLUID", 14, none, nil},
	{"StdErr", 20, func(r *acctRow) string { return r.fileName(2, r.Spec.Stderr != "") }, nil},
	{"StdIn", 20, func(r *acctRow) string { return r.fileName(0, true) }, nil},
	{"StdOut", 20, func(r *acctRow) string { return r.fileName(1, true) }, nil},
}

// plannedCPU is the time that the job waited, for each of its CPUs.
func (r *acctRow) plannedCPU() time.Duration { return r.waited() * time.Duration(r.NumCPUs()) }

// fileName is one of the standard files of a batch job, if it has one of its own.
func (r *acctRow) fileName(fd int, own bool) string {
	if r.Spec.Kind != cluster.Batch || !own {
		return ""
	}
	return r.StdFile(fd)
}

// countOf is a number, or nothing for 0.
func countOf(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func none(*acctRow) string {
	return ""
}

func unknown(*acctRow) string {
	return "Unknown"
}

func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// millis is CPU time: MM:SS.mmm below an hour.
func millis(d time.Duration) string {
	switch {
	case d == 0:
		return "00:00:00"
	case d >= time.Hour:
		return format.Padded(d)
	}
	ms := strconv.FormatInt(int64(d/time.Millisecond%1000)+1000, 10)[1:]
	return format.Padded(d)[3:] + "." + ms
}

func clusterName(v *show.View) string {
	return show.ClusterOf(v)
}

func (r *acctRow) at(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return r.View.When(t)
}

func (r *acctRow) shares() []cluster.Share {
	if r.step != nil {
		return r.step.Shares
	}
	if r.Alloc == nil {
		return nil
	}
	return r.Alloc.Shares
}

func (r *acctRow) cpus() (n int) {
	for _, sh := range r.shares() {
		n += sh.CPUs.Len()
	}
	return n
}

func (r *acctRow) nodeCount() int {
	return len(r.shares())
}

func (r *acctRow) asked() int {
	return max(r.Spec.MinNodes, 1)
}

func (r *acctRow) partitions() []string {
	if r.Alloc != nil {
		return []string{r.Alloc.Partition}
	}
	return r.Spec.Partitions
}

func (r *acctRow) nodeText() string {
	if r.shares() == nil {
		return "None assigned"
	}
	names := make([]cluster.NodeName, 0, len(r.shares()))
	for _, sh := range r.shares() {
		names = append(names, sh.Node)
	}
	return front.NodeText(names)
}

func (r *acctRow) started() time.Time {
	if r.step != nil {
		return r.step.Started
	}
	if r.Job.Started.IsZero() && r.Phase == cluster.Ended && r.Outcome != cluster.Cancelled {
		return r.Job.Ended
	}
	return r.Job.Started
}

// noStart is shown for a job that has no start: it ended without one, or has not begun.
func (r *acctRow) noStart() string {
	if r.Phase == cluster.Ended {
		return "None"
	}
	return "Unknown"
}

func (r *acctRow) ended() time.Time {
	if r.step != nil {
		return r.step.Ended
	}
	return r.Job.Ended
}

func (r *acctRow) elapsed() time.Duration {
	if r.step == nil {
		return r.RunTime(r.View.Now).Truncate(time.Second)
	}
	end := r.step.Ended
	if end.IsZero() {
		end = r.View.Now
	}
	return max(end.Sub(r.step.Started), 0).Truncate(time.Second)
}

func (r *acctRow) cpuTime() time.Duration {
	return r.elapsed() * time.Duration(r.cpus())
}

func (r *acctRow) usage() cluster.Usage {
	if r.step != nil {
		return r.step.Usage
	}
	return r.total
}

func (r *acctRow) waited() time.Duration {
	end := r.Job.Started
	switch {
	case end.IsZero() && r.Phase == cluster.Ended:
		end = r.Job.Ended
	case end.IsZero():
		end = r.View.Now
	}
	from := r.Job.Eligible
	if from.IsZero() {
		return 0
	}
	return max(end.Sub(from), 0).Truncate(time.Second)
}

// acctExit writes an exit status as history does: 128 is taken off codes above it.
func acctExit(e cluster.ExitStatus) string {
	code, sig := e.Code, e.Signal
	if code > 128 {
		code -= 128
	}
	return strconv.Itoa(code) + ":" + strconv.Itoa(sig)
}

func (r *acctRow) exitCode() string {
	if r.step != nil {
		if r.step.Outcome == cluster.NodeFailed {
			return ""
		}
		return acctExit(r.step.Exit)
	}
	if r.Outcome.Imposed() {
		return "0:0"
	}
	return acctExit(r.Exit)
}

func (r *acctRow) stateText() string {
	if r.step == nil {
		if r.Outcome == cluster.Cancelled && r.CancelledBy != nil {
			return "CANCELLED by " + front.UintText(*r.CancelledBy)
		}
		if r.Phase == cluster.Ending { // and will wait again
			return "RUNNING"
		}
		return show.StateOf(r.Job).Long
	}
	switch {
	case r.step.Ended.IsZero():
		return "RUNNING"
	case r.step.CancelledBy != nil:
		return "CANCELLED by " + front.UintText(*r.step.CancelledBy)
	}
	return cmp.Or(r.step.Outcome.State(), "COMPLETED")
}

func (r *acctRow) whyText() string {
	if r.Phase == cluster.Pending {
		return strings.ReplaceAll(cmp.Or(string(r.Wait), "None"), " ", "_")
	}
	return "None"
}

func (r *acctRow) flags() string {
	if r.Job.Started.IsZero() {
		return ""
	}
	if r.Backfilled {
		return "SchedBackfill,StartRecieved"
	}
	return "SchedMain,StartRecieved"
}

func (r *acctRow) layout() string {
	switch {
	case r.step.ID.Step < 0:
		return "Unknown"
	case strings.HasPrefix(r.step.Distribution, "cyclic") || r.step.Distribution == "" && r.step.Tasks <= len(r.step.Shares):
		return "Cyclic"
	}
	return "Block"
}

func (r *acctRow) limitText() string {
	if r.Limit == 0 {
		return ""
	}
	return format.Padded(r.Limit)
}

func (r *acctRow) limitRaw() string {
	switch r.Limit {
	case 0:
		return ""
	case cluster.Unlimited:
		return "UNLIMITED"
	}
	return strconv.FormatInt(int64(r.Limit/time.Minute), 10)
}

func (r *acctRow) gpuTotals() (total int64, types map[string]int64) {
	types = map[string]int64{}
	if r.Alloc == nil {
		return 0, types
	}
	if r.step == nil {
		for name, n := range r.Alloc.Types {
			types[name] += n
			total += n
		}
		return total, types
	}
	only := ""
	for name := range r.Alloc.Types {
		only = name
	}
	for _, sh := range r.step.Shares {
		total += int64(sh.GPUs.Len())
	}
	if len(r.Alloc.Types) == 1 && total > 0 {
		types[only] = total
	}
	return total, types
}

func (r *acctRow) allocTRES() string {
	if r.shares() == nil {
		return ""
	}
	var mem cluster.MemMB
	for _, sh := range r.shares() {
		mem += sh.MemMB
	}
	total, types := r.gpuTotals()
	billing := int64(0)
	if r.Alloc != nil && (r.step == nil || r.step.ID.Step == cluster.ExternStep) {
		billing = int64(cluster.AmountOf(r.Given(), "billing"))
	}
	return show.AlphaTRES(r.cpus(), r.nodeCount(), r.View.Mem(mem), total, types, billing)
}

func (r *acctRow) reqTRES() string {
	types := map[string]int64{}
	total := int64(r.NumGPUs())
	for _, list := range [...][]cluster.GRES{r.Spec.PerNode, r.Spec.PerJob, r.Spec.PerTask} {
		for _, g := range list {
			if g.Name == "gpu" && g.Type != "" {
				types[g.Type] = total
			}
		}
	}
	return show.AlphaTRES(r.NumCPUs(), r.asked(), r.View.Mem(r.TotalMem()), total, types, int64(r.NumCPUs()))
}

// oldGRES is the field that Slurm has dropped and scripts still ask for: gpu:TYPE:N, the job's total.
func (r *acctRow) oldGRES() string {
	total, types := r.gpuTotals()
	if total == 0 {
		return ""
	}
	var out []string
	for name, n := range types {
		if name != "" {
			out = append(out, "gpu:"+name+":"+strconv.FormatInt(n, 10))
		}
	}
	if out == nil {
		return "gpu:" + strconv.FormatInt(total, 10)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (r *acctRow) reqGRES() string {
	var out []string
	for _, list := range [...][]cluster.GRES{r.Spec.PerNode, r.Spec.PerJob} {
		for _, g := range list {
			t := g.Name
			if g.Type != "" {
				t += ":" + g.Type
			}
			out = append(out, t+":"+strconv.FormatInt(g.Count, 10))
		}
	}
	return strings.Join(out, ",")
}

// assocText is the number of an association, "" for none.
func assocText(id cluster.AssocID) string {
	if id == 0 {
		return ""
	}
	return front.UintText(uint32(id))
}

// SacctFields are the names of sacct's fields, for its manual.
func SacctFields() (names []string) {
	for i := range acctColumns {
		names = append(names, acctColumns[i].name)
	}
	return names
}
