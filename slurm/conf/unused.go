package conf

import (
	"slices"
	"strings"

	"dev.muster/slurm/opt"
)

// elsewhere are the keys of Slurm that change nothing here because what they are for is done in another way, and
// asks for nothing. Only a check of a configuration tells of them.
var elsewhere = [...]struct{ why, keys string }{
	{"members know each other by certificates, there is no munge", "AuthType AuthInfo CredType CryptoType " +
		"JobCredentialPrivateKey JobCredentialPublicCertificate"},
	{
		"the servers replicate the state among themselves, no folder is shared",
		"StateSaveLocation SlurmctldTimeout SlurmctldAddr BackupController BackupAddr ControlMachine ControlAddr",
	},
	{"tokens (auth/jwt) are always taken by the REST interface", "AuthAltTypes"},
	{"all goes over one port: --bind", "SlurmctldPort SlurmdPort SrunPortRange"},
	{"the daemons log to stderr, for the journal; --log-level says how much",
		"SlurmctldDebug SlurmctldLogFile SlurmdDebug SlurmdLogFile SlurmctldSyslogDebug " +
			"SlurmdSyslogDebug SlurmSchedLogFile SlurmSchedLogLevel DebugFlags LogTimeFormat"},
	{"systemd looks after the daemons", "SlurmctldPidFile SlurmdPidFile SlurmdUser"},
	{"--data says where daemons keep their files", "SlurmdSpoolDir PluginDir"},
	{"each server keeps the history itself, there is no database daemon",
		"AccountingStorageType AccountingStorageHost AccountingStorageBackupHost " +
			"AccountingStorageExternalHost AccountingStoragePort AccountingStoragePass AccountingStorageUser " +
			"AccountingStorageParameters MaxDBDMsgs"},
	{"scripts and environments are always kept", "AccountingStoreFlags"},
	{"it is always so here",
		"SelectType SchedulerType SwitchType ProctrackType TaskPlugin LaunchType JobAcctGatherType " +
			"CoreSpecPlugin " +
			"TopologyPlugin PriorityType RoutePlugin PrEpPlugins GroupUpdateForce JobAcctGatherParams"},
	{"Gres= and gres.conf name the generic resources", "GresTypes"},
	{"calls and launches have limits of their own",
		"MessageTimeout TCPTimeout EioTimeout TreeWidth EpilogMsgTime GetEnvTimeout GroupUpdateTime BcastParameters " +
			"BcastExclude MaxNodeCount"},
	{"the node's own folder for temporary files is used", "TmpFS"},
}

// differing are values of keys in elsewhere that ask for something else than what muster always does.
var differing = [...]struct{ key, value, why string }{
	{"SelectType", "select/linear",
		"has no effect: jobs get CPUs, memory and GPUs of nodes, as with select/cons_tres; " +
			"OverSubscribe=EXCLUSIVE gives a partition's jobs whole nodes"},
	{"SchedulerType", "sched/builtin",
		"has no effect: jobs that delay none before them start earlier, as with sched/backfill"},
	{"SwitchType", "switch/nvidia_imex", "has no effect: no IMEX channels are made for jobs"},
	{"SwitchType", "switch/hpe_slingshot", "has no effect: no Slingshot services are made for jobs"},
	{"TaskPlugin", "task/none",
		"has no effect: tasks are bound to CPUs and fenced, as with task/affinity,task/cgroup; " +
			"--cpu-bind=none leaves a step's tasks unbound"},
	{"ProctrackType", "proctrack/linuxproc",
		"has no effect: processes are tracked by their cgroup, as with proctrack/cgroup"},
}

// differs returns why a value changes nothing though it asks for something else than what muster always does, or "".
func differs(p pair) string {
	for _, d := range differing {
		if strings.EqualFold(d.key, p.key) && strings.EqualFold(d.value, p.value) {
			return d.why
		}
	}
	return ""
}

