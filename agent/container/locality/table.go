package locality

import (
	"maps"
	"slices"
	"sync"

	"dev.muster/cluster"
)

// Table is what the nodes have told of their images.
type Table struct {
	mu     sync.Mutex
	byNode map[cluster.NodeName][]string
	byKey  map[string]map[cluster.NodeName]bool
}

// Set replaces what is known of a node; no more than Most keys of it are kept.
func (t *Table) Set(node cluster.NodeName, keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys = slices.DeleteFunc(slices.Clone(keys[:min(len(keys), Most)]), func(k string) bool { return !isKey(k) })
	if slices.Equal(keys, t.byNode[node]) {
		return
	}
	t.forget(node)
	t.byNode[node] = keys
	for _, key := range keys {
		if t.byKey[key] == nil {
			t.byKey[key] = map[cluster.NodeName]bool{}
		}
		t.byKey[key][node] = true
	}
}

// NewTable is one of which no node has told.
func NewTable() *Table {
	return &Table{byNode: map[cluster.NodeName][]string{}, byKey: map[string]map[cluster.NodeName]bool{}}
}

// forget is called with mu held.
func (t *Table) forget(node cluster.NodeName) {
	for _, key := range t.byNode[node] {
		delete(t.byKey[key], node)
		if len(t.byKey[key]) == 0 {
			delete(t.byKey, key)
		}
	}
	delete(t.byNode, node)
}

// Nodes lists the nodes that have an image, in no order.
func (t *Table) Nodes(image string) []cluster.NodeName {
	key := KeyOf(image)
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.byKey[key]))
}

// Len is of how many nodes an image is known.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byNode)
}

// Keep forgets the nodes that there are not any more.
func (t *Table) Keep(there func(cluster.NodeName) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for node := range t.byNode {
		if !there(node) {
			t.forget(node)
		}
	}
}
