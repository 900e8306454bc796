package cluster

import (
	"iter"
	"slices"
)

// Jobs may say themselves how much of their nodes they leave for the system, in place of what the node keeps from jobs
// (CoreSpecCount, CpuSpecList): --core-spec and --thread-spec, where the site allows it (AllowSpecResourcesUsage).
// Such a job has whole nodes. It is charged for the CPUs that any job could have there, its share's CPUs; Usable
// are those that its tasks run on, more or fewer.

// JobCPUs are the CPUs of a node that it does not keep from jobs.
func (inv *Inventory) JobCPUs() IDSet { return RangeIDSet(0, inv.CPUs-1).Minus(inv.SpecCPUs) }

// JobCPUCount is how many these are.
func (inv *Inventory) JobCPUCount() int { return inv.CPUs - inv.SpecCPUs.Len() }

// Specializes reports whether a job says itself what it leaves of its nodes.
func (l *Layout) Specializes() bool {
	return l.CoreSpec != nil || l.ThreadSpec != nil
}

// UsableBy are the CPUs on which the tasks of such a job may run: all but so many cores or threads, of which the first
// are those that the node keeps from jobs.
func (inv *Inventory) UsableBy(l *Layout) IDSet {
	left := 0
	unit := max(inv.ThreadsPerCore, 1)
	switch {
	case l.ThreadSpec != nil:
		left = *l.ThreadSpec
	case l.CoreSpec != nil:
		left = min(*l.CoreSpec, inv.CPUs) * unit
	}
	own := inv.CoresOf(inv.SpecCPUs)
	cores := slices.Collect(own.All())
	for core := range inv.fromLast() {
		if !own.Has(core) {
			cores = append(cores, core)
		}
	}
	out := RangeIDSet(0, inv.CPUs-1)
	for _, core := range cores {
		n := min(left, unit)
		out = out.Minus(RangeIDSet((core+1)*unit-n, (core+1)*unit-1))
		left = left - n
	}
	return out
}

// LastCores are the CPUs of so many cores from the last: those that CoreSpecCount keeps from jobs.
func (inv *Inventory) LastCores(n int) (out IDSet) {
	t := max(inv.ThreadsPerCore, 1)
	for core := range inv.fromLast() {
		if n--; n < 0 {
			break
		}
		out = out.Union(RangeIDSet(core*t, core*t+t-1))
	}
	return out
}

// fromLast are the cores: the highest of the last socket first, then of the one before it, and so on in turn.
func (inv *Inventory) fromLast() iter.Seq[int] {
	return func(yield func(int) bool) {
		per := max(inv.CoresPerSocket, 1)
		sockets := max(inv.Sockets, 1)
		for k := range per * sockets {
			if !yield((sockets-1-k%sockets)*per + per - 1 - k/sockets) {
				return
			}
		}
	}
}

// TaskCPUs are the CPUs of a share on which tasks run.
func (sh *Share) TaskCPUs() IDSet {
	if sh.Usable.Empty() {
		return sh.CPUs
	}
	return sh.Usable
}

// ForTasks is the job as its nodes see it: the CPUs of its shares are those on which its tasks run.
func (j *Job) ForTasks() *Job {
	if j.Alloc == nil || !slices.ContainsFunc(j.Alloc.Shares, func(sh Share) bool { return !sh.Usable.Empty() }) {
		return j
	}
	n := *j
	a := *j.Alloc
	n.Alloc = &a
	a.Shares = slices.Clone(a.Shares)
	for i := range a.Shares {
		a.Shares[i].CPUs = a.Shares[i].TaskCPUs()
		a.Shares[i].Usable = IDSet{}
	}
	return &n
}

// mayUse reports whether the tasks of a job may run where a share of the node says.
func (s *JobSpec) mayUse(inv *Inventory, sh *Share) bool {
	return sh.Usable.Empty() || s.Specializes() && sh.Usable.Max() < inv.CPUs
}
