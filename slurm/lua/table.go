package lua

import (
	"slices"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/cluster"
	"dev.muster/slurm/jobfield"
)

// fields are those of job_desc, with what Slurm 26.05 gives where nothing is asked.
var fields = sync.OnceValue(func() []field {
	list := ownFields()
	for i := range jobfield.Rows {
		if row := &jobfield.Rows[i]; row.Lua != "" {
			list = insertField(list, fieldOfRow(row))
		}
	}
	return append(list, fixedFields()...)
})

// insertField puts a field behind the last one whose name comes before its own.
func insertField(list []field, f field) []field {
	at := 0
	for i := range list {
		if list[i].name() < f.name() {
			at = i + 1
		}
	}
	return slices.Insert(list, at, f)
}

// fieldOfRow is the field of a row of jobfield.
func fieldOfRow(row *jobfield.Row) field {
	switch row.Form {
	case jobfield.Count:
		return count(row.Lua, row.Of, 0)
	case jobfield.Flag:
		return flag(row.Lua, row.Of, 0)
	}
	return text(row.Lua, row.Of)
}

// ownFields are those that a row of jobfield does not say all of.
func ownFields() []field {
	return []field{
		{"alloc_node", "", func(d *desc) lua.LValue { return given(d.spec.SubmitHost) }, nil},
		{"argc", "", func(d *desc) lua.LValue { return lua.LNumber(len(d.argv)) }, nil},
		parsed("array_inx", "", arrayText, setArray),
		moment("begin_time", "Begin"),
		{"bitflags", "", getFlags, setFlags},
		{"core_spec", "CoreSpec", getCoreSpec, setCoreSpec},
		count("cores_per_socket", "CoresPerSocket", noVal16),
		count("cpus_per_task", "CPUsPerTask", noVal16),
		perGPU("cpus_per_tres", func(s *cluster.JobSpec) int64 { return int64(s.CPUsPerGPU) },
			func(s *cluster.JobSpec, n int64) { s.CPUsPerGPU = int(n) }),
		{"cron_job", "", func(d *desc) lua.LValue { return lua.LBool(d.spec.Cron != nil) }, nil},
		{"default_account", "", func(d *desc) lua.LValue { return given(d.account) }, nil},
		span("delay_boot", "DelayBoot", time.Second),
		parsed("dependency", "Depends", func(s *cluster.JobSpec) string { return dependText(s.Depends) }, setDepends),
		moment("end_time", "Deadline"),
		hosts("exc_nodes", "Exclude"),
		tres("tres_per_node gres", "PerNode"),
		{"group_id", "", func(d *desc) lua.LValue { return lua.LNumber(d.spec.GID) }, nil},
		{"het_job_offset pack_job_offset", "", getPart, nil},
		{"mail_type", "MailType", getMail, setMail},
		count("max_nodes", "MaxNodes", noVal),
		perGPU("mem_per_tres", gpuMemory, setGPUMemory),
		{"min_cpus", "", minCPUs, setMinCPUs},
		memory("min_mem_per_cpu", cluster.MemPerCPU), memory("min_mem_per_node", cluster.MemPerNode),
		count("min_nodes", "MinNodes", noVal),
		{"nice", "Nice", getNice, setNice},
		count("ntasks_per_core", "TasksPerCore", noVal16), count("ntasks_per_gpu", "TasksPerGPU", noVal16),
		count("ntasks_per_node", "TasksPerNode", noVal16), count("ntasks_per_socket", "TasksPerSocket", noVal16),
		count("num_tasks", "Tasks", noVal),
		parsed("partition", "Partitions", partitionText, setPartitions),
		count("pn_min_cpus", "MinCPUs", noVal16),
		{"pn_min_memory", "Mem", getMemory, setPnMemory},
		{"pn_min_tmp_disk", "TmpMB", getTmp, setTmp},
		{"priority", "Priority", getPriority, setPriority},
		flag("reboot", "Reboot", noVal16),
		hosts("req_nodes", "NodeList"),
		count("req_switch", "Switches", noVal),
		yesNo("requeue", "Requeue"),
		{"script", "", getScript, setScript},
		{"shared oversubscribe", "Sharing", getShared, setShared},
		{"site_factor", "Site", getSite, setSite},
		count("sockets_per_node", "SocketsPerNode", noVal16),
		text("std_err", "Stderr"), {"std_in", "Stdin", getInput, setInput}, text("std_out", "Stdout"),
		{"submit_line", "", func(d *desc) lua.LValue { return given(d.spec.SubmitLine) }, nil},
		count("threads_per_core", "ThreadsPerCore", noVal16),
		span("time_limit", "Limit", time.Minute), span("time_min", "LimitMin", time.Minute),
		tres("tres_per_job", "PerJob"), tres("tres_per_socket", "PerSocket"), tres("tres_per_task", "PerTask"),
		{"user_id", "", func(d *desc) lua.LValue { return lua.LNumber(d.spec.UID) }, nil},
		{"user_name", "", func(d *desc) lua.LValue { return given(d.spec.User) }, nil},
		span("wait4switch", "SwitchWait", time.Second),
	}
}

// fixedFields are what a job never has here.
func fixedFields() []field {
	none, none16, zero := lua.LNumber(noVal), lua.LNumber(noVal16), lua.LNumber(0)
	return []field{
		fixed("batch_features", lua.LNil), fixed("boards_per_node", zero), fixed("container", lua.LNil),
		fixed("cpu_freq_gov", none), fixed("cpu_freq_max", none), fixed("cpu_freq_min", none),
		fixed("default_qos", lua.LNil), fixed("immediate", zero), fixed("max_cpus", none),
		fixed("ntasks_per_board", zero), fixed("ntasks_per_tres", none16), fixed("origin_cluster", lua.LNil),
		fixed("power_flags", lua.LNil), fixed("req_context", lua.LNil), fixed("resp_host", lua.LNil),
		fixed("selinux_context", lua.LNil), fixed("sockets_per_board", zero), fixed("spank_job_env", lua.LNil),
		fixed("spank_job_env_size", zero), fixed("tres_bind", lua.LNil), fixed("tres_freq", lua.LNil),
		fixed("wait_all_nodes", lua.LNil), fixed("x11", lua.LNil),
	}
}

// fieldOf finds a row by one of its names.
var fieldOf = sync.OnceValue(func() map[string]*field {
	rows := map[string]*field{}
	all := fields()
	for i := range all {
		for _, name := range strings.Fields(all[i].names) {
			rows[name] = &all[i]
		}
	}
	return rows
})
