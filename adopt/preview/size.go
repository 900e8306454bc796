package preview

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// Size is how large the cluster is.
type Size struct {
	Nodes      int            `json:"nodes"`
	CPUs       int            `json:"cpus"`
	MemoryMB   int64          `json:"memory_mb"`
	GPUs       map[string]int `json:"gpus,omitempty"`   // by type; "gpu" is without one
	States     map[string]int `json:"states,omitempty"` // nodes by state
	Partitions []string       `json:"partitions,omitempty"`
	Jobs       map[string]int `json:"jobs,omitempty"` // by state; an array of pending tasks counts once
}

// measure counts what a running controller has, or else what slurm.conf declares.
func measure(s *Site) Size {
	out := Size{GPUs: map[string]int{}}
	if s.Config != nil {
		for i := range s.Config.Partitions {
			out.Partitions = append(out.Partitions, s.Config.Partitions[i].Name)
		}
	}
	if s.Nodes != "" {
		out.States = map[string]int{}
		for line := range strings.Lines(s.Nodes) {
			out.addNode(line)
		}
	} else if s.Config != nil {
		for i := range s.Config.Declared {
			out.addDeclared(&s.Config.Declared[i].Inventory)
		}
	}
	if s.Live {
		out.Jobs = map[string]int{}
		for state := range strings.FieldsSeq(s.Jobs) {
			out.Jobs[state]++
		}
	}
	return out
}

// addNode counts a line of scontrol -o show node.
func (z *Size) addNode(line string) {
	if !strings.HasPrefix(line, "NodeName=") {
		return
	}
	z.Nodes++
	for word := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "CPUTot":
			n, _ := strconv.Atoi(value)
			z.CPUs += n
		case "RealMemory":
			n, _ := strconv.ParseInt(value, 10, 64)
			z.MemoryMB += n
		case "State":
			z.States[value]++
		case "Gres":
			z.addGres(value)
		}
	}
}

// addGres counts the GPUs of NAME:TYPE:COUNT(S:0-1),….
func (z *Size) addGres(text string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	for _, w := range words {
		w, _, _ = strings.Cut(w, "(")
		parts := strings.Split(w, ":")
		n, err := strconv.Atoi(parts[len(parts)-1])
		if parts[0] != "gpu" || err != nil {
			continue
		}
		kind := strings.Join(parts[1:len(parts)-1], ":")
		z.GPUs[cmp.Or(kind, "gpu")] += n
	}
}

// addDeclared counts a NodeName= line's node.
func (z *Size) addDeclared(inv *cluster.Inventory) {
	z.Nodes++
	z.CPUs += inv.CPUs
	z.MemoryMB += int64(inv.MemMB)
	for i := range inv.GPUs {
		z.GPUs[cmp.Or(inv.GPUs[i].Type, "gpu")]++
	}
}

// sortedKeys returns the keys of a count, the largest count first.
func sortedKeys(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}
