package place

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// A node class is all nodes with the same hardware and the same amounts free: a job fits equally well on each of them.
// A cluster of thousands of nodes has a few dozen classes, so what fits is worked out once a class and not once a node.

// classKey is what nodes of one class have in common.
type classKey struct {
	model           int
	cpus, wholeCPUs int
	mem             cluster.MemMB
	gpus            [4]int16 // by type, see model.types
	parts           int32    // see partSetNumber; 0: no GPU is shared
	counted         int32    // see countedNumber; 0: nothing is given out of what is counted
	busy            bool
	closed          int64
}

// nodeClasses numbers the classes that were met.
type nodeClasses struct {
	numberOf     map[classKey]int32
	examples     []NodeFree       // a node of each class
	capabilities []Capability     // the summary of each class
	tooManyTypes bool             // some node has more types of GPUs than a key holds: classes do not tell nodes apart
	partSets     map[string]int32 // see partSetNumber
	// Amounts in use of the site's own resources, by their numbers in a key; the first is nothing.
	countedSets [][]cluster.GRES
	countedOf   map[string]int32
	workload    *workload
	// ratings by class, for jobs without GPUs and with some; see rating.
	ratings [2][]rating
}

// Capability sums up what a node can give, or what a job needs: the quick test before any other.
type Capability struct {
	cpus, gpus int32 // the most
	mem        cluster.MemMB
	model      int
}

// Exceeds reports whether it is more than another one, of anything.
func (b *Capability) Exceeds(o *Capability) bool {
	return b.cpus > o.cpus || b.gpus > o.gpus || b.mem > o.mem
}

// ClassedNode is a node and its class.
type ClassedNode struct {
	index int
	class int32
}

// Classify finds the classes of some nodes, and the most that any of them can give.
func (fs *FreeSet) Classify(places []int) (list []ClassedNode, most Capability) {
	list = make([]ClassedNode, len(places))
	most = noCapability
	for k, i := range places {
		list[k] = ClassedNode{i, fs.classOf(&fs.nodes[i])}
		b := &fs.classes.capabilities[list[k].class]
		most.cpus = max(most.cpus, b.cpus)
		most.gpus = max(most.gpus, b.gpus)
		most.mem = max(most.mem, b.mem)
	}
	return list, most
}

// noCapability is less than or equal to that of any node.
var noCapability = Capability{mem: math.MinInt64}

// classKeyOf is the key of a node as it is.
func (fs *FreeSet) classKeyOf(free *NodeFree) classKey {
	m := &fs.models[free.model]
	s := classKey{model: free.model, cpus: free.cpuCount, wholeCPUs: free.wholeCPUs, mem: free.mem, busy: free.busy,
		closed: free.onlyUser}
	if len(free.gpuParts) > 0 {
		s.parts = fs.classes.partSetNumber(m, free.gpuParts)
	}
	if len(free.counted) > 0 {
		s.counted = fs.classes.countedNumber(free.counted)
	}
	switch {
	case len(m.types) == 1:
		s.gpus[0] = int16(free.gpuCount)
	case !fs.classes.tooManyTypes:
		for k := range free.gpus.All() {
			s.gpus[m.typeOf[k]]++
		}
	}
	return s
}

// partSetNumber numbers what is given out of shared GPUs, whichever devices these are.
func (k *nodeClasses) partSetNumber(m *model, list []cluster.GPUPart) int32 {
	text := make([]string, len(list))
	for i, p := range list {
		text[i] = fmt.Sprintf("%s:%d:%d:%t ", p.Name, p.Count, m.typeOf[p.GPU], m.inventory.GPUs[p.GPU].Missing)
	}
	slices.Sort(text)
	key := strings.Join(text, "")
	n, ok := k.partSets[key]
	if !ok {
		if k.partSets == nil {
			k.partSets = map[string]int32{}
		}
		n = int32(len(k.partSets) + 1)
		k.partSets[key] = n
	}
	return n
}

