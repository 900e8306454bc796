package place

import (
	"cmp"
	"slices"

	"dev.muster/cluster"
)

// rating says how well a job of one node would fit on a node: less is better. It is the same for all nodes of a class.
type rating struct {
	known     bool
	fragments int64 // by how much the node's fragmentation grows, see workload
	remains   int64 // what is free of GPUs and CPUs, see remainsOn
}

func (r rating) compare(o rating) int {
	return cmp.Or(cmp.Compare(r.fragments, o.fragments), cmp.Compare(r.remains, o.remains))
}

// bestFitByDefault reports whether jobs of one node take the best fit where nodes have GPUs: where the site has said
// nothing of its own about who goes first or what goes where.
func bestFitByDefault(cfg *cluster.Config) bool {
	return !cfg.NoBestFit && !cfg.StrictOrder && !cfg.Priority.Multifactor
}

// wantsBestFit reports whether a job of one node is to get the best fit.
func (c *choice) wantsBestFit() bool {
	return c.demand.bestFit || c.demand.bestFitGPUs && c.free.hasGPUs
}

// chooseBestFit takes the one node of the best rating; of equals the one that the job would get if there were no
// others. It is for jobs of one node; docs/adr/0010-best-fit.md has its figures.
func (c *choice) chooseBestFit() bool {
	if c.minNodes > 1 || len(c.chosen) > 0 {
		return false
	}
	all := c.candidates
	defer func() { c.candidates = all }()
	c.candidates = c.bestRated()
	switch len(c.candidates) {
	case 0:
		return false
	case 1:
		c.takeNode(c.candidates[0])
		return true
	}
	return c.chooseNearby()
}

// bestRated lists the candidates of the best rating, each of which has room for all of the job. Where they are
// many, classes are rated and not nodes.
func (c *choice) bestRated() []int32 {
	own := c.free.classIndex(nil, 0)
	kinds := own.countFor(c.demand.part).classesWithNodes()
	if c.classes.tooManyTypes || !c.hasAllCandidates() || len(kinds) > len(c.candidates) {
		return c.bestRatedByNode(c.candidates)
	}
	var best []int32 // classes of one rating
	least := rating{}
	for _, k := range kinds {
		if !slices.ContainsFunc(own.nodesOf(k), c.sufficesAlone) {
			continue
		}
		r := c.ratingOfClass(k)
		order := r.compare(least)
		if len(best) > 0 && order > 0 {
			continue
		}
		if order != 0 {
			best = best[:0]
		}
		best = append(best, k)
		least = r
	}
	var out []int32
	for _, k := range best {
		out = c.appendSufficient(out, own.nodesOf(k))
	}
	slices.Sort(out)
	return out
}

// bestRatedByNode is bestRated node by node.
func (c *choice) bestRatedByNode(list []int32) (best []int32) {
	least := rating{}
	for _, i := range list {
		r := c.ratingOn(i)
		order := r.compare(least)
		if len(best) > 0 && order > 0 || !c.sufficesAlone(i) {
			continue
		}
		if order != 0 {
			best = best[:0]
		}
		best = append(best, i)
		least = r
	}
	return best
}

// hasAllCandidates reports whether all nodes with room are candidates.
func (c *choice) hasAllCandidates() bool {
	return len(c.candidates) > 0 && len(c.withRoom) == len(c.candidates) && &c.withRoom[0] == &c.candidates[0]
}

// appendSufficient adds those of some nodes that suffice by themselves.
func (c *choice) appendSufficient(out, list []int32) []int32 {
	for _, i := range list {
		if c.sufficesAlone(i) {
			out = append(out, i)
		}
	}
	return out
}

// sufficesAlone reports whether a node suffices by itself.
func (c *choice) sufficesAlone(i int32) bool {
	if n := int(c.tasks[i]); n <= 0 || n < c.demand.tasks {
		return false
	}
	if len(c.demand.gpuJob) == 0 && c.featureCounts == nil {
		return true
	}
	return c.wouldDo(func() bool { c.takeNode(i); return c.covers() })
}

// ratingOn is the rating of a node, looked up by class.
func (nf *nodeFit) ratingOn(i int32) rating {
	free := &nf.free.nodes[i]
	if nf.classes.tooManyTypes {
		return nf.computeRating(free)
	}
	return nf.ratingOfClass(nf.free.classOf(free))
}

// ratingOfClass is the rating of nodes of a class.
func (nf *nodeFit) ratingOfClass(kind int32) rating {
	k := int(kind)
	list := nf.knownRatings()
	if k >= len(*list) {
		*list = append(*list, make([]rating, len(nf.classes.examples)-len(*list))...)
	}
	r := &(*list)[k]
	if !r.known {
		*r = nf.computeRating(&nf.classes.examples[k])
	}
	return *r
}

// knownRatings are the ratings by class as far as they are known: shared by all jobs with GPUs, and by all without,
// except for fragmentation, where it matters what else a job wants.
func (nf *nodeFit) knownRatings() *[]rating {
	if !nf.demand.byFragmentation {
		return &nf.classes.ratings[b2i(nf.demand.onGPUs())]
	}
	if nf.ratedFor != nf.classes.workload {
		nf.ratedFor = nf.classes.workload
		clear(nf.ratings)
	}
	return &nf.ratings
}

// onGPUs reports whether the job has GPUs, or a part of one.
func (d *Demand) onGPUs() bool { return d.gpus || d.gpuPart != nil }

func (nf *nodeFit) computeRating(free *NodeFree) rating {
	r := rating{known: true, remains: nf.remainsOn(free)}
	if nf.demand.byFragmentation {
		r.fragments = nf.classes.workload.fragmentationBy(nf.free, free, nf.demand)
	}
	return r
}

// remainsOn is what is free on a node, of GPUs and CPUs together as parts of the most that a node has; for a job
// without GPUs the free GPUs for each free CPU, so that none are left without CPUs.
func (nf *nodeFit) remainsOn(free *NodeFree) int64 {
	mostCPUs := 1
	mostGPUs := 1
	for k := range nf.free.models {
		m := &nf.free.models[k]
		mostCPUs, mostGPUs = max(mostCPUs, m.cpus.Len()), max(mostGPUs, m.gpus.Len())
	}
	gpus := free.freeGPUs()
	if nf.demand.onGPUs() {
		return int64(free.cpuCount)*int64(mostGPUs)*milli + gpus*int64(mostCPUs)
	}
	return gpus * milli / int64(max(free.cpuCount, 1))
}

// milli is how many parts of a GPU are told apart here.
const milli = 1000

// freeGPUs is how much of GPUs is free, in thousandths, with what is left of those of which parts are given out.
func (free *NodeFree) freeGPUs() int64 {
	total := int64(free.gpuCount) * milli
	for _, p := range free.gpuParts {
		if all := free.node.Inventory.PartsOf(p.Name); all > 0 {
			total += milli - p.Count*milli/all
		}
	}
	return total
}
