package client

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"dev.muster/gpu"
	"dev.muster/wire"
)

// What running steps use is measured in passes: all parts that are due together, so that one walk over the machine's
// processes and one question about its GPUs serve them all. It is kept here, never in the log; a part's end takes it
// along (finish). Where nothing runs, nothing is done.

const (
	measureAgain  = time.Second            // at most one pass in this time is made because somebody asks
	measureGather = 200 * time.Millisecond // parts that begin are gathered this long before they are looked at
	measureFirst  = time.Second            // from a part's begin to the first pass, where it has GPUs: their energy counts from there
	gpuTime       = 2 * time.Second        // for the GPUs to be sampled
)

// passes are those of the meter.
type passes struct {
	begins chan struct{} // a part that is not measured yet runs
	mu     sync.Mutex    // held during a pass; taken before the client's mu
	asked  time.Time     // the last one that somebody asked for; guarded by mu
}

// metered is what was measured of one part of a step.
type metered struct {
	every time.Duration
	due   time.Time
	at    time.Time          // when its GPUs were sampled last, or it was first seen
	tasks map[int]*stepUsage // by rank
	pids  []int
	gpus  []meteredGPU
	// shared: other jobs have parts of the same GPU, so that only what processes did counts.
	shared bool
}

// meteredGPU is one of the part's GPUs, or slices of one.
type meteredGPU struct {
	uuid, parent string
	first        uint64 // energy at the first sample, mJ; 0: not known
}

// stepUsage adds up what one task used.
type stepUsage struct {
	cluster.TaskUsage
	seconds   float64 // in which its GPUs were sampled
	util, mem float64 // of them, times seconds
	freqs     int64   // the sum of the CPU frequencies seen, kHz
	seen      int64   // how many these are
}

