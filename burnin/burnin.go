// Package burnin is an acceptance test of the machine that it runs on: it puts load on GPUs, CPUs, memory and disk,
// watches the GPUs meanwhile, and says of each part whether it passed, with the evidence. What needs a program that
// is not installed is told as not tested.
package burnin

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
)

// Options say how much is tested.
type Options struct {
	Node   cluster.NodeName
	Load   time.Duration                              // of the CPUs, of the memory, and of the GPU programs that take a time, each
	MemMB  cluster.MemMB                              // to write and read; 0: half of what is free
	DiskMB int                                        // to write and read
	Dir    string                                     // on the disk to test
	Watch  []string                                   // the command of the GPU helper
	Find   func(name string) (path string, err error) // a program that is installed
	Say    func(format string, args ...any)           // progress
}

// test is one run of it.
type test struct {
	Options
	serial string // of the machine
	parts  []cluster.TestedPart
}

// Run tests the machine. What it tells of does not end with ctx: parts that were not reached are not told of.
func Run(ctx context.Context, o Options) []cluster.TestedPart {
	serial, _ := os.ReadFile("/sys/class/dmi/id/product_serial") // for root alone; virtual machines have none
	t := &test{Options: o, serial: strings.TrimSpace(string(serial))}
	w := startWatch(ctx, o.Watch)
	defer w.stop()
	for _, part := range []struct {
		what string
		run  func(context.Context) cluster.TestedPart
	}{{"CPUs", t.cpus}, {"memory", t.memory}, {"disk", t.disk}} {
		if ctx.Err() == nil {
			o.Say("testing %s", part.what)
			t.parts = append(t.parts, part.run(ctx))
		}
	}
	if ctx.Err() == nil {
		t.gpus(ctx, w)
	}
	return t.parts
}

// part is a part of the machine that has no number of its own.
func (t *test) part(kind, model string) cluster.TestedPart {
	return cluster.TestedPart{
		ID: string(t.Node) + "/" + kind, Kind: kind, Model: model, Serial: t.serial,
		Tests: []cluster.PartTest{{Verdict: cluster.BurninPassed}},
	}
}

// judge completes a part by what was found wrong with it, and what was measured.
func judge(p cluster.TestedPart, wrong []string, figures ...cluster.Figure) cluster.TestedPart {
	one := &p.Tests[0]
	one.Figures = figures
	if len(wrong) > 0 {
		one.Verdict, one.Text = cluster.BurninFailed, shorten(strings.Join(wrong, ", "))
	}
	return p
}

// untested completes a part that could not be tested.
func untested(p cluster.TestedPart, format string, args ...any) cluster.TestedPart {
	p.Tests[0].Verdict, p.Tests[0].Text = cluster.BurninUntested, shorten(fmt.Sprintf(format, args...))
	return p
}

// maxText bounds evidence, in bytes.
const maxText = 1000

func shorten(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText-3], "") + "..."
	}
	return text
}

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
