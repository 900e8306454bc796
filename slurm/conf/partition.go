package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// partitionKeys is the table of keys: what each sets.
var partitionKeys = [...]struct {
	key string
	set func(p *cluster.Partition, key, value string) error
}{
	{"nodes", func(p *cluster.Partition, _, v string) error { return setNodes(p, v) }},
	{"state", func(p *cluster.Partition, _, v string) error { return setState(p, v) }},
	{"default", func(p *cluster.Partition, k, v string) error { return yes(&p.Default, k, v) }},
	{"hidden", func(p *cluster.Partition, k, v string) error { return yes(&p.Hidden, k, v) }},
	{"rootonly", func(p *cluster.Partition, k, v string) error { return yes(&p.RootOnly, k, v) }},
	{"exclusiveuser", func(p *cluster.Partition, k, v string) error { return yes(&p.ExclusiveUser, k, v) }},
	{"disablerootjobs", func(p *cluster.Partition, k, v string) error { return yes(&p.DisableRootJobs, k, v) }},
	{"lln", func(p *cluster.Partition, k, v string) error { return yes(&p.LLN, k, v) }},
	{"nonewprivs", func(p *cluster.Partition, k, v string) error { return yes(&p.NoNewPrivs, k, v) }},
	{"reqresv", func(p *cluster.Partition, k, v string) error { return yes(&p.ReqResv, k, v) }},
	{"maxtime", func(p *cluster.Partition, k, v string) error {
		err := setMinutes(&p.MaxTime, k, v)
		if err == nil && p.MaxTime == 0 && !strings.EqualFold(v, "none") {
			return fmt.Errorf("MaxTime=%s %w", v, ErrNotClosed)
		}
		return err
	}},
	{"defaulttime", func(p *cluster.Partition, k, v string) error { return setMinutes(&p.DefaultTime, k, v) }},
	{"deftime", func(p *cluster.Partition, k, v string) error { return setMinutes(&p.DefaultTime, k, v) }},
	{"minnodes", func(p *cluster.Partition, k, v string) error { return number(&p.MinNodes, k, v) }},
	{"maxnodes", func(p *cluster.Partition, k, v string) error {
		if v == "0" {
			return fmt.Errorf("MaxNodes=0 %w", ErrNotClosed)
		}
		return number(&p.MaxNodes, k, v)
	}},
	{"maxcpuspernode", func(p *cluster.Partition, k, v string) error { return number(&p.MaxCPUsPerNode, k, v) }},
	{"maxcpuspersocket", func(p *cluster.Partition, k, v string) error { return number(&p.MaxCPUsPerSocket, k, v) }},
	{"maxcpusperuser", func(p *cluster.Partition, k, v string) error { return number(&p.MaxCPUsPerUser, k, v) }},
	{"priority", func(p *cluster.Partition, k, v string) error {
		err := shortNumber(&p.PriorityTier, k, v)
		p.PriorityJobFactor = p.PriorityTier
		return err
	}},
	{"prioritytier", func(p *cluster.Partition, k, v string) error { return shortNumber(&p.PriorityTier, k, v) }},
	{
		"priorityjobfactor",
		func(p *cluster.Partition, k, v string) error { return shortNumber(&p.PriorityJobFactor, k, v) },
	},
	{"defmempercpu", func(p *cluster.Partition, k, v string) error { return mem(&p.DefMem, cluster.MemPerCPU, k, v) }},
	{
		"defmempernode",
		func(p *cluster.Partition, k, v string) error { return mem(&p.DefMem, cluster.MemPerNode, k, v) },
	},
	{"defmempergpu", func(p *cluster.Partition, k, v string) error { return perGPU(&p.PerGPU, k, v) }},
	{"defcpupergpu", func(p *cluster.Partition, k, v string) error { return perGPU(&p.PerGPU, k, v) }},
	{"jobdefaults", func(p *cluster.Partition, _, v string) error { return jobDefaults(&p.PerGPU, v) }},
	{"maxmempercpu", func(p *cluster.Partition, k, v string) error { return mem(&p.MaxMem, cluster.MemPerCPU, k, v) }},
	{
		"maxmempernode",
		func(p *cluster.Partition, k, v string) error { return mem(&p.MaxMem, cluster.MemPerNode, k, v) },
	},
	{"exclusive", func(p *cluster.Partition, _, v string) error { return setExclusive(p, v) }},
	{"oversubscribe", func(p *cluster.Partition, _, v string) error { return setOverSubscribe(p, v) }},
	{"shared", func(p *cluster.Partition, _, v string) error { return setOverSubscribe(p, v) }},
	{"preemptmode", func(p *cluster.Partition, _, v string) error { return setPreemptMode(&p.PreemptMode, v) }},
	{"qos", func(p *cluster.Partition, _, v string) error { p.QOS = v; return nil }},
	{"tresbillingweights", func(p *cluster.Partition, k, v string) error { return setBilling(p, k, v) }},
	{"allowgroups", func(p *cluster.Partition, _, v string) error { return list(&p.AllowGroups, v) }},
	{"allowaccounts", func(p *cluster.Partition, _, v string) error { return list(&p.AllowAccounts, v) }},
	{"allowqos", func(p *cluster.Partition, _, v string) error { return list(&p.AllowQOS, v) }},
	{"denyaccounts", func(p *cluster.Partition, _, v string) error { return list(&p.DenyAccounts, v) }},
	{"allocnodes", func(p *cluster.Partition, _, v string) error { return setAllocNodes(p, v) }},
	{"alternate", func(p *cluster.Partition, _, v string) error {
		p.Alternate = v
		if strings.EqualFold(v, "none") {
			p.Alternate = ""
		}
		return nil
	}},
	{"overtimelimit", func(p *cluster.Partition, k, v string) error { return setOverTime(p, k, v) }},
	{"denyqos", func(p *cluster.Partition, _, v string) error { return list(&p.DenyQOS, v) }},
	{"suspendtime", func(p *cluster.Partition, k, v string) error { return setSeconds(&p.SuspendTime, k, v) }},
	{"suspendtimeout", func(p *cluster.Partition, k, v string) error { return setSeconds(&p.SuspendTimeout, k, v) }},
	{"resumetimeout", func(p *cluster.Partition, k, v string) error { return setSeconds(&p.ResumeTimeout, k, v) }},
	{"idlegpu", func(p *cluster.Partition, _, v string) error { return setIdleGPU(p, v) }},
	{"hang", func(p *cluster.Partition, _, v string) error { return setHang(p, v) }},
	{"idlegputime", func(p *cluster.Partition, k, v string) error { return setTime(&p.IdleGPUTime, k, v) }},
	{"gracetime", func(p *cluster.Partition, k, v string) error {
		n := 0
		err := number(&n, k, v)
		p.GraceTime = time.Duration(n) * time.Second
		return err
	}},
}