// meter makes the passes that are due, until ctx ends.
func (c *Client) meter(ctx context.Context) {
	if c.cfg.Sampler == nil {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.passes.begins:
			if soon := time.Now().Add(measureGather); next.IsZero() || soon.Before(next) {
				next = soon
				timer.Reset(measureGather)
			}
			continue
		case <-timer.C:
		}
		if next = c.measure(ctx, time.Now(), false); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// metersNow has a part that begins to run looked at. Called with mu held.
func (c *Client) metersNow(st *step.Status) {
	if st.State == step.Running && c.metered[st.ID] == nil {
		c.meterSoon()
	}
}

func (c *Client) meterSoon() {
	select {
	case c.passes.begins <- struct{}{}:
	default:
	}
}

// measure makes a pass over the parts that are due, or if asked over all, and tells when the next one is.
func (c *Client) measure(ctx context.Context, now time.Time, asked bool) (next time.Time) {
	if c.cfg.Sampler == nil {
		return next
	}
	c.passes.mu.Lock()
	defer c.passes.mu.Unlock()
	if asked {
		if now.Sub(c.passes.asked) < measureAgain {
			return next
		}
		c.passes.asked = now
	}
	c.mu.Lock()
	targets, ranks, gpus, next := c.targets(now, asked)
	c.mu.Unlock()
	if len(targets) == 0 {
		return next
	}
	found := c.cfg.Sampler.Pass(targets)
	var loads []gpu.Load
	if gpus && c.cfg.GPUs != nil {
		gctx, cancel := context.WithTimeout(ctx, gpuTime)
		var err error
		if loads, err = c.cfg.GPUs.Sample(gctx); err != nil {
			c.slog.Debug("the GPUs could not be sampled", "err", err)
		}
		cancel()
		for i := range loads { // in a container of its own NVML may name processes of the machine's, unknown here
			loads[i].Procs = slices.DeleteFunc(loads[i].Procs, func(p gpu.Proc) bool { return syscall.Kill(p.PID, 0) == syscall.ESRCH })
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range targets {
		if m := c.metered[targets[i].ID]; m != nil {
			m.add(ranks[i], &found[i])
			if len(m.gpus) > 0 && len(loads) > 0 {
				m.addGPUs(now, ranks[i], &found[i], loads, targets[i].ID.Step != cluster.BatchStep || c.alone(targets[i].ID))
			}
		}
	}
	return next
}

// targets are the parts to measure now, the ranks of their tasks, whether any has GPUs, and when to look again. Parts
// that are gone are forgotten. Called with mu held.
func (c *Client) targets(now time.Time, all bool) (out []step.Target, ranks [][]int, gpus bool, next time.Time) {
	for id := range c.metered {
		if c.have.get(id) == nil {
			delete(c.metered, id)
		}
	}
	for id, st := range c.have.all() {
		if st.State != step.Running || !c.local(id.Node) {
			continue
		}
		m := c.metered[id]
		if m == nil {
			if m = c.newMetered(id, st); m == nil {
				continue // the servers have not named its job yet
			}
			m.at, c.metered[id] = now, m
			if m.due = now.Truncate(m.every).Add(m.every); len(m.gpus) > 0 && m.every > measureFirst {
				m.due = now.Truncate(measureFirst).Add(measureFirst)
			}
		}
		due := m.every < cluster.Unlimited && !m.due.After(now)
		if due {
			m.due = now.Truncate(m.every).Add(m.every) // all of one pace together
		}
		if m.every < cluster.Unlimited {
			next = sooner(next, m.due)
		}
		if !due && !all {
			continue
		}
		t, r := step.Target{ID: id}, []int(nil)
		for i := range st.Tasks {
			if k := &st.Tasks[i]; k.PID > 0 && k.Ended.IsZero() {
				t.Tasks, r = append(t.Tasks, k.PID), append(r, k.Rank)
			}
		}
		if len(r) > 0 {
			out, ranks, gpus = append(out, t), append(ranks, r), gpus || len(m.gpus) > 0
		}
	}
	return out, ranks, gpus, next
}

// newMetered finds out how often a part is to be measured and which GPUs it has. Called with mu held.
func (c *Client) newMetered(id step.ID, st *step.Status) *metered {
	n := c.nodes[id.Node]
	h := n.jobs[id.Job]
	if h == nil || h.job.Attempt != id.Attempt {
		return nil
	}
	freq, shares := h.job.Spec.AcctgFreq, h.job.Alloc.Shares
	if ls := c.steps[cluster.StepID{Job: id.Job, Step: id.Step}]; ls != nil {
		freq, shares = cmp.Or(ls.spec.AcctgFreq, freq), ls.record.Shares
	} else if memo := (note{}); id.Step >= 0 && wire.Unmarshal(st.Note, &memo) == nil { // another client leads it
		freq, shares = cmp.Or(memo.Spec.AcctgFreq, freq), memo.Record.Shares
	}
	m := &metered{every: c.config.Sampling(freq), tasks: map[int]*stepUsage{}}
	if c.cfg.GPUs == nil {
		return m // of a hollow node
	}
	for _, sh := range shares {
		if sh.Node != id.Node {
			continue
		}
		m.shared = sh.Part != nil
		for _, g := range ownGPUs(&n.Inventory, sh) {
			own := meteredGPU{uuid: g.UUID}
			if g.MIG != nil {
				own.parent = g.MIG.Parent
			}
			m.gpus = append(m.gpus, own)
		}
	}
	return m
}

// alone reports whether nothing but its script runs of a job here. Called with mu held.
func (c *Client) alone(batch step.ID) bool {
	for id, st := range c.have[batch.Node] {
		if id.Job == batch.Job && id.Attempt == batch.Attempt && id.Step != batch.Step && st.State == step.Running {
			return false
		}
	}
	return true
}

func (m *metered) tally(rank int) *stepUsage {
	t := m.tasks[rank]
	if t == nil {
		t = &stepUsage{}
		m.tasks[rank] = t
	}
	return t
}

// add takes what a pass found of the part's processes.
func (m *metered) add(ranks []int, found *step.Sampled) {
	for i, s := range found.Tasks {
		t := m.tally(ranks[i])
		t.Join(&cluster.TaskUsage{UserCPU: s.User, SystemCPU: s.System, MaxRSS: s.RSS, MaxVM: s.VM, Pages: s.Pages, Read: s.Read, Written: s.Written})
		if s.CPUFreq > 0 {
			t.freqs, t.seen = t.freqs+s.CPUFreq, t.seen+1
			t.CPUFreq = t.freqs / t.seen
		}
	}
	m.pids = m.pids[:0]
	for _, p := range found.Procs {
		m.pids = append(m.pids, p.PID)
	}
	slices.Sort(m.pids)
}

// addGPUs takes what the GPUs did for the part. What a GPU does belongs to the tasks whose processes it names; where it
// names none at all, to all tasks of the part, if that has the GPU to itself.
func (m *metered) addGPUs(now time.Time, ranks []int, found *step.Sampled, loads []gpu.Load, whole bool) {
	task := make(map[int]int, len(found.Procs))
	for _, p := range found.Procs {
		task[p.PID] = p.Task
	}
	util, mem, energy := make([]float64, len(ranks)), make([]float64, len(ranks)), 0.0
	seen, told := false, true
	for i := range m.gpus {
		g := &m.gpus[i]
		k := slices.IndexFunc(loads, func(l gpu.Load) bool { return l.UUID == g.uuid })
		if k < 0 && g.parent != "" {
			k = slices.IndexFunc(loads, func(l gpu.Load) bool { return l.UUID == g.parent })
		}
		if k < 0 {
			continue // lost
		}
		seen, told = true, told && loads[k].Util >= 0
		divide(&loads[k], task, util, mem, whole && !m.shared)
		if g.first == 0 {
			g.first = loads[k].EnergyMJ
		}
		if g.parent == "" && whole && !m.shared {
			energy += float64(loads[k].EnergyMJ-min(g.first, loads[k].EnergyMJ)) / 1000
		}
	}
	if !seen {
		return
	}
	seconds := max(now.Sub(m.at).Seconds(), 0.001)
	m.at = now
	for i, rank := range ranks {
		m.tally(rank).addGPU(seconds, util[i], mem[i], energy/float64(len(ranks)), told)
	}
}

// divide adds what one GPU does to its tasks: percent and MB.
func divide(l *gpu.Load, task map[int]int, util, mem []float64, whole bool) {
	var ours []gpu.Proc
	named, used := 0, int64(0)
	for _, p := range l.Procs {
		if _, ok := task[p.PID]; ok {
			ours = append(ours, p)
		}
		named, used = named+p.Util, used+p.MemMB
	}
	if len(l.Procs) == 0 && whole {
		for i := range util {
			util[i] += float64(max(l.Util, 0)) / float64(len(util))
			mem[i] += float64(l.MemUsedMB) / float64(len(mem))
		}
		return
	}
	for _, p := range ours {
		i := task[p.PID]
		if named > 0 { // the GPU's own figure, by what each process had of it
			util[i] += float64(max(l.Util, 0)) * float64(p.Util) / float64(named)
		} else {
			util[i] += float64(max(l.Util, 0)) / float64(len(l.Procs))
		}
		if used > 0 {
			mem[i] += float64(p.MemMB)
		} else {
			mem[i] += float64(l.MemUsedMB) / float64(len(l.Procs))
		}
	}
}

// addGPU takes a sample, which stands for the time since the one before.
func (t *stepUsage) addGPU(seconds, percent, mb, joules float64, told bool) {
	t.seconds, t.util, t.mem = t.seconds+seconds, t.util+percent*seconds, t.mem+mb*seconds
	g := cluster.GPUUsage{Util: int64(t.util / t.seconds * 100), MaxUtil: int64(percent * 100), Mem: int64(t.mem / t.seconds * (1 << 20)),
		MaxMem: int64(mb * (1 << 20)), Energy: int64(joules), NoUtil: !told}
	if old := t.GPU; old != nil {
		g.NoUtil = g.NoUtil || old.NoUtil
		g.MaxUtil, g.MaxMem, g.Energy = max(g.MaxUtil, old.MaxUtil), max(g.MaxMem, old.MaxMem), max(g.Energy, old.Energy)
	}
	t.GPU = &g
}

// finish puts what was measured of a part's tasks into the status that tells of its end. Called with mu held.
func (c *Client) finish(st *step.Status) {
	m := c.metered[st.ID]
	if m == nil || st.State != step.Ended {
		return
	}
	st.Tasks = slices.Clone(st.Tasks) // the runner has the others
	for i := range st.Tasks {
		if t := m.tasks[st.Tasks[i].Rank]; t != nil {
			st.Tasks[i].Usage.Join(&t.TaskUsage)
		}
	}
}
