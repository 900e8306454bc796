package control

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// unset is what Slurm prints of keys that the file does not have, where that holds here too: what is not done, and
// what is done by default.
const unset = `AcctGatherEnergyType=acct_gather_energy/none
AcctGatherFilesystemType=acct_gather_filesystem/none
AcctGatherInterconnectType=acct_gather_interconnect/none
AcctGatherNodeFreq=0 sec
AcctGatherProfileType=acct_gather_profile/none
AllowSpecResourcesUsage=No
CompleteWait=0 sec
CoreSpecPlugin=core_spec/none
ExtSensorsFreq=0 sec
ExtSensorsType=ext_sensors/none
JobCompPort=0
JobCompType=jobcomp/none
JobContainerType=job_container/none
JobFileAppend=0
KillOnBadExit=0
MCSPlugin=mcs/none
PrivateData=none
PrologEpilogTimeout=65534
ProctrackType=proctrack/cgroup
PropagatePrioProcess=0
ResumeRate=300 nodes/min
ResvOverRun=0 min
SrunPortRange=0-0
SuspendRate=60 nodes/min
SwitchType=switch/none
UnkillableStepTimeout=60 sec
UsePam=No
VSizeFactor=0 percent`

// valueForms are how Slurm prints values that muster has as the file says them, by key.
func valueForms() map[string]func(string) string {
	forms := map[string]func(string) string{
		"AccountingStorageTRES": withTRES, "AccountingStoreFlags": sortedList, "PrivateData": sortedList,
		"HealthCheckNodeState": sortedList,
	}
	for unit, keys := range map[string]string{
		"sec":       "AcctGatherNodeFreq CompleteWait ExtSensorsFreq GetEnvTimeout GroupUpdateTime MessageTimeout SlurmctldTimeout TCPTimeout UnkillableStepTimeout",
		"usec":      "EpilogMsgTime",
		"min":       "ResvOverRun",
		"percent":   "VSizeFactor",
		"nodes/min": "ResumeRate SuspendRate",
	} {
		for key := range strings.FieldsSeq(keys) {
			forms[key] = func(v string) string { return withUnit(v, unit) }
		}
	}
	for key := range strings.FieldsSeq("AllowSpecResourcesUsage UsePam") {
		forms[key] = func(v string) string { return front.Choose(isOn(v), "Yes", "No") }
	}
	return forms
}

// withUnit puts the unit behind a number.
func withUnit(v, unit string) string {
	if _, err := strconv.Atoi(v); err != nil {
		return v
	}
	return v + " " + unit
}

func isOn(v string) bool {
	return v == "1" || slices.Contains([]string{"yes", "up", "true"}, strings.ToLower(v))
}

// sortedList is a list in order.
func sortedList(v string) string {
	list := front.SplitList(v)
	slices.Sort(list)
	return strings.Join(list, ",")
}

// withTRES are the resources that are always counted, and those that the file adds.
func withTRES(v string) string {
	all := show.SlurmTRES()
	for _, name := range strings.Split(sortedList(v), ",") {
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, ",")
}

// flagList joins the words whose flags are set.
func flagList(words ...flagWord) string {
	var set []string
	for _, w := range words {
		if w.on {
			set = append(set, w.word)
		}
	}
	return strings.Join(set, ",")
}

type flagWord struct {
	word string
	on   bool
}

// enforced is AccountingStorageEnforce: what it asks for and what that implies.
func enforced(r *api.ClusterResponse) string {
	e := r.Config.Enforce
	text := flagList(flagWord{"associations", e.Associations}, flagWord{"limits", e.Limits},
		flagWord{"qos", e.QOS}, flagWord{"safe", e.Safe}, flagWord{"wckeys", e.WCKeys})
	return front.Choose(text == "", "none", text)
}

// checkedStates is HealthCheckNodeState; that each node is looked at in its own time (CYCLE) is as the file says.
func checkedStates(r *api.ClusterResponse) string {
	h := &r.Config.HealthCheck
	cycle := slices.ContainsFunc(front.SplitList(r.Config.Keys["healthchecknodestate"]),
		func(w string) bool { return strings.EqualFold(w, "cycle") })
	states := flagList(flagWord{"IDLE", h.Idle}, flagWord{"ALLOC", h.Alloc}, flagWord{"MIXED", h.Mixed})
	return front.Choose(cycle, "CYCLE,", "") + front.Choose(states == "", "ANY", states)
}