// countedNumber numbers what is given out of the site's own resources.
func (k *nodeClasses) countedNumber(list []cluster.GRES) int32 {
	if len(list) == 0 {
		return 0
	}
	key := fmt.Sprint(list)
	n, ok := k.countedOf[key]
	if !ok {
		if k.countedOf == nil {
			k.countedOf = map[string]int32{}
			k.countedSets = [][]cluster.GRES{nil}
		}
		n = int32(len(k.countedSets))
		k.countedOf[key] = n
		k.countedSets = append(k.countedSets, list)
	}
	return n
}

// countedSet is what a number stands for.
func (k *nodeClasses) countedSet(n int32) []cluster.GRES {
	if n == 0 {
		return nil
	}
	return k.countedSets[n]
}

// limitedTo is the key of a node of which a job may have only a leftover: that has whole GPUs alone.
func (s classKey) limitedTo(left *leftover, m *model, classes *nodeClasses) classKey {
	s.cpus, s.wholeCPUs, s.mem, s.parts = min(s.cpus, left.cpus), min(s.wholeCPUs, left.cpus), min(s.mem, left.mem), 0
	if len(left.counted) > 0 {
		s.counted = classes.countedNumber(cluster.MostCounted(classes.countedSet(s.counted), left.counted))
	}
	for k := range m.types {
		s.gpus[k] = min(s.gpus[k], int16(max(left.gpus[k], 0)))
	}
	return s
}

// classNumber finds the class of a key, or adds it with an example made from a node.
func (fs *FreeSet) classNumber(s classKey, free *NodeFree) int32 {
	n, ok := fs.classes.numberOf[s]
	if ok {
		return n
	}
	m := &fs.models[s.model]
	own := *free
	own.cpuCount = s.cpus
	own.wholeCPUs = s.wholeCPUs
	own.mem = s.mem
	own.counted = fs.classes.countedSet(s.counted)
	own.busy = s.busy
	own.onlyUser = s.closed
	if s != fs.classKeyOf(free) {
		var gpus cluster.IDSet
		for k := range m.types {
			gpus = gpus.Union(lowestOf(free.gpus, func(id int) bool { return m.typeOf[id] == k }, int(s.gpus[k])))
		}
		own.gpus, own.gpuCount, own.gpuParts = gpus, gpus.Len(), nil
	}
	n = int32(len(fs.classes.examples))
	fs.classes.numberOf[s] = n
	fs.classes.examples = append(fs.classes.examples, own)
	fs.classes.capabilities = append(fs.classes.capabilities,
		Capability{int32(max(own.cpuCount, own.wholeCPUs)), int32(own.gpuCount), own.mem, s.model})
	return n
}

// classOf is the class of a node as it is.
func (fs *FreeSet) classOf(free *NodeFree) int32 {
	if free.class < 0 {
		free.class = fs.classNumber(fs.classKeyOf(free), free)
	}
	return free.class
}

// classIndex is the class of each node as a job may use it that keeps off some planned starts.
type classIndex struct {
	free         *FreeSet
	planned      []*PlannedStart
	mask         uint64
	classAt      []int32 // by index
	seenChanges  int     // how many changes of the set are in it
	counts       map[*cluster.Partition]*classCount
	moves        []classMove           // since it was made, oldest first; kept only where sums need them
	sums         map[*classFit]*fitSum // see hopeless
	nodesByClass [][]int32             // rising, by class; nil until asked for
}

// classMove is a node that went from one class to another.
type classMove struct{ at, from, to int32 }

// classCount counts the nodes of a partition by class.
type classCount struct {
	members      []bool  // by index: of the partition; nil: all nodes
	nodes        []int32 // how many, by class; -1: the class is not in classes
	classes      []int32 // that have nodes, or had, in the order in which they were met
	emptyClasses int     // how many of them at most have no node any more
}

func (cc *classCount) adjust(kind, more int32) {
	for int(kind) >= len(cc.nodes) {
		cc.nodes = append(cc.nodes, -1)
	}
	if cc.nodes[kind] < 0 {
		cc.nodes[kind] = 0
		cc.classes = append(cc.classes, kind)
	}
	cc.nodes[kind] += more
	if cc.nodes[kind] == 0 {
		cc.emptyClasses++
	}
}

