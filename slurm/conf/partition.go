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

// SetPartitionKey sets one key of a partition as slurm.conf and scontrol write it; key is lower case.
func SetPartitionKey(p *cluster.Partition, key, value string) error {
	if k := FindPartitionKey(key); k != nil {
		return k.set(p, key, value)
	}
	if why := partitionNoEffect(key); why != "" {
		return UnusedKey(key + " has no effect: " + why)
	}
	return UnusedKey(key + " " + noKey + "a partition")
}

// FindPartitionKey returns the key of a name; nil: there is none.
func FindPartitionKey(name string) *PartitionKey {
	keys := PartitionKeys()
	for i := range keys {
		if strings.EqualFold(keys[i].Name, name) {
			return &keys[i]
		}
	}
	return nil
}

// leastKey is how many letters of a key scontrol takes for the whole of it.
const leastKey = 3

// FullPartitionKey returns, in lower case, the key that an abbreviation stands for, or the word itself if no key or
// several keys begin with it. As in Slurm, an abbreviation of priority always stands for that key.
func FullPartitionKey(key string) string {
	if len(key) > leastKey && strings.HasPrefix("priority", key) {
		return "priority"
	}
	found := key
	for _, k := range PartitionKeys() {
		switch full := strings.ToLower(k.Name); {
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
			if err := SetPartitionKey(&p, kv.key, kv.value); err != nil {
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
