package sched

import (
	"fmt"

	"dev.muster/cluster"
)

// possible tells why the cluster as configured, even empty, does not start the job now:
// NoReason if it could. The second text goes behind the reason.
func (d *demand) possible(s *cluster.Snapshot) (cluster.Reason, string) {
	nodes := 0
	var away []cluster.NodeName
	for n := range s.PartitionNodes(d.part) {
		nodes++
		if d.only[n.Name] && !n.Usable() {
			away = append(away, n.Name)
		}
	}
	if d.minNodes > nodes {
		return cluster.WaitPartitionNodes, ""
	}
	if d.part.MaxNodes > 0 && d.minNodes > d.part.MaxNodes {
		return cluster.WaitPartitionNodes, ""
	}
	if len(away) > 0 {
		return cluster.WaitNodeNotAvail, fmt.Sprint(away)
	}
	if d.place(whole(s, false), nil) == nil {
		return cluster.WaitNodesDown, ""
	}
	return cluster.NoReason, ""
}

// whole is the pool as if nothing ran; with all, also of nodes that are not usable now.
func whole(s *cluster.Snapshot, all bool) *pool {
	p := &pool{at: map[cluster.NodeName]int{}}
	for n := range s.Nodes() {
		if all || n.Usable() {
			p.at[n.Name] = len(p.spaces)
			p.spaces = append(p.spaces, space{node: n, mem: n.Inventory.MemMB,
				cpus: cluster.RangeIDSet(0, n.Inventory.CPUs-1), gpus: cluster.RangeIDSet(0, len(n.Inventory.GPUs)-1)})
		}
	}
	return p
}

// Feasible reports whether the nodes of some partition of the job could ever run it: nil, or
// what can not be met. More nodes than a partition has is not an error here (the job waits).
func Feasible(s *cluster.Snapshot, spec *cluster.JobSpec) *cluster.Error {
	var last *cluster.Error
	for _, name := range spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			continue
		}
		d := newDemand(s, p, spec)
		nodes := 0
		for range s.PartitionNodes(p) {
			nodes++
		}
		if d.minNodes > nodes || nodes == 0 {
			return nil
		}
		if d.place(whole(s, true), nil) != nil {
			return nil
		}
		last = d.tooMuch(s, name)
	}
	return last
}

// tooMuch words what of a demand no node of the partition can meet.
func (d *demand) tooMuch(s *cluster.Snapshot, name string) *cluster.Error {
	cpus, mem := 0, cluster.MemMB(0)
	for n := range s.PartitionNodes(d.part) {
		cpus, mem = max(cpus, n.Inventory.CPUs), max(mem, n.Inventory.MemMB)
	}
	e := cluster.Errorf(cluster.Invalid, cluster.ErrNodeConfig, "no set of nodes of partition %s can ever run this job", name)
	switch {
	case max(d.cpusPer, d.minCPUs) > cpus:
		e.Hint = "CPU count per node can not be satisfied"
	case d.mem.MB > mem:
		e.Hint = "Memory specification can not be satisfied"
	}
	return e
}
