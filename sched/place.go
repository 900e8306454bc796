package sched

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// demand is what a job needs, worked out from its spec and the partition it would run in.
type demand struct {
	part       *cluster.Partition
	minNodes   int
	maxNodes   int  // 0: as many as it takes
	least      int  // of nodes, as the partition allows; 0: any
	upTo       int  // of nodes, as the partition allows; 0: any
	tasks      int  // 0: as many as fit on minNodes
	perNode    int  // tasks per node, 0: free
	mostTasks  int  // on a node of this cluster, 0: any number
	cpusPer    int  // per task, see per
	perSocket  int  // tasks per socket, 0: free
	perCore    int  // tasks per core, 0: as many as it has threads
	oneThread  bool // a CPU is a core (--hint=nomultithread, --threads-per-core=1)
	cpusPerGPU int
	gpuSocket  []cluster.GRES // per socket
	minCPUs    int            // per node
	mem        cluster.Mem
	gpuNode    []cluster.GRES // per node
	gpuJob     []cluster.GRES
	gpuTask    []cluster.GRES
	gpus       bool          // of any of these
	piece      *cluster.GRES // of one GPU of each node
	exclusive  bool
	leaves     *cluster.Layout // what it leaves of its nodes for the system, in place of what they keep; nil: what they do
	evenly     bool            // of its whole nodes or sockets all get as many tasks
	everyNode  bool            // the tasks per node count on each that it gets, of a range of nodes too
	over       int             // how many jobs may be on one CPU; 0: it alone
	not        map[cluster.NodeName]bool
	wishes     []cluster.Wish // ways to meet --prefer and --constraint, the best first
	wholeCore  bool           // it has all threads of its cores, not only the CPUs that it asks for
	memAlloc   bool
	tmpMB      int64
	overcommit bool
	counted    bool // a number of tasks was asked for
	user       uint32
	alone      bool // beside jobs of the same user only
	loads      *cluster.Snapshot
	single     bool // one node must hold all tasks
	useMin     bool // of a range of nodes the fewest
	spread     bool // over as many nodes as there are
	contiguous bool
	blocks     bool // nodes come in blocks
	switches   int  // leaf switches at most, 0: any
	optional   bool // switches matter only with that
	segment    int  // nodes of a segment in a block, 0: all
	together   bool // all segments in one higher block
	apart      bool // no two segments in one base block
	large      bool // it avoids nodes that had trouble of late, if others fit as well
	// How the configuration orders nodes: the least loaded first, jobs of one CPU from the end.
	leastLoaded, atEnd, bestFit bool
	fitGPUs                     bool // the best fit where nodes have GPUs
	gradient                    bool // and it is the one that spoils least
	nodesAsked                  bool // a number of nodes, or nodes by name
	sized                       bool // a number of nodes
	// blockSockets fills one socket before the next (-m x:block).
	blockSockets bool
	unbound      bool               // GPUs need not be near the CPUs (--gres-flags=disable-binding)
	bound        bool               // they must be (enforce-binding)
	allGPUs      bool               // it has all GPUs of its nodes, and CPUs for each
	wanted       []cluster.NodeName // -w: these must all be part of it
	wants        need               // of a node
	// What -B and its like ask of a node's make.
	sockets, cores, threads int
}

// inBlocks reports whether a distribution fills one socket before the next: -m x:block, and planes.
func inBlocks(distribution string) bool {
	return cluster.BlockSockets(distribution) || strings.HasPrefix(strings.ToLower(distribution), "plane")
}

