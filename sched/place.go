package sched

import (
	"cmp"
	"fmt"
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
	// blockSockets fills one socket before the next (-m x:block)
	blockSockets bool
	wanted       []cluster.NodeName
}

func newDemand(s *cluster.Snapshot, p *cluster.Partition, spec *cluster.JobSpec) *demand {
	cfg := s.Config()
	d := &demand{part: p, minNodes: spec.MinNodes, maxNodes: spec.MaxNodes, tasks: spec.Tasks, perNode: spec.TasksPerNode,
		cpusPer: max(spec.CPUsPerTask, 1), minCPUs: spec.MinCPUs, mem: spec.Mem, features: spec.Constraint,
		exclusive: spec.Sharing == cluster.ShareExclusive || strings.HasPrefix(p.OverSubscribe, "EXCLUSIVE"),
		wholeCore: cfg.CoreAlloc, memAlloc: cfg.MemAlloc, tmpMB: spec.TmpMB, overcommit: spec.Overcommit, blockSockets: cluster.BlockSockets(spec.Distribution)}
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
	for _, n := range spec.Exclude {
		if d.not == nil {
			d.not = map[cluster.NodeName]bool{}
		}
		d.not[n] = true
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

// key is equal for demands that are the same question.
func (d *demand) key() string {
	return fmt.Sprint(d.minNodes, d.maxNodes, d.tasks, d.perNode, d.cpusPer, d.minCPUs, d.mem, d.gpuNode, d.gpuJob,
		d.gpuTask, d.exclusive, d.wanted, d.features, d.tmpMB, d.overcommit, d.blockSockets, len(d.not))
}

// may reports whether the node is one the job may use at all.
func (d *demand) may(n *cluster.Node) bool {
	return !d.not[n.Name] && hasFeatures(n.Inventory.Features, d.features) && n.Inventory.TmpMB >= min(d.tmpMB, n.Inventory.TmpMB)
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

// place finds an allocation in the pool without the avoided nodes, or nil.
func (d *demand) place(p *pool, avoid map[cluster.NodeName]bool) *cluster.Alloc {
	rooms := d.rooms(p, avoid)
	chosen := d.choose(rooms)
	if chosen == nil {
		return nil
	}
	return d.deal(chosen)
}

// rooms lists the nodes on which at least one task fits, nodes asked for by name first.
func (d *demand) rooms(p *pool, avoid map[cluster.NodeName]bool) []room {
	var out, rest []room
	add := func(sp *space) {
		if avoid[sp.node.Name] || !d.may(sp.node) || d.exclusive && sp.busy {
			return
		}
		if n := d.capacity(sp); n > 0 {
			if d.only[sp.node.Name] {
				out = append(out, room{sp, n})
			} else {
				rest = append(rest, room{sp, n})
			}
		}
	}
	if d.part.All {
		for i := range p.spaces {
			add(&p.spaces[i])
		}
	} else {
		for _, name := range d.part.Nodes {
			if i, ok := p.at[name]; ok {
				add(&p.spaces[i])
			}
		}
	}
	if len(out) < len(d.only) {
		return nil
	}
	return append(out, rest...)
}

// capacity is how many tasks fit on the node, 0 if the job can not use it.
func (d *demand) capacity(sp *space) int {
	cpus := sp.cpus.Len()
	if d.wholeCore {
		cpus = coresFree(sp) * max(sp.node.Inventory.ThreadsPerCore, 1)
	}
	if cpus < max(d.minCPUs, 1) || d.exclusive && cpus < sp.node.Inventory.CPUs {
		return 0
	}
	n := cpus / d.cpusPer
	if d.overcommit {
		n = max(n, d.tasks)
	}
	if d.perNode > 0 {
		if n < min(d.perNode, d.tasks) {
			return 0
		}
		n = d.perNode
	}
	if _, ok := pick(sp, d.gpuNode); !ok {
		return 0
	}
	for _, g := range d.gpuTask {
		n = min(n, gpuCount(sp, g.Type)/int(g.Count))
	}
	for _, g := range d.gpuJob {
		if len(d.gpuTask) == 0 && gpuCount(sp, g.Type) == 0 {
			return 0
		}
	}
	if d.memAlloc && d.mem.MB > 0 {
		switch d.mem.Per {
		case cluster.MemPerNode:
			if sp.mem < d.mem.MB {
				return 0
			}
		case cluster.MemPerCPU:
			n = min(n, int(sp.mem/d.mem.MB)/d.cpusPer)
		case cluster.MemPerGPU:
			if sp.mem < d.mem.MB*cluster.MemMB(max(sum(d.gpuNode), 1)) {
				return 0
			}
		}
	} else if d.memAlloc && d.mem.Per == cluster.MemPerNode && sp.mem < sp.node.Inventory.MemMB {
		return 0 // --mem=0: all of it
	}
	return n
}

// choose takes nodes in order until tasks and GPUs are covered.
func (d *demand) choose(rooms []room) []room {
	most := d.maxNodes
	if most == 0 || d.part.MaxNodes > 0 && most > d.part.MaxNodes {
		most = cmp.Or(d.part.MaxNodes, len(rooms))
	}
	if d.maxNodes == 0 && d.minNodes > 1 {
		most = min(most, max(d.minNodes, len(d.only)))
	}
	if len(rooms) < d.minNodes {
		return nil
	}
	if c := d.cover(rooms, most); c != nil {
		return c
	}
	sorted := slices.Clone(rooms) // the first ones are too small together: try the roomiest
	slices.SortStableFunc(sorted[min(len(d.only), len(sorted)):], func(a, b room) int { return cmp.Compare(b.tasks, a.tasks) })
	return d.cover(sorted, most)
}

func (d *demand) cover(rooms []room, most int) []room {
	tasks, gpus := 0, int64(0)
	for i, r := range rooms {
		if i >= most {
			return nil
		}
		tasks += r.tasks
		for _, g := range d.gpuJob {
			gpus += int64(gpuCount(r.sp, g.Type))
		}
		if i+1 >= d.minNodes && tasks >= d.tasks && gpus >= sum(d.gpuJob) {
			return rooms[:i+1]
		}
	}
	return nil
}

// deal gives each chosen node its share: first nodes are filled first, each gets a task.
func (d *demand) deal(rooms []room) *cluster.Alloc {
	a := &cluster.Alloc{Partition: d.part.Name, Types: map[string]int64{}}
	left, gpuLeft := d.tasks, sum(d.gpuJob)
	for i, r := range rooms {
		after := len(rooms) - i - 1
		n := min(r.tasks, max(left-after, 1))
		if d.perNode > 0 {
			n = min(d.perNode, max(left, 1))
		}
		left -= n
		sh := cluster.Share{Node: r.sp.node.Name, Tasks: n}
		gpus, _ := pick(r.sp, d.gpuNode)
		for _, g := range d.gpuTask {
			more, _ := pick(r.sp, []cluster.GRES{{Name: "gpu", Type: g.Type, Count: g.Count * int64(n)}})
			gpus = gpus.Union(more)
		}
		if len(d.gpuTask) == 0 && gpuLeft > 0 {
			g := d.gpuJob[0]
			take := min(int64(gpuCount(r.sp, g.Type)), gpuLeft-int64(after))
			more, _ := pick(r.sp, []cluster.GRES{{Name: "gpu", Type: g.Type, Count: take}})
			gpus, gpuLeft = gpus.Union(more), gpuLeft-take
		}
		want := max(n*d.cpusPer, d.minCPUs)
		if d.overcommit {
			want = max(min(want, r.sp.cpus.Len()), 1)
		}
		if d.exclusive {
			want, gpus = r.sp.node.Inventory.CPUs, r.sp.gpus
		}
		sh.GPUs, sh.CPUs = gpus, pickCPUs(r.sp, want, gpus, d)
		sh.MemMB = d.memory(r.sp, sh)
		for k := range gpus.All() {
			a.Types[r.sp.node.Inventory.GPUs[k].Type]++
		}
		a.Shares = append(a.Shares, sh)
	}
	order := map[cluster.NodeName]int{}
	for _, r := range rooms {
		order[r.sp.node.Name] = r.sp.node.Order
	}
	slices.SortStableFunc(a.Shares, func(x, y cluster.Share) int { return cmp.Compare(order[x.Node], order[y.Node]) })
	return a
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

// coresFree counts cores all of whose threads are free.
func coresFree(sp *space) int {
	t := max(sp.node.Inventory.ThreadsPerCore, 1)
	if t == 1 {
		return sp.cpus.Len()
	}
	n := 0
	for c := 0; c < sp.node.Inventory.CPUs/t; c++ {
		if sp.cpus.Contains(cluster.RangeIDSet(c*t, c*t+t-1)) {
			n++
		}
	}
	return n
}

// pickCPUs takes n free CPUs: cores near the GPUs if there are any, else cores of the sockets
// in turn, as Slurm does; whole cores where the configuration says so.
func pickCPUs(sp *space, n int, gpus cluster.IDSet, d *demand) cluster.IDSet {
	inv := &sp.node.Inventory
	t := max(inv.ThreadsPerCore, 1)
	whole := d.wholeCore
	cores := coreOrder(sp, gpus, d)
	var got cluster.IDSet
	for _, c := range cores {
		if got.Len() >= n {
			break
		}
		threads := sp.cpus.Intersect(cluster.RangeIDSet(c*t, c*t+t-1))
		if whole && threads.Len() < t {
			continue
		}
		if !whole {
			threads = threads.First(n - got.Len())
		}
		got = got.Union(threads)
	}
	return got
}

// coreOrder lists core numbers in the order of choice.
func coreOrder(sp *space, gpus cluster.IDSet, d *demand) []int {
	inv := &sp.node.Inventory
	t, per := max(inv.ThreadsPerCore, 1), max(inv.CoresPerSocket, 1)
	total := inv.CPUs / t
	sockets := max(inv.Sockets, 1)
	var order []int
	if c := d.cpusPer; c > 1 && c <= per*t || d.blockSockets {
		order = wholeTasks(sp, (c+t-1)/t)
		per = 0 // all cores are in it
	}
	for i := range per {
		for s := range sockets {
			if c := s*per + i; c < total {
				order = append(order, c)
			}
		}
	}
	for c := sockets * max(inv.CoresPerSocket, 1); c < total; c++ {
		order = append(order, c)
	}
	var near cluster.IDSet
	for k := range gpus.All() {
		near = near.Union(inv.GPUs[k].Cores)
	}
	if !near.Empty() {
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(b2i(!near.Has(a*t)), b2i(!near.Has(b*t)))
		})
	}
	return order
}

// wholeTasks orders cores socket by socket, those that make up whole tasks of that many free
// cores first.
func wholeTasks(sp *space, need int) (order []int) {
	inv := &sp.node.Inventory
	t, per := max(inv.ThreadsPerCore, 1), max(inv.CoresPerSocket, 1)
	var rest []int
	for s := range max(inv.Sockets, 1) {
		var free []int
		for c := s * per; c < min((s+1)*per, inv.CPUs/t); c++ {
			if !sp.cpus.Intersect(cluster.RangeIDSet(c*t, c*t+t-1)).Empty() {
				free = append(free, c)
			}
		}
		n := len(free) / need * need
		order, rest = append(order, free[:n]...), append(rest, free[n:]...)
	}
	return append(order, rest...)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
