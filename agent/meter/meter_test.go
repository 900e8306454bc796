package meter

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/usage"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// oneNode is a machine of one node, all of whose parts have the same terms.
type oneNode struct {
	parts []*step.Status
	terms Terms
}

func (o *oneNode) Parts() []*step.Status            { return o.parts }
func (o *oneNode) Terms(*step.Status) (Terms, bool) { return o.terms, true }
func (o *oneNode) Alone(step.ID) bool               { return true }

// runs has a part of a step run.
func (o *oneNode) runs(number int, pids ...int) step.ID {
	st := &step.Status{ID: step.ID{Job: 7, Step: number, Node: "n1"}, State: step.Running}
	for i, pid := range pids {
		st.Tasks = append(st.Tasks, step.TaskStatus{Rank: i, PID: pid})
	}
	o.parts = append(o.parts, st)
	return st.ID
}

// rig is a meter of a machine whose parts are measured so often and have so many GPUs.
func rig(t testing.TB, every time.Duration, gpus int) (*Meter, *oneNode) {
	t.Helper()
	o := &oneNode{terms: Terms{Every: every}}
	for i := range gpus {
		o.terms.GPUs = append(o.terms.GPUs, &cluster.GPU{Index: i, UUID: fmt.Sprint("gpu", i)})
	}
	log := slog.New(slog.DiscardHandler)
	return New(usage.NewSampler(t.TempDir()), gpu.NewWatcher(nil, time.Hour, log), o, log), o
}

// TestMeterDue: parts are measured when they are due, all of one pace together, soon after their begin if they have
// GPUs, and when somebody asks; without parts there is no next time, and those that are gone are forgotten.
func TestMeterDue(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(3000, 0).Add(time.Duration(s * float64(time.Second))) }
	for _, k := range []struct {
		every       time.Duration
		gpus        int
		first, then float64 // after seconds; 0: never
	}{{30 * time.Second, 0, 30, 60}, {10 * time.Second, 0, 10, 20}, {cluster.Unlimited, 0, 0, 0}, {30 * time.Second, 1, 4, 30}} {
		m, node := rig(t, k.every, k.gpus)
		when := func(s float64) time.Time {
			if s == 0 {
				return time.Time{}
			}
			return at(s)
		}
		if _, _, _, next := m.targets(at(3), false); !next.IsZero() {
			t.Errorf("nothing runs, and the next pass is at %v", next)
		}
		node.runs(cluster.BatchStep, 100, 200)
		if out, _, _, next := m.targets(at(3), false); len(out) != 0 || !next.Equal(when(k.first)) {
			t.Errorf("%v: %d targets at once; first at %v, want %v", k.every, len(out), next, when(k.first))
		}
		out, ranks, gpus, _ := m.targets(at(3.5), true)
		if len(out) != 1 || len(out[0].Tasks) != 2 || out[0].Tasks[1] != 200 || len(ranks[0]) != 2 || ranks[0][1] != 1 || gpus != (k.gpus > 0) {
			t.Errorf("%v: asked: %+v %v %v", k.every, out, ranks, gpus)
		}
		if k.first > 0 {
			if out, _, _, next := m.targets(at(k.first), false); len(out) != 1 || !next.Equal(when(k.then)) {
				t.Errorf("%v: %d targets when due; then at %v, want %v", k.every, len(out), next, when(k.then))
			}
		}
		node.parts = nil
		if _, _, _, next := m.targets(at(100), false); len(m.measured) != 0 || !next.IsZero() {
			t.Errorf("%v: %d parts are kept, next at %v", k.every, len(m.measured), next)
		}
	}
}

// TestMeterFinish: the end of a part takes along what was measured; the runner's own status is left alone.
func TestMeterFinish(t *testing.T) {
	m, node := rig(t, 30*time.Second, 0)
	self := os.Getpid()
	id := node.runs(cluster.BatchStep, self)
	m.Measure(t.Context(), time.Now(), true)
	if used, pids := m.Used(node.parts[0]); used[0].MaxRSS == 0 || used[0].MaxVM == 0 || len(pids) == 0 {
		t.Fatalf("live: %+v, processes %v", used, pids)
	}
	tasks := []step.TaskStatus{{Rank: 0, PID: self, Usage: cluster.TaskUsage{UserCPU: time.Hour, MaxRSS: 1}}}
	st := step.Status{ID: id, State: step.Ended, Tasks: tasks}
	m.Finish(&st)
	if u := st.Tasks[0].Usage; u.UserCPU != time.Hour || u.MaxRSS < 1<<20 || u.MaxVM == 0 || tasks[0].Usage.MaxRSS != 1 {
		t.Errorf("at its end: %+v", u)
	}
}

func sampledTasks(pids ...int) *usage.Sampled {
	s := &usage.Sampled{Tasks: make([]usage.Sample, len(pids))}
	for i, pid := range pids {
		s.Procs = append(s.Procs, usage.SampledProc{PID: pid, Task: i})
	}
	return s
}

// BenchmarkMeter is a whole pass but for the reading of /proc (BenchmarkSample of agent/usage): 128 tasks on 8 GPUs.
func BenchmarkMeter(b *testing.B) {
	m, node := rig(b, cluster.DefaultSampling, 8)
	var pids []int
	for i := range 128 {
		pids = append(pids, 1000+i)
	}
	node.runs(cluster.BatchStep, pids...)
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
		out, ranks, _, _ := m.targets(now, true)
		part := m.measured[out[0].ID]
		part.Add(ranks[0], found)
		part.AddGPUs(now, ranks[0], found, loads, true)
	}
}
