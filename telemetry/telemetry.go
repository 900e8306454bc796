// Package telemetry is what hardware did: what nodes measure of themselves, of their GPUs and of the jobs
// on them, packed into few bytes, so that it can be carried and kept for long.
package telemetry

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// Unknown is the value of what nobody can measure there.
const Unknown = -1

// joined is how values of a shorter time become one of a longer.
type joined uint8

const (
	mean joined = iota
	most
	anyOf // of the bits that were ever set
)

// Field is one thing that is measured: what is kept is whole multiples of a scale's inverse.
type Field struct {
	Name, Unit, Help string
	scale            float64
	join             joined
}

// Fields of a node. New fields come at the end: a position is what is kept.
const (
	NodeCPU = iota
	NodeCPUMax
	NodeLoad
	NodeMem
	NodeMemMax
	NodePortIn
	NodePortOut
)

// Fields of a GPU.
const (
	GPUUtil = iota
	GPUUtilMax
	GPUMem
	GPUMemMax
	GPUPower
	GPUPowerMax
	GPUTemp
	GPUTempMax
	GPUThrottle
	GPULinkIn
	GPULinkOut
	GPUBusIn
	GPUBusOut
	GPUClock
)

// Fields of a job on a node.
const (
	JobCPU = iota
	JobCPUMax
	JobMem
	JobMemMax
	JobRead
	JobWritten
	JobTraced
)

// NodeFields are what is measured of a node.
var NodeFields = []Field{
	{"cpu", "%", "CPUs that were busy", 10, mean},
	{"cpu_max", "%", "the most that were busy", 10, most},
	{"load", "", "processes that ran or waited for a CPU or a disk", 100, mean},
	{"mem_mb", "MB", "memory in use", 1, mean},
	{"mem_mb_max", "MB", "the most in use", 1, most},
	{"port_in_kbs", "kB/s", "what InfiniBand and RoCE ports received", 1, mean},
	{"port_out_kbs", "kB/s", "what they sent", 1, mean},
}

// GPUFields are what is measured of a GPU.
var GPUFields = []Field{
	{"util", "%", "time in which kernels ran", 10, mean},
	{"util_max", "%", "the most of it", 10, most},
	{"mem_mb", "MB", "memory in use", 1, mean},
	{"mem_mb_max", "MB", "the most in use", 1, most},
	{"power_w", "W", "power drawn", 1, mean},
	{"power_w_max", "W", "the most drawn", 1, most},
	{"temp_c", "°C", "temperature", 1, mean},
	{"temp_c_max", "°C", "the highest", 1, most},
	{"throttle", "", "reasons for slower clocks that were there, the bits of nvmlClocksEventReasons", 1, anyOf},
	{"nvlink_in_kbs", "kB/s", "what came over NVLinks", 1, mean},
	{"nvlink_out_kbs", "kB/s", "what went over NVLinks", 1, mean},
	{"pcie_in_kbs", "kB/s", "what came over PCI Express", 1, mean},
	{"pcie_out_kbs", "kB/s", "what went over PCI Express", 1, mean},
	{"sm_clock_mhz", "MHz", "clock of the multiprocessors", 1, mean},
}

// JobFields are what is measured of a job on a node.
var JobFields = []Field{
	{"cpus", "CPUs", "CPUs that were busy", 100, mean},
	{"cpus_max", "CPUs", "the most that were busy", 100, most},
	{"mem_mb", "MB", "memory resident", 1, mean},
	{"mem_mb_max", "MB", "the most resident", 1, most},
	{"read_kbs", "kB/s", "what it read", 1, mean},
	{"write_kbs", "kB/s", "what it wrote", 1, mean},
	{"traced", "processes", "the most that a debugger had stopped", 1, most},
}

// Kind says whose sample it is.
type Kind byte

// The kinds.
const (
	OfNode Kind = 1
	OfJob  Kind = 2
)

// Fields are those of a kind itself, beside its GPUs'.
func (k Kind) Fields() []Field {
	if k == OfJob {
		return JobFields
	}
	return NodeFields
}

// GPU is what one GPU did, by the number that the cluster has for it.
type GPU struct {
	Index  int
	Values []float64 // by GPUFields
}

// Sample is what a node, or a job on a node, and its GPUs did in a time.
type Sample struct {
	Kind Kind
	Own  []float64 // by Kind.Fields
	GPUs []GPU     // by Index
}

// New is a sample of which nothing is known.
func New(k Kind) *Sample { return &Sample{Kind: k, Own: blank(k.Fields())} }

// GPU adds a GPU of which nothing is known, or finds it.
func (s *Sample) GPU(index int) *GPU {
	i, found := slices.BinarySearchFunc(s.GPUs, index, func(g GPU, index int) int { return g.Index - index })
	if !found {
		s.GPUs = slices.Insert(s.GPUs, i, GPU{index, blank(GPUFields)})
	}
	return &s.GPUs[i]
}

