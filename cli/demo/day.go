// Package demo makes a past for a cluster of simulated nodes, so that its pages and reports have something to show.
// All of it is of a cluster called Cluster, as after an import.
package demo

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/machine"
	"dev.muster/agent/samples"
	"dev.muster/cluster"
)

// Day is a past.
type Day struct {
	Jobs []*cluster.Job // by their ends; those that found no time are not there
	// Minutes are the samples of moments that are sampleEvery apart, the oldest first.
	Minutes []Minute
}

// Minute is what was so at a moment.
type Minute struct {
	At      time.Time
	Samples []acct.Sample
}

// Measures of a past.
const (
	sampleEvery = 5 * time.Minute
	busy        = 0.75 // of the GPUs, on average
	mostJobs    = 2000
	patience    = time.Hour // after which nothing else starts before a job
	leastLeft   = 10 * time.Minute
)

// Make makes the past of these nodes from one moment to another. The same seed gives the same one.
func Make(nodes []machine.Node, partition string, from, to time.Time, seed uint64) Day {
	s := newSite(nodes)
	if s.units == 0 || !from.Before(to) {
		return Day{}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	queue := arrivals(r, s, from, to)
	var day Day
	var running, waiting []*run
	for at := from; !at.After(to); at = at.Add(time.Minute) {
		running = slices.DeleteFunc(running, func(j *run) bool {
			if j.end.After(at) {
				return false
			}
			s.free(j)
			day.Jobs = append(day.Jobs, record(j, partition))
			return true
		})
		for len(queue) > 0 && !queue[0].submit.After(at) {
			waiting, queue = append(waiting, queue[0]), queue[1:]
		}
		blocked := false
		waiting = slices.DeleteFunc(waiting, func(j *run) bool {
			if !j.endBefore(to.Sub(at) - time.Minute) {
				return true
			}
			if blocked || !s.place(j) {
				blocked = blocked || at.Sub(j.submit) > patience
				return false
			}
			j.start = at.Add(time.Duration(r.IntN(60)) * time.Second)
			j.end = j.start.Add(j.length)
			running = append(running, j)
			return true
		})
		if at.Sub(from)%sampleEvery == 0 {
			day.Minutes = append(day.Minutes, Minute{at, s.samples(running, len(waiting), partition)})
		}
	}
	return day
}

// endBefore makes a job short enough to end within a time, or reports that this is too short for it.
func (j *run) endBefore(left time.Duration) bool {
	if j.length <= left {
		return true
	}
	if left < leastLeft {
		return false
	}
	j.length = left
	if j.outcome == cluster.TimedOut {
		j.outcome = cluster.Completed
	}
	return true
}

// arrivals are the jobs that are submitted in a time: more by day than by night, and as many as keep the nodes busy.
func arrivals(r *rand.Rand, s *site, from, to time.Time) (out []*run) {
	hours := to.Sub(from).Hours()
	for left := busy * float64(s.units) * hours; left > 0 && len(out) < mostJobs; {
		j := draw(r, s)
		for j.submit = from; ; {
			j.submit = from.Add(time.Duration(r.Int64N(int64(to.Sub(from)))))
			if hour := float64(j.submit.Hour()) + float64(j.submit.Minute())/60; r.Float64() < byDay(hour) {
				break
			}
		}
		left -= float64(j.units*j.nodes) * j.length.Hours()
		out = append(out, j)
	}
	slices.SortStableFunc(out, func(a, b *run) int { return a.submit.Compare(b.submit) })
	for i, j := range out {
		j.id = cluster.JobID(i + 1)
	}
	return out
}

// byDay is how likely people submit at an hour of the day, from 0.3 to 1.
func byDay(hour float64) float64 { return 0.65 - 0.35*math.Cos((hour-3)/24*2*math.Pi) }

// draw draws a job: its kind, its user, how long it runs and how it ends.
func draw(r *rand.Rand, s *site) *run {
	j := &run{kind: &s.kinds[r.IntN(len(s.kinds))], user: r.IntN(len(people)), outcome: cluster.Completed}
	j.length = min(time.Duration(float64(j.usual)*math.Exp(0.7*r.NormFloat64())), j.limit).Round(time.Second)
	switch p := r.Float64(); {
	case j.length == j.limit:
		j.outcome = cluster.TimedOut
	case p < 0.06:
		j.outcome = cluster.Failed
	case p < 0.10:
		j.outcome = cluster.Cancelled
	case p < 0.11:
		j.outcome = cluster.OutOfMemory
	}
	if j.outcome != cluster.Completed && j.outcome != cluster.TimedOut {
		j.length = time.Duration(float64(j.length) * r.Float64())
	}
	j.length = max(j.length, 2*time.Minute)
	return j
}

// site is the nodes, and what of them is free.
type site struct {
	nodes []machine.Node
	taken []cluster.IDSet // GPUs, or CPUs where there are no GPUs
	have  []int
	units int
	gpus  bool
	kinds []kind
}

func newSite(nodes []machine.Node) *site {
	s := &site{nodes: nodes, taken: make([]cluster.IDSet, len(nodes))}
	for i := range nodes {
		s.gpus = s.gpus || len(nodes[i].Inventory.GPUs) > 0
	}
	for i := range nodes {
		n := nodes[i].Inventory.JobCPUCount()
		if s.gpus {
			n = len(nodes[i].Inventory.GPUs)
		}
		s.have = append(s.have, n)
		s.units += n
	}
	if s.units > 0 {
		s.kinds = kindsOf(slices.Max(s.have), len(nodes))
	}
	return s
}

// place finds room for a job: on the nodes with the least room that is enough.
func (s *site) place(j *run) bool {
	var fit []int
	for i := range s.nodes {
		if s.have[i]-s.taken[i].Len() >= max(j.units, 1) {
			fit = append(fit, i)
		}
	}
	if len(fit) < j.nodes {
		return false
	}
	slices.SortStableFunc(fit, func(a, b int) int {
		return cmp.Compare(s.have[a]-s.taken[a].Len(), s.have[b]-s.taken[b].Len())
	})
	fit = fit[:j.nodes]
	slices.Sort(fit)
	for _, i := range fit {
		var ids []int
		for id := 0; len(ids) < j.units; id++ {
			if !s.taken[i].Has(id) {
				ids = append(ids, id)
			}
		}
		j.shares = append(j.shares, s.share(i, cluster.NewIDSet(ids...)))
		s.taken[i] = s.taken[i].Union(cluster.NewIDSet(ids...))
	}
	return true
}

// share is these GPUs of a node with their part of its CPUs and memory, or these CPUs with theirs of the memory.
func (s *site) share(i int, ids cluster.IDSet) cluster.Share {
	inv := &s.nodes[i].Inventory
	sh := cluster.Share{Node: s.nodes[i].Name, CPUs: ids, Tasks: 1}
	sh.MemMB = inv.MemMB * cluster.MemMB(ids.Len()) / cluster.MemMB(s.have[i])
	if !s.gpus {
		return sh
	}
	sh.GPUs, sh.Tasks = ids, ids.Len()
	var cpus []int
	for each := inv.JobCPUCount() / s.have[i]; len(cpus) < each*ids.Len(); {
		for id := range ids.All() {
			cpus = append(cpus, id*each+len(cpus)/ids.Len())
		}
	}
	sh.CPUs = cluster.NewIDSet(cpus...)
	return sh
}

// free gives back what a job had.
func (s *site) free(j *run) {
	for _, sh := range j.shares {
		i := slices.IndexFunc(s.nodes, func(n machine.Node) bool { return n.Name == sh.Node })
		ids := sh.CPUs
		if s.gpus {
			ids = sh.GPUs
		}
		s.taken[i] = s.taken[i].Minus(ids)
	}
}

// samples are what a server notes every minute of its state: how much of everything is in use, and how much waits.
func (s *site) samples(running []*run, waiting int, partition string) []acct.Sample {
	m := samples.Measures{}
	unit := "cpu"
	for i := range s.nodes {
		inv := &s.nodes[i].Inventory
		busy := s.taken[i].Len()
		cpus := float64(inv.JobCPUCount())
		share := float64(busy) / float64(max(s.have[i], 1))
		add(m, "node", "", 1, float64(min(busy, 1)))
		add(m, "cpu", "", cpus, cpus*share)
		add(m, "mem", "", float64(inv.MemMB), float64(inv.MemMB)*share)
		add(m, "partition_cpu", partition, cpus, cpus*share)
		if len(inv.GPUs) > 0 {
			add(m, "gpu", inv.GPUs[0].Type, float64(s.have[i]), float64(busy))
			add(m, "partition_gpu", partition, float64(s.have[i]), float64(busy))
		}
	}
	if s.gpus {
		unit = "gpu"
	}
	for _, j := range running {
		add(m, "account_"+unit, people[j.user][1], 0, float64(j.units*j.nodes))
	}
	add(m, "queue", "running", 0, float64(len(running)))
	add(m, "queue", "pending", 0, float64(waiting))
	list := m.List()
	slices.SortFunc(list, func(a, b acct.Sample) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return list
}

func add(m samples.Measures, kind, name string, total, used float64) {
	s := m.Of(kind, name)
	s.Total += total
	s.Used += used
}
