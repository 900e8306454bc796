package client

import (
	"context"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/fabric"
	"dev.muster/gpu"
	"dev.muster/telemetry"
)

// What this machine, its GPUs and the jobs on it do is measured a few times a minute, joined to one sample
// a minute for each node, and told to the servers. Hollow nodes whose steps really run have what their
// jobs do; others have none.

const (
	sampleSpan  = time.Minute // unless the configuration says otherwise
	sampleParts = 4           // how often in a span is measured
	sampleKept  = time.Hour   // for servers that give no answer
	sampleAgain = 5           // so many spans are told again to a server that has begun to lead
	sampleMost  = 20_000      // kept at most
	sampleCall  = 200         // in one call
	sampleApart = 5 * time.Second
)

// telemeter measures, and joins what it has measured.
type telemeter struct {
	span  time.Duration
	root  fs.FS
	began time.Time // of the span
	at    time.Time // of the pass before
	last  counts
	nodes map[cluster.NodeName]*nodeJoin
}

// nodeJoin is what was measured in a span of a node and its jobs.
type nodeJoin struct {
	own  telemetry.Joiner
	jobs map[cluster.JobID]*telemetry.Joiner
}

// counts are what only rises, as the pass before found it.
type counts struct {
	busy, all uint64 // ticks of CPUs
	in, out   uint64 // bytes of ports
	gpus      map[string]*gpu.Load
	parts     map[step.ID]partUse
}

// partUse is what a part of a step had used.
type partUse struct {
	cpu                time.Duration
	rss, read, written int64
}

// jobPart is a part of a step that is measured, and the GPUs of its job on the node, by the cluster's number.
type jobPart struct {
	target step.Target
	gpus   []int
}

// measureHardware measures until ctx ends.
func measureHardware(ctx context.Context, c *Client) {
	if c.cfg.Sampler == nil {
		return
	}
	t := &telemeter{span: max(c.cfg.SampleSpan, time.Second), root: os.DirFS("/"),
		nodes: map[cluster.NodeName]*nodeJoin{}}
	if c.cfg.SampleSpan == 0 {
		t.span = sampleSpan
	}
	every := t.span / sampleParts
	telemetryPass(ctx, c, t, time.Now())
	for sleep(ctx, time.Until(time.Now().Truncate(every).Add(every))) {
		telemetryPass(ctx, c, t, time.Now())
		if now := time.Now(); !now.Before(t.began.Add(t.span)) {
			c.samples.add(t.take(), now)
			t.began = now.Truncate(t.span)
		}
	}
}

// telemetryPass measures once.
func telemetryPass(ctx context.Context, c *Client, t *telemeter, now time.Time) {
	parts, nodes := jobParts(c)
	targets := make([]step.Target, len(parts))
	for i := range parts {
		targets[i] = parts[i].target
	}
	c.passes.mu.Lock()
	use := make([]partUse, len(parts))
	for i, found := range c.cfg.Sampler.Pass(targets) {
		for _, s := range found.Tasks {
			u := &use[i]
			u.cpu, u.rss = u.cpu+s.User+s.System, u.rss+s.RSS
			u.read, u.written = u.read+s.Read, u.written+s.Written
		}
	}
	c.passes.mu.Unlock()
	var loads []gpu.Load
	if c.cfg.GPUs != nil {
		gctx, cancel := context.WithTimeout(ctx, gpuTime)
		var err error
		if loads, err = c.cfg.GPUs.Sample(gctx); err != nil {
			c.slog.Debug("the GPUs could not be sampled", "err", err)
		}
		cancel()
	}
	var sysfs fs.FS
	if c.cfg.Machine != nil {
		sysfs = c.cfg.Machine.Sysfs
	}
	t.pass(now, parts, use, nodes, loads, sysfs)
}

