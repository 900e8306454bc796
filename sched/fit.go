package sched

import "cmp"

// rating tells how well a job of one node would fit on a node: less is better. Numbers alone, so that all nodes of a kind have
// the same.
type rating struct {
	known  bool
	spoils int64 // by which the node's fragmentation grows, see workload
	leaves int64 // of GPUs and CPUs, see leaves
}

func (r rating) compare(o rating) int {
	return cmp.Or(cmp.Compare(r.spoils, o.spoils), cmp.Compare(r.leaves, o.leaves))
}

// bestFit takes the one node of the best rating, of equals the first. It is for jobs of one node (SchedulerParameters=best_fit
// and fgd); docs/adr/0010-best-fit.md has its figures.
func (c *choice) bestFit() bool {
	if c.min > 1 || len(c.places) > 0 {
		return false
	}
	best, least := int32(-1), rating{}
	for _, i := range c.cands {
		if r := c.rate(i); (best < 0 || r.compare(least) < 0) && c.try(func() bool { c.take(i); return c.covers() }, true) {
			best, least = i, r
		}
	}
	if best >= 0 {
		c.take(best)
	}
	return best >= 0
}

// rate is the rating of a node, looked up by its kind.
func (v *view) rate(i int32) rating {
	sp := &v.p.spaces[i]
	if v.kinds.odd {
		return v.ratingOf(sp)
	}
	if v.rated != v.kinds.work {
		v.rated = v.kinds.work
		clear(v.ratings)
	}
	k := int(v.p.kindOf(sp))
	if k >= len(v.ratings) {
		v.ratings = append(v.ratings, make([]rating, len(v.kinds.list)-len(v.ratings))...)
	}
	if !v.ratings[k].known {
		v.ratings[k] = v.ratingOf(sp)
	}
	return v.ratings[k]
}

func (v *view) ratingOf(sp *space) rating {
	r := rating{known: true, leaves: v.leaves(sp)}
	if v.d.gradient {
		r.spoils = v.kinds.work.spoils(v.p, sp, v.d)
	}
	return r
}

// leaves is what is free on a node, of GPUs and CPUs together as parts of the most that a node has; for a job without GPUs the
// free GPUs for each free CPU, so that none are left without CPUs.
func (v *view) leaves(sp *space) int64 {
	mostCPUs, mostGPUs := 1, 1
	for k := range v.p.models {
		m := &v.p.models[k]
		mostCPUs, mostGPUs = max(mostCPUs, m.cpus.Len()), max(mostGPUs, m.gpus.Len())
	}
	gpus := sp.freeGPUs()
	if v.d.gpus || v.d.piece != nil {
		return int64(sp.cpu)*int64(mostGPUs)*milli + gpus*int64(mostCPUs)
	}
	return gpus * milli / int64(max(sp.cpu, 1))
}

// milli is how many parts of a GPU are told apart here.
const milli = 1000

// freeGPUs is how much of GPUs is free, in thousandths, with what is left of those of which parts are given out.
func (sp *space) freeGPUs() int64 {
	free := int64(sp.gpu) * milli
	for _, p := range sp.parts {
		if all := sp.node.Inventory.PartsOf(p.Name); all > 0 {
			free += milli - p.Count*milli/all
		}
	}
	return free
}
