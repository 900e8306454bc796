package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// StepUse is what the live steps of a job hold on one node.
type StepUse struct {
	CPUs  IDSet
	GPUs  IDSet
	MemMB MemMB
}

// PlaceStep finds which part of the job's allocation a step gets, with the number of tasks on
// each node. An error of kind ErrBusy means that it would fit if other steps ended.
// Steps without --exact, -c or --exclusive take all CPUs of their nodes, as in Slurm; the others
// take CPUs of the sockets in turn.
func PlaceStep(j *Job, used map[NodeName]StepUse, s *StepSpec, inv func(NodeName) *Inventory) ([]Share, *Error) {
	shares, err := stepNodes(j, s)
	if err != nil {
		return nil, err
	}
	per := max(s.CPUsPerTask, 1)
	exact := s.Exact || s.CPUsPerTask > 0
	tasks := stepTasks(s, shares)
	free := make([]Share, len(shares))
	room := make([]int, len(shares)) // tasks that would fit if no other step ran
	now := make([]int, len(shares))  // tasks that fit beside the other steps
	for i, sh := range shares {
		u := used[sh.Node]
		if s.Overlap {
			u = StepUse{}
		}
		free[i] = Share{Node: sh.Node, CPUs: sh.CPUs.Minus(u.CPUs), GPUs: sh.GPUs.Minus(u.GPUs), MemMB: sh.MemMB}
		room[i], now[i] = sh.CPUs.Len()/per, free[i].CPUs.Len()/per
		if !exact && !s.Overlap && !u.CPUs.Empty() {
			now[i] = 0 // it wants the whole node of the job
		}
		if k := s.TasksPerNode; k > 0 {
			room[i], now[i] = min(room[i], k), min(now[i], k)
		}
		if s.Overcommit {
			room[i] = tasks
			if !free[i].CPUs.Empty() {
				now[i] = tasks
			}
		}
	}
	for _, sh := range shares {
		if m := s.Mem; m.Per == MemPerNode && m.MB > sh.MemMB && sh.MemMB > 0 || m.Per == MemPerCPU && m.MB > sh.MemMB && sh.MemMB > 0 {
			return nil, Errorf(Invalid, ErrStepMem, "the job has %d MB on node %s, the step asks for %d", sh.MemMB, sh.Node, m.MB)
		}
	}
	if _, ok := spread(tasks, room, s); !ok {
		return nil, Errorf(Invalid, ErrStepCPUs, "%d tasks of %d CPUs do not fit in the allocation", tasks, per)
	}
	counts, ok := spread(tasks, now, s)
	if !ok {
		return nil, Errorf(Conflict, ErrBusy, "other steps hold the CPUs")
	}
	return dealStep(j, shares, free, counts, s, exact, inv)
}

// stepTasks is how many tasks the step has: as asked, or one a node.
func stepTasks(s *StepSpec, shares []Share) int {
	switch {
	case s.Tasks > 0:
		return s.Tasks
	case s.TasksPerNode > 0:
		return s.TasksPerNode * len(shares)
	}
	return len(shares)
}

