package place

import (
	"math"

	"dev.muster/cluster"
)

// cpusByMem lowers a number of CPUs to what memory allows; 0 if there is not enough at all.
func (d *Demand) cpusByMem(free *NodeFree, cpus int) int {
	if !d.memAlloc {
		return cpus
	}
	if d.exclusive && free.mem < d.memory(free, cpus, free.gpuCount) { // that of all its CPUs or GPUs
		return 0
	}
	switch d.mem.Per {
	case cluster.MemPerNode:
		return cpusIfMem(d, free, cpus)
	case cluster.MemPerCPU:
		return min(cpus, cpusOfMem(d, free))
	}
	return cpus
}

// cpusIfMem is all of the CPUs if the node has the memory that is asked for by node, else 0.
func cpusIfMem(d *Demand, free *NodeFree, cpus int) int {
	need := d.mem.MB
	if need == 0 { // --mem=0: all of it
		need = max(usableMemory(free.node), 0)
	}
	if free.mem < need {
		return 0
	}
	return cpus
}

// cpusOfMem is for how many CPUs the node has memory that is asked for by CPU.
func cpusOfMem(d *Demand, free *NodeFree) int {
	if d.exclusive || d.mem.MB <= 0 {
		return math.MaxInt
	}
	allowed := int(free.mem / d.mem.MB)
	t := max(free.node.Inventory.ThreadsPerCore, 1)
	switch {
	case d.oneThread:
		return allowed * t
	case d.wholeCore:
		return allowed - allowed%t
	}
	return allowed
}
