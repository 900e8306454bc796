package burnin

import (
	"context"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
)

// lookEvery is how often the GPUs are looked at meanwhile.
const lookEvery = time.Second

// watch looks at the GPUs all the time.
type watch struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	w      *gpu.Watcher
	first  *gpu.Scan

	mu     sync.Mutex
	faults []cluster.Fault // all that were ever told
	peaks  map[string]*peak
}

// peak is the most that a GPU showed.
type peak struct {
	tempC, powerW, util int
	memUsedMB           int64
}

func startWatch(ctx context.Context, helper []string) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel, w: gpu.NewWatcher(helper, lookEvery, discard), peaks: map[string]*peak{}}
	w.take(w.w.First(ctx).Faults)
	w.first = w.w.Latest()
	if w.first == nil || len(w.first.Readings) == 0 {
		return w
	}
	w.done.Go(func() {
		w.w.Run(ctx, func(f gpu.Found) { w.take(f.Faults) })
	})
	w.done.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			now := w.w.Latest()
			w.take(gpu.Judge(w.first, now, nil)) // what matters to no job the watcher tells late
			w.peak(now)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return w
}

func (w *watch) stop() {
	w.cancel()
	w.done.Wait()
}

// finish ends the watch with a last look.
func (w *watch) finish(ctx context.Context) *gpu.Scan {
	w.stop()
	_, faults, _ := w.w.Look(ctx) // one that fails leaves what was known
	w.take(faults)
	return w.w.Latest()
}

// take keeps each fault as it was told first.
func (w *watch) take(faults []cluster.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range faults {
		known := false
		for _, o := range w.faults {
			known = known || o.Part == f.Part && o.Cause == f.Cause
		}
		if !known {
			w.faults = append(w.faults, f)
		}
	}
}

func (w *watch) peak(s *gpu.Scan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range s.Readings {
		r := &s.Readings[i]
		p := w.peaks[r.GPU.UUID]
		if p == nil {
			p = &peak{}
			w.peaks[r.GPU.UUID] = p
		}
		p.tempC, p.powerW, p.util = max(p.tempC, r.TempC), max(p.powerW, r.PowerMW/1000), max(p.util, r.Util)
		p.memUsedMB = max(p.memUsedMB, r.MemUsedMB)
	}
}