// stepNodes picks the nodes of the step from the job's.
func stepNodes(j *Job, s *StepSpec) ([]Share, *Error) {
	shares := slices.Clone(j.Alloc.Shares)
	if s.Relative != nil {
		if *s.Relative < 0 || *s.Relative >= len(shares) {
			return nil, Errorf(Invalid, ErrStepNodes, "the job has %d nodes, number %d is beyond", len(shares), *s.Relative)
		}
		shares = shares[*s.Relative:]
	}
	shares = slices.DeleteFunc(shares, func(sh Share) bool { return slices.Contains(s.Exclude, sh.Node) })
	want := s.MinNodes
	if s.MaxNodes > want && want > 0 { // as many as it may have
		want = max(want, min(s.MaxNodes, len(shares)))
	}
	if len(s.NodeList) > 0 {
		var named, rest []Share
		for _, sh := range shares {
			if slices.Contains(s.NodeList, sh.Node) {
				named = append(named, sh)
			} else {
				rest = append(rest, sh)
			}
		}
		for _, n := range s.NodeList {
			if !slices.ContainsFunc(named, func(sh Share) bool { return sh.Node == n }) {
				return nil, Errorf(Invalid, ErrNodeConfig, "node %s is not part of the job", n)
			}
		}
		shares = append(named, rest...)
		if s.Tasks == 0 || s.MinNodes == 0 {
			want = max(want, len(named))
		}
	}
	if want > len(shares) {
		return nil, Errorf(Invalid, ErrStepNodes, "Only allocated %d nodes asked for %d", len(shares), want)
	}
	if s.Tasks > 0 && (want == 0 || want > s.Tasks) {
		want = min(s.Tasks, len(shares))
		if s.TasksPerNode > 0 {
			want = min((s.Tasks+s.TasksPerNode-1)/s.TasksPerNode, len(shares))
		}
	}
	if want == 0 {
		want = len(shares)
	}
	out := shares[:want]
	slices.SortStableFunc(out, func(a, b Share) int { return shareIndex(j, a.Node) - shareIndex(j, b.Node) })
	return out, nil
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
func dist(s *StepSpec) string {
	first, _, _ := strings.Cut(s.Distribution, ":")
	first, _, _ = strings.Cut(first, ",")
	name, _, _ := strings.Cut(first, "=")
	return strings.ToLower(name)
}

// dealStep gives each node its CPUs, GPUs and memory.
func dealStep(j *Job, shares, free []Share, counts []int, s *StepSpec, exact bool, inv func(NodeName) *Inventory) ([]Share, *Error) {
	out := make([]Share, len(shares))
	left := int64(0)
	for _, g := range s.PerJob {
		left += g.Count
	}
	asked := j.askedGPUs(inv)
	for i, sh := range shares {
		o := Share{Node: sh.Node, Tasks: counts[i], CPUs: sh.CPUs, MemMB: sh.MemMB}
		if exact {
			o.CPUs = exactCPUs(free[i], counts[i], s, inv(sh.Node))
		}
		gpus, err := stepGPUs(sh, free[i], asked[shareIndex(j, sh.Node)], counts[i], left-int64(len(shares)-1-i), s)
		if err != nil {
			return nil, err
		}
		o.GPUs = gpus
		left -= int64(gpus.Len())
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
	s, left := j.Spec, int64(0)
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
					out[i], n = out[i].Union(NewIDSet(id)), n-1
				}
			}
		}
		for _, g := range gpuRequests(s.PerNode) {
			take(g, g.Count)
		}
		for _, g := range gpuRequests(s.PerTask) {
			take(g, g.Count*int64(sh.Tasks))
		}
		if len(s.PerJob) > 0 && len(s.PerTask) == 0 { // nodes are filled in turn, each has one at least
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

// stepGPUs picks a step's devices on one node: all that the job asked for unless the step asks for a number, and all that the job
// has for a shell in it. With --gres=none or a number of zero it has none.
func stepGPUs(sh, free Share, own IDSet, tasks int, left int64, s *StepSpec) (IDSet, *Error) {
	want, asked := int64(0), false
	none := func(g GRES) bool { return g.Name == "none" || g.Name == "gpu" && g.Count == 0 }
	if slices.ContainsFunc(s.PerNode, none) || slices.ContainsFunc(s.PerJob, none) || slices.ContainsFunc(s.PerTask, none) {
		return IDSet{}, nil
	}
	for _, g := range s.PerNode {
		if g.Name == "gpu" {
			want, asked = want+g.Count, true
		}
	}
	for _, g := range s.PerTask {
		want, asked = want+g.Count*int64(tasks), true
	}
	if len(s.PerJob) > 0 && len(s.PerTask) == 0 { // nodes are filled in turn, each has one at least
		want, asked = want+max(min(left, int64(sh.GPUs.Len())), 1), true
	}
	switch {
	case !asked && s.Interactive:
		return sh.GPUs, nil
	case !asked:
		return own, nil
	}
	if sh.GPUs.Empty() && want > 0 {
		e := Errorf(Invalid, ErrStepGRES, "the job has no GPUs on node %s, the step asks for %d", sh.Node, want)
		e.Hint = NoGRES
		return IDSet{}, e
	}
	if int64(sh.GPUs.Len()) < want {
		return IDSet{}, Errorf(Invalid, ErrStepGRES, "the job has %d GPUs on node %s, the step asks for %d", sh.GPUs.Len(), sh.Node, want)
	}
	if int64(free.GPUs.Len()) < want {
		return IDSet{}, Errorf(Conflict, ErrBusy, "other steps hold the GPUs of node %s", sh.Node)
	}
	return free.GPUs.First(int(want)), nil
}

// RankLayout says which ranks run on which node, for the counts of each node.
func RankLayout(counts []int, s *StepSpec) [][]int {
	out := make([][]int, len(counts))
	total := 0
	for _, n := range counts {
		total += n
	}
	kind, chunk := dist(s), 1
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

// BindGPUs works out --gpu-bind: with a number per task its own devices in rank order, with a word what that says, else all
// of them. As every step is fenced, maps and masks count from the first device that the step has.
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
			per = int(s.PerTask[0].Count)
		}
		if mode == "per_task" {
			per = number()
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
