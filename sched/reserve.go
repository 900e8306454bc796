package sched

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Reserve chooses what a reservation gets that asks for a number of nodes or of cores: what no other one has then,
// and no job will have; in the order of a job's, nodes that are up first if there are enough. With cores, cpus tells
// what it gets of each node. One that has nodes keeps of them as many as it asks for, those with jobs first. The
// error says what is missing.
func Reserve(
	s *cluster.Snapshot, r *cluster.Reservation, now time.Time,
) (nodes []cluster.NodeName, cpus []cluster.IDSet, err *cluster.Error) {
	if len(r.Nodes) == 0 || len(r.Cores) > 0 {
		return chooseReserved(s, r, now, false)
	}
	want := *r
	if want.Count -= len(r.Nodes); want.Count > 0 {
		nodes, _, err = chooseReserved(s, &want, now, true)
	}
	var kept []cluster.NodeName
	for n := range s.Nodes() { // in their order
		if slices.Contains(r.Nodes, n.Name) || slices.Contains(nodes, n.Name) {
			kept = append(kept, n.Name)
		}
	}
	for _, idle := range []bool{true, false} {
		kept = slices.DeleteFunc(kept, func(n cluster.NodeName) bool {
			drop := want.Count < 0 && idle == (len(s.Load(n).Jobs) == 0)
			want.Count += b2i(drop)
			return drop
		})
	}
	return kept, nil, err
}

// chooseReserved is Reserve; more looks for usable nodes beside those that the reservation has.
func chooseReserved(
	s *cluster.Snapshot, r *cluster.Reservation, now time.Time, more bool,
) ([]cluster.NodeName, []cluster.IDSet, *cluster.Error) {
	part, ok := s.Partition(r.Partition)
	if r.Partition == "" {
		part = s.DefaultPartition()
		ok = part != nil
	}
	if !ok {
		return nil, nil, cluster.Errorf(cluster.Invalid, cluster.ErrPartition,
			"partition %s does not exist", r.Partition)
	}
	all := newUnloadedSet(s)
	taken := all.takenDuring(s, r, now)
	if more {
		taken = taken.withReserved(all.reservedNodesOf(s, r))
	}
	if len(r.Cores) > 0 {
		return chooseReservedCores(s, r, part, all, taken)
	}
	d := newDemand(s, part, &cluster.JobSpec{Layout: &cluster.Layout{MinNodes: r.Count, MaxNodes: r.Count,
		Constraint: r.Features}}, nil)
	d.exclusive = true
	for pass := range 2 - b2i(more) {
		if a := d.allocateIn(all, all.withoutUnusable(taken, pass == 0)); a != nil {
			return nodesOf(a), nil, nil
		}
	}
	return nil, nil, cluster.Errorf(cluster.Conflict, cluster.ErrResvBusy,
		"partition %s has no %d nodes that are free from %s on", part.Name, r.Count, r.Start.Format(time.DateTime))
}

// takenDuring is what other reservations and jobs have while a reservation lasts, unless it overlaps, ignores or
// admits them.
func (fs *freeSet) takenDuring(s *cluster.Snapshot, r *cluster.Reservation, now time.Time) exclusion {
	ex := exclusion{nodes: make(nodeSet, len(fs.nodes))}
	const shares = cluster.ResvMaint | cluster.ResvOverlap
	for _, k := range s.Reservations() {
		if k = k.At(now); k.Name != r.Name && (k.Flags|r.Flags)&shares == 0 && k.End.After(now) && k.Keeps(r.Start, r.End) {
			ex = ex.withReserved(fs.reservedNodesOf(s, k))
		}
	}
	busy := &excludedCPUs{}
	for j := range s.Live() {
		end := j.EndLimit(s.Config())
		overBefore := !end.IsZero() && !end.After(r.Start)
		if overBefore || r.Flags&cluster.ResvIgnoreJobs != 0 || r.Lets(j.Spec) {
			continue
		}
		for _, sh := range j.Alloc.Shares {
			if i, ok := fs.index(sh.Node); ok {
				busy.exclude(int32(i), sh.CPUs)
			}
		}
	}
	ex.cpus = ex.cpus.union(busy)
	return ex
}

// withoutUnusable excludes unusable nodes, too, if asked to.
func (fs *freeSet) withoutUnusable(ex exclusion, only bool) exclusion {
	if only {
		ex.nodes = slices.Clone(ex.nodes)
		for i := range fs.nodes {
			ex.nodes[i] = ex.nodes[i] || !fs.nodes[i].node.Usable()
		}
	}
	return ex
}

func nodesOf(a *cluster.Alloc) (out []cluster.NodeName) {
	for _, sh := range a.Shares {
		out = append(out, sh.Node)
	}
	return out
}

