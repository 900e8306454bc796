package imported

import (
	"cmp"
	"slices"
	"sync"

	"dev.muster/slurm/format"
)

// field is how one field is written of a job and of a step; nil: it is empty.
type field struct {
	name      string
	job, step func(*Row) string
}

// Field returns a field by its name; ok is false for one that Slurm does not have.
func (r *Row) Field(name string) (text string, ok bool) {
	all := fields()
	i := slices.IndexFunc(all, func(f field) bool { return f.name == name })
	if i < 0 {
		return "", false
	}
	write := all[i].job
	if r.Step != nil {
		write = all[i].step
	}
	if write != nil {
		text = write(r)
	}
	return text, true
}

// made holds the fields once they are needed.
var made struct {
	once sync.Once
	list []field
}

// fields returns what sacct has, up to 26.05.
func fields() []field {
	made.once.Do(func() {
		made.list = slices.Concat(fields1(), fields2(), fields3(), fields4())
	})
	return made.list
}

// fields1 returns Account to DerivedExitCode.
func fields1() []field {
	return []field{
		{
			"Account",
			func(r *Row) string { return r.Job.Spec.Account },
			func(r *Row) string { return r.Job.Spec.Account },
		},
		{"AdminComment", func(r *Row) string { return r.Job.Spec.AdminComment }, nil},
		{
			"AllocCPUS",
			func(r *Row) string { return number(r.cpus()) },
			func(r *Row) string { return number(r.cpus()) },
		},
		{
			"AllocNodes",
			func(r *Row) string { return number(r.Job.Imported.Nodes) },
			func(r *Row) string { return number(r.nodes()) },
		},
		{
			"AllocTRES",
			func(r *Row) string { return r.tres(r.Job.Imported.TRESAlloc) },
			func(r *Row) string { return r.tres(r.Step.Imported.TRESAlloc) },
		},
		{
			"AssocID",
			func(r *Row) string { return nonZero(r.Job.Imported.Assoc) },
			func(r *Row) string { return nonZero(r.Job.Imported.Assoc) },
		},
		{"AveCPU", nil, func(r *Row) string { return one(r.in().Ave, "cpu", clock) }},
		{"AveCPUFreq", nil, func(r *Row) string { return shortened(r.Step.Imported.Freq * 1000) }},
		{"AveDiskRead", nil, func(r *Row) string { return one(r.in().Ave, "fs/disk", r.disk) }},
		{"AveDiskWrite", nil, func(r *Row) string { return one(r.out().Ave, "fs/disk", r.disk) }},
		{"AvePages", nil, func(r *Row) string { return one(r.in().Ave, "pages", r.size) }},
		{"AveRSS", nil, func(r *Row) string { return one(r.in().Ave, "mem", r.size) }},
		{"AveVMSize", nil, func(r *Row) string { return one(r.in().Ave, "vmem", r.size) }},
		{"BlockID", nil, nil},
		{
			"Cluster",
			func(r *Row) string { return r.Job.Imported.Cluster },
			func(r *Row) string { return r.Job.Imported.Cluster },
		},
		{"Comment", func(r *Row) string { return r.Job.Spec.Comment }, nil},
		{"Constraints", func(r *Row) string { return r.Job.Spec.Constraint }, nil},
		{
			"ConsumedEnergy",
			func(r *Row) string { return r.consumed(true) },
			func(r *Row) string { return r.consumed(true) },
		},
		{
			"ConsumedEnergyRaw",
			func(r *Row) string { return r.consumed(false) },
			func(r *Row) string { return r.consumed(false) },
		},
		{
			"Container",
			func(r *Row) string { return r.Job.Imported.Container },
			func(r *Row) string { return r.Step.Imported.Container },
		},
		{
			"CPUTime",
			func(r *Row) string { return format.Padded(r.cpuTime()) },
			func(r *Row) string { return format.Padded(r.cpuTime()) },
		},
		{
			"CPUTimeRAW",
			func(r *Row) string { return seconds(r.cpuTime()) },
			func(r *Row) string { return seconds(r.cpuTime()) },
		},
		{
			"DBIndex",
			func(r *Row) string { return decimal(r.Job.Imported.Row) },
			func(r *Row) string { return decimal(r.Job.Imported.Row) },
		},
		{"DerivedExitCode", func(r *Row) string { return r.derived() }, nil},
	}
}

