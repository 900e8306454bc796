package sched

import (
	"slices"

	"dev.muster/cluster"
)

// How what a job gets is dealt out to the nodes that were chosen: tasks, CPUs, devices and memory.

// deal gives each chosen node its share: first nodes are filled first, each gets a task. Nil if
// the devices can not be dealt out after all.
func (d *demand) deal(rooms []room) *cluster.Alloc {
	a := &cluster.Alloc{Partition: d.part.Name, Types: map[string]int64{}, Over: d.over, Shares: make([]cluster.Share, len(rooms))}
	if d.leaves != nil {
		rooms = slices.Clone(rooms)
		for i := range rooms {
			rooms[i].sp = d.usable(rooms[i].sp)
		}
	}
	holds := make([]int, len(rooms)) // tasks
	for i, r := range rooms {
		holds[i] = r.tasks
	}
	d.dealTasks(rooms)
	gpus := d.split(rooms)
	for i, r := range rooms {
		want := d.cpusOn(r)
		var devices cluster.IDSet
		if d.gpus {
			var ok bool
			if devices, ok = d.devices(r, want, gpus[i]); !ok {
				return nil
			}
			want = max(want, d.cpusPerGPU*devices.Len())
		}
		if d.exclusive {
			want, devices = r.sp.cpu, r.sp.gpus
		}
		sh := cluster.Share{Node: r.sp.node.Name, Tasks: r.tasks, GPUs: devices, CPUs: pickCPUs(r.sp, want, devices, d)}
		if d.piece != nil {
			p, ok := r.sp.node.Inventory.FindPart(d.piece, r.sp.parts, r.sp.gpus)
			if !ok {
				return nil
			}
			sh.Part = &p
		}
		sh.MemMB = d.memory(r.sp, sh.CPUs.Len(), devices.Len())
		if sh.MemMB > max(r.sp.mem, 0) || sh.CPUs.Len() < d.held(&r.sp.node.Inventory, want) {
			return nil
		}
		if d.leaves != nil {
			sh.CPUs, sh.Usable = r.sp.node.Inventory.JobCPUs(), sh.CPUs
		}
		for k := range devices.All() {
			a.Types[r.sp.node.Inventory.GPUs[k].Type]++
		}
		a.Shares[r.at] = sh
		holds[i] = max(min(holds[i], sh.CPUs.Len()/d.per(&r.sp.node.Inventory)), 1)
	}
	if d.evenly && !d.overcommit {
		layEvenly(a, rooms, holds)
	}
	return a
}

// layEvenly gives each node of an allocation one of its tasks in turn, to each no more than its CPUs hold.
func layEvenly(a *cluster.Alloc, rooms []room, holds []int) {
	left := 0
	for i := range rooms {
		left += rooms[i].tasks
		rooms[i].tasks = 0
	}
	for open := len(rooms); left > 0 && open > 0; {
		each := max(left/open, 1)
		open = 0
		for i := range rooms {
			n := min(each, holds[i]-rooms[i].tasks, left)
			rooms[i].tasks, left = rooms[i].tasks+n, left-n
			open += b2i(rooms[i].tasks < holds[i])
		}
	}
	for _, r := range rooms {
		a.Shares[r.at].Tasks = r.tasks
	}
}

// dealTasks tells of each node for how many tasks it gives CPUs: the first are filled first, or where CPUs do not limit it all get as
// many as they hold; each gets one, or as many as fill a core while there are enough.
func (d *demand) dealTasks(rooms []room) {
	left := d.tasks
	if d.everyNode {
		left = d.perNode * len(rooms)
	}
	evenly := d.overcommit || d.evenly && (d.exclusive || d.gpus || d.blockSockets && d.sized)
	later, cores := 0, 0 // tasks that the nodes after this one hold, and those that fill a core of each
	for _, r := range rooms {
		later, cores = later+r.tasks, cores+min(r.tasks, d.perWholeCore(r.sp))
	}
	for i, r := range rooms {
		after, own := len(rooms)-i-1, d.perWholeCore(r.sp)
		later, cores = later-r.tasks, cores-min(r.tasks, own)
		n := max(left-cores, min(own, left-after), 1)
		if evenly {
			n = max((left+after)/(after+1), left-later, 1)
		}
		rooms[i].tasks = min(rooms[i].tasks, n)
		left -= rooms[i].tasks
	}
}

