package client

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/sweep"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// A job that is over leaves its GPUs as it found them (package sweep): its node is only done when that is so, or has
// taken too long; then it keeps new jobs off the node until what was left is gone.
const (
	leftTime  = 5 * time.Second // for a driver to free what a killed process had
	leftPause = 200 * time.Millisecond
	leftAgain = 5 * time.Second // between looks at what did not go
)

// gpusOfJobs are GPUs of this machine that jobs have, or have not left as they found them.
type gpusOfJobs struct {
	gpus     *gpu.Watcher
	slog     *slog.Logger
	hardware *hardware

	mu     sync.Mutex           // nothing of the client is locked under it
	left   map[string]sweep.GPU // by UUID
	before *sweep.Settings      // of those that jobs have
}

func newGPUsOfJobs(cfg *Config, hardware *hardware, log *slog.Logger) *gpusOfJobs {
	g := &gpusOfJobs{gpus: cfg.GPUs, slog: log, hardware: hardware, left: map[string]sweep.GPU{}}
	var err error
	if g.before, err = sweep.LoadSettings(cfg.Dir); err != nil {
		log.Warn("what GPUs were set to before their jobs is not known any more", "err", err)
	}
	return g
}

// sweep looks at the GPUs of a job that is over, until they are free or that has taken too long.
func (g *gpusOfJobs) sweep(ctx context.Context, job cluster.JobID, node cluster.NodeName, list []sweep.GPU) {
	var faults []cluster.Fault
	for end := time.Now().Add(leftTime); ; {
		now, known := sweep.Judge(ctx, g.gpus, list, true, g.slog)
		if known {
			faults = now
		}
		if known && len(faults) == 0 || time.Now().After(end) || !sleep(ctx, leftPause) {
			break
		}
	}
	if len(faults) > 0 && ctx.Err() == nil {
		for _, f := range faults {
			g.slog.Error("a job has not left a GPU as it found it", "job", job, "node", node, "err", f.Text)
		}
		g.leave(list, faults)
		g.hardware.tell(ctx, g.hardware.first, sweep.Cause, faults)
	}
	g.forget(sweep.Clean(list, faults))
}

// leave notes which GPUs a job has not left as it found them.
func (g *gpusOfJobs) leave(list []sweep.GPU, faults []cluster.Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range list {
		if slices.ContainsFunc(faults, func(f cluster.Fault) bool { return f.Part == l.GPU.UUID }) {
			g.left[l.GPU.UUID] = l
		}
	}
}

// watchLeft looks again at what was left, until it is gone.
func (g *gpusOfJobs) watchLeft(ctx context.Context) {
	for told := ""; sleep(ctx, leftAgain); {
		list := g.leftNow()
		if len(list) == 0 {
			continue
		}
		faults, known := sweep.Judge(ctx, g.gpus, list, false, g.slog)
		if !known {
			continue // it stays as it was
		}
		free := sweep.Clean(list, faults)
		g.forget(free)
		g.release(free)
		if text := fmt.Sprint(faults); text != told {
			told = text
			g.hardware.tell(ctx, g.hardware.first, sweep.Cause, faults)
		}
	}
}

// leftNow are the GPUs that jobs have not left as they found them, by number.
func (g *gpusOfJobs) leftNow() []sweep.GPU {
	g.mu.Lock()
	list := slices.Collect(maps.Values(g.left))
	g.mu.Unlock()
	slices.SortFunc(list, func(a, b sweep.GPU) int { return a.GPU.Number - b.GPU.Number })
	return list
}

// release notes that GPUs are as their jobs had found them.
func (g *gpusOfJobs) release(list []sweep.GPU) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range list {
		delete(g.left, l.GPU.UUID)
	}
}

// note asks what the GPUs of jobs that have just come are set to. It is short of what a job needs to change them.
func (g *gpusOfJobs) note(ctx context.Context, fresh []string) {
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
func (g *gpusOfJobs) forget(list []sweep.GPU) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept(g.before.Forget(list))
}

// kept tells the log where settings could not be.
func (g *gpusOfJobs) kept(err error) {
	if err != nil {
		g.slog.Warn("what GPUs are set to before their jobs could not be kept: "+
			"a crash of this daemon now would lose it", "err", err)
	}
}

// settings are what a GPU was set to before its job; nil if that is not kept.
func (g *gpusOfJobs) settings(board string) gpu.Settings {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.before.Of(board)
}