// classesWithNodes is the classes that have nodes, and up to a quarter more that had.
func (cc *classCount) classesWithNodes() []int32 {
	if cc.emptyClasses > len(cc.classes)/4 {
		cc.classes = slices.DeleteFunc(cc.classes, func(k int32) bool {
			if cc.nodes[k] == 0 {
				cc.nodes[k] = -1
			}
			return cc.nodes[k] < 0
		})
		cc.emptyClasses = 0
	}
	return cc.classes
}

// classIndex finds or makes the index for jobs that keep off the planned starts of the mask.
func (fs *FreeSet) classIndex(planned []*PlannedStart, mask uint64) *classIndex {
	for _, ci := range fs.indexes {
		if ci.mask == mask {
			ci.catchUp()
			return ci
		}
	}
	ci := &classIndex{
		free: fs, planned: planned, mask: mask, classAt: make([]int32, len(fs.nodes)),
		seenChanges: len(fs.changes), counts: map[*cluster.Partition]*classCount{},
	}
	for i := range ci.classAt {
		ci.classAt[i] = ci.classifyNode(i)
	}
	fs.indexes = append(fs.indexes, ci)
	return ci
}

// classifyNode finds the class of a node as it may be used beside the planned starts.
func (ci *classIndex) classifyNode(i int) int32 {
	free := &ci.free.nodes[i]
	if ci.mask == 0 || ci.free.classes.tooManyTypes {
		return ci.free.classOf(free)
	}
	var st classKey
	cut := false
	for k, ps := range ci.planned {
		if left := ps.leftOn(i); ci.mask>>k&1 != 0 && left != nil {
			if !cut {
				st = ci.free.classKeyOf(free)
				cut = true
			}
			st = st.limitedTo(left, &ci.free.models[free.model], ci.free.classes)
		}
	}
	if !cut {
		return ci.free.classOf(free)
	}
	return ci.free.classNumber(st, free)
}

// catchUp takes the changes of the free set into account.
func (ci *classIndex) catchUp() {
	for ; ci.seenChanges < len(ci.free.changes); ci.seenChanges++ {
		ch, news := ci.free.freshChange(ci.seenChanges, ci.mask)
		if !news {
			continue
		}
		at := ch.index
		old := ci.classAt[at]
		now := ci.classifyNode(int(at))
		ci.classAt[at] = now
		if old == now {
			continue
		}
		if ci.nodesByClass != nil {
			ci.moveNode(at, old, now)
		}
		if len(ci.sums) > 0 {
			ci.moves = append(ci.moves, classMove{at, old, now})
		}
		for _, cc := range ci.counts {
			if cc.members == nil || cc.members[at] {
				cc.adjust(old, -1)
				cc.adjust(now, 1)
			}
		}
	}
}

// nodesOf lists the nodes of a class, rising.
func (ci *classIndex) nodesOf(kind int32) []int32 {
	if ci.nodesByClass == nil {
		ci.nodesByClass = make([][]int32, len(ci.free.classes.examples))
		for i, k := range ci.classAt {
			ci.nodesByClass[k] = append(ci.nodesByClass[k], int32(i))
		}
	}
	if int(kind) >= len(ci.nodesByClass) {
		return nil
	}
	return ci.nodesByClass[kind]
}

// moveNode moves a node to another class.
func (ci *classIndex) moveNode(at, from, to int32) {
	if int(to) >= len(ci.nodesByClass) {
		ci.nodesByClass = append(ci.nodesByClass, make([][]int32,
			len(ci.free.classes.examples)-len(ci.nodesByClass))...)
	}
	list := ci.nodesByClass[from]
	if k, ok := slices.BinarySearch(list, at); ok {
		ci.nodesByClass[from] = slices.Delete(list, k, k+1)
	}
	k, _ := slices.BinarySearch(ci.nodesByClass[to], at)
	ci.nodesByClass[to] = slices.Insert(ci.nodesByClass[to], k, at)
}