// ErrNotClosed says that a limit of nothing does not keep jobs off a partition.
var ErrNotClosed = errors.New("does not close a partition here: say State=DRAIN, or State=DOWN")

// billed are the kinds of what can be billed.
var billed = []string{"billing", "bb", "cpu", "energy", "fs", "gres", "ic", "license", "mem", "node", "pages", "vmem"}

// setBilling sets the weights by which jobs are billed.
func setBilling(p *cluster.Partition, key, value string) error {
	list, err := weights(key, value, true)
	for _, a := range list {
		if kind, _, _ := strings.Cut(a.TRES, "/"); !slices.Contains(billed, kind) {
			return fmt.Errorf("%s=%s: %s is nothing that can be billed", key, value, a.TRES)
		}
	}
	if err == nil {
		p.BillingWeights = list
	}
	return err
}

// setIdleGPU sets what becomes of jobs whose GPUs do nothing: muster's own key.
func setIdleGPU(p *cluster.Partition, value string) error {
	switch rule := cluster.IdleRule(strings.ToLower(value)); rule {
	case cluster.IdleNotify, cluster.IdleRequeue, cluster.IdleCancel:
		p.IdleGPU = rule
	case "no", "off", "":
		p.IdleGPU = ""
	default:
		return fmt.Errorf("IdleGPU=%s is none of notify, requeue, cancel and no", value)
	}
	return nil
}

