package gpu

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// sampleLine asks the helper for a sample; any other line, but one of setLine, for a look.
const sampleLine = "sample"

// Sample asks through the helper what runs on the GPUs now, and on their slices; where there are none it is empty.
// Run has to be under way: it is asked between its looks. An answer that does not come ends the helper.
func (w *Watcher) Sample(ctx context.Context) ([]Load, error) {
	a, err := w.request(ctx, sampleLine)
	if err != nil || a.Loads == nil {
		return nil, err
	}
	return *a.Loads, nil
}

// request is a line for the helper, on behalf of others than Run, and the way back for its answer.
type request struct {
	line  string
	reply chan replied
}

// replied is the answer to a request; empty where no helper runs.
type replied struct {
	answer answer
	err    error
}

// request has Run ask the helper something.
func (w *Watcher) request(ctx context.Context, line string) (answer, error) {
	q := request{line, make(chan replied, 1)}
	select {
	case w.requests <- q:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	select {
	case r := <-q.reply:
		return r.answer, r.err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// forward gets the answer to a request from the helper, if one runs. It reports whether the driver told news meanwhile.
func (w *Watcher) forward(ctx context.Context, line string) (r replied, news bool) {
	if w.h == nil {
		return r, false // there are no GPUs, or they are in trouble
	}
	if _, err := w.h.in.Write([]byte(line + "\n")); err != nil {
		w.kill()
		return replied{err: err}, false
	}
	late := time.NewTimer(w.patience)
	defer late.Stop()
	for {
		select {
		case a, ok := <-w.h.answers:
			switch {
			case !ok:
				w.kill()
				return replied{err: errors.New("the GPU helper ended")}, news
			case a.Loads != nil, a.Kept != nil:
				return replied{answer: a}, news
			default:
				news = w.note(a) || news
			}
		case <-late.C:
			w.kill()
			return replied{err: errors.New("no answer of the GPU helper in time")}, news
		case <-ctx.Done():
			return replied{err: ctx.Err()}, news
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
	const ask = "uuid,utilization.gpu,memory.used,power.draw,temperature.gpu"
	return smiLoads(tool(ctx, "nvidia-smi", "--query-gpu="+ask, "--format=csv,noheader,nounits"))
}

// smiLoads reads what nvidia-smi --query-gpu printed, one GPU a line; with MIG on it has no utilization: [N/A].
func smiLoads(csv string) []Load {
	out := []Load{}
	for line := range strings.Lines(csv) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 5 {
			continue
		}
		util, err := strconv.Atoi(f[1])
		if err != nil {
			util = -1
		}
		used, _ := strconv.Atoi(f[2])
		watts, _ := strconv.ParseFloat(f[3], 64)
		temp, _ := strconv.Atoi(f[4])
		out = append(out, Load{UUID: f[0], Util: util, MemUsedMB: int64(used), PowerMW: int(watts * 1000), TempC: temp})
	}
	return out
}
