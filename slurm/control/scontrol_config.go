package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// noLine is the value of a line that is not there.
const noLine = "\x00"

// plainValue is how Slurm prints a text, a number or a time.
func plainValue(value any) string {
	switch v := value.(type) {
	case string:
		return format.Null(v)
	case time.Duration:
		return seconds(v)
	}
	return fmt.Sprint(value)
}

// always is a line whose value no configuration changes.
func always(text string) func(*api.ClusterResponse) string {
	return func(*api.ClusterResponse) string { return text }
}

// serverPort is where the servers listen.
func serverPort(r *api.ClusterResponse) string {
	for _, s := range r.Servers {
		if i := strings.LastIndexByte(s.Addr, ':'); i >= 0 {
			return s.Addr[i+1:]
		}
	}
	return "(null)"
}

// memLine is a size of memory, if it is one per what the key says.
func memLine(key string, of func(*cluster.Config) cluster.Mem) configLine {
	return configLine{key, func(r *api.ClusterResponse) string {
		name, value, _ := strings.Cut(partitionMem(key[:3], of(&r.Config)), "=")
		if name != key {
			return noLine
		}
		return value
	}}
}

func defMem(c *cluster.Config) cluster.Mem { return c.DefMem }

func maxMem(c *cluster.Config) cluster.Mem { return c.MaxMem }

// configLines are what is active, whatever the file says, of keys that are more than a value in its place
// (conf.InForce). It is a function so that other front-ends pay nothing for it at start.
func configLines() []configLine {
	return slices.Concat(priorityLines(), firstLines(), lastLines())
}

// firstLines are those up to N, lastLines the others.
func firstLines() []configLine {
	return []configLine{
		{"AccountingStorageEnforce", enforced},
		{"AccountingStorageType", always("accounting_storage/sqlite")},
		{"BOOT_TIME", func(r *api.ClusterResponse) string { return format.Stamp(r.Booted, "Unknown") }},
		{"ClusterName", func(r *api.ClusterResponse) string { return r.Config.ClusterName }},
		memLine("DefMemPerCPU", defMem),
		memLine("DefMemPerNode", defMem),
		{"DependencyParameters", func(r *api.ClusterResponse) string {
			return front.Choose(r.Config.KillInvalidDepend, "kill_invalid_depend", "(null)")
		}},
		{
			"DisableRootJobs",
			func(r *api.ClusterResponse) string { return front.Choose(r.Config.NoRootJobs, "Yes", "No") },
		},
		{"EnforcePartLimits", func(r *api.ClusterResponse) string { return cmp.Or(r.Config.EnforcePartLimits, "NO") }},
		{"FirstJobId", func(r *api.ClusterResponse) string { return front.UintText(uint32(r.Config.FirstJobID)) }},
		{"GresTypes", func(r *api.ClusterResponse) string { return strings.Join(r.Config.GRESNames(), ",") }},
		{"HealthCheckNodeState", checkedStates},
		{"InactiveLimit", func(r *api.ClusterResponse) string { return seconds(r.Config.InactiveLimit) }},
		{"JobAcctGatherFrequency", func(r *api.ClusterResponse) string {
			return cmp.Or(r.Config.Keys["jobacctgatherfrequency"],
				strconv.Itoa(int(cluster.DefaultSampling/time.Second)))
		}},
		{"JobAcctGatherType", func(r *api.ClusterResponse) string {
			return cmp.Or(r.Config.Keys["jobacctgathertype"], "jobacct_gather/linux")
		}},
		{"JobDefaults",
			func(r *api.ClusterResponse) string { return format.Null(format.JobDefaults(r.Config.PerGPU)) }},
		{"JobRequeue", func(r *api.ClusterResponse) string { return show.Bit(r.Config.JobRequeue) }},
		{"MaxJobId", func(r *api.ClusterResponse) string { return front.UintText(uint32(r.Config.MaxJobID)) }},
		memLine("MaxMemPerCPU", maxMem),
		memLine("MaxMemPerNode", maxMem),
		{"MpiDefault", func(r *api.ClusterResponse) string { return cmp.Or(r.Config.Srun.MPI, "none") }},
		{"NEXT_JOB_ID", func(r *api.ClusterResponse) string { return front.UintText(uint32(r.NextJob)) }},
	}
}

