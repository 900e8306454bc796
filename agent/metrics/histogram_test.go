package metrics

import (
	"math"
	"os"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, 100 * time.Microsecond, 3 * time.Millisecond, time.Minute} {
		h.Observe(d)
	}
	upTo, sum := h.Read()
	for bound, want := range map[float64]uint64{0.0001: 2, 0.0025: 2, 0.005: 3, 10: 3} {
		for i, b := range Bounds {
			if b == bound && upTo[i] != want {
				t.Errorf("%d up to %v s, want %d", upTo[i], bound, want)
			}
		}
	}
	if upTo[len(Bounds)] != 4 || math.Abs(sum-60.0031) > 1e-9 {
		t.Errorf("%d in all, %v s", upTo[len(Bounds)], sum)
	}
}

func TestProcess(t *testing.T) {
	got := map[string]float64{}
	for _, f := range Process() {
		got[f.Name] = f.Value
	}
	now := float64(time.Now().Unix())
	if at := got["process_start_time_seconds"]; at > now+1 || at < now-3600 {
		t.Errorf("it began %v s ago", now-at)
	}
	if n := got["process_resident_memory_bytes"]; n < 1<<20 || n > 1<<33 {
		t.Errorf("%v bytes of memory", n)
	}
	if n := got["process_open_fds"]; n < 3 || n > got["process_max_fds"] {
		t.Errorf("%v files of process %d are open", n, os.Getpid())
	}
}
