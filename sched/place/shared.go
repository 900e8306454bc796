package place

import "dev.muster/cluster"

// sharedNeed is what a job needs of each node of what nodes give out by count.
type sharedNeed struct {
	gpuPart *cluster.GRES  // of one GPU; nil: none
	counted []cluster.GRES // of the site's own resources
}

// hasShared reports whether a node has left what is needed.
func (n *sharedNeed) hasShared(free *NodeFree) bool {
	inv := &free.node.Inventory
	if n.gpuPart != nil {
		if _, ok := inv.FindPart(n.gpuPart, free.gpuParts, free.gpus); !ok {
			return false
		}
	}
	return n.hasCounted(free)
}

// hasCounted reports whether a node has left what is needed of the site's own resources.
func (n *sharedNeed) hasCounted(free *NodeFree) bool {
	if len(n.counted) == 0 {
		return true
	}
	_, ok := free.node.Inventory.FindCounted(n.counted, free.counted)
	return ok
}

// takeShared gives a share what is needed of a node; all that is counted there to a job with whole nodes. false: the
// node has not enough.
func (n *sharedNeed) takeShared(free *NodeFree, sh *cluster.Share, whole bool) (ok bool) {
	inv := &free.node.Inventory
	if n.gpuPart != nil {
		p, ok := inv.FindPart(n.gpuPart, free.gpuParts, free.gpus)
		if !ok {
			return false
		}
		sh.Part = &p
	}
	if whole {
		sh.Counted = inv.RestCounted(free.counted)
		return n.hasCounted(free)
	}
	if len(n.counted) == 0 {
		return true
	}
	sh.Counted, ok = inv.FindCounted(n.counted, free.counted)
	return ok
}
