package place

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// Fragmentation (Weng et al., "Beware of Fragmentation", USENIX ATC 2023): of a node it is how much of its free GPUs
// a job like recent ones could not use, on average. A job is placed where it makes that grow least.

// Bounds of what is known of the recent jobs.
const (
	maxRecentJobs   = 1000 // records
	maxRecentShapes = 256
)

// grain is how much more of a node's GPUs must be spoiled, in thousandths, for that to count: a job then goes where
// it leaves least. The published rule tells apart as much: its scores are whole numbers up to 100, of a sigmoid of
// GPUs.
const grain = 40

// nodeNeed is what a job takes of each of its nodes, by numbers.
type nodeNeed struct {
	cpus       int
	mem        cluster.MemMB
	gpus       int64  // whole ones
	kind       string // of GPU; empty: any
	part       string // of one GPU: shard or mps
	parts      int64  // so many
	constraint string
}

// nodeNeedOf works out what a spec asks of a node in a partition.
func nodeNeedOf(s *cluster.Snapshot, p *cluster.Partition, spec *cluster.JobSpec) nodeNeed {
	nodes := max(spec.MinNodes, len(spec.Wanted()), 1)
	tasks := max(spec.TasksPerNode, (spec.Tasks+nodes-1)/nodes, 1)
	n := nodeNeed{constraint: spec.Constraint}
	for _, ask := range [...]struct {
		list       []cluster.GRES
		times, per int
	}{
		{spec.PerNode, 1, 1}, {spec.PerTask, tasks, 1},
		{spec.PerSocket, max(spec.SocketsPerNode, 1), 1}, {spec.PerJob, 1, nodes},
	} {
		for _, g := range ask.list {
			if g.Name == "gpu" {
				n.gpus += (g.Count*int64(ask.times) + int64(ask.per) - 1) / int64(ask.per)
				n.kind = cmp.Or(n.kind, g.Type)
			}
		}
	}
	if g := cluster.Part(spec.PerNode); g != nil {
		n.part = g.Name
		n.parts = g.Count
	}
	n.cpus = max(tasks*max(spec.CPUsPerTask, 1), spec.MinCPUs, spec.CPUsPerGPU*int(n.gpus))
	mem := spec.Mem
	if mem.Per == cluster.MemDefault {
		mem = p.DefMem
	}
	if mem.Per == cluster.MemDefault {
		mem = s.Config().DefMem
	}
	switch mem.Per {
	case cluster.MemPerNode:
		n.mem = mem.MB
	case cluster.MemPerCPU:
		n.mem = mem.MB * cluster.MemMB(n.cpus)
	case cluster.MemPerGPU:
		n.mem = mem.MB * cluster.MemMB(max(n.gpus, 1))
	}
	return n
}

// workload is the shapes of the recent jobs that ask for GPUs: those of the records with the highest ids, be they
// waiting, running or over. It is made when it is first asked for.
type workload struct {
	s       *cluster.Snapshot
	known   bool
	shapes  []recentShape
	jobs    int64   // of these shapes
	scratch []int64 // reused by fragmentationBy
}

// recentShape is a shape of the recent jobs.
type recentShape struct {
	nodeNeed
	jobs   int64
	wishes []cluster.Wish
}

// countRecent counts the recent jobs, the commonest shapes first.
func (w *workload) countRecent() {
	w.known = true
	count := map[nodeNeed]int64{}
	looked := 0
	for j := range w.s.Latest() {
		looked++
		if looked > maxRecentJobs {
			break
		}
		p, ok := w.s.Partition(cmp.Or(j.Spec.Partitions...))
		if !ok {
			continue
		}
		if n := nodeNeedOf(w.s, p, j.Spec); n.gpus > 0 || n.parts > 0 {
			count[n] += int64(max(j.Tasks.Len(), 1))
		}
	}
	commonest := func(a, b nodeNeed) int { return cmp.Or(cmp.Compare(count[b], count[a]), a.compare(&b)) }
	for _, n := range slices.SortedFunc(maps.Keys(count), commonest) {
		if len(w.shapes) == maxRecentShapes {
			break
		}
		wishes := wishesOf(&cluster.JobSpec{Layout: &cluster.Layout{Constraint: n.constraint}})
		w.shapes = append(w.shapes, recentShape{nodeNeed: n, jobs: count[n], wishes: wishes})
		w.jobs += count[n]
	}
}

