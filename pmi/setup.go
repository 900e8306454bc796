package pmi

import (
	"fmt"
	"strings"

	"dev.muster/wire"
)

// Setup is what a server is told of its step.
type Setup struct {
	Job      string   `json:"job"`  // names the step in the cluster: JOB.STEP
	Size     int      `json:"size"` // tasks
	Universe int      `json:"universe"`
	Node     int      `json:"node"`            // this one's number
	Ranks    [][]int  `json:"ranks"`           // of each node
	Hosts    []string `json:"hosts"`           // names of the nodes
	Addr     string   `json:"addr,omitempty"`  // where the others reach this one; empty: they do not
	Ports    string   `json:"ports,omitempty"` // reserved for the step
	UID      uint32   `json:"uid"`
	GID      uint32   `json:"gid"`
	Dir      string   `json:"dir,omitempty"` // for files of the step on this node
}

// Local are the ranks of the server's node.
func (s *Setup) Local() []int { return s.Ranks[s.Node] }

// Encode is the setup as ParseSetup reads it.
func (s *Setup) Encode() ([]byte, error) { return wire.Marshal(s) }

// ParseSetup reads a setup.
func ParseSetup(b []byte) (*Setup, error) {
	s := &Setup{}
	if err := wire.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("read the setup: %w", err)
	}
	if s.Node < 0 || s.Node >= len(s.Ranks) || len(s.Local()) == 0 {
		return nil, fmt.Errorf("the setup has %d nodes, and no tasks of node %d", len(s.Ranks), s.Node)
	}
	return s, nil
}

// Mapping says on which node each rank is, as PMI_process_mapping does: (vector,(first node, nodes,
// ranks on each),...). The format is that of MPICH's "PMI v2 API" page.
func Mapping(ranks [][]int) string {
	type block struct{ node, nodes, each int }
	var blocks []block
	add := func(node, each int) {
		if n := len(blocks); n > 0 {
			last := &blocks[n-1]
			if last.each == each && last.node+last.nodes == node {
				last.nodes++
				return
			}
		}
		blocks = append(blocks, block{node, 1, each})
	}
	nodes := nodesOf(ranks)
	for at := 0; at < len(nodes); {
		end := at
		for end < len(nodes) && nodes[end] == nodes[at] {
			end++
		}
		add(nodes[at], end-at)
		at = end
	}
	var b strings.Builder
	b.WriteString("(vector")
	for _, k := range blocks {
		fmt.Fprintf(&b, ",(%d,%d,%d)", k.node, k.nodes, k.each)
	}
	return b.String() + ")"
}

// nodesOf is the node of each rank.
func nodesOf(ranks [][]int) []int {
	size := 0
	for _, list := range ranks {
		size += len(list)
	}
	nodes := make([]int, size)
	for node, list := range ranks {
		for _, rank := range list {
			if rank >= 0 && rank < size {
				nodes[rank] = node
			}
		}
	}
	return nodes
}
