package sched

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Reservations of GPUs, and of the same amounts of each node. One with GPUs has cores as well, so that its jobs can use
// the GPUs: those that it asks for, or as many as Slurm 26.05 gives it.

// gpuReserver chooses what a reservation gets of nodes.
type gpuReserver struct {
	s     *cluster.Snapshot
	want  *cluster.Reservation
	part  *cluster.Partition
	all   *place.FreeSet
	taken place.Exclusion // what it cannot have
	inUse place.Exclusion // that, and what jobs have now, which end before it begins
}

// ReserveParts chooses nodes, cores and GPUs for a reservation that asks for GPUs, or for the same of each node: what
// no other one has then, and no job will have; what is free now comes first. It returns a copy that has them. The
// error says what is missing.
func ReserveParts(
	s *cluster.Snapshot, r *cluster.Reservation, now time.Time,
) (out *cluster.Reservation, err *cluster.Error) {
	err = preferUnreserved(r, func(shares bool) (err *cluster.Error) {
		out, err = reserveSharing(s, r, now, shares)
		return err
	})
	return out, err
}

// reserveSharing is ReserveParts; shares lets it share with reservations that overlap.
func reserveSharing(
	s *cluster.Snapshot, r *cluster.Reservation, now time.Time, shares bool,
) (*cluster.Reservation, *cluster.Error) {
	part, err := partitionToReserve(s, r)
	if err != nil {
		return nil, err
	}
	all := place.NewUnloadedSet(s)
	taken := takenDuring(all, s, r, now, shares)
	g := &gpuReserver{s: s, want: r, part: part, all: all, taken: taken, inUse: taken.WithParts(usedNow(all, s))}
	if err := g.check(); err != nil {
		return nil, err
	}
	out := *r
	if len(r.Nodes) == 0 {
		if out.Nodes = g.chooseNodes(); out.Nodes == nil {
			return nil, g.busy()
		}
	}
	if err := g.divide(&out); err != nil {
		return nil, err
	}
	return &out, nil
}

// usedNow is what jobs have.
func usedNow(fs *place.FreeSet, s *cluster.Snapshot) *place.ExcludedParts {
	used := &place.ExcludedParts{}
	for j := range s.Live() {
		parts := j.Alloc.Parts()
		for k := range parts {
			sh := &parts[k]
			if i, ok := fs.Index(sh.Node); ok {
				used.Exclude(int32(i), sh.CPUs, sh.Devices())
			}
		}
	}
	return used
}

func (g *gpuReserver) busy() *cluster.Error {
	return cluster.Errorf(cluster.Conflict, cluster.ErrResvBusy, "%s of partition %s are not free from %s on",
		gresText(g.want), g.part.Name, g.want.Start.Format(time.DateTime))
}

// gresText names what is asked for.
func gresText(r *cluster.Reservation) string {
	var words []string
	for _, n := range r.Cores {
		words = append(words, place.Count(n, "core", "cores"))
	}
	for _, w := range r.GRES {
		name := strings.TrimSpace(w.Type + " GPU")
		words = append(words, place.Count(int(w.Count), name, name+"s"))
	}
	text := strings.Join(words, " and ")
	if r.PerNode {
		text += " per node"
	}
	return text
}

// check refuses what no time would bring: more GPUs than there are, or of no such type; and numbers that do not match.
func (g *gpuReserver) check() *cluster.Error {
	r := g.want
	nodes := max(len(r.Nodes), r.Count)
	switch {
	case len(r.Cores) > 1 || len(r.Cores) == 1 && r.Cores[0] <= 0:
		return cluster.Errorf(cluster.Invalid, cluster.ErrResvCoreCount,
			"%d numbers of cores alongside GPUs: give one number, above 0", len(r.Cores))
	case r.PerNode && nodes == 0:
		return cluster.Errorf(cluster.Invalid, cluster.ErrNodeName,
			"TRESPerNode needs nodes: add Nodes= or NodeCnt=")
	case !r.PerNode && countGRES(r.GRES) < nodes:
		return cluster.Errorf(cluster.Invalid, cluster.ErrResvGPUs,
			"%s for %d nodes: ask for one GPU or more for each node", gresText(r), nodes)
	}
	for _, name := range r.Nodes {
		n, ok := g.s.Node(name)
		if !ok {
			return cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "node %s does not exist", name)
		}
		if err := g.checkNode(n); err != nil {
			return err
		}
	}
	return g.checkTotal()
}

