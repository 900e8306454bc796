package conf

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
)

// PartitionKey is all that there is to know of a key of partitions: a new key is a row of makePartitionKeys.
type PartitionKey struct {
	Name string
	// set reads a value; key is Name as it was written, in lower case.
	set func(p *cluster.Partition, key, value string) error
	// text writes what set reads, "" for what is so without the key; nil: another key writes it.
	text func(p *cluster.Partition) string
	// Show is what scontrol shows of it, "" for nothing, by the name of Label or else by Name; nil: nothing ever.
	Show  func(p *cluster.Partition) string
	Label string
	// Complaint is in Slurm's words about a value that the key does not take: %k is Name, %v the value, %s both as they
	// were written; "": as about any key. Alone: nothing is said behind it.
	Complaint string
	Alone     bool
}

// Complaints.
const (
	misread       = "scontrol: error: Invalid input: %s"
	badYesNo      = misread + "\nscontrol: error: Acceptable %k values are YES and NO"
	badShared     = misread + "\nscontrol: error: Acceptable OverSubscribe values are NO, EXCLUSIVE, YES:#, and FORCE:#"
	badTime       = "scontrol: error: Invalid input %s"
	badNumber     = "scontrol: error: Invalid %k value: %v"
	badList       = "slurm_update error: Invalid %k specification"
	badMaxNodes   = `scontrol: error: Invalid numeric value "%v" for MaxNodes.`
	badState      = misread + "\nscontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE"
	badExclusive  = misread + "\nscontrol: error: Acceptable Exclusive values are NO, NODE and USER"
	badPreemption = misread
)

// stateUp is so without a key.
const stateUp = string(cluster.PartitionUp)

var partitionKeys struct {
	once sync.Once
	list []PartitionKey
}

// PartitionKeys are the keys of partitions, in the order in which they are written.
func PartitionKeys() []PartitionKey {
	partitionKeys.once.Do(func() { partitionKeys.list = makePartitionKeys() })
	return partitionKeys.list
}

func makePartitionKeys() []PartitionKey {
	return slices.Concat(partitionNodes(), partitionLimits(), partitionOrder(), partitionDefaults(), partitionAccess(),
		partitionMemory())
}

// partitionNodes are the nodes of a partition and how jobs get them.
func partitionNodes() []PartitionKey {
	return []PartitionKey{
		{
			Name: "Nodes",
			set:  func(p *cluster.Partition, _, v string) error { return setNodes(p, v) },
			text: func(p *cluster.Partition) string {
				return cmp.Or(p.NodesText, hosts(cluster.Named(p.Nodes, p.Joined)))
			},
		},
		flagKey("Default", func(p *cluster.Partition) *bool { return &p.Default }),
		{
			Name:      "State",
			set:       func(p *cluster.Partition, _, v string) error { return setState(p, v) },
			text:      func(p *cluster.Partition) string { return strings.TrimPrefix(string(p.State), stateUp) },
			Show:      func(p *cluster.Partition) string { return cmp.Or(string(p.State), stateUp) },
			Complaint: badState,
		},
		flagKey("Hidden", func(p *cluster.Partition) *bool { return &p.Hidden }),
		flagKey("RootOnly", func(p *cluster.Partition) *bool { return &p.RootOnly }),
		flagKey("ExclusiveUser", func(p *cluster.Partition) *bool { return &p.ExclusiveUser }),
		flagKey("DisableRootJobs", func(p *cluster.Partition) *bool { return &p.DisableRootJobs }),
		flagKey("LLN", func(p *cluster.Partition) *bool { return &p.LLN }),
		flagKey("ReqResv", func(p *cluster.Partition) *bool { return &p.ReqResv }),
		{
			Name:      "NoNewPrivs", // muster's own
			set:       func(p *cluster.Partition, k, v string) error { return yes(&p.NoNewPrivs, k, v) },
			text:      func(p *cluster.Partition) string { return yesText(p.NoNewPrivs) },
			Show:      func(p *cluster.Partition) string { return yesText(p.NoNewPrivs) },
			Complaint: badYesNo,
		},
	}
}

