package sched

import (
	"fmt"
	"slices"
	"time"

	"dev.muster/cluster"
)

// possible tells why the cluster as configured, even empty, does not start the job now:
// NoReason if it could. The second text goes behind the reason. idle is the usable nodes without load.
func (d *demand) possible(s *cluster.Snapshot, idle *freeSet) (cluster.Reason, string) {
	if d.minNodes > d.part.Size(s) {
		return cluster.WaitPartitionNodes, ""
	}
	if d.unbounded() {
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
	patient.switches = 0 // the job waits for few switches only for a time
	if patient.allocateIn(idle, exclusion{}) == nil {
		if d.outgrows(newUnloadedSet(s)) {
			return cluster.WaitPartitionConfig, ""
		}
		return cluster.WaitNodesDown, ""
	}
	return cluster.NoReason, ""
}

// unbounded reports whether the job asks for fewer or more nodes than its partition allows.
func (d *demand) unbounded() bool {
	return d.partMax > 0 && d.minNodes > d.partMax || d.minNodes < d.partMin
}

// obviouslyPossible reports whether the job could start if nothing ran, where that is easy to tell: all its nodes are
// of one model and it does not matter how they lie. If not, ask possible.
func (shape *jobShape) obviouslyPossible(fs *freeSet) bool {
	d, list := shape.demand, fs.partitionMembers(shape.demand.part)
	if d.unbounded() || d.isParticular() || len(list) == 0 {
		return false
	}
	if len(fs.models) != 1 || fs.topology.levels != nil || !shape.fit.suits(fs, 0) {
		return false
	}
	empty := fs.models[0].emptyNode(fs.nodes[list[0]].node, 0)
	tasks := d.tasksOn(&empty)
	if tasks == 0 {
		return false
	}
	nodes := max(d.minNodes, (d.tasks+tasks-1)/tasks)
	for _, g := range d.gpuJob {
		if nodes*d.gpusGivenBy(&empty, g.Type) < int(g.Count) {
			return false // with more nodes, perhaps
		}
	}
	if nodes > min(d.mostNodes(len(list)), len(list)) {
		return false
	}
	if !d.gpus && d.tasksPerSocket == 0 && !d.overcommit && d.mem.Per != cluster.MemPerGPU {
		return true // CPUs and memory can be dealt out if there are enough
	}
	rooms := make([]nodeRoom, nodes)
	for k := range rooms {
		rooms[k] = nodeRoom{free: &empty, tasks: tasks, share: k}
	}
	return d.allocate(rooms) != nil
}

// isParticular reports whether it matters to the job which nodes it gets of those that have room.
func (d *demand) isParticular() bool {
	byName := len(d.wanted) > 0 || d.excluded != nil || d.wishes != nil
	return byName || d.constrainsLayout() || d.wantsMostNodes()
}

// Judge tells of one job after the other whether it could ever run. What it knows of the nodes it keeps from snapshot
// to snapshot for as long as they stay what they are. Not for several goroutines at once.
type Judge struct {
	of  *cluster.Snapshot // nil: none yet
	all *freeSet          // its newUnloadedSet
}

// whole is newUnloadedSet, kept as long as no node changes.
func (u *Judge) whole(s *cluster.Snapshot) *freeSet {
	same := u.of != nil && u.of.Config() == s.Config()
	if same {
		touched, known := s.Since(u.of.Moment())
		same = known && !slices.ContainsFunc(touched, func(t cluster.StateChange) bool { return t.Node != "" })
	}
	if !same {
		u.all = newUnloadedSet(s)
	}
	u.of = s
	return u.all
}

// Feasible reports whether the nodes of some partition of the job could ever run it: nil, or
// what can not be met. More nodes than a partition has, asked for or needed for so many tasks, is
// not an error here (the job waits).
func (u *Judge) Feasible(s *cluster.Snapshot, spec *cluster.JobSpec, now time.Time) *cluster.Error {
	var last *cluster.Error
	all := u.whole(s)
	for _, name := range spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			continue
		}
		if p.MaxTime > 0 && spec.LimitMin > p.MaxTime {
			last = cluster.Errorf(cluster.Invalid, cluster.ErrTimeMin,
				"a least time limit of %s is above that of partition %s, %s: give a shorter --time-min", spec.LimitMin, name, p.MaxTime)
			continue
		}
		d := newDemand(s, p, spec, nil)
		nodes := len(all.partitionMembers(p))
		if d.minNodes > nodes || nodes == 0 || d.unbounded() {
			return nil
		}
		not := nodesOutside(s, spec, all, now)
		shape := &jobShape{demand: d, fit: newClassFit(d, all)}
		if not == nil && shape.obviouslyPossible(all) || d.allocateIn(all, exclusion{nodes: not}) != nil {
			return nil
		}
		if d.outgrows(all) {
			return nil
		}
		last = d.exceededLimit(s, all)
		isOutside := func(n cluster.NodeName) bool { i, _ := all.index(n); return not.has(i) }
		if slices.ContainsFunc(d.wanted, isOutside) {
			last.Hint = outsideHint(s, spec)
		}
	}
	return last
}

// outgrows reports whether only the number of tasks is too much for the whole partition: those of
// one node would fit, and no number of nodes was asked for.
func (d *demand) outgrows(all *freeSet) bool {
	if d.nodesAsked || len(d.gpuJob) > 0 || d.allocateIn(all, exclusion{}) != nil {
		return false
	}
	one := *d
	one.tasks, one.minNodes = max(min(d.tasksPerNode, d.tasks), 1), 1
	return one.allocateIn(all, exclusion{}) != nil
}

// exceededLimit words what of a demand no node of the partition can meet.
func (d *demand) exceededLimit(s *cluster.Snapshot, all *freeSet) *cluster.Error {
	cpus, mem, disk, made := 0, cluster.MemMB(0), int64(0), false
	for n := range s.PartitionNodes(d.part) {
		cpus, mem, disk = max(cpus, n.Inventory.CPUs), max(mem, n.Inventory.MemMB), max(disk, n.Inventory.TmpMB)
		made = made || d.hasSockets(&n.Inventory)
	}
	e := cluster.Errorf(cluster.Invalid, cluster.ErrNodeConfig,
		"no set of nodes of partition %s can ever run this job: %s", d.part.Name, d.shortageOf(all, exclusion{}, ""))
	switch {
	case max(d.cpusPerTask*max(min(d.tasksPerNode, d.tasks)*b2i(!d.overcommit), 1), d.minCPUs) > cpus:
		e.Hint = "CPU count per node can not be satisfied"
	case d.mem.MB > mem:
		e.Hint = "Memory specification can not be satisfied"
	case d.tmpMB > disk:
		e.Hint = "Temporary disk specification can not be satisfied"
	case !made:
		e.Hint = "Socket, core and/or thread specification can not be satisfied"
	}
	return e
}
