package conf

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// PartitionKey sets one key of a partition as slurm.conf and scontrol write it; key is lower case.
func PartitionKey(p *cluster.Partition, key, value string) error {
	number := func(to *int) error {
		if strings.EqualFold(value, "UNLIMITED") {
			*to = 0
			return nil
		}
		v, err := strconv.Atoi(value)
		if err != nil || v < 0 {
			return fmt.Errorf("%s=%s is not a number", key, value)
		}
		*to = v
		return nil
	}
	yes := strings.EqualFold(value, "YES")
	list := func(to *[]string) error {
		*to = nil
		if !strings.EqualFold(value, "ALL") {
			*to = strings.Split(value, ",")
		}
		return nil
	}
	mem := func(to *cluster.Mem, per cluster.MemPer) error {
		v := 0
		err := number(&v)
		*to = cluster.Mem{Per: per, MB: cluster.MemMB(v)}
		return err
	}
	switch key {
	case "nodes":
		return setNodes(p, value)
	case "default":
		p.Default = yes
	case "hidden":
		p.Hidden = yes
	case "rootonly":
		p.RootOnly = yes
	case "exclusiveuser":
		p.ExclusiveUser = yes
	case "disablerootjobs":
		p.DisableRootJobs = yes
	case "lln":
		p.LLN = yes
	case "reqresv":
		p.ReqResv = yes
	case "state":
		return setState(p, value)
	case "maxtime":
		return setTime(&p.MaxTime, key, value)
	case "defaulttime", "deftime":
		return setTime(&p.DefaultTime, key, value)
	case "minnodes":
		return number(&p.MinNodes)
	case "maxnodes":
		return number(&p.MaxNodes)
	case "maxcpuspernode":
		return number(&p.MaxCPUsPerNode)
	case "prioritytier":
		return number(&p.PriorityTier)
	case "priorityjobfactor":
		return number(&p.PriorityJobFactor)
	case "priority":
		p.PriorityTier = 0
		if err := number(&p.PriorityTier); err != nil {
			return err
		}
		p.PriorityJobFactor = p.PriorityTier
	case "defmempercpu":
		return mem(&p.DefMem, cluster.MemPerCPU)
	case "defmempernode":
		return mem(&p.DefMem, cluster.MemPerNode)
	case "defmempergpu":
		return mem(&p.DefMem, cluster.MemPerGPU)
	case "maxmempercpu":
		return mem(&p.MaxMem, cluster.MemPerCPU)
	case "maxmempernode":
		return mem(&p.MaxMem, cluster.MemPerNode)
	case "oversubscribe", "shared":
		p.OverSubscribe = strings.ToUpper(value)
	case "preemptmode":
		p.PreemptMode = strings.ToUpper(value)
	case "allowgroups":
		return list(&p.AllowGroups)
	case "allowaccounts":
		return list(&p.AllowAccounts)
	case "allowqos":
		return list(&p.AllowQOS)
	case "denyaccounts":
		return list(&p.DenyAccounts)
	case "denyqos":
		return list(&p.DenyQOS)
	case "gracetime":
		v := 0
		if err := number(&v); err != nil {
			return err
		}
		p.GraceTime = time.Duration(v) * time.Second
	default:
		return fmt.Errorf("%s has no effect yet", key)
	}
	return nil
}

func setNodes(p *cluster.Partition, value string) error {
	p.NodesText, p.All, p.Nodes = value, strings.EqualFold(value, "ALL"), nil
	if p.All {
		return nil
	}
	names, err := hostlist.Expand(value)
	if err != nil {
		return fmt.Errorf("Nodes=%s: %w", value, err)
	}
	for _, n := range names {
		p.Nodes = append(p.Nodes, cluster.NodeName(n))
	}
	return nil
}

func setState(p *cluster.Partition, value string) error {
	switch s := cluster.PartitionState(strings.ToUpper(value)); s {
	case cluster.PartitionUp, cluster.PartitionDown, cluster.PartitionDrain, cluster.PartitionInactive:
		p.State = s
		return nil
	}
	return fmt.Errorf("State=%s: want UP, DOWN, DRAIN or INACTIVE", value)
}

func setTime(to *time.Duration, key, value string) error {
	d, ok := limit(value)
	if !ok {
		return fmt.Errorf("%s=%s is not a time", key, value)
	}
	*to = d
	return nil
}

// limit reads M, M:S, H:M:S, D-H, D-H:M, D-H:M:S and UNLIMITED.
func limit(s string) (time.Duration, bool) {
	switch strings.ToUpper(s) {
	case "UNLIMITED", "INFINITE", "-1":
		return cluster.Unlimited, true
	case "NONE":
		return 0, true
	}
	days, rest, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, rest = "0", s
	}
	parts := strings.Split(rest, ":")
	if len(parts) > 3 {
		return 0, false
	}
	var v [4]int // days and up to three more
	for i, t := range append([]string{days}, parts...) {
		n, err := strconv.Atoi(t)
		if err != nil || n < 0 {
			return 0, false
		}
		v[i] = n
	}
	d := time.Duration(v[0]) * 24 * time.Hour
	switch {
	case hasDays || len(parts) == 3:
		d += time.Duration(v[1])*time.Hour + time.Duration(v[2])*time.Minute + time.Duration(v[3])*time.Second
	default:
		d += time.Duration(v[1])*time.Minute + time.Duration(v[2])*time.Second
	}
	return d, true
}
