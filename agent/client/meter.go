package client

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/fence"
	"dev.muster/agent/measure"
	"dev.muster/agent/step"
	"dev.muster/agent/usage"
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
	*measure.Tally
	every time.Duration
	due   time.Time
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
			loads[i].Procs = slices.DeleteFunc(loads[i].Procs,
				func(p gpu.Proc) bool { return syscall.Kill(p.PID, 0) == syscall.ESRCH })
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range targets {
		if m := c.metered[targets[i].ID]; m != nil {
			m.Add(ranks[i], &found[i])
			if m.HasGPUs() && len(loads) > 0 {
				m.AddGPUs(now, ranks[i], &found[i], loads,
					targets[i].ID.Step != cluster.BatchStep || c.alone(targets[i].ID))
			}
		}
	}
	return next
}

// targets are the parts to measure now, the ranks of their tasks, whether any has GPUs, and when to look again. Parts
// that are gone are forgotten. Called with mu held.
func (c *Client) targets(now time.Time, all bool) (out []usage.Target, ranks [][]int, gpus bool, next time.Time) {
	for id := range c.metered {
		if c.have.Get(id) == nil {
			delete(c.metered, id)
		}
	}
	for id, st := range c.have.All() {
		if st.State != step.Running || !c.local(id.Node) {
			continue
		}
		m := c.metered[id]
		if m == nil {
			if m = c.newMetered(id, st, now); m == nil {
				continue // the servers have not named its job yet
			}
			c.metered[id] = m
			if m.due = now.Truncate(m.every).Add(m.every); m.HasGPUs() && m.every > measureFirst {
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
		t, r := usage.Target{ID: id}, []int(nil)
		for i := range st.Tasks {
			if k := &st.Tasks[i]; k.PID > 0 && k.Ended.IsZero() {
				t.Tasks, r = append(t.Tasks, k.PID), append(r, k.Rank)
			}
		}
		if len(r) > 0 {
			out, ranks, gpus = append(out, t), append(ranks, r), gpus || m.HasGPUs()
		}
	}
	return out, ranks, gpus, next
}

// newMetered finds out how often a part is to be measured and which GPUs it has. Called with mu held.
func (c *Client) newMetered(id step.ID, st *step.Status, now time.Time) *metered {
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
	every := c.config.Sampling(freq)
	var gpus []*cluster.GPU
	shared := false
	for _, sh := range shares {
		if sh.Node != id.Node || c.cfg.GPUs == nil { // a hollow node has none that do anything
			continue
		}
		shared = sh.Part != nil
		gpus = append(gpus, fence.GPUs(&n.Inventory, sh)...)
	}
	return &metered{Tally: measure.NewTally(now, gpus, shared), every: every}
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

// finish puts what was measured of a part's tasks into the status that tells of its end. Called with mu held.
func (c *Client) finish(st *step.Status) {
	m := c.metered[st.ID]
	if m == nil || st.State != step.Ended {
		return
	}
	st.Tasks = slices.Clone(st.Tasks) // the runner has the others
	for i := range st.Tasks {
		if used := m.Task(st.Tasks[i].Rank); used != nil {
			st.Tasks[i].Usage.Join(used)
		}
	}
}