// fields2 returns Elapsed to ReqCPUFreqGov.
func fields2() []field {
	return []field{
		{
			"Elapsed",
			func(r *Row) string { return format.Padded(r.elapsed()) },
			func(r *Row) string { return format.Padded(r.elapsed()) },
		},
		{
			"ElapsedRaw",
			func(r *Row) string { return seconds(r.elapsed()) },
			func(r *Row) string { return seconds(r.elapsed()) },
		},
		{
			"Eligible",
			func(r *Row) string { return r.When(moment(r.Job.Imported.Eligible), "Unknown") },
			func(r *Row) string { return r.start() },
		},
		{"End", func(r *Row) string { return r.end() }, func(r *Row) string { return r.end() }},
		{"ExitCode", func(r *Row) string { return r.exitCode() }, func(r *Row) string { return r.exitCode() }},
		{"Flags", func(r *Row) string { return r.flags() }, nil},
		{"GID", func(r *Row) string { return number(r.Job.Spec.GID) }, nil},
		{"Group", func(r *Row) string { return r.Job.Spec.Group }, nil},
		{"JobID", func(r *Row) string { return r.id() }, func(r *Row) string { return r.ofStep(r.id()) }},
		{"JobIDRaw", func(r *Row) string { return r.rawID() }, func(r *Row) string { return r.ofStep(r.rawID()) }},
		{"JobName", func(r *Row) string { return r.Job.Spec.Name }, func(r *Row) string { return r.Step.Name }},
		{"Layout", nil, func(r *Row) string { return r.layout() }},
		{"MaxDiskRead", nil, func(r *Row) string { return one(kept(r.in().Max, r.in().Ave), "fs/disk", r.disk) }},
		{"MaxDiskReadNode", nil, func(r *Row) string { return one(r.in().MaxNode, "fs/disk", r.node) }},
		{"MaxDiskReadTask", nil, func(r *Row) string { return one(r.in().MaxTask, "fs/disk", decimal) }},
		{"MaxDiskWrite", nil, func(r *Row) string { return one(kept(r.out().Max, r.out().Ave), "fs/disk", r.disk) }},
		{"MaxDiskWriteNode", nil, func(r *Row) string { return one(r.out().MaxNode, "fs/disk", r.node) }},
		{"MaxDiskWriteTask", nil, func(r *Row) string { return one(r.out().MaxTask, "fs/disk", decimal) }},
		{"MaxPages", nil, func(r *Row) string { return one(kept(r.in().Max, r.in().Ave), "pages", r.size) }},
		{"MaxPagesNode", nil, func(r *Row) string { return one(r.in().MaxNode, "pages", r.node) }},
		{"MaxPagesTask", nil, func(r *Row) string { return one(r.in().MaxTask, "pages", decimal) }},
		{"MaxRSS", nil, func(r *Row) string { return one(kept(r.in().Max, r.in().Ave), "mem", r.size) }},
		{"MaxRSSNode", nil, func(r *Row) string { return one(r.in().MaxNode, "mem", r.node) }},
		{"MaxRSSTask", nil, func(r *Row) string { return one(r.in().MaxTask, "mem", decimal) }},
		{"MaxVMSize", nil, func(r *Row) string { return one(kept(r.in().Max, r.in().Ave), "vmem", r.size) }},
		{"MaxVMSizeNode", nil, func(r *Row) string { return one(r.in().MaxNode, "vmem", r.node) }},
		{"MaxVMSizeTask", nil, func(r *Row) string { return one(r.in().MaxTask, "vmem", decimal) }},
		{"McsLabel", func(r *Row) string { return r.Job.Spec.MCSLabel }, nil},
		{"MinCPU", nil, func(r *Row) string { return one(kept(r.in().Min, r.in().Ave), "cpu", clock) }},
		{"MinCPUNode", nil, func(r *Row) string { return one(kept(r.in().MinNode, r.in().MaxNode), "cpu", r.node) }},
		{"MinCPUTask", nil, func(r *Row) string { return one(kept(r.in().MinTask, r.in().MaxTask), "cpu", decimal) }},
		{"NCPUS", func(r *Row) string { return number(r.cpus()) }, func(r *Row) string { return number(r.cpus()) }},
		{"NNodes", func(r *Row) string { return number(r.nodes()) }, func(r *Row) string { return number(r.nodes()) }},
		{
			"NodeList",
			func(r *Row) string { return r.Job.Imported.NodeList },
			func(r *Row) string { return r.Step.Imported.NodeList },
		},
		{"NTasks", nil, func(r *Row) string { return number(r.Step.Tasks) }},
		{"Partition", func(r *Row) string { return r.Job.Imported.Partition }, nil},
		{"Priority", func(r *Row) string { return number(r.Job.Priority) }, nil},
		{"QOS", func(r *Row) string { return r.Job.Spec.QOS }, nil},
		{"QOSRAW", func(r *Row) string { return nonZero(r.Job.Imported.QOS) }, nil},
		{"Reason", func(r *Row) string { return cmp.Or(r.Job.Imported.Reason, "None") }, nil},
		{
			"ReqCPUFreq",
			func(*Row) string { return "Unknown" },
			func(r *Row) string { return freq(r.Step.Imported.FreqMax) },
		},
		{
			"ReqCPUFreqGov",
			func(*Row) string { return "Unknown" },
			func(r *Row) string { return freq(r.Step.Imported.FreqGov) },
		},
	}
}

