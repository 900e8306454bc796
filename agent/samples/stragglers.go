package samples

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// GPUs of a job that are slower than its others. The ranks of a gang wait for each other, so one slow GPU slows all of
// them. GPUs that work are compared by the clock of their multiprocessors, those of one type with each other.

// Thresholds of slow GPUs.
const (
	slowLeast  = 4    // GPUs of one type that work, to tell which one is slow
	slowPart   = 0.90 // of the median clock
	slowSpread = 6    // times the spread of the clocks: 1.4826 times the median of the distances from the median
	spreadPart = 0.01 // of the median: the least spread that is assumed
	slowUtil   = 50   // percent: GPUs that do less are not compared
	utilRange  = 10   // percent below the median utilization: others wait for something else
	latePart   = 0.25 // of the nodes of a job that need not have told a minute yet
	manySlow   = 0.25 // of the GPUs: more are no stragglers
	slowTimes  = 2    // samples one after the other in which a GPU must be slow
)

// gpuName is a GPU of the cluster.
type gpuName struct {
	node cluster.NodeName
	gpu  int
}

// stragglers are the GPUs of jobs that were slow in the last sample.
type stragglers map[cluster.JobID]*slowGPUs

// slowGPUs are those of a job.
type slowGPUs struct {
	at    time.Time // when the sample ended
	times map[gpuName]slowGPU
}

// slowGPU is how a GPU was slow.
type slowGPU struct {
	times      int
	clock, mid float64 // MHz: its own, and the median
	temp       float64 // °C; below 0: not known
	throttle   uint64  // bits of nvmlClocksEventReasons
}

// clockReasons are the bits of nvmlClocksEventReasons by which a machine slows a GPU.
var clockReasons = [...]struct {
	bit  uint64
	text string
}{
	{0x08, "hardware slowdown"},
	{0x20, "software thermal slowdown"},
	{0x40, "hardware thermal slowdown"},
	{0x80, "power brake"},
	{0x04, "power cap"},
}

// text words how a GPU was slow.
func (s *slowGPU) text(of gpuName) string {
	text := fmt.Sprintf("GPU %d of node %s runs at %.0f MHz, where the median of the job's GPUs is %.0f MHz (%.0f%%)",
		of.gpu, of.node, s.clock, s.mid, 100*s.clock/s.mid)
	if s.temp > 0 {
		text += fmt.Sprintf("; %.0f °C", s.temp)
	}
	for _, r := range clockReasons {
		if s.throttle&r.bit != 0 {
			text += ", " + r.text
		}
	}
	return text
}

// seenGPU is a GPU that works, in one sample.
type seenGPU struct {
	gpuName
	values []float64
}

// latestOf lists the latest samples of a job's nodes, in their order; those that have told nothing have an empty one.
func latestOf(h *Store, j *cluster.Job) []*Latest {
	out := make([]*Latest, len(j.Alloc.Shares))
	for i := range out {
		out[i] = cmp.Or(h.latest[j.Alloc.Shares[i].Node], &Latest{})
	}
	return out
}

// lastTold returns the end of the last sample that enough nodes of a job have told; zero: there is none.
func lastTold(list []*Latest) time.Time {
	at := slices.MaxFunc(list, func(a, b *Latest) int { return a.At.Compare(b.At) }).At
	behind := 0
	for _, l := range list {
		behind += count(!l.At.Equal(at))
	}
	if float64(behind) > latePart*float64(len(list)) {
		return time.Time{}
	}
	return at
}

// working lists the GPUs of a job that work, by type, in the sample that ended at a time.
func working(list []*Latest, snap *cluster.Snapshot, j *cluster.Job, at time.Time) map[string][]seenGPU {
	out := map[string][]seenGPU{}
	for i, l := range list {
		node, ok := snap.Node(j.Alloc.Shares[i].Node)
		one := l.Jobs[j.ID]
		if !ok || one == nil || !l.At.Equal(at) {
			continue
		}
		for _, g := range one.GPUs {
			if g.Values[telemetry.GPUClock] > 0 && g.Values[telemetry.GPUUtil] >= slowUtil {
				kind := typeOf(node, g.Index)
				out[kind] = append(out[kind], seenGPU{gpuName{node.Name, g.Index}, g.Values})
			}
		}
	}
	return out
}

// typeOf is the type of a GPU.
func typeOf(n *cluster.Node, index int) string {
	gpus := n.Inventory.GPUs
	i := slices.IndexFunc(gpus, func(g cluster.GPU) bool { return g.Index == index })
	return append(gpus[:len(gpus):len(gpus)], cluster.GPU{})[max(i, 0)].Type
}