// newDemand works out what a spec asks of a partition, away from some nodes.
func newDemand(s *cluster.Snapshot, p *cluster.Partition, spec *cluster.JobSpec, avoid []cluster.Avoided) *demand {
	cfg := s.Config()
	d := &demand{part: p, minNodes: spec.MinNodes, maxNodes: spec.MaxNodes, tasks: spec.Tasks, perNode: spec.TasksPerNode,
		cpusPer: max(spec.CPUsPerTask, 1), minCPUs: spec.MinCPUs, mem: spec.Mem,
		exclusive: spec.Sharing == cluster.ShareExclusive || p.OverSubscribe == cluster.OverExclusive,
		over:      p.JobsPerCPU(spec),
		optional:  cfg.TopoOptional,
		blocks:    s.HasBlocks(), wholeCore: cfg.CoreAlloc, memAlloc: cfg.MemAlloc, tmpMB: spec.TmpMB, overcommit: spec.Overcommit,
		sized:        spec.MinNodes > 0 || spec.MaxNodes > 0,
		nodesAsked:   spec.MinNodes > 0 || spec.MaxNodes > 0 || len(spec.NodeList) > 0,
		blockSockets: inBlocks(spec.Distribution) || cfg.DistBlock && spec.Distribution == "",
		unbound:      strings.Contains(spec.GRESFlags, "disable-binding"), bound: strings.Contains(spec.GRESFlags, "enforce-binding"),
		user: spec.UID, alone: spec.Sharing == cluster.ShareUser, loads: s,
		counted: spec.Tasks > 0, useMin: spec.UseMinNodes, spread: spec.Spread, contiguous: spec.Contiguous,
		segment: spec.Segment, together: spec.ConsolidateSegments, apart: spec.SpreadSegments,
		leastLoaded: cfg.LLN || p.LLN, bestFit: cfg.BestFit || cfg.Gradient, fitGPUs: fitsGPUs(cfg), wants: needOf(s, p, spec)}
	d.mostTasks = cfg.MaxTasksPerNode
	if spec.Specializes() {
		d.leaves, d.exclusive, d.over = spec.Layout, true, 0
	}
	if len(cfg.Blocks) == 0 && d.segment > 0 && spec.MinNodes%d.segment != 0 { // blocks that were found keep no job waiting
		d.segment = 0
	}
	if d.mem.Per == cluster.MemDefault {
		d.mem = p.DefMem
		if d.mem.Per == cluster.MemDefault {
			d.mem = cfg.DefMem
		}
	}
	d.gpuNode, d.gpuJob, d.gpuTask = gpusOf(spec.PerNode), gpusOf(spec.PerJob), gpusOf(spec.PerTask)
	if d.gpuSocket = gpusOf(spec.PerSocket); len(d.gpuSocket) > 0 && len(d.gpuJob) > 0 { // each socket has its own, in whatever sum, as in Slurm
		if each := int(max(sum(d.gpuSocket), 1)) * max(spec.SocketsPerNode, 1); spec.MinNodes == 0 {
			d.minNodes = max(d.minNodes, min((int(sum(d.gpuJob))+each-1)/each, cmp.Or(spec.Tasks, math.MaxInt)))
		}
		d.gpuJob, d.useMin = nil, true
	}
	d.piece = cluster.Part(spec.PerNode)
	d.evenly = (d.exclusive || cfg.SocketAlloc) && !cfg.PackNodes && len(d.gpuTask)+len(d.gpuSocket) == 0
	d.gpus = len(d.gpuNode)+len(d.gpuJob)+len(d.gpuTask)+len(d.gpuSocket) > 0
	d.perSocket, d.perCore, d.cpusPerGPU = spec.TasksPerSocket, spec.TasksPerCore, spec.CPUsPerGPU
	d.allGPUs = d.gpus && d.cpusPerGPU > 0 && spec.Sharing == cluster.ShareExclusive
	if cfg.OneTaskPerCore && d.perCore == 0 {
		d.perCore = 1
	}
	hint := strings.ToLower(spec.Hint)
	d.oneThread = spec.ThreadsPerCore == 1 || strings.Contains(hint, "nomultithread") || strings.Contains(hint, "compute_bound") || strings.Contains(hint, "memory_bound")
	d.wanted, d.large = spec.NodeList, large(spec)
	d.sockets, d.cores, d.threads = spec.SocketsPerNode, spec.CoresPerSocket, spec.ThreadsPerCore
	for _, n := range spec.Exclude {
		if d.not == nil {
			d.not = map[cluster.NodeName]bool{}
		}
		d.not[n] = true
	}
	for _, a := range avoid {
		if d.not == nil {
			d.not = map[cluster.NodeName]bool{}
		}
		d.not[a.Node] = true
	}
	d.wishes = wishesOf(spec)
	d.count(spec)
	if d.least, d.upTo = s.NodeBounds(p, spec); !d.sized {
		d.minNodes = max(d.minNodes, d.least)
		d.tasks = max(d.tasks, d.minNodes)
	}
	d.gradient = cfg.Gradient && d.minNodes <= 1
	d.single = d.maxNodes == 1 || d.upTo == 1
	d.atEnd = cfg.SerialAtEnd && d.minNodes == 1 && d.tasks*d.cpusPer == 1 && d.minCPUs <= 1
	return d
}