// undone are the keys of Slurm that ask for something that muster does not do.
var undone = [...]struct{ why, keys string }{
	{"plugins of Slurm cannot be loaded",
		"NodeFeaturesPlugins SlurmctldPlugstack BurstBufferParameters PrEpParameters"},
	{"has no effect, plugins of Slurm cannot be loaded: job_submit.lua sets job_desc.site_factor, and " +
		"`scontrol update jobid=N sitefactor=M` changes it, of jobs that wait, too",
		"PrioritySiteFactorPlugin PrioritySiteFactorParameters"},
	{
		"is not measured",
		"AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherNodeFreq " +
			"AcctGatherProfileType ExtSensorsType ExtSensorsFreq",
	},
	{
		"is for databases: muster has JobCompType=jobcomp/filetxt and jobcomp/script, and sacct has all of it",
		"JobCompHost JobCompParams JobCompPass JobCompPort JobCompUser",
	},
	{
		"has no effect: CPUs keep the frequencies that the machine gives them; --cpu-freq is kept and shown",
		"CpuFreqDef CpuFreqGovernors",
	},
	{"has no effect: GPUs keep the clocks that they have; --gpu-freq is kept and shown", "GpuFreqDef"},
	{
		"has no effect: nodes are not kept for jobs of one --mcs-label; --exclusive=user and a partition's " +
			"ExclusiveUser=YES keep them for one user",
		"MCSPlugin MCSParameters",
	},
	{"has no effect: the power of machines is not capped", "PowerParameters PowerPlugin"},
	{
		"has no effect: tasks run at the priority (nice value) of the client, whatever that of sbatch or srun was",
		"PropagatePrioProcess",
	},
	{
		"has no effect: scontrol reconfigure activates the files as they stand, and partitions that " +
			"scontrol update has changed are as there; what it said of nodes stays",
		"ReconfigFlags",
	},
	{"has no effect: there is no plugin for an interconnect", "SwitchParameters"},
	{
		"has no effect: jobs open no PAM session; their limits are the submitter's (PropagateResourceLimits), " +
			"up to those of the client's unit",
		"UsePam",
	},
	{"has no effect: members speak TLS with certificates that the cluster issues: muster jwt and docs/members.md",
		"CertgenParameters CertgenType CertmgrParameters CertmgrType HashPlugin TLSParameters TLSType"},
	{"has no effect: cli_filter.lua is read beside slurm.conf", "CliFilterParameters"},
	{"has no effect: SLURM_JSON and SLURM_YAML, or --json=VERSION, choose the form of answers", "DataParserParameters"},
	{"has no effect: requests of HTTP are parsed by muster itself", "HttpParserType UrlParserType"},
	{"has no effect: PrologEpilogTimeout limits both", "PrologTimeout EpilogTimeout"},
	{"has no effect: a health check runs for a minute at most", "HealthCheckTimeout"},
	{"is for databases: muster has JobCompType=jobcomp/filetxt and jobcomp/script", "JobCompPassScript"},
	{"has no effect: remote licenses are not known, see Licenses", "LicenseParameters"},
	{"has no effect: a job whose launch fails avoids that node, and is held when no other is left", "MaxBatchRequeue"},
	{"has no effect: metrics are always served, to the clients that muster.conf allows",
		"MetricsAuthUsers MetricsParameters MetricsType"},
	{"has no effect: job_container.conf sets folders of a job's own", "NamespaceType"},
	{"has no effect: reboots and power call RebootProgram, ResumeProgram and SuspendProgram", "PowerAction"},
	{"has no effect: HTTP is served on the one port of a member, see docs/rest.md",
		"SlurmctldHttpAuthParameters SlurmdHttpAuthParameters"},
	{"has no effect: memory in use is bounded (cgroup), virtual memory is not", "VSizeFactor"},
}

// otherKeys are the keys that are read, besides those of the tables of keys.
var otherKeys = []string{"AccountingStorageEnforce", "AccountingStorageTRES", "AllowSpecResourcesUsage",
	"DefCpuPerGPU", "DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode", "DependencyParameters", "DisableRootJobs",
	"EnforcePartLimits", "FairShareDampeningFactor", "FirstJobId", "HealthCheckNodeState", "InactiveLimit",
	"InteractiveStepOptions", "JobDefaults", "JobFileAppend", "JobAcctGatherFrequency", "JobContainerType",
	"JobRequeue", "KillOnBadExit", "LaunchParameters", "Licenses", "MaxJobId",
	"MaxMemPerCPU", "MaxMemPerNode", "MpiDefault", "MpiParams", "NodeName", "OverTimeLimit", "ResvOverRun",
	"ScronParameters", "PartitionName", "PreemptExemptTime", "PreemptMode", "PreemptParameters",
	"PreemptType",
	"PriorityCalcPeriod", "PriorityDecayHalfLife", "PriorityFavorSmall", "PriorityFlags",
	"PriorityParameters", "PriorityMaxAge", "PriorityType", "PriorityUsageResetPeriod",
	"PriorityWeightAge", "PriorityWeightAssoc", "PriorityWeightFairShare", "PriorityWeightJobSize",
	"PriorityWeightPartition", "PriorityWeightQOS", "PriorityWeightTRES",
	"PropagateResourceLimits", "PropagateResourceLimitsExcept", "RequeueExit", "RequeueExitHold",
	"SchedulerTimeSlice", "SelectTypeParameters", "SlurmctldHost",
	"SuspendExcNodes", "SuspendExcParts", "SuspendExcStates", "SuspendTime", "TopologyPlugin", "TrackWCKey",
	"JobSubmitPlugins", "CliFilterPlugins",
	"AuthAltParameters", "PlugStackConfig"}

// noKey begins what is said of keys that are mistyped.
const noKey = "is not a setting of "

// Mistyped returns those notes that are about keys that no file has.
func Mistyped(notes []string) (out []string) {
	for _, n := range notes {
		if strings.Contains(n, " "+noKey) {
			out = append(out, n)
		}
	}
	return out
}

// unread says what became of a key that nothing reads: why it changes nothing, and whether that is as it should be.
// A key that is none of Slurm's has the ones that it resembles.
func unread(key string) (why string, fine bool) {
	has := func(keys string) bool {
		return slices.ContainsFunc(strings.Fields(keys), func(k string) bool { return strings.EqualFold(k, key) })
	}
	for _, g := range elsewhere {
		if has(g.keys) {
			return g.why, true
		}
	}
	for _, g := range undone {
		if has(g.keys) {
			return g.why, false
		}
	}
	return noKey + "slurm.conf" + opt.Meant(key, knownKeys()), false
}

// knownKeys are all that are read, or spoken of above.
func knownKeys() (out []string) {
	for _, g := range elsewhere {
		out = append(out, strings.Fields(g.keys)...)
	}
	for _, g := range undone {
		out = append(out, strings.Fields(g.keys)...)
	}
	for _, k := range textKeys {
		out = append(out, k.key)
	}
	for _, k := range numberKeys {
		out = append(out, k.key)
	}
	for _, k := range secondKeys {
		out = append(out, k.key)
	}
	for _, k := range paramKeys {
		out = append(out, k.key)
	}
	return append(out, otherKeys...)
}