// partitionLimits bound jobs.
func partitionLimits() []PartitionKey {
	return []PartitionKey{
		{
			Name:      "MaxTime",
			set:       func(p *cluster.Partition, k, v string) error { return setMaxTime(p, k, v) },
			text:      func(p *cluster.Partition) string { return timeText(p.MaxTime) },
			Show:      func(p *cluster.Partition) string { return format.Padded(cmp.Or(p.MaxTime, cluster.Unlimited)) },
			Complaint: badTime,
		},
		{
			Name:      "DefaultTime",
			set:       func(p *cluster.Partition, k, v string) error { return setMinutes(&p.DefaultTime, k, v) },
			text:      func(p *cluster.Partition) string { return timeText(p.DefaultTime) },
			Show:      func(p *cluster.Partition) string { return noneOr(p.DefaultTime, format.Padded) },
			Complaint: badTime,
		},
		{
			Name:      "DefTime", // DefaultTime
			set:       func(p *cluster.Partition, k, v string) error { return setMinutes(&p.DefaultTime, k, v) },
			Complaint: badTime,
		},
		{
			Name: "MinNodes",
			set:  func(p *cluster.Partition, k, v string) error { return number(&p.MinNodes, k, v) },
			text: func(p *cluster.Partition) string { return unless(p.MinNodes, 0) },
			Show: func(p *cluster.Partition) string { return strconv.Itoa(p.MinNodes) },
		},
		{
			Name:      "MaxNodes",
			set:       func(p *cluster.Partition, k, v string) error { return setMaxNodes(p, k, v) },
			text:      func(p *cluster.Partition) string { return unless(p.MaxNodes, 0) },
			Show:      func(p *cluster.Partition) string { return unlimitedOr(p.MaxNodes) },
			Complaint: badMaxNodes,
			Alone:     true,
		},
		{
			Name:      "MaxCPUsPerNode",
			set:       func(p *cluster.Partition, k, v string) error { return number(&p.MaxCPUsPerNode, k, v) },
			text:      func(p *cluster.Partition) string { return unless(p.MaxCPUsPerNode, 0) },
			Show:      func(p *cluster.Partition) string { return unlimitedOr(p.MaxCPUsPerNode) },
			Complaint: badNumber,
		},
		{
			Name:      "MaxCPUsPerSocket", // 22.05, whose lines scontrol shows, has no such limit
			set:       func(p *cluster.Partition, k, v string) error { return number(&p.MaxCPUsPerSocket, k, v) },
			text:      func(p *cluster.Partition) string { return unless(p.MaxCPUsPerSocket, 0) },
			Show:      func(p *cluster.Partition) string { return unless(p.MaxCPUsPerSocket, 0) },
			Complaint: badNumber,
		},
		{
			Name: "AllocNodes",
			set:  func(p *cluster.Partition, _, v string) error { return setAllocNodes(p, v) },
			text: func(p *cluster.Partition) string { return hostlist.Compress(p.AllocNodes) },
			Show: func(p *cluster.Partition) string { return cmp.Or(hostlist.Compress(p.AllocNodes), "ALL") },
		},
		{
			Name: "Alternate",
			set:  func(p *cluster.Partition, _, v string) error { return setAlternate(p, v) },
			text: func(p *cluster.Partition) string { return p.Alternate },
			Show: func(p *cluster.Partition) string { return p.Alternate },
		},
		{
			Name:      "OverTimeLimit",
			set:       func(p *cluster.Partition, k, v string) error { return setOverTime(p, k, v) },
			text:      func(p *cluster.Partition) string { return OverTimeText(p, "") },
			Show:      func(p *cluster.Partition) string { return OverTimeText(p, "NONE") },
			Complaint: badNumber,
		},
		{
			Name: "MaxCPUsPerUser", // muster's own
			set:  func(p *cluster.Partition, k, v string) error { return number(&p.MaxCPUsPerUser, k, v) },
			text: func(p *cluster.Partition) string { return unless(p.MaxCPUsPerUser, 0) },
		},
	}
}

