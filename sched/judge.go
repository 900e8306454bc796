package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Judge tells of one job after the other whether it could ever run. It keeps its knowledge of the nodes from snapshot
// to snapshot for as long as they stay what they are. Not for several goroutines at once.
type Judge struct {
	of  *cluster.Snapshot // nil: none yet
	all *place.FreeSet    // its place.NewUnloadedSet
}

// whole is place.NewUnloadedSet, kept as long as no node changes.
func (u *Judge) whole(s *cluster.Snapshot) *place.FreeSet {
	same := u.of != nil && u.of.Config() == s.Config()
	if same {
		touched, known := s.Since(u.of.Moment())
		same = known && !slices.ContainsFunc(touched, func(t cluster.StateChange) bool { return t.Node != "" })
	}
	if !same {
		u.all = place.NewUnloadedSet(s)
	}
	u.of = s
	return u.all
}

// Feasible reports whether the nodes of some partition of the job could ever run it: nil, or
// what cannot be met. More nodes than a partition has, asked for or needed for so many tasks, is
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
				"a least time limit of %s is above that of partition %s, %s: give a shorter --time-min",
				spec.LimitMin, name, p.MaxTime)
			continue
		}
		not := nodesOutside(s, spec, all, now)
		last = place.NewDemand(s, p, spec, nil).NeverFits(s, all, not)
		if last == nil {
			return nil
		}
		isOutside := func(n cluster.NodeName) bool { i, _ := all.Index(n); return not.Has(i) }
		if slices.ContainsFunc(spec.NodeList, isOutside) {
			last.Hint = outsideHint(s, spec)
		}
	}
	return last
}
