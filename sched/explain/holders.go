package explain

import (
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
)

// Holder is a job that has, or will have first, some of what another one is planned to get.
type Holder struct {
	Job   *cluster.Job
	Nodes []cluster.NodeName // of those that are planned
	From  time.Time          // of a planned start; zero: it has them now
	Until time.Time          // at most
	// Endless: the job has no time limit, so Until is a guess, and nothing can be planned behind it.
	Endless bool
}

// explainStart fills in when and where the job is planned to start, and which jobs hold what it is to get there until
// then, last those that hold it longest.
func (e *Explanation) explainStart(s *cluster.Snapshot, now time.Time, id cluster.JobID) {
	starts := sched.ForecastTo(s, now, id)
	st := starts[id]
	if !st.At.After(now) {
		return
	}
	e.StartsAt, e.Nodes = st.At, st.Nodes()
	if st.Alloc == nil {
		return
	}
	lacks := map[cluster.NodeName]*cluster.Share{} // what is planned where there is too little now
	for k := range st.Alloc.Shares {
		sh := &st.Alloc.Shares[k]
		if n, ok := s.Node(sh.Node); ok && lacksFor(n, s.Load(sh.Node), sh) {
			lacks[sh.Node] = sh
		}
	}
	add := func(j *cluster.Job, shares []cluster.Share, from, until time.Time) {
		if until.After(st.At) {
			return // it stays beside it
		}
		var on []cluster.NodeName
		for _, sh := range shares {
			if p := lacks[sh.Node]; p != nil && sharesDevices(p, &sh) {
				on = append(on, sh.Node)
			}
		}
		if on != nil {
			e.Holders = append(e.Holders, Holder{j, on, from, until, j.Limit <= 0 || j.Limit >= sched.Endless})
		}
	}
	for j := range s.Live() {
		for _, r := range sched.ReleasesOf(j, s.Config()) {
			add(j, r.Shares, time.Time{}, r.At)
		}
	}
	for o, first := range starts {
		if j, ok := s.Job(o); ok && o != id && first.Alloc != nil && first.At.Before(st.At) {
			add(j, first.Alloc.Shares, first.At, sched.EndOf(first.At, j.Limit))
		}
	}
	slices.SortFunc(e.Holders, func(a, b Holder) int {
		if n := a.Until.Compare(b.Until); n != 0 {
			return n
		}
		return int(a.Job.ID) - int(b.Job.ID)
	})
}

// lacksFor reports whether a node has not as much left as a share takes, by numbers.
func lacksFor(n *cluster.Node, l *cluster.Load, sh *cluster.Share) bool {
	inv := &n.Inventory
	cpus := inv.JobCPUCount() - l.CPUs.Len()
	devices := inv.Devices().Minus(l.GPUs).Len()
	mem := inv.MemMB - inv.SpecMemMB - l.MemMB
	return sh.CPUs.Len() > cpus || sh.Devices().Len() > devices || sh.MemMB > mem
}

// sharesDevices reports whether one share of a node has CPUs or GPUs of those that another one is to have, or memory
// where that is to have some.
func sharesDevices(planned, held *cluster.Share) bool {
	cpus := planned.CPUs.Intersect(held.CPUs)
	devices := planned.Devices().Intersect(held.Devices())
	bothMem := planned.MemMB > 0 && held.MemMB > 0
	return bothMem || !cpus.Empty() || !devices.Empty()
}