// checkNode refuses a node without the GPUs that it is to give.
func (g *gpuReserver) checkNode(n *cluster.Node) *cluster.Error {
	some := len(g.want.GRES) == 0
	for _, w := range g.want.GRES {
		has := devicesOfType(&n.Inventory, w.Type).Len()
		some = some || has > 0
		if g.want.PerNode && int64(has) < w.Count {
			return cluster.Errorf(cluster.Invalid, cluster.ErrResvGPUs,
				"node %s has %s, not the %d that are to be reserved per node; ask for fewer or leave the node out",
				n.Name, hasText(&n.Inventory, w.Type), w.Count)
		}
	}
	if some {
		return nil
	}
	return cluster.Errorf(cluster.Invalid, cluster.ErrResvGPUs, "node %s has %s; leave it out", n.Name,
		hasText(&n.Inventory, g.want.GRES[0].Type))
}

// checkTotal refuses more GPUs than the nodes, or the partition, have in all.
func (g *gpuReserver) checkTotal() *cluster.Error {
	for _, w := range g.want.GRES {
		total, most := 0, 0
		for name := range g.candidates() {
			n, _ := g.s.Node(name)
			has := devicesOfType(&n.Inventory, w.Type).Len()
			total += has
			most = max(most, has)
		}
		name := strings.TrimSpace(w.Type + " GPU")
		where := "partition " + g.part.Name
		if len(g.want.Nodes) > 0 {
			where = place.Count(len(g.want.Nodes), "node", "nodes")
		}
		switch {
		case total == 0:
			return cluster.Errorf(cluster.Invalid, cluster.ErrResvGPUs,
				"no node of %s has a %s; scontrol show nodes lists what they have as Gres", where, name)
		case g.want.PerNode && int64(most) < w.Count:
			return cluster.Errorf(cluster.Invalid, cluster.ErrResvGPUs,
				"no node of %s has %d %ss; the most that one has is %d", where, w.Count, name, most)
		case int64(total) < w.Count:
			return cluster.Errorf(cluster.Invalid, cluster.ErrResvGPUs, "%s cannot give %d %ss; it has %d in all",
				where, w.Count, name, total)
		}
	}
	return nil
}

// candidates yields the names of the nodes that are given, or those of the partition.
func (g *gpuReserver) candidates() func(func(cluster.NodeName) bool) {
	if len(g.want.Nodes) > 0 {
		return slices.Values(g.want.Nodes)
	}
	return func(yield func(cluster.NodeName) bool) {
		for n := range g.s.PartitionNodes(g.part) {
			if !yield(n.Name) {
				return
			}
		}
	}
}

// hasText tells which GPUs a node has, where one type was asked for.
func hasText(inv *cluster.Inventory, kind string) string {
	name := strings.TrimSpace(kind + " GPU")
	text := place.Count(devicesOfType(inv, kind).Len(), name, name+"s")
	var types []string
	for i := range inv.GPUs {
		if !slices.Contains(types, inv.GPUs[i].Type) {
			types = append(types, inv.GPUs[i].Type)
		}
	}
	if kind == "" || slices.Contains(types, kind) || len(types) == 0 {
		return text
	}
	return text + " (its types: " + strings.Join(types, ", ") + ")"
}

func countGRES(list []cluster.GRES) (n int) {
	for _, w := range list {
		n += int(w.Count)
	}
	return n
}

