package preview

import (
	"slices"
	"strings"

	"dev.muster/slurm/conf"
)

// counterpart is what muster has for values of a key that names plugins or programs.
type counterpart struct {
	key     string
	values  string // blank-separated, without the part before the slash; * means any
	verdict Verdict
	how     string
}

// counterparts lists the keys in the order of the report. The first row whose key and value match counts; a key whose
// value matches none is lost.
var counterparts = [...]counterpart{
	{"AuthType", "*", Needless, "members use TLS with certificates that the cluster issues; munge is not needed"},
	{"CredType", "*", Needless, "servers and nodes use the same certificates"},
	{"AccountingStorageType", "*", Different, "every server keeps accounts and history; slurmdbd is not needed"},
	{"SelectType", "linear", Different, "jobs get CPUs, memory and GPUs; OverSubscribe=EXCLUSIVE gives whole nodes"},
	{"SelectType", "cons_tres cons_res", Adopted, "built in"},
	{"SchedulerType", "backfill", Adopted, "built in"},
	{"SchedulerType", "builtin", Different, "muster always backfills"},
	{"PriorityType", "basic multifactor", Adopted, "built in"},
	{"PreemptType", "partition_prio qos", Adopted, "built in"},
	{"TopologyPlugin", "default tree block flat", Adopted, "built in"},
	{"SwitchType", "*", Lost, "muster has no plugin for this interconnect; NCCL, UCX and MPI use it directly"},
	{"ProctrackType", "cgroup", Adopted, "built in"},
	{"ProctrackType", "linuxproc pgid", Different, "processes are tracked by their cgroup"},
	{"TaskPlugin", "affinity cgroup", Adopted, "built in"},
	{"JobAcctGatherType", "cgroup linux", Adopted, "built in"},
	{"JobCompType", "filetxt script", Adopted, "built in"},
	{"JobCompType", "*", Lost, "sacct and muster sql have the records; jobcomp/script passes them to a program"},
	{"MpiDefault", "pmi2 pmix openmpi", Adopted, "built in, see docs/mpi.md"},
	{"JobSubmitPlugins", "lua all_partitions require_timelimit", Adopted, "built in; job_submit.lua runs unchanged"},
	{"JobSubmitPlugins", "*", Lost, "Slurm's binary plugins cannot be loaded; write the policy in job_submit.lua"},
	{"CliFilterPlugins", "lua user_defaults", Adopted, "built in; cli_filter.lua runs unchanged"},
	{"CliFilterPlugins", "*", Lost, "Slurm's binary plugins cannot be loaded; write the policy in cli_filter.lua"},
	{"JobContainerType", "tmpfs", Adopted, "built in, with job_container.conf"},
	{"BurstBufferType", "lua", Adopted, "built in; burst_buffer.lua runs unchanged"},
	{"NodeFeaturesPlugins", "*", Lost, "scontrol update nodename=N activefeatures=LIST sets features"},
	{"PrEpPlugins", "script", Adopted, "built in"},
	{"AcctGatherEnergyType", "*", Lost, "only the energy of GPUs is measured"},
	{"AcctGatherProfileType", "*", Lost, "no HDF5 files are written; muster samples JOB shows profiles"},
	{"AcctGatherInterconnectType", "*", Lost, "traffic is not charged to jobs"},
	{"AcctGatherFilesystemType", "*", Lost, "file system traffic is not charged to jobs"},
	{"PrioritySiteFactorPlugin", "*", Lost, "job_submit.lua can set job_desc.site_factor"},
	{"MCSPlugin", "*", Lost, "ExclusiveUser=YES of a partition keeps nodes for one user"},
	{"PowerPlugin", "*", Lost, "the power of machines is not capped"},
	{"SlurmctldPlugstack", "*", Lost, "Slurm's plugins cannot be loaded; muster events and channels report changes"},
	{"Prolog", "*", Adopted, onNodes}, {"Epilog", "*", Adopted, onNodes},
	{"PrologSlurmctld", "*", Adopted, onServers}, {"EpilogSlurmctld", "*", Adopted, onServers},
	{"TaskProlog", "*", Adopted, onNodes}, {"TaskEpilog", "*", Adopted, onNodes},
	{"SrunProlog", "*", Adopted, onLogins}, {"SrunEpilog", "*", Adopted, onLogins},
	{"ResvProlog", "*", Adopted, onServers}, {"ResvEpilog", "*", Adopted, onServers},
	{"HealthCheckProgram", "*", Adopted, onNodes}, {"UnkillableStepProgram", "*", Adopted, onNodes},
	{"RebootProgram", "*", Adopted, onNodes},
	{"ResumeProgram", "*", Adopted, onServers}, {"SuspendProgram", "*", Adopted, onServers},
	{"ResumeFailProgram", "*", Adopted, onServers},
	{"SlurmctldPrimaryOnProg", "*", Adopted, onServers}, {"SlurmctldPrimaryOffProg", "*", Adopted, onServers},
	{"MailProg", "*", Adopted, onServers},
}

