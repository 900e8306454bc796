package sched

import (
	"fmt"
	"slices"
	"time"

	"dev.muster/cluster"
)

// possible tells why the cluster as configured, even empty, does not start the job now:
// NoReason if it could. The second text goes behind the reason. idle is the usable nodes without load.
func (d *demand) possible(s *cluster.Snapshot, idle *pool) (cluster.Reason, string) {
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
	patient.switches = 0 // that wait ends
	if patient.place(idle, off{}) == nil {
		if d.outgrows(whole(s)) {
			return cluster.WaitPartitionConfig, ""
		}
		return cluster.WaitNodesDown, ""
	}
	return cluster.NoReason, ""
}

// unbounded reports whether the job asks for fewer or more nodes than its partition allows.
func (d *demand) unbounded() bool { return d.upTo > 0 && d.minNodes > d.upTo || d.minNodes < d.least }

// plainly reports whether the job could start if nothing ran, where that is easy to tell: all its nodes are of one
// model and lie anyhow. If not, ask possible.
func (q *question) plainly(free *pool) bool {
	d, list := q.want, free.members(q.want.part)
	if d.unbounded() || len(free.models) != 1 || len(list) == 0 || len(d.wanted) > 0 || d.not != nil || d.wishes != nil || d.fussy() ||
		d.ranged() || free.plan.levels != nil || !q.gauge.suits(free, 0) {
		return false
	}
	empty := free.models[0].empty(free.spaces[list[0]].node, 0)
	sp := &empty
	tasks := d.fits(sp)
	if tasks == 0 {
		return false
	}
	nodes := max(d.minNodes, (d.tasks+tasks-1)/tasks)
	for _, g := range d.gpuJob {
		if nodes*d.gives(sp, g.Type) < int(g.Count) {
			return false // with more nodes, perhaps
		}
	}
	if nodes > min(d.most(len(list)), len(list)) {
		return false
	}
	if !d.gpus && d.perSocket == 0 && !d.overcommit && d.mem.Per != cluster.MemPerGPU {
		return true // CPUs and memory can be dealt out if there are enough
	}
	rooms := make([]room, nodes)
	for k := range rooms {
		rooms[k] = room{sp: sp, tasks: tasks, at: k}
	}
	return d.deal(rooms) != nil
}

// Judge tells of one job after the other whether it could ever run. What it knows of the nodes it keeps from snapshot
// to snapshot for as long as they stay what they are. Not for several goroutines at once.
type Judge struct {
	of  *cluster.Snapshot // nil: none yet
	all *pool             // its nodes as if nothing ran
}

// whole is the pool of this name.
func (u *Judge) whole(s *cluster.Snapshot) *pool {
	same := u.of != nil && u.of.Config() == s.Config()
	if same {
		touched, known := s.Since(u.of.Moment())
		same = known && !slices.ContainsFunc(touched, func(t cluster.Touch) bool { return t.Node != "" })
	}
	if !same {
		u.all = whole(s)
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
			last = cluster.Errorf(cluster.Invalid, cluster.ErrTimeMin, "a least time limit of %s is above that of partition %s, %s: give a shorter --time-min", spec.LimitMin, name, p.MaxTime)
			continue
		}
		d := newDemand(s, p, spec, nil)
		nodes := len(all.members(p))
		if d.minNodes > nodes || nodes == 0 || d.unbounded() {
			return nil
		}
		not := notReserved(s, spec, all, now)
		q := &question{want: d, gauge: newGauge(d, all)}
		if not == nil && q.plainly(all) || d.place(all, off{nodes: not}) != nil {
			return nil
		}
		if d.outgrows(all) {
			return nil
		}
		if last = d.tooMuch(s, all); slices.ContainsFunc(d.wanted, func(n cluster.NodeName) bool { i, _ := all.at(n); return not.has(i) }) {
			last.Hint = outsideHint(s, spec)
		}
	}
	return last
}

// outgrows reports whether only the number of tasks is too much for the whole partition: those of
// one node would fit, and no number of nodes was asked for.
func (d *demand) outgrows(all *pool) bool {
	if d.nodesAsked || len(d.gpuJob) > 0 || d.place(all, off{}) != nil {
		return false
	}
	one := *d
	one.tasks, one.minNodes = max(min(d.perNode, d.tasks), 1), 1
	return one.place(all, off{}) != nil
}

// tooMuch words what of a demand no node of the partition can meet.
func (d *demand) tooMuch(s *cluster.Snapshot, all *pool) *cluster.Error {
	cpus, mem, disk, made := 0, cluster.MemMB(0), int64(0), false
	for n := range s.PartitionNodes(d.part) {
		cpus, mem, disk = max(cpus, n.Inventory.CPUs), max(mem, n.Inventory.MemMB), max(disk, n.Inventory.TmpMB)
		made = made || d.madeSo(&n.Inventory)
	}
	e := cluster.Errorf(cluster.Invalid, cluster.ErrNodeConfig, "no set of nodes of partition %s can ever run this job: %s", d.part.Name, d.shortageOf(all, off{}, ""))
	switch {
	case max(d.cpusPer*max(min(d.perNode, d.tasks)*b2i(!d.overcommit), 1), d.minCPUs) > cpus:
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