// devicesOfType lists the GPUs of a type, or all, that a node has.
func devicesOfType(inv *cluster.Inventory, kind string) cluster.IDSet {
	var ids []int
	for id := range inv.Devices().All() {
		if kind == "" || inv.GPUs[id].Type == kind {
			ids = append(ids, id)
		}
	}
	return cluster.NewIDSet(ids...)
}

// chooseNodes chooses as many nodes as are asked for, or else as few as have all the GPUs; nil if they are not there.
func (g *gpuReserver) chooseNodes() []cluster.NodeName {
	least := max(g.want.Count, 1)
	most := least
	if g.want.Count == 0 {
		most = min(countGRES(g.want.GRES), g.all.Size())
	}
	avoid := []place.Exclusion{
		g.all.WithoutUnusable(g.inUse), g.all.WithoutUnusable(g.taken), g.inUse, g.taken,
	}
	for nodes := least; nodes <= most; nodes++ {
		d := place.NewDemand(g.s, g.part, &cluster.JobSpec{Layout: g.layout(nodes)}, nil)
		d.TakeWholeCores()
		for _, ex := range avoid {
			if a := d.FindIn(g.all, ex); a != nil {
				return nodesOf(a)
			}
		}
	}
	return nil
}

// layout is what a job would ask for that gets so many nodes; each core is a task.
func (g *gpuReserver) layout(nodes int) *cluster.Layout {
	r := g.want
	l := &cluster.Layout{MinNodes: nodes, MaxNodes: nodes, ThreadsPerCore: 1, Constraint: r.Features, TasksPerNode: 1}
	if r.PerNode {
		l.PerNode = r.GRES
	} else {
		l.PerJob = r.GRES
	}
	switch {
	case len(r.Cores) == 0:
	case r.PerNode:
		l.TasksPerNode = r.Cores[0]
	default:
		l.TasksPerNode = (r.Cores[0] + nodes - 1) / nodes
	}
	l.Tasks = nodes * l.TasksPerNode
	return l
}

// divide settles what a reservation has of each of its nodes.
func (g *gpuReserver) divide(r *cluster.Reservation) *cluster.Error {
	indexes := make([]int, len(r.Nodes))
	for k, name := range r.Nodes {
		i, ok := g.all.Index(name)
		switch {
		case !ok:
			return cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "node %s does not exist", name)
		case g.taken.Nodes[i]:
			return cluster.Errorf(cluster.Conflict, cluster.ErrResvOverlap,
				"another reservation has node %s then", name)
		}
		indexes[k] = i
	}
	gpus, ok := g.divideGPUs(indexes)
	if !ok {
		return g.busy()
	}
	r.CPUs = make([]cluster.IDSet, len(indexes))
	for k, i := range indexes {
		if r.CPUs[k] = g.coresOn(i, k, len(indexes), gpus[k]); r.CPUs[k].Empty() {
			return g.busy()
		}
	}
	if len(r.GRES) > 0 {
		r.GPUs = gpus
	}
	return nil
}

// divideGPUs chooses the GPUs of each node: a number for all nodes is dealt out to one node after the other. False if
// they are not there, or some node gets none.
func (g *gpuReserver) divideGPUs(nodes []int) ([]cluster.IDSet, bool) {
	out := make([]cluster.IDSet, len(nodes))
	for _, w := range g.want.GRES {
		free := make([]cluster.IDSet, len(nodes))
		give := make([]int, len(nodes))
		for k, i := range nodes {
			devices := devicesOfType(g.inventory(i), w.Type)
			free[k] = devices.Minus(g.taken.Parts.GPUsOn(int32(i))).Minus(out[k])
			if g.want.PerNode {
				give[k] = int(w.Count)
			}
		}
		if !g.want.PerNode && !dealOut(int(w.Count), free, give) {
			return nil, false
		}
		for k, i := range nodes {
			if free[k].Len() < give[k] {
				return nil, false
			}
			out[k] = out[k].Union(g.pickGPUs(i, free[k], give[k]))
		}
	}
	none := len(g.want.GRES) > 0 && slices.ContainsFunc(out, cluster.IDSet.Empty)
	return out, !none
}

