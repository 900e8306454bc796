package place

import (
	"fmt"

	"dev.muster/cluster"
)

// Possible tells why the cluster as configured, even empty, does not start the job now:
// NoReason if it could. The second text goes behind the reason. idle is the usable nodes without load.
func (d *Demand) Possible(s *cluster.Snapshot, idle *FreeSet) (cluster.Reason, string) {
	if d.MinNodes > d.part.Size(s) || d.unbounded() {
		return cluster.WaitPartitionNodes, ""
	}
	var away []cluster.NodeName
	for _, name := range d.wanted {
		if n, ok := s.Node(name); ok && !n.Usable() {
			away = append(away, name)
		}
	}
	if len(away) > 0 {
		return cluster.WaitNodeNotAvail, fmt.Sprint(away)
	}
	patient := *d
	patient.Switches = 0 // the job waits for few switches only for a time
	if patient.FindIn(idle, Exclusion{}) == nil {
		if d.outgrows(NewUnloadedSet(s)) {
			return cluster.WaitPartitionConfig, ""
		}
		return cluster.WaitNodesDown, ""
	}
	return cluster.NoReason, ""
}

// NeverFits tells what of a demand all nodes of its partition but for some cannot meet, even if nothing ran; nil if
// they can, or if they are only too few: the job waits then.
func (d *Demand) NeverFits(s *cluster.Snapshot, all *FreeSet, not NodeSet) *cluster.Error {
	nodes := len(all.Members(d.part))
	if d.MinNodes > nodes || nodes == 0 || d.unbounded() {
		return nil
	}
	if not == nil && NewFit(d, all).ObviouslyPossible(all) {
		return nil
	}
	fits := d.FindIn(all, Exclusion{Nodes: not}) != nil
	if fits || d.outgrows(all) {
		return nil
	}
	return d.exceededLimit(s, all)
}

// unbounded reports whether the job asks for fewer or more nodes than its partition allows.
func (d *Demand) unbounded() bool {
	return d.PartMax > 0 && d.MinNodes > d.PartMax || d.MinNodes < d.PartMin
}

// isParticular reports whether it matters to the job which nodes it gets of those that have room.
func (d *Demand) isParticular() bool {
	return anyOf(
		len(d.wanted) > 0,
		d.excluded.not != nil,
		d.excluded.only != nil,
		d.isChoosy(),
	)
}

// outgrows reports whether only the number of tasks is too much for the whole partition: those of
// one node would fit, and no number of nodes was asked for.
func (d *Demand) outgrows(all *FreeSet) bool {
	if d.nodesAsked || len(d.gpuJob) > 0 || d.FindIn(all, Exclusion{}) != nil {
		return false
	}
	one := *d
	one.tasks = max(min(d.tasksPerNode, d.tasks), 1)
	one.MinNodes = 1
	return one.FindIn(all, Exclusion{}) != nil
}

// exceededLimit words what of a demand no node of the partition can meet.
func (d *Demand) exceededLimit(s *cluster.Snapshot, all *FreeSet) *cluster.Error {
	cpus := 0
	mem := cluster.MemMB(0)
	var nodes []*cluster.Inventory
	for n := range s.PartitionNodes(d.part) {
		cpus = max(cpus, mostCPUs(d.part, &n.Inventory))
		mem = max(mem, n.Inventory.MemMB)
		nodes = append(nodes, &n.Inventory)
	}
	onNode := max(min(d.tasksPerNode, d.tasks), 1)
	if d.flags.has(overcommit) {
		onNode = 1
	}
	e := cluster.Errorf(cluster.Invalid, cluster.ErrNodeConfig,
		"no set of nodes of partition %s can ever run this job: %s", d.part.Name,
		wanting{d}.shortageOf(all, Exclusion{}, ""))
	switch {
	case max(d.cpusPerTask*onNode, d.minCPUs) > cpus:
		e.Hint = "CPU count per node can not be satisfied"
	case d.mem.MB > mem:
		e.Hint = "Memory specification can not be satisfied"
	default:
		e.Hint = d.asked.shortHint(nodes)
	}
	return e
}
