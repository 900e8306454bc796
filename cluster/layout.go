package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// StepUse is what the live steps of a job hold on one node.
type StepUse struct {
	CPUs    IDSet
	GPUs    IDSet
	MemMB   MemMB
	Counted []GRES
}

// PlaceStep finds which part of the job's allocation a step gets, with the number of tasks on
// each node. An error of kind ErrBusy means that it would fit if other steps ended.
// Steps without --exact, -c or --exclusive take all CPUs of their nodes, as in Slurm; the others
// take CPUs of the sockets in turn. Of the nodes that have room now those of the least index are taken.
func PlaceStep(j *Job, used map[NodeName]StepUse, s *StepSpec, inv func(NodeName) *Inventory) ([]Share, *Error) {
	n, err := stepNodes(j, s)
	if err != nil {
		return nil, err
	}
	exact := s.Exact || s.CPUsPerTask > 0
	free := make([]Share, len(n.shares))
	now := make([]stepRoom, len(n.shares))
	room := make([]stepRoom, len(n.shares))
	for i, sh := range n.shares {
		u := used[sh.Node]
		if s.Overlap {
			u = StepUse{}
		}
		free[i] = sh
		free[i].CPUs = sh.CPUs.Minus(u.CPUs)
		free[i].GPUs = sh.GPUs.Minus(u.GPUs)
		free[i].MemMB = max(sh.MemMB-u.MemMB, 0)
		free[i].Counted = AddCounted(sh.Counted, u.Counted, -1)
		room[i] = roomFor(s, sh)
		now[i] = roomFor(s, free[i])
		if !exact && !s.Overlap && !u.CPUs.Empty() {
			now[i] = stepRoom{} // it wants the whole node of the job
		}
		if _, ok := sh.countedFor(s, inv(sh.Node)); !ok {
			room[i].gpus = 0
		}
		if _, ok := free[i].countedFor(s, inv(sh.Node)); !ok {
			now[i].gpus = 0
		}
		if sh.MemMB == 0 { // memory is not counted
			room[i].mem = unbounded
			now[i].mem = unbounded
		}
	}
	_, _, fits := n.pick(s, room, stepRoom.all)
	if !fits && n.enoughCPUs(s) {
		n.squeeze(room)
		n.squeeze(now)
		_, _, fits = n.pick(s, room, stepRoom.all)
	}
	if !fits || !n.enoughGPUs(s) {
		return nil, n.refuse(s, room)
	}
	chosen, counts, ok := n.pick(s, now, stepRoom.all)
	if !ok {
		return nil, Errorf(Conflict, ErrBusy, "other steps hold what the step asks for")
	}
	var shares, rest []Share
	for _, i := range chosen {
		shares = append(shares, n.shares[i])
		rest = append(rest, free[i])
	}
	return dealStep(j, shares, rest, counts, s, exact, inv)
}

// stepRoom is how many tasks of a step a node has room for, by what bounds them; some: it has a CPU at all.
type stepRoom struct {
	cpus, mem, gpus int
	some            bool
}

// unbounded is room for more tasks than a step can have.
const unbounded = 1 << 30

func (r stepRoom) all() int      { return min(r.cpus, r.mem, r.gpus) }
func (r stepRoom) noGPUs() int   { return min(r.cpus, r.mem) }
func (r stepRoom) onlyCPUs() int { return r.cpus }

// roomFor is how many tasks of a step a part of a node has room for.
func roomFor(s *StepSpec, sh Share) stepRoom {
	per := max(s.CPUsPerTask, 1)
	r := stepRoom{
		cpus: sh.CPUs.Len() / per,
		mem:  unbounded,
		gpus: gpuRoom(s, sh.GPUs.Len()),
		some: !sh.CPUs.Empty(),
	}
	if s.Overcommit && !sh.CPUs.Empty() {
		r.cpus = unbounded
	}
	if k := s.TasksPerNode; k > 0 {
		r.cpus = min(r.cpus, k)
	}
	switch m := s.Mem; {
	case m.MB == 0:
	case m.Per == MemPerNode && m.MB > sh.MemMB:
		r.mem = 0
	case m.Per == MemPerCPU && s.Overcommit && sh.MemMB >= m.MB: // tasks share CPUs, and so their memory
	case m.Per == MemPerCPU: // a task has no more CPUs than there are (squeeze)
		r.mem = int(sh.MemMB / m.MB / MemMB(min(per, max(sh.CPUs.Len(), 1))))
	}
	return r
}

