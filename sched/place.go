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
	maxNodes   int // 0: as many as it takes
	tasks      int // 0: as many as fit on minNodes
	perNode    int // tasks per node, 0: free
	cpusPer    int // per task
	minCPUs    int // per node
	mem        cluster.Mem
	gpuNode    []cluster.GRES // per node
	gpuJob     []cluster.GRES
	gpuTask    []cluster.GRES
	exclusive  bool
	only       map[cluster.NodeName]bool // -w: these must all be part of it
	not        map[cluster.NodeName]bool
	features   string
	wholeCore  bool
	memAlloc   bool
	tmpMB      int64
	overcommit bool
	nodesAsked bool // a number of nodes, or nodes by name
	// blockSockets fills one socket before the next (-m x:block).
	blockSockets bool
	wanted       []cluster.NodeName
	// What -B and its like ask of a node's make.
	sockets, cores, threads int
}

// newDemand works out what a spec asks of a partition, away from some nodes.
func newDemand(s *cluster.Snapshot, p *cluster.Partition, spec *cluster.JobSpec, avoid []cluster.Avoided) *demand {
	cfg := s.Config()
	d := &demand{part: p, minNodes: spec.MinNodes, maxNodes: spec.MaxNodes, tasks: spec.Tasks, perNode: spec.TasksPerNode,
		cpusPer: max(spec.CPUsPerTask, 1), minCPUs: spec.MinCPUs, mem: spec.Mem, features: spec.Constraint,
		exclusive: spec.Sharing == cluster.ShareExclusive || strings.HasPrefix(p.OverSubscribe, "EXCLUSIVE"),
		wholeCore: cfg.CoreAlloc, memAlloc: cfg.MemAlloc, tmpMB: spec.TmpMB, overcommit: spec.Overcommit,
		nodesAsked:   spec.MinNodes > 0 || spec.MaxNodes > 0 || len(spec.NodeList) > 0,
		blockSockets: cluster.BlockSockets(spec.Distribution)}
	if d.mem.Per == cluster.MemDefault {
		d.mem = p.DefMem
		if d.mem.Per == cluster.MemDefault {
			d.mem = cfg.DefMem
		}
	}
	d.gpuNode, d.gpuJob, d.gpuTask = gpusOf(spec.PerNode), gpusOf(spec.PerJob), gpusOf(spec.PerTask)
	for _, n := range spec.NodeList {
		if d.only == nil {
			d.only = map[cluster.NodeName]bool{}
		}
		d.only[n] = true
	}
	d.wanted = spec.NodeList
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
	d.count(spec)
	return d
}

