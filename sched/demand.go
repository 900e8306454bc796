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
	part            *cluster.Partition
	minNodes        int
	maxNodes        int  // 0: as many as it takes
	partMin         int  // fewest nodes that the partition allows; 0: any
	partMax         int  // most nodes that the partition allows; 0: any
	tasks           int  // 0: as many as fit on minNodes
	tasksPerNode    int  // tasks per node, 0: free
	maxTasksPerNode int  // on a node of this cluster, 0: any number
	cpusPerTask     int  // see cpusPerTaskOn
	tasksPerSocket  int  // tasks per socket, 0: free
	tasksPerCore    int  // tasks per core, 0: as many as it has threads
	oneThread       bool // a CPU is a core (--hint=nomultithread, --threads-per-core=1)
	cpusPerGPU      int
	gpuSocket       []cluster.GRES // per socket
	minCPUs         int            // per node
	mem             cluster.Mem
	gpuNode         []cluster.GRES // per node
	gpuJob          []cluster.GRES
	gpuTask         []cluster.GRES
	gpus            bool          // of any of these
	gpuPart         *cluster.GRES // of one GPU of each node
	exclusive       bool
	ownSpec         *cluster.Layout // says what the job leaves of its nodes for the system (-S); nil: what the nodes say
	evenly          bool            // tasks are spread evenly over its nodes
	everyNode       bool            // each node of a range gets tasksPerNode
	jobsPerCPU      int             // how many jobs may share a CPU; 0: none
	excluded        map[cluster.NodeName]bool
	wishes          []cluster.Wish // ways to meet --prefer and --constraint, the best first
	wholeCore       bool           // it has all threads of its cores, not only the CPUs that it asks for
	memAlloc        bool
	tmpMB           int64
	overcommit      bool
	tasksAsked      bool // a number of tasks was asked for
	user            uint32
	oneUser         bool // only beside jobs of the same user (--exclusive=user)
	snapshot        *cluster.Snapshot
	oneNode         bool // one node must hold all tasks
	fewestNodes     bool // of a range of nodes it takes the fewest
	spread          bool // over as many nodes as there are
	contiguous      bool
	topoBlocks      bool // the cluster has topology/block
	switches        int  // leaf switches at most, 0: any
	topoOptional    bool // switches matter only to jobs that ask for some
	segment         int  // nodes of a segment in a block, 0: all
	sameBlock       bool // all segments in one higher block
	separateBlocks  bool // no two segments in one base block
	isLarge         bool // it avoids nodes that had trouble of late, if others fit as well
	// How the configuration orders nodes: the least loaded first, jobs of one CPU from the end.
	leastLoaded, atEnd, bestFit bool
	bestFitGPUs                 bool // the best fit where nodes have GPUs
	byFragmentation             bool // best is where fragmentation grows least
	nodesAsked                  bool // a number of nodes, or nodes by name
	countAsked                  bool // a number of nodes
	// blockSockets: one socket is filled before the next (-m x:block).
	blockSockets bool
	gpusUnbound  bool               // GPUs need not be near the CPUs (--gres-flags=disable-binding)
	gpusBound    bool               // GPUs must be near the CPUs (--gres-flags=enforce-binding)
	allGPUs      bool               // it has all GPUs of its nodes, and CPUs for each
	wanted       []cluster.NodeName // -w: these must all be part of it
	nodeNeed     nodeNeed           // of one node, for ratings
	// At least so many of each a node must have (-B and its like).
	sockets, cores, threads int
}

// fillsSockets reports whether a distribution fills one socket before the next: -m x:block, and planes.
func fillsSockets(distribution string) bool {
	return cluster.BlockSockets(distribution) || strings.HasPrefix(strings.ToLower(distribution), "plane")
}