// jobParts are the parts of steps that run here, and the nodes that this client is.
func jobParts(c *Client) (parts []jobPart, nodes []NodeConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.order {
		nodes = append(nodes, c.nodes[name].NodeConfig)
	}
	for id, st := range c.have.all() {
		n := c.nodes[id.Node]
		if st.State != step.Running || n == nil {
			continue
		}
		p := jobPart{target: step.Target{ID: id}}
		for i := range st.Tasks {
			if k := &st.Tasks[i]; k.PID > 0 && k.Ended.IsZero() {
				p.target.Tasks = append(p.target.Tasks, k.PID)
			}
		}
		h := n.jobs[id.Job]
		if len(p.target.Tasks) == 0 || h == nil || h.job.Alloc == nil {
			continue
		}
		for _, sh := range h.job.Alloc.Shares {
			if sh.Node != id.Node || c.cfg.GPUs == nil {
				continue
			}
			for _, g := range ownGPUs(&n.Inventory, sh) {
				p.gpus = append(p.gpus, g.Index)
			}
		}
		parts = append(parts, p)
	}
	return parts, nodes
}

// pass takes in what was found. The first one only begins to count.
func (t *telemeter) pass(now time.Time, parts []jobPart, use []partUse, nodes []NodeConfig, loads []gpu.Load,
	sysfs fs.FS) {
	first, seconds := t.at.IsZero(), now.Sub(t.at).Seconds()
	before := t.last
	t.at, t.last = now, counts{gpus: map[string]*gpu.Load{}, parts: map[step.ID]partUse{}}
	for i := range loads {
		t.last.gpus[loads[i].UUID] = &loads[i]
	}
	for i := range parts {
		t.last.parts[parts[i].target.ID] = use[i]
	}
	if first {
		t.began = now.Truncate(t.span)
	}
	for k := range nodes {
		n := &nodes[k]
		own := telemetry.New(telemetry.OfNode)
		for i := range n.Inventory.GPUs {
			if g := &n.Inventory.GPUs[i]; t.last.gpus[g.UUID] != nil {
				gpuValues(own.GPU(g.Index).Values, g, t.last.gpus, before.gpus, seconds)
			}
		}
		jobs := jobSamples(n.Name, parts, use, before.parts, own, seconds)
		if sysfs != nil {
			t.machine(own, &before, sysfs, seconds)
		} else {
			sumOf(own, jobs, n.Inventory.CPUs)
		}
		if !first {
			t.join(n.Name, own, jobs, seconds)
		}
	}
}

// join adds what a pass found of a node.
func (t *telemeter) join(name cluster.NodeName, own *telemetry.Sample, jobs map[cluster.JobID]*telemetry.Sample,
	seconds float64) {
	n := t.nodes[name]
	if n == nil {
		n = &nodeJoin{jobs: map[cluster.JobID]*telemetry.Joiner{}}
		t.nodes[name] = n
	}
	n.own.Add(own, seconds)
	for id, s := range jobs {
		if n.jobs[id] == nil {
			n.jobs[id] = &telemetry.Joiner{}
		}
		n.jobs[id].Add(s, seconds)
	}
}

// take is what was joined of the span.
func (t *telemeter) take() (out []api.NodeSample) {
	for name, n := range t.nodes {
		s := api.NodeSample{Node: name, At: t.began.Unix(), Span: int(t.span / time.Second)}
		s.Data = n.own.Sample().Pack()
		for id, j := range n.jobs {
			s.Jobs = append(s.Jobs, api.JobSample{Job: id, Data: j.Sample().Pack()})
		}
		slices.SortFunc(s.Jobs, func(a, b api.JobSample) int { return int(a.Job) - int(b.Job) })
		out = append(out, s)
	}
	clear(t.nodes)
	return out
}

