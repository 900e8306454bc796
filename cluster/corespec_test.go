package cluster

import "testing"

// TestUsableBy tells which CPUs are left to a job; the figures are Slurm's, but that Slurm says nothing of single
// threads.
func TestUsableBy(t *testing.T) {
	flat := Inventory{Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1, CPUs: 16}
	last, first := flat, flat
	last.SpecCPUs, first.SpecCPUs = flat.LastCores(2), NewIDSet(0, 1)
	two := Inventory{Sockets: 2, CoresPerSocket: 4, ThreadsPerCore: 2, CPUs: 16}
	for _, c := range []struct {
		inv            Inventory
		cores, threads int // -1: not said
		want           string
	}{
		{flat, 0, -1, "0-15"}, {flat, 4, -1, "0-5,8-13"}, {flat, 16, -1, ""}, {flat, 1 << 24, -1, ""},
		{flat, -1, 3, "0-6,8-13"},
		{last, 0, -1, "0-15"}, {last, 1, -1, "0-6,8-15"}, {last, 2, -1, "0-6,8-14"},
		{last, 3, -1, "0-6,8-13"}, {last, 15, -1, "0"},
		{first, 1, -1, "1-15"}, {first, 2, -1, "2-15"}, {first, 3, -1, "2-14"}, {first, -1, 1, "1-15"},
		{two, 1, -1, "0-13"}, {two, 3, -1, "0-5,8-11"}, {two, 7, -1, "0-1"}, {two, 8, -1, ""},
		{two, -1, 1, "0-14"}, {two, -1, 3, "0-6,8-13"},
	} {
		l := &Layout{}
		if c.cores >= 0 {
			l.CoreSpec = &c.cores
		}
		if c.threads >= 0 {
			l.ThreadSpec = &c.threads
		}
		if got := c.inv.UsableBy(l).String(); got != c.want {
			t.Errorf("%d cores, %d threads left of a node that keeps %s: %s, want %s", c.cores, c.threads,
				c.inv.SpecCPUs, got, c.want)
		}
	}
}

// TestLeaves changes what a job leaves of its nodes: operators may where the site allows it, and it has them whole
// from then on.
func TestLeaves(t *testing.T) {
	n := func(k int) *int { return &k }
	w := newWorld(t, 1)
	id := w.submit(nil)
	w.refused(root, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{CoreSpec: n(1)}}, ErrAccess)
	cfg := *w.s.Config()
	cfg.SpecUse = true
	w.ok(root, &Configure{Config: &cfg})
	w.refused(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{CoreSpec: n(1)}}, ErrAccess)
	for _, c := range []struct {
		patch          Patch
		cores, threads int
	}{
		{Patch{CoreSpec: n(1)}, 1, -1}, {Patch{ThreadSpec: n(3)}, -1, 3},
		{Patch{ThreadSpec: n(1), CoreSpec: n(2)}, 2, -1}, {Patch{CoreSpec: n(0)}, 0, -1},
		{Patch{CoreSpec: n(-1)}, -1, -1},
	} {
		w.ok(root, &UpdateJob{Ref: Ref{Job: id}, Patch: c.patch})
		got := [2]int{-1, -1}
		s := w.job(id).Spec
		for k, v := range []*int{s.CoreSpec, s.ThreadSpec} {
			if v != nil {
				got[k] = *v
			}
		}
		if got != [2]int{c.cores, c.threads} || s.Sharing != ShareExclusive {
			t.Errorf("%d, want %d and %d; sharing %d", got, c.cores, c.threads, s.Sharing)
		}
	}
	whole := &Job{
		Alloc: &Alloc{Shares: []Share{{CPUs: RangeIDSet(0, 3), Usable: RangeIDSet(0, 1)}, {CPUs: RangeIDSet(0, 3)}}},
	}
	if got := whole.ForTasks().Alloc.Shares; got[0].CPUs.String() != "0-1" || got[1].CPUs.String() != "0-3" || whole.Alloc.Shares[0].CPUs.String() != "0-3" {
		t.Errorf("for its nodes: %v", got)
	}
}
