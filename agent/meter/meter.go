// Package meter measures what the parts of steps on this machine use, in passes, and keeps it until the end of each
// takes it along. It knows neither jobs nor the servers: which parts there are and how often each is measured it asks
// by Source. Start with Meter.Measure.
package meter

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/measure"
	"dev.muster/agent/step"
	"dev.muster/agent/usage"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// Usage of running steps is measured in passes: all parts that are due together, so that one walk over the machine's
// processes and one question about its GPUs serve them all. It is kept here, never in the log; a part's end takes it
// along (Finish). Where nothing runs, nothing is done.

const (
	askedApart = time.Second            // at most one pass in this time is made because somebody asks
	gather     = 200 * time.Millisecond // parts that begin are gathered this long before they are looked at
	firstPass  = time.Second            // from a part's begin to the first pass, if it has GPUs: their energy counts
	gpuTime    = 2 * time.Second        // for the GPUs to be sampled
)

// Meter measures what the parts of steps here use.
type Meter struct {
	sampler *usage.Sampler // nil where steps are no processes: nothing is measured then
	gpus    measure.GPUs   // nil: their GPUs are not measured
	source  Source
	slog    *slog.Logger

	begins chan struct{} // a part that is not measured yet runs

	pass  sync.Mutex // held during a pass, in which Source is asked
	asked time.Time  // the last one that somebody asked for; guarded by pass

	mu       sync.Mutex // guards measured and what is in it; nothing is locked under it
	measured map[step.ID]*metered
}

// Source is what a meter asks during its passes, never with a lock held that Finish, Used, PIDs or Notice want.
type Source interface {
	// Parts are those of the machine's nodes.
	Parts() []*step.Status
	// Terms are those of a part; not ok: the servers have not named its job yet.
	Terms(*step.Status) (t Terms, ok bool)
	// Alone reports whether nothing but its script runs of a job here.
	Alone(batch step.ID) bool
}

// Terms are how often a part is measured and which GPUs it has.
type Terms struct {
	Every  time.Duration // cluster.Unlimited: never, unless somebody asks
	GPUs   []*cluster.GPU
	Shared bool // others have these GPUs too
}

// metered is what was measured of one part of a step.
type metered struct {
	*measure.Tally
	every time.Duration
	due   time.Time
}

// New makes a meter. Without a sampler nothing is measured, without a watcher no GPUs are.
func New(sampler *usage.Sampler, gpus measure.GPUs, source Source, log *slog.Logger) *Meter {
	return &Meter{
		sampler: sampler, gpus: gpus, source: source, slog: log,
		begins: make(chan struct{}, 1), measured: map[step.ID]*metered{},
	}
}