func lastLines() []configLine {
	return []configLine{
		{"OverTimeLimit", func(r *api.ClusterResponse) string {
			return strconv.Itoa(int(r.Config.OverTimeLimit/time.Minute)) + " min"
		}},
		{"PreemptExemptTime", func(r *api.ClusterResponse) string { return format.Padded(r.Config.Preempt.Exempt) }},
		{"PreemptMode", func(r *api.ClusterResponse) string { return r.Config.PreemptModeText(nil) }},
		{"PreemptType", func(r *api.ClusterResponse) string {
			return "preempt/" + cmp.Or(string(r.Config.Preempt.Type), "none")
		}},
		{"PriorityType", func(r *api.ClusterResponse) string {
			return front.Choose(r.Config.Priority.Multifactor, "priority/multifactor", "priority/basic")
		}},
		{
			"PrologFlags",
			func(r *api.ClusterResponse) string { return front.Choose(r.Config.Contain, "Alloc,Contain", "(null)") },
		},
		{
			"PropagateResourceLimits",
			func(r *api.ClusterResponse) string { return front.Choose(r.Config.PropagateLimits, "ALL", "NONE") },
		},
		{"SchedulerTimeSlice", turnLength},
		{"SchedulerType", always("sched/backfill")},
		{"SelectType", always("select/cons_tres")},
		{"SelectTypeParameters", func(r *api.ClusterResponse) string {
			c := &r.Config
			unit := front.Choose(c.SocketAlloc, "CR_SOCKET", front.Choose(c.CoreAlloc, "CR_CORE", "CR_CPU"))
			return unit + front.Choose(c.MemAlloc, "_MEMORY", "") +
				front.Choose(c.OneTaskPerCore, ",CR_ONE_TASK_PER_CORE", "") +
				front.Choose(c.DistBlock, ",CR_CORE_DEFAULT_DIST_BLOCK", "") +
				front.Choose(c.LLN, ",CR_LLN", "") + front.Choose(c.PackNodes, ",CR_PACK_NODES", "")
		}},
		{"SlurmUser", always("root(0)")},
		{
			"TrackWCKey",
			func(r *api.ClusterResponse) string { return front.Choose(r.Config.TracksWCKey(), "Yes", "No") },
		},
		{"SlurmctldPort", serverPort},
		{"SlurmdPort", serverPort},
		{"SlurmdUser", always("root(0)")},
		{"SLURM_VERSION", always(front.SlurmVersion)},
		{"SuspendTime", suspendTime},
		{"TopologyPlugin", func(r *api.ClusterResponse) string {
			return front.Choose(len(r.Config.Topology) > 0, "topology/tree",
				front.Choose(len(r.Config.Blocks) > 0, "topology/block", "topology/none"))
		}},
	}
}

// jobDefaultKeys are shown in the line JobDefaults.
const jobDefaultKeys = " defcpupergpu defmempergpu "

// ConfigText collects the lines: what is active, what the file says beside it, and Slurm's other keys,
// which are not set.
func ConfigText(r *api.ClusterResponse) map[string]string {
	lines := map[string]string{}
	for k := range strings.FieldsSeq(configKeys) {
		lines[k] = "(null)"
	}
	for line := range strings.SplitSeq(unset, "\n") {
		key, value, _ := strings.Cut(line, "=")
		lines[key] = value
	}
	lines["AccountingStorageTRES"] = withTRES("")
	forms := valueForms()
	for k, v := range r.Config.Keys {
		if conf.OfMuster(k) { // no keys of Slurm's
			continue
		}
		key := spelt(k)
		if form := forms[key]; form != nil {
			v = form(v)
		}
		if !strings.Contains(jobDefaultKeys, " "+k+" ") {
			lines[key] = v
		}
	}
	for key, value := range conf.InForce(&r.Config) {
		lines[key] = plainValue(value)
	}
	for _, l := range configLines() {
		if lines[l.key] = l.of(r); lines[l.key] == noLine {
			delete(lines, l.key)
		}
	}
	delete(lines, "SlurmctldHost")
	for i, s := range r.Servers {
		lines["SlurmctldHost["+strconv.Itoa(i)+"]"] = s.Name + "(" + s.Addr + ")"
	}
	return lines
}

// showConfig is scontrol show config.
func (c *control) showConfig(string) int {
	r, err := c.cluster()
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_ctl_conf error", err)
	}
	if c.data.On {
		return configData(c, r)
	}
	lines := ConfigText(r)
	place := func(key string) string {
		if key == "PreemptExemptTime" { // in Slurm's list, not where the alphabet has it
			key = "PreemptType+"
		}
		return strings.ToLower(key)
	}
	keys := slices.SortedFunc(maps.Keys(lines), func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	_, _ = c.out.WriteString("Configuration data as of " + format.Stamp(r.Now, "Unknown") + "\n")
	for _, k := range keys {
		_, _ = c.out.WriteString(k + strings.Repeat(" ", max(23-len(k), 0)) + " = " + lines[k] + "\n")
	}
	_, _ = c.out.WriteString("\n")
	c.ping(nil)
	return 0
}