// ranged reports whether as many nodes as possible are wanted, of a range.
func (d *demand) ranged() bool {
	return d.spread || !d.useMin && d.maxNodes > d.minNodes && !d.dense()
}

// dense reports whether the job's GPUs, which are not asked for by node, are to be on few nodes.
func (d *demand) dense() bool { return len(d.gpuJob)+len(d.gpuTask) > 0 }

// From how many nodes or GPUs on a job is large: the more it has, the likelier one of them ends it.
const (
	largeNodes = 4
	largeGPUs  = 64
)

// large reports whether a job avoids nodes that had trouble of late.
func large(spec *cluster.JobSpec) bool {
	nodes := max(spec.MinNodes, 1)
	gpus := int64(0)
	for _, ask := range []struct {
		list  []cluster.GRES
		times int
	}{{spec.PerJob, 1}, {spec.PerNode, nodes}, {spec.PerTask, max(spec.Tasks, nodes*max(spec.TasksPerNode, 1))}, {spec.PerSocket, nodes * max(spec.SocketsPerNode, 1)}} {
		for _, g := range gpusOf(ask.list) {
			gpus += g.Count * int64(ask.times)
		}
	}
	return nodes >= largeNodes || gpus >= largeGPUs
}

// flat reports whether the job goes anywhere, whatever switches there are.
func (d *demand) flat() bool { return d.optional && d.switches == 0 }

// fussy reports whether nodes that suffice by numbers may be the wrong ones together.
func (d *demand) fussy() bool { return d.contiguous || d.switches > 0 || d.blocks }