// fields3 returns ReqCPUFreqMax to TRESUsageInTot.
func fields3() []field {
	return []field{
		{
			"ReqCPUFreqMax",
			func(*Row) string { return "Unknown" },
			func(r *Row) string { return freq(r.Step.Imported.FreqMax) },
		},
		{
			"ReqCPUFreqMin",
			func(*Row) string { return "Unknown" },
			func(r *Row) string { return freq(r.Step.Imported.FreqMin) },
		},
		{
			"ReqCPUS",
			func(r *Row) string { return number(r.Job.Imported.CPUs) },
			func(r *Row) string { return number(r.cpus()) },
		},
		{"ReqMem", func(r *Row) string { return r.mem(count(r.Job.Imported.TRESReq, "mem")) }, nil},
		{
			"ReqNodes",
			func(r *Row) string { return number(count(r.Job.Imported.TRESReq, "node")) },
			func(r *Row) string { return number(r.nodes()) },
		},
		{"ReqTRES", func(r *Row) string { return r.tres(r.Job.Imported.TRESReq) }, nil},
		{"Reservation", func(r *Row) string { return r.Job.Spec.Reservation }, nil},
		{"ReservationId", func(r *Row) string { return nonZero(r.Job.Imported.Resv) }, nil},
		{"Reserved", func(r *Row) string { return r.planned() }, nil},
		{"ResvCPU", func(r *Row) string { return r.plannedCPU() }, nil},
		{"ResvCPURAW", func(r *Row) string { return number(r.plannedSeconds()) }, nil},
		{"Start", func(r *Row) string { return r.start() }, func(r *Row) string { return r.start() }},
		{"State", func(r *Row) string { return r.state() }, func(r *Row) string { return r.state() }},
		{
			"Submit",
			func(r *Row) string { return r.When(r.Job.Submitted, "Unknown") },
			func(r *Row) string { return r.start() },
		},
		{
			"SubmitLine",
			func(r *Row) string { return r.Job.Spec.SubmitLine },
			func(r *Row) string { return r.Step.SubmitLine },
		},
		{"Suspended", func(r *Row) string { return r.suspended() }, func(r *Row) string { return r.suspended() }},
		{"SystemComment", func(r *Row) string { return r.Job.SystemComment }, nil},
		{
			"SystemCPU",
			func(r *Row) string { return cpuClock(r.total(systemCPU)) },
			func(r *Row) string { return cpuClock(r.total(systemCPU)) },
		},
		{
			"TotalCPU",
			func(r *Row) string { return cpuClock(r.total(allCPU)) },
			func(r *Row) string { return cpuClock(r.total(allCPU)) },
		},
		{
			"UserCPU",
			func(r *Row) string { return cpuClock(r.total(userCPU)) },
			func(r *Row) string { return cpuClock(r.total(userCPU)) },
		},
		{
			"Timelimit",
			func(r *Row) string { return r.limit() },
			func(r *Row) string { return r.stepLimit(r.writeLimit) },
		},
		{
			"TimelimitRaw",
			func(r *Row) string { return r.limitRaw() },
			func(r *Row) string { return r.stepLimit(number) },
		},
		{"TRESUsageInAve", nil, func(r *Row) string { return r.amounts(r.in().Ave) }},
		{"TRESUsageInMax", nil, func(r *Row) string { return r.amounts(kept(r.in().Max, r.in().Ave)) }},
		{"TRESUsageInMaxNode", nil, func(r *Row) string { return r.places(r.in().MaxNode) }},
		{"TRESUsageInMaxTask", nil, func(r *Row) string { return plain(r.in().MaxTask) }},
		{"TRESUsageInMin", nil, func(r *Row) string { return r.amounts(kept(r.in().Min, r.in().Ave)) }},
		{"TRESUsageInMinNode", nil, func(r *Row) string { return r.places(kept(r.in().MinNode, r.in().MaxNode)) }},
		{"TRESUsageInMinTask", nil, func(r *Row) string { return plain(kept(r.in().MinTask, r.in().MaxTask)) }},
		{"TRESUsageInTot", nil, func(r *Row) string { return r.amounts(kept(r.in().Tot, r.in().Ave)) }},
	}
}

