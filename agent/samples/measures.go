package samples

import (
	"cmp"
	"slices"
	"strings"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
)

// pastNames bounds the samples of one kind; beyond it the smallest are left out.
const pastNames = 50

// Measures gathers samples of one moment.
type Measures map[[2]string]*acct.Sample

func (m Measures) Of(kind, name string) *acct.Sample {
	s := m[[2]string{kind, name}]
	if s == nil {
		s = &acct.Sample{Kind: kind, Name: name}
		m[[2]string{kind, name}] = s
	}
	return s
}

// add takes amounts in.
func (m Measures) add(kind, name string, total, used, lost float64) {
	s := m.Of(kind, name)
	s.Total, s.Used, s.Lost = s.Total+total, s.Used+used, s.Lost+lost
}

// Measure is what a cluster is at a moment.
func Measure(snap *cluster.Snapshot) Measures {
	m := Measures{}
	for n := range snap.Nodes() {
		m.node(snap, n, "")
	}
	for _, p := range snap.Config().Partitions {
		if part, ok := snap.Partition(p.Name); ok {
			for n := range snap.PartitionNodes(part) {
				m.node(snap, n, part.Name)
			}
		}
	}
	reasons, waiting := map[string]int{}, 0
	for j := range snap.Jobs() {
		switch {
		case j.Phase == cluster.Pending:
			n := max(j.Tasks.Len(), 1)
			waiting += n
			reasons[api.WaitWord(j)] += n
		case j.Phase != cluster.Ended && j.Alloc != nil:
			m.add("queue", api.PhaseWord(j.Phase), 0, 1, 0)
			gpus, cpus := 0, 0
			for i := range j.Alloc.Shares {
				gpus, cpus = gpus+j.Alloc.Shares[i].GPUs.Len(), cpus+j.Alloc.Shares[i].CPUs.Len()
			}
			m.add("account_gpu", j.Spec.Account, 0, float64(gpus), 0)
			m.add("account_cpu", j.Spec.Account, 0, float64(cpus), 0)
			m.add("partition_gpu", j.Alloc.Partition, 0, float64(gpus), 0)
			m.add("partition_cpu", j.Alloc.Partition, 0, float64(cpus), 0)
		}
	}
	m.add("queue", "pending", 0, float64(waiting), 0)
	for reason, n := range reasons {
		m.add("reason", reason, 0, float64(n), 0)
	}
	return m
}

// node adds what a node has: to the whole, or to a partition, whose use its jobs tell.
func (m Measures) node(snap *cluster.Snapshot, n *cluster.Node, partition string) {
	l, inv := snap.Load(n.Name), &n.Inventory
	out := !n.Usable()
	lost := func(free int) float64 {
		if out {
			return float64(max(free, 0))
		}
		return 0
	}
	cpus := inv.JobCPUCount()
	if partition != "" {
		m.add("partition_cpu", partition, float64(cpus), 0, lost(cpus-l.CPUs.Len()))
		if len(inv.GPUs) > 0 {
			m.add("partition_gpu", partition, float64(len(inv.GPUs)), 0, lost(len(inv.GPUs)-l.GPUs.Len()))
		}
		return
	}
	m.add("node", "", 1, float64(count(len(l.Jobs) > 0)), lost(count(len(l.Jobs) == 0)))
	m.add("cpu", "", float64(cpus), float64(l.CPUs.Len()), lost(cpus-l.CPUs.Len()))
	m.add("mem", "", float64(inv.MemMB), float64(l.MemMB), lost(int(inv.MemMB-l.MemMB)))
	for i := 0; i < len(inv.GPUs); { // most have one type
		kind, from := inv.GPUs[i].Type, i
		used, gone := 0, 0
		for ; i < len(inv.GPUs) && inv.GPUs[i].Type == kind; i++ {
			has := l.GPUs.Has(i)
			used, gone = used+count(has), gone+count(!has && (out || inv.GPUs[i].Missing))
		}
		m.add("gpu", kind, float64(i-from), float64(used), float64(gone))
	}
}

// List has the samples of each kind, the largest if there are very many.
func (m Measures) List() (out []acct.Sample) {
	kinds := map[string][]acct.Sample{}
	for _, s := range m {
		kinds[s.Kind] = append(kinds[s.Kind], *s)
	}
	for _, list := range kinds {
		slices.SortFunc(list, func(a, b acct.Sample) int {
			return cmp.Or(cmp.Compare(b.Total+b.Used, a.Total+a.Used), strings.Compare(a.Name, b.Name))
		})
		out = append(out, list[:min(len(list), pastNames)]...)
	}
	return out
}

// Count adds what has happened since the last sample.
func (m Measures) Count(now, before api.JobCounts) {
	for name, n := range map[string]int{"submitted": now.Submitted - before.Submitted,
		"started":   now.Started - before.Started,
		"completed": now.Completed - before.Completed, "cancelled": now.Canceled - before.Canceled,
		"failed": now.Failed - before.Failed} {
		m.add(acct.Counted, name, 0, float64(max(n, 0)), 0)
	}
}

// count is 1 or 0.
func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