// dealOut gives each node in turn one of its free GPUs until all are given; false if there are not so many.
func dealOut(count int, free []cluster.IDSet, give []int) bool {
	for count > 0 {
		before := count
		for k := range free {
			if count > 0 && give[k] < free[k].Len() {
				give[k]++
				count--
			}
		}
		if count == before {
			return false
		}
	}
	return true
}

func (g *gpuReserver) inventory(i int) *cluster.Inventory {
	free := g.all.Node(i)
	n, _ := g.s.Node(free.Name())
	return &n.Inventory
}

// pickGPUs picks GPUs of a node: those that no job has now first, and of these such that are near the same cores.
func (g *gpuReserver) pickGPUs(i int, free cluster.IDSet, count int) (out cluster.IDSet) {
	used := g.inUse.Parts.GPUsOn(int32(i))
	for _, set := range [...]cluster.IDSet{free.Minus(used), free.Intersect(used)} {
		groups := groupByCores(g.inventory(i), set)
		for len(groups) > 0 && out.Len() < count {
			k := bestGroup(groups, count-out.Len())
			out = out.Union(groups[k].First(count - out.Len()))
			groups = slices.Delete(groups, k, k+1)
		}
	}
	return out
}

// groupByCores groups GPUs of a node that are near the same cores.
func groupByCores(inv *cluster.Inventory, gpus cluster.IDSet) (groups []cluster.IDSet) {
	for id := range gpus.All() {
		near := func(o cluster.IDSet) bool { return inv.GPUs[o.Min()].Cores.Equal(inv.GPUs[id].Cores) }
		one := cluster.NewIDSet(id)
		if k := slices.IndexFunc(groups, near); k >= 0 {
			groups[k] = groups[k].Union(one)
			continue
		}
		groups = append(groups, one)
	}
	return groups
}

// bestGroup finds the smallest group that has enough, else the largest.
func bestGroup(groups []cluster.IDSet, count int) (best int) {
	for k := range groups {
		has, most := groups[k].Len(), groups[best].Len()
		if most < count && has > most || has >= count && has < most {
			best = k
		}
	}
	return best
}

// coresOn chooses whole cores of a node, those near its GPUs first: as many as it is to give; or else one near each
// group of its GPUs, and all of these for a number of GPUs in all, as Slurm does. It returns their CPUs, none if they
// are not there.
func (g *gpuReserver) coresOn(i, k, nodes int, gpus cluster.IDSet) (out cluster.IDSet) {
	inv := g.inventory(i)
	threads := max(inv.ThreadsPerCore, 1)
	free := g.all.WholeCores(i, g.inUse).Len()
	set := g.all.WholeCores(i, g.taken)
	count := g.coresAsked(k, nodes)
	if count*threads <= free {
		set = g.all.WholeCores(i, g.inUse)
	}
	for _, group := range groupByCores(inv, gpus) {
		near := set
		if local := inv.GPUs[group.Min()].Cores; !local.Empty() {
			near = set.Intersect(local)
		}
		switch {
		case count > 0:
			near = near.Minus(out).First(count*threads - out.Len())
		case g.want.PerNode:
			near = near.First(threads)
		}
		out = out.Union(near)
	}
	if left := cmp.Or(count, 1)*threads - out.Len(); left > 0 {
		out = out.Union(set.Minus(out).First(left))
	}
	if out.Len() < cmp.Or(count, 1)*threads {
		return cluster.IDSet{}
	}
	return out
}

// coresAsked is how many cores one of some nodes is to give; 0: that is open.
func (g *gpuReserver) coresAsked(k, nodes int) int {
	switch {
	case len(g.want.Cores) == 0:
		return 0
	case g.want.PerNode:
		return g.want.Cores[0]
	}
	n := g.want.Cores[0] / nodes
	if k < g.want.Cores[0]%nodes {
		n++
	}
	return max(n, 1)
}
