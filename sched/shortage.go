package sched

import (
	"fmt"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// What nodes lack that are in service, and on which a job does not fit.

// lack is one of the things that keep a task off a node.
type lack struct {
	text string                       // of the nodes that it keeps off
	left func(*demand, *nodeFree) int // how much of it a node has left; nil: it is no amount
	unit string                       // of that
}

// The lacks, as they are told.
var (
	lackReserved = &lack{text: "reserved for others, or not of its reservation"}
	lackExcluded = &lack{text: "excluded"}
	lackMake     = &lack{text: "of another make or feature"}
	lackCompany  = &lack{text: "with jobs of other users"}
	lackWhole    = &lack{text: "in use (it wants whole nodes)"}
	lackCPUs     = &lack{"short of CPUs", func(_ *demand, free *nodeFree) int { return free.wholeCPUs }, ""}
	lackSockets  = &lack{text: "on whose sockets not so many tasks may be (--ntasks-per-socket)"}
	lackGPUType  = &lack{text: "without such GPUs"}
	lackGPUs     = &lack{"short of GPUs", (*demand).fewestGPUsLeft, ""}
	lackMemory   = &lack{"short of memory", func(_ *demand, free *nodeFree) int { return int(free.mem) }, " MB"}
	lacks        = []*lack{lackReserved, lackExcluded, lackMake, lackCompany, lackWhole, lackCPUs, lackSockets,
		lackGPUType, lackGPUs, lackMemory}
)

// shortage is the shortage of a free set of the nodes that are in service.
func (d *demand) shortage(fs *freeSet, away exclusion) string {
	return d.shortageOf(fs, away, " in service")
}

// shortageOf tells on how many nodes of a free set there is room, beside what the job must keep off, and what the
// others lack.
func (d *demand) shortageOf(fs *freeSet, away exclusion, which string) string {
	room, tasks, nodes := 0, 0, 0
	lacking, most := map[*lack]int{}, map[*lack]int{}
	for _, i := range fs.partitionMembers(d.part) {
		nodes++
		if away.nodes.has(i) {
			lacking[lackReserved]++
			continue
		}
		free := away.cpus.without(int32(i), &fs.nodes[i])
		if n := d.tasksOnAny(free); n > 0 {
			room, tasks = room+1, tasks+n
			continue
		}
		l := d.firstLack(free)
		if lacking[l]++; l.left != nil {
			most[l] = max(most[l], l.left(d, free))
		}
	}
	text := fmt.Sprintf("it wants %s with %s of %s each", count(d.minNodes, "node", "nodes"),
		count(d.tasks, "task", "tasks"), count(d.cpusPerTask, "CPU", "CPUs"))
	if g := d.gpuText(); g != "" {
		text += " and " + g
	}
	text += d.memText() + fmt.Sprintf("; of %s%s ", count(nodes, "node", "nodes"), which)
	if room == 0 {
		text += "none has room"
	} else {
		text += fmt.Sprintf("%s room (for %s)", count(room, "has", "have"), count(min(tasks, 1<<30), "task", "tasks"))
	}
	if room >= d.minNodes && tasks >= d.tasks && away.none() {
		if how := d.arrangement(fs); how != "" {
			text += ", which do not lie as " + how + " wants"
		}
	}
	for _, l := range lacks {
		if lacking[l] == 0 {
			continue
		}
		text += fmt.Sprintf(", %d %s", lacking[l], l.text)
		if l.left != nil {
			text += fmt.Sprintf(" (%d%s free at most)", most[l], l.unit)
		}
	}
	return text
}

// arrangement names what is asked of how a job's nodes lie: options of sbatch, and the rule of the topology plugin.
func (d *demand) arrangement(fs *freeSet) string {
	var out []string
	for _, o := range []struct {
		asked bool
		name  string
	}{
		{d.contiguous, "--contiguous"},
		{d.switches > 0, fmt.Sprintf("--switches=%d", d.switches)},
		{d.segment > 0, fmt.Sprintf("--segment=%d", d.segment)},
		{fs.topology.blocks != nil && d.minNodes > 1, "topology/block"},
		{fs.topology.levels != nil && d.minNodes > 1 && d.switches == 0, "topology/tree"},
	} {
		if o.asked {
			out = append(out, o.name)
		}
	}
	return strings.Join(out, " and ")
}

func (d *demand) memText() string {
	switch {
	case !d.memAlloc:
		return ""
	case d.mem.Per == cluster.MemPerNode && d.mem.MB == 0:
		return ", with all memory of a node"
	case d.mem.MB == 0:
		return ""
	}
	return fmt.Sprintf(", with %d MB a %s", d.mem.MB, [...]string{"node", "node", "CPU", "GPU"}[d.mem.Per&3])
}

func (d *demand) gpuText() string {
	var parts []string
	add := func(list []cluster.GRES, per string) {
		for _, g := range list {
			parts = append(parts, fmt.Sprintf("%s %s", count(int(g.Count), strings.TrimSpace(g.Type+" GPU"),
				strings.TrimSpace(g.Type+" GPUs")), per))
		}
	}
	add(d.gpuNode, "a node")
	add(d.gpuTask, "a task")
	add(d.gpuJob, "in all")
	return strings.Join(parts, ", ")
}

// firstLack names the first thing that keeps a task off the node.
func (d *demand) firstLack(free *nodeFree) *lack {
	cpus := free.wholeCPUs
	switch {
	case d.excluded[free.node.Name]:
		return lackExcluded
	case d.mem.Per == cluster.MemPerNode && d.mem.MB > free.node.Inventory.MemMB:
		return lackMemory
	case !d.mayUse(free.node):
		return lackMake
	case free.onlyUser != 0 && free.onlyUser != int64(d.user)+1, d.oneUser && !d.allOfUser(free):
		return lackCompany
	case d.exclusive && free.busy:
		return lackWhole
	case cpus < d.leastCPUs(free) || cpus < max(d.cpusPerTask, 1)*d.leastTasksOnNode() && !d.overcommit:
		return lackCPUs
	case d.cpusByMem(free, cpus) < max(d.minCPUs, d.cpusPerTask):
		return lackMemory
	case d.tasksPerSocket > 0 && d.tasksBySocket(free, d.cpusPerTaskOn(&free.node.Inventory)) < d.leastTasksOnNode():
		return lackSockets
	case !d.hasGPUTypes(free.node):
		return lackGPUType
	}
	return lackGPUs
}

// leastTasksOnNode is how many tasks a node must hold to be of use.
func (d *demand) leastTasksOnNode() int {
	if d.oneNode {
		return d.tasks
	}
	return max(min(d.tasksPerNode, d.tasks), 1)
}

// gpusAsked lists the GPUs that are asked for, by type.
func (d *demand) gpusAsked() []cluster.GRES {
	return slices.Concat(d.gpuNode, d.gpuTask, d.gpuSocket, d.gpuJob)
}

// hasGPUTypes reports whether a node has GPUs of the types that are asked for, however many.
func (d *demand) hasGPUTypes(n *cluster.Node) bool {
	return !slices.ContainsFunc(d.gpusAsked(), func(g cluster.GRES) bool {
		return countGPUsOf(n, g.Type,
			n.Inventory.Devices()) == 0
	})
}

// fewestGPUsLeft is how many GPUs a node has left of the type of which it has the fewest of those that are asked for.
func (d *demand) fewestGPUsLeft(free *nodeFree) int {
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
