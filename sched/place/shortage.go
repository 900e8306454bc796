package place

import (
	"fmt"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// Shortages of nodes that are in service, and on which a job does not fit.

// lack is one of the things that keep a task off a node.
type lack struct {
	verb verb
	text string                       // of the nodes that it keeps off, after the verb
	left func(wanting, *NodeFree) int // how much of it a node has left; nil: it is not an amount
	unit string                       // of that
}

// verb is what one node does, and what many do.
type verb struct{ one, many string }

// The lacks, as they are told: literals, so that nothing is made of them when a front-end starts.
var (
	lackReserved = &lack{
		verb: verb{"is", "are"},
		text: "reserved for others or outside its reservation",
	}
	lackExcluded = &lack{
		verb: verb{"is", "are"},
		text: "excluded",
	}
	lackMake = &lack{
		verb: verb{"lacks", "lack"},
		text: "the requested features",
	}
	lackCompany = &lack{
		verb: verb{"has", "have"},
		text: "jobs of other users",
	}
	lackWhole = &lack{
		verb: verb{"is", "are"},
		text: "in use (it needs whole nodes)",
	}
	lackSockets = &lack{
		verb: verb{"has", "have"},
		text: "too few free cores per socket (--ntasks-per-socket)",
	}
	lackGPUType = &lack{
		verb: verb{"has", "have"},
		text: "no such GPUs",
	}
	lackCounted = &lack{
		verb: verb{"has", "have"},
		text: "too little of what --gres requests",
	}
	lackLimit = &lack{
		verb: verb{"has", "have"},
		text: "too few CPUs left by the partition's MaxCPUsPerNode or MaxCPUsPerSocket",
		left: func(d wanting, free *NodeFree) int { return free.withinLimits(d.Demand).wholeCPUs },
	}
	lackCPUs = &lack{
		verb: verb{"has", "have"},
		text: "too few free CPUs",
		left: func(_ wanting, free *NodeFree) int { return free.wholeCPUs },
	}
	lackGPUs = &lack{
		verb: verb{"has", "have"},
		text: "too few free GPUs",
		left: wanting.fewestGPUsLeft,
	}
	lackMemory = &lack{
		verb: verb{"has", "have"},
		text: "too little free memory",
		left: func(_ wanting, free *NodeFree) int { return int(free.mem) },
		unit: " MB",
	}
	lacks = []*lack{lackReserved, lackExcluded, lackMake, lackCompany, lackWhole, lackLimit, lackCPUs,
		lackSockets, lackCounted, lackGPUType, lackGPUs, lackMemory}
)

// wanting is a demand that asks what nodes lack.
type wanting struct{ *Demand }

// Shortage is the shortage of a free set of the nodes that are in service.
func (d *Demand) Shortage(fs *FreeSet, away Exclusion) string {
	return wanting{d}.shortageOf(fs, away, " in service")
}

// shortageOf tells on how many nodes of a free set there is room, beside what the job must keep off, and what the
// others lack.
func (d wanting) shortageOf(fs *FreeSet, away Exclusion, which string) string {
	room := 0
	tasks := 0
	nodes := 0
	var roomy []*NodeFree
	lacking := map[*lack]int{}
	most := map[*lack]int{}
	for _, i := range fs.Members(d.part) {
		nodes++
		if away.Nodes.Has(i) {
			lacking[lackReserved]++
			continue
		}
		free := away.Parts.without(int32(i), &fs.nodes[i])
		if n := d.tasksOnAny(free); n > 0 {
			room++
			tasks += n
			roomy = append(roomy, free)
			continue
		}
		l := d.firstLack(free)
		lacking[l]++
		if l.left != nil {
			most[l] = max(most[l], l.left(d, free))
		}
	}
	text := fmt.Sprintf("it needs %s with %s of %s each", Count(d.MinNodes, "node", "nodes"),
		Count(d.tasks, "task", "tasks"), Count(d.cpusPerTask, "CPU", "CPUs"))
	if g := gpuText(d.Demand); g != "" {
		text += " and " + g
	}
	all := Count(nodes, "node", "nodes") + which
	short := d.gpusShort(roomy)
	between := ", "
	text += memText(d.Demand) + "; "
	switch {
	case room == 0:
		text += "none of " + all + " qualifies"
		between = ": "
	case short != "":
		text += "of " + all + ", " + short
	default:
		text += fmt.Sprintf("%d of %s can take %s", room, all, Count(min(tasks, 1<<30), "task", "tasks"))
	}
	if room >= d.MinNodes && tasks >= d.tasks && away.None() && short == "" {
		if how := arrangement(d.Demand, fs); how != "" {
			text += ", but not in the layout that " + how + " requires"
		}
	}
	for _, l := range lacks {
		if lacking[l] == 0 {
			continue
		}
		text += between + Count(lacking[l], l.verb.one, l.verb.many) + " " + l.text
		if l.left != nil {
			text += fmt.Sprintf(" (at most %d%s)", most[l], l.unit)
		}
		between = ", "
	}
	return text
}

// gpusShort tells that so many nodes as the job may have do not give the GPUs that it wants in all, "" that they do.
func (d wanting) gpusShort(roomy []*NodeFree) string {
	nodes := min(d.mostNodes(len(roomy)), len(roomy))
	for _, want := range d.gpuJob {
		var gives []int
		for _, free := range roomy {
			gives = append(gives, max(d.gpusGivenBy(free, want.Type), 0))
		}
		slices.SortFunc(gives, func(a, b int) int { return b - a })
		sum := 0
		for _, n := range gives[:nodes] {
			sum += n
		}
		name := strings.TrimSpace(want.Type + " GPU")
		switch {
		case int64(sum) >= want.Count:
		case nodes == 1:
			return fmt.Sprintf("none has %s (at most %d)", Count(int(want.Count), name, name+"s"), sum)
		default:
			return fmt.Sprintf("%s have at most %s", Count(nodes, "node", "nodes"), Count(sum, name, name+"s"))
		}
	}
	return ""
}

// arrangement names what is asked of how a job's nodes lie: options of sbatch, and the rule of the topology plugin.
func arrangement(d *Demand, fs *FreeSet) string {
	out := append(d.flags.layoutOptions(), d.asked.layoutOptions()...)
	for _, o := range []struct {
		asked bool
		name  string
	}{
		{d.Switches > 0, fmt.Sprintf("--switches=%d", d.Switches)},
		{fs.topology.blocks != nil && d.MinNodes > 1, "topology/block"},
		{fs.topology.levels != nil && d.MinNodes > 1 && d.Switches == 0, "topology/tree"},
	} {
		if o.asked {
			out = append(out, o.name)
		}
	}
	return strings.Join(out, " and ")
}

func memText(d *Demand) string {
	switch {
	case !d.memAlloc:
		return ""
	case d.mem.Per == cluster.MemPerNode && d.mem.MB == 0:
		return ", with all memory of a node"
	case d.mem.MB == 0:
		return ""
	}
	return fmt.Sprintf(", with %d MB per %s", d.mem.MB, [...]string{"node", "node", "CPU", "GPU"}[d.mem.Per&3])
}

func gpuText(d *Demand) string {
	var parts []string
	add := func(list []cluster.GRES, per string) {
		for _, g := range list {
			parts = append(parts, fmt.Sprintf("%s %s", Count(int(g.Count), strings.TrimSpace(g.Type+" GPU"),
				strings.TrimSpace(g.Type+" GPUs")), per))
		}
	}
	add(d.gpuNode, "per node")
	for i := range d.counted {
		parts = append(parts, d.counted[i].String()+" per node")
	}
	add(d.gpuTask, "per task")
	add(d.gpuJob, "in total")
	return strings.Join(parts, ", ")
}

// keepers are the things that may keep a task off a node, in the order in which they are looked for.
var keepers = [...]struct {
	lack  *lack
	keeps func(wanting, *NodeFree) bool
}{
	{lackExcluded, func(d wanting, free *NodeFree) bool { return d.isExcluded(free.node) }},
	{lackMemory, wanting.exceedsMemory},
	{lackCounted, wanting.exceedsCounted},
	{lackMake, func(d wanting, free *NodeFree) bool { return !d.mayUse(free.node) }},
	{lackCompany, func(d wanting, free *NodeFree) bool { return d.hasOthers(free) }},
	{lackWhole, func(d wanting, free *NodeFree) bool { return d.exclusive && free.busy }},
	{lackLimit, wanting.exceedsLimit},
	{lackCPUs, func(d wanting, free *NodeFree) bool { return free.wholeCPUs < d.cpusOfFewest(free) }},
	{lackMemory, wanting.lacksMemory},
	{lackSockets, wanting.lacksSockets},
	{lackCounted, func(d wanting, free *NodeFree) bool { return !d.hasCounted(free) }},
	{lackGPUType, func(d wanting, free *NodeFree) bool { return !d.hasGPUTypes(free.node) }},
}

// firstLack names the first thing that keeps a task off the node.
func (d wanting) firstLack(free *NodeFree) *lack {
	for _, k := range keepers {
		if k.keeps(d, free) {
			return k.lack
		}
	}
	return lackGPUs
}

// exceedsLimit reports whether the node has the CPUs, and only the partition's limit keeps the job from them.
func (d wanting) exceedsLimit(free *NodeFree) bool {
	need := d.cpusOfFewest(free)
	if d.exclusive {
		need = free.allCPUs
	}
	return free.wholeCPUs >= need && free.withinLimits(d.Demand).wholeCPUs < need
}

// exceedsMemory reports whether the job asks for more memory than the node has.
func (d wanting) exceedsMemory(free *NodeFree) bool {
	return d.mem.Per == cluster.MemPerNode && d.mem.MB > free.node.Inventory.MemMB
}

// exceedsCounted reports whether the node never has what --gres asks for of the site's own resources.
func (d wanting) exceedsCounted(free *NodeFree) bool {
	_, ok := free.node.Inventory.FindCounted(d.counted, nil)
	return !ok
}

// lacksMemory reports whether there is not enough memory for one task.
func (d wanting) lacksMemory(free *NodeFree) bool {
	return d.cpusByMem(free, free.wholeCPUs) < max(d.minCPUs, d.cpusPerTask)
}

// cpusOfFewest is how many CPUs the fewest tasks take that make a node useful.
func (d wanting) cpusOfFewest(free *NodeFree) int {
	least := d.leastCPUs(free)
	if d.flags.has(overcommit) {
		return least
	}
	return max(least, max(d.cpusPerTask, 1)*d.leastTasksOnNode())
}

// lacksSockets reports whether so few tasks may be on each socket that the node is of no use.
func (d wanting) lacksSockets(free *NodeFree) bool {
	if d.tasksPerSocket == 0 {
		return false
	}
	return d.tasksBySocket(free, d.cpusPerTaskOn(&free.node.Inventory)) < d.leastTasksOnNode()
}

// leastTasksOnNode is how many tasks a node must hold to be of use.
func (d wanting) leastTasksOnNode() int {
	if d.oneNode {
		return d.tasks
	}
	return max(min(d.tasksPerNode, d.tasks), 1)
}

// gpusAsked lists the GPUs that are asked for, by type.
func (d wanting) gpusAsked() []cluster.GRES {
	return slices.Concat(d.gpuNode, d.gpuTask, d.gpuSocket, d.gpuJob)
}

// hasGPUTypes reports whether a node has GPUs of the types that are asked for, however many.
func (d wanting) hasGPUTypes(n *cluster.Node) bool {
	return !slices.ContainsFunc(d.gpusAsked(), func(g cluster.GRES) bool {
		return countGPUsOf(n, g.Type,
			n.Inventory.Devices()) == 0
	})
}

// fewestGPUsLeft is how many GPUs a node has left of the type of which it has the fewest of those that are asked for.
func (d wanting) fewestGPUsLeft(free *NodeFree) int {
	least := free.gpuCount
	for _, g := range d.gpusAsked() {
		least = min(least, countGPUsOf(free.node, g.Type, free.gpus))
	}
	return least
}

// countGPUsOf counts those of some GPUs of a node that are of a type, "" any.
func countGPUsOf(n *cluster.Node, kind string, of cluster.IDSet) (count int) {
	for _, g := range n.Inventory.GPUs {
		if of.Has(g.Index) && (kind == "" || strings.EqualFold(kind, g.Type)) {
			count++
		}
	}
	return count
}

// Count says how many there are of something: 1 node, 2 nodes.
func Count(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}