// newDemand works out what a spec asks of a partition, away from some nodes.
func newDemand(s *cluster.Snapshot, p *cluster.Partition, spec *cluster.JobSpec, avoid []cluster.Avoided) *demand {
	cfg := s.Config()
	d := &demand{
		part: p, snapshot: s, user: spec.UID,
		minNodes: spec.MinNodes, maxNodes: spec.MaxNodes,
		tasks: spec.Tasks, tasksPerNode: spec.TasksPerNode,
		tasksPerSocket: spec.TasksPerSocket, tasksPerCore: spec.TasksPerCore,
		maxTasksPerNode: cfg.MaxTasksPerNode,
		cpusPerTask:     max(spec.CPUsPerTask, 1), minCPUs: spec.MinCPUs, cpusPerGPU: spec.CPUsPerGPU,
		sockets: spec.SocketsPerNode, cores: spec.CoresPerSocket, threads: spec.ThreadsPerCore,
		mem: memOf(spec.Mem, p, cfg), memAlloc: cfg.MemAlloc, tmpMB: spec.TmpMB,

		countAsked: spec.MinNodes > 0 || spec.MaxNodes > 0,
		nodesAsked: spec.MinNodes > 0 || spec.MaxNodes > 0 || len(spec.NodeList) > 0,
		tasksAsked: spec.Tasks > 0,
		wanted:     spec.NodeList,
		excluded:   excludedNodes(spec.Exclude, avoid),
		wishes:     wishesOf(spec),

		exclusive:  spec.Sharing == cluster.ShareExclusive || p.OverSubscribe == cluster.OverExclusive,
		oneUser:    spec.Sharing == cluster.ShareUser,
		jobsPerCPU: p.JobsPerCPU(spec),
		overcommit: spec.Overcommit,
		wholeCore:  cfg.CoreAlloc,

		fewestNodes: spec.UseMinNodes, spread: spec.Spread, contiguous: spec.Contiguous,
		topoBlocks: s.HasBlocks(), topoOptional: cfg.TopoOptional,
		segment: spec.Segment, sameBlock: spec.ConsolidateSegments, separateBlocks: spec.SpreadSegments,
		isLarge:     isLargeJob(spec),
		leastLoaded: cfg.LLN || p.LLN,
		bestFit:     cfg.BestFit || cfg.Gradient, bestFitGPUs: bestFitByDefault(cfg), nodeNeed: nodeNeedOf(s, p, spec),

		oneThread:    hasOneThread(spec),
		blockSockets: fillsSockets(spec.Distribution) || cfg.DistBlock && spec.Distribution == "",
		gpusUnbound:  strings.Contains(spec.GRESFlags, "disable-binding"),
		gpusBound:    strings.Contains(spec.GRESFlags, "enforce-binding"),
	}
	if spec.Specializes() {
		d.ownSpec, d.exclusive, d.jobsPerCPU = spec.Layout, true, 0
	}
	blocksWereFound := len(cfg.Blocks) == 0 // and not configured: these keep no job waiting
	if blocksWereFound && d.segment > 0 && spec.MinNodes%d.segment != 0 {
		d.segment = 0
	}
	if cfg.OneTaskPerCore && d.tasksPerCore == 0 {
		d.tasksPerCore = 1
	}
	d.takeGPUs(spec)
	d.evenly = (d.exclusive || cfg.SocketAlloc) && !cfg.PackNodes && len(d.gpuTask)+len(d.gpuSocket) == 0
	d.settleCounts(spec)
	if d.partMin, d.partMax = s.NodeBounds(p, spec); !d.countAsked {
		d.minNodes = max(d.minNodes, d.partMin)
		d.tasks = max(d.tasks, d.minNodes)
	}
	d.byFragmentation = cfg.Gradient && d.minNodes <= 1
	d.oneNode = d.maxNodes == 1 || d.partMax == 1
	oneCPU := d.minNodes == 1 && d.tasks*d.cpusPerTask == 1 && d.minCPUs <= 1
	d.atEnd = cfg.SerialAtEnd && oneCPU
	return d
}

// memOf is the memory that is asked for, or else the partition's or the cluster's default.
func memOf(asked cluster.Mem, p *cluster.Partition, cfg *cluster.Config) cluster.Mem {
	for _, m := range [...]cluster.Mem{asked, p.DefMem} {
		if m.Per != cluster.MemDefault {
			return m
		}
	}
	return cfg.DefMem
}

// hasOneThread reports whether a job uses one thread of each of its cores.
func hasOneThread(spec *cluster.JobSpec) bool {
	hint := strings.ToLower(spec.Hint)
	return spec.ThreadsPerCore == 1 || strings.Contains(hint, "nomultithread") ||
		strings.Contains(hint, "compute_bound") || strings.Contains(hint, "memory_bound")
}