// gpuRoom is how many tasks of a step GPUs of a node are enough for.
func gpuRoom(s *StepSpec, have int) int {
	if s.withoutGPUs() {
		return unbounded
	}
	if have == 0 && s.Mem.Per == MemPerGPU {
		return 0
	}
	node := s.gpusOfNode()
	if have < node || have == 0 && gpuCount(s.PerJob) > 0 {
		return 0
	}
	if task := int(gpuCount(s.PerTask)); task > 0 {
		if node > 0 {
			have = node
		}
		return have / task
	}
	return unbounded
}

// gpusOfNode is how many GPUs a step wants of each node, whatever its tasks want.
func (s *StepSpec) gpusOfNode() int { return int(gpuCount(s.PerNode)) }

// withoutGPUs: --gres=none, or a number of zero.
func (s *StepSpec) withoutGPUs() bool {
	none := func(g GRES) bool {
		return g.Name == "none" || g.Name == "gpu" && g.Count == 0
	}
	return slices.ContainsFunc(slices.Concat(s.PerNode, s.PerJob, s.PerTask), none)
}

// StepMem is how much of a node's memory a step has for itself: 0 where it names none.
func StepMem(s *StepSpec, sh Share) MemMB {
	switch s.Mem.Per {
	case MemPerCPU:
		return s.Mem.MB * MemMB(sh.CPUs.Len())
	case MemPerGPU:
		return s.Mem.MB * MemMB(sh.GPUs.Len())
	}
	return s.Mem.MB
}

// stepTasks is how many tasks the step has on a number of nodes: as asked, or one a node.
func stepTasks(s *StepSpec, nodes int) int {
	switch {
	case s.Tasks > 0:
		return s.Tasks
	case s.TasksPerNode > 0:
		return s.TasksPerNode * nodes
	}
	return nodes
}

// stepChoice is the nodes of a job that a step may have: those named first, each of which it has, then the others.
type stepChoice struct {
	shares   []Share
	index    []int // in the job
	named    int
	min, max int  // how many it has
	fills    bool // it has as many tasks as there is room for
}

// pick chooses nodes with room for all tasks, most of them first, and deals the tasks to them.
func (n *stepChoice) pick(s *StepSpec, room []stepRoom, bound func(stepRoom) int) (chosen, counts []int, ok bool) {
	have := make([]int, len(room))
	for i := range room {
		have[i] = bound(room[i])
	}
	for want := n.max; want >= n.min && want > 0; want-- {
		for _, chosen := range [][]int{n.first(have, want), n.largest(have, want)} {
			if len(chosen) < want {
				continue
			}
			slices.SortFunc(chosen, func(a, b int) int { return n.index[a] - n.index[b] })
			there := make([]int, want)
			for k, i := range chosen {
				there[k] = have[i]
			}
			tasks := stepTasks(s, want)
			if n.fills {
				tasks = max(sum(there), want)
			}
			if counts, ok := spread(tasks, there, s); ok {
				return chosen, counts, true
			}
		}
	}
	return nil, nil, false
}

// first are the named nodes, and those of the least index that have room.
func (n *stepChoice) first(have []int, want int) (out []int) {
	for i := range have {
		if len(out) < want && (i < n.named || have[i] > 0) {
			out = append(out, i)
		}
	}
	return out
}

// largest are the named nodes, and those with the most room.
func (n *stepChoice) largest(have []int, want int) []int {
	out := make([]int, len(have))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out[n.named:], func(a, b int) int { return have[b] - have[a] })
	return out[:min(want, len(out))]
}

// enoughGPUs reports whether the nodes have as many GPUs as the step wants in all.
func (n *stepChoice) enoughGPUs(s *StepSpec) bool {
	have := 0
	for _, sh := range n.shares {
		have += sh.GPUs.Len()
	}
	return s.withoutGPUs() || have >= int(gpuCount(s.PerJob))
}

// enoughCPUs reports whether the nodes together have what so many tasks of -c CPUs want.
func (n *stepChoice) enoughCPUs(s *StepSpec) bool {
	have := 0
	for _, sh := range n.shares {
		have += sh.CPUs.Len()
	}
	return s.Tasks > 0 && s.Tasks*s.CPUsPerTask <= have
}

