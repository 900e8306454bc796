package sched

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
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
	want.Count -= len(r.Nodes)
	if want.Count > 0 {
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
) (nodes []cluster.NodeName, cpus []cluster.IDSet, err *cluster.Error) {
	err = preferUnreserved(r, func(shares bool) (err *cluster.Error) {
		nodes, cpus, err = chooseSharing(s, r, now, more, shares)
		return err
	})
	return nodes, cpus, err
}

// overlaps are the flags of reservations that may have what others have.
const overlaps = cluster.ResvMaint | cluster.ResvOverlap

// preferUnreserved chooses what no other reservation has. Only if that fails, one that overlaps others by its flags,
// or that names its nodes, shares with them, as in Slurm 26.05.
func preferUnreserved(r *cluster.Reservation, choose func(shares bool) *cluster.Error) *cluster.Error {
	err := choose(false)
	namesNodes := len(r.Nodes) > 0 && r.Count == 0
	if err != nil && (namesNodes || r.Flags&overlaps != 0) {
		err = choose(true)
	}
	return err
}

// chooseSharing is chooseReserved; shares lets it share with reservations that overlap.
func chooseSharing(
	s *cluster.Snapshot, r *cluster.Reservation, now time.Time, more, shares bool,
) ([]cluster.NodeName, []cluster.IDSet, *cluster.Error) {
	part, err := partitionToReserve(s, r)
	if err != nil {
		return nil, nil, err
	}
	all := place.NewUnloadedSet(s)
	taken := takenDuring(all, s, r, now, shares)
	if more {
		taken = reservedNodesOf(all, s, r).addTo(taken)
	}
	if len(r.Cores) > 0 {
		return chooseReservedCores(s, r, part, all, taken)
	}
	d := place.NewDemand(s, part, &cluster.JobSpec{Layout: &cluster.Layout{MinNodes: r.Count, MaxNodes: r.Count,
		Constraint: r.Features}}, nil)
	d.TakeWholeNodes()
	a := d.FindIn(all, all.WithoutUnusable(taken))
	if a == nil && !more {
		a = d.FindIn(all, taken)
	}
	if a != nil {
		return nodesOf(a), nil, nil
	}
	return nil, nil, cluster.Errorf(cluster.Conflict, cluster.ErrResvBusy,
		"partition %s has no %d nodes that are free from %s on", part.Name, r.Count, r.Start.Format(time.DateTime))
}

// partitionToReserve is the partition of a reservation's nodes: the one that it names, or the default.
func partitionToReserve(s *cluster.Snapshot, r *cluster.Reservation) (*cluster.Partition, *cluster.Error) {
	part, ok := s.Partition(r.Partition)
	if r.Partition == "" {
		part = s.DefaultPartition()
		ok = part != nil
	}
	if !ok {
		return nil, cluster.Errorf(cluster.Invalid, cluster.ErrPartition, "partition %s does not exist", r.Partition)
	}
	return part, nil
}

// takenDuring is what other reservations and jobs have while a reservation lasts, unless it ignores or admits these
// jobs, or shares with those reservations.
func takenDuring(
	fs *place.FreeSet, s *cluster.Snapshot, r *cluster.Reservation, now time.Time, shares bool,
) place.Exclusion {
	ex := place.Exclusion{Nodes: fs.NoNodes()}
	for _, k := range s.Reservations() {
		k = k.At(now)
		if shares && (k.Flags|r.Flags)&overlaps != 0 {
			continue
		}
		if k.Name != r.Name && k.End.After(now) && k.Keeps(r.Start, r.End) {
			ex = reservedNodesOf(fs, s, k).addTo(ex)
		}
	}
	busy := &place.ExcludedParts{}
	for j := range s.Live() {
		end := j.EndLimit(s.Config())
		overBefore := !end.IsZero() && !end.After(r.Start)
		if overBefore || r.Flags&cluster.ResvIgnoreJobs != 0 || r.Lets(j.Spec) {
			continue
		}
		for _, sh := range j.Alloc.Parts() {
			if i, ok := fs.Index(sh.Node); ok {
				busy.Exclude(int32(i), sh.CPUs, sh.Devices())
			}
		}
	}
	return ex.WithParts(busy)
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
	s *cluster.Snapshot, r *cluster.Reservation, part *cluster.Partition, all *place.FreeSet, taken place.Exclusion,
) ([]cluster.NodeName, []cluster.IDSet, *cluster.Error) {
	each := r.Cores
	nodes := len(r.Nodes)
	firsts := r.Flags&cluster.ResvFirstCores != 0
	if nodes == 0 && firsts {
		nodes = max(r.Count, 1)
		if len(each) == 1 {
			each = slices.Repeat(each, nodes)
		}
	}
	if len(each) != max(nodes, 1) {
		return nil, nil, cluster.Errorf(cluster.Invalid, cluster.ErrResvCoreCount,
			"%s of cores for %s: give one for each", place.Count(len(each), "number", "numbers"),
			place.Count(max(nodes, 1), "node", "nodes"))
	}
	if nodes > 0 && len(r.Nodes) == 0 {
		for i := range all.Size() {
			if _, ok := all.LowestCores(i, slices.Max(each), taken, true); !ok {
				taken.Nodes[i] = true
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
		names = nodesOf(a)
		if !firsts {
			each = nil
			for _, sh := range a.Shares {
				each = append(each, sh.Tasks)
			}
		}
	}
	cpus := make([]cluster.IDSet, len(names))
	for k, name := range names {
		i, ok := all.Index(name)
		switch {
		case !ok:
			return nil, nil, cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "node %s does not exist", name)
		case taken.Nodes[i]:
			return nil, nil, cluster.Errorf(cluster.Conflict, cluster.ErrResvOverlap,
				"another reservation has node %s then", name)
		}
		cpus[k], ok = all.LowestCores(i, each[k], taken, firsts)
		if !ok {
			return nil, nil, busy
		}
	}
	return names, cpus, nil
}

// placeCores places a number of cores on nodes of the partition, each like a task of its own; nil if they are not
// there.
func placeCores(
	s *cluster.Snapshot, r *cluster.Reservation, part *cluster.Partition,
	all *place.FreeSet, taken place.Exclusion, each []int,
) *cluster.Alloc {
	l := &cluster.Layout{
		MinNodes: r.Count, MaxNodes: r.Count, Tasks: each[0], ThreadsPerCore: 1, Constraint: r.Features,
	}
	if nodes := max(r.Count, len(each)); r.Count > 0 || r.Flags&cluster.ResvFirstCores != 0 {
		l.MinNodes = nodes
		l.MaxNodes = nodes
		l.TasksPerNode = (each[0] + nodes - 1) / nodes
		if r.Flags&cluster.ResvFirstCores != 0 {
			l.TasksPerNode = slices.Max(each)
			l.Tasks = nodes * l.TasksPerNode
		}
	}
	d := place.NewDemand(s, part, &cluster.JobSpec{Layout: l}, nil)
	d.TakeWholeCores()
	if a := d.FindIn(all, all.WithoutUnusable(taken)); a != nil {
		return a
	}
	return d.FindIn(all, taken)
}

// Replenish replaces nodes of reservations that asked for a number of them by idle ones: those that cannot be used,
// and with REPLACE those on which jobs run. Nodes that cannot be replaced stay.
func Replenish(s *cluster.Snapshot, now time.Time) (out []cluster.Command) {
	for _, r := range s.Reservations() {
		r = r.At(now)
		if !r.Replaces() || !r.End.After(now) {
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