// countFor is the count of a partition's nodes.
func (ci *classIndex) countFor(part *cluster.Partition) *classCount {
	cc, ok := ci.counts[part]
	if !ok {
		cc = &classCount{}
		if !part.All {
			cc.members = make([]bool, len(ci.classAt))
		}
		for _, i := range ci.free.Members(part) {
			if cc.members != nil {
				cc.members[i] = true
			}
			cc.adjust(ci.classAt[i], 1)
		}
		ci.counts[part] = cc
	}
	return cc
}

// classFit is how many tasks of a demand fit on a node of each class.
type classFit struct {
	demand       *Demand
	classes      *nodeClasses
	tasksByClass []int32    // plus one; 0: not worked out yet
	suitsModel   []int8     // by model: 1 the job may use it, -1 it may not, 0 not worked out yet
	needs        Capability // what a node must have at least
	// byNumbers: how many tasks fit is the same on all nodes of a class. Sockets and devices near them are not in
	// the key.
	byNumbers bool
	ratedFor  *workload // what ratings were worked out for
	ratings   []rating  // by class, where they are the demand's own, see knownRatings
}

func newClassFit(d *Demand, fs *FreeSet) *classFit {
	cf := classFitOf(d, fs)
	return &cf
}

func classFitOf(d *Demand, fs *FreeSet) classFit {
	cf := classFit{demand: d, classes: fs.classes, suitsModel: make([]int8, len(fs.models))}
	cf.needs.cpus = int32(max(d.minCPUs, 1))
	if d.ownSpec != nil { // it may use more of a node than other jobs
		cf.needs.cpus = 1
	} else if !d.flags.has(overcommit) {
		cf.needs.cpus = max(cf.needs.cpus, int32(d.cpusPerTask))
	}
	cf.needs.gpus = int32(sumGRES(d.gpuNode))
	cf.needs.mem = math.MinInt64
	if d.memAlloc && d.mem.Per == cluster.MemPerNode {
		cf.needs.mem = d.mem.MB
	}
	bound := d.gpusBound && d.gpus
	cf.byNumbers = !anyOf(
		cf.classes.tooManyTypes,
		d.oneUser,
		d.part.LimitsCPUs(),
		d.tasksPerSocket > 0,
		len(d.gpuSocket) > 0,
		bound,
	)
	return cf
}

// suits reports whether the job may use nodes of a model.
func (cf *classFit) suits(fs *FreeSet, model int) bool {
	if cf.suitsModel[model] == 0 {
		cf.suitsModel[model] = int8(2*b2i(cf.demand.suitsInventory(fs.models[model].inventory)) - 1)
	}
	return cf.suitsModel[model] > 0
}

// tasksOnClass is how many tasks fit on a node of the class.
func (cf *classFit) tasksOnClass(fs *FreeSet, kind int32) int32 {
	b := &cf.classes.capabilities[kind]
	if cf.needs.Exceeds(b) || !cf.suits(fs, b.model) {
		return 0
	}
	return cf.countTasks(kind)
}

// NeededCapability is what a node must have at least for a task to fit; nothing where numbers do not tell.
func (cf *classFit) NeededCapability() Capability {
	if cf.byNumbers {
		return cf.needs
	}
	return noCapability
}

// tasksOnSuited is tasksOnClass where the model is known to suit.
func (cf *classFit) tasksOnSuited(kind int32) int32 {
	if cf.needs.Exceeds(&cf.classes.capabilities[kind]) {
		return 0
	}
	return cf.countTasks(kind)
}

// countTasks is tasksOnSuited where the needs are known to be met.
func (cf *classFit) countTasks(kind int32) int32 {
	if int(kind) >= len(cf.tasksByClass) {
		cf.tasksByClass = append(cf.tasksByClass, make([]int32, len(cf.classes.examples)-len(cf.tasksByClass))...)
	}
	if cf.tasksByClass[kind] == 0 {
		cf.tasksByClass[kind] = int32(min(cf.demand.tasksOn(&cf.classes.examples[kind]), math.MaxInt32-1)) + 1
	}
	return cf.tasksByClass[kind] - 1
}

// fitSum is what a partition can hold of a demand: how many nodes have room, for how many tasks together, and for how
// many one of them has at most.
type fitSum struct {
	nodes, tasks, mostOnOne int
	seenMoves               int // how many moves of the class index are in it
}

