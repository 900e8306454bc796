package place

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// Demand is what a job needs, worked out from its spec and the partition it would run in.
type Demand struct {
	part            *cluster.Partition
	MinNodes        int
	maxNodes        int  // 0: as many as it takes
	PartMin         int  // fewest nodes that the partition allows; 0: any
	PartMax         int  // most nodes that the partition and limits of accounts and QOS allow; 0: any
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
	gpus            bool // of any of these
	sharedNeed           // of each node
	exclusive       bool
	ownSpec         *cluster.Layout // what it leaves of its nodes for the system (-S); nil: what they say
	evenly          bool            // tasks are spread evenly over its nodes
	everyNode       bool            // each node of a range gets tasksPerNode
	JobsPerCPU      int             // how many jobs may share a CPU; 0: none
	excluded        nodeRule
	wishes          []cluster.Wish // ways to meet --prefer and --constraint, the best first
	wholeCore       bool           // it has all threads of its cores, not only the CPUs that it asks for
	memAlloc        bool
	tasksAsked      bool // a number of tasks was asked for
	user            uint32
	oneUser         bool // only beside jobs of the same user (--exclusive=user)
	snapshot        *cluster.Snapshot
	oneNode         bool // one node must hold all tasks
	flags           Flags
	topoBlocks      bool // the cluster has topology/block
	Switches        int  // leaf switches at most, 0: any
	topoOptional    bool // switches matter only to jobs that ask for some
	isLarge         bool // it avoids nodes that had recent trouble, if others fit as well
	// How the configuration orders nodes: the least loaded first, jobs of one CPU from the end.
	leastLoaded, atEnd, bestFit bool
	bestFitGPUs                 bool               // the best fit where nodes have GPUs
	byFragmentation             bool               // best is where fragmentation grows least
	nodesAsked                  bool               // a number of nodes, or nodes by name
	countAsked                  bool               // a number of nodes
	gpusUnbound                 bool               // GPUs need not be near the CPUs (--gres-flags=disable-binding)
	gpusBound                   bool               // GPUs must be near the CPUs (--gres-flags=enforce-binding)
	allGPUs                     bool               // it has all GPUs of its nodes, and CPUs for each
	wanted                      []cluster.NodeName // -w: these must all be part of it
	nodeNeed                    nodeNeed           // of one node, for ratings
	asked                       Numbers            // of segments what segmentOf says
}

// FillsSockets reports whether a distribution fills one socket before the next: -m x:block, and planes.
func FillsSockets(distribution string) bool {
	return cluster.BlockSockets(distribution) || strings.HasPrefix(strings.ToLower(distribution), "plane")
}

// NewDemand works out what a spec asks of a partition, away from some nodes.
func NewDemand(s *cluster.Snapshot, p *cluster.Partition, spec *cluster.JobSpec, avoid []cluster.Avoided) *Demand {
	cfg := s.Config()
	d := &Demand{
		part: p, snapshot: s, user: spec.UID,
		MinNodes: spec.MinNodes, maxNodes: spec.MaxNodes,
		tasks: spec.Tasks, tasksPerNode: spec.TasksPerNode,
		tasksPerSocket: spec.TasksPerSocket, tasksPerCore: spec.TasksPerCore,
		maxTasksPerNode: cfg.MaxTasksPerNode,
		cpusPerTask:     max(spec.CPUsPerTask, 1), minCPUs: spec.MinCPUs, cpusPerGPU: spec.CPUsPerGPU,
		mem: memOf(spec.Mem, p, cfg), memAlloc: cfg.MemAlloc, asked: NumbersOf(spec),

		countAsked: spec.MinNodes > 0 || spec.MaxNodes > 0,
		nodesAsked: spec.MinNodes > 0 || spec.MaxNodes > 0 || len(spec.Wanted()) > 0,
		tasksAsked: spec.Tasks > 0,
		wanted:     spec.Wanted(),
		excluded:   nodeRule{excludedNodes(spec.Exclude, avoid), onlyNodes(spec)},
		wishes:     wishesOf(spec),

		exclusive:  spec.Sharing == cluster.ShareExclusive || p.OverSubscribe == cluster.OverExclusive,
		oneUser:    spec.Sharing == cluster.ShareUser,
		JobsPerCPU: p.JobsPerCPU(spec),
		wholeCore:  cfg.CoreAlloc,

		flags:      FlagsOf(spec),
		topoBlocks: s.HasBlocks(), topoOptional: cfg.TopoOptional,
		isLarge:     isLargeJob(spec),
		leastLoaded: cfg.LLN || p.LLN,
		bestFit:     cfg.BestFit || cfg.Gradient, bestFitGPUs: bestFitByDefault(cfg), nodeNeed: nodeNeedOf(s, p, spec),

		oneThread:   hasOneThread(spec),
		gpusUnbound: strings.Contains(spec.GRESFlags, "disable-binding"),
		gpusBound:   strings.Contains(spec.GRESFlags, "enforce-binding"),
	}
	d.asked[segmentNodes] = int64(segmentOf(cfg, spec))
	if spec.Specializes() {
		d.ownSpec = &cluster.Layout{CoreSpec: spec.CoreSpec, ThreadSpec: spec.ThreadSpec}
		d.exclusive = true
		d.JobsPerCPU = 0
	}
	if cfg.DistBlock && d.flags.has(anyDistribution) {
		d.flags |= fillsSockets
	}
	if cfg.OneTaskPerCore && d.tasksPerCore == 0 {
		d.tasksPerCore = 1
	}
	d.takeGPUs(spec)
	d.evenly = dealsEvenly(d, cfg)
	d.settleCounts(spec)
	d.PartMin, d.PartMax = s.NodeBounds(p, spec)
	if !d.countAsked {
		d.MinNodes = max(d.MinNodes, d.PartMin)
		d.tasks = max(d.tasks, d.MinNodes)
	}
	d.byFragmentation = cfg.Gradient && d.MinNodes <= 1
	d.oneNode = d.maxNodes == 1 || d.PartMax == 1
	d.atEnd = cfg.SerialAtEnd && isSerial(d)
	return d
}

