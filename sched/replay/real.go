package replay

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
)

// Names of muster's own scheduler among the policies: in the order that its configuration says, and in that of the
// queue.
const (
	Real   = "muster"
	Strict = "strict"
)

// Schedule runs the trace under the policy of a name.
func (t *Trace) Schedule(name string, config *cluster.Config, better Placement, tick func(int)) ([]Run, error) {
	switch name {
	case Real:
		return t.Replay(config, tick)
	case Strict:
		own := cluster.DefaultConfig()
		if config != nil {
			own = *config
		}
		own.StrictOrder = true
		return t.Replay(&own, tick)
	}
	return t.Textbook(Named(name), better, tick), nil
}

// real is a replay by the real scheduler: the commands of a cluster, applied at the trace's times.
type real struct {
	*Trace
	state *cluster.State
	index uint64
	now   int64
	most  int // GPUs of the largest node
	nodes map[cluster.NodeName]int
	jobs  map[cluster.JobID]*Job
	ends  realEnds
	seq   []uint64 // of each node's last report
	out   []Run

	scheduler sched.Scheduler
}

// realEnd is when a job's work is done.
type realEnd struct {
	at  int64
	job cluster.JobID
}

type realEnds []realEnd

func (h realEnds) Len() int { return len(h) }
func (h realEnds) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].job, h[j].job)) < 0
}
func (h realEnds) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *realEnds) Push(x any)   { *h = append(*h, x.(realEnd)) }
func (h *realEnds) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

var beginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (r *real) time() time.Time { return beginning.Add(time.Duration(r.now) * time.Second) }

func (r *real) apply(c cluster.Command) (any, error) {
	r.index++
	a := r.state.Apply(cluster.Entry{Index: r.index, At: r.time(), By: cluster.Identity{System: true}, Cmd: c})
	if a.Err != nil {
		return nil, a.Err
	}
	return a.Result, nil
}

// Replay runs the trace by the real scheduler under a configuration; nil is the default one. Its nodes and
// partitions are the trace's. tick, if not nil, is called with the number of jobs that have started.
func (t *Trace) Replay(config *cluster.Config, tick func(int)) ([]Run, error) {
	r := &real{
		Trace: t, state: cluster.NewState(), nodes: map[cluster.NodeName]int{},
		jobs: map[cluster.JobID]*Job{}, seq: make([]uint64, len(t.Nodes)),
	}
	if err := r.build(config); err != nil {
		return nil, err
	}
	for next := 0; next < len(t.Jobs) || len(r.ends) > 0; {
		r.now = math.MaxInt64
		if next < len(t.Jobs) {
			r.now = t.Jobs[next].Submit
		}
		if len(r.ends) > 0 {
			r.now = min(r.now, r.ends[0].at)
		}
		for len(r.ends) > 0 && r.ends[0].at == r.now {
			if err := r.end(heap.Pop(&r.ends).(realEnd).job); err != nil {
				return nil, err
			}
		}
		for _, c := range cluster.Due(r.state.Snapshot(), r.time()) {
			if _, err := r.apply(c); err != nil {
				return nil, err
			}
		}
		for ; next < len(t.Jobs) && t.Jobs[next].Submit == r.now; next++ {
			j := &t.Jobs[next]
			id, err := r.apply(&cluster.Submit{Spec: r.spec(j)})
			if err != nil {
				return nil, fmt.Errorf("job %s: %w", j.ID, err)
			}
			r.jobs[id.(cluster.JobID)] = j
		}
		if err := r.pass(); err != nil {
			return nil, err
		}
		if tick != nil {
			tick(len(r.out))
		}
	}
	if len(r.out) < len(t.Jobs) {
		started := map[*Job]bool{}
		for _, run := range r.out {
			started[run.Job] = true
		}
		for i := range t.Jobs {
			if j := &t.Jobs[i]; !started[j] {
				return nil, fmt.Errorf("%d jobs of %d never start, the first is job %s: no node has its CPUs, memory or gpu_type, or --conf forbids it; "+
					"correct it, or leave %s out of --policy", len(t.Jobs)-len(r.out), len(t.Jobs), j.ID, Real)
			}
		}
	}
	return r.out, nil
}

