package place

import (
	"cmp"
	"slices"

	"dev.muster/cluster"
)

// How what a job gets is dealt out to the nodes that were chosen: tasks, CPUs, devices and memory.

// allocate gives each chosen node its share: first nodes are filled first, each gets a task. Nil if
// the devices cannot be dealt out after all.
func (d *Demand) allocate(rooms []nodeRoom) *cluster.Alloc {
	a := &cluster.Alloc{Partition: d.part.Name, Types: map[string]int64{}, Over: d.JobsPerCPU,
		Shares: make([]cluster.Share, len(rooms))}
	rooms = slices.Clone(rooms)
	for i := range rooms {
		rooms[i].free = rooms[i].free.withinLimits(d)
		if d.ownSpec != nil {
			rooms[i].free = d.withOwnSpec(rooms[i].free)
		}
	}
	holds := make([]int, len(rooms)) // tasks
	for i, r := range rooms {
		holds[i] = r.tasks
	}
	d.dealTasks(rooms)
	gpus := d.splitGPUs(rooms)
	for i, r := range rooms {
		want := d.cpusFor(r)
		var devices cluster.IDSet
		if d.gpus {
			var ok bool
			devices, ok = d.pickDevices(r, want, gpus[i])
			if !ok {
				return nil
			}
			want = max(want, d.cpusPerGPU*devices.Len())
		}
		if d.exclusive {
			want = r.free.cpuCount
			devices = r.free.gpus
		}
		sh := cluster.Share{
			Node: r.free.node.Name, Tasks: r.tasks, GPUs: devices, CPUs: pickCPUs(r.free, want, devices, d),
		}
		if !d.takeShared(r.free, &sh, d.exclusive) {
			return nil
		}
		sh.MemMB = d.memory(r.free, sh.CPUs.Len(), devices.Len())
		if sh.MemMB > max(r.free.mem, 0) || sh.CPUs.Len() < d.cpusHeld(&r.free.node.Inventory, want) {
			return nil
		}
		if d.ownSpec != nil {
			sh.CPUs, sh.Usable = r.free.node.Inventory.JobCPUs(), sh.CPUs
		}
		for k := range devices.All() {
			a.Types[r.free.node.Inventory.GPUs[k].Type]++
		}
		a.Shares[r.share] = sh
		holds[i] = max(min(holds[i], sh.CPUs.Len()/d.cpusPerTaskOn(&r.free.node.Inventory)), 1)
	}
	if d.evenly && !d.flags.has(overcommit) {
		spreadTasks(a, rooms, holds)
	}
	return a
}

// spreadTasks gives each node of an allocation one of its tasks in turn, to each no more than its CPUs hold.
func spreadTasks(a *cluster.Alloc, rooms []nodeRoom, holds []int) {
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
			rooms[i].tasks += n
			left -= n
			open += b2i(rooms[i].tasks < holds[i])
		}
	}
	for _, r := range rooms {
		a.Shares[r.share].Tasks = r.tasks
	}
}

// dealTasks tells of each node for how many tasks it gives CPUs: the first are filled first, or where CPUs do not
// limit it all get as many as they hold; each gets one, or as many as fill a core while there are enough.
func (d *Demand) dealTasks(rooms []nodeRoom) {
	left := d.tasks
	if d.everyNode {
		left = d.tasksPerNode * len(rooms)
	}
	wholeOrSized := d.exclusive || d.gpus || d.flags.has(fillsSockets) && d.countAsked
	evenly := d.flags.has(overcommit) || d.evenly && wholeOrSized
	later := 0
	cores := 0 // tasks that the nodes after this one hold, and those that fill a core of each
	for _, r := range rooms {
		later, cores = later+r.tasks, cores+min(r.tasks, d.perWholeCore(r.free))
	}
	for i, r := range rooms {
		after := len(rooms) - i - 1
		own := d.perWholeCore(r.free)
		later -= r.tasks
		cores -= min(r.tasks, own)
		n := max(left-cores, min(own, left-after), 1)
		if evenly {
			n = max((left+after)/(after+1), left-later, 1)
		}
		rooms[i].tasks = min(rooms[i].tasks, n)
		left -= rooms[i].tasks
	}
}

// perWholeCore is how many tasks fill a core that the job gets as a whole.
func (d *Demand) perWholeCore(free *NodeFree) int {
	if !d.wholeCore {
		return 1
	}
	return max(d.threadsPerCore(&free.node.Inventory)/d.cpusPerTask, 1)
}

// cpusFor is how many CPUs the tasks of one node get.
func (d *Demand) cpusFor(r nodeRoom) int {
	if d.flags.has(overcommit) { // what one task wants, however many there are
		return max(min(max(d.cpusPerTask, d.minCPUs), r.free.cpuCount), 1)
	}
	return max(r.tasks*d.cpusPerTaskOn(&r.free.node.Inventory), d.minCPUs)
}

// cpusHeld is how many CPUs the job has of cores with so many.
func (d *Demand) cpusHeld(inv *cluster.Inventory, cpus int) int {
	if t := max(inv.ThreadsPerCore, 1); !d.wholeCore && !d.exclusive {
		return cpus * d.threadsPerCore(inv) / t
	}
	return cpus
}

// splitGPUs says how many GPUs of each entry of --gpus each node gives: first those beside the CPUs that its
// tasks get, then any. Each node gives one at least.
func (d *Demand) splitGPUs(rooms []nodeRoom) [][]int64 {
	out := make([][]int64, len(rooms))
	if len(d.gpuJob) == 0 || len(d.gpuTask) > 0 {
		return out
	}
	for k, g := range d.gpuJob {
		left := g.Count
		for i, r := range rooms {
			n := min(max(gpusNearCPUs(r.free, d.cpusFor(r), g.Type, d), 1), int64(d.gpusGivenBy(r.free, g.Type)),
				left-int64(len(rooms)-i-1))
			out[i] = append(out[i], max(n, 0))
			left -= out[i][k]
		}
		for i, r := range rooms {
			n := min(int64(d.gpusGivenBy(r.free, g.Type))-out[i][k], left)
			out[i][k] += n
			left -= n
		}
	}
	return out
}

// pickDevices picks the GPUs of one node; job is its part of what --gpus asks for.
func (d *Demand) pickDevices(r nodeRoom, cpus int, job []int64) (cluster.IDSet, bool) {
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
		return d.pickSocketGPUs(r.free, want)
	}
	return pickGPUs(r.free, want, cpus, d)
}

// memory is what a job gets of a node with so many of its CPUs and GPUs.
func (d *Demand) memory(free *NodeFree, cpus, gpus int) cluster.MemMB {
	if !d.memAlloc {
		return 0
	}
	switch d.mem.Per {
	case cluster.MemPerNode:
		return cmp.Or(d.mem.MB, usableMemory(free.node))
	case cluster.MemPerCPU:
		wholeCores := d.wholeCore || d.exclusive
		if d.oneThread && wholeCores { // the other threads of its cores are idle
			cpus /= max(free.node.Inventory.ThreadsPerCore, 1)
		}
		all := d.mem.MB * cluster.MemMB(cpus)
		if d.exclusive {
			return all
		}
		return min(all, usableMemory(free.node)) // it may have CPUs that it did not ask for, of its GPUs or sockets
	case cluster.MemPerGPU:
		return d.mem.MB * cluster.MemMB(max(gpus, 1))
	}
	return 0
}