// setHang sets the rule for jobs that make no progress: muster's own key.
func setHang(p *cluster.Partition, value string) error {
	if _, err := cluster.ParseHangRule(value); err != nil {
		return err
	}
	p.Hang = value
	return nil
}

// jobDefaults reads JobDefaults as scontrol shows it: KEY=VALUE,...
func jobDefaults(to *cluster.PerGPU, value string) error {
	out := cluster.PerGPU{}
	for _, word := range strings.Split(value, ",") {
		key, v, _ := strings.Cut(word, "=")
		if key = strings.ToLower(key); key != "defcpupergpu" && key != "defmempergpu" {
			return fmt.Errorf("JobDefaults=%s: %s is neither DefCpuPerGPU nor DefMemPerGPU", value, key)
		}
		if err := perGPU(&out, key, v); err != nil {
			return err
		}
	}
	*to = out
	return nil
}

// UnusedKey is the error of a key of partitions that has no effect, or does not exist, with the reason.
type UnusedKey string

func (e UnusedKey) Error() string { return string(e) }

// partitionNoEffect says why a key of partitions has no effect; "": there is no such key.
func partitionNoEffect(key string) string {
	switch key {
	case "cpubind":
		return "set --cpu-bind at each srun, or SLURM_CPU_BIND"
	case "powerdownonidle":
		return "SuspendTime= powers idle nodes down"
	case "selecttypeparameters":
		return "SelectTypeParameters= of the cluster applies to all partitions"
	case "topology":
		return "all partitions use the topology of topology.conf"
	}
	return ""
}

// PartitionKey sets one key of a partition as slurm.conf and scontrol write it; key is lower case.
func PartitionKey(p *cluster.Partition, key, value string) error {
	for i := range partitionKeys {
		if partitionKeys[i].key == key {
			return partitionKeys[i].set(p, key, value)
		}
	}
	if why := partitionNoEffect(key); why != "" {
		return UnusedKey(key + " has no effect: " + why)
	}
	return UnusedKey(key + " " + noKey + "a partition")
}

// leastKey is how many letters of a key scontrol takes for the whole of it.
const leastKey = 3

// FullPartitionKey is the key that scontrol was given, or the only one that begins with it. What begins priority is
// that one, as in Slurm.
func FullPartitionKey(key string) string {
	if len(key) > leastKey && strings.HasPrefix("priority", key) {
		return "priority"
	}
	found := key
	for i := range partitionKeys {
		switch full := partitionKeys[i].key; {
		case full == key:
			return key
		case len(key) < leastKey || !strings.HasPrefix(full, key):
		case found != key: // more than one
			return key
		default:
			found = full
		}
	}
	return found
}

func setNodes(p *cluster.Partition, value string) error {
	p.NodesText, p.All, p.Nodes, p.Features, p.Joined = value, strings.EqualFold(value, "ALL"), nil, nil, nil
	if p.All {
		return nil
	}
	names, err := hostlist.Expand(value)
	if err != nil {
		return fmt.Errorf("nodes=%s: %w", value, err)
	}
	for _, n := range names {
		p.Nodes = append(p.Nodes, cluster.NodeName(n))
	}
	return nil
}

func setOverSubscribe(p *cluster.Partition, value string) error {
	how, err := cluster.ParseOverSubscribe(value)
	if err == nil {
		p.OverSubscribe = how
	}
	return err
}

