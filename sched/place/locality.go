package place

import (
	"slices"

	"dev.muster/cluster"
)

// Where a job's image is known to be decides between equals and nothing else: not whether the job fits, nor which kind
// of node it gets. So the nodes are chosen first, as if nobody knew of images, and then those that lack the image are
// exchanged for equal ones that have it. No shape need tell images apart, and nothing that is kept becomes void when an
// image comes or goes.

// ImageLocality lists the nodes that have an image, by how a job asks for it.
type ImageLocality func(image string) []cluster.NodeName

// imageOf is the image that a job's nodes need, as far as the job says; "": none.
func imageOf(s *cluster.JobSpec) string {
	switch {
	case s.Inside != nil:
		return s.Inside.Image
	case s.Prefetch != nil:
		return s.Prefetch.Image
	}
	return ""
}

// ImageNodes is what was said of images in one cycle.
type ImageNodes struct {
	ask   ImageLocality      // nil: nobody knows
	known map[string][]int32 // by image: the indexes of the nodes that have it, rising
}

// NewImageNodes knows nothing yet.
func NewImageNodes(ask ImageLocality) ImageNodes { return ImageNodes{ask, map[string][]int32{}} }

// Of lists the nodes of a free set that have a job's image, rising.
func (in *ImageNodes) Of(j *cluster.Job, fs *FreeSet) []int32 {
	image := imageOf(j.Spec)
	if image == "" || in.ask == nil {
		return nil
	}
	list, known := in.known[image]
	if known {
		return list
	}
	for _, name := range in.ask(image) {
		if i, ok := fs.Index(name); ok {
			list = append(list, int32(i))
		}
	}
	slices.Sort(list)
	in.known[image] = list
	return list
}

// exchange is a choice whose nodes are exchanged for equal ones.
type exchange struct{ *choice }

// likeness is what nodes have in common of which a job may have one as well as the other.
type likeness struct {
	amounts  classKey
	tasks    int32
	weight   int
	troubled bool
	place    int32 // see placesOf
}

// exchanged is the chosen nodes, those that lack an image exchanged for equal ones of those that have it; nil if there
// are none.
func (c exchange) exchanged(local []int32) []int32 {
	oneNode := len(c.chosen) == 1
	inOrder := c.demand.atEnd || c.demand.flags.has(contiguous) && !oneNode
	if len(local) == 0 || inOrder || c.classes.tooManyTypes {
		return nil
	}
	lacking := c.lacking(local)
	if len(lacking) == 0 {
		return nil
	}
	alike := c.likenesses()
	spare := map[likeness][]int32{}
	for _, i := range local {
		if c.isSpare(i) {
			of := alike(i)
			spare[of] = append(spare[of], i)
		}
	}
	if len(spare) == 0 {
		return nil
	}
	out := slices.Clone(c.chosen)
	for _, k := range slices.Backward(lacking) { // those that were wanted least first
		of := alike(out[k])
		if list := spare[of]; len(list) > 0 {
			out[k] = list[0]
			spare[of] = list[1:]
		}
	}
	if slices.IsSorted(c.chosen) {
		slices.Sort(out)
	}
	return out
}

// lacking lists which of the chosen nodes lack an image and were not asked for by name.
func (c exchange) lacking(local []int32) (out []int) {
	for k, i := range c.chosen {
		_, has := slices.BinarySearch(local, i)
		if !has && !slices.Contains(c.demand.wanted, c.free.nodes[i].node.Name) {
			out = append(out, k)
		}
	}
	return out
}

// isSpare reports whether the job may have a node that is not chosen, all of what is free on it.
func (c exchange) isSpare(i int32) bool {
	if c.tasks[i] <= 0 {
		return false
	}
	return !anyOf(
		c.avoid.Has(int(i)),
		c.excluded.has(i),
		slices.Contains(c.chosen, i),
	)
}

// likenesses tells the likeness of each node.
func (c exchange) likenesses() func(i int32) likeness {
	placeOf := c.placesOf()
	byClass := map[int32]classKey{}
	return func(i int32) likeness {
		kind := c.index.classAt[i]
		amounts, known := byClass[kind]
		if !known {
			amounts = c.amountsOf(kind)
			byClass[kind] = amounts
		}
		free := &c.free.nodes[i]
		return likeness{
			amounts: amounts, tasks: c.tasks[i], weight: nodeWeight(free.node),
			troubled: c.demand.isLarge && free.troubled, place: placeOf(i),
		}
	}
}

// amountsOf is the key of a class, the same for models that differ in nothing but their features, where the job asks
// for none.
func (c exchange) amountsOf(kind int32) classKey {
	key := c.free.classKeyOf(&c.classes.examples[kind])
	if c.demand.wishes != nil {
		return key
	}
	own := *c.free.models[key.model].inventory
	key.model = slices.IndexFunc(c.free.models, func(m model) bool {
		own.Features = m.inventory.Features
		return sameHardware(&own, m.inventory)
	})
	return key
}

// placesOf tells where a node is as far as it matters. For several nodes that is the leaf switch, the block or the run
// of nodes; for one how many nodes with room its leaf or block has: jobs of one node fill up those with few.
func (c exchange) placesOf() func(i int32) int32 {
	oneNode := len(c.chosen) == 1
	var group []int32
	switch topo := c.free.topology; {
	case topo.blocks != nil:
		group = topo.blocks.blockOf
	case topo.levels != nil && !c.demand.ignoresTopology():
		group = topo.leafOf
	case oneNode:
		return func(int32) int32 { return 0 }
	default:
		group = c.runNumbers()
	}
	if !oneNode {
		return func(i int32) int32 { return group[i] }
	}
	room := map[int32]int32{}
	for _, i := range c.withRoom {
		room[group[i]]++
	}
	return func(i int32) int32 {
		if group[i] < 0 {
			return -1
		}
		return room[group[i]]
	}
}

// runNumbers numbers the runs of nodes with room, by index.
func (c exchange) runNumbers() []int32 {
	out := make([]int32, len(c.tasks))
	for n, run := range c.cutIntoRuns(c.withRoom) {
		for _, i := range run {
			out[i] = int32(n)
		}
	}
	return out
}