// excludedNodes is the nodes that a job keeps off by name; nil if there are none.
func excludedNodes(exclude []cluster.NodeName, avoid []cluster.Avoided) map[cluster.NodeName]bool {
	if len(exclude)+len(avoid) == 0 {
		return nil
	}
	out := map[cluster.NodeName]bool{}
	for _, n := range exclude {
		out[n] = true
	}
	for _, a := range avoid {
		out[a.Node] = true
	}
	return out
}

// takeGPUs takes over what is asked of GPUs.
func (d *demand) takeGPUs(spec *cluster.JobSpec) {
	d.gpuNode, d.gpuJob = gpusOf(spec.PerNode), gpusOf(spec.PerJob)
	d.gpuTask, d.gpuSocket = gpusOf(spec.PerTask), gpusOf(spec.PerSocket)
	d.gpuPart = cluster.Part(spec.PerNode)
	if len(d.gpuSocket) > 0 && len(d.gpuJob) > 0 { // each socket has its own, in whatever sum, as in Slurm
		if spec.MinNodes == 0 {
			perNode := int(max(sumGRES(d.gpuSocket), 1)) * max(spec.SocketsPerNode, 1)
			nodes := (int(sumGRES(d.gpuJob)) + perNode - 1) / perNode
			d.minNodes = max(d.minNodes, min(nodes, cmp.Or(spec.Tasks, math.MaxInt)))
		}
		d.gpuJob, d.fewestNodes = nil, true
	}
	d.gpus = len(d.gpuNode)+len(d.gpuJob)+len(d.gpuTask)+len(d.gpuSocket) > 0
	d.allGPUs = d.gpus && d.cpusPerGPU > 0 && spec.Sharing == cluster.ShareExclusive
}

// wantsMostNodes reports whether as many nodes as possible are wanted, of a range.
func (d *demand) wantsMostNodes() bool {
	return d.spread || !d.fewestNodes && d.maxNodes > d.minNodes && !d.fewNodesForGPUs()
}

// fewNodesForGPUs reports whether the job's GPUs, which are not asked for by node, are to be on few nodes.
func (d *demand) fewNodesForGPUs() bool { return len(d.gpuJob)+len(d.gpuTask) > 0 }

// From how many nodes or GPUs on a job is large: the more it has, the likelier one of them ends it.
const (
	largeNodes = 4
	largeGPUs  = 64
)

// isLargeJob reports whether a job avoids nodes that had trouble of late.
func isLargeJob(spec *cluster.JobSpec) bool {
	nodes := max(spec.MinNodes, 1)
	gpus := int64(0)
	for _, ask := range []struct {
		list  []cluster.GRES
		times int
	}{
		{spec.PerJob, 1}, {spec.PerNode, nodes},
		{spec.PerTask, max(spec.Tasks, nodes*max(spec.TasksPerNode, 1))},
		{spec.PerSocket, nodes * max(spec.SocketsPerNode, 1)},
	} {
		for _, g := range gpusOf(ask.list) {
			gpus += g.Count * int64(ask.times)
		}
	}
	return nodes >= largeNodes || gpus >= largeGPUs
}

// ignoresTopology reports whether the job goes anywhere, whatever switches there are.
func (d *demand) ignoresTopology() bool { return d.topoOptional && d.switches == 0 }

// constrainsLayout reports whether nodes that suffice by number may not go together.
func (d *demand) constrainsLayout() bool { return d.contiguous || d.switches > 0 || d.topoBlocks }

// settleCounts works out numbers of nodes and tasks from what was asked, in Slurm's order of precedence.
func (d *demand) settleCounts(spec *cluster.JobSpec) {
	d.minNodes = max(d.minNodes, len(spec.NodeList), 1)
	d.tasksFromGPUs(spec)
	if d.tasks == 0 && d.tasksPerNode > 0 {
		d.tasks, d.everyNode = d.tasksPerNode*d.minNodes, true
		d.maxNodes = min(d.maxNodes, max(d.tasks, d.minNodes)) // of a range no more nodes than tasks, as in Slurm
	}
	for _, most := range [...]int{d.maxTasksPerNode, d.tasksPerNode} {
		if d.tasks > 0 && most > 0 {
			d.minNodes = max(d.minNodes, (d.tasks+most-1)/most)
		}
	}
	if d.tasks == 0 {
		d.tasks = d.minNodes
	}
	d.nodesFromGPUs()
	d.cpusFromGPUs(spec.CPUsPerGPU)
	if d.tasks < d.minNodes && spec.Tasks > 0 && len(spec.NodeList) == 0 {
		d.minNodes = max(d.tasks, 1)
		if d.maxNodes > 0 {
			d.maxNodes = max(d.minNodes, min(d.maxNodes, d.tasks))
		}
	}
}