func (n *nodeNeed) compare(o *nodeNeed) int {
	return cmp.Or(cmp.Compare(n.gpus, o.gpus), cmp.Compare(n.parts, o.parts), cmp.Compare(n.cpus, o.cpus),
		cmp.Compare(n.mem, o.mem),
		strings.Compare(n.kind, o.kind), strings.Compare(n.part, o.part), strings.Compare(n.constraint, o.constraint))
}

// fragmentState is what is free of a node as far as fragmentation goes.
type fragmentState struct {
	m     *model
	cpus  int
	mem   cluster.MemMB
	gpus  int64   // whole ones
	parts []int64 // in thousandths, of each GPU of which parts are given out
}

// fragmentationBy is by how much a node's fragmentation grows if a job of one node runs there, in grains.
func (w *workload) fragmentationBy(fs *FreeSet, free *NodeFree, d *Demand) int64 {
	if !w.known {
		w.countRecent()
	}
	r := fragmentState{m: &fs.models[free.model], cpus: free.wholeCPUs, mem: free.mem, gpus: int64(free.gpuCount),
		parts: w.scratch[:0]}
	for _, part := range free.gpuParts {
		if all := r.m.inventory.PartsOf(part.Name); all > 0 {
			r.parts = append(r.parts, milli-part.Count*milli/all)
		}
	}
	w.scratch = r.parts
	before := w.fragments(&r)
	r.give(d, free)
	return toGrains(w.fragments(&r)-before, w.jobs)
}

// toGrains rounds so many thousandths of GPUs, times jobs, to grains for each job.
func toGrains(spoilt, jobs int64) int64 {
	one := grain * max(jobs, 1)
	if spoilt < 0 {
		return -((one/2 - spoilt) / one)
	}
	return (spoilt + one/2) / one
}

// give takes away what a job gets.
func (r *fragmentState) give(d *Demand, free *NodeFree) {
	n := &d.nodeNeed
	if d.exclusive {
		r.cpus = 0
		r.gpus = 0
		return
	}
	unit := max(free.unit, 1)
	r.cpus -= (n.cpus + unit - 1) / unit * unit
	r.mem -= n.mem
	r.gpus -= n.gpus
	if n.parts == 0 {
		return
	}
	want := r.shareOf(n)
	best := -1
	for k, left := range r.parts { // the fullest, as FindPart
		if left >= want && (best < 0 || left < r.parts[best]) {
			best = k
		}
	}
	if best >= 0 {
		r.parts[best] -= want
	} else {
		r.gpus--
		r.parts = append(r.parts, milli-want)
	}
}

// shareOf is the part of a GPU that is asked for, in thousandths; more than all of it where there are no such parts.
func (r *fragmentState) shareOf(n *nodeNeed) int64 {
	if all := r.m.inventory.PartsOf(n.part); all > 0 {
		return n.parts * milli / all
	}
	return milli + 1
}

// fragments is what recent jobs could not use of it: thousandths of GPUs, times jobs.
func (w *workload) fragments(r *fragmentState) int64 {
	all := r.gpus * milli
	for _, left := range r.parts {
		all += left
	}
	total := int64(0)
	for k := range w.shapes {
		l := &w.shapes[k]
		total += l.jobs * (all - r.usable(l))
	}
	return total
}

// usable is how much of the GPUs a job of the shape could use: those of which it could have some.
func (r *fragmentState) usable(l *recentShape) int64 {
	tooLittle := anyOf(r.cpus < l.cpus, r.mem < l.mem, r.gpus < l.gpus)
	if tooLittle || !r.suits(l) {
		return 0
	}
	out := r.gpus * milli
	if l.parts > 0 {
		want := r.shareOf(&l.nodeNeed)
		if want > milli {
			return 0
		}
		for _, left := range r.parts {
			if left >= want {
				out += left
			}
		}
	}
	return out
}

// suits reports whether a job of the shape may use nodes of the model.
func (r *fragmentState) suits(l *recentShape) bool {
	return (l.kind == "" || slices.Contains(r.m.types, l.kind)) &&
		(l.wishes == nil || slices.ContainsFunc(l.wishes,
			func(w cluster.Wish) bool { return w.All(r.m.inventory.Features) }))
}