// perWholeCore is how many tasks fill a core that the job gets as a whole.
func (d *demand) perWholeCore(sp *space) int {
	if !d.wholeCore {
		return 1
	}
	return max(d.used(&sp.node.Inventory)/d.cpusPer, 1)
}

// cpusOn is how many CPUs the tasks of one node get.
func (d *demand) cpusOn(r room) int {
	if d.overcommit { // what one task wants, however many there are
		return max(min(max(d.cpusPer, d.minCPUs), r.sp.cpu), 1)
	}
	return max(r.tasks*d.per(&r.sp.node.Inventory), d.minCPUs)
}

// held is how many CPUs the job has of cores with so many.
func (d *demand) held(inv *cluster.Inventory, cpus int) int {
	if t := max(inv.ThreadsPerCore, 1); !d.wholeCore && !d.exclusive {
		return cpus * d.used(inv) / t
	}
	return cpus
}

// split says how many GPUs of each entry of --gpus each node gives: first those beside the CPUs that its
// tasks get, then any. Each node gives one at least.
func (d *demand) split(rooms []room) [][]int64 {
	out := make([][]int64, len(rooms))
	if len(d.gpuJob) == 0 || len(d.gpuTask) > 0 {
		return out
	}
	for k, g := range d.gpuJob {
		left := g.Count
		for i, r := range rooms {
			n := min(max(beside(r.sp, d.cpusOn(r), g.Type, d), 1), int64(d.gives(r.sp, g.Type)), left-int64(len(rooms)-i-1))
			out[i] = append(out[i], max(n, 0))
			left -= out[i][k]
		}
		for i, r := range rooms {
			n := min(int64(d.gives(r.sp, g.Type))-out[i][k], left)
			out[i][k] += n
			left -= n
		}
	}
	return out
}

// devices picks the GPUs of one node; job is its part of what --gpus asks for.
func (d *demand) devices(r room, cpus int, job []int64) (cluster.IDSet, bool) {
	want := slices.Clone(d.gpuNode)
	for _, g := range d.gpuTask {
		g.Count *= int64(r.tasks)
		want = append(want, g)
	}
	for i, n := range job {
		want = append(want, cluster.GRES{Name: "gpu", Type: d.gpuJob[i].Type, Count: n})
	}
	slices.SortStableFunc(want, func(a, b cluster.GRES) int { return b2i(a.Type == "") - b2i(b.Type == "") })
	if len(d.gpuSocket) > 0 {
		return d.eachSocket(r.sp, want)
	}
	return pickGPUs(r.sp, want, cpus, d)
}

// memory is what a job gets of a node with so many of its CPUs and GPUs.
func (d *demand) memory(sp *space, cpus, gpus int) cluster.MemMB {
	if !d.memAlloc {
		return 0
	}
	switch d.mem.Per {
	case cluster.MemPerNode:
		if d.mem.MB == 0 {
			return usable(sp.node)
		}
		return d.mem.MB
	case cluster.MemPerCPU:
		if d.oneThread && (d.wholeCore || d.exclusive) { // the other threads of its cores are idle
			cpus /= max(sp.node.Inventory.ThreadsPerCore, 1)
		}
		if all := d.mem.MB * cluster.MemMB(cpus); d.exclusive || all < usable(sp.node) {
			return all
		}
		return usable(sp.node) // with CPUs that it did not ask for, of its GPUs or sockets
	case cluster.MemPerGPU:
		return d.mem.MB * cluster.MemMB(max(gpus, 1))
	}
	return 0
}