// partitionOrder are which jobs run first, beside which others, and how they give way.
func partitionOrder() []PartitionKey {
	return []PartitionKey{
		{
			Name:      "Priority",
			set:       func(p *cluster.Partition, k, v string) error { return setPriority(p, k, v) },
			Complaint: badNumber,
		},
		{
			Name:      "PriorityTier",
			set:       func(p *cluster.Partition, k, v string) error { return shortNumber(&p.PriorityTier, k, v) },
			text:      tierText,
			Show:      func(p *cluster.Partition) string { return strconv.Itoa(max(p.PriorityTier, 1)) },
			Complaint: badNumber,
		},
		{
			Name:      "PriorityJobFactor",
			set:       func(p *cluster.Partition, k, v string) error { return shortNumber(&p.PriorityJobFactor, k, v) },
			text:      func(p *cluster.Partition) string { return unless(p.PriorityJobFactor, 1) },
			Show:      func(p *cluster.Partition) string { return strconv.Itoa(max(p.PriorityJobFactor, 1)) },
			Complaint: badNumber,
		},
		{
			Name:      "OverSubscribe",
			set:       func(p *cluster.Partition, _, v string) error { return setOverSubscribe(p, v) },
			text:      func(p *cluster.Partition) string { return p.OverSubscribe },
			Show:      func(p *cluster.Partition) string { return cmp.Or(p.OverSubscribe, "NO") },
			Complaint: badShared,
		},
		{
			Name:      "Shared", // OverSubscribe
			set:       func(p *cluster.Partition, _, v string) error { return setOverSubscribe(p, v) },
			Complaint: badShared,
		},
		{
			Name:      "Exclusive", // OverSubscribe and ExclusiveUser
			set:       func(p *cluster.Partition, _, v string) error { return setExclusive(p, v) },
			Complaint: badExclusive,
		},
		{
			Name:      "PreemptMode",
			set:       func(p *cluster.Partition, _, v string) error { return setPreemptMode(&p.PreemptMode, v) },
			text:      func(p *cluster.Partition) string { return p.PreemptMode },
			Show:      func(p *cluster.Partition) string { return cmp.Or(p.PreemptMode, "OFF") },
			Complaint: badPreemption,
		},
		{
			Name: "IdleGPU", // muster's own
			set:  func(p *cluster.Partition, _, v string) error { return setIdleGPU(p, v) },
			text: func(p *cluster.Partition) string { return string(p.IdleGPU) },
			Show: func(p *cluster.Partition) string { return string(p.IdleGPU) },
		},
		{
			Name: "Hang", // muster's own
			set:  func(p *cluster.Partition, _, v string) error { return setHang(p, v) },
			text: func(p *cluster.Partition) string { return p.Hang },
			Show: func(p *cluster.Partition) string { return p.Hang },
		},
		{
			Name: "IdleGPUTime", // muster's own
			set:  func(p *cluster.Partition, k, v string) error { return setTime(&p.IdleGPUTime, k, v) },
			text: func(p *cluster.Partition) string { return timeText(p.IdleGPUTime) },
			Show: showIdleTime,
		},
		{
			Name:      "GraceTime",
			set:       func(p *cluster.Partition, k, v string) error { return setGraceTime(p, k, v) },
			text:      func(p *cluster.Partition) string { return unless(int64(p.GraceTime/time.Second), 0) },
			Show:      func(p *cluster.Partition) string { return strconv.Itoa(int(p.GraceTime / time.Second)) },
			Complaint: badNumber,
		},
		secondsKey("SuspendTime", func(p *cluster.Partition) **time.Duration { return &p.SuspendTime }),
		secondsKey("SuspendTimeout", func(p *cluster.Partition) **time.Duration { return &p.SuspendTimeout }),
		secondsKey("ResumeTimeout", func(p *cluster.Partition) **time.Duration { return &p.ResumeTimeout }),
	}
}

