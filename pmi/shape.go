package pmi

// fanOut is to how many others a node of a tree hands the data of a fence: two hops reach 272 nodes.
const fanOut = 16

// branch is a node's place in a tree of nodes.
type branch struct {
	parent   int // HubNode: it is the root
	children []int
}

// treeOf has a place for each of so many nodes. A subtree is a run of nodes, the first of which is its root, so that
// data which is joined on the way up is in the order of the nodes, and neighbours are near each other.
func treeOf(nodes, fan int) []branch {
	tree := make([]branch, nodes)
	tree[0].parent = HubNode
	growTree(tree, 0, nodes, fan)
	return tree
}

// growTree divides the nodes between root and end into subtrees of the root.
func growTree(tree []branch, root, end, fan int) {
	first := root + 1
	for left := min(fan, end-first); left > 0; left-- {
		size := (end - first + left - 1) / left
		tree[root].children = append(tree[root].children, first)
		tree[first].parent = root
		growTree(tree, first, first+size, fan)
		first += size
	}
}