func blank(of []Field) []float64 {
	out := make([]float64, len(of))
	for i := range out {
		out[i] = Unknown
	}
	return out
}

// Bounds of what is unpacked.
const (
	maxValues = 64
	maxGPUs   = 512
)

// Pack writes a sample in few bytes: a value is a number of units and one more, 0 where it is not known.
func (s *Sample) Pack() []byte {
	b := append(make([]byte, 0, 8+2*len(s.Own)+24*len(s.GPUs)), byte(s.Kind))
	b = pack(b, s.Kind.Fields(), s.Own)
	b = binary.AppendUvarint(b, uint64(len(s.GPUs)))
	for i := range s.GPUs {
		b = binary.AppendUvarint(b, uint64(s.GPUs[i].Index))
		b = pack(b, GPUFields, s.GPUs[i].Values)
	}
	return b
}

func pack(b []byte, fields []Field, values []float64) []byte {
	for len(values) > 0 && values[len(values)-1] < 0 {
		values = values[:len(values)-1]
	}
	b = binary.AppendUvarint(b, uint64(len(values)))
	for i, v := range values {
		n := uint64(0)
		if v >= 0 {
			n = uint64(math.Round(v*fields[i].scale)) + 1
		}
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// errDamaged says that bytes are no sample.
var errDamaged = errors.New("this is no sample of hardware")

// Unpack reads what Pack wrote, of an older or newer version too: what that did not know is not known,
// what it knew besides is left out.
func Unpack(b []byte) (*Sample, error) {
	r := reader{rest: b}
	s := &Sample{Kind: Kind(min(r.number(), 255))}
	r.bad = r.bad || s.Kind != OfNode && s.Kind != OfJob
	s.Own = make([]float64, len(s.Kind.Fields()))
	r.values(s.Own, s.Kind.Fields())
	s.GPUs = make([]GPU, r.count(maxGPUs))
	each := len(GPUFields)
	all := make([]float64, each*len(s.GPUs))
	for i := range s.GPUs {
		g := &s.GPUs[i]
		g.Index = int(min(r.number(), maxGPUs))
		g.Values = all[i*each : (i+1)*each : (i+1)*each]
		r.values(g.Values, GPUFields)
	}
	sorted := slices.IsSortedFunc(s.GPUs, func(a, b GPU) int { return a.Index - b.Index })
	if r.bad || len(r.rest) > 0 || !sorted {
		return nil, errDamaged
	}
	return s, nil
}

// reader takes numbers off bytes.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count is a number of things, of which there may be so many.
func (r *reader) count(limit uint64) int {
	n := r.number()
	if n > limit {
		r.bad = true
		return 0
	}
	return int(n)
}

// values reads values of fields; those that are not there are not known.
func (r *reader) values(out []float64, fields []Field) {
	for i := range out {
		out[i] = Unknown
	}
	n := r.count(maxValues)
	for i := range n {
		if v := r.number(); i < len(out) && v > 0 {
			out[i] = float64(v-1) / fields[i].scale
		}
	}
}

// Joiner makes one sample of several that follow each other.
type Joiner struct {
	kind Kind
	own  []sum
	gpus map[int][]sum
	n    int
}

// sum is a value on its way.
type sum struct {
	value, weight float64
	known         bool
}

// Add takes a sample in that stands for so many seconds.
func (j *Joiner) Add(s *Sample, seconds float64) {
	if j.gpus == nil {
		j.kind, j.own, j.gpus = s.Kind, make([]sum, len(s.Kind.Fields())), map[int][]sum{}
	}
	j.n++
	add(j.own, s.Kind.Fields(), s.Own, seconds)
	for i := range s.GPUs {
		g := &s.GPUs[i]
		if j.gpus[g.Index] == nil {
			j.gpus[g.Index] = make([]sum, len(GPUFields))
		}
		add(j.gpus[g.Index], GPUFields, g.Values, seconds)
	}
}

func add(sums []sum, fields []Field, values []float64, seconds float64) {
	for i := range sums {
		v, s := values[i], &sums[i]
		switch {
		case v < 0:
			continue
		case fields[i].join == mean:
			s.value, s.weight = s.value+v*seconds, s.weight+seconds
		case fields[i].join == most:
			s.value = max(s.value, v)
		default:
			s.value = float64(uint64(s.value) | uint64(v))
		}
		s.known = true
	}
}

// Empty reports whether nothing was added.
func (j *Joiner) Empty() bool { return j.n == 0 }

// Sample is what was added, as one.
func (j *Joiner) Sample() *Sample {
	s := New(j.kind)
	settle(s.Own, j.kind.Fields(), j.own)
	for index, sums := range j.gpus {
		settle(s.GPU(index).Values, GPUFields, sums)
	}
	return s
}

func settle(out []float64, fields []Field, sums []sum) {
	for i, s := range sums {
		if !s.known {
			continue
		}
		if out[i] = s.value; fields[i].join == mean {
			out[i] = s.value / s.weight
		}
	}
}
