package sched

import (
	"cmp"
	"slices"

	"dev.muster/cluster"
)

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

// fitsGPUs reports whether jobs of one node take the best fit where nodes have GPUs: where the site has said nothing of its own
// about who goes first or what goes where.
func fitsGPUs(cfg *cluster.Config) bool {
	return !cfg.NoBestFit && !cfg.StrictOrder && !cfg.Priority.Multifactor
}

// fits reports whether a job of one node is to get the best fit.
func (c *choice) fits() bool { return c.d.bestFit || c.d.fitGPUs && c.p.hasGPUs }

// bestFit takes the one node of the best rating; of equals the one that the job would get if there were no others. It is for
// jobs of one node; docs/adr/0010-best-fit.md has its figures.
func (c *choice) bestFit() bool {
	if c.min > 1 || len(c.places) > 0 {
		return false
	}
	all := c.cands
	defer func() { c.cands = all }()
	c.cands = c.tightest()
	switch len(c.cands) {
	case 0:
		return false
	case 1:
		c.take(c.cands[0])
		return true
	}
	return c.nearby()
}

// tightest lists the candidates of the best rating, each of which has room for all of the job. Where they are many, kinds of
// nodes are rated and not each node.
func (c *choice) tightest() []int32 {
	own := c.p.scene(nil, 0)
	kinds := own.census(c.d.part).met()
	if c.kinds.odd || !c.unfiltered() || len(kinds) > len(c.cands) {
		return c.tightestOf(c.cands)
	}
	var best []int32 // kinds, all of one rating
	least := rating{}
	for _, k := range kinds {
		if !slices.ContainsFunc(own.nodesOf(k), c.alone) {
			continue
		}
		r := c.rateKind(k)
		order := r.compare(least)
		if len(best) > 0 && order > 0 {
			continue
		}
		if order != 0 {
			best = best[:0]
		}
		best, least = append(best, k), r
	}
	var out []int32
	for _, k := range best {
		out = c.roomy(out, own.nodesOf(k))
	}
	slices.Sort(out)
	return out
}

// tightestOf does that node by node.
func (c *choice) tightestOf(list []int32) (best []int32) {
	least := rating{}
	for _, i := range list {
		r := c.rate(i)
		order := r.compare(least)
		if len(best) > 0 && order > 0 || !c.alone(i) {
			continue
		}
		if order != 0 {
			best = best[:0]
		}
		best, least = append(best, i), r
	}
	return best
}

// unfiltered reports whether all nodes with room are candidates.
func (c *choice) unfiltered() bool {
	return len(c.cands) > 0 && len(c.list) == len(c.cands) && &c.list[0] == &c.cands[0]
}

// roomy adds those of some nodes that suffice by themselves.
func (c *choice) roomy(out, list []int32) []int32 {
	for _, i := range list {
		if c.alone(i) {
			out = append(out, i)
		}
	}
	return out
}

// alone reports whether a node suffices by itself.
func (c *choice) alone(i int32) bool {
	if n := int(c.tasks[i]); n <= 0 || n < c.d.tasks {
		return false
	}
	if len(c.d.gpuJob) == 0 && c.need == nil {
		return true
	}
	return c.try(func() bool { c.take(i); return c.covers() }, true)
}

// rate is the rating of a node, looked up by its kind.
func (v *view) rate(i int32) rating {
	sp := &v.p.spaces[i]
	if v.kinds.odd {
		return v.ratingOf(sp)
	}
	return v.rateKind(v.p.kindOf(sp))
}

// rateKind is the rating of nodes of a kind.
func (v *view) rateKind(kind int32) rating {
	k, list := int(kind), v.ratingsOf()
	if k >= len(*list) {
		*list = append(*list, make([]rating, len(v.kinds.list)-len(*list))...)
	}
	r := &(*list)[k]
	if !r.known {
		*r = v.ratingOf(&v.kinds.list[k])
	}
	return *r
}

// ratingsOf are the ratings of kinds that are known: those of all jobs with GPUs, or without, unless it matters what else they
// want.
func (v *view) ratingsOf() *[]rating {
	if !v.d.gradient {
		return &v.kinds.ratings[b2i(v.d.onGPUs())]
	}
	if v.rated != v.kinds.work {
		v.rated = v.kinds.work
		clear(v.ratings)
	}
	return &v.ratings
}

// onGPUs reports whether the job has GPUs, or a part of one.
func (d *demand) onGPUs() bool { return d.gpus || d.piece != nil }

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
	if v.d.onGPUs() {
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