// count settles numbers of nodes and tasks from what was given.
func (d *demand) count(spec *cluster.JobSpec) {
	d.minNodes = max(d.minNodes, len(spec.NodeList), 1)
	if total := sum(d.gpuJob); total > 0 && sum(d.gpuTask) > 0 && d.tasks == 0 {
		d.tasks = int(total / sum(d.gpuTask))
	}
	if node, task := sum(d.gpuNode), sum(d.gpuTask); node > 0 && task > 0 { // so many tasks on each
		d.perNode, d.gpuTask = int(node/task), nil
	}
	if per := spec.TasksPerGPU; per > 0 && d.tasks == 0 {
		d.tasks = per * int(cmp.Or(sum(d.gpuJob), sum(d.gpuNode)*int64(d.minNodes)))
	}
	if d.tasks == 0 && d.perNode > 0 {
		d.tasks, d.everyNode = d.perNode*d.minNodes, true
		d.maxNodes = min(d.maxNodes, max(d.tasks, d.minNodes)) // no more nodes of a range than tasks are counted, as in Slurm
	}
	if d.tasks > 0 && d.mostTasks > 0 {
		d.minNodes = max(d.minNodes, (d.tasks+d.mostTasks-1)/d.mostTasks)
	}
	if d.tasks > 0 && d.perNode > 0 {
		d.minNodes = max(d.minNodes, (d.tasks+d.perNode-1)/d.perNode)
	}
	if d.tasks == 0 {
		d.tasks = d.minNodes
	}
	if node, job := sum(d.gpuNode)+sum(d.gpuSocket)*int64(max(d.sockets, 1)), sum(d.gpuJob); node > 0 && job > 0 && len(d.gpuTask) == 0 && job%node == 0 { // so many nodes
		d.minNodes = max(d.minNodes, int(job/node))
		d.maxNodes, d.gpuJob = d.minNodes, nil
		d.tasks = max(d.tasks, d.minNodes)
	}
	if spec.CPUsPerGPU > 0 && len(d.gpuSocket) > 0 {
		d.minCPUs = max(d.minCPUs, spec.CPUsPerGPU*int(sum(d.gpuSocket))*max(d.sockets, 1))
	}
	if spec.CPUsPerGPU > 0 {
		d.minCPUs = max(d.minCPUs, spec.CPUsPerGPU*int(sum(d.gpuNode)))
		if g := sum(d.gpuTask); g > 0 {
			d.cpusPer = max(d.cpusPer, spec.CPUsPerGPU*int(g))
		}
	}
	if d.tasks < d.minNodes && spec.Tasks > 0 && len(spec.NodeList) == 0 {
		d.minNodes = max(d.tasks, 1)
		if d.maxNodes > 0 {
			d.maxNodes = max(d.minNodes, min(d.maxNodes, d.tasks))
		}
	}
}

func gpusOf(list []cluster.GRES) (out []cluster.GRES) {
	for _, g := range list {
		if g.Name == "gpu" && g.Count > 0 {
			out = append(out, g)
		}
	}
	return out
}

func sum(list []cluster.GRES) (n int64) {
	for _, g := range list {
		n += g.Count
	}
	return n
}

// may reports whether the node is one the job may use at all.
func (d *demand) may(n *cluster.Node) bool {
	return (d.not == nil || !d.not[n.Name]) && d.suits(&n.Inventory)
}

// wishesOf lists the ways to meet a job's constraint: those that also meet what it prefers first. Nil
// if it has none. Both were parsed when it was admitted.
func wishesOf(spec *cluster.JobSpec) []cluster.Wish {
	if spec.Constraint == "" && spec.Prefer == "" {
		return nil
	}
	wishes, _, err := cluster.ParseConstraint(spec.Constraint)
	if err != nil {
		return []cluster.Wish{{All: func([]string) bool { return false }}}
	}
	if spec.Prefer == "" {
		return wishes
	}
	liked, _, err := cluster.ParseConstraint(spec.Prefer)
	if err != nil {
		return wishes
	}
	var both []cluster.Wish
	for _, a := range liked {
		for _, b := range wishes {
			both = append(both, cluster.Wish{All: func(f []string) bool { return a.All(f) && b.All(f) }, Counts: slices.Concat(a.Counts, b.Counts)})
		}
	}
	return append(both, wishes...)
}

// meets reports whether a node with these features may be used in some way.
func (d *demand) meets(features []string) bool {
	return d.wishes == nil || slices.ContainsFunc(d.wishes, func(w cluster.Wish) bool { return w.All(features) })
}

// suits reports whether the job may use nodes of that make.
func (d *demand) suits(inv *cluster.Inventory) bool {
	return d.meets(inv.Features) && inv.TmpMB >= d.tmpMB && d.madeSo(inv) && (d.mem.Per != cluster.MemPerNode || inv.MemMB >= d.mem.MB)
}

// madeSo reports whether that make has as many sockets, cores and threads as -B and its like ask for.
func (d *demand) madeSo(inv *cluster.Inventory) bool {
	return inv.Sockets >= d.sockets && inv.CoresPerSocket >= d.cores && inv.ThreadsPerCore >= d.threads
}