// setExclusive reads Slurm 26.05's word for OverSubscribe=EXCLUSIVE and ExclusiveUser=YES.
func setExclusive(p *cluster.Partition, value string) error {
	node := false
	user := false
	switch strings.ToUpper(value) {
	case "NO":
	case "NODE":
		node = true
	case "USER":
		user = true
	case "TOPO":
		return fmt.Errorf("a partition's Exclusive=%s has no effect: the nodes of a topology segment are not kept for "+
			"one job; Exclusive=NODE keeps each node for one", value)
	default:
		return fmt.Errorf("want NO, NODE or USER for Exclusive, not %s", value)
	}
	p.ExclusiveUser = user
	if node {
		p.OverSubscribe = cluster.OverExclusive
	} else if p.OverSubscribe == cluster.OverExclusive {
		p.OverSubscribe = ""
	}
	return nil
}

// setAllocNodes sets the machines on which jobs may be submitted.
func setAllocNodes(p *cluster.Partition, value string) error {
	p.AllocNodes = nil
	if value == "" || strings.EqualFold(value, "ALL") {
		return nil
	}
	names, err := hostlist.Expand(value)
	if err != nil {
		return fmt.Errorf("AllocNodes=%s: %w", value, err)
	}
	p.AllocNodes = names
	return nil
}

// setOverTime sets for how many minutes jobs may go on after their time limit; NONE: as the cluster says.
func setOverTime(p *cluster.Partition, key, value string) error {
	p.OverTimeLimit = nil
	if strings.EqualFold(value, "NONE") {
		return nil
	}
	over := time.Duration(cluster.Unlimited)
	if !strings.EqualFold(value, "UNLIMITED") {
		n := 0
		if err := number(&n, key, value); err != nil {
			return err
		}
		over = time.Duration(n) * time.Minute
	}
	p.OverTimeLimit = &over
	return nil
}

func setState(p *cluster.Partition, value string) error {
	states := []cluster.PartitionState{
		cluster.PartitionUp, cluster.PartitionDown, cluster.PartitionDrain, cluster.PartitionInactive,
	}
	for _, s := range states {
		if len(value) > 1 && strings.HasPrefix(string(s), strings.ToUpper(value)) { // INACT, say
			p.State = s
			return nil
		}
	}
	return fmt.Errorf("state=%s: want UP, DOWN, DRAIN or INACTIVE", value)
}

func (r *reader) partitionLine(file string, n int, ps []pair) {
	if strings.EqualFold(ps[0].value, "DEFAULT") {
		r.partDef = append(r.partDef, ps[1:]...)
		return
	}
	for _, name := range strings.Split(ps[0].value, ",") {
		p := cluster.Partition{Name: name, State: cluster.PartitionUp, PriorityTier: 1, PriorityJobFactor: 1}
		for _, kv := range append(slices.Clone(r.partDef), ps[1:]...) {
			r.tiered = r.tiered || kv.key == "prioritytier" || kv.key == "priority"
			if why := holdsNothing(kv); why != "" {
				r.refused = append(r.refused, fmt.Errorf("%s:%d: PartitionName=%s: %s", file, n, name, why))
			}
			if err := PartitionKey(&p, kv.key, kv.value); err != nil {
				r.note(file, n, "PartitionName=%s: %v", name, err)
			}
		}
		r.partitions = append(r.partitions, partitionLineAt{file, n, len(r.cfg.Partitions)})
		r.cfg.Partitions = append(r.cfg.Partitions, p)
	}
}

// checkPartitions tells of nodes of partitions that no NodeName line speaks of, where there are such lines.
func (r *reader) checkPartitions() {
	if len(r.cfg.Declared) == 0 {
		return
	}
	declared := map[cluster.NodeName]bool{}
	for i := range r.cfg.Declared {
		declared[r.cfg.Declared[i].Name] = true
	}
	for _, at := range r.partitions {
		p := at.of(r.cfg)
		for _, name := range p.Nodes {
			if !declared[name] {
				r.note(at.file, at.line, "PartitionName=%s: no NodeName line speaks of node %s", p.Name, name)
				break // one is enough
			}
		}
	}
}

// partitionLineAt is where a partition stands.
type partitionLineAt struct {
	file  string
	line  int
	index int // in the configuration
}

func (at partitionLineAt) of(c *cluster.Config) *cluster.Partition { return &c.Partitions[at.index] }
