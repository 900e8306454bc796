package client

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"dev.muster/agent/fence"
	"dev.muster/agent/machine"
	"dev.muster/agent/measure"
	"dev.muster/agent/meter"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Measurements of this machine and of the jobs on it (package measure). Hollow nodes whose steps really run have
// what their jobs do; others have none.

// measureHardware measures until ctx ends.
func (c *Client) measureHardware(ctx context.Context) {
	if c.cfg.Sampler == nil {
		return
	}
	cfg := measure.Config{
		Span: c.cfg.SampleSpan,
		Work: c.measuredWork,
		Use:  c.meter.Sum,

		Progress: func(n cluster.NodeName, id cluster.JobID) *api.Progress { return progressOf(c, n, id) },
		GPUs:     c.loads,
		Log:      c.slog,
		Tell: func(ctx context.Context, q api.SamplesRequest) (api.SamplesResponse, error) {
			return api.Call(ctx, c.cfg.Server, api.TellSamples, q)
		},
	}
	if c.cfg.Machine != nil {
		cfg.Sysfs = c.cfg.Machine.Sysfs
	}
	measure.Run(ctx, cfg, c.order[0])
}

// measuredWork is the parts of steps that run here, and the nodes that this client is.
func (c *Client) measuredWork() (parts []measure.Part, nodes []machine.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.have.All() {
		if p, ok := c.measuredPart(st); ok {
			parts = append(parts, p)
		}
	}
	return parts, c.hardware.All()
}

// measuredPart is a part of a step, if it runs for a job of this node. Called with mu held.
func (c *Client) measuredPart(st *step.Status) (p measure.Part, ok bool) {
	id := st.ID
	n := c.nodes[id.Node]
	if st.State != step.Running || n == nil {
		return p, false
	}
	p.Target.ID = id
	for i := range st.Tasks {
		if k := &st.Tasks[i]; k.PID > 0 && k.Ended.IsZero() {
			p.Target.Tasks = append(p.Target.Tasks, k.PID)
		}
	}
	h := n.jobs[id.Job]
	if len(p.Target.Tasks) == 0 || h == nil || h.job.Alloc == nil {
		return p, false
	}
	for _, sh := range h.job.Alloc.Shares {
		if sh.Node != id.Node || c.loads == nil {
			continue
		}
		for _, g := range fence.GPUs(c.hardware.Inventory(id.Node), sh) {
			p.GPUs = append(p.GPUs, g.Index)
		}
	}
	return p, true
}

// loadsOf is what tells the load of GPUs: this machine's watcher, the pattern of hollow nodes, or nil.
func loadsOf(c *Client) measure.GPUs {
	switch {
	case c.cfg.GPUs != nil:
		return c.cfg.GPUs
	case c.cfg.HollowLoad:
		return &machine.HollowLoad{Nodes: c.cfg.Nodes, Held: func() map[string]bool { return heldGPUs(c) }}
	}
	return nil
}

// heldGPUs are the GPUs that jobs have here, by UUID.
func heldGPUs(c *Client) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]bool{}
	for _, n := range c.nodes {
		inv := c.hardware.Inventory(n.name)
		for _, h := range n.jobs {
			if h.job == nil || h.job.Alloc == nil {
				continue
			}
			for _, sh := range h.job.Alloc.Shares {
				if sh.Node != n.name {
					continue
				}
				for _, g := range fence.GPUs(inv, sh) {
					out[g.UUID] = true
				}
			}
		}
	}
	return out
}

// gpuJobs are the jobs of each GPU of this machine, by the driver's number; a slice counts for the GPU that it is of.
func (c *Client) gpuJobs() map[int][]cluster.JobID {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[int][]cluster.JobID{}
	n, gpus := c.nodes[c.order[0]], c.hardware.Inventory(c.order[0]).GPUs
	for _, g := range gpus {
		out[measure.DriverNumber(&g)] = nil
	}
	for _, id := range slices.Sorted(maps.Keys(n.jobs)) {
		h := n.jobs[id]
		i := slices.IndexFunc(h.job.Alloc.Shares, func(s cluster.Share) bool { return s.Node == n.name })
		if i < 0 {
			continue
		}
		share := &h.job.Alloc.Shares[i]
		for _, g := range gpus {
			k := measure.DriverNumber(&g)
			mine := share.GPUs.Has(g.Index) || share.Part != nil && share.Part.GPU == g.Index
			if mine && !slices.Contains(out[k], id) {
				out[k] = append(out[k], id)
			}
		}
	}
	return out
}

// GPUMetrics are the last look at this machine's GPUs in the text format of Prometheus, with their jobs.
func (c *Client) GPUMetrics() string {
	if c.cfg.GPUs == nil {
		return ""
	}
	scan := c.cfg.GPUs.Latest()
	if scan == nil {
		return ""
	}
	return measure.GPUMetrics(scan, c.hardware.Inventory(c.order[0]).Host, c.gpuJobs())
}

// Faults lists the faults of this machine for which its nodes are drained.
func Faults(c *Client) (list []cluster.Fault) {
	for _, name := range c.order {
		list = append(list, cluster.DrainingFaults(c.hardware.Inventory(name))...)
	}
	return list
}

// meterSource is what the meter asks of the client.
type meterSource struct{ *Client }

// Parts are the parts of steps on this client's nodes.
func (c meterSource) Parts() (out []*step.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, st := range c.have.All() {
		if c.local(id.Node) {
			out = append(out, st)
		}
	}
	return out
}

// Alone reports whether nothing but its script runs of a job here.
func (c meterSource) Alone(batch step.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, st := range c.have[batch.Node] {
		if id.Job == batch.Job && id.Attempt == batch.Attempt && id.Step != batch.Step && st.State == step.Running {
			return false
		}
	}
	return true
}

// Terms finds out how often a part is to be measured and which GPUs it has.
func (c meterSource) Terms(st *step.Status) (out meter.Terms, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := st.ID
	h := c.nodes[id.Node].jobs[id.Job]
	inv := c.hardware.Inventory(id.Node)
	if h == nil || h.job.Attempt != id.Attempt {
		return out, false
	}
	freq, shares := h.job.Spec.AcctgFreq, h.job.Alloc.Shares
	if ls := c.live[cluster.StepID{Job: id.Job, Step: id.Step}]; ls != nil {
		freq, shares = cmp.Or(ls.spec.AcctgFreq, freq), ls.record.Shares
	} else if memo := (note{}); id.Step >= 0 && wire.Unmarshal(st.Note, &memo) == nil { // another client leads it
		freq, shares = cmp.Or(memo.Spec.AcctgFreq, freq), memo.Record.Shares
	}
	out.Every = c.config.Sampling(freq)
	for _, sh := range shares {
		if sh.Node != id.Node || c.loads == nil { // a hollow node has none that do anything
			continue
		}
		out.Shared = sh.Part != nil
		out.GPUs = append(out.GPUs, fence.GPUs(inv, sh)...)
	}
	return out, true
}
