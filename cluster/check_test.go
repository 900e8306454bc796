package cluster

import (
	"errors"
	"testing"
)

// TestCheck: what would leave the cluster in a state that nobody can have meant is refused before it is written down.
func TestCheck(t *testing.T) {
	w := newWorld(t, 2)
	w.ok(root, &PartitionSet{Partition: Partition{Name: "busy", All: true, State: PartitionUp}})
	after := func(id JobID) *Depends { return &Depends{Terms: []Depend{{Type: AfterOK, Job: id, Task: TaskAny}}} }
	first := w.submit(func(s *JobSpec) { s.Partitions = []string{"busy"} })
	second := w.submit(func(s *JobSpec) { s.Depends = *after(first) })
	third := w.submit(func(s *JobSpec) { s.Depends = *after(second) })
	for name, c := range map[string]struct {
		cmd  Command
		want ErrKind
	}{
		"a partition in use": {&PartitionSet{Partition: Partition{Name: "busy"}, Delete: true}, ErrPartInUse},
		"one that is not":    {&PartitionSet{Partition: Partition{Name: "none"}, Delete: true}, ""},
		"a QOS that is not":  {&PartitionSet{Partition: Partition{Name: "main", QOS: "nosuch"}}, ErrQOS},
		"an alternate that is not": {&PartitionSet{Partition: Partition{Name: "main",
			PartitionAccess: PartitionAccess{Alternate: "nosuch"}}}, ErrPartition},
		"a node that is not": {
			&PartitionSet{Partition: Partition{Name: "main", Nodes: []NodeName{"nosuch"}}}, ErrNodeName,
		},
		"nodes that are":         {&PartitionSet{Partition: Partition{Name: "main", Nodes: []NodeName{"n0"}}}, ""},
		"for itself":             {&UpdateJob{Ref: Ref{Job: first}, Patch: Patch{Depends: after(first)}}, ""},
		"for one that waits":     {&UpdateJob{Ref: Ref{Job: first}, Patch: Patch{Depends: after(second)}}, ErrCircular},
		"over two others":        {&UpdateJob{Ref: Ref{Job: first}, Patch: Patch{Depends: after(third)}}, ErrCircular},
		"the other way round":    {&UpdateJob{Ref: Ref{Job: third}, Patch: Patch{Depends: after(first)}}, ""},
		"something else changes": {&UpdateJob{Ref: Ref{Job: first}, Patch: Patch{}}, ""},
	} {
		if got := kindOf(Check(w.s.Snapshot(), c.cmd)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func kindOf(err error) ErrKind {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Kind
}

// TestCheckReservation: where accounts bind users, reservations are of accounts and users that go together.
func TestCheckReservation(t *testing.T) {
	w := ranked(t, func(cfg *Config) { cfg.Enforce.Associations = true })
	free := ranked(t, nil)
	for _, c := range []struct {
		r    Reservation
		want ErrKind
	}{
		{Reservation{Accounts: []string{"team-a"}}, ""},
		{Reservation{Accounts: []string{"nosuch"}}, ErrAccount},
		{Reservation{Accounts: []string{"nosuch"}, AccountsNot: true}, ErrAccount},
		{Reservation{Accounts: []string{"team-a"}, Users: []string{"alice"}}, ""},
		{Reservation{Accounts: []string{"team-a"}, Users: []string{"alice", "bob"}}, ErrAccount},
		{Reservation{Accounts: []string{"team-a"}, Users: []string{"bob"}, UsersNot: true}, ""},
		{Reservation{Accounts: []string{"team-a"}, Users: []string{"bob"}, AccountsNot: true}, ""},
	} {
		if got := kindOf(Check(w.s.Snapshot(), &ReservationPut{Reservation: c.r})); got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
		if err := Check(free.s.Snapshot(), &ReservationPut{Reservation: c.r}); err != nil {
			t.Errorf("%+v where accounts bind nobody: %v", c.r, err)
		}
	}
}

// TestCheckEntry: partitions that are closed to root, or to jobs without a reservation, and a cluster that is
// closed to root.
func TestCheckEntry(t *testing.T) {
	w := newWorld(t, 2)
	w.ok(root, &PartitionSet{Partition: Partition{Name: "users", All: true, State: PartitionUp, DisableRootJobs: true}})
	w.ok(root, &PartitionSet{Partition: Partition{Name: "booked", All: true, State: PartitionUp, ReqResv: true}})
	for _, c := range []struct {
		spec JobSpec
		want ErrKind
	}{
		{JobSpec{Partitions: []string{"users"}}, ErrUser},
		{JobSpec{Partitions: []string{"users"}, UID: 7}, ""},
		{JobSpec{Partitions: []string{"booked"}, UID: 7}, ErrAccess},
		{JobSpec{Partitions: []string{"booked"}, UID: 7, Reservation: "r"}, ""},
		{JobSpec{}, ""},
	} {
		if got := kindOf(CheckEntry(w.s.Snapshot(), &c.spec)); got != c.want {
			t.Errorf("%+v: %q, want %q", c.spec, got, c.want)
		}
	}
	id := w.submit(nil)
	for name, want := range map[string]ErrKind{
		"booked": ErrAccess, "users": "", "main": "",
	} { // nor may a job that waits be moved there
		if got := kindOf(Check(w.s.Snapshot(), &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Partitions: []string{name}}})); got != want {
			t.Errorf("a job moved to %s: %q, want %q", name, got, want)
		}
	}
}

// TestLimitMemory has Slurm's figures for MaxMemPerCPU=3000 and MaxMemPerNode=4000.
func TestLimitMemory(t *testing.T) {
	for _, c := range []struct {
		most, mem     Mem
		cpus          int // of a task
		wantMem       MemMB
		wantCPUs, min int
		kind          ErrKind
	}{
		{Mem{MemPerCPU, 3000}, Mem{MemPerCPU, 6000}, 0, 3000, 2, 0, ""},
		{Mem{MemPerCPU, 3000}, Mem{MemPerCPU, 7000}, 2, 2334, 6, 0, ""},
		{Mem{MemPerCPU, 3000}, Mem{MemPerCPU, 3000}, 0, 3000, 0, 0, ""},
		{Mem{MemPerCPU, 3000}, Mem{MemPerNode, 9000}, 0, 9000, 0, 3, ""},
		{Mem{MemPerNode, 4000}, Mem{MemPerNode, 4000}, 0, 4000, 0, 0, ""},
		{Mem{MemPerNode, 4000}, Mem{MemPerNode, 5000}, 0, 5000, 0, 0, ErrStepMem},
		{Mem{MemPerNode, 4000}, Mem{MemPerCPU, 3000}, 2, 3000, 2, 0, ErrStepMem},
		{Mem{MemPerNode, 4000}, Mem{MemPerCPU, 2000}, 2, 2000, 2, 0, ""},
		{Mem{}, Mem{MemPerNode, 5000}, 0, 5000, 0, 0, ""},
	} {
		w := newWorld(t, 2)
		cfg := *w.s.Snapshot().Config()
		cfg.MaxMem = c.most
		w.ok(root, &Configure{Config: &cfg})
		spec := &JobSpec{Layout: &Layout{Mem: c.mem, CPUsPerTask: c.cpus}}
		err := LimitMemory(w.s.Snapshot(), spec)
		if kindOf(err) != c.kind || spec.Mem.MB != c.wantMem || spec.CPUsPerTask != c.wantCPUs || spec.MinCPUs != c.min {
			t.Errorf("%+v of %+v: %d MB, %d CPUs a task, %d a node, %v", c.mem, c.most, spec.Mem.MB,
				spec.CPUsPerTask, spec.MinCPUs, err)
		}
	}
}

// TestPartitionOfEndingJob deletes a partition whose last job is told to end; one that is requeued comes back to it.
func TestPartitionOfEndingJob(t *testing.T) {
	for name, c := range map[string]struct {
		end  Command
		want ErrKind
	}{
		"cancelled": {&Cancel{Ref: Ref{Job: 1}}, ""},
		"requeued":  {&Requeue{Ref: Ref{Job: 1}}, ErrPartInUse},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.ok(root, &PartitionSet{Partition: Partition{Name: "last", All: true, State: PartitionUp}})
			id := w.submit(func(s *JobSpec) { s.Partitions = []string{"last"} })
			w.run(id, 0, "n0")
			w.ok(root, c.end)
			if j, _ := w.s.Snapshot().Job(id); j.Phase != Ending {
				t.Fatalf("the job is %v", j.Phase)
			}
			remove := &PartitionSet{Partition: Partition{Name: "last"}, Delete: true}
			if got := kindOf(Check(w.s.Snapshot(), remove)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