// fields4 returns TRESUsageOutAve to StdOut.
func fields4() []field {
	return []field{
		{"TRESUsageOutAve", nil, func(r *Row) string { return r.amounts(r.out().Ave) }},
		{"TRESUsageOutMax", nil, func(r *Row) string { return r.amounts(kept(r.out().Max, r.out().Ave)) }},
		{"TRESUsageOutMaxNode", nil, func(r *Row) string { return r.places(r.out().MaxNode) }},
		{"TRESUsageOutMaxTask", nil, func(r *Row) string { return plain(r.out().MaxTask) }},
		{"TRESUsageOutMin", nil, func(r *Row) string { return r.amounts(kept(r.out().Min, r.out().Ave)) }},
		{"TRESUsageOutMinNode", nil, func(r *Row) string { return r.places(kept(r.out().MinNode, r.out().MaxNode)) }},
		{"TRESUsageOutMinTask", nil, func(r *Row) string { return plain(kept(r.out().MinTask, r.out().MaxTask)) }},
		{"TRESUsageOutTot", nil, func(r *Row) string { return r.amounts(kept(r.out().Tot, r.out().Ave)) }},
		{"UID", func(r *Row) string { return number(r.Job.Spec.UID) }, nil},
		{"User", func(r *Row) string { return r.Job.Spec.User }, nil},
		{"WCKey", func(r *Row) string { return r.Job.Spec.WCKey }, nil},
		{"WCKeyID", func(r *Row) string { return nonZero(r.Job.Imported.WCKey) }, nil},
		{
			"WorkDir",
			func(r *Row) string { return r.Job.Spec.WorkDir },
			nil,
		},
		{"Exclusive", func(r *Row) string { return r.Job.Imported.Exclusive }, nil},
		{"Extra", func(r *Row) string { return r.Job.Imported.Extra }, nil},
		{"FailedNode", func(r *Row) string { return r.Job.Imported.FailedNode }, nil},
		{"Licenses", func(r *Row) string { return r.Job.Spec.Licenses }, nil},
		{
			"OriginalSLUID",
			func(r *Row) string { return sluid(cmp.Or(r.Job.Imported.SLUID, r.Job.Imported.Row)) },
			func(r *Row) string { return sluid(cmp.Or(r.Job.Imported.SLUID, r.Job.Imported.Row)) },
		},
		{"OverSubscribe", func(r *Row) string { return r.Job.Imported.OverSubscribe }, nil},
		{"Planned", func(r *Row) string { return r.planned() }, nil},
		{"PlannedCPU", func(r *Row) string { return r.plannedCPU() }, nil},
		{"PlannedCPURAW", func(r *Row) string { return number(r.plannedSeconds()) }, nil},
		{"QOSREQ", func(r *Row) string { return r.Job.Imported.QOSReq }, nil},
		{"ReqReservation", func(r *Row) string { return r.Job.Imported.ResvReq }, nil},
		{"Restarts", func(r *Row) string { return number(r.Job.Restarts) }, nil},
		{"SegmentSize", func(r *Row) string { return nonZero(uint32(r.Job.Spec.Segment)) }, nil},
		{
			"SLUID",
			func(r *Row) string { return sluid(r.Job.Imported.Row) },
			func(r *Row) string { return sluid(r.Job.Imported.Row) },
		},
		{"StdErr", func(r *Row) string { return r.Job.Spec.Stderr }, nil},
		{"StdIn", func(r *Row) string { return r.Job.Spec.Stdin }, nil},
		{"StdOut", func(r *Row) string { return r.Job.Spec.Stdout }, nil},
	}
}