// tasksFromGPUs works out tasks that were not asked for, where GPUs tell how many they are.
func (d *demand) tasksFromGPUs(spec *cluster.JobSpec) {
	if total := sumGRES(d.gpuJob); total > 0 && sumGRES(d.gpuTask) > 0 && d.tasks == 0 {
		d.tasks = int(total / sumGRES(d.gpuTask))
	}
	if node, task := sumGRES(d.gpuNode), sumGRES(d.gpuTask); node > 0 && task > 0 {
		d.tasksPerNode, d.gpuTask = int(node/task), nil
	}
	if each := spec.TasksPerGPU; each > 0 && d.tasks == 0 {
		d.tasks = each * int(cmp.Or(sumGRES(d.gpuJob), sumGRES(d.gpuNode)*int64(d.minNodes)))
	}
}

// nodesFromGPUs works out nodes where GPUs are asked for by node and in all.
func (d *demand) nodesFromGPUs() {
	node := sumGRES(d.gpuNode) + sumGRES(d.gpuSocket)*int64(max(d.sockets, 1))
	job := sumGRES(d.gpuJob)
	if node == 0 || job == 0 || len(d.gpuTask) > 0 || job%node != 0 {
		return
	}
	d.minNodes = max(d.minNodes, int(job/node))
	d.maxNodes, d.gpuJob = d.minNodes, nil
	d.tasks = max(d.tasks, d.minNodes)
}

// cpusFromGPUs works out CPUs where so many are asked for by GPU.
func (d *demand) cpusFromGPUs(each int) {
	if each <= 0 {
		return
	}
	onSockets := sumGRES(d.gpuSocket) * int64(max(d.sockets, 1))
	d.minCPUs = max(d.minCPUs, each*int(onSockets), each*int(sumGRES(d.gpuNode)))
	d.cpusPerTask = max(d.cpusPerTask, each*int(sumGRES(d.gpuTask)))
}

func gpusOf(list []cluster.GRES) (out []cluster.GRES) {
	for _, g := range list {
		if g.Name == "gpu" && g.Count > 0 {
			out = append(out, g)
		}
	}
	return out
}

func sumGRES(list []cluster.GRES) (n int64) {
	for _, g := range list {
		n += g.Count
	}
	return n
}

// mayUse reports whether the node is one the job may use at all.
func (d *demand) mayUse(n *cluster.Node) bool {
	return (d.excluded == nil || !d.excluded[n.Name]) && d.suitsInventory(&n.Inventory)
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
			both = append(both, cluster.Wish{All: func(f []string) bool { return a.All(f) && b.All(f) },
				Counts: slices.Concat(a.Counts, b.Counts)})
		}
	}
	return append(both, wishes...)
}

// meetsConstraint reports whether a node with these features may be used in some way.
func (d *demand) meetsConstraint(features []string) bool {
	return d.wishes == nil || slices.ContainsFunc(d.wishes, func(w cluster.Wish) bool { return w.All(features) })
}

// suitsInventory reports whether the job may use nodes of this hardware.
func (d *demand) suitsInventory(inv *cluster.Inventory) bool {
	hasMem := d.mem.Per != cluster.MemPerNode || inv.MemMB >= d.mem.MB
	return hasMem && inv.TmpMB >= d.tmpMB && d.hasSockets(inv) && d.meetsConstraint(inv.Features)
}

// hasSockets reports whether the hardware has the sockets, cores and threads that -B and its like ask for.
func (d *demand) hasSockets(inv *cluster.Inventory) bool {
	return inv.Sockets >= d.sockets && inv.CoresPerSocket >= d.cores && inv.ThreadsPerCore >= d.threads
}

// nodeRoom is what one node gives to the job.
type nodeRoom struct {
	free  *nodeFree
	tasks int // how many tasks fit
	share int // index of its share in the allocation
}

