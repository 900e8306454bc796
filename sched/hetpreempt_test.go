package sched_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
)

// evicting is the first decision that makes jobs leave.
func evicting(ds []cluster.Decision) *cluster.Decision {
	for i := range ds {
		if len(leavers(&ds[i])) > 0 {
			return &ds[i]
		}
	}
	return nil
}

// leavers are those that a decision makes leave.
func leavers(d *cluster.Decision) []cluster.JobID {
	out := slices.Clone(d.Evict)
	for _, o := range d.With {
		out = append(out, o.Evict...)
	}
	return out
}

// randomSet is a small cluster full of jobs of three tiers, some of them heterogeneous, and the leader of a
// heterogeneous job of whole nodes that comes, each of whose components is of some tier.
func randomSet(t *testing.T, r *rand.Rand) (b *testbed, lead cluster.JobID) {
	nodes := 3 + r.IntN(3)
	mode := [...]cluster.PreemptMode{cluster.PreemptCancel, cluster.PreemptRequeue}[r.IntN(2)]
	b = preemptBed(t, nodes, tiers(mode), func(c *cluster.Config) {
		if r.IntN(6) == 0 {
			c.Partitions[1+r.IntN(3)].PreemptMode = "OFF"
		}
	})
	part := func() string { return [...]string{"low", "low", "low", "mid", "mid", "high"}[r.IntN(6)] }
	for range 2 + r.IntN(6) {
		if r.IntN(4) == 0 {
			b.het(at(part(), 1), at(part(), 1))
		} else {
			b.Submit(at(part(), 1+r.IntN(2)))
		}
		b.settleAll()
	}
	for j := range b.S.Snapshot().Jobs() { // nothing else waits
		if is, ok := b.S.Job(j.ID); ok && is.Phase == cluster.Pending {
			b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
		}
	}
	b.settleAll()
	var parts []func(*cluster.JobSpec)
	part = func() string { return [...]string{"high", "high", "high", "mid", "mid", "low"}[r.IntN(6)] }
	for range 2 + r.IntN(2) {
		one := at(part(), 1+r.IntN(4)/3)
		if len(parts) == 0 && r.IntN(3) == 0 { // no other may name it
			one = at(part(), 1, onNode(r.IntN(nodes)))
		}
		parts = append(parts, one)
	}
	return b, b.het(parts...)
}

// settleAll decides until nothing changes, with all that starts confirmed and all that ends over.
func (b *testbed) settleAll() {
	for range 3 {
		b.ScheduleAll()
		for j := range b.S.Snapshot().Live() {
			if j.Phase == cluster.Starting {
				for _, n := range j.AllocNodes() {
					nd, _ := b.S.Node(n)
					b.Apply(&cluster.Report{
						Node: n, Seq: nd.ReportSeq + 1,
						Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: j.ID, Attempt: j.Attempt, At: b.Now}},
					})
				}
			}
		}
		b.clean()
	}
}

// possible judges by enumeration whether all components can get their nodes, each of which nobody has, or only jobs
// that the component may make leave. It returns the fewest records that must leave; -1 if it cannot be.
func possible(b *testbed, lead cluster.JobID) int {
	s := b.S.Snapshot()
	j, _ := s.Job(lead)
	parts := s.Components(j)
	var nodes []cluster.NodeName
	for n := range s.Nodes() {
		nodes = append(nodes, n.Name)
	}
	all := 1
	for range nodes {
		all *= len(parts) + 1
	}
	least := -1
	for code := range all {
		gone := map[cluster.JobID]bool{}
		got, ok := make([]int, len(parts)), true
		for i, c := 0, code; i < len(nodes); i, c = i+1, c/(len(parts)+1) {
			k := c%(len(parts)+1) - 1
			if k < 0 {
				continue
			}
			got[k]++
			o := parts[k]
			ok = ok && !slices.Contains(o.Spec.Exclude, nodes[i])
			part, _ := s.Partition(o.Spec.Partitions[0])
			for _, id := range s.Load(nodes[i]).Jobs {
				v, _ := s.Job(id)
				ok = ok && s.Preempts(o, part, nil, v, b.Now) != cluster.PreemptOff
				for _, w := range s.Whole(v) {
					gone[w.ID] = true
				}
			}
		}
		for k, o := range parts {
			ok = ok && got[k] == o.Spec.MinNodes
			for _, n := range o.Spec.NodeList {
				i := slices.Index(nodes, n)
				c := code
				for range i {
					c /= len(parts) + 1
				}
				ok = ok && c%(len(parts)+1)-1 == k
			}
		}
		if ok && (least < 0 || len(gone) < least) {
			least = len(gone)
		}
	}
	return least
}

// TestEvictSets compares with the enumeration: others leave exactly where then all components can start, and they do.
func TestEvictSets(t *testing.T) {
	seed, started, evicted, waits := rand.Uint64(), 0, 0, 0
	for round := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, round))
		b, lead := randomSet(t, r)
		want := possible(b, lead)
		b.Now = b.Now.Add(time.Second)
		ds := sched.Schedule(b.S.Snapshot(), b.Now)
		d := evicting(ds)
		j, _ := b.S.Job(lead)
		switch {
		case want == 0:
			started++
			if d != nil || len(ds) != 1 || ds[0].Start == nil {
				t.Fatalf("seed %d round %d: it fits, and %+v is decided", seed, round, ds)
			}
			continue
		case want < 0:
			waits++
			if d != nil {
				t.Fatalf("seed %d round %d: %v leave for nothing", seed, round, leavers(d))
			}
			continue
		case d == nil:
			t.Fatalf("seed %d round %d: %d could leave, nobody does: %+v", seed, round, want, ds)
		}
		evicted++
		if d.Job != lead || len(d.With) != j.Het.Size-1 {
			t.Fatalf("seed %d round %d: it is decided for %d and %d more", seed, round, d.Job, len(d.With))
		}
		b.ScheduleAll()
		b.clean()
		b.ScheduleAll()
		for _, o := range b.S.Components(b.job(lead)) {
			if o.Phase != cluster.Starting {
				t.Fatalf("seed %d round %d: %v have left, and component %d waits: %s", seed, round,
					leavers(d), o.Het.Offset, b.on(o.ID))
			}
		}
	}
	if evicted < 60 || waits < 60 { // few fit at once; scenarios have these
		t.Errorf("%d started, %d made others leave, %d waited: the trials say little", started, evicted, waits)
	}
}