// gpuValues are what a GPU does; of a slice the whole GPU's power, temperature and clocks.
func gpuValues(v []float64, g *cluster.GPU, now, before map[string]*gpu.Load, seconds float64) {
	l := now[g.UUID]
	whole, old := l, before[g.UUID]
	if g.MIG != nil && now[g.MIG.Parent] != nil {
		whole, old = now[g.MIG.Parent], nil // what moved is all slices'
	}
	both := func(field, maximum int, value float64, known bool) {
		if known {
			v[field], v[maximum] = value, value
		}
	}
	both(telemetry.GPUUtil, telemetry.GPUUtilMax, float64(l.Util), l.Util >= 0)
	both(telemetry.GPUMem, telemetry.GPUMemMax, float64(l.MemUsedMB), true)
	both(telemetry.GPUPower, telemetry.GPUPowerMax, float64(whole.PowerMW)/1000, whole.PowerMW > 0)
	both(telemetry.GPUTemp, telemetry.GPUTempMax, float64(whole.TempC), whole.TempC > 0)
	v[telemetry.GPUThrottle] = float64(whole.Throttle)
	if old == nil {
		return
	}
	rate := func(field int, now, before uint64) {
		if now >= before && now > 0 {
			v[field] = float64(now-before) / seconds / 1000
		}
	}
	rate(telemetry.GPULinkIn, l.LinkIn, old.LinkIn)
	rate(telemetry.GPULinkOut, l.LinkOut, old.LinkOut)
	rate(telemetry.GPUBusIn, l.BusIn, old.BusIn)
	rate(telemetry.GPUBusOut, l.BusOut, old.BusOut)
}

// jobSamples are what the jobs on a node did since the pass before. What began since then counts from nothing.
func jobSamples(node cluster.NodeName, parts []jobPart, use []partUse, before map[step.ID]partUse,
	own *telemetry.Sample, seconds float64) map[cluster.JobID]*telemetry.Sample {
	out := map[cluster.JobID]*telemetry.Sample{}
	for i := range parts {
		id := parts[i].target.ID
		if id.Node != node {
			continue
		}
		s := out[id.Job]
		if s == nil {
			s = telemetry.New(telemetry.OfJob)
			for k := range s.Own {
				s.Own[k] = 0
			}
			for _, g := range parts[i].gpus {
				copy(s.GPU(g).Values, own.GPU(g).Values)
			}
			out[id.Job] = s
		}
		now, old := use[i], before[id]
		s.Own[telemetry.JobCPU] += max(now.cpu-old.cpu, 0).Seconds() / seconds
		s.Own[telemetry.JobMem] += float64(now.rss >> 20)
		s.Own[telemetry.JobRead] += float64(max(now.read-old.read, 0)) / seconds / 1000
		s.Own[telemetry.JobWritten] += float64(max(now.written-old.written, 0)) / seconds / 1000
		s.Own[telemetry.JobCPUMax], s.Own[telemetry.JobMemMax] = s.Own[telemetry.JobCPU], s.Own[telemetry.JobMem]
	}
	return out
}

// sumOf takes what the jobs of a hollow node do for what the node does.
func sumOf(own *telemetry.Sample, jobs map[cluster.JobID]*telemetry.Sample, cpus int) {
	busy, mem := 0.0, 0.0
	for _, s := range jobs {
		busy, mem = busy+s.Own[telemetry.JobCPU], mem+s.Own[telemetry.JobMem]
	}
	busy = 100 * busy / float64(max(cpus, 1))
	own.Own[telemetry.NodeCPU], own.Own[telemetry.NodeCPUMax] = busy, busy
	own.Own[telemetry.NodeMem], own.Own[telemetry.NodeMemMax] = mem, mem
}

// machine reads what the kernel tells of the machine.
func (t *telemeter) machine(own *telemetry.Sample, before *counts, sysfs fs.FS, seconds float64) {
	read := func(name string) string {
		b, _ := fs.ReadFile(t.root, name)
		return string(b)
	}
	t.last.busy, t.last.all = cpuTicks(read("proc/stat"))
	if all := t.last.all - before.all; before.all > 0 && t.last.all > before.all {
		busy := 100 * float64(t.last.busy-min(before.busy, t.last.busy)) / float64(all)
		own.Own[telemetry.NodeCPU], own.Own[telemetry.NodeCPUMax] = busy, busy
	}
	if f := strings.Fields(read("proc/loadavg")); len(f) > 0 {
		if load, err := strconv.ParseFloat(f[0], 64); err == nil {
			own.Own[telemetry.NodeLoad] = load
		}
	}
	if mem := usedMem(read("proc/meminfo")); mem >= 0 {
		own.Own[telemetry.NodeMem], own.Own[telemetry.NodeMemMax] = mem, mem
	}
	in, out, ok := fabric.Moved(sysfs)
	t.last.in, t.last.out = in, out
	if ok && before.in+before.out > 0 && in >= before.in && out >= before.out {
		own.Own[telemetry.NodePortIn] = float64(in-before.in) / seconds / 1000
		own.Own[telemetry.NodePortOut] = float64(out-before.out) / seconds / 1000
	}
}