// squeeze gives a node that has fewer CPUs than a task wants room for one all the same, as Slurm does where the
// job's nodes have enough of them in all.
func (n *stepChoice) squeeze(room []stepRoom) {
	for i := range room {
		if room[i].cpus == 0 && room[i].some {
			room[i].cpus = 1
		}
	}
}

// refuse says why a step fits nowhere in its job, even alone.
func (n *stepChoice) refuse(s *StepSpec, room []stepRoom) *Error {
	if _, _, ok := n.pick(s, room, stepRoom.onlyCPUs); !ok {
		return Errorf(Invalid, ErrStepCPUs, "%d tasks of %d CPUs do not fit in the allocation",
			stepTasks(s, n.max), max(s.CPUsPerTask, 1))
	}
	if _, _, ok := n.pick(s, room, stepRoom.noGPUs); !ok {
		return Errorf(Invalid, ErrStepMem, "the step asks for %d MB, which no node of the job has for it", s.Mem.MB)
	}
	most := 0
	for _, sh := range n.shares {
		most = max(most, sh.GPUs.Len())
	}
	if list := CountedIn(s.PerNode); len(list) > 0 {
		return Errorf(Invalid, ErrStepGRES, "no node of the job has %s for the step (--gres)", joinCounted(list))
	}
	e := Errorf(Invalid, ErrStepGRES, "the job has at most %d GPUs on a node, which are too few for the step", most)
	if most == 0 {
		e.Hint = NoGRES
	}
	return e
}

// stepNodes says which nodes of the job the step may have.
func stepNodes(j *Job, s *StepSpec) (*stepChoice, *Error) {
	n := &stepChoice{shares: slices.Clone(j.Alloc.Shares), fills: fillsNodes(j, s)}
	if s.Relative != nil {
		if *s.Relative < 0 || *s.Relative >= len(n.shares) {
			return nil, Errorf(Invalid, ErrStepNodes, "the job has %d nodes, number %d is beyond",
				len(n.shares), *s.Relative)
		}
		n.shares = n.shares[*s.Relative:]
	}
	excluded := nodeSet(s.Exclude)
	n.shares = slices.DeleteFunc(n.shares, func(sh Share) bool { return excluded[sh.Node] })
	if err := n.putNamedFirst(s); err != nil {
		return nil, err
	}
	index := make(map[NodeName]int, len(j.Alloc.Shares))
	for i, sh := range j.Alloc.Shares {
		index[sh.Node] = i
	}
	for _, sh := range n.shares {
		n.index = append(n.index, index[sh.Node])
	}
	n.min = s.MinNodes
	if n.named > 0 && (s.Tasks == 0 || s.MinNodes == 0) {
		n.min = max(n.min, n.named)
	}
	if n.min > len(n.shares) {
		return nil, Errorf(Invalid, ErrStepNodes, "Only allocated %d nodes asked for %d", len(n.shares), n.min)
	}
	n.bound(s)
	n.named = min(n.named, n.max)
	return n, nil
}

// bound says how many nodes the step has at most: as many as it may have, and has tasks for.
func (n *stepChoice) bound(s *StepSpec) {
	n.max = n.min
	if s.MaxNodes > n.max && n.min > 0 {
		n.max = min(s.MaxNodes, len(n.shares))
	}
	if s.Tasks > 0 && (n.max == 0 || n.max > s.Tasks) {
		per := max(s.TasksPerNode, 1)
		n.max = min((s.Tasks+per-1)/per, len(n.shares))
		n.min = min(n.min, n.max)
		if n.min == 0 {
			n.min = n.max
		}
	}
	if n.max == 0 {
		n.min = len(n.shares)
		n.max = len(n.shares)
	}
}