// allocateIn finds an allocation in a free set that keeps off what it must, or nil.
func (d *demand) allocateIn(fs *freeSet, avoid exclusion) *cluster.Alloc {
	cf := newClassFit(d, fs)
	if cf.hopeless(fs.classIndex(nil, 0)) {
		return nil
	}
	return cf.newNodeFit(fs, nil, 0).find(avoid)
}

// mostNodes is the largest number of nodes that the job may get of so many.
func (d *demand) mostNodes(nodes int) int {
	most := d.maxNodes
	if most == 0 || d.partMax > 0 && most > d.partMax {
		most = cmp.Or(d.partMax, nodes)
	}
	if d.maxNodes == 0 && d.minNodes > 1 {
		most = min(most, max(d.minNodes, len(d.wanted)))
	}
	return most
}

func (d *demand) gpusFree(free *nodeFree) (n int) {
	for _, g := range d.gpuJob {
		n += countGPUs(free, g.Type)
	}
	return n
}

// tasksOnAny is tasksOn for any node; 0 if the job may not use it.
func (d *demand) tasksOnAny(free *nodeFree) int {
	if !d.mayUse(free.node) {
		return 0
	}
	return d.tasksOn(free)
}

// allOfUser reports whether all jobs of a node are the user's.
func (d *demand) allOfUser(free *nodeFree) bool {
	if free.jobs == 0 {
		return true
	}
	startedHere := free.startedUser == 0 || free.startedUser == int64(d.user)+1
	return startedHere && d.snapshot.AllOf(d.snapshot.Load(free.node.Name), d.user)
}

// cpusPerTaskOn is how many CPUs a task gets on nodes of this hardware.
func (d *demand) cpusPerTaskOn(inv *cluster.Inventory) int {
	t := inv.ThreadsPerCore
	switch {
	case t <= 1:
	case d.oneThread:
		return d.cpusPerTask * t
	case d.tasksPerCore > 0 && d.tasksPerCore < t:
		each := t / d.tasksPerCore
		return (d.cpusPerTask + each - 1) / each * each
	}
	return d.cpusPerTask
}

// threadsPerCore is how many threads of a core the job uses: all of them, or fewer where a task is to have the core
// to itself.
func (d *demand) threadsPerCore(inv *cluster.Inventory) int {
	t := max(inv.ThreadsPerCore, 1)
	switch {
	case d.oneThread:
		return 1
	case d.tasksPerCore > 0 && d.cpusPerTask == 1:
		return min(d.tasksPerCore, t)
	}
	return t
}

// tasksOn is how many tasks fit on a node that the job may use.
func (d *demand) tasksOn(free *nodeFree) int {
	if !d.mayJoin(free) {
		return 0
	}
	cpus := free.wholeCPUs
	if d.ownSpec != nil {
		free = d.withOwnSpec(free)
		cpus = free.cpuCount
	}
	each, least := d.cpusPerTaskOn(&free.node.Inventory), d.leastCPUs(free)
	if cpus < least || cpus < each && !d.overcommit {
		return 0
	}
	cpus = d.cpusByMem(free, cpus)
	if cpus < least {
		return 0
	}
	n := cpus
	if each > 1 {
		n = cpus / each
	}
	if d.tasksPerSocket > 0 {
		n = min(n, d.tasksBySocket(free, each))
	}
	if d.overcommit {
		n = max(n, d.tasks)
	}
	if d.gpusBound && d.gpus {
		n = min(n, d.tasksNearGPUs(free))
	}
	return d.allowedOnNode(min(n, d.tasksByGPU(free)))
}

// mayJoin reports whether those that are on a node leave it to the job: it is not another user's or, for a job that
// wants whole nodes, in use, and has the part of a GPU that the job asks for.
func (d *demand) mayJoin(free *nodeFree) bool {
	if free.onlyUser != 0 && free.onlyUser != int64(d.user)+1 {
		return false
	}
	if d.oneUser && !d.allOfUser(free) {
		return false
	}
	if d.gpuPart != nil {
		if _, ok := free.node.Inventory.FindPart(d.gpuPart, free.gpuParts, free.gpus); !ok {
			return false
		}
	}
	inUse := free.busy && d.jobsPerCPU == 0 || free.wholeCPUs < free.allCPUs
	return !d.exclusive || !inUse
}

