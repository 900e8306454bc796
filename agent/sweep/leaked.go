package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// A job that is over leaves its GPUs as it found them: its node is only done when that is so, or has taken too long;
// then it keeps new jobs off the node until what was left is gone.
const (
	leftTime  = 5 * time.Second // for a driver to free what a killed process had
	leftPause = 200 * time.Millisecond
	leftAgain = 5 * time.Second // between looks at what did not go
	gpuTime   = 2 * time.Second // for the GPUs to be sampled
)

// JobGPUs are GPUs of this machine that jobs have, or have not left as they found them.
type JobGPUs struct {
	gpus *gpu.Watcher
	slog *slog.Logger
	tell func(context.Context, []cluster.Fault)

	mu     sync.Mutex     // nothing of who calls is locked under it
	left   map[string]GPU // by UUID
	before *settings      // of those that jobs have
}

// NewJobGPUs reads in a folder what GPUs were set to before their jobs. tell hears, without a lock held, what was found
// to be left, in place of what it has heard before: faults of Cause, none once nothing is left. Where gpus is nil there
// are no GPUs, and nothing but Watch may be called.
func NewJobGPUs(dir string, gpus *gpu.Watcher, tell func(context.Context, []cluster.Fault), log *slog.Logger) *JobGPUs {
	g := &JobGPUs{gpus: gpus, slog: log, tell: tell, left: map[string]GPU{}}
	var err error
	if g.before, err = loadSettings(dir); err != nil {
		log.Warn("what GPUs were set to before their jobs is not known any more", "err", err)
	}
	return g
}

// Sweep looks at the GPUs of a job that is over, until they are free or that has taken too long.
func (g *JobGPUs) Sweep(ctx context.Context, job cluster.JobID, node cluster.NodeName, list []GPU) {
	var faults []cluster.Fault
	for end := time.Now().Add(leftTime); ; {
		now, known := judge(ctx, g.gpus, list, true, g.slog)
		if known {
			faults = now
		}
		if known && len(faults) == 0 || time.Now().After(end) || !backoff.Sleep(ctx, leftPause) {
			break
		}
	}
	if len(faults) > 0 && ctx.Err() == nil {
		for _, f := range faults {
			g.slog.Error("a job has not left a GPU as it found it", "job", job, "node", node, "err", f.Text)
		}
		g.leave(list, faults)
		g.tell(ctx, faults)
	}
	g.forget(clean(list, faults))
}

// leave notes which GPUs a job has not left as it found them.
func (g *JobGPUs) leave(list []GPU, faults []cluster.Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range list {
		if slices.ContainsFunc(faults, func(f cluster.Fault) bool { return f.Part == l.GPU.UUID }) {
			g.left[l.GPU.UUID] = l
		}
	}
}

// Watch looks again at what was left, until it is gone.
func (g *JobGPUs) Watch(ctx context.Context) {
	for told := ""; backoff.Sleep(ctx, leftAgain); {
		list := g.leftNow()
		if len(list) == 0 {
			continue
		}
		faults, known := judge(ctx, g.gpus, list, false, g.slog)
		if !known {
			continue // it stays as it was
		}
		free := clean(list, faults)
		g.forget(free)
		g.release(free)
		if text := fmt.Sprint(faults); text != told {
			told = text
			g.tell(ctx, faults)
		}
	}
}

// leftNow are the GPUs that jobs have not left as they found them, by number.
func (g *JobGPUs) leftNow() []GPU {
	g.mu.Lock()
	list := slices.Collect(maps.Values(g.left))
	g.mu.Unlock()
	slices.SortFunc(list, func(a, b GPU) int { return a.GPU.Number - b.GPU.Number })
	return list
}

// release notes that GPUs are as their jobs had found them.
func (g *JobGPUs) release(list []GPU) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range list {
		delete(g.left, l.GPU.UUID)
	}
}

// Note asks what the GPUs of jobs that have just come are set to. It is short of what a job needs to change them.
func (g *JobGPUs) Note(ctx context.Context, fresh []string) {
	ctx, cancel := context.WithTimeout(ctx, gpuTime)
	defer cancel()
	loads, err := g.gpus.Sample(ctx)
	if err != nil {
		g.slog.Warn("what GPUs are set to before their jobs is not known", "err", err)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept(g.before.Keep(fresh, loads))
}

// forget lets go of what GPUs were set to before jobs that are over.
func (g *JobGPUs) forget(list []GPU) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept(g.before.Forget(list))
}

// kept tells the log where settings could not be.
func (g *JobGPUs) kept(err error) {
	if err != nil {
		g.slog.Warn("what GPUs are set to before their jobs could not be kept: "+
			"a crash of this daemon now would lose it", "err", err)
	}
}

// Before is what a GPU was set to before its job; nil if that is not kept.
func (g *JobGPUs) Before(board string) gpu.Settings {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.before.Of(board)
}
