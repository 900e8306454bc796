// Package sweep finds and removes what jobs leave on a machine: processes that compute on GPUs, settings of GPUs, and
// objects in memory. It does not know when a job is over: who calls says that. Start with JobGPUs.
package sweep

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
	"golang.org/x/sys/unix"
)

// Processes and memory that are left on a GPU.
const (
	mostMB = 1 << 10 // what may be in use of a GPU's memory without a process: the driver's own
	mostOf = 20      // or that part of it, if it is more
	// slack is how much the beginning of a process, which /proc has in ticks, and the servers' clock may be off.
	slack = time.Second
	// Cause is the cause of the faults that judge finds.
	Cause = "left"
)

// GPU is one that a job which is over had.
type GPU struct {
	GPU   cluster.GPU
	Job   cluster.JobID
	User  uint32
	Since time.Time // processes that are older are not the job's
	// Before is what the whole GPU was set to; nil: it is not known, or another job has it now.
	Before gpu.Settings
}

// Board is the UUID of a whole GPU: a slice is set with it.
func Board(g *cluster.GPU) string {
	if g.MIG != nil {
		return g.MIG.Parent
	}
	return g.UUID
}

// clean are the GPUs of which there is no fault.
func clean(list []GPU, faults []cluster.Fault) []GPU {
	return slices.DeleteFunc(slices.Clone(list), func(l GPU) bool {
		return slices.ContainsFunc(faults, func(f cluster.Fault) bool { return f.Part == l.GPU.UUID })
	})
}

// judge says what is left on GPUs; with kill processes of the job's user on them are killed. Their settings are put
// back. It is not known where the GPUs do not answer, of which the watch of the GPUs tells.
func judge(ctx context.Context, gpus *gpu.Watcher, list []GPU, kill bool, log *slog.Logger) (
	out []cluster.Fault, known bool) {
	loads, err := gpus.Sample(ctx)
	if err != nil {
		return nil, false
	}
	kept, err := restore(ctx, gpus, list, loads, log)
	if err != nil {
		return nil, false
	}
	for i := range list {
		l := &list[i]
		at := slices.IndexFunc(loads, func(o gpu.Load) bool { return o.UUID == l.GPU.UUID })
		if at < 0 {
			continue
		}
		text := cmp.Or(l.processes(loads[at].Procs, kill), l.memory(&loads[at]), l.settings(kept))
		if text == "" {
			continue
		}
		out = append(out, cluster.Fault{
			Kind: cluster.FaultSystem, Part: l.GPU.UUID, Cause: Cause,
			Text:   fmt.Sprintf("GPU %d (%s): %s", l.GPU.Minor, l.GPU.UUID, text),
			Action: cluster.FaultDrain, Passing: true,
		})
	}
	return out, true
}

// processes says which process of the job's time is on the GPU.
func (l *GPU) processes(list []gpu.Proc, kill bool) (text string) {
	for _, p := range list {
		fd, _ := unix.PidfdOpen(p.PID, 0) // before the look: its number may become another's
		name, user, began, ok := process(p.PID)
		if !ok || began.Before(l.Since.Add(-slack)) || servesGPUs(p.PID) {
			unix.Close(fd)
			continue
		}
		if kill && user == l.User && user != 0 {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it has got out of the job; the next look tells
		}
		unix.Close(fd)
		text = cmp.Or(text, fmt.Sprintf("process %d (%s, user %d) of job %d still holds %d MB",
			p.PID, name, user, l.Job, p.MemMB))
	}
	return text
}

// memory says how much is in use though no process has it.
func (l *GPU) memory(load *gpu.Load) string {
	if len(load.Procs) > 0 || load.MemUsedMB <= max(mostMB, int64(l.GPU.MemMB)/mostOf) {
		return ""
	}
	return fmt.Sprintf("%d MB are in use after job %d, and no process has them", load.MemUsedMB, l.Job)
}

// settings says which setting could not be put back.
func (l *GPU) settings(kept []gpu.Kept) string {
	k := slices.IndexFunc(kept, func(k gpu.Kept) bool { return k.UUID == Board(&l.GPU) })
	if k < 0 {
		return ""
	}
	return fmt.Sprintf("after job %d its %s", l.Job, kept[k].Text)
}

// restore puts back what GPUs were set to, and tells what could not be.
func restore(ctx context.Context, gpus *gpu.Watcher, list []GPU, loads []gpu.Load, log *slog.Logger) (
	[]gpu.Kept, error) {
	var want []gpu.Want
	for i := range list {
		l := &list[i]
		b := Board(&l.GPU)
		at := slices.IndexFunc(loads, func(o gpu.Load) bool { return o.UUID == b })
		asked := slices.ContainsFunc(want, func(w gpu.Want) bool { return w.UUID == b })
		if at >= 0 && !asked && !l.Before.Same(loads[at].Settings) {
			want = append(want, gpu.Want{UUID: b, Settings: l.Before})
		}
	}
	if len(want) == 0 {
		return nil, nil
	}
	kept, err := gpus.Set(ctx, want)
	if err == nil {
		log.Info("GPUs were set back to what they were before a job", "count", len(want), "failed", len(kept))
	}
	return kept, err
}
