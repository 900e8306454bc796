package measure

import (
	"slices"
	"time"

	"dev.muster/agent/usage"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// Tally adds up what one part of a step used.
type Tally struct {
	PIDs  []int              // of its processes, as last seen
	tasks map[int]*taskTally // by rank
	gpus  []tallyGPU
	at    time.Time // when its GPUs were sampled last, or it was first seen
	// shared: other jobs have parts of the same GPU, so that only what processes did counts.
	shared bool
}

// tallyGPU is one of the part's GPUs, or slices of one.
type tallyGPU struct {
	uuid, parent string
	first        uint64 // energy at the first sample, mJ; 0: not known
}

// taskTally adds up what one task used.
type taskTally struct {
	cluster.TaskUsage
	seconds   float64 // in which its GPUs were sampled
	util, mem float64 // of them, times seconds
	freqs     int64   // the sum of the CPU frequencies seen, kHz
	seen      int64   // how many these are
}

// NewTally begins to count for a part that has these GPUs; shared: others have parts of them too.
func NewTally(now time.Time, gpus []*cluster.GPU, shared bool) *Tally {
	m := &Tally{tasks: map[int]*taskTally{}, at: now, shared: shared}
	for _, g := range gpus {
		own := tallyGPU{uuid: g.UUID}
		if g.MIG != nil {
			own.parent = g.MIG.Parent
		}
		m.gpus = append(m.gpus, own)
	}
	return m
}

// HasGPUs reports whether the part has any.
func (m *Tally) HasGPUs() bool { return len(m.gpus) > 0 }

// Task is what a task has used so far; nil: nothing was seen of it.
func (m *Tally) Task(rank int) *cluster.TaskUsage {
	if t := m.tasks[rank]; t != nil {
		return &t.TaskUsage
	}
	return nil
}

func (m *Tally) of(rank int) *taskTally {
	t := m.tasks[rank]
	if t == nil {
		t = &taskTally{}
		m.tasks[rank] = t
	}
	return t
}

// Add takes what a pass found of the part's processes.
func (m *Tally) Add(ranks []int, found *usage.Sampled) {
	for i, s := range found.Tasks {
		t := m.of(ranks[i])
		t.Join(&cluster.TaskUsage{
			UserCPU: s.User, SystemCPU: s.System, MaxRSS: s.RSS, MaxVM: s.VM, Pages: s.Pages, Read: s.Read,
			Written: s.Written,
		})
		if s.CPUFreq > 0 {
			t.freqs, t.seen = t.freqs+s.CPUFreq, t.seen+1
			t.CPUFreq = t.freqs / t.seen
		}
	}
	m.PIDs = m.PIDs[:0]
	for _, p := range found.Procs {
		m.PIDs = append(m.PIDs, p.PID)
	}
	slices.Sort(m.PIDs)
}

// AddGPUs takes what the GPUs did for the part. A GPU's use belongs to the tasks whose processes it names; where it
// names none at all, to all tasks of the part, if that has the GPU to itself.
func (m *Tally) AddGPUs(now time.Time, ranks []int, found *usage.Sampled, loads []gpu.Load, whole bool) {
	task := make(map[int]int, len(found.Procs))
	for _, p := range found.Procs {
		task[p.PID] = p.Task
	}
	util, mem, energy := make([]float64, len(ranks)), make([]float64, len(ranks)), 0.0
	seen, told := false, true
	for i := range m.gpus {
		g := &m.gpus[i]
		k := slices.IndexFunc(loads, func(l gpu.Load) bool { return l.UUID == g.uuid })
		if k < 0 && g.parent != "" {
			k = slices.IndexFunc(loads, func(l gpu.Load) bool { return l.UUID == g.parent })
		}
		if k < 0 {
			continue // lost
		}
		seen, told = true, told && loads[k].Util >= 0
		divide(&loads[k], task, util, mem, whole && !m.shared)
		if g.first == 0 {
			g.first = loads[k].EnergyMJ
		}
		if g.parent == "" && whole && !m.shared {
			energy += float64(loads[k].EnergyMJ-min(g.first, loads[k].EnergyMJ)) / 1000
		}
	}
	if !seen {
		return
	}
	seconds := max(now.Sub(m.at).Seconds(), 0.001)
	m.at = now
	for i, rank := range ranks {
		m.of(rank).addGPU(seconds, util[i], mem[i], energy/float64(len(ranks)), told)
	}
}

// divide adds what one GPU does to its tasks: percent and MB.
func divide(l *gpu.Load, task map[int]int, util, mem []float64, whole bool) {
	var ours []gpu.Proc
	named, used := 0, int64(0)
	for _, p := range l.Procs {
		if _, ok := task[p.PID]; ok {
			ours = append(ours, p)
		}
		named, used = named+p.Util, used+p.MemMB
	}
	if len(l.Procs) == 0 && whole {
		for i := range util {
			util[i] += float64(max(l.Util, 0)) / float64(len(util))
			mem[i] += float64(l.MemUsedMB) / float64(len(mem))
		}
		return
	}
	for _, p := range ours {
		i := task[p.PID]
		if named > 0 { // the GPU's own figure, by what each process had of it
			util[i] += float64(max(l.Util, 0)) * float64(p.Util) / float64(named)
		} else {
			util[i] += float64(max(l.Util, 0)) / float64(len(l.Procs))
		}
		if used > 0 {
			mem[i] += float64(p.MemMB)
		} else {
			mem[i] += float64(l.MemUsedMB) / float64(len(l.Procs))
		}
	}
}

// addGPU takes a sample, which stands for the time since the one before.
func (t *taskTally) addGPU(seconds, percent, mb, joules float64, told bool) {
	t.seconds, t.util, t.mem = t.seconds+seconds, t.util+percent*seconds, t.mem+mb*seconds
	g := cluster.GPUUsage{Util: int64(t.util / t.seconds * 100), MaxUtil: int64(percent * 100),
		Mem:    int64(t.mem / t.seconds * (1 << 20)),
		MaxMem: int64(mb * (1 << 20)), Energy: int64(joules), NoUtil: !told}
	if old := t.GPU; old != nil {
		g.NoUtil = g.NoUtil || old.NoUtil
		g.MaxUtil = max(g.MaxUtil, old.MaxUtil)
		g.MaxMem = max(g.MaxMem, old.MaxMem)
		g.Energy = max(g.Energy, old.Energy)
	}
	t.GPU = &g
}