// chooseReservedCores chooses cores: of each node the lowest that are free, and with FIRST_CORES the lowest that
// there are. A number for all nodes is dealt out as tasks are; over a number of nodes evenly.
func chooseReservedCores(
	s *cluster.Snapshot, r *cluster.Reservation, part *cluster.Partition, all *freeSet, taken exclusion,
) ([]cluster.NodeName, []cluster.IDSet, *cluster.Error) {
	each, nodes, firsts := r.Cores, len(r.Nodes), r.Flags&cluster.ResvFirstCores != 0
	if nodes == 0 && firsts {
		if nodes = max(r.Count, 1); len(each) == 1 {
			each = slices.Repeat(each, nodes)
		}
	}
	if len(each) != max(nodes, 1) {
		return nil, nil, cluster.Errorf(cluster.Invalid, cluster.ErrResvCoreCount,
			"%s of cores for %s: give one for each", count(len(each), "number", "numbers"), count(max(nodes, 1), "node",
				"nodes"))
	}
	if nodes > 0 && len(r.Nodes) == 0 {
		for i := range all.nodes {
			if _, ok := all.lowestCores(i, slices.Max(each), taken, true); !ok {
				taken.nodes[i] = true
			}
		}
	}
	busy := cluster.Errorf(cluster.Conflict, cluster.ErrResvBusy, "there are no %s cores that are free from %s on",
		strings.Trim(fmt.Sprint(r.Cores), "[]"), r.Start.Format(time.DateTime))
	if slices.Min(each) <= 0 {
		return nil, nil, busy
	}
	names := r.Nodes
	if names == nil {
		a := placeCores(s, r, part, all, taken, each)
		if a == nil {
			return nil, nil, busy
		}
		if names = nodesOf(a); !firsts {
			each = nil
			for _, sh := range a.Shares {
				each = append(each, sh.Tasks)
			}
		}
	}
	cpus := make([]cluster.IDSet, len(names))
	for k, name := range names {
		i, ok := all.index(name)
		switch {
		case !ok:
			return nil, nil, cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "node %s does not exist", name)
		case taken.nodes[i]:
			return nil, nil, cluster.Errorf(cluster.Conflict, cluster.ErrResvOverlap, "another reservation has node %s then",
				name)
		}
		if cpus[k], ok = all.lowestCores(i, each[k], taken, firsts); !ok {
			return nil, nil, busy
		}
	}
	return names, cpus, nil
}

// placeCores places a number of cores on nodes of the partition, each like a task of its own; nil if they are not
// there.
func placeCores(
	s *cluster.Snapshot, r *cluster.Reservation, part *cluster.Partition, all *freeSet, taken exclusion, each []int,
) *cluster.Alloc {
	l := &cluster.Layout{
		MinNodes: r.Count, MaxNodes: r.Count, Tasks: each[0], ThreadsPerCore: 1, Constraint: r.Features,
	}
	if nodes := max(r.Count, len(each)); r.Count > 0 || r.Flags&cluster.ResvFirstCores != 0 {
		l.MinNodes, l.MaxNodes, l.TasksPerNode = nodes, nodes, (each[0]+nodes-1)/nodes
		if r.Flags&cluster.ResvFirstCores != 0 {
			l.TasksPerNode = slices.Max(each)
			l.Tasks = nodes * l.TasksPerNode
		}
	}
	d := newDemand(s, part, &cluster.JobSpec{Layout: l}, nil)
	d.wholeCore, d.memAlloc = true, false
	for pass := range 2 {
		if a := d.allocateIn(all, all.withoutUnusable(taken, pass == 0)); a != nil {
			return a
		}
	}
	return nil
}

// lowestCores is so many whole cores of a node, the lowest that others do not have; with firsts the lowest that jobs
// may have at all. False if they are not free.
func (fs *freeSet) lowestCores(i, cores int, taken exclusion, firsts bool) (cluster.IDSet, bool) {
	all := &fs.nodes[i]
	free := taken.cpus.without(int32(i), all)
	t := max(all.node.Inventory.ThreadsPerCore, 1)
	of := free
	if firsts {
		of = all
	}
	set := wholeUnits(&all.node.Inventory, of.cpus, t).First(cores * t)
	return set, set.Len() == cores*t && free.cpus.Contains(set)
}

// Replenish replaces nodes of reservations that asked for a number of them by idle ones: those that can not be used,
// and with REPLACE those on which jobs run. What can not be replaced stays.
func Replenish(s *cluster.Snapshot, now time.Time) (out []cluster.Command) {
	for _, r := range s.Reservations() {
		if r = r.At(now); !r.Replaces() || !r.End.After(now) {
			continue
		}
		var drop []cluster.NodeName
		for _, name := range r.Nodes {
			n, ok := s.Node(name)
			if !ok || !n.Usable() || r.Flags&cluster.ResvReplace != 0 && len(s.Load(name).Jobs) > 0 {
				drop = append(drop, name)
			}
		}
		if len(drop) == 0 || !hasSpareNode(s, r) {
			continue
		}
		for ; len(drop) > 0; drop = drop[:len(drop)-1] { // as many as there are
			want := *r
			want.Count = len(drop)
			add, _, err := chooseReserved(s, &want, now, true)
			if err == nil {
				out = append(out, &cluster.ReservationNodes{Name: r.Name, Drop: drop, Add: add})
				break
			}
		}
	}
	return out
}

// hasSpareNode reports whether some idle node is not the reservation's yet, so that it is worth looking for one.
func hasSpareNode(s *cluster.Snapshot, r *cluster.Reservation) bool {
	for n := range s.Nodes() {
		if n.Usable() && len(s.Load(n.Name).Jobs) == 0 && !slices.Contains(r.Nodes, n.Name) {
			return true
		}
	}
	return false
}
