package place

import "dev.muster/cluster"

// MaxCPUsPerNode and MaxCPUsPerSocket: of a node's CPUs, all jobs of a partition together may have only some.

// partitionCPUs is the CPUs of a node that jobs of one partition have.
type partitionCPUs struct {
	partition string
	cpus      cluster.IDSet
}

func (pc partitionCPUs) equal(o partitionCPUs) bool {
	return pc.partition == o.partition && pc.cpus.Equal(o.cpus)
}

// limitedCPUs has an entry for each partition with a limit, in the order of the configuration; nil if there is none.
// It is never changed in place. Where several jobs share a CPU it counts once.
type limitedCPUs []partitionCPUs

// newLimitedCPUs has all partitions with a limit, and no CPUs.
func newLimitedCPUs(cfg *cluster.Config) (list limitedCPUs) {
	for i := range cfg.Partitions {
		if p := &cfg.Partitions[i]; p.LimitsCPUs() {
			list = append(list, partitionCPUs{partition: p.Name})
		}
	}
	return list
}

// changed is a list with other CPUs.
func (list limitedCPUs) changed(to func(partitionCPUs) cluster.IDSet) limitedCPUs {
	if len(list) == 0 {
		return nil
	}
	out := make(limitedCPUs, len(list))
	for i, pc := range list {
		out[i] = partitionCPUs{pc.partition, to(pc)}
	}
	return out
}

// of is the list of a node's load.
func (list limitedCPUs) of(l *cluster.Load, s *cluster.Snapshot) limitedCPUs {
	return list.changed(func(pc partitionCPUs) cluster.IDSet { return l.CPUsOf(pc.partition, s.Job) })
}

// with adds CPUs of a partition.
func (list limitedCPUs) with(partition string, cpus cluster.IDSet) limitedCPUs {
	return list.changed(func(pc partitionCPUs) cluster.IDSet {
		if pc.partition != partition {
			return pc.cpus
		}
		return pc.cpus.Union(cpus)
	})
}

// without takes CPUs away that a job gives back.
func (list limitedCPUs) without(cpus cluster.IDSet) limitedCPUs {
	return list.changed(func(pc partitionCPUs) cluster.IDSet { return pc.cpus.Minus(cpus) })
}

// most has of each partition the larger of two sets.
func (list limitedCPUs) most(o limitedCPUs) limitedCPUs {
	if len(o) != len(list) {
		return list
	}
	at := -1
	return list.changed(func(pc partitionCPUs) cluster.IDSet {
		at++
		if o[at].cpus.Len() > pc.cpus.Len() {
			return o[at].cpus
		}
		return pc.cpus
	})
}

// usedBy is the CPUs of a partition with a limit.
func (list limitedCPUs) usedBy(partition string) (none cluster.IDSet) {
	for _, pc := range list {
		if pc.partition == partition {
			return pc.cpus
		}
	}
	return none
}

// withinLimits is a node with no more CPUs free than the limits of the job's partition leave it: a copy, where that is
// fewer.
func (free *NodeFree) withinLimits(d *Demand) *NodeFree {
	if !d.part.LimitsCPUs() {
		return free
	}
	used := free.limited.usedBy(d.part.Name)
	own := *free
	if most := d.part.MaxCPUsPerSocket; most > 0 {
		own.cpus = cluster.IDSet{}
		for _, socket := range free.node.Inventory.SocketCPUs() {
			one := *free
			one.cpus = free.cpus.Intersect(socket)
			own.cpus = own.cpus.Union(one.firstCPUs(most-used.Intersect(socket).Len(), d))
		}
	}
	if most := d.part.MaxCPUsPerNode; most > 0 {
		own.cpus = own.firstCPUs(most-used.Len(), d)
	}
	if own.cpus.Len() == free.cpus.Len() {
		return free
	}
	own.class = -1
	own.recount()
	return &own
}

// firstCPUs is at most so many of the free CPUs, whole cores or sockets: of each socket in turn, or filling one before
// the next.
func (free *NodeFree) firstCPUs(most int, d *Demand) cluster.IDSet {
	if most >= free.cpus.Len() {
		return free.cpus
	}
	t := max(free.node.Inventory.ThreadsPerCore, 1)
	bySocket := freeCores(free)
	if free.unit > t || d.flags.has(fillsSockets) || d.cpusPerTask > 1 {
		return firstSockets(bySocket, most, t, free.unit)
	}
	var ids cluster.IDSet
	for _, c := range roundRobin(bySocket, nil) {
		if ids.Len()+t > most {
			break
		}
		ids = ids.Union(cluster.RangeIDSet(c*t, c*t+t-1))
	}
	return ids
}

// firstSockets is at most so many CPUs of cores with t threads, filling one socket before the next, a unit at a time.
func firstSockets(bySocket [][]int, most, t, unit int) (ids cluster.IDSet) {
	for _, cores := range bySocket {
		for len(cores) > 0 && ids.Len()+unit <= most {
			n := min(max(unit/t, 1), len(cores))
			for _, c := range cores[:n] {
				ids = ids.Union(cluster.RangeIDSet(c*t, c*t+t-1))
			}
			cores = cores[n:]
		}
	}
	return ids
}

// mostCPUs is how many CPUs of a node the jobs of a partition may have.
func mostCPUs(p *cluster.Partition, inv *cluster.Inventory) int {
	most := inv.CPUs
	if p.MaxCPUsPerNode > 0 {
		most = min(most, p.MaxCPUsPerNode)
	}
	if p.MaxCPUsPerSocket > 0 {
		most = min(most, p.MaxCPUsPerSocket*max(inv.Sockets, 1))
	}
	return most
}
