package client

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/agent/step"
	"dev.muster/agent/usage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

func sampledTasks(pids ...int) *usage.Sampled {
	s := &usage.Sampled{Tasks: make([]usage.Sample, len(pids))}
	for i, pid := range pids {
		s.Procs = append(s.Procs, usage.SampledProc{PID: pid, Task: i})
	}
	return s
}

// meterRig is a client with one job of one node, of which steps run.
func meterRig(t testing.TB, freq string, gpus int) *Client {
	t.Helper()
	inv := cluster.Inventory{CPUs: 8}
	for i := range gpus {
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, UUID: fmt.Sprint("gpu", i)})
	}
	c := newClient(t, Config{Nodes: []machine.Node{{Name: "n1", Inventory: inv}},
		Sampler: usage.NewSampler(t.TempDir()),
		GPUs:    gpu.NewWatcher(nil, time.Hour, slog.New(slog.DiscardHandler))})
	share := cluster.Share{Node: "n1"}
	for i := range gpus {
		share.GPUs = share.GPUs.Union(cluster.NewIDSet(i))
	}
	c.nodes["n1"].jobs[7] = newHere("n1", &cluster.Job{
		ID: 7, Spec: &cluster.JobSpec{Layout: &cluster.Layout{AcctgFreq: freq}},
		Alloc: &cluster.Alloc{Shares: []cluster.Share{share}},
	})
	return c
}

func runs(c *Client, number int, pids ...int) step.ID {
	id := step.ID{Job: 7, Step: number, Node: "n1"}
	st := &step.Status{ID: id, State: step.Running}
	for i, pid := range pids {
		st.Tasks = append(st.Tasks, step.TaskStatus{Rank: i, PID: pid})
	}
	c.have.Put(id, st)
	return id
}

// TestMeterDue: parts are measured when they are due, all of one pace together, soon after their begin if they have
// GPUs, and when somebody asks; without parts there is no next time, and those that are gone are forgotten.
func TestMeterDue(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(3000, 0).Add(time.Duration(s * float64(time.Second))) }
	for _, k := range []struct {
		freq        string
		gpus        int
		first, then float64 // after seconds; 0: never
	}{{"", 0, 30, 60}, {"task=10", 0, 10, 20}, {"0", 0, 0, 0}, {"", 1, 4, 30}} {
		c := meterRig(t, k.freq, k.gpus)
		when := func(s float64) time.Time {
			if s == 0 {
				return time.Time{}
			}
			return at(s)
		}
		if _, _, _, next := c.meter.targets(at(3), false); !next.IsZero() {
			t.Errorf("nothing runs, and the next pass is at %v", next)
		}
		id := runs(c, cluster.BatchStep, 100, 200)
		if out, _, _, next := c.meter.targets(at(3), false); len(out) != 0 || !next.Equal(when(k.first)) {
			t.Errorf("%q: %d targets at once; first at %v, want %v", k.freq, len(out), next, when(k.first))
		}
		out, ranks, gpus, _ := c.meter.targets(at(3.5), true)
		if len(out) != 1 || len(out[0].Tasks) != 2 || out[0].Tasks[1] != 200 || len(ranks[0]) != 2 || ranks[0][1] != 1 || gpus != (k.gpus > 0) {
			t.Errorf("%q: asked: %+v %v %v", k.freq, out, ranks, gpus)
		}
		if k.first > 0 {
			if out, _, _, next := c.meter.targets(at(k.first), false); len(out) != 1 || !next.Equal(when(k.then)) {
				t.Errorf("%q: %d targets when due; then at %v, want %v", k.freq, len(out), next, when(k.then))
			}
		}
		c.have.Drop(id)
		if _, _, _, next := c.meter.targets(at(100), false); len(c.meter.measured) != 0 || !next.IsZero() {
			t.Errorf("%q: %d parts are kept, next at %v", k.freq, len(c.meter.measured), next)
		}
	}
}

// TestMeterFinish: the end of a part takes along what was measured; the runner's own status is left alone.
func TestMeterFinish(t *testing.T) {
	c := meterRig(t, "", 0)
	self := os.Getpid()
	id := runs(c, cluster.BatchStep, self)
	c.meter.measure(t.Context(), time.Now(), true)
	c.mu.Lock()
	parts := c.usedHere(api.PartsQuery{Job: 7, Step: cluster.AllSteps, Nodes: []cluster.NodeName{"n1"}})
	c.mu.Unlock()
	if len(parts) != 1 || parts[0].Tasks[0].MaxRSS == 0 || parts[0].Tasks[0].MaxVM == 0 || len(parts[0].PIDs) == 0 {
		t.Fatalf("live: %+v", parts)
	}
	tasks := []step.TaskStatus{{Rank: 0, PID: self, Usage: cluster.TaskUsage{UserCPU: time.Hour, MaxRSS: 1}}}
	st := step.Status{ID: id, State: step.Ended, Tasks: tasks}
	c.meter.finish(&st)
	if u := st.Tasks[0].Usage; u.UserCPU != time.Hour || u.MaxRSS < 1<<20 || u.MaxVM == 0 || tasks[0].Usage.MaxRSS != 1 {
		t.Errorf("at its end: %+v", u)
	}
}

// BenchmarkMeter is a whole pass but for the reading of /proc (BenchmarkSample of agent/step): 128 tasks on 8 GPUs.
func BenchmarkMeter(b *testing.B) {
	c := meterRig(b, "", 8)
	var pids []int
	for i := range 128 {
		pids = append(pids, 1000+i)
	}
	runs(c, cluster.BatchStep, pids...)
	found := sampledTasks(pids...)
	var loads []gpu.Load
	for i := range 8 {
		l := gpu.Load{UUID: fmt.Sprint("gpu", i), Util: 90, MemUsedMB: 70000}
		for k := range 16 {
			l.Procs = append(l.Procs, gpu.Proc{PID: 1000 + 16*i + k, MemMB: 4000, Util: 5})
		}
		loads = append(loads, l)
	}
	b.ReportAllocs()
	now := time.Now()
	for b.Loop() {
		now = now.Add(cluster.DefaultSampling)
		out, ranks, _, _ := c.meter.targets(now, true)
		m := c.meter.measured[out[0].ID]
		m.Add(ranks[0], found)
		m.AddGPUs(now, ranks[0], found, loads, true)
	}
}