// fillsNodes: -c alone says how large tasks are, and not how many: then there are as many as the nodes have room
// for. srun's own job was made for one a node, unless it has whole nodes.
func fillsNodes(j *Job, s *StepSpec) bool {
	if s.CPUsPerTask == 0 || s.Tasks > 0 || s.TasksPerNode > 0 || s.Overcommit {
		return false
	}
	return j.Spec.Kind != SrunJob || j.Spec.Sharing == ShareExclusive
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// nodeSet is a list of nodes to look names up in: users may give long ones.
func nodeSet(list []NodeName) map[NodeName]bool {
	set := make(map[NodeName]bool, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}

// putNamedFirst puts the nodes that the step names before the others.
func (n *stepChoice) putNamedFirst(s *StepSpec) *Error {
	if len(s.NodeList) == 0 {
		return nil
	}
	var named, rest []Share
	wanted, here := nodeSet(s.NodeList), map[NodeName]bool{}
	for _, sh := range n.shares {
		if here[sh.Node] = wanted[sh.Node]; wanted[sh.Node] {
			named = append(named, sh)
		} else {
			rest = append(rest, sh)
		}
	}
	for _, name := range s.NodeList {
		if !here[name] {
			return Errorf(Invalid, ErrNodeConfig, "node %s is not part of the job", name)
		}
	}
	n.shares = append(named, rest...)
	n.named = len(named)
	return nil
}

func shareIndex(j *Job, n NodeName) int {
	return slices.IndexFunc(j.Alloc.Shares, func(s Share) bool { return s.Node == n })
}

// spread gives every node one task in turn until all tasks have a place; each node gets at
// least one. False if they do not fit.
func spread(tasks int, room []int, s *StepSpec) ([]int, bool) {
	counts := make([]int, len(room))
	if dist(s) == "arbitrary" && len(s.NodeList) > 0 {
		return arbitrary(tasks, room, s)
	}
	left := tasks
	for left > 0 {
		before := left
		for i := range room {
			if left > 0 && counts[i] < room[i] {
				counts[i]++
				left--
			}
		}
		if left == before {
			return nil, false
		}
	}
	return counts, !slices.Contains(counts, 0)
}

func arbitrary(tasks int, room []int, s *StepSpec) ([]int, bool) {
	counts := make([]int, len(room))
	sorted := slices.Clone(s.NodeList)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for _, n := range s.NodeList[:min(tasks, len(s.NodeList))] {
		if i := slices.Index(sorted, n); i < len(counts) {
			counts[i]++
		}
	}
	return counts, true
}

// dist is the distribution over nodes: the first word of -m.
func dist(s *StepSpec) string { return s.distribution() }

// distribution is the first word of how tasks are to be spread over nodes, in lower case.
func (l *Layout) distribution() string {
	first, _, _ := strings.Cut(l.Distribution, ":")
	first, _, _ = strings.Cut(first, ",")
	name, _, _ := strings.Cut(first, "=")
	return strings.ToLower(name)
}

// dealStep gives each node its CPUs and GPUs.
func dealStep(j *Job, shares, free []Share, counts []int, s *StepSpec, exact bool,
	inv func(NodeName) *Inventory) ([]Share, *Error) {
	out := make([]Share, len(shares))
	left := int(gpuCount(s.PerJob))
	asked := j.askedGPUs(inv)
	for i, sh := range shares {
		o := Share{
			Node:  sh.Node,
			Tasks: counts[i],
			CPUs:  sh.CPUs,
			MemMB: sh.MemMB,
		}
		if exact {
			o.CPUs = exactCPUs(free[i], counts[i], s, inv(sh.Node))
		}
		gpus, err := stepGPUs(sh, free[i], asked[shareIndex(j, sh.Node)], counts[i], left-(len(shares)-1-i), s)
		if err != nil {
			return nil, err
		}
		o.GPUs = gpus
		o.Counted, _ = free[i].countedFor(s, inv(sh.Node))
		if own := StepMem(s, o); own > 0 {
			o.MemMB = min(own, sh.MemMB)
		}
		left -= gpus.Len()
		out[i] = o
	}
	return out, nil
}

// exactCPUs are the CPUs of a step that takes no more than its tasks need.
func exactCPUs(free Share, tasks int, s *StepSpec, inv *Inventory) (out IDSet) {
	per := max(s.CPUsPerTask, 1)
	if tasks*per >= free.CPUs.Len() {
		return free.CPUs
	}
	for _, m := range byCore(s, Share{CPUs: free.CPUs, Tasks: max(tasks, 1)}, inv, per) {
		out = out.Union(m)
	}
	return out
}

// NoGRES is the hint of an error about a step that asks for devices of a job that has none.
const NoGRES = "the job has no such devices"

// askedGPUs are those GPUs of each of a job's nodes that it has asked for: one that has whole nodes has all of theirs.
func (j *Job) askedGPUs(inv func(NodeName) *Inventory) []IDSet {
	s := j.Spec
	left := int64(0)
	for _, g := range s.PerJob {
		left += g.Count
	}
	out := make([]IDSet, len(j.Alloc.Shares))
	for i, sh := range j.Alloc.Shares {
		if len(s.PerSocket) > 0 || sh.Part != nil {
			out[i] = sh.GPUs
			continue
		}
		take := func(g GRES, n int64) {
			for id := range sh.GPUs.Minus(out[i]).All() {
				if n > 0 && (g.Type == "" || inv(sh.Node).GPUs[id].Type == g.Type) {
					out[i] = out[i].Union(NewIDSet(id))
					n = n - 1
				}
			}
		}
		for _, g := range gpuRequests(s.PerNode) {
			take(g, g.Count)
		}
		for _, g := range gpuRequests(s.PerTask) {
			take(g, g.Count*int64(sh.Tasks)-int64(out[i].Len()))
		}
		if len(s.PerJob) > 0 && out[i].Empty() { // nodes are filled in turn, each has one at least
			take(GRES{}, max(left-int64(len(out)-1-i), 1))
			left -= int64(out[i].Len())
		}
	}
	return out
}

// gpuRequests are those of a list of requests that are for whole GPUs.
func gpuRequests(list []GRES) []GRES {
	return slices.DeleteFunc(slices.Clone(list), func(g GRES) bool { return g.Name != "gpu" })
}

// stepGPUs picks a step's devices on one node: all that the job asked for unless the step asks for a number, and
// all that the job has for a shell in it, and for a step that names a number for each socket, as in Slurm. With
// --gres=none or a number of zero it has none. Where it asks in several ways it has what the largest of them needs.
func stepGPUs(sh, free Share, own IDSet, tasks, left int, s *StepSpec) (IDSet, *Error) {
	if s.withoutGPUs() {
		return IDSet{}, nil
	}
	want := max(s.gpusOfNode(), int(gpuCount(s.PerTask))*tasks)
	if want == 0 && gpuCount(s.PerJob) > 0 { // nodes are filled in turn, each has one at least
		want = max(min(left, free.GPUs.Len()), 1)
	}
	switch {
	case want == 0 && (s.Interactive || gpuCount(s.PerSocket) > 0): // a number for each socket chooses the job's
		return sh.GPUs, nil
	case want == 0:
		return own, nil
	case free.GPUs.Len() < want:
		return IDSet{}, Errorf(Conflict, ErrBusy, "other steps hold the GPUs of node %s", sh.Node)
	}
	return free.GPUs.First(want), nil
}

// RankLayout says which ranks run on which node, for the counts of each node.
func RankLayout(counts []int, s *StepSpec) [][]int {
	out := make([][]int, len(counts))
	total := 0
	for _, n := range counts {
		total += n
	}
	kind := dist(s)
	chunk := 1
	switch kind {
	case "cyclic":
	case "plane":
		chunk = max(s.PlaneSize, 1)
	case "arbitrary":
		if len(s.NodeList) > 0 {
			return arbitraryRanks(counts, total, s)
		}
		fallthrough
	default:
		rank := 0
		for i, n := range counts {
			for range n {
				out[i] = append(out[i], rank)
				rank++
			}
		}
		return out
	}
	for rank := 0; rank < total; {
		for i := range counts {
			for k := 0; k < chunk && len(out[i]) < counts[i] && rank < total; k++ {
				out[i] = append(out[i], rank)
				rank++
			}
		}
	}
	return out
}

// RankLabel is what stands before each line of a task with srun -l: its rank, as wide as the last rank of the step.
func RankLabel(rank, tasks int) string {
	width := len(strconv.Itoa(max(tasks-1, 0)))
	return fmt.Sprintf("%*d: ", width, rank)
}

func arbitraryRanks(counts []int, total int, s *StepSpec) [][]int {
	out := make([][]int, len(counts))
	sorted := slices.Clone(s.NodeList)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for rank, n := range s.NodeList[:min(total, len(s.NodeList))] {
		if i := slices.Index(sorted, n); i < len(out) {
			out[i] = append(out[i], rank)
		}
	}
	return out
}

// GPUBinding is which of the step's devices on a node one of its tasks sees.
type GPUBinding struct {
	GPUs    IDSet
	Verbose bool     // tell about it
	Notes   []string // what of --gpu-bind could not be met, and what was done instead
}

// BindGPUs works out --gpu-bind: with a number per task its own devices in rank order, with a word what that says,
// else all of them. As every step is fenced, maps and masks count from the first device that the step has.
func BindGPUs(s *StepSpec, gpus IDSet, local int, inv *Inventory) GPUBinding {
	bind, verbose := strings.CutPrefix(strings.TrimPrefix(s.GPUBind, "gpu:"), "verbose,")
	b := GPUBinding{GPUs: gpus, Verbose: verbose}
	ids := slices.Collect(gpus.All())
	if len(ids) == 0 {
		return b
	}
	bind = strings.TrimPrefix(bind, "gpu:")
	mode, arg, _ := strings.Cut(bind, ":")
	number := func() int {
		arg, _, _ = strings.Cut(arg, ",")
		k, err := strconv.Atoi(arg)
		if err != nil || k < 1 {
			b.Notes = append(b.Notes, "--gpu-bind="+mode+":"+arg+" does not specify a valid number. Defaulting to 1.")
			k = 1
		}
		return k
	}
	switch {
	case mode == "none": // no binding: all that the step has
		return b
	case mode == "map_gpu":
		b.GPUs = fromList(ids, repeatList(arg), local)
	case mode == "mask_gpu":
		b.GPUs = fromMask(ids, repeatList(arg), local)
	case mode == "single":
		b.GPUs = NewIDSet(ids[local/number()%len(ids)])
	case mode == "closest":
		b.GPUs = closest(gpus, local, inv)
	case mode == "per_task" || len(s.PerTask) > 0:
		per := 1
		if len(s.PerTask) > 0 {
			per = int(min(s.PerTask[0].Count, maxCount))
		}
		if mode == "per_task" {
			per = min(number(), maxCount)
		}
		if b.GPUs = slice(ids, local*per, per); b.GPUs.Len() < per {
			b.Notes = append(b.Notes, "Not enough gpus to bind for gpus per task")
		}
	case s.TasksPerGPU > 0:
		b.GPUs = NewIDSet(ids[local/s.TasksPerGPU%len(ids)])
	}
	if b.GPUs.Empty() {
		b.GPUs = NewIDSet(ids[0])
		b.Notes = append(b.Notes, "Bind request gpu:"+bind+" does not specify any devices within the allocation for task "+strconv.Itoa(local)+
			". Binding to the first device in the allocation instead.")
	}
	return b
}

func slice(ids []int, from, n int) IDSet {
	var out IDSet
	for i := from; i < from+n && i < len(ids); i++ {
		out.put(ids[i])
	}
	return out
}

// repeatList expands "0*2,3" to 0 0 3.
func repeatList(text string) (out []string) {
	for _, w := range strings.Split(text, ",") {
		v, times, ok := strings.Cut(w, "*")
		n := 1
		if k, err := strconv.Atoi(times); ok && err == nil {
			n = min(max(k, 1), 1024)
		}
		for range n {
			out = append(out, v)
		}
	}
	return out
}

func fromList(ids []int, list []string, local int) IDSet {
	k, err := strconv.ParseUint(list[local%len(list)], 0, 16)
	if err != nil || int(k) >= len(ids) {
		return IDSet{}
	}
	return NewIDSet(ids[k])
}

func fromMask(ids []int, list []string, local int) IDSet {
	mask, err := strconv.ParseUint(strings.TrimPrefix(list[local%len(list)], "0x"), 16, 64)
	var out IDSet
	for i, id := range ids {
		if err == nil && i < 64 && mask>>i&1 == 1 {
			out.put(id)
		}
	}
	return out
}

// closest are the devices on the socket of the task's first core, all if none is known.
func closest(gpus IDSet, local int, inv *Inventory) IDSet {
	per := max(inv.CoresPerSocket, 1) * max(inv.ThreadsPerCore, 1)
	cpu := local % max(inv.Sockets, 1) * per // tasks are bound to sockets in turn
	var out IDSet
	for id := range gpus.All() {
		if id < len(inv.GPUs) && inv.GPUs[id].Cores.Has(cpu) {
			out.put(id)
		}
	}
	if out.Empty() {
		return gpus
	}
	return out
}
