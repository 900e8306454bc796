package conf

import (
	"cmp"
	"os"
	"slices"
	"strings"
)

// topology.yaml lists topologies in the place of topology.conf and TopologyPlugin. Of YAML it needs lists of maps
// in block style, whose keys say by themselves where they belong:
//
//   - topology: t1
//     cluster_default: true
//     tree:
//     switches:
//   - switch: spine
//     children: leaf[1-2]
//   - switch: leaf1
//     nodes: n[1-4]
//   - topology: t2
//     block:
//     block_sizes: [4, 8]
//     blocks:
//   - block: b1
//     nodes: n[1-4]
type yamlTopology struct {
	line   int
	name   string
	first  bool   // cluster_default
	plugin string // tree, block or flat
	units  []yamlUnit
	sizes  []string
}

// yamlUnit is a switch or block, as the words of a line of topology.conf.
type yamlUnit struct {
	line  int
	words []pair
}

// topologyYAML reads the file: of its topologies the cluster's default, or the first.
func (r *reader) topologyYAML(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var list []yamlTopology
	sizes := false // the items that follow are block sizes
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		word := strings.TrimSpace(line)
		item, isItem := strings.CutPrefix(word, "- ")
		key, value, isPair := strings.Cut(cmp.Or(strings.TrimSpace(item), word), ":")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"'`)
		switch {
		case word == "" || word == "---" || word == "...":
		case isPair && key == "topology":
			list, sizes = append(list, yamlTopology{line: n, name: value}), false
		case len(list) == 0:
			r.note(file, n, "%q comes before the first topology; ignored", word)
		case isItem && !isPair && sizes:
			t := &list[len(list)-1]
			t.sizes = append(t.sizes, key)
		case !isPair:
			r.note(file, n, "%q is not key: value; ignored", word)
		default:
			sizes = key == "block_sizes"
			r.yamlKey(file, n, &list[len(list)-1], key, value)
		}
	}
	r.useTopology(file, list)
	return nil
}

// yamlKey reads one key of a topology.
func (r *reader) yamlKey(file string, n int, t *yamlTopology, key, value string) {
	units := map[string]string{"switch": "switchname", "block": "blockname"}
	members := map[string]string{"children": "switches", "nodes": "nodes"}
	switch {
	case key == "cluster_default":
		t.first = strings.EqualFold(value, "true")
	case key == "flat" && strings.EqualFold(value, "true"), (key == "tree" || key == "block") && value == "":
		t.plugin = key
	case key == "switches", key == "blocks", key == "flat":
	case key == "block_sizes":
		t.sizes = append(t.sizes, strings.FieldsFunc(value,
			func(r rune) bool { return strings.ContainsRune("[], ", r) })...)
	case units[key] != "" && value != "":
		t.units = append(t.units, yamlUnit{n, []pair{{units[key], value, key}}})
	case members[key] != "" && len(t.units) > 0:
		u := &t.units[len(t.units)-1]
		u.words = append(u.words, pair{members[key], value, key})
	default:
		r.note(file, n, "%s is not known in a topology; ignored", key)
	}
}

// useTopology activates one of the topologies.
func (r *reader) useTopology(file string, list []yamlTopology) {
	if len(list) == 0 {
		r.note(file, 1, "there is no topology in it; ignored")
		return
	}
	use := max(slices.IndexFunc(list, func(t yamlTopology) bool { return t.first }), 0)
	for i, t := range list {
		if i != use {
			r.note(file, t.line, "topology %s is ignored: a cluster has one here, %s (cluster_default)",
				t.name, list[use].name)
		}
	}
	t := list[use]
	if len(r.cfg.Topology)+len(r.cfg.Blocks) > 0 {
		r.note(file, t.line, "it takes the place of topology.conf, which is ignored")
	}
	r.cfg.Topology, r.cfg.Blocks, r.cfg.BlockSizes = nil, nil, nil
	r.cfg.Keys["topologyplugin"] = "topology/" + cmp.Or(t.plugin, "flat")
	if len(t.sizes) > 0 {
		r.topologyLine(file, t.line, []pair{{"blocksizes", strings.Join(t.sizes, ","), "block_sizes"}})
	}
	for _, u := range t.units {
		r.topologyLine(file, u.line, u.words)
	}
}
