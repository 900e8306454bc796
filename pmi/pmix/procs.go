package pmix

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dev.muster/pmi"
)

// Ranks that stand for several.
const (
	rankUndefined  = 1<<32 - 1
	rankWildcard   = 1<<32 - 2 // all of the namespace
	rankLocalNode  = 1<<32 - 3
	rankLocalPeers = 1<<32 - 5
)

// proc is a process as PMIx names it.
type proc struct {
	nspace string
	rank   uint32
}

// nspaceOf is the namespace of a step, named as Slurm's plugin names it.
func nspaceOf(s *pmi.Setup) string { return "slurm.pmix." + s.Job }

// members are who takes part in something.
type members struct {
	name  string // the same on all nodes
	nodes []int
}

// errForeign is the error of who waits for tasks of another step.
var errForeign = errors.New("tasks of other steps cannot take part")

// table knows the members of the step.
type table struct {
	setup  *pmi.Setup
	nspace string
	nodes  []int // of each rank

	mu     sync.Mutex
	counts map[string]int // of what each set of members has done
}

func newTable(s *pmi.Setup) *table {
	t := &table{setup: s, nspace: nspaceOf(s), nodes: make([]int, s.Size), counts: map[string]int{}}
	for node, ranks := range s.Ranks {
		for _, r := range ranks {
			t.nodes[r] = node
		}
	}
	return t
}

// node is where a process is.
func (t *table) node(p proc) (int, bool) {
	if p.nspace != t.nspace || uint64(p.rank) >= uint64(len(t.nodes)) {
		return 0, false
	}
	return t.nodes[p.rank], true
}

// of are the members that PMIx lists, each rank on its own or all in one.
func (t *table) of(procs []proc) (members, error) {
	var ranks []int
	for _, p := range procs {
		switch {
		case p.nspace != t.nspace:
			return members{}, errForeign
		case p.rank == rankWildcard || p.rank == rankUndefined:
			return t.all(), nil
		case p.rank == rankLocalNode || p.rank == rankLocalPeers:
			ranks = append(ranks, t.setup.Local()...)
		case uint64(p.rank) >= uint64(len(t.nodes)):
			return members{}, fmt.Errorf("rank %d of %d takes part", p.rank, len(t.nodes))
		default:
			ranks = append(ranks, int(p.rank))
		}
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	if len(ranks) == len(t.nodes) {
		return t.all(), nil
	}
	m := members{name: rangesOf(ranks)}
	for _, r := range ranks {
		m.nodes = append(m.nodes, t.nodes[r])
	}
	slices.Sort(m.nodes)
	m.nodes = slices.Compact(m.nodes)
	return m, nil
}

func (t *table) all() members {
	m := members{name: "all"}
	for node := range t.setup.Ranks {
		m.nodes = append(m.nodes, node)
	}
	return m
}

// next names the next thing of a kind that members do together. They do them in one order, so all
// nodes count alike.
func (t *table) next(kind string, m members) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := kind + " " + m.name
	t.counts[name]++
	return fmt.Sprintf("%s #%d", name, t.counts[name])
}

// maxName is how long a set of ranks is named by its ranges; a longer one is named by a hash of them.
const maxName = 200

// rangesOf names ranks, which are in order: 0-3,7.
func rangesOf(ranks []int) string {
	var parts []string
	for at := 0; at < len(ranks); {
		end := at
		for end+1 < len(ranks) && ranks[end+1] == ranks[end]+1 {
			end++
		}
		if end == at {
			parts = append(parts, fmt.Sprint(ranks[at]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[at], ranks[end]))
		}
		at = end + 1
	}
	name := strings.Join(parts, ",")
	if len(name) > maxName {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
	}
	return name
}