// isSerial reports whether the job wants one CPU.
func isSerial(d *Demand) bool {
	return d.MinNodes == 1 && d.tasks*d.cpusPerTask == 1 && d.minCPUs <= 1
}

// dealsEvenly reports whether the tasks are spread evenly over the nodes.
func dealsEvenly(d *Demand, cfg *cluster.Config) bool {
	if cfg.PackNodes || len(d.gpuTask)+len(d.gpuSocket) > 0 {
		return false
	}
	return d.exclusive || cfg.SocketAlloc
}

// segmentOf is how many nodes a segment has. Blocks that were found, and not configured, keep no job waiting.
func segmentOf(cfg *cluster.Config, spec *cluster.JobSpec) int {
	wereFound := len(cfg.Blocks) == 0
	if spec.Segment > 0 && wereFound && spec.MinNodes%spec.Segment != 0 {
		return 0
	}
	return spec.Segment
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
func (d *Demand) takeGPUs(spec *cluster.JobSpec) {
	d.gpuNode, d.gpuJob = gpusOf(spec.PerNode), gpusOf(spec.PerJob)
	d.gpuTask, d.gpuSocket = gpusOf(spec.PerTask), gpusOf(spec.PerSocket)
	d.sharedNeed = sharedNeed{cluster.Part(spec.PerNode), cluster.CountedIn(spec.PerNode)}
	if len(d.gpuSocket) > 0 && len(d.gpuJob) > 0 { // each socket has its own, in whatever sum, as in Slurm
		if spec.MinNodes == 0 {
			perNode := int(max(sumGRES(d.gpuSocket), 1)) * max(spec.SocketsPerNode, 1)
			nodes := (int(sumGRES(d.gpuJob)) + perNode - 1) / perNode
			d.MinNodes = max(d.MinNodes, min(nodes, cmp.Or(spec.Tasks, math.MaxInt)))
		}
		d.gpuJob = nil
		d.flags |= fewestNodes
	}
	d.gpus = len(d.gpuNode)+len(d.gpuJob)+len(d.gpuTask)+len(d.gpuSocket) > 0
	d.allGPUs = d.gpus && d.cpusPerGPU > 0 && spec.Sharing == cluster.ShareExclusive
}

// wantsMostNodes reports whether as many nodes as possible are wanted, of a range.
func (d *Demand) wantsMostNodes() bool {
	return d.flags.has(spread) || !d.flags.has(fewestNodes) && d.maxNodes > d.MinNodes && !d.fewNodesForGPUs()
}

// fewNodesForGPUs reports whether the job's GPUs, which are not asked for by node, are to be on few nodes.
func (d *Demand) fewNodesForGPUs() bool { return len(d.gpuJob)+len(d.gpuTask) > 0 }

// From how many nodes or GPUs on a job is large: the more it has, the likelier one of them ends it.
const (
	largeNodes = 4
	largeGPUs  = 64
)

// isLargeJob reports whether a job avoids nodes that had recent trouble.
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

// isChoosy reports whether nodes that suffice may not be those that the job wants.
func (d *Demand) isChoosy() bool {
	return anyOf(d.wishes != nil, d.wantsMostNodes(), d.constrainsLayout())
}

// ignoresTopology reports whether the job goes anywhere, whatever switches there are.
func (d *Demand) ignoresTopology() bool { return d.topoOptional && d.Switches == 0 }

// constrainsLayout reports whether nodes that suffice by number may not go together.
func (d *Demand) constrainsLayout() bool {
	return d.flags.has(contiguous) || d.Switches > 0 || d.topoBlocks
}

// settleCounts works out numbers of nodes and tasks from what was asked, in Slurm's order of precedence.
func (d *Demand) settleCounts(spec *cluster.JobSpec) {
	d.MinNodes = max(d.MinNodes, len(spec.Wanted()), 1)
	d.tasksFromGPUs(spec)
	if d.tasks == 0 && d.tasksPerNode > 0 {
		d.tasks = d.tasksPerNode * d.MinNodes
		d.everyNode = true
		d.maxNodes = min(d.maxNodes, max(d.tasks, d.MinNodes)) // of a range no more nodes than tasks, as in Slurm
	}
	for _, most := range [...]int{d.maxTasksPerNode, d.tasksPerNode} {
		if min(d.tasks, most) > 0 {
			d.MinNodes = max(d.MinNodes, (d.tasks+most-1)/most)
		}
	}
	d.tasks = cmp.Or(d.tasks, d.MinNodes)
	d.nodesFromGPUs()
	d.cpusFromGPUs(spec.CPUsPerGPU)
	if d.tasks < d.MinNodes && spec.Tasks > 0 && len(spec.Wanted()) == 0 {
		d.MinNodes = max(d.tasks, 1)
		if d.maxNodes > 0 {
			d.maxNodes = max(d.MinNodes, min(d.maxNodes, d.tasks))
		}
	}
}

// tasksFromGPUs works out tasks that were not asked for, where GPUs tell how many they are.
func (d *Demand) tasksFromGPUs(spec *cluster.JobSpec) {
	total := sumGRES(d.gpuJob)
	node := sumGRES(d.gpuNode)
	task := sumGRES(d.gpuTask)
	if d.tasks == 0 && min(total, task) > 0 {
		d.tasks = int(total / task)
	}
	if min(node, task) > 0 {
		d.tasksPerNode = int(node / task)
		d.gpuTask = nil
	}
	each := spec.TasksPerGPU
	if d.tasks == 0 && each > 0 {
		d.tasks = each * int(cmp.Or(total, node*int64(d.MinNodes)))
	}
}

// nodesFromGPUs works out nodes where GPUs are asked for by node and in all.
func (d *Demand) nodesFromGPUs() {
	node := sumGRES(d.gpuNode) + sumGRES(d.gpuSocket)*int64(max(d.asked.of(nodeSockets), 1))
	job := sumGRES(d.gpuJob)
	if min(node, job) == 0 || len(d.gpuTask) > 0 || job%node != 0 {
		return
	}
	d.MinNodes = max(d.MinNodes, int(job/node))
	d.maxNodes = d.MinNodes
	d.gpuJob = nil
	d.tasks = max(d.tasks, d.MinNodes)
}

// cpusFromGPUs works out CPUs where so many are asked for by GPU.
func (d *Demand) cpusFromGPUs(each int) {
	if each <= 0 {
		return
	}
	onSockets := sumGRES(d.gpuSocket) * int64(max(d.asked.of(nodeSockets), 1))
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
func (d *Demand) mayUse(n *cluster.Node) bool {
	return !d.isExcluded(n) && d.suitsInventory(&n.Inventory)
}

// nodeRule says which nodes a job keeps off by name: those of not, and all but those of only; nil: none.
type nodeRule struct{ not, only map[cluster.NodeName]bool }

// onlyNodes are the nodes of which the job takes some; nil: all.
func onlyNodes(spec *cluster.JobSpec) map[cluster.NodeName]bool {
	if len(spec.Wanted()) == len(spec.NodeList) {
		return nil
	}
	only := make(map[cluster.NodeName]bool, len(spec.NodeList))
	for _, n := range spec.NodeList {
		only[n] = true
	}
	return only
}

// isExcluded reports whether the job keeps off a node by name.
func (d *Demand) isExcluded(n *cluster.Node) bool {
	return d.excluded.not[n.Name] || d.excluded.only != nil && !d.excluded.only[n.Name]
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
func (d *Demand) meetsConstraint(features []string) bool {
	return d.wishes == nil || slices.ContainsFunc(d.wishes, func(w cluster.Wish) bool { return w.All(features) })
}

// suitsInventory reports whether the job may use nodes of this hardware.
func (d *Demand) suitsInventory(inv *cluster.Inventory) bool {
	if d.mem.Per == cluster.MemPerNode && inv.MemMB < d.mem.MB {
		return false
	}
	if inv.External && !d.flags.has(externally) {
		return false
	}
	if _, ok := inv.FindCounted(d.counted, nil); !ok {
		return false
	}
	return d.asked.allow(inv) && d.meetsConstraint(inv.Features)
}

// nodeRoom is what one node gives to the job.
type nodeRoom struct {
	free  *NodeFree
	tasks int // how many tasks fit
	share int // index of its share in the allocation
}

// FindIn finds an allocation in a free set that keeps off what it must, or nil.
func (d *Demand) FindIn(fs *FreeSet, avoid Exclusion) *cluster.Alloc {
	cf := newClassFit(d, fs)
	if cf.hopeless(fs.classIndex(nil, 0)) {
		return nil
	}
	return cf.newNodeFit(fs, nil, 0).find(avoid)
}

// mostNodes is the largest number of nodes that the job may get of so many.
func (d *Demand) mostNodes(nodes int) int {
	most := d.maxNodes
	if most == 0 || d.PartMax > 0 && most > d.PartMax {
		most = cmp.Or(d.PartMax, nodes)
	}
	if d.maxNodes == 0 && d.MinNodes > 1 && !d.flags.has(nodesAtLeast) {
		most = min(most, max(d.MinNodes, len(d.wanted)))
	}
	return most
}

func (d *Demand) gpusFree(free *NodeFree) (n int) {
	for _, g := range d.gpuJob {
		n += countGPUs(free, g.Type)
	}
	return n
}

// tasksOnAny is tasksOn for any node; 0 if the job may not use it.
func (d *Demand) tasksOnAny(free *NodeFree) int {
	if !d.mayUse(free.node) {
		return 0
	}
	return d.tasksOn(free)
}

// allOfUser reports whether all jobs of a node are the user's.
func (d *Demand) allOfUser(free *NodeFree) bool {
	if free.jobs == 0 {
		return true
	}
	startedHere := free.startedUser == 0 || free.startedUser == int64(d.user)+1
	return startedHere && d.snapshot.AllOf(d.snapshot.Load(free.node.Name), d.user)
}

// cpusPerTaskOn is how many CPUs a task gets on nodes of this hardware.
func (d *Demand) cpusPerTaskOn(inv *cluster.Inventory) int {
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
func (d *Demand) threadsPerCore(inv *cluster.Inventory) int {
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
func (d *Demand) tasksOn(free *NodeFree) int {
	if !d.mayJoin(free) {
		return 0
	}
	free = free.withinLimits(d)
	cpus := free.wholeCPUs
	if d.ownSpec != nil {
		free = d.withOwnSpec(free)
		cpus = free.cpuCount
	}
	each := d.cpusPerTaskOn(&free.node.Inventory)
	least := d.leastCPUs(free)
	if cpus < least || cpus < each && !d.flags.has(overcommit) {
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
	if d.flags.has(overcommit) {
		n = max(n, d.tasks)
	}
	if d.gpusBound && d.gpus {
		n = min(n, d.tasksNearGPUs(free))
	}
	return d.allowedOnNode(min(n, d.tasksByGPU(free)))
}

// mayJoin reports whether those that are on a node leave it to the job: it is not another user's or, for a job that
// wants whole nodes, in use, and has the part of a GPU that the job asks for.
func (d *Demand) mayJoin(free *NodeFree) bool {
	if d.hasOthers(free) {
		return false
	}
	if !d.hasShared(free) {
		return false
	}
	if !d.exclusive {
		return true
	}
	mayShare := !free.busy || d.JobsPerCPU > 0
	return mayShare && free.withinLimits(d).wholeCPUs >= free.allCPUs
}

// hasOthers reports whether a node is another user's, or the job is to have none but its user's beside it and some are.
func (d *Demand) hasOthers(free *NodeFree) bool {
	ofAll := free.onlyUser == 0
	own := free.onlyUser == int64(d.user)+1
	if !ofAll && !own {
		return true
	}
	return d.oneUser && !d.allOfUser(free)
}

// allowedOnNode is how many tasks the job may have on a node that holds so many; 0 where these are too few.
func (d *Demand) allowedOnNode(n int) int {
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
func (d *Demand) leastCPUs(free *NodeFree) int {
	least := max(d.minCPUs, 1)
	if d.allGPUs {
		least = max(least, d.cpusPerGPU*len(free.node.Inventory.GPUs))
	}
	return least
}

// withOwnSpec is a node without jobs, as a job may use it that says itself what it leaves for the system.
func (d *Demand) withOwnSpec(free *NodeFree) *NodeFree {
	own := *free
	own.cpus = free.node.Inventory.UsableBy(d.ownSpec)
	own.cpuCount = own.cpus.Len()
	own.wholeCPUs, own.allCPUs, own.unit = own.cpuCount, own.cpuCount, unitOf(&free.node.Inventory, false)
	return &own
}

// tasksByGPU is how many tasks the node's free GPUs, and memory that is counted by them, allow.
func (d *Demand) tasksByGPU(free *NodeFree) int {
	byGPU := hasMemByGPU(d)
	if !d.gpus {
		if byGPU && free.mem < d.mem.MB {
			return 0
		}
		return math.MaxInt
	}
	if !d.hasGPUsAsked(free) {
		return 0
	}
	n := math.MaxInt
	base := int(sumGRES(d.gpuNode))
	for _, g := range d.gpuTask {
		n = min(n, (countGPUs(free, g.Type)-base)/int(g.Count))
	}
	if len(d.gpuTask) == 0 && len(d.gpuJob) > 0 && d.gpusFree(free) == 0 {
		return 0
	}
	if byGPU {
		n = min(n, tasksOfGPUMem(d, free))
	}
	return max(n, 0)
}

// hasGPUsAsked reports whether the node has the GPUs that are asked for by node and by socket.
func (d *Demand) hasGPUsAsked(free *NodeFree) bool {
	if !hasGPUs(free, d.gpuNode) {
		return false
	}
	if len(d.gpuSocket) == 0 {
		return true
	}
	_, ok := d.pickSocketGPUs(free, d.gpuNode)
	return ok
}

// hasMemByGPU reports whether the job asks for memory by the GPU.
func hasMemByGPU(d *Demand) bool {
	return d.memAlloc && d.mem.Per == cluster.MemPerGPU && d.mem.MB > 0
}

// tasksOfGPUMem is for how many tasks the node has memory that is asked for by GPU.
func tasksOfGPUMem(d *Demand, free *NodeFree) int {
	allowed := int(free.mem / d.mem.MB)
	base := int(sumGRES(d.gpuNode))
	if per := int(sumGRES(d.gpuTask)); per > 0 {
		return (allowed - base) / per
	}
	if len(d.gpuJob) > 0 {
		base++ // the other nodes of the job may give the rest
	}
	if allowed < max(base, 1) {
		return 0
	}
	return math.MaxInt
}

// gpusGivenBy is how many free GPUs of a type a node can give to --gpus: for each it needs its CPUs and its memory.
func (d *Demand) gpusGivenBy(free *NodeFree, kind string) int {
	n := countGPUs(free, kind)
	if d.cpusPerGPU > 0 {
		free = free.withinLimits(d)
		if d.ownSpec != nil {
			free = d.withOwnSpec(free)
		}
		n = min(n, free.wholeCPUs/d.cpusPerGPU)
	}
	if hasMemByGPU(d) {
		n = min(n, int(free.mem/d.mem.MB)-int(sumGRES(d.gpuNode)))
	}
	return n
}

// usableMemory is the memory of a node that jobs may have.
func usableMemory(n *cluster.Node) cluster.MemMB { return n.Inventory.MemMB - n.Inventory.SpecMemMB }

func countGPUs(free *NodeFree, kind string) (n int) {
	for k := range free.gpus.All() {
		if kind == "" || free.node.Inventory.GPUs[k].Type == kind {
			n++
		}
	}
	return n
}

// TakeWholeNodes has the job want nodes of its own.
func (d *Demand) TakeWholeNodes() { d.exclusive = true }

// TakeWholeCores has the job want whole cores, and no memory.
func (d *Demand) TakeWholeCores() {
	d.wholeCore = true
	d.memAlloc = false
}