// partitionDefaults are what jobs get for each GPU.
func partitionDefaults() []PartitionKey {
	return []PartitionKey{
		{
			Name: "DefCpuPerGPU",
			set:  func(p *cluster.Partition, k, v string) error { return perGPU(&p.PerGPU, k, v) },
			text: func(p *cluster.Partition) string { return unless(p.PerGPU.CPUs, 0) },
		},
		{
			Name: "DefMemPerGPU",
			set:  func(p *cluster.Partition, k, v string) error { return perGPU(&p.PerGPU, k, v) },
			text: func(p *cluster.Partition) string { return unless(p.PerGPU.MemMB, 0) },
		},
		{
			Name:      "JobDefaults", // DefCpuPerGPU and DefMemPerGPU
			set:       func(p *cluster.Partition, _, v string) error { return jobDefaults(&p.PerGPU, v) },
			Show:      func(p *cluster.Partition) string { return format.Null(format.JobDefaults(p.PerGPU)) },
			Complaint: badList,
			Alone:     true,
		},
	}
}

// partitionMemory is the memory that jobs get, and the most that they may ask for.
func partitionMemory() []PartitionKey {
	usual := func(p *cluster.Partition) *cluster.Mem { return &p.DefMem }
	most := func(p *cluster.Partition) *cluster.Mem { return &p.MaxMem }
	return []PartitionKey{
		memKey("DefMemPerCPU", cluster.MemPerCPU, usual),
		memKey("DefMemPerNode", cluster.MemPerNode, usual),
		memKey("MaxMemPerCPU", cluster.MemPerCPU, most),
		memKey("MaxMemPerNode", cluster.MemPerNode, most),
	}
}

// partitionAccess are who may use a partition, and what it costs.
func partitionAccess() []PartitionKey {
	return []PartitionKey{
		{
			Name:  "QOS",
			set:   func(p *cluster.Partition, _, v string) error { p.QOS = v; return nil },
			text:  func(p *cluster.Partition) string { return p.QOS },
			Show:  func(p *cluster.Partition) string { return cmp.Or(p.QOS, "N/A") },
			Label: "QoS",
		},
		listKey("AllowGroups", "", func(p *cluster.Partition) (_, deny *[]string) { return &p.AllowGroups, nil }),
		listKey("AllowAccounts", "", func(p *cluster.Partition) (_, deny *[]string) {
			return &p.AllowAccounts, &p.DenyAccounts
		}),
		listKey("AllowQOS", "AllowQos", func(p *cluster.Partition) (_, deny *[]string) {
			return &p.AllowQOS, &p.DenyQOS
		}),
		denyKey("DenyAccounts", "", func(p *cluster.Partition) *[]string { return &p.DenyAccounts }),
		denyKey("DenyQOS", "DenyQos", func(p *cluster.Partition) *[]string { return &p.DenyQOS }),
		{
			Name:      "TRESBillingWeights",
			set:       func(p *cluster.Partition, k, v string) error { return setBilling(p, k, v) },
			text:      func(p *cluster.Partition) string { return format.Weights(p.BillingWeights, 1, "") },
			Show:      func(p *cluster.Partition) string { return format.BillingWeights(p.BillingWeights) },
			Complaint: badList,
			Alone:     true,
		},
	}
}

// flagKey is a key that is on or off.
func flagKey(name string, of func(*cluster.Partition) *bool) PartitionKey {
	return PartitionKey{
		Name:      name,
		set:       func(p *cluster.Partition, k, v string) error { return yes(of(p), k, v) },
		text:      func(p *cluster.Partition) string { return yesText(*of(p)) },
		Show:      func(p *cluster.Partition) string { return cmp.Or(yesText(*of(p)), "NO") },
		Complaint: badYesNo,
	}
}

// secondsKey is a key of power saving.
func secondsKey(name string, of func(*cluster.Partition) **time.Duration) PartitionKey {
	return PartitionKey{
		Name: name,
		set:  func(p *cluster.Partition, k, v string) error { return setSeconds(of(p), k, v) },
		text: func(p *cluster.Partition) string { return secondsText(*of(p)) },
	}
}

