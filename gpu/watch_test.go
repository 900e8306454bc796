package gpu

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// watch makes a Watcher whose helper is a shell script; $1 is its flag, if any.
func watch(t *testing.T, script string) *Watcher {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	w := NewWatcher([]string{"sh", path}, time.Hour, slog.New(slog.DiscardHandler))
	w.patience = 5 * time.Second
	t.Cleanup(w.kill)
	return w
}

const (
	hello = `echo '{"hello":true}'; `
	two   = `{"scan":{"source":"nvml","driver":"1","readings":[{"gpu":{"index":0,"type":"h100","uuid":"a","minor":0}},{"gpu":{"index":1,"type":"h100","uuid":"b","minor":1}}]}}`
)

// TestWatchPlain: a helper that ends before it says hello does not run here; the plain one is asked.
func TestWatchPlain(t *testing.T) {
	w := watch(t, `[ "$1" = --plain ] || exit 1; `+hello+`while read x; do echo '`+two+`'; done`)
	if f := w.First(t.Context()); len(f.GPUs) != 2 || len(f.Faults) != 0 || f.Driver != "1" {
		t.Errorf("%+v", f)
	}
	if !w.plain || w.fails != 0 {
		t.Errorf("plain %v, %d failures", w.plain, w.fails)
	}
}

// TestWatchSilent: three answers that do not come make the GPUs unknown; what was known of them stays.
func TestWatchSilent(t *testing.T) {
	w := watch(t, hello+`read x; echo '`+two+`'; read x; exec sleep 60`)
	w.First(t.Context())
	w.patience = 50 * time.Millisecond
	for n := range maxSilence {
		if len(w.last.Faults) != 0 {
			t.Fatalf("after %d failures: %+v", n, w.last)
		}
		if n > 0 {
			w.command = []string{"sleep", "60"}
		}
		w.look(t.Context())
	}
	f := w.last.Faults
	if len(f) != 1 || f[0].Cause != "unknown" || f[0].Action != cluster.FaultDrain || !f[0].Passing || len(w.last.GPUs) != 2 {
		t.Errorf("%+v", w.last)
	}
	if !strings.Contains(f[0].Text, "GPUs unknown: no answer of the GPU helper within 50ms, 3 times in a row") {
		t.Error(f[0].Text)
	}
	if w.h != nil {
		t.Error("the helper is not killed")
	}
}

// TestWatchEvent: what the helper says by itself is judged at once and told.
func TestWatchEvent(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, hello+`read x; echo '`+two+`'; while ! [ -e `+dir+`/go ]; do sleep 0.01; done
for i in 1 2; do echo '{"event":{"uuid":"b","xid":79}}'; done; while read x; do echo '`+two+`'; done`)
	w.First(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	told := make(chan Found, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, func(f Found) { told <- f })
	}()
	if err := os.WriteFile(dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	select {
	case f := <-told:
		if len(f.Faults) != 1 || f.Faults[0].Part != "b" || f.Faults[0].Cause != "xid 79" {
			t.Errorf("%+v", f)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is told")
	}
	stop()
	<-ended
	if len(told) != 0 {
		t.Errorf("told again: %+v", <-told)
	}
}

// TestWatchBurst: an event in quick succession is told once; after a while it is told again.
func TestWatchBurst(t *testing.T) {
	w := NewWatcher(nil, time.Hour, slog.New(slog.DiscardHandler))
	e := answer{Event: &Event{UUID: "a", XID: 48}}
	if !w.note(e) || w.note(e) || w.note(answer{Hello: true}) {
		t.Error("the first is news, what follows is not")
	}
	w.events[0].at = w.events[0].at.Add(-2 * burstTime)
	if !w.note(e) || w.events[0].Times != 2 {
		t.Errorf("%+v", w.events)
	}
}

// TestWatchSample: a sample is asked for between looks and comes back with what runs; a helper that does not answer
// is replaced.
func TestWatchSample(t *testing.T) {
	w := watch(t, hello+`while read x; do if [ "$x" = sample ]; then [ -e "$0.dead" ] && exec sleep 60
echo '{"event":{"uuid":"b","xid":31}}'; echo '{"loads":[{"uuid":"a","util":43,"mem_used_mb":512,"energy_mj":7000,"procs":[{"pid":9,"mem_mb":500}]}]}'
else echo '`+two+`'; fi; done`)
	w.First(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, func(Found) {})
	}()
	defer func() { stop(); <-ended }()
	loads, err := w.Sample(ctx)
	if err != nil || len(loads) != 1 || loads[0].Util != 43 || loads[0].EnergyMJ != 7000 || len(loads[0].Procs) != 1 || loads[0].Procs[0].PID != 9 {
		t.Errorf("%v %+v", err, loads)
	}
	path := w.command[1] + ".dead"
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := w.Sample(short); err == nil {
		t.Error("a helper that hangs gave a sample")
	}
}

func TestSMILoads(t *testing.T) {
	got := smiLoads("GPU-1, 98, 40960, 402.51, 63\nGPU-2, [N/A], 1, [N/A], 40\nfailed\n")
	if len(got) != 2 || got[0].PowerMW != 402510 || got[0].TempC != 63 || got[1].PowerMW != 0 || got[0].Util != 98 || got[0].MemUsedMB != 40960 || got[1].Util != -1 || got[1].UUID != "GPU-2" {
		t.Errorf("%+v", got)
	}
}