// room is what one node gives to the job.
type room struct {
	sp    *space
	tasks int // how many tasks fit
	at    int // which share of the allocation is its
}

// place finds an allocation in the pool that keeps off what it must, or nil.
func (d *demand) place(p *pool, avoid off) *cluster.Alloc {
	g := newGauge(d, p)
	if g.hopeless(p.scene(nil, 0)) {
		return nil
	}
	return g.view(p, nil, 0).find(avoid)
}

// most is the largest number of nodes that the job may get of so many.
func (d *demand) most(nodes int) int {
	most := d.maxNodes
	if most == 0 || d.upTo > 0 && most > d.upTo {
		most = cmp.Or(d.upTo, nodes)
	}
	if d.maxNodes == 0 && d.minNodes > 1 {
		most = min(most, max(d.minNodes, len(d.wanted)))
	}
	return most
}

func (d *demand) gpusFree(sp *space) (n int) {
	for _, g := range d.gpuJob {
		n += gpuCount(sp, g.Type)
	}
	return n
}

// capacity is how many tasks fit on the node now, 0 if the job can not use it.
func (d *demand) capacity(sp *space) int {
	if !d.may(sp.node) {
		return 0
	}
	return d.fits(sp)
}

// own reports whether all jobs of a node are the user's.
func (d *demand) own(sp *space) bool {
	return sp.jobs == 0 || (sp.taken == 0 || sp.taken == int64(d.user)+1) && d.loads.AllOf(d.loads.Load(sp.node.Name), d.user)
}

// per is how many CPUs a task gets on nodes of a make.
func (d *demand) per(inv *cluster.Inventory) int {
	t := inv.ThreadsPerCore
	switch {
	case t <= 1:
	case d.oneThread:
		return d.cpusPer * t
	case d.perCore > 0 && d.perCore < t:
		each := t / d.perCore
		return (d.cpusPer + each - 1) / each * each
	}
	return d.cpusPer
}

// used is how many threads of a core the job uses: all of them, or fewer where a task is to have the core to itself.
func (d *demand) used(inv *cluster.Inventory) int {
	t := max(inv.ThreadsPerCore, 1)
	switch {
	case d.oneThread:
		return 1
	case d.perCore > 0 && d.cpusPer == 1:
		return min(d.perCore, t)
	}
	return t
}

// fits is how many tasks fit on a node that the job may use.
func (d *demand) fits(sp *space) int {
	cpus := sp.free
	if sp.closed != 0 && sp.closed != int64(d.user)+1 || d.alone && !d.own(sp) {
		return 0
	}
	if d.piece != nil {
		if _, ok := sp.node.Inventory.FindPart(d.piece, sp.parts, sp.gpus); !ok {
			return 0
		}
	}
	if d.exclusive && (sp.busy && d.over == 0 || cpus < sp.all) {
		return 0
	}
	if d.leaves != nil {
		sp = d.usable(sp)
		cpus = sp.cpu
	}
	per := d.per(&sp.node.Inventory)
	least := d.leastCPUs(sp)
	if cpus < least || cpus < per && !d.overcommit {
		return 0
	}
	cpus = d.cpusByMem(sp, cpus)
	if cpus < least {
		return 0
	}
	n := cpus
	if per > 1 {
		n = cpus / per
	}
	if d.perSocket > 0 {
		n = min(n, d.tasksBySocket(sp, per))
	}
	if d.overcommit {
		n = max(n, d.tasks)
	}
	if d.bound && d.gpus {
		n = min(n, d.tasksBeside(sp))
	}
	n = min(n, d.tasksByGPU(sp))
	if d.single && n < d.tasks {
		return 0
	}
	if d.mostTasks > 0 {
		if d.perNode > d.mostTasks {
			return 0
		}
		n = min(n, d.mostTasks)
	}
	if d.perNode > 0 {
		if n < min(d.perNode, d.tasks) {
			return 0
		}
		n = min(n, d.perNode)
	}
	return n
}

