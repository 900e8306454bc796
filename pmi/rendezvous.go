package pmi

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
)

// Calls by which the servers of a step come to a tree. All nodes make each, and the hub answers all at once: with an
// error if one of them cannot. A server that knows neither takes part in fences by the hub, and then all do.
const (
	// callTree tells where the server can be reached, and the digest of its certificate. The answer is the same of
	// its neighbours in the tree.
	callTree = "tree"
	// callJoined tells that the server has a connection to each of its neighbours, by an empty text, or why not.
	callJoined = "joined"
)

// meeting is what the nodes have said in their calls of one kind.
type meeting struct {
	calls    map[int][]string
	waiting  map[int]uint64 // the IDs of calls that are not answered yet
	objected string         // why there is no tree
}

func newMeetings() map[string]*meeting {
	meetings := map[string]*meeting{}
	for _, call := range []string{callTree, callJoined} {
		meetings[call] = &meeting{calls: map[int][]string{}, waiting: map[int]uint64{}}
	}
	return meetings
}

// meet takes a node's call, and with the last one answers all; mu is held.
func (h *Hub) meet(node int, m Message, args []string) {
	g := h.meetings[m.Key]
	g.calls[node] = args
	g.waiting[node] = m.ID
	why := objection(m.Key, node, args)
	switch {
	case why != "" || g.objected != "":
		h.object(m.Key, why)
		return
	case len(g.waiting) < len(h.nodes):
		return
	}
	tree := treeOf(len(h.nodes), h.fan)
	for n, id := range g.waiting {
		answer := Message{Kind: Reply, ID: id, Node: HubNode}
		if m.Key == callTree {
			answer.Data = g.around(tree[n])
		}
		h.send(n, answer)
	}
	clear(g.waiting)
}

// objection is why there can be no tree after a node's call, "" if there can.
func objection(call string, node int, args []string) string {
	switch {
	case call == callJoined:
		return args[0]
	case len(args) != 2 || len(args[1]) != sha256.Size:
		return fmt.Sprintf("node %d does not tell where it can be reached", node)
	}
	return ""
}

// around is how the neighbours of a node in the tree can be reached.
func (g *meeting) around(b branch) []byte {
	var data []byte
	near := b.children
	if b.parent != HubNode {
		near = slices.Concat([]int{b.parent}, near)
	}
	for _, n := range near {
		said := g.calls[n]
		data = appendTexts(data, strconv.Itoa(n), said[0], said[1])
	}
	return data
}

// object has no tree come about, unless all have agreed already; mu is held.
func (h *Hub) object(call, why string) {
	g := h.meetings[call]
	if g.objected == "" {
		g.objected = why
	}
	for n, id := range g.waiting {
		h.send(n, Message{Kind: Reply, ID: id, Node: HubNode, Key: g.objected})
	}
	clear(g.waiting)
}

// objectAll has no tree come about by either call; mu is held.
func (h *Hub) objectAll(why string) {
	h.object(callTree, why)
	h.object(callJoined, why)
}

// neighbour is how the server of a node can be reached that is next to this one in the tree.
type neighbour struct {
	node         int
	addr, digest string
}

// readNeighbours reads the answer to a callTree of a node.
func readNeighbours(data []byte, node, nodes int) (near []neighbour, err error) {
	texts, err := readTexts(data)
	if err != nil || len(texts)%3 != 0 {
		return nil, fmt.Errorf("%w: the neighbours of node %d", ErrMessage, node)
	}
	for said := range slices.Chunk(texts, 3) {
		n, err := strconv.Atoi(said[0])
		if err != nil || n < 0 || n >= nodes || n == node {
			return nil, fmt.Errorf("%w: node %q beside node %d of %d", ErrMessage, said[0], node, nodes)
		}
		near = append(near, neighbour{n, said[1], said[2]})
	}
	return near, nil
}