// allowedOnNode is how many tasks the job may have on a node that holds so many; 0 where these are too few.
func (d *demand) allowedOnNode(n int) int {
	if d.oneNode && n < d.tasks {
		return 0
	}
	if d.maxTasksPerNode > 0 {
		if d.tasksPerNode > d.maxTasksPerNode {
			return 0
		}
		n = min(n, d.maxTasksPerNode)
	}
	if d.tasksPerNode > 0 {
		if n < min(d.tasksPerNode, d.tasks) {
			return 0
		}
		n = min(n, d.tasksPerNode)
	}
	return n
}

// leastCPUs is how many CPUs of a node the job must have. A job with --exclusive has all of its GPUs, and
// --cpus-per-gpu counts for each of them.
func (d *demand) leastCPUs(free *nodeFree) int {
	least := max(d.minCPUs, 1)
	if d.allGPUs {
		least = max(least, d.cpusPerGPU*len(free.node.Inventory.GPUs))
	}
	return least
}

// withOwnSpec is a node without jobs, as a job may use it that says itself what it leaves for the system.
func (d *demand) withOwnSpec(free *nodeFree) *nodeFree {
	own := *free
	own.cpus = free.node.Inventory.UsableBy(d.ownSpec)
	own.cpuCount = own.cpus.Len()
	own.wholeCPUs, own.allCPUs, own.unit = own.cpuCount, own.cpuCount, unitOf(&free.node.Inventory, false)
	return &own
}

// cpusByMem lowers a number of CPUs to what memory allows; 0 if there is not enough at all.
func (d *demand) cpusByMem(free *nodeFree, cpus int) int {
	if !d.memAlloc {
		return cpus
	}
	switch {
	case d.mem.Per == cluster.MemPerNode && free.mem < d.mem.MB:
		return 0
	case d.mem.Per == cluster.MemPerNode && d.mem.MB == 0 && free.mem < usableMemory(free.node): // --mem=0: all of it
		return 0
	case d.exclusive && free.mem < d.memory(free, cpus, free.gpuCount): // that of all its CPUs or GPUs
		return 0
	case d.mem.Per == cluster.MemPerCPU && d.mem.MB > 0 && !d.exclusive:
		allowed, t := int(free.mem/d.mem.MB), max(free.node.Inventory.ThreadsPerCore, 1)
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
func (d *demand) tasksByGPU(free *nodeFree) int {
	if !d.gpus {
		if d.memAlloc && d.mem.Per == cluster.MemPerGPU && free.mem < d.mem.MB {
			return 0
		}
		return math.MaxInt
	}
	if !hasGPUs(free, d.gpuNode) {
		return 0
	}
	if len(d.gpuSocket) > 0 {
		if _, ok := d.pickSocketGPUs(free, d.gpuNode); !ok {
			return 0
		}
	}
	n, base := math.MaxInt, int(sumGRES(d.gpuNode))
	for _, g := range d.gpuTask {
		n = min(n, (countGPUs(free, g.Type)-base)/int(g.Count))
	}
	if len(d.gpuTask) == 0 && len(d.gpuJob) > 0 && d.gpusFree(free) == 0 {
		return 0
	}
	if d.memAlloc && d.mem.Per == cluster.MemPerGPU && d.mem.MB > 0 {
		allowed := int(free.mem / d.mem.MB)
		switch per := int(sumGRES(d.gpuTask)); {
		case per > 0:
			n = min(n, (allowed-base)/per)
		case allowed < max(base+min(d.gpusFree(free), int(sumGRES(d.gpuJob))), 1):
			return 0
		}
	}
	return max(n, 0)
}

// gpusGivenBy is how many free GPUs of a type a node can give to --gpus: for each it needs its CPUs.
func (d *demand) gpusGivenBy(free *nodeFree, kind string) int {
	n := countGPUs(free, kind)
	if d.cpusPerGPU > 0 {
		if d.ownSpec != nil {
			free = d.withOwnSpec(free)
		}
		n = min(n, free.wholeCPUs/d.cpusPerGPU)
	}
	return n
}

// usableMemory is the memory of a node that jobs may have.
func usableMemory(n *cluster.Node) cluster.MemMB { return n.Inventory.MemMB - n.Inventory.SpecMemMB }

func countGPUs(free *nodeFree, kind string) (n int) {
	for k := range free.gpus.All() {
		if kind == "" || free.node.Inventory.GPUs[k].Type == kind {
			n++
		}
	}
	return n
}
