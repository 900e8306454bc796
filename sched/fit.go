package sched

// bestFit takes the one node that a job leaves least of, of GPUs and CPUs together as parts of the most that a node has; a job
// without GPUs takes the one with the fewest free GPUs for each free CPU, so that none are left without CPUs. It is for
// jobs of one node (SchedulerParameters=best_fit); docs/adr/0010-best-fit.md has its figures.
func (c *choice) bestFit() bool {
	if c.min > 1 || len(c.places) > 0 {
		return false
	}
	mostCPUs, mostGPUs := 1, 1
	for k := range c.p.models {
		m := &c.p.models[k]
		mostCPUs, mostGPUs = max(mostCPUs, m.cpus.Len()), max(mostGPUs, m.gpus.Len())
	}
	best, least := int32(-1), 0.0
	for _, i := range c.cands {
		sp := &c.p.spaces[i]
		gpus, left := sp.freeGPUs(), 0.0
		if c.d.gpus || c.d.piece != nil {
			left = float64(sp.cpu)/float64(mostCPUs) + gpus/float64(mostGPUs)
		} else {
			left = gpus / float64(max(sp.cpu, 1))
		}
		if (best < 0 || left < least) && c.try(func() bool { c.take(i); return c.covers() }, true) {
			best, least = i, left
		}
	}
	if best >= 0 {
		c.take(best)
	}
	return best >= 0
}

// freeGPUs is how many GPUs are free, with what is left of those of which parts are given out.
func (sp *space) freeGPUs() float64 {
	free := float64(sp.gpu)
	for _, p := range sp.parts {
		if all := sp.node.Inventory.PartsOf(p.Name); all > 0 {
			free += 1 - float64(p.Count)/float64(all)
		}
	}
	return free
}
