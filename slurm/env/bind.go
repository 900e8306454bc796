package env

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// binding tells what the tasks of the node are bound to.
func (e *list) binding(b cluster.Binding) {
	kind, list, verbose := b.Kind, b.Text, cmp.Or(wordIf(b.Verbose, "verbose"), "quiet")
	if kind == "mask_cpu" && list == "" {
		masks := make([]string, len(b.Masks))
		for i, m := range b.Masks {
			masks[i] = cluster.CPUMask(m)
		}
		list = strings.Join(masks, ",")
	}
	if list != "" {
		kind += ":"
	}
	e.set("SLURM_CPU_BIND", verbose+","+kind+list)
	e.set("SLURM_CPU_BIND_LIST", list)
	e.set("SLURM_CPU_BIND_TYPE", kind)
	e.set("SLURM_CPU_BIND_VERBOSE", verbose)
}

// memBinding tells what the memory of the tasks is bound to, if --mem-bind says.
func (e *list) memBinding(b cluster.MemBinding) {
	if b.Mode == "" && !b.Sort && !b.Verbose {
		return
	}
	kind := b.Mode + wordIf(b.Text != "", ":")
	words := []string{cmp.Or(wordIf(b.Verbose, "verbose"), "quiet")}
	e.set("SLURM_MEM_BIND_VERBOSE", words[0])
	if b.Prefer {
		words = append(words, "prefer")
		e.set("SLURM_MEM_BIND_PREFER", "prefer")
	}
	if b.Sort {
		e.set("SLURM_MEM_BIND_SORT", "sort")
	}
	if kind != "" {
		words = append(words, kind+b.Text)
	}
	e.set("SLURM_MEM_BIND", strings.Join(words, ","))
	e.set("SLURM_MEM_BIND_LIST", b.Text)
	e.set("SLURM_MEM_BIND_TYPE", kind)
}

// askedMemBinding tells what --mem-bind of a job wants of its steps.
func (e *list) askedMemBinding(asked string) {
	if asked == "" {
		return
	}
	b := cluster.BindMem(asked)
	verbose, sort := wordIf(b.Verbose, "verbose"), wordIf(b.Sort, "sort")
	words := []string{verbose, wordIf(b.Prefer, "prefer"), sort, b.Mode + wordIf(b.Text != "", ":") + b.Text}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	e.set("SLURM_MEM_BIND", strings.Join(words, ","))
	e.text("SLURM_MEM_BIND_SORT", sort)
	e.set("SLURM_MEM_BIND_VERBOSE", cmp.Or(verbose, "quiet"))
}

func wordIf(holds bool, word string) string {
	if holds {
		return word
	}
	return ""
}

// kindOf is the word of Greeting for a kind of binding to CPUs.
func kindOf(binding string) string {
	switch binding {
	case "mask_cpu":
		return "MASK"
	case "map_cpu":
		return "MAP "
	case "rank_ldom":
		return "LDRANK"
	case "map_ldom":
		return "LDMAP "
	case "mask_ldom":
		return "LDMASK"
	}
	return strings.ToUpper(binding) // rank
}

// memKindOf is that for memory.
func memKindOf(mode string) string {
	switch mode {
	case "":
		return "NULL"
	case "local":
		return "LOC"
	case "map_mem":
		return "MAP"
	case "mask_mem":
		return "MASK"
	}
	return strings.ToUpper(mode) // none, rank
}

// Greeting is what a task is told before it starts, with %d for its process id: what it is bound to where it asked for
// that (verbose), and what could not be met. numa is the machine's NUMA nodes.
func Greeting(l *cluster.Launch, cpus cluster.Binding, mem cluster.MemBinding, numa cluster.IDSet) string {
	out := ""
	task := fmt.Sprintf("%s, task %2d %2d [%%d]: mask 0x", l.Node, l.Rank, l.LocalRank)
	if cpus.Verbose {
		out += "cpu-bind=" + kindOf(cpus.Kind) + " - " + task + lowMask(cpus.Of(l.LocalRank)) + " set\n"
	}
	if mem.Verbose {
		sign := cmp.Or(wordIf(mem.Prefer, " PREFER "), "=")
		set := wordIf(strings.TrimPrefix(mem.Mode, "none") != "", " set")
		nodes, all := mem.Of(l.LocalRank)
		if all {
			nodes = numa
		}
		out += "mem-bind" + sign + memKindOf(mem.Mode) + " - " + task + lowMask(nodes) + set + "\n"
	}
	if len(l.Step.Shares) <= l.NodeID {
		return out
	}
	if all := l.Step.Shares[l.NodeID].GPUs; l.GPUs.Verbose && !all.Empty() {
		out += fmt.Sprintf("gpu-bind: usable_gres=0x%s; bit_alloc=0x%s; local_inx=0; global_list=%s; local_list=%s\n",
			cluster.ShortMask(l.GPUs.GPUs), cluster.ShortMask(all), commas(l.GPUs.GPUs), seenAs(l))
	}
	for _, n := range l.GPUs.Notes {
		out += "slurmstepd-" + string(l.Node) + ": error: " + n + "\n"
	}
	return out
}

func lowMask(ids cluster.IDSet) string { return strings.ToLower(cluster.ShortMask(ids)) }