func (t *fitSum) addNodes(nodes, room int) {
	t.nodes, t.tasks, t.mostOnOne = t.nodes+nodes, t.tasks+nodes*room, max(t.mostOnOne, room)
}

// moveNode has one node hold another number of tasks.
func (t *fitSum) moveNode(from, to int) {
	t.tasks += to - from
	t.nodes += b2i(to > 0) - b2i(from > 0)
	if from != to {
		t.mostOnOne = max(t.mostOnOne, to)
	}
}

// tooSmall reports whether the job plainly does not fit.
func (t *fitSum) tooSmall(d *Demand, most int) bool {
	return t.nodes < d.MinNodes || t.tasks < d.tasks || min(most, t.nodes)*t.mostOnOne < d.tasks
}

// hopeless reports that the job does not fit whichever nodes it takes: a sum over classes, which is much quicker than
// a search. The first time it stops as soon as the nodes suffice; asked again, it keeps the whole sum and follows the
// moves. It may see hope where there is none (mostOnOne does not shrink), never the reverse.
func (cf *classFit) hopeless(ci *classIndex) bool {
	d := cf.demand
	if !cf.byNumbers {
		return false
	}
	cc := ci.countFor(d.part)
	most := d.mostNodes(len(ci.free.Members(d.part)))
	t, asked := ci.sums[cf]
	if t == nil || len(ci.moves)-t.seenMoves > len(cc.classes) {
		t = &fitSum{seenMoves: len(ci.moves)}
		for _, k := range cc.classesWithNodes() {
			count := int(cc.nodes[k])
			room := int(cf.tasksOnClass(ci.free, k))
			if min(count, room) <= 0 {
				continue
			}
			t.addNodes(count, room)
			if !asked && !t.tooSmall(d, most) {
				ci.rememberSum(cf, nil)
				return cf.shortOfGPUs(cc, ci.free, most)
			}
		}
		ci.rememberSum(cf, t)
	}
	for _, m := range ci.moves[t.seenMoves:] {
		if cc.members == nil || cc.members[m.at] {
			t.moveNode(int(cf.tasksOnClass(ci.free, m.from)), int(cf.tasksOnClass(ci.free, m.to)))
		}
	}
	t.seenMoves = len(ci.moves)
	return t.tooSmall(d, most) || cf.shortOfGPUs(cc, ci.free, most)
}

func (ci *classIndex) rememberSum(cf *classFit, t *fitSum) {
	if ci.sums == nil {
		ci.sums = map[*classFit]*fitSum{}
	}
	ci.sums[cf] = t
}

// shortOfGPUs reports whether the nodes do not have as many GPUs as --gpus asks for.
func (cf *classFit) shortOfGPUs(cc *classCount, fs *FreeSet, most int) bool {
	return slices.ContainsFunc(cf.demand.gpuJob,
		func(w cluster.GRES) bool { return cf.giveTooFewGPUs(cc, fs, w, most) })
}

// giveTooFewGPUs reports that no choice of so many nodes has the GPUs that an entry of --gpus asks for.
func (cf *classFit) giveTooFewGPUs(cc *classCount, fs *FreeSet, want cluster.GRES, most int) bool {
	var nodes []int // how many nodes, by how many GPUs each can give
	for _, k := range cc.classesWithNodes() {
		count := int(cc.nodes[k])
		if count == 0 || cf.tasksOnClass(fs, k) == 0 {
			continue
		}
		gives := max(cf.demand.gpusGivenBy(&cf.classes.examples[k], want.Type), 0)
		for gives >= len(nodes) {
			nodes = append(nodes, 0)
		}
		nodes[gives] += count
	}
	return !canReach(nodes, most, want.Count)
}

// canReach reports whether at most so many nodes, counted by what each can give, give enough together.
func canReach(nodes []int, most int, want int64) bool {
	for gives := len(nodes) - 1; gives > 0 && most > 0 && want > 0; gives-- {
		n := min(nodes[gives], most)
		most -= n
		want -= int64(n * gives)
	}
	return want <= 0
}