// cpuTicks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal;
// guests are in user.
func cpuTicks(stat string) (busy, all uint64) {
	line, _, _ := strings.Cut(stat, "\n")
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil || i > 8 {
			continue // the word cpu
		}
		if all += n; i != 4 && i != 5 {
			busy += n
		}
	}
	return busy, all
}

// usedMem is the memory that could not be had, MB; -1: not known.
func usedMem(meminfo string) float64 {
	kb := map[string]float64{}
	for line := range strings.Lines(meminfo) {
		if f := strings.Fields(line); len(f) > 1 {
			kb[f[0]], _ = strconv.ParseFloat(f[1], 64)
		}
	}
	if kb["MemTotal:"] == 0 || kb["MemAvailable:"] == 0 {
		return -1
	}
	return (kb["MemTotal:"] - kb["MemAvailable:"]) / 1024
}

// samplebox keeps what was measured until the servers have it, and a little longer.
type samplebox struct {
	mu   sync.Mutex
	list []keptSample
	boot string // of the server that has taken the last
	more chan struct{}
}

type keptSample struct {
	api.NodeSample
	told bool
}

func newSamplebox() *samplebox { return &samplebox{more: make(chan struct{}, 1)} }

// add keeps samples, and forgets those that are too old.
func (b *samplebox) add(list []api.NodeSample, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range list {
		b.list = append(b.list, keptSample{NodeSample: s})
	}
	b.list = slices.DeleteFunc(b.list, func(s keptSample) bool {
		age, span := now.Unix()-s.At, int64(s.Span)
		return s.told && age > (sampleAgain+1)*span || age > max(int64(sampleKept/time.Second), 2*span)
	})
	b.list = b.list[max(0, len(b.list)-sampleMost):]
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// next are samples that the servers lack.
func (b *samplebox) next() (out []api.NodeSample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.list {
		if !b.list[i].told && len(out) < sampleCall {
			out = append(out, b.list[i].NodeSample)
		}
	}
	return out
}

// took notes that a server has samples. Another one than before is told the latest once more: it may lack
// what the former one was told last.
func (b *samplebox) took(list []api.NodeSample, boot string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if boot != b.boot && b.boot != "" {
		for i := range b.list {
			b.list[i].told = false
		}
	}
	b.boot = boot
	for i := range b.list {
		k := &b.list[i]
		same := func(s api.NodeSample) bool { return s.Node == k.Node && s.At == k.At }
		k.told = k.told || slices.ContainsFunc(list, same)
	}
}

// tellSamples tells the servers what was measured, until ctx ends. Nodes do so a little apart.
func tellSamples(ctx context.Context, c *Client) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.order[0]))
	apart := min(sampleApart, c.cfg.SampleSpan/sampleParts)
	if c.cfg.SampleSpan == 0 {
		apart = sampleApart
	}
	apart = time.Duration(uint64(h.Sum32()) * uint64(apart) >> 32)
	var wait time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.samples.more:
		}
		if !sleep(ctx, apart) {
			return
		}
		for list := c.samples.next(); len(list) > 0; list = c.samples.next() {
			r, err := api.Call(ctx, c.cfg.Server, api.TellSamples, api.SamplesRequest{Samples: list})
			if err != nil {
				c.slog.Debug("samples could not be told", "err", err)
				if e := (*cluster.Error)(nil); errors.As(err, &e) && e.Code == cluster.NotFound {
					break // servers of before they took samples
				}
				if !pause(ctx, &wait) {
					return
				}
				continue
			}
			wait = 0
			c.samples.took(list, r.Boot)
		}
	}
}
