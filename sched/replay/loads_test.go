package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

const (
	hour = 3600
	day  = 24 * hour
)

// loads make workloads at random of the kinds on which orders of the queue differ most.
var loads = map[string]func(seed uint64) *Trace{
	// More is asked for than there is, for weeks, and most give the longest limit.
	"overloaded": func(seed uint64) *Trace {
		l := newLoad(seed, Node{Name: "m", CPUs: 8064})
		l.vague = 0.6
		for l.at < 35*day {
			l.asked = 1.25
			if l.at > 25*day {
				l.asked = 0.5
			}
			l.add(l.user(), int(math.Exp2(l.Float64()*10.5)), l.run(hour, 1.9))
			l.pass()
		}
		return l.trace()
	},
	// Users submit dozens of jobs at once, each like the others.
	"bursty": func(seed uint64) *Trace {
		l := newLoad(seed, Node{Name: "m", CPUs: 1024})
		l.asked = 0.9
		for l.at < 25*day {
			user, size, run := l.user(), int(math.Exp2(l.Float64()*8)), l.run(hour, 1.5)
			for range 1 + int(l.ExpFloat64()*l.ExpFloat64()*20) {
				l.add(user, size, 1+int64(float64(run)*math.Exp(l.NormFloat64()/4)))
			}
			l.pass()
		}
		return l.trace()
	},
	// Jobs of one GPU stand beside gangs of up to a quarter of all.
	"gangs": func(seed uint64) *Trace {
		l := newLoad(seed, slices.Repeat([]Node{{CPUs: 64, GPUs: 8}}, 64)...)
		for i := range l.Nodes {
			l.Nodes[i].Name = "n" + strconv.Itoa(i)
		}
		l.asked = 0.95
		sizes := []int{1, 1, 1, 1, 1, 2, 2, 4, 8, 8, 16, 24, 32, 64, 128}
		for l.at < 25*day {
			l.add(l.user(), sizes[l.IntN(len(sizes))], l.run(1.5*hour, 1.8))
			l.pass()
		}
		return l.trace()
	},
}

// load is a workload that is being made.
type load struct {
	*rand.Rand
	Trace
	units int     // of the machine
	vague float64 // part of the jobs that give a limit of a day, whatever they do
	asked float64 // of what there is
	at    float64
	work  float64 // of the jobs submitted now
}

func newLoad(seed uint64, nodes ...Node) *load {
	l := &load{Rand: rand.New(rand.NewPCG(seed, 77)), Trace: Trace{Nodes: nodes}}
	_, has := l.Trace.units()
	for i := range nodes {
		l.units += has(&nodes[i])
	}
	return l
}

// user is one of forty, of whom a few submit most.
func (l *load) user() string {
	return "u" + strconv.Itoa(int(math.Pow(l.Float64(), 2.5)*40))
}

// run is how long a job takes: lognormal, up to a day.
func (l *load) run(median, sigma float64) int64 {
	return int64(min(max(median*math.Exp(sigma*l.NormFloat64()), 1), day))
}

// limits are what users ask for.
var limits = []int64{hour / 4, hour, 2 * hour, 4 * hour, 8 * hour, 12 * hour, day, 2 * day, 3 * day, 7 * day}

// limit is what a user asks for whose job takes so long.
func (l *load) limit(run int64) int64 {
	if l.Float64() < l.vague {
		return day
	}
	factor := []float64{1.05, 1.5, 2, 4, 10}[l.IntN(5)]
	k, _ := slices.BinarySearch(limits, int64(factor*float64(run)))
	return limits[min(k, len(limits)-1)]
}

// add submits a job now.
func (l *load) add(user string, size int, run int64) {
	j := Job{
		ID: strconv.Itoa(len(l.Jobs)), Submit: int64(l.at), Run: run, Limit: l.limit(run), User: user,
		GPUMilli: whole,
	}
	if l.Nodes[0].GPUs > 0 {
		j.GPUs = size
	} else {
		j.CPUs = size
	}
	l.Jobs = append(l.Jobs, j)
	l.work += float64(size) * float64(run)
}

// pass lets so much time go by that what was submitted is the part of the machine's time that is asked for.
func (l *load) pass() {
	l.at += l.work / float64(l.units) / l.asked * l.ExpFloat64()
	l.work = 0
}

func (l *load) trace() *Trace {
	l.clean()
	return &l.Trace
}

// TestSpread: the first submission stays where it is, the others are as far apart as is asked for.
func TestSpread(t *testing.T) {
	tr := &Trace{Jobs: []Job{{Submit: 1000}, {Submit: 1010}, {Submit: 1010}, {Submit: 1025}}}
	tr.Spread(0.5)
	var got []int64
	for _, j := range tr.Jobs {
		got = append(got, j.Submit)
	}
	if want := []int64{1000, 1005, 1005, 1013}; !slices.Equal(got, want) {
		t.Errorf("submitted at %v, want %v", got, want)
	}
}
