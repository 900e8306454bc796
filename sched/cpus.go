package sched

import (
	"cmp"
	"slices"

	"dev.muster/cluster"
)

// pickCPUs takes n free CPUs: cores near the GPUs if there are any, else cores of the sockets
// in turn, as Slurm does; whole cores where the configuration says so.
func pickCPUs(sp *space, n int, gpus cluster.IDSet, whole bool) cluster.IDSet {
	inv := &sp.node.Inventory
	t := max(inv.ThreadsPerCore, 1)
	cores := coreOrder(sp, gpus)
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

// coreOrder lists core numbers in the order of choice.
func coreOrder(sp *space, gpus cluster.IDSet) []int {
	inv := &sp.node.Inventory
	t, per := max(inv.ThreadsPerCore, 1), max(inv.CoresPerSocket, 1)
	total := inv.CPUs / t
	sockets := max(inv.Sockets, 1)
	var order []int
	for i := range per {
		for s := range sockets {
			if c := s*per + i; c < total {
				order = append(order, c)
			}
		}
	}
	for c := sockets * per; c < total; c++ {
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

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
