package cluster

import (
	"strconv"
	"strings"
	"time"
)

// DefaultSampling is how often nodes measure what steps use if nobody says.
const DefaultSampling = 30 * time.Second

// ParseSampling reads what JobAcctGatherFrequency and --acctg-freq say of tasks: seconds, alone or as task=SECONDS
// among other kinds joined by commas; 0 is never, which is Unlimited. It is 0 if nothing is said of tasks.
func ParseSampling(text string) (every time.Duration, ok bool) {
	for word := range strings.SplitSeq(text, ",") {
		kind, value, named := strings.Cut(word, "=")
		if !named {
			kind = "task"
			value = word
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
		switch kind = strings.ToLower(strings.TrimSpace(kind)); {
		case word == "":
		case err != nil:
			return 0, false
		case kind == "task" && n == 0:
			every = Unlimited
		case kind == "task":
			every = time.Duration(n) * time.Second
		case kind != "energy" && kind != "network" && kind != "filesystem":
			return 0, false
		}
	}
	return every, true
}

// Sampling is how often what a step uses is measured, of which its job, or it itself, says this much with
// --acctg-freq; Unlimited: never.
func (c *Config) Sampling(freq string) time.Duration {
	every := c.SampleEvery
	if said, ok := ParseSampling(freq); ok && said > 0 {
		every = said
	}
	if every == 0 {
		every = DefaultSampling
	}
	return every
}

// TaskUsage is what one task of a step has consumed, with its descendants. Sizes are in bytes.
type TaskUsage struct {
	UserCPU   time.Duration `json:"user_cpu,omitempty"`
	SystemCPU time.Duration `json:"system_cpu,omitempty"`
	MaxRSS    int64         `json:"max_rss,omitempty"`
	MaxVM     int64         `json:"max_vm,omitempty"`
	Pages     int64         `json:"pages,omitempty"` // major faults
	Read      int64         `json:"read,omitempty"`
	Written   int64         `json:"written,omitempty"`
	CPUFreq   int64         `json:"cpu_freq,omitempty"` // mean over the samples, kHz; 0: not sampled
	// GPU is what it did to its GPUs; nil: that was not sampled.
	GPU *GPUUsage `json:"gpu,omitempty"`
}

// GPUUsage is what a task used of all its GPUs together: the mean over the samples, and the most.
// Utilization is in hundredths of a percent, so that two busy GPUs are 20000.
type GPUUsage struct {
	Util    int64 `json:"util,omitempty"`
	MaxUtil int64 `json:"max_util,omitempty"`
	// NoUtil: one of them tells no utilization, as slices do not.
	NoUtil bool  `json:"no_util,omitempty"`
	Mem    int64 `json:"mem,omitempty"` // bytes
	MaxMem int64 `json:"max_mem,omitempty"`
	Energy int64 `json:"energy,omitempty"` // joules
}

// CPU is the time of both kinds.
func (t *TaskUsage) CPU() time.Duration { return t.UserCPU + t.SystemCPU }

// Join takes over what another look at the same task saw more of.
func (t *TaskUsage) Join(o *TaskUsage) {
	if o.CPU() > t.CPU() {
		t.UserCPU = o.UserCPU
		t.SystemCPU = o.SystemCPU
	}
	t.MaxRSS, t.MaxVM, t.Pages = max(t.MaxRSS, o.MaxRSS), max(t.MaxVM, o.MaxVM), max(t.Pages, o.Pages)
	t.Read, t.Written = max(t.Read, o.Read), max(t.Written, o.Written)
	if o.CPUFreq > 0 {
		t.CPUFreq = o.CPUFreq
	}
	if o.GPU != nil {
		t.GPU = o.GPU
	}
}

// Names of what is measured of tasks, as TRES.
const (
	MeasuredCPU     = "cpu"     // milliseconds
	MeasuredCPUFreq = "cpufreq" // kHz; no TRES of Slurm's
	MeasuredEnergy  = "energy"  // joules
	MeasuredDisk    = "fs/disk"
	MeasuredGPUMem  = "gres/gpumem"
	MeasuredGPUUtil = "gres/gpuutil" // hundredths of a percent, all GPUs together
	MeasuredMem     = "mem"
	MeasuredPages   = "pages" // major faults
	MeasuredVMem    = "vmem"
)

// Measure is one thing measured of the tasks of a step: their sum, and the greatest and the least of them. A node is
// its place in the step's Shares, a task its rank. Units are those of the TRES, bytes where nothing else is said.
type Measure struct {
	TRES    string `json:"tres"`
	Tot     int64  `json:"tot,omitempty"`
	Max     int64  `json:"max,omitempty"`
	MaxNode int    `json:"max_node,omitempty"`
	MaxTask int    `json:"max_task,omitempty"`
	Min     int64  `json:"min,omitempty"`
	MinNode int    `json:"min_node,omitempty"`
	MinTask int    `json:"min_task,omitempty"`
}

// metric is a row: how a measure is read from a task. The peak is what Max is of, the value what is summed up.
type metric struct {
	tres string
	has  func(*TaskUsage) bool // whether it was sampled; nil: always, and nothing is worth no mention
	of   func(*TaskUsage) (value, peak int64)
}

func same(n int64) (int64, int64) { return n, n }

func hasFreq(t *TaskUsage) bool { return t.CPUFreq > 0 }
func hasGPU(t *TaskUsage) bool  { return t.GPU != nil }
func hasUtil(t *TaskUsage) bool {
	return t.GPU != nil && !t.GPU.NoUtil
}

// Bytes that tasks read and write.
var (
	metricsIn = [...]metric{
		{MeasuredCPU, nil, func(t *TaskUsage) (int64, int64) { return same(t.CPU().Milliseconds()) }},
		{MeasuredCPUFreq, hasFreq, func(t *TaskUsage) (int64, int64) { return same(t.CPUFreq) }},
		{MeasuredEnergy, hasGPU, func(t *TaskUsage) (int64, int64) { return same(t.GPU.Energy) }},
		{MeasuredDisk, nil, func(t *TaskUsage) (int64, int64) { return same(t.Read) }},
		{MeasuredGPUMem, hasGPU, func(t *TaskUsage) (int64, int64) { return t.GPU.Mem, t.GPU.MaxMem }},
		{MeasuredGPUUtil, hasUtil, func(t *TaskUsage) (int64, int64) { return t.GPU.Util, t.GPU.MaxUtil }},
		{MeasuredMem, nil, func(t *TaskUsage) (int64, int64) { return same(t.MaxRSS) }},
		{MeasuredPages, nil, func(t *TaskUsage) (int64, int64) { return same(t.Pages) }},
		{MeasuredVMem, nil, func(t *TaskUsage) (int64, int64) { return same(t.MaxVM) }},
	}
	metricsOut = [...]metric{
		{MeasuredDisk, nil, func(t *TaskUsage) (int64, int64) { return same(t.Written) }},
	}
)

// RankUsage is the usage of one task of a step: its rank, and the place of its node in the step's Shares.
type RankUsage struct {
	Node, Rank int
	TaskUsage
}

// SumUsage is what the tasks of a step consumed together. A value that is nothing for all of them is left out, but
// for those of GPUs: their presence says that they were sampled.
func SumUsage(tasks []RankUsage) (u Usage) {
	for i := range tasks {
		t := &tasks[i].TaskUsage
		u.UserCPU += t.UserCPU
		u.SystemCPU += t.SystemCPU
		u.MaxRSS = max(u.MaxRSS, t.MaxRSS)
	}
	u.In = measures(tasks, metricsIn[:])
	u.Out = measures(tasks, metricsOut[:])
	return u
}

func measures(tasks []RankUsage, metrics []metric) (out []Measure) {
	for _, k := range metrics {
		m := Measure{TRES: k.tres}
		n := 0
		for i := range tasks {
			t := &tasks[i]
			if k.has != nil && !k.has(&t.TaskUsage) {
				continue
			}
			value, peak := k.of(&t.TaskUsage)
			m.Tot += value
			if n == 0 || peak > m.Max {
				m.Max = peak
				m.MaxNode = t.Node
				m.MaxTask = t.Rank
			}
			if n == 0 || value < m.Min {
				m.Min = value
				m.MinNode = t.Node
				m.MinTask = t.Rank
			}
			n++
		}
		if n > 0 && (k.has != nil || m.Tot > 0 || m.Max > 0) {
			out = append(out, m)
		}
	}
	return out
}

// Measured finds a measure of what a step took in, or with out gave out.
func (u *Usage) Measured(tres string, out bool) (Measure, bool) {
	list := u.In
	if out {
		list = u.Out
	}
	for _, m := range list {
		if m.TRES == tres {
			return m, true
		}
	}
	return Measure{TRES: tres}, false
}