// Run makes the passes that are due, until ctx ends.
func (m *Meter) Run(ctx context.Context) {
	if m.sampler == nil {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.begins:
			if soon := time.Now().Add(gather); next.IsZero() || soon.Before(next) {
				next = soon
				timer.Reset(gather)
			}
			continue
		case <-timer.C:
		}
		if next = m.Measure(ctx, time.Now(), false); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// Notice has a part that begins to run looked at.
func (m *Meter) Notice(st *step.Status) {
	if st.State == step.Running && !m.has(st.ID) {
		m.Soon()
	}
}

// Soon has the next pass made in a moment.
func (m *Meter) Soon() {
	select {
	case m.begins <- struct{}{}:
	default:
	}
}

func (m *Meter) has(id step.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.measured[id] != nil
}

// Measure makes a pass over the parts that are due, or if asked over all, and tells when the next one is; zero: that is
// not known, since nothing runs or a pass was just made.
func (m *Meter) Measure(ctx context.Context, now time.Time, asked bool) (next time.Time) {
	if m.sampler == nil {
		return next
	}
	m.pass.Lock()
	defer m.pass.Unlock()
	if asked {
		if now.Sub(m.asked) < askedApart {
			return next
		}
		m.asked = now
	}
	targets, ranks, gpus, next := m.targets(now, asked)
	if len(targets) == 0 {
		return next
	}
	found := m.sampler.Pass(targets)
	var loads []gpu.Load
	if gpus && m.gpus != nil {
		loads = m.sampleGPUs(ctx)
	}
	for i := range targets {
		id := targets[i].ID
		own := id.Step != cluster.BatchStep || len(loads) == 0 || m.source.Alone(id)
		m.add(now, id, ranks[i], &found[i], loads, own)
	}
	return next
}

// sampleGPUs asks for what the machine's GPUs do.
func (m *Meter) sampleGPUs(ctx context.Context) []gpu.Load {
	ctx, cancel := context.WithTimeout(ctx, gpuTime)
	defer cancel()
	loads, err := m.gpus.Sample(ctx)
	if err != nil {
		m.slog.Debug("the GPUs could not be sampled", "err", err)
	}
	for i := range loads { // in a container of its own NVML may name processes of the machine's, unknown here
		loads[i].Procs = slices.DeleteFunc(loads[i].Procs,
			func(p gpu.Proc) bool { return syscall.Kill(p.PID, 0) == syscall.ESRCH })
	}
	return loads
}

// add puts what a pass has found of a part to what was measured of it.
func (m *Meter) add(now time.Time, id step.ID, ranks []int, found *usage.Sampled, loads []gpu.Load, own bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	part := m.measured[id]
	part.Add(ranks, found)
	if part.HasGPUs() && len(loads) > 0 {
		part.AddGPUs(now, ranks, found, loads, own)
	}
}

// targets are the parts to measure now, the ranks of their tasks, whether any has GPUs, and when to look again. Parts
// that are gone are forgotten. Called with pass held.
func (m *Meter) targets(now time.Time, all bool) (out []usage.Target, ranks [][]int, gpus bool, next time.Time) {
	parts := m.source.Parts()
	m.forgetBut(parts)
	for _, st := range parts {
		if st.State != step.Running {
			continue
		}
		part := m.part(st, now)
		if part == nil {
			continue // the servers have not named its job yet
		}
		due := part.every < cluster.Unlimited && !part.due.After(now)
		if due {
			part.due = now.Truncate(part.every).Add(part.every) // all of one pace together
		}
		if part.every < cluster.Unlimited {
			next = sooner(next, part.due)
		}
		if !due && !all {
			continue
		}
		t, r := usage.Target{ID: st.ID}, []int(nil)
		for i := range st.Tasks {
			if k := &st.Tasks[i]; k.PID > 0 && k.Ended.IsZero() {
				t.Tasks, r = append(t.Tasks, k.PID), append(r, k.Rank)
			}
		}
		if len(r) > 0 {
			out, ranks, gpus = append(out, t), append(ranks, r), gpus || part.HasGPUs()
		}
	}
	return out, ranks, gpus, next
}

// sooner is the earlier of two times; zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// forgetBut forgets parts that are gone. Called with pass held.
func (m *Meter) forgetBut(parts []*step.Status) {
	here := map[step.ID]bool{}
	for _, st := range parts {
		here[st.ID] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.measured, func(id step.ID, _ *metered) bool { return !here[id] })
}

// part is what is measured of a part that runs; nil: that cannot be said yet. Called with pass held.
func (m *Meter) part(st *step.Status, now time.Time) *metered {
	m.mu.Lock()
	part := m.measured[st.ID]
	m.mu.Unlock()
	if part != nil {
		return part
	}
	terms, ok := m.source.Terms(st)
	if !ok {
		return nil
	}
	part = &metered{Tally: measure.NewTally(now, terms.GPUs, terms.Shared), every: terms.Every}
	part.due = now.Truncate(part.every).Add(part.every)
	if part.HasGPUs() && part.every > firstPass {
		part.due = now.Truncate(firstPass).Add(firstPass)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.measured[st.ID] = part
	return part
}

// Finish puts what was measured of a part's tasks into the status that tells of its end. The runner's own list of tasks
// is left as it is.
func (m *Meter) Finish(st *step.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	part := m.measured[st.ID]
	if part == nil || st.State != step.Ended {
		return
	}
	st.Tasks = slices.Clone(st.Tasks) // the runner has the others
	for i := range st.Tasks {
		if used := part.Task(st.Tasks[i].Rank); used != nil {
			st.Tasks[i].Usage.Join(used)
		}
	}
}

// Used is what a part's tasks have used so far, by rank, and its processes. Tasks that have ended count with all they
// used.
func (m *Meter) Used(st *step.Status) (tasks map[int]cluster.TaskUsage, pids []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tasks = map[int]cluster.TaskUsage{}
	part := m.measured[st.ID]
	for i := range st.Tasks {
		u := st.Tasks[i].Usage
		if part != nil && part.Task(st.Tasks[i].Rank) != nil {
			u.Join(part.Task(st.Tasks[i].Rank))
		}
		tasks[st.Tasks[i].Rank] = u
	}
	return tasks, part.processes()
}

// PIDs are the processes of a part, as they were found last.
func (m *Meter) PIDs(id step.ID) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.measured[id].processes()
}

// processes are those of a part, none of one that is not measured.
func (p *metered) processes() []int {
	if p == nil {
		return nil
	}
	return slices.Clone(p.PIDs)
}

// Sum is what parts of steps have used; one pass at a time is made.
func (m *Meter) Sum(targets []usage.Target) []measure.Use {
	m.pass.Lock()
	defer m.pass.Unlock()
	return measure.Sum(m.sampler.Pass(targets))
}