// leastCPUs is how many CPUs of a node the job must have. A job with --exclusive has all of its GPUs, and --cpus-per-gpu counts for
// each of them.
func (d *demand) leastCPUs(sp *space) int {
	least := max(d.minCPUs, 1)
	if d.allGPUs {
		least = max(least, d.cpusPerGPU*len(sp.node.Inventory.GPUs))
	}
	return least
}

// usable is a node without jobs as the tasks of a job may use it that says itself what it leaves for the system.
func (d *demand) usable(sp *space) *space {
	own := *sp
	own.cpus = sp.node.Inventory.UsableBy(d.leaves)
	own.cpu = own.cpus.Len()
	own.free, own.all, own.unit = own.cpu, own.cpu, unitOf(&sp.node.Inventory, false)
	return &own
}

// cpusByMem lowers a number of CPUs to what memory allows; 0 if there is not enough at all.
func (d *demand) cpusByMem(sp *space, cpus int) int {
	if !d.memAlloc {
		return cpus
	}
	switch {
	case d.mem.Per == cluster.MemPerNode && (sp.mem < d.mem.MB || d.mem.MB == 0 && sp.mem < usable(sp.node)): // --mem=0: all of it
		return 0
	case d.exclusive && sp.mem < d.memory(sp, cpus, sp.gpu): // that of all its CPUs or GPUs
		return 0
	case d.mem.Per == cluster.MemPerCPU && d.mem.MB > 0 && !d.exclusive:
		allowed, t := int(sp.mem/d.mem.MB), max(sp.node.Inventory.ThreadsPerCore, 1)
		switch {
		case d.oneThread:
			allowed *= t
		case d.wholeCore:
			allowed -= allowed % t
		}
		return min(cpus, allowed)
	}
	return cpus
}

// tasksByGPU is how many tasks the node's free GPUs, and memory that is counted by them, allow.
func (d *demand) tasksByGPU(sp *space) int {
	if !d.gpus {
		if d.memAlloc && d.mem.Per == cluster.MemPerGPU && sp.mem < d.mem.MB {
			return 0
		}
		return math.MaxInt
	}
	if !enough(sp, d.gpuNode) {
		return 0
	}
	if len(d.gpuSocket) > 0 {
		if _, ok := d.eachSocket(sp, d.gpuNode); !ok {
			return 0
		}
	}
	n, base := math.MaxInt, int(sum(d.gpuNode))
	for _, g := range d.gpuTask {
		n = min(n, (gpuCount(sp, g.Type)-base)/int(g.Count))
	}
	if len(d.gpuTask) == 0 && len(d.gpuJob) > 0 && d.gpusFree(sp) == 0 {
		return 0
	}
	if d.memAlloc && d.mem.Per == cluster.MemPerGPU && d.mem.MB > 0 {
		allowed := int(sp.mem / d.mem.MB)
		switch per := int(sum(d.gpuTask)); {
		case per > 0:
			n = min(n, (allowed-base)/per)
		case allowed < max(base+min(d.gpusFree(sp), int(sum(d.gpuJob))), 1):
			return 0
		}
	}
	return max(n, 0)
}

// gives is how many free GPUs of a type a node can give to --gpus: for each it needs its CPUs.
func (d *demand) gives(sp *space, kind string) int {
	n := gpuCount(sp, kind)
	if d.cpusPerGPU > 0 {
		if d.leaves != nil {
			sp = d.usable(sp)
		}
		n = min(n, sp.free/d.cpusPerGPU)
	}
	return n
}

// usable is the memory of a node that jobs may have.
func usable(n *cluster.Node) cluster.MemMB { return n.Inventory.MemMB - n.Inventory.SpecMemMB }

func gpuCount(sp *space, kind string) (n int) {
	for k := range sp.gpus.All() {
		if kind == "" || sp.node.Inventory.GPUs[k].Type == kind {
			n++
		}
	}
	return n
}
