package show

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
)

// SlurmTRES are the resources that are always tracked, with their numbers.
func SlurmTRES() []string {
	return []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}
}

// LimitText writes the resources of one limit: cpu=4,gres/gpu=2.
func LimitText(l cluster.Limits, name string) string {
	var parts []string
	for x := range l.Named(name) {
		text := strconv.FormatInt(x.Max, 10)
		if x.TRES == "mem" {
			text = format.Mem(cluster.MemMB(x.Max))
		}
		if x.TRES != "" {
			text = x.TRES + "=" + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ",")
}

// AlphaTRES writes resources in the database's order: by name.
func AlphaTRES(cpus, nodes int, mem string, gpus int64, types map[string]int64, billing int64) string {
	var out []string
	add := func(name string, n int64) {
		if n > 0 {
			out = append(out, name+"="+strconv.FormatInt(n, 10))
		}
	}
	add("billing", billing)
	add("cpu", int64(cpus))
	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != "" {
			add("gres/gpu:"+name, types[name])
		}
	}
	add("gres/gpu", gpus)
	if mem != "" && mem != "0" {
		out = append(out, "mem="+mem)
	}
	add("node", int64(nodes))
	return strings.Join(out, ",")
}