// Where a program runs.
const (
	runs      = "runs "
	onNodes   = runs + "on the nodes at the same points"
	onServers = runs + "on the server that leads"
	onLogins  = runs + "where the command is called"
)

// Actions for plugins and programs.
const (
	copyProgram  = "copy the program to the same path; see that it calls no command of Slurm that muster lacks"
	replaceIt    = "replace it or accept the loss"
	setUpHook    = "set up the named hook"
	spankWord    = "SPANK plugin "
	spankNeedles = " is not needed for "
)

// isPlugin reports whether a key is in the list of plugins and programs.
func isPlugin(key string) bool {
	return slices.ContainsFunc(counterparts[:], func(c counterpart) bool { return strings.EqualFold(c.key, key) })
}

// plugins lists the plugins and programs that a site names.
func plugins(s *Site, keys map[string]string) (out []Item) {
	done := ""
	for _, c := range counterparts {
		if c.key == done {
			continue
		}
		done = c.key
		for word := range strings.SplitSeq(keys[strings.ToLower(c.key)], ",") {
			if word = strings.Trim(strings.TrimSpace(word), `"`); !none(word) {
				out = append(out, pair(c.key, word))
			}
		}
	}
	return append(out, spanks(s)...)
}

// pair finds the counterpart of one value.
func pair(key, word string) Item {
	word = strings.TrimSpace(word)
	bare := strings.ToLower(word[strings.LastIndexByte(word, '/')+1:])
	i := slices.IndexFunc(counterparts[:], func(c counterpart) bool {
		return c.key == key && (c.values == "*" || slices.Contains(strings.Fields(c.values), bare))
	})
	if i < 0 {
		return Item{Name: key, Value: word, Verdict: Lost, How: "muster has no counterpart", Action: replaceIt}
	}
	it := Item{Name: key, Value: word, Verdict: counterparts[i].verdict, How: counterparts[i].how, Action: noAction}
	switch {
	case it.Verdict == Lost:
		it.Action = replaceIt
	case strings.HasPrefix(it.How, runs):
		it.Action = copyProgram
	}
	return it
}

// spanks lists the plugins of plugstack.conf, by the notes on it.
func spanks(s *Site) (out []Item) {
	for _, note := range s.Fine {
		where, text := splitPlace(note)
		if rest, ok := strings.CutPrefix(text, spankWord); ok {
			name, how, _ := strings.Cut(rest, spankNeedles)
			out = append(out, Item{
				Where:   where,
				Name:    "SPANK",
				Value:   name,
				Verdict: Adopted,
				How:     "built in; " + how,
				Action:  noAction,
			})
		}
	}
	for _, note := range s.Notes {
		where, text := splitPlace(note)
		rest, ok := strings.CutPrefix(text, spankWord)
		if !ok {
			continue
		}
		name, how, _ := strings.Cut(rest, " cannot be loaded; ")
		it := Item{
			Where:   where,
			Name:    "SPANK",
			Value:   name,
			Verdict: Lost,
			How:     how,
			Action:  replaceIt,
		}
		if conf.HasHook(name) {
			it.Verdict, it.Action = Different, setUpHook
		}
		out = append(out, it)
	}
	return out
}