// median returns the middle one of some values.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// fieldOf lists a value of each of some GPUs.
func fieldOf(field int, list []seenGPU) []float64 {
	out := make([]float64, len(list))
	for i := range list {
		out[i] = list[i].values[field]
	}
	return out
}

// alike leaves out GPUs that do clearly less than the others.
func alike(list []seenGPU) []seenGPU {
	least := median(fieldOf(telemetry.GPUUtil, list)) - utilRange
	return slices.DeleteFunc(slices.Clone(list), func(g seenGPU) bool { return g.values[telemetry.GPUUtil] < least })
}

// slowClock is the clock below which a GPU is slow, and the median of the clocks.
func slowClock(clocks []float64) (most, mid float64) {
	mid = median(clocks)
	distances := make([]float64, len(clocks))
	for i := range clocks {
		distances[i] = math.Abs(clocks[i] - mid)
	}
	spread := max(1.4826*median(distances), spreadPart*mid)
	return min(slowPart*mid, mid-slowSpread*spread), mid
}

// slowest finds the GPUs that are slower than the others of their type. There is at least one.
func slowest(list []seenGPU) map[gpuName]slowGPU {
	list = alike(list)
	most, mid := slowClock(fieldOf(telemetry.GPUClock, list))
	out := map[gpuName]slowGPU{}
	for i := range list {
		v := list[i].values
		if v[telemetry.GPUClock] < most {
			out[list[i].gpuName] = slowGPU{clock: v[telemetry.GPUClock], mid: mid, temp: v[telemetry.GPUTemp],
				throttle: uint64(max(v[telemetry.GPUThrottle], 0))}
		}
	}
	if len(list) < slowLeast || float64(len(out)) > manySlow*float64(len(list)) {
		return nil
	}
	return out
}

// note compares the GPUs of a job in a new sample, and counts how often each was slow without a break.
func (l stragglers) note(list []*Latest, snap *cluster.Snapshot, j *cluster.Job, at time.Time) {
	was := cmp.Or(l[j.ID], &slowGPUs{})
	if at.Sub(was.at) >= idleLeast {
		was = &slowGPUs{}
	}
	now := &slowGPUs{at: at, times: map[gpuName]slowGPU{}}
	for _, kind := range working(list, snap, j, at) {
		for name, s := range slowest(kind) {
			s.times = was.times[name].times + 1
			now.times[name] = s
		}
	}
	l[j.ID] = now
}

// Slow is a GPU of a running job that is slower than the job's others.
type Slow struct {
	Job  *cluster.Job
	Node cluster.NodeName
	Text string
}

// Slow lists the slowest GPU of each running job that has a slow one, by the jobs' numbers.
func (h *Store) Slow(snap *cluster.Snapshot, now time.Time) (out []Slow) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signs.prune(snap)
	maps.DeleteFunc(h.slow, func(id cluster.JobID, _ *slowGPUs) bool { return h.signs[id] == nil })
	for id := range h.signs { // the jobs of which there are samples
		if j, ok := snap.Job(id); ok && j.Phase == cluster.Running && len(j.AllocNodes()) > 0 {
			out = append(out, h.slowOf(snap, j, now)...)
		}
	}
	slices.SortFunc(out, func(a, b Slow) int { return cmp.Compare(a.Job.ID, b.Job.ID) })
	return out
}

// slowOf is the slowest GPU of a running job, if it has a slow one.
func (h *Store) slowOf(snap *cluster.Snapshot, j *cluster.Job, now time.Time) []Slow {
	list := latestOf(h, j)
	at := lastTold(list)
	if at.Before(j.Started) || now.Sub(at) > idleLeast {
		return nil
	}
	if was := h.slow[j.ID]; was == nil || was.at.Before(at) {
		h.slow.note(list, snap, j, at)
	}
	times := h.slow[j.ID].times
	names := slices.Collect(maps.Keys(times))
	names = slices.DeleteFunc(names, func(n gpuName) bool { return times[n].times < slowTimes })
	slices.SortFunc(names, func(a, b gpuName) int {
		return cmp.Or(cmp.Compare(times[a].clock, times[b].clock), cmp.Compare(a.node, b.node),
			cmp.Compare(a.gpu, b.gpu))
	})
	if len(names) == 0 {
		return nil
	}
	worst := times[names[0]]
	return []Slow{{Job: j, Node: names[0].node, Text: worst.text(names[0])}}
}