// build makes the cluster.
func (r *real) build(config *cluster.Config) error {
	cfg := cluster.DefaultConfig()
	if config != nil {
		cfg = *config
	}
	cfg.MaxJobCount, cfg.MinJobAge, cfg.Declared = max(len(r.Jobs)+1, cfg.MaxJobCount), time.Second, nil
	parts := map[string][]cluster.NodeName{}
	var names []string
	if _, err := r.apply(&cluster.RaiseLevel{Level: cluster.Newest}); err != nil {
		return err
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		r.most = max(r.most, n.GPUs)
		r.nodes[cluster.NodeName(n.Name)] = i
		if parts[n.Partition] == nil {
			names = append(names, n.Partition)
		}
		parts[n.Partition] = append(parts[n.Partition], cluster.NodeName(n.Name))
	}
	if len(names) > 1 || names[0] != "" {
		cfg.Partitions = nil
		for _, name := range names {
			cfg.Partitions = append(cfg.Partitions, cluster.Partition{
				Name: cmp.Or(name, "main"), Nodes: parts[name], Default: len(cfg.Partitions) == 0,
			})
		}
	}
	r.wire(&cfg)
	if slices.ContainsFunc(r.Jobs, func(j Job) bool { return j.share() < whole }) {
		for i := range r.Nodes {
			if n := &r.Nodes[i]; n.GPUs > 0 {
				cfg.GRES = append(cfg.GRES, cluster.GRESLine{
					Nodes: []cluster.NodeName{cluster.NodeName(n.Name)}, Name: "shard",
					Count: whole * n.GPUs,
				})
			}
		}
	}
	if _, err := r.apply(&cluster.Configure{Config: &cfg}); err != nil {
		return err
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		inv := cluster.Inventory{CPUs: max(n.CPUs, 1), Sockets: 1, CoresPerSocket: max(n.CPUs, 1), ThreadsPerCore: 1,
			MemMB: cluster.MemMB(cmp.Or(n.MemMB, 1<<40)), Hollow: true}
		for k := range n.GPUs {
			inv.GPUs = append(inv.GPUs, cluster.GPU{Index: k, Minor: k, Type: n.GPUType})
		}
		if _, err := r.apply(&cluster.NodeUp{Name: cluster.NodeName(n.Name), Inventory: inv}); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// spec is what the job's user would have asked for.
func (r *real) spec(j *Job) *cluster.JobSpec {
	s := &cluster.JobSpec{Layout: &cluster.Layout{}, Kind: cluster.Batch, Name: j.ID, User: j.User,
		UID: uid(j.User), Account: j.Group, WorkDir: "/",
		Limit: time.Duration(j.Limit) * time.Second}
	s.MinNodes, s.MaxNodes = j.Nodes, j.Nodes
	if j.Partition != "" && slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.Partition == j.Partition }) {
		s.Partitions = []string{j.Partition}
	}
	if j.GPUs == 0 {
		s.Tasks = j.CPUs
		return s
	}
	if s.MinNodes == 0 { // as few as possible
		s.MinNodes = (j.GPUs + r.most - 1) / r.most
		s.MaxNodes = s.MinNodes
	}
	s.Tasks = s.MinNodes
	if j.Nodes == 1 { // else nobody says what of it is on which node
		s.CPUsPerTask, s.Mem = j.CPUs, cluster.Mem{Per: cluster.MemPerNode, MB: cluster.MemMB(j.MemMB)}
	}
	if n := j.share(); n < whole {
		s.PerNode = []cluster.GRES{{Name: "shard", Type: j.GPUType, Count: int64(n)}}
		return s
	}
	s.PerJob = []cluster.GRES{{Name: "gpu", Type: j.GPUType, Count: int64(j.GPUs)}}
	return s
}

// uid gives users numbers of their own, always the same (FNV-1a).
func uid(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return 1000 + h%(1<<30)
}

// end tells the cluster that a job's work is done on all its nodes.
func (r *real) end(id cluster.JobID) error {
	j, ok := r.state.Job(id)
	if !ok {
		return fmt.Errorf("job %d is lost", id)
	}
	for i, name := range j.AllocNodes() {
		n := r.nodes[name]
		r.seq[n]++
		rep := &cluster.Report{Node: name, Seq: r.seq[n]}
		if i == 0 {
			rep.Updates = append(rep.Updates, cluster.Update{
				Kind: cluster.BatchOver, Job: id, Attempt: j.Attempt, At: r.time(),
			})
		}
		rep.Updates = append(rep.Updates, cluster.Update{
			Kind: cluster.NodeDone, Job: id, Attempt: j.Attempt, At: r.time(),
		})
		if _, err := r.apply(rep); err != nil {
			return err
		}
	}
	return nil
}

// pass lets the scheduler decide until nothing more starts.
func (r *real) pass() error {
	for {
		decisions := r.scheduler.Schedule(r.state.Snapshot(), r.time())
		if len(decisions) == 0 {
			return nil
		}
		refused, err := r.apply(&cluster.Decide{Decisions: decisions})
		if err != nil {
			return err
		}
		started := false
		for i, d := range decisions {
			if e := refused.([]*cluster.Error)[i]; e != nil {
				return fmt.Errorf("decision on job %d: %w", d.Job, e)
			}
			if d.Start == nil {
				continue
			}
			started = true
			run := r.run(r.jobs[d.Job], d.Start)
			r.out = append(r.out, run)
			heap.Push(&r.ends, realEnd{run.End, d.Job})
		}
		if !started {
			return nil
		}
	}
}

// run is a job's place in the schedule that starts now.
func (r *real) run(j *Job, a *cluster.Alloc) Run {
	out := Run{Job: j, Start: r.now, End: r.now + j.Run}
	at := func(sh cluster.Share) int { return r.nodes[sh.Node] }
	for _, sh := range slices.SortedFunc(slices.Values(a.Shares),
		func(a, b cluster.Share) int { return at(a) - at(b) }) {
		out.Nodes = append(out.Nodes, at(sh))
		out.Parts = append(out.Parts, r.partOf(&sh))
	}
	return out
}

// partOf is how much a share is, in thousandths.
func (r *real) partOf(sh *cluster.Share) int {
	switch {
	case sh.Part != nil:
		return int(sh.Part.Count)
	case r.most > 0:
		return sh.GPUs.Len() * whole
	}
	return sh.CPUs.Len() * whole
}
