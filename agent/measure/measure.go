// Package measure finds what this machine, its GPUs and the jobs on it do, joins that to a sample for each node and
// tells it; and it shows what GPUs do to tools that know dcgm-exporter. It knows neither steps' lives nor who takes
// samples. Start with Run.
package measure

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/agent/machine"
	"dev.muster/agent/step"
	"dev.muster/agent/usage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/fabric"
	"dev.muster/gpu"
	"dev.muster/telemetry"
)

// The use of this machine, its GPUs and its jobs is measured a few times a minute, joined to one sample
// a minute for each node, and told to the servers. Hollow nodes whose steps really run have what their
// jobs do; others have none.

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
	parts     map[step.ID]Use
}

// Sum is what each part's tasks have used together.
func Sum(found []usage.Sampled) []Use {
	out := make([]Use, len(found))
	for i := range found {
		u := &out[i]
		for _, s := range found[i].Tasks {
			u.CPU += s.User + s.System
			u.RSS += s.RSS
			u.Read += s.Read
			u.Written += s.Written
			u.Traced += s.Traced
		}
	}
	return out
}

// Run measures and tells until ctx ends. Nodes tell a little apart, as the name of the first says.
func Run(ctx context.Context, cfg Config, first cluster.NodeName) {
	if cfg.Span == 0 {
		cfg.Span = defaultSpan
	}
	b := newBox()
	var wg sync.WaitGroup
	wg.Go(func() { tell(ctx, &cfg, b, apart(cfg.Span, first)) })
	measure(ctx, &cfg, b)
	wg.Wait()
}

// measure fills the box until ctx ends.
func measure(ctx context.Context, cfg *Config, b *box) {
	t := &telemeter{span: max(cfg.Span, time.Second), root: os.DirFS("/"), nodes: map[cluster.NodeName]*nodeJoin{}}
	every := t.span / spanParts
	look(ctx, cfg, t, time.Now())
	for backoff.Sleep(ctx, time.Until(time.Now().Truncate(every).Add(every))) {
		look(ctx, cfg, t, time.Now())
		if now := time.Now(); !now.Before(t.began.Add(t.span)) {
			b.add(t.take(cfg.Progress), now)
			t.began = now.Truncate(t.span)
		}
	}
}

// look measures once.
func look(ctx context.Context, cfg *Config, t *telemeter, now time.Time) {
	parts, nodes := cfg.Work()
	targets := make([]usage.Target, len(parts))
	for i := range parts {
		targets[i] = parts[i].Target
	}
	t.pass(now, parts, cfg.Use(targets), nodes, loads(ctx, cfg), cfg.Sysfs)
}

// loads are what the GPUs do now.
func loads(ctx context.Context, cfg *Config) []gpu.Load {
	if cfg.GPUs == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gpuTime)
	defer cancel()
	out, err := cfg.GPUs.Sample(ctx)
	if err != nil {
		cfg.Log.Debug("the GPUs could not be sampled", "err", err)
	}
	return out
}

// pass takes in what was found. The first one only begins to count.
func (t *telemeter) pass(now time.Time, parts []Part, use []Use, nodes []machine.Node, loads []gpu.Load,
	sysfs fs.FS) {
	first, seconds := t.at.IsZero(), now.Sub(t.at).Seconds()
	before := t.last
	t.at, t.last = now, counts{gpus: map[string]*gpu.Load{}, parts: map[step.ID]Use{}}
	for i := range loads {
		t.last.gpus[loads[i].UUID] = &loads[i]
	}
	for i := range parts {
		t.last.parts[parts[i].Target.ID] = use[i]
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
func (t *telemeter) take(progress func(cluster.NodeName, cluster.JobID) *api.Progress) (out []api.NodeSample) {
	for name, n := range t.nodes {
		s := api.NodeSample{Node: name, At: t.began.Unix(), Span: int(t.span / time.Second)}
		s.Data = n.own.Sample().Pack()
		for id, j := range n.jobs {
			one := api.JobSample{Job: id, Data: j.Sample().Pack()}
			if progress != nil {
				one.Progress = progress(name, id)
			}
			s.Jobs = append(s.Jobs, one)
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
	if whole.ClockMHz > 0 {
		v[telemetry.GPUClock] = float64(whole.ClockMHz)
	}
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

// jobSamples are what the jobs on a node did since the pass before. Jobs that began since then count from nothing.
func jobSamples(node cluster.NodeName, parts []Part, use []Use, before map[step.ID]Use,
	own *telemetry.Sample, seconds float64) map[cluster.JobID]*telemetry.Sample {
	out := map[cluster.JobID]*telemetry.Sample{}
	for i := range parts {
		id := parts[i].Target.ID
		if id.Node != node {
			continue
		}
		s := out[id.Job]
		if s == nil {
			s = telemetry.New(telemetry.OfJob)
			for k := range s.Own {
				s.Own[k] = 0
			}
			for _, g := range parts[i].GPUs {
				copy(s.GPU(g).Values, own.GPU(g).Values)
			}
			out[id.Job] = s
		}
		now, old := use[i], before[id]
		s.Own[telemetry.JobCPU] += max(now.CPU-old.CPU, 0).Seconds() / seconds
		s.Own[telemetry.JobMem] += float64(now.RSS >> 20)
		s.Own[telemetry.JobRead] += float64(max(now.Read-old.Read, 0)) / seconds / 1000
		s.Own[telemetry.JobWritten] += float64(max(now.Written-old.Written, 0)) / seconds / 1000
		s.Own[telemetry.JobTraced] += float64(now.Traced)
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
