package cluster

import (
	"slices"
	"testing"
	"time"
)

// withPartitions has some partitions besides main.
func withPartitions(t *testing.T, parts ...Partition) *world {
	w := newWorld(t, 2)
	cfg := DefaultConfig()
	cfg.Partitions = append(cfg.Partitions, parts...)
	w.ok(root, &Configure{Config: &cfg})
	return w
}

func alternate(name string) PartitionAccess { return PartitionAccess{Alternate: name} }

// TestAlternate: a partition's alternate takes the jobs for it while it takes none itself, alone or in a list, as in
// Slurm 26.05; an alternate that takes none either is not followed.
func TestAlternate(t *testing.T) {
	w := withPartitions(t,
		Partition{Name: "drained", All: true, State: PartitionDrain, PartitionAccess: alternate("main")},
		Partition{Name: "inactive", All: true, State: PartitionInactive, PartitionAccess: alternate("main")},
		Partition{Name: "down", All: true, State: PartitionDown, PartitionAccess: alternate("main")},
		Partition{Name: "up", All: true, State: PartitionUp, PartitionAccess: alternate("main")},
		Partition{Name: "chained", All: true, State: PartitionDrain, PartitionAccess: alternate("drained")},
		Partition{Name: "lost", All: true, State: PartitionDrain, PartitionAccess: alternate("deleted")})
	for name, c := range map[string]struct {
		parts, want []string // want nil: refused
	}{
		"drained":   {[]string{"drained"}, []string{"main"}},
		"inactive":  {[]string{"inactive"}, []string{"main"}},
		"down":      {[]string{"down"}, []string{"down"}},
		"up":        {[]string{"up"}, []string{"up"}},
		"of a list": {[]string{"drained", "up"}, []string{"main", "up"}},
		"a chain":   {[]string{"chained"}, nil},
		"deleted":   {[]string{"lost"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &JobSpec{Layout: &Layout{}, UID: alice.UID, Partitions: slices.Clone(c.parts)}
			if c.want == nil {
				w.refused(alice, &Submit{Spec: spec}, ErrPartitionDown)
				return
			}
			id := w.ok(alice, &Submit{Spec: spec}).Result.(JobID)
			if got := w.job(id).Spec.Partitions; !slices.Equal(got, c.want) {
				t.Errorf("the job is in %v, want %v", got, c.want)
			}
		})
	}
}

// TestAllocNodes: jobs for a partition are submitted on its AllocNodes alone, by root too.
func TestAllocNodes(t *testing.T) {
	w := withPartitions(t, Partition{Name: "desk", All: true, State: PartitionUp,
		PartitionAccess: PartitionAccess{AllocNodes: []string{"login1", "login2"}}})
	for host, refused := range map[string]bool{"login2": false, "login1.example.org": false, "login3": true, "": true} {
		t.Run(host, func(t *testing.T) {
			for _, by := range []Identity{alice, root} {
				spec := &JobSpec{Layout: &Layout{}, UID: by.UID, Partitions: []string{"desk"}, SubmitHost: host}
				if refused {
					w.refused(by, &Submit{Spec: spec}, ErrAccess)
				} else {
					w.ok(by, &Submit{Spec: spec})
				}
			}
		})
	}
}

// TestPartitionOverTime: the OverTimeLimit of a partition counts in place of the cluster's, for jobs that run when it
// is changed, too.
func TestPartitionOverTime(t *testing.T) {
	minutes := func(n time.Duration) *time.Duration { return new(n * time.Minute) }
	part := Partition{Name: "over", All: true, State: PartitionUp,
		PartitionLimits: PartitionLimits{OverTimeLimit: minutes(5)}}
	w := withPartitions(t, part)
	id := w.submit(func(s *JobSpec) { s.Partitions, s.Limit = []string{"over"}, time.Hour })
	d := Decision{Job: id, Task: TaskAny, Start: &Alloc{
		Partition: "over", Shares: []Share{{Node: "n0", Tasks: 1, CPUs: NewIDSet(0)}},
	}}
	if err := w.decide(d); err != nil {
		t.Fatal(err)
	}
	ends := func(want time.Duration) {
		t.Helper()
		j := w.job(id)
		if got := j.EndLimit(w.s.Snapshot().Config()).Sub(j.Started); got != want {
			t.Errorf("the job may run for %v, want %v", got, want)
		}
	}
	ends(65 * time.Minute)
	part.OverTimeLimit = minutes(0)
	w.ok(root, &PartitionSet{Partition: part})
	ends(time.Hour)
	part.OverTimeLimit = new(time.Duration(Unlimited))
	w.ok(root, &PartitionSet{Partition: part})
	if end := w.job(id).EndLimit(w.s.Snapshot().Config()); !end.IsZero() {
		t.Errorf("the job ends at %v, want never", end)
	}
	part.OverTimeLimit = nil
	w.ok(root, &PartitionSet{Partition: part})
	ends(time.Hour)
}

// TestCPULimitHeld: a decision that would give the jobs of a partition more CPUs of a node or a socket than they may
// have is refused, whatever the scheduler thought.
func TestCPULimitHeld(t *testing.T) {
	for name, c := range map[string]struct {
		limits PartitionLimits
		cpus   []IDSet // of one job after the other; the last one is refused
	}{
		"a node":        {PartitionLimits{MaxCPUsPerNode: 3}, []IDSet{NewIDSet(0, 1), NewIDSet(2, 4)}},
		"a socket":      {PartitionLimits{MaxCPUsPerSocket: 2}, []IDSet{NewIDSet(0, 4), NewIDSet(1, 5), NewIDSet(6)}},
		"one alone":     {PartitionLimits{MaxCPUsPerNode: 3}, []IDSet{NewIDSet(0, 1, 2, 3)}},
		"within, twice": {PartitionLimits{MaxCPUsPerNode: 2}, []IDSet{NewIDSet(0), NewIDSet(7), NewIDSet(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withPartitions(t, Partition{Name: "cpu", All: true, State: PartitionUp, PartitionLimits: c.limits})
			for i, cpus := range c.cpus {
				id := w.submit(func(s *JobSpec) { s.Partitions = []string{"cpu"} })
				err := w.decide(Decision{Job: id, Task: TaskAny, Start: &Alloc{
					Partition: "cpu", Shares: []Share{{Node: "n0", Tasks: 1, CPUs: cpus}},
				}})
				if last := i == len(c.cpus)-1; (err != nil) != last {
					t.Errorf("job %d with CPUs %s: %v", i, cpus, err)
				}
			}
		})
	}
}
