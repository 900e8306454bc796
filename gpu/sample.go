package gpu

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// Load is what runs on one GPU at a moment.
type Load struct {
	UUID      string `json:"uuid"`
	Util      int    `json:"util,omitempty"` // percent of the last moment in which kernels ran; -1: not told
	MemUsedMB int64  `json:"mem_used_mb,omitempty"`
	EnergyMJ  uint64 `json:"energy_mj,omitempty"` // millijoules since the driver was loaded; 0: not known
	Procs     []Proc `json:"procs,omitempty"`
}

// sampleLine asks the helper for a sample; any other line for a look.
const sampleLine = "sample"

// Sample asks through the helper what runs on the GPUs now, whole ones; where there are none it is empty. Run has to
// be under way: it is asked between its looks. An answer that does not come ends the helper.
func (w *Watcher) Sample(ctx context.Context) ([]Load, error) {
	reply := make(chan sampled, 1)
	select {
	case w.samples <- reply:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case s := <-reply:
		return s.loads, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sampled is the answer to a request for a sample.
type sampled struct {
	loads []Load
	err   error
}

// sample gets a sample from the helper, if one runs. It reports whether the driver told news meanwhile.
func (w *Watcher) sample(ctx context.Context) (s sampled, news bool) {
	if w.h == nil {
		return s, false // there are no GPUs, or they are in trouble
	}
	if _, err := w.h.in.Write([]byte(sampleLine + "\n")); err != nil {
		w.kill()
		return sampled{err: err}, false
	}
	late := time.NewTimer(w.patience)
	defer late.Stop()
	for {
		select {
		case a, ok := <-w.h.answers:
			switch {
			case !ok:
				w.kill()
				return sampled{err: errors.New("the GPU helper ended")}, news
			case a.Loads != nil:
				return sampled{loads: *a.Loads}, news
			default:
				news = w.note(a) || news
			}
		case <-late.C:
			w.kill()
			return sampled{err: errors.New("no sample of the GPU helper in time")}, news
		case <-ctx.Done():
			return sampled{err: ctx.Err()}, news
		}
	}
}

// Loads is one sample of this machine's GPUs, by src if that is not nil, else what AMD's driver or nvidia-smi tells.
func Loads(ctx context.Context, src Source) []Load {
	if src != nil {
		if loads := src.Loads(); loads != nil {
			return loads
		}
	}
	if loads := amdLoads(os.DirFS("/")); len(loads) > 0 {
		return loads
	}
	return smiLoads(tool(ctx, "nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits"))
}

// smiLoads reads what nvidia-smi --query-gpu printed, one GPU a line; with MIG on it has no utilisation: [N/A].
func smiLoads(csv string) []Load {
	out := []Load{}
	for line := range strings.Lines(csv) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 3 {
			continue
		}
		util, err := strconv.Atoi(f[1])
		if err != nil {
			util = -1
		}
		used, _ := strconv.Atoi(f[2])
		out = append(out, Load{UUID: f[0], Util: util, MemUsedMB: int64(used)})
	}
	return out
}