func priorityFlags(p *cluster.PriorityConfig) string {
	all := p.RawAssoc && p.RawPart && p.RawQOS && p.RawTRES
	return flagList(flagWord{"ACCRUE_ALWAYS", p.AccrueAlways}, flagWord{
		"SMALL_RELATIVE_TO_TIME", p.SmallRelativeToTime,
	}, flagWord{"CALCULATE_RUNNING", p.CalculateRunning},
		flagWord{"NO_FAIR_TREE", p.NoFairTree}, flagWord{"INCR_ONLY", p.IncrOnly}, flagWord{
			"MAX_TRES", p.MaxTRES,
		}, flagWord{"MAX_TRES_GRES", p.MaxTRESGRES},
		flagWord{
			"NO_NORMAL_ALL", all,
		}, flagWord{"NO_NORMAL_ASSOC", p.RawAssoc && !all}, flagWord{"NO_NORMAL_PART", p.RawPart && !all},
		flagWord{"NO_NORMAL_QOS", p.RawQOS && !all}, flagWord{"NO_NORMAL_TRES", p.RawTRES && !all})
}

// priorityLines are those of the order of jobs.
func priorityLines() []configLine {
	of := func(key string, f func(*cluster.PriorityConfig) string) configLine {
		return configLine{key, func(r *api.ClusterResponse) string { return f(&r.Config.Priority) }}
	}
	weight := func(key string, f func(*cluster.PriorityWeights) uint32) configLine {
		return of(key, func(p *cluster.PriorityConfig) string { return front.UintText(f(&p.Weights)) })
	}
	return []configLine{
		of("FairShareDampeningFactor",
			func(p *cluster.PriorityConfig) string { return strconv.Itoa(max(p.Dampening, 1)) }),
		of("PriorityCalcPeriod", func(p *cluster.PriorityConfig) string { return format.Padded(p.CalcPeriod) }),
		of("PriorityDecayHalfLife", func(p *cluster.PriorityConfig) string { return format.Padded(p.HalfLife) }),
		of("PriorityFavorSmall",
			func(p *cluster.PriorityConfig) string { return front.Choose(p.FavorSmall, "Yes", "No") }),
		of("PriorityFlags", priorityFlags),
		of("PriorityMaxAge", func(p *cluster.PriorityConfig) string { return format.Padded(p.MaxAge) }),
		of("PriorityUsageResetPeriod", func(p *cluster.PriorityConfig) string {
			return front.Choose(p.UsageReset == "", "NONE", string(p.UsageReset))
		}),
		weight("PriorityWeightAge", func(w *cluster.PriorityWeights) uint32 { return w.Age }),
		weight("PriorityWeightAssoc", func(w *cluster.PriorityWeights) uint32 { return w.Assoc }),
		weight("PriorityWeightFairShare", func(w *cluster.PriorityWeights) uint32 { return w.FairShare }),
		weight("PriorityWeightJobSize", func(w *cluster.PriorityWeights) uint32 { return w.Size }),
		weight("PriorityWeightPartition", func(w *cluster.PriorityWeights) uint32 { return w.Partition }),
		weight("PriorityWeightQOS", func(w *cluster.PriorityWeights) uint32 { return w.QOS }),
	}
}

// suspendTime is how long a node is idle before it is suspended.
func suspendTime(r *api.ClusterResponse) string {
	if r.Config.Power.After == 0 {
		return "INFINITE"
	}
	return seconds(r.Config.Power.After)
}

// turnLength is how long jobs on the same CPUs have them in turn.
func turnLength(r *api.ClusterResponse) string {
	const byDefault = 30 * time.Second
	if r.Config.Preempt.TurnLength == 0 {
		return seconds(byDefault)
	}
	return seconds(r.Config.Preempt.TurnLength)
}

// configLine is one line of show config whose value does not come from the file itself.
type configLine struct {
	key string
	of  func(*api.ClusterResponse) string
}

func seconds(d time.Duration) string {
	if d >= cluster.Unlimited/2 {
		return "0 sec" // as slurm.conf writes never
	}
	return strconv.Itoa(int(d/time.Second)) + " sec"
}
