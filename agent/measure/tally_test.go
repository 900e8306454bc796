package measure

import (
	"testing"
	"time"

	"dev.muster/agent/usage"
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

// TestTallyGPUs: what a GPU does is its processes', by what each has of it; of one that names none, all tasks'; of one
// that is not the part's, nobody's. Means are over time.
func TestTallyGPUs(t *testing.T) {
	start := time.Unix(1000, 0)
	two := sampledTasks(10, 20)
	for _, c := range []struct {
		name       string
		gpus       []tallyGPU
		loads      []gpu.Load
		whole      bool
		util, mems [2]int64 // percent, MB
	}{
		{"by process", []tallyGPU{{uuid: "a"}, {uuid: "b"}}, []gpu.Load{
			{
				UUID: "a", Util: 80, MemUsedMB: 900,
				Procs: []gpu.Proc{{PID: 10, MemMB: 100, Util: 60}, {PID: 20, MemMB: 200, Util: 20}},
			},
			{UUID: "b", Util: 50, MemUsedMB: 900, Procs: []gpu.Proc{{PID: 20, MemMB: 300, Util: 50}}},
			{UUID: "c", Util: 99, Procs: []gpu.Proc{{PID: 10, MemMB: 1, Util: 99}}}}, true,
			[2]int64{60, 70}, [2]int64{100, 500}},
		{"with others'", []tallyGPU{{uuid: "a"}}, []gpu.Load{
			{
				UUID: "a", Util: 90, MemUsedMB: 900,
				Procs: []gpu.Proc{{PID: 10, MemMB: 100, Util: 30}, {PID: 99, MemMB: 200, Util: 60}},
			}}, true,
			[2]int64{30, 0}, [2]int64{100, 0}},
		{"processes without figures", []tallyGPU{{uuid: "a"}}, []gpu.Load{
			{UUID: "a", Util: 90, MemUsedMB: 900, Procs: []gpu.Proc{{PID: 10}, {PID: 20}, {PID: 99}}}}, true,
			[2]int64{30, 30}, [2]int64{300, 300}},
		{
			"no processes", []tallyGPU{{uuid: "a"}}, []gpu.Load{{UUID: "a", Util: 90, MemUsedMB: 900}},
			true, [2]int64{45, 45}, [2]int64{450, 450},
		},
		{
			"no processes, and not alone", []tallyGPU{{uuid: "a"}},
			[]gpu.Load{{UUID: "a", Util: 90, MemUsedMB: 900}}, false, [2]int64{}, [2]int64{},
		},
		{"a slice, by its parent", []tallyGPU{{uuid: "m", parent: "a"}}, []gpu.Load{
			{UUID: "a", MemUsedMB: 900, Procs: []gpu.Proc{{PID: 20, MemMB: 70}, {PID: 99, MemMB: 5}}}}, true,
			[2]int64{}, [2]int64{0, 70}},
	} {
		m := &Tally{tasks: map[int]*taskTally{}, gpus: c.gpus, at: start}
		m.AddGPUs(start.Add(time.Second), []int{4, 5}, two, c.loads, c.whole)
		for i, rank := range []int{4, 5} {
			g := m.tasks[rank].GPU
			if g == nil || g.Util != 100*c.util[i] || g.Mem != c.mems[i]<<20 {
				t.Errorf("%s: task %d: %+v", c.name, rank, g)
				continue
			}
			if g.MaxUtil != g.Util || g.MaxMem != g.Mem {
				t.Errorf("%s: task %d: the most is not what there was once: %+v", c.name, rank, g)
			}
		}
	}
	m := &Tally{tasks: map[int]*taskTally{}, gpus: []tallyGPU{{uuid: "a"}}, at: start}
	one := sampledTasks(10)
	m.AddGPUs(start.Add(time.Second), []int{0}, one, []gpu.Load{{UUID: "a", EnergyMJ: 5000}}, true)
	m.AddGPUs(start.Add(4*time.Second), []int{0}, one, []gpu.Load{
		{UUID: "a", Util: 100, MemUsedMB: 40, EnergyMJ: 9000},
	}, true)
	if want := (cluster.GPUUsage{Util: 7500, MaxUtil: 10000, Mem: 30 << 20, MaxMem: 40 << 20, Energy: 4}); *m.tasks[0].GPU != want {
		t.Errorf("one idle second and three busy ones: %+v", *m.tasks[0].GPU)
	}
	m.AddGPUs(start.Add(5*time.Second), []int{0}, one, []gpu.Load{{UUID: "a", Util: -1}}, true)
	if g := m.tasks[0].GPU; !g.NoUtil || g.MaxUtil != 10000 {
		t.Errorf("a GPU that tells no utilisation any more: %+v", g)
	}
	lost := &Tally{tasks: map[int]*taskTally{}, gpus: []tallyGPU{{uuid: "a"}}}
	if lost.AddGPUs(start, []int{0}, one, []gpu.Load{{UUID: "b"}}, true); len(lost.tasks) != 0 {
		t.Error("a GPU that gave nothing counts as idle")
	}
}
