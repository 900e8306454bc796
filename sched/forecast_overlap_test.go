package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// TestForecastBeside: on one node of 16 CPUs, 4 GPUs and 64 GB planned starts leave to others what they do not need,
// from and up to the times at which they have it.
func TestForecastBeside(t *testing.T) {
	type job struct {
		cpus, gpus int
		mem        cluster.MemMB
		limit      float64 // hours
		want       float64 // hours until it starts
	}
	for _, c := range []struct {
		name  string
		whole bool
		jobs  []job
	}{
		{
			"all at once", false,
			[]job{{1, 4, 0, 1, 0}, {1, 1, 0, 1, 1}, {1, 1, 0, 1, 1}, {1, 1, 0, 2, 1}, {1, 1, 0, 1, 1}, {1, 1, 0, 1, 2}},
		},
		{"whole nodes", true, []job{{1, 4, 0, 1, 0}, {1, 1, 0, 1, 1}, {1, 1, 0, 1, 2}, {1, 1, 0, 1, 3}}},
		{"CPUs", false, []job{{16, 0, 0, 1, 0}, {8, 0, 0, 1, 1}, {8, 0, 0, 2, 1}, {4, 0, 0, 1, 2}, {8, 0, 0, 1, 3}}},
		{"memory", false, []job{{1, 0, 64000, 1, 0}, {1, 0, 40000, 1, 1}, {1, 0, 20000, 1, 1}, {1, 0, 20000, 1, 2}}},
		{
			"before a planned start, but not over it", false,
			[]job{{1, 2, 0, 1, 0}, {1, 2, 0, 2, 0}, {1, 4, 0, 1, 2}, {1, 2, 0, 2, 3}, {1, 2, 0, 1, 1}},
		},
		{
			"between two planned starts", false,
			[]job{{1, 3, 0, 2, 0}, {1, 1, 0, 4, 0}, {1, 2, 0, 1, 2}, {1, 3, 0, 1, 3}, {1, 2, 0, 1, 4}, {1, 1, 0, 1, 2}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTestbed(t, 1)
			cfg := *b.S.Config()
			cfg.PlanWhole = c.whole
			b.Apply(&cluster.Configure{Config: &cfg})
			var ids []cluster.JobID
			for _, j := range c.jobs {
				ids = append(ids, b.Submit(func(s *cluster.JobSpec) {
					s.CPUsPerTask, s.Limit = j.cpus, time.Duration(j.limit*float64(time.Hour))
					s.Mem = cluster.Mem{Per: cluster.MemPerNode, MB: max(j.mem, 1)}
					if j.gpus > 0 {
						s.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(j.gpus)}}
					}
				}))
				b.ScheduleAll()
			}
			all := Forecast(b.S.Snapshot(), b.Now)
			for k, j := range c.jobs {
				if is, _ := b.S.Job(ids[k]); is.Phase != cluster.Pending {
					if j.want != 0 {
						t.Errorf("job %d starts now, want in %v hours", k, j.want)
					}
					continue
				}
				if st := all[ids[k]]; st.At.Sub(b.Now).Hours() != j.want {
					t.Errorf("job %d: in %v hours on %s (%s), want in %v", k, st.At.Sub(b.Now).Hours(), st.Nodes(), st.Why,
						j.want)
				}
			}
		})
	}
}

// TestForecastHolds: whatever is told to run at the same time has room beside each other, at each moment.
func TestForecastHolds(t *testing.T) {
	seed, starts, shared := rand.Uint64(), 0, 0
	for round := range uint64(300) {
		h := newHistory(t, rand.New(rand.NewPCG(seed, round)))
		for range 40 {
			h.step()
			h.decide()
		}
		if h.S.Config().Preempt.Type != cluster.PreemptNone || h.T.Failed() {
			continue
		}
		snap := h.S.Snapshot()
		type stay struct {
			what     string
			from, to time.Time
			first    time.Time // from when on it is looked at: who starts before that does not consider it
			head     bool      // its start is kept free, which does not consider those that are only told
			sh       cluster.Share
		}
		on := map[cluster.NodeName][]stay{}
		for j := range snap.Live() {
			for _, r := range ReleasesOf(j, snap.Config()) {
				for _, sh := range r.Shares {
					on[sh.Node] = append(on[sh.Node], stay{
						fmt.Sprintf("live %d", j.ID), time.Time{}, r.At, time.Time{}, true, sh,
					})
				}
			}
		}
		f := newForecast(snap, h.Now)
		for id, st := range f.runTo(0) {
			j, _ := snap.Job(id)
			if st.Alloc == nil || !st.At.After(h.Now) { // who starts now does not consider those that only will
				continue
			}
			starts++
			lead, _ := snap.Job(leaderOf(j)) // by whom all of a heterogeneous job is looked at
			for _, sh := range st.Alloc.Shares {
				on[sh.Node] = append(on[sh.Node], stay{
					fmt.Sprintf("planned %d", id), st.At, EndOf(st.At, j.Limit), BeginsAt(lead),
					slices.ContainsFunc(f.planned, func(ps *place.PlannedStart) bool { return ps.Job == leaderOf(j) }),
					sh,
				})
			}
		}
		for name, list := range on {
			n, _ := snap.Node(name)
			for i, a := range list {
				var mem cluster.MemMB
				for k, o := range list {
					if a.from.IsZero() || o.from.After(a.from) || !o.to.After(a.from) || a.first.After(o.from) || o.first.After(a.from) || o.head && !a.head || a.head && !o.head && !o.from.IsZero() { // not there when it starts
						continue
					}
					mem += o.sh.MemMB
					if i == k {
						continue
					}
					shared++
					if meets := a.sh.CPUs.Intersect(o.sh.CPUs); !meets.Empty() {
						t.Errorf("seed %d/%d, %s: %s has at %v CPUs %s of %s", seed, round, name, a.what,
							a.from, meets, o.what)
					}
					if meets := devicesGiven(&a.sh).Intersect(devicesGiven(&o.sh)); !meets.Empty() && (a.sh.Part == nil || o.sh.Part == nil) {
						t.Errorf("seed %d/%d, %s: %s has at %v GPUs %s of %s", seed, round, name, a.what,
							a.from, meets, o.what)
					}
				}
				if mem > n.Inventory.MemMB {
					t.Errorf("seed %d/%d, %s has %d MB, and %d are given out when %s starts", seed, round,
						name, n.Inventory.MemMB, mem, a.what)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d starts were told, %d pairs on one node at a time", starts, shared)
	if starts < 1000 || shared < 300 {
		t.Error("the histories say little")
	}
}

// devicesGiven are the devices of which a share has some.
func devicesGiven(sh *cluster.Share) cluster.IDSet {
	if sh.Part != nil {
		return sh.GPUs.Union(cluster.NewIDSet(sh.Part.GPU))
	}
	return sh.GPUs
}