// memKey is an amount of memory for something; what it is for is part of the value, so one key of several is written.
func memKey(name string, per cluster.MemPer, of func(*cluster.Partition) *cluster.Mem) PartitionKey {
	return PartitionKey{
		Name: name,
		set:  func(p *cluster.Partition, k, v string) error { return mem(of(p), per, k, v) },
		text: func(p *cluster.Partition) string {
			if of(p).Per != per {
				return ""
			}
			return strconv.FormatInt(int64(of(p).MB), 10)
		},
		Show: func(p *cluster.Partition) string {
			if (of(p).Per == cluster.MemPerCPU) != (per == cluster.MemPerCPU) {
				return ""
			}
			return unlimitedOr(int(of(p).MB))
		},
		Complaint: badNumber,
	}
}

// listKey is who is let in; where somebody is kept out, that is shown instead.
func listKey(name, label string, of func(*cluster.Partition) (allow, deny *[]string)) PartitionKey {
	return PartitionKey{
		Name:  name,
		Label: label,
		set: func(p *cluster.Partition, _, v string) error {
			to, _ := of(p)
			return list(to, v)
		},
		text: func(p *cluster.Partition) string {
			allow, _ := of(p)
			return strings.Join(*allow, ",")
		},
		Show: func(p *cluster.Partition) string {
			allow, deny := of(p)
			if deny != nil && len(*deny) > 0 {
				return ""
			}
			return cmp.Or(strings.Join(*allow, ","), "ALL")
		},
	}
}

// denyKey is who is kept out.
func denyKey(name, label string, of func(*cluster.Partition) *[]string) PartitionKey {
	text := func(p *cluster.Partition) string { return strings.Join(*of(p), ",") }
	return PartitionKey{
		Name:  name,
		Label: label,
		set:   func(p *cluster.Partition, _, v string) error { return list(of(p), v) },
		text:  text,
		Show:  text,
	}
}

// noneOr is a time, or NONE.
func noneOr(d time.Duration, text func(time.Duration) string) string {
	if d == 0 {
		return "NONE"
	}
	return text(d)
}

// unlimitedOr is a number, or UNLIMITED for none.
func unlimitedOr(n int) string { return cmp.Or(unless(n, 0), "UNLIMITED") }

func showIdleTime(p *cluster.Partition) string {
	if p.IdleGPU == "" {
		return ""
	}
	return format.Padded(p.IdleTime())
}

// tierText is the tier; without it the factor might be taken for it.
func tierText(p *cluster.Partition) string {
	if p.PriorityJobFactor == 1 {
		return unless(p.PriorityTier, 1)
	}
	return strconv.Itoa(p.PriorityTier)
}

func setMaxTime(p *cluster.Partition, key, value string) error {
	err := setMinutes(&p.MaxTime, key, value)
	if err == nil && p.MaxTime == 0 && !strings.EqualFold(value, "none") {
		return fmt.Errorf("MaxTime=%s %w", value, ErrNotClosed)
	}
	return err
}

func setMaxNodes(p *cluster.Partition, key, value string) error {
	if value == "0" {
		return fmt.Errorf("MaxNodes=0 %w", ErrNotClosed)
	}
	return number(&p.MaxNodes, key, value)
}

// setPriority sets both priorities, as before there were two.
func setPriority(p *cluster.Partition, key, value string) error {
	err := shortNumber(&p.PriorityTier, key, value)
	p.PriorityJobFactor = p.PriorityTier
	return err
}

func setAlternate(p *cluster.Partition, value string) error {
	p.Alternate = value
	if strings.EqualFold(value, "none") {
		p.Alternate = ""
	}
	return nil
}

func setGraceTime(p *cluster.Partition, key, value string) error {
	n := 0
	err := number(&n, key, value)
	p.GraceTime = time.Duration(n) * time.Second
	return err
}