// count settles numbers of nodes and tasks from what was given.
func (d *demand) count(spec *cluster.JobSpec) {
	d.minNodes = max(d.minNodes, len(spec.NodeList), 1)
	if total := sum(d.gpuJob); total > 0 && sum(d.gpuTask) > 0 && d.tasks == 0 {
		d.tasks = int(total / sum(d.gpuTask))
	}
	if per := spec.TasksPerGPU; per > 0 && d.tasks == 0 {
		d.tasks = per * int(cmp.Or(sum(d.gpuJob), sum(d.gpuNode)*int64(d.minNodes)))
	}
	if d.tasks == 0 && d.perNode > 0 {
		d.tasks = d.perNode * d.minNodes
	}
	if d.tasks > 0 && d.perNode > 0 {
		d.minNodes = max(d.minNodes, (d.tasks+d.perNode-1)/d.perNode)
	}
	if d.tasks == 0 {
		d.tasks = d.minNodes
	}
	if spec.CPUsPerGPU > 0 {
		d.minCPUs = max(d.minCPUs, spec.CPUsPerGPU*int(sum(d.gpuNode)))
		if g := sum(d.gpuTask); g > 0 {
			d.cpusPer = max(d.cpusPer, spec.CPUsPerGPU*int(g))
		}
	}
	if d.tasks < d.minNodes && spec.Tasks > 0 && len(spec.NodeList) == 0 {
		d.minNodes = max(d.tasks, 1)
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
	inv := &n.Inventory
	return !d.not[n.Name] && (d.features == "" || hasFeatures(inv.Features, d.features)) && inv.TmpMB >= d.tmpMB &&
		inv.Sockets >= d.sockets && inv.CoresPerSocket >= d.cores && inv.ThreadsPerCore >= d.threads
}

// hasFeatures judges a plain constraint: names joined by & or |, without brackets.
func hasFeatures(have []string, want string) bool {
	if want == "" {
		return true
	}
	for _, alt := range strings.Split(want, "|") {
		all := true
		for _, f := range strings.FieldsFunc(alt, func(r rune) bool { return r == '&' || r == ',' }) {
			name, _, _ := strings.Cut(f, "*")
			all = all && slices.Contains(have, name)
		}
		if all {
			return true
		}
	}
	return false
}

// room is what one node could give to the job.
type room struct {
	sp    *space
	tasks int // how many tasks fit
}

// from finds an allocation in the pool, or nil; for the place see pick.
func (d *demand) from(p *pool, place *int) *cluster.Alloc {
	rooms := d.pick(p, nil, place)
	if rooms == nil {
		return nil
	}
	return d.deal(rooms)
}

// place finds an allocation in the pool without the avoided nodes, or nil.
func (d *demand) place(p *pool, avoid nodeSet) *cluster.Alloc {
	chosen := d.pick(p, avoid, nil)
	if chosen == nil {
		return nil
	}
	return d.deal(chosen)
}

// pick chooses the nodes: the first ones, in order, that cover tasks and GPUs; nodes asked for by
// name come first. from, if given, is the place in the list before which no node has room; it
// is moved on.
func (d *demand) pick(p *pool, avoid nodeSet, from *int) []room {
	named := d.named(p, avoid)
	if len(named) < len(d.only) {
		return nil
	}
	list := p.members(d.part)
	most := d.most(len(named) + len(list))
	if most < d.minNodes {
		return nil
	}
	rooms, tally := named, d.newTally()
	for _, r := range named {
		tally.add(d, r)
	}
	if len(rooms) <= most && tally.covers(d, len(rooms)) {
		return rooms
	}
	begin, first := 0, true
	if from != nil {
		begin = *from
	}
	for k := begin; k < len(list); k++ {
		sp := &p.spaces[list[k]]
		if d.only[sp.node.Name] {
			continue
		}
		n := d.capacity(sp)
		if n > 0 && first && from != nil {
			*from, first = k, false
		}
		if n == 0 || avoid.has(list[k]) {
			continue
		}
		rooms = append(rooms, room{sp, n})
		if len(rooms) > most {
			continue // the first ones are too small together; collect all to try the roomiest
		}
		if tally.add(d, rooms[len(rooms)-1]); tally.covers(d, len(rooms)) {
			return rooms
		}
	}
	if first && from != nil {
		*from = len(list)
	}
	if len(rooms) <= most {
		return nil
	}
	slices.SortStableFunc(rooms[len(named):], func(a, b room) int {
		return cmp.Or(cmp.Compare(b.tasks, a.tasks), cmp.Compare(d.gpusFree(b.sp), d.gpusFree(a.sp)))
	})
	tally = d.newTally()
	for i := range rooms[:most] {
		if tally.add(d, rooms[i]); tally.covers(d, i+1) {
			return rooms[:i+1]
		}
	}
	return nil
}

// named finds the nodes that were asked for by name, in node order.
func (d *demand) named(p *pool, avoid nodeSet) (out []room) {
	for _, name := range d.wanted {
		if i, ok := p.at[name]; ok && !avoid.has(i) && p.inPartition(d.part, i) {
			if n := d.capacity(&p.spaces[i]); n > 0 {
				out = append(out, room{&p.spaces[i], n})
			}
		}
	}
	slices.SortFunc(out, func(a, b room) int { return cmp.Compare(a.sp.node.Order, b.sp.node.Order) })
	return slices.CompactFunc(out, func(a, b room) bool { return a.sp == b.sp })
}

// most is the largest number of nodes that the job may get.
func (d *demand) most(nodes int) int {
	most := d.maxNodes
	if most == 0 || d.part.MaxNodes > 0 && most > d.part.MaxNodes {
		most = cmp.Or(d.part.MaxNodes, nodes)
	}
	if d.maxNodes == 0 && d.minNodes > 1 {
		most = min(most, max(d.minNodes, len(d.only)))
	}
	return most
}

// tally sums what chosen nodes give.
type tally struct {
	tasks int
	gpus  []int64 // by entry of gpuJob
}

func (d *demand) newTally() tally { return tally{gpus: make([]int64, len(d.gpuJob))} }

func (t *tally) add(d *demand, r room) {
	t.tasks += r.tasks
	for i, g := range d.gpuJob {
		t.gpus[i] += int64(gpuCount(r.sp, g.Type))
	}
}

func (t *tally) covers(d *demand, nodes int) bool {
	if nodes < d.minNodes || t.tasks < d.tasks {
		return false
	}
	for i, g := range d.gpuJob {
		if t.gpus[i] < g.Count {
			return false
		}
	}
	return true
}

func (d *demand) gpusFree(sp *space) (n int) {
	for _, g := range d.gpuJob {
		n += gpuCount(sp, g.Type)
	}
	return n
}

// capacity is how many tasks fit on the node now, 0 if the job can not use it.
func (d *demand) capacity(sp *space) int {
	cpus := sp.free
	if !d.wholeCore {
		cpus = sp.cpus.Len()
	}
	if cpus < max(d.minCPUs, 1) || cpus < d.cpusPer && !d.overcommit || d.exclusive && (sp.busy || cpus < sp.node.Inventory.CPUs) || !d.may(sp.node) {
		return 0
	}
	cpus = d.cpusByMem(sp, cpus)
	if cpus < max(d.minCPUs, 1) {
		return 0
	}
	n := cpus / d.cpusPer
	if d.overcommit {
		n = max(n, d.tasks)
	}
	if n = min(n, d.tasksByGPU(sp)); d.perNode > 0 {
		if n < min(d.perNode, d.tasks) {
			return 0
		}
		n = min(n, d.perNode)
	}
	return n
}

// cpusByMem lowers a number of CPUs to what memory allows; 0 if there is not enough at all.
func (d *demand) cpusByMem(sp *space, cpus int) int {
	if !d.memAlloc {
		return cpus
	}
	switch {
	case d.mem.Per == cluster.MemPerNode && (sp.mem < d.mem.MB || d.mem.MB == 0 && sp.mem < sp.node.Inventory.MemMB): // --mem=0: all of it
		return 0
	case d.mem.Per == cluster.MemPerCPU && d.mem.MB > 0 && !d.exclusive:
		allowed := int(sp.mem / d.mem.MB)
		if d.wholeCore {
			allowed -= allowed % max(sp.node.Inventory.ThreadsPerCore, 1)
		}
		return min(cpus, allowed)
	}
	return cpus
}

// tasksByGPU is how many tasks the node's free GPUs, and memory that is counted by them, allow.
func (d *demand) tasksByGPU(sp *space) int {
	if len(d.gpuNode) == 0 && len(d.gpuTask) == 0 && len(d.gpuJob) == 0 {
		if d.memAlloc && d.mem.Per == cluster.MemPerGPU && sp.mem < d.mem.MB {
			return 0
		}
		return math.MaxInt
	}
	if _, ok := pick(sp, d.gpuNode); !ok {
		return 0
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

// deal gives each chosen node its share: first nodes are filled first, each gets a task. Nil if
// the devices can not be dealt out after all.
func (d *demand) deal(rooms []room) *cluster.Alloc {
	a := &cluster.Alloc{Partition: d.part.Name, Types: map[string]int64{}, Shares: make([]cluster.Share, 0, len(rooms))}
	left, gpuLeft := d.tasks, make([]int64, len(d.gpuJob))
	for i, g := range d.gpuJob {
		gpuLeft[i] = g.Count
	}
	for i, r := range rooms {
		after := len(rooms) - i - 1
		n := min(r.tasks, max(left-after, 1))
		if d.overcommit { // CPUs do not limit it: tasks are spread evenly
			n = min(r.tasks, max((left+after)/(after+1), 1))
		}
		left -= n
		gpus, ok := d.devices(r.sp, n, after, gpuLeft)
		if !ok {
			return nil
		}
		want := max(n*d.cpusPer, d.minCPUs)
		if d.overcommit { // what one task wants, however many there are
			want = max(min(max(d.cpusPer, d.minCPUs), r.sp.cpus.Len()), 1)
		}
		if d.exclusive {
			want, gpus = r.sp.node.Inventory.CPUs, r.sp.gpus
		}
		sh := cluster.Share{Node: r.sp.node.Name, Tasks: n, GPUs: gpus, CPUs: pickCPUs(r.sp, want, gpus, d)}
		sh.MemMB = d.memory(r.sp, sh)
		if sh.MemMB > max(r.sp.mem, 0) {
			return nil
		}
		for k := range gpus.All() {
			a.Types[r.sp.node.Inventory.GPUs[k].Type]++
		}
		a.Shares = append(a.Shares, sh)
	}
	if len(rooms) > 1 {
		order := make(map[cluster.NodeName]int, len(rooms))
		for _, r := range rooms {
			order[r.sp.node.Name] = r.sp.node.Order
		}
		slices.SortStableFunc(a.Shares, func(x, y cluster.Share) int { return cmp.Compare(order[x.Node], order[y.Node]) })
	}
	return a
}

// devices picks the GPUs of one node for n tasks; after is how many nodes follow, each of which
// must get a part of what --gpus asks for.
func (d *demand) devices(sp *space, n, after int, left []int64) (cluster.IDSet, bool) {
	if len(d.gpuNode) == 0 && len(d.gpuTask) == 0 && len(d.gpuJob) == 0 {
		return cluster.IDSet{}, true
	}
	want := slices.Clone(d.gpuNode)
	for _, g := range d.gpuTask {
		g.Count *= int64(n)
		want = append(want, g)
	}
	if len(d.gpuTask) == 0 {
		for i, g := range d.gpuJob {
			g.Count = max(min(int64(gpuCount(sp, g.Type)), left[i]-int64(after)), 0)
			left[i] -= g.Count
			want = append(want, g)
		}
	}
	slices.SortStableFunc(want, func(a, b cluster.GRES) int { return b2i(a.Type == "") - b2i(b.Type == "") })
	return pick(sp, want)
}

func (d *demand) memory(sp *space, sh cluster.Share) cluster.MemMB {
	if !d.memAlloc {
		return 0
	}
	switch d.mem.Per {
	case cluster.MemPerNode:
		if d.mem.MB == 0 {
			return sp.node.Inventory.MemMB
		}
		return d.mem.MB
	case cluster.MemPerCPU:
		return min(d.mem.MB*cluster.MemMB(sh.CPUs.Len()), sp.node.Inventory.MemMB)
	case cluster.MemPerGPU:
		return d.mem.MB * cluster.MemMB(max(sh.GPUs.Len(), 1))
	}
	return 0
}

func gpuCount(sp *space, kind string) (n int) {
	for k := range sp.gpus.All() {
		if kind == "" || sp.node.Inventory.GPUs[k].Type == kind {
			n++
		}
	}
	return n
}

// pick takes the lowest free GPUs that satisfy the requests.
func pick(sp *space, want []cluster.GRES) (cluster.IDSet, bool) {
	var got cluster.IDSet
	for _, g := range want {
		left := int(g.Count)
		for k := range sp.gpus.All() {
			if left == 0 {
				break
			}
			if !got.Has(k) && (g.Type == "" || sp.node.Inventory.GPUs[k].Type == g.Type) {
				got, left = got.Union(cluster.NewIDSet(k)), left-1
			}
		}
		if left > 0 {
			return got, false
		}
	}
	return got, true
}
