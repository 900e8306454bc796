package sched

import (
	"cmp"
	"slices"

	"dev.muster/cluster"
)

// pickCPUs takes n free CPUs: cores near the GPUs if there are any, else cores of the sockets
// in turn, as Slurm does; whole cores where the configuration says so.
func pickCPUs(sp *space, n int, gpus cluster.IDSet, d *demand) cluster.IDSet {
	inv := &sp.node.Inventory
	t := max(inv.ThreadsPerCore, 1)
	whole := d.wholeCore
	cores := coreOrder(sp, gpus, d)
	var ids []int
	for _, c := range cores {
		if len(ids) >= n {
			break
		}
		at := len(ids)
		for k := c * t; k < c*t+t; k++ {
			if sp.cpus.Has(k) && (whole || len(ids) < n) {
				ids = append(ids, k)
			}
		}
		if whole && len(ids) < at+t {
			ids = ids[:at]
		}
	}
	return cluster.NewIDSet(ids...)
}

// freeInCores counts the CPUs of the cores that are free as a whole.
func freeInCores(inv *cluster.Inventory, cpus cluster.IDSet) int {
	t := max(inv.ThreadsPerCore, 1)
	if t == 1 {
		return cpus.Len()
	}
	n, run := 0, 0
	for k := range cpus.All() {
		if k%t == 0 || run > 0 && k%t == run {
			run = k%t + 1
		} else {
			run = 0
		}
		if run == t {
			n, run = n+t, 0
		}
	}
	return n
}

// wholeCores are those of the CPUs whose cores are in the set as a whole.
func wholeCores(inv *cluster.Inventory, cpus cluster.IDSet) cluster.IDSet {
	t := max(inv.ThreadsPerCore, 1)
	if t == 1 {
		return cpus
	}
	var ids []int
	for k := range cpus.All() {
		if core := k - k%t; cluster.RangeIDSet(core, core+t-1).Minus(cpus).Empty() {
			ids = append(ids, k)
		}
	}
	return cluster.NewIDSet(ids...)
}

// coreOrder lists core numbers in the order of choice.
func coreOrder(sp *space, gpus cluster.IDSet, d *demand) []int {
	inv := &sp.node.Inventory
	t, per := max(inv.ThreadsPerCore, 1), max(inv.CoresPerSocket, 1)
	total := inv.CPUs / t
	sockets := max(inv.Sockets, 1)
	var order []int
	if c := d.cpusPer; c > 1 && c <= per*t || d.blockSockets {
		order = wholeTasks(sp, (c+t-1)/t)
		per = 0 // all cores are in it
	}
	for i := range per {
		for s := range sockets {
			if c := s*per + i; c < total {
				order = append(order, c)
			}
		}
	}
	for c := sockets * max(inv.CoresPerSocket, 1); c < total; c++ {
		order = append(order, c)
	}
	var near cluster.IDSet
	for k := range gpus.All() {
		near = near.Union(inv.GPUs[k].Cores)
	}
	if !near.Empty() {
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(b2i(!near.Has(a*t)), b2i(!near.Has(b*t)))
		})
	}
	return order
}

// wholeTasks orders cores socket by socket, those that make up whole tasks of that many free
// cores first.
func wholeTasks(sp *space, need int) (order []int) {
	inv := &sp.node.Inventory
	t, per := max(inv.ThreadsPerCore, 1), max(inv.CoresPerSocket, 1)
	var rest []int
	for s := range max(inv.Sockets, 1) {
		var free []int
		for c := s * per; c < min((s+1)*per, inv.CPUs/t); c++ {
			if !sp.cpus.Intersect(cluster.RangeIDSet(c*t, c*t+t-1)).Empty() {
				free = append(free, c)
			}
		}
		n := len(free) / need * need
		order, rest = append(order, free[:n]...), append(rest, free[n:]...)
	}
	return append(order, rest...)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
