package cluster

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestTimeFloat: a reservation that moves along is always as far ahead, and the clock never ends it.
func TestTimeFloat(t *testing.T) {
	w := newWorld(t, 1)
	put := func(flags ResvFlags, ahead time.Duration) Command {
		return &ReservationPut{Reservation: Reservation{Name: "float", Start: w.now.Add(ahead),
			End: w.now.Add(ahead + time.Hour), Nodes: []NodeName{"n0"},
			Users: []string{"root"}, Flags: flags}}
	}
	w.refused(root, put(ResvTimeFloat, 0), ErrResvTime)
	w.refused(root, put(ResvTimeFloat|ResvDaily, time.Hour), ErrResvTime)
	w.ok(root, put(ResvTimeFloat, time.Hour))
	w.pass(48 * time.Hour)
	w.due()
	r, ok := w.s.Reservation("float")
	if !ok {
		t.Fatal("it is over")
	}
	if got := r.At(w.now); !got.Start.Equal(w.now.Add(time.Hour)) || !got.End.Equal(w.now.Add(2*time.Hour)) || got.Active(w.now) {
		t.Errorf("it lies from %v to %v, now is %v", got.Start, got.End, w.now)
	}
	if again := r.At(w.now).At(w.now.Add(time.Minute)); !again.Start.Equal(w.now.Add(61 * time.Minute)) {
		t.Errorf("a minute later it begins at %v", again.Start)
	}
}

// TestResvPrograms: the site's programs are called once when a reservation begins, and when its time is over; of
// one that repeats each time, of one that was deleted not.
func TestResvPrograms(t *testing.T) {
	w := newWorld(t, 1)
	cfg := DefaultConfig()
	cfg.ResvProlog, cfg.ResvEpilog = "/pro", "/epi"
	w.ok(root, &Configure{Config: &cfg})
	put := func(name string, flags ResvFlags, ahead, long time.Duration) {
		t.Helper()
		w.ok(root, &ReservationPut{
			Reservation: Reservation{
				Name: name, Start: w.now.Add(ahead), End: w.now.Add(ahead + long), Nodes: []NodeName{"n0"},
				Users: []string{"root"}, Flags: flags,
			},
		})
	}
	called := func(when, want string) {
		t.Helper()
		w.due()
		w.due()
		var out []string
		var done HooksDone
		for e := range w.s.Hooks() {
			out = append(out, string(e.Kind)+" "+e.Reservation)
			done.Ends = append(done.Ends, HookEnd{ID: e.ID})
		}
		if got := strings.Join(out, ", "); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		if len(done.Ends) > 0 {
			w.ok(sys, &done)
		}
	}
	put("later", ResvDaily, time.Minute, time.Minute)
	put("now", ResvOverlap, 0, time.Minute)
	called("at once", "resv_prolog now")
	w.ok(root, &ReservationDrop{Name: "now"})
	called("deleted", "")
	w.pass(time.Minute)
	called("begun", "resv_prolog later")
	r, _ := w.s.Reservation("later")
	again := *r
	again.Users, again.Begun = []string{"bob"}, false
	w.ok(root, &ReservationPut{Reservation: again, Update: true})
	called("changed meanwhile", "")
	w.pass(time.Minute)
	called("over", "resv_epilog later")
	w.pass(23 * time.Hour)
	w.pass(59 * time.Minute)
	called("the next day", "resv_prolog later")
}

// TestResvOverRun: a job of a reservation whose time is over ends with it, so much later, or when its own time is over.
func TestResvOverRun(t *testing.T) {
	for _, c := range []struct {
		over, limit time.Duration
		lives       time.Duration // beyond the end
	}{
		{0, time.Hour, 0}, {5 * time.Minute, time.Hour, 5 * time.Minute},
		{5 * time.Minute, 0, 5 * time.Minute}, {5 * time.Minute, 12 * time.Minute, 2 * time.Minute},
		{Unlimited, time.Hour, 50 * time.Minute},
	} {
		w := newWorld(t, 1)
		cfg := DefaultConfig()
		cfg.ResvOverRun = c.over
		w.ok(root, &Configure{Config: &cfg})
		w.ok(root, &ReservationPut{
			Reservation: Reservation{
				Name: "r", Start: w.now, End: w.now.Add(10 * time.Minute), Nodes: []NodeName{"n0"},
				Users: []string{"alice"},
			},
		})
		id := w.submit(func(s *JobSpec) { s.Reservation, s.Limit = "r", c.limit })
		out := w.ok(sys, &Decide{
			Decisions: []Decision{
				{
					Job: id,
					Start: &Alloc{
						Partition: "main", Reservation: "r",
						Shares: []Share{{Node: "n0", CPUs: NewIDSet(0), MemMB: 100, Tasks: 1}},
					},
				},
			},
		})
		if e := out.Result.([]*Error)[0]; e != nil {
			t.Fatal(e)
		}
		w.report("n0", id, NodeReady)
		w.pass(10 * time.Minute)
		w.due()
		if c.lives > 0 {
			w.want(id, Running)
			w.pass(c.lives - time.Second)
			w.due()
			w.want(id, Running)
			w.pass(time.Second)
			w.due()
		}
		if j := w.want(id, Ending); j.EndingWhy != TimedOut {
			t.Errorf("%+v: it ends as %v", c, j.EndingWhy)
		}
	}
}

// TestResvAllNodes: a reservation of all nodes has those that come later too.
func TestResvAllNodes(t *testing.T) {
	w := newWorld(t, 2)
	for _, flags := range []ResvFlags{0, ResvAllNodes} {
		w.ok(root, &ReservationPut{
			Reservation: Reservation{
				Name: "r" + strconv.Itoa(int(flags)), Start: w.now, End: w.now.Add(time.Hour),
				Nodes: []NodeName{"n0", "n1"}, Users: []string{"root"}, Flags: flags | ResvOverlap,
			},
		})
	}
	w.ok(Identity{System: true}, &NodeUp{
		Name:      "n2",
		Inventory: Inventory{CPUs: 4, Sockets: 1, CoresPerSocket: 4, ThreadsPerCore: 1, MemMB: 1000},
	})
	for flags, want := range map[ResvFlags]int{0: 2, ResvAllNodes: 3} {
		r, _ := w.s.Reservation("r" + strconv.Itoa(int(flags)))
		if got := w.s.Reserved(r); len(got) != want {
			t.Errorf("flags %d: %v, want %d nodes", flags, got, want)
		}
	}
}

// TestResvCores: reservations of cores share a node if they have different ones; they leave the others to jobs, and
// stay what they are.
func TestResvCores(t *testing.T) {
	w := newWorld(t, 2)
	put := func(name string, change func(*Reservation)) *ReservationPut {
		r := Reservation{
			Name: name, Start: w.now, End: w.now.Add(time.Hour), Nodes: []NodeName{"n0"},
			Users: []string{"root"}, Cores: []int{2}, CPUs: []IDSet{NewIDSet(0, 1)},
		}
		if change != nil {
			change(&r)
		}
		return &ReservationPut{Reservation: r}
	}
	cpus := func(ids ...int) func(*Reservation) {
		return func(r *Reservation) { r.CPUs = []IDSet{NewIDSet(ids...)} }
	}
	whole := func(r *Reservation) { r.Cores, r.CPUs = nil, nil }
	with := func(flags ResvFlags) func(*Reservation) { return func(r *Reservation) { r.Flags = flags } }
	w.ok(root, put("a", nil))
	w.ok(root, put("b", cpus(2, 3)))
	w.refused(root, put("c", cpus(3, 4)), ErrResvOverlap)
	w.refused(root, put("c", whole), ErrResvOverlap)
	w.ok(root, put("m", func(r *Reservation) { r.CPUs, r.Flags = []IDSet{NewIDSet(3, 7)}, ResvMaint }))
	w.refused(root, put("c", cpus(8)), ErrCPUCount)
	w.refused(root, put("c", cpus()), ErrCPUCount)
	w.refused(root, put("c", func(r *Reservation) { r.CPUs = nil }), ErrResvCoreCount)
	w.refused(root, put("c", func(r *Reservation) { r.Nodes = []NodeName{"n0", "n1"} }), ErrResvCoreCount)
	w.refused(root, put("c", with(ResvReplace)), ErrCPUCount)
	w.refused(root, put("c", with(ResvAnyNodes)), ErrCPUCount)

	update := func(change func(*Reservation)) Command {
		c := put("a", change)
		c.Update = true
		return c
	}
	w.refused(root, update(cpus(4, 5)), ErrResvCores)
	w.refused(root, update(whole), ErrResvCores)
	w.refused(root, update(func(r *Reservation) { r.Nodes = []NodeName{"n1"} }), ErrResvCores)
	w.ok(root, update(func(r *Reservation) { r.End = w.now.Add(2 * time.Hour) }))

	w.ok(root, &ReservationDrop{Name: "m"})
	refused := func(resv string, cpu ...int) bool {
		id := w.submit(func(s *JobSpec) { s.User, s.Reservation, s.Limit = "root", resv, time.Minute })
		return w.decide(Decision{
			Job: id, Task: TaskAny,
			Start: &Alloc{
				Partition: "main", Reservation: resv,
				Shares: []Share{{Node: "n0", CPUs: NewIDSet(cpu...), Tasks: 1}},
			},
		}) != nil
	}
	for _, c := range []struct {
		resv  string
		cpus  []int
		taken bool
	}{
		{"", []int{1, 4}, true}, {"", []int{3}, true}, {"", []int{4}, false}, {"a", []int{0, 1}, false},
		{"b", []int{2}, false},
	} {
		if refused(c.resv, c.cpus...) != c.taken {
			t.Errorf("a job of reservation %q on CPUs %v: refused %v", c.resv, c.cpus, !c.taken)
		}
	}
	w.refused(root, put("c", cpus(4, 5)), ErrResvBusy)
	w.ok(root, put("c", cpus(5, 6)))
}

// TestResvGPUs: reservations of GPUs share a node if they have different ones; they leave the others to jobs, and stay
// what they are.
func TestResvGPUs(t *testing.T) {
	w := newWorld(t, 2)
	inv := smallNode()
	inv.GPUs = append(inv.GPUs, inv.GPUs...)
	w.ok(Identity{System: true}, &NodeUp{Name: "n0", Inventory: inv})
	put := func(name string, change func(*Reservation)) *ReservationPut {
		r := Reservation{
			Name: name, Start: w.now, End: w.now.Add(time.Hour), Nodes: []NodeName{"n0"}, Users: []string{"root"},
			GRES: []GRES{{Name: "gpu", Count: 1}}, PerNode: true,
			CPUs: []IDSet{NewIDSet(0)}, GPUs: []IDSet{NewIDSet(0)},
		}
		if change != nil {
			change(&r)
		}
		return &ReservationPut{Reservation: r}
	}
	part := func(cpu int, gpus ...int) func(*Reservation) {
		return func(r *Reservation) { r.CPUs, r.GPUs = []IDSet{NewIDSet(cpu)}, []IDSet{NewIDSet(gpus...)} }
	}
	ofCores := func(cpu int) func(*Reservation) {
		return func(r *Reservation) { r.Cores, r.GRES, r.GPUs, r.CPUs = []int{1}, nil, nil, []IDSet{NewIDSet(cpu)} }
	}
	w.ok(root, put("a", nil))
	w.ok(root, put("b", part(1, 1)))
	w.ok(root, put("c", ofCores(2)))
	for _, c := range []struct {
		name   string
		change func(*Reservation)
		want   ErrKind
	}{
		{"its GPU", part(3, 1), ErrResvOverlap},
		{"its core", part(1, 2), ErrResvOverlap},
		{"core of one without GPUs", part(2, 2), ErrResvOverlap},
		{"no such GPU", part(3, 99), ErrResvGPUs},
		{"no GPU", part(3), ErrResvGPUs},
		{"no list of GPUs", func(r *Reservation) { r.GPUs = nil }, ErrResvGPUs},
		{"GPUs not asked for", func(r *Reservation) { r.Cores, r.GRES = []int{1}, nil }, ErrResvGPUs},
		{"no cores", func(r *Reservation) { r.CPUs = nil }, ErrResvCoreCount},
		{"none of a type", func(r *Reservation) { r.GRES = []GRES{{Name: "gpu"}} }, ErrResvGPUs},
		{"another resource", func(r *Reservation) { r.GRES = []GRES{{Name: "shard", Count: 1}} }, ErrResvGPUs},
		{"REPLACE", func(r *Reservation) { r.Flags = ResvReplace }, ErrCPUCount},
		{"FIRST_CORES", func(r *Reservation) { r.Flags = ResvFirstCores }, ErrResvGPUs},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.refused(root, put("x", c.change), c.want)
		})
	}
	for _, change := range []func(*Reservation){
		part(0, 2), part(3, 0), ofCores(0), func(r *Reservation) { r.PerNode = false },
		func(r *Reservation) { r.Nodes = []NodeName{"n1"} },
	} {
		c := put("a", change)
		c.Update = true
		w.refused(root, c, ErrResvCores)
	}
	longer := put("a", func(r *Reservation) { r.End = w.now.Add(2 * time.Hour) })
	longer.Update = true
	w.ok(root, longer)

	for _, c := range []struct {
		name, resv string
		share      Share
		taken      bool
	}{
		{"reserved GPU", "", Share{CPUs: NewIDSet(4), GPUs: NewIDSet(0)}, true},
		{"part of a reserved GPU", "", Share{CPUs: NewIDSet(4), Part: &GPUPart{Name: "shard", GPU: 0, Count: 1}}, true},
		{"reserved core", "", Share{CPUs: NewIDSet(0), GPUs: NewIDSet(2)}, true},
		{"the rest", "", Share{CPUs: NewIDSet(4), GPUs: NewIDSet(2)}, false},
		{"its own", "a", Share{CPUs: NewIDSet(0), GPUs: NewIDSet(0)}, false},
		{"GPU of another from one of cores", "c", Share{CPUs: NewIDSet(2), GPUs: NewIDSet(1)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := w.submit(func(s *JobSpec) { s.User, s.Reservation, s.Limit = "root", c.resv, time.Minute })
			c.share.Node, c.share.Tasks = "n0", 1
			err := w.decide(Decision{Job: id, Task: TaskAny,
				Start: &Alloc{Partition: "main", Reservation: c.resv, Shares: []Share{c.share}}})
			if c.taken != (err != nil && err.Kind == ErrReservation) || !c.taken && err != nil {
				t.Errorf("refused with %v, want refused %v", err, c.taken)
			}
		})
	}
	w.refused(root, put("x", part(5, 2)), ErrResvBusy) // a job has the GPU
}

// TestGPUAmounts: types that were asked for are counted, and all GPUs.
func TestGPUAmounts(t *testing.T) {
	two := []IDSet{NewIDSet(0, 1), NewIDSet(2)}
	typed := []GRES{{Name: "gpu", Type: "h100", Count: 3}}
	for _, c := range []struct {
		name string
		r    Reservation
		want []Amount
	}{
		{"none", Reservation{}, nil},
		{"any", Reservation{GRES: []GRES{{Name: "gpu", Count: 3}}, GPUs: two}, []Amount{{TRES: "gres/gpu", N: 3}}},
		{"typed", Reservation{GRES: typed, GPUs: two}, []Amount{{"gres/gpu:h100", 3}, {"gres/gpu", 3}}},
		{"per node", Reservation{GRES: typed, PerNode: true, Nodes: []NodeName{"a", "b"}, GPUs: two},
			[]Amount{{"gres/gpu:h100", 6}, {"gres/gpu", 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.GPUAmounts(); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestMaxStartDelay: a job that may be warned in time has what is reserved until a job of the reservation wants it.
func TestMaxStartDelay(t *testing.T) {
	w := newWorld(t, 2)
	cfg := DefaultConfig()
	cfg.Partitions = append(cfg.Partitions, Partition{
		Name: "hard", All: true, State: PartitionUp, PreemptMode: "CANCEL",
	})
	w.ok(root, &Configure{Config: &cfg})
	warned := func(seconds int, more ...func(*JobSpec)) JobID {
		return w.submit(func(s *JobSpec) {
			s.Limit = time.Hour
			s.Signal = Signal{Num: 10, Before: time.Duration(seconds) * time.Second, Reservation: true, BatchOnly: true}
			for _, f := range more {
				f(s)
			}
		})
	}
	there := w.run(warned(60), 0, "n0")
	put := &ReservationPut{
		Reservation: Reservation{
			Name: "r", Start: w.now, End: w.now.Add(time.Hour), Nodes: []NodeName{"n0"},
			Users: []string{"alice"},
		},
	}
	w.refused(root, put, ErrResvBusy)
	put.MaxStartDelay = -1
	w.refused(root, put, ErrResvTime)
	put.MaxStartDelay = 2 * time.Minute
	w.ok(root, put)

	start := func(id JobID, cpu int, resv, part string) *Error {
		return w.decide(Decision{
			Job: id, Task: TaskAny,
			Start: &Alloc{
				Partition: part, Reservation: resv,
				Shares: []Share{{Node: "n0", CPUs: NewIDSet(cpu), MemMB: 100, Tasks: 1}},
			},
		})
	}
	if start(warned(121), 1, "", "main") == nil || start(w.submit(nil), 1, "", "main") == nil {
		t.Error("jobs are let onto reserved nodes that cannot leave in time")
	}
	late := w.start(warned(120), TaskAny, 1, "n0")
	hard := warned(0, func(s *JobSpec) { s.Partitions = []string{"hard"} })
	if err := start(hard, 2, "", "hard"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []JobID{late, hard} {
		w.report("n0", id, NodeReady)
	}
	own := w.submit(func(s *JobSpec) { s.Reservation = "r" })
	if err := start(own, 3, "r", "main"); err != nil {
		t.Fatal(err)
	}
	next, other := w.submit(func(s *JobSpec) { s.Reservation = "r" }), w.submit(nil)
	evict := func(id JobID, resv string, victims ...JobID) *Error {
		return w.decide(Decision{
			Job: id, Task: TaskAny, Wait: WaitResources, Partition: "main", Reservation: resv,
			Evict: victims,
		})
	}
	for name, err := range map[string]*Error{"for none of it": evict(other, "", there),
		"for one that is not there": evict(next, "gone", there),
		"out of it":                 evict(next, "r", own), "for no reservation": evict(next, "", there)} {
		if err == nil {
			t.Errorf("a job leaves %s", name)
		}
	}
	if err := evict(next, "r", there, late, hard); err != nil {
		t.Fatal(err)
	}
	for id, grace := range map[JobID]time.Duration{there: time.Minute, late: 2 * time.Minute} {
		j := w.want(id, Running)
		if p := j.Preempt; p.By != next || p.Mode != PreemptRequeue || p.Until.Sub(w.now) != grace {
			t.Errorf("job %d: %+v", id, p)
		}
		if n := len(j.Signals); n != 2 || j.Signals[0].Sig != sigCont || j.Signals[1].Sig != 10 || j.Signals[1].Scope != SignalBatchShell {
			t.Errorf("job %d gets the signals %+v", id, j.Signals)
		}
	}
	if j := w.want(hard, Ending); j.Preempt.Mode != PreemptCancel {
		t.Errorf("%+v", j.Preempt)
	}
	w.pass(time.Minute)
	w.due()
	w.want(there, Ending)
	w.want(late, Running)
	w.report("n0", there, NodeDone)
	if w.want(there, Pending); !w.s.Yields(w.job(there), w.now.Add(preemptYield-1)) || w.s.Yields(w.job(there), w.now.Add(preemptYield)) {
		t.Error("it lets the other go first, from when its grace is over for two minutes")
	}
}

// TestResvAccess: a job must be of the users, the account, the QOS and one of the partitions, or not of those denied.
func TestResvAccess(t *testing.T) {
	spec := JobSpec{User: "alice", Account: "physics", QOS: "high", Partitions: []string{"gpu", "cpu"}}
	for _, c := range []struct {
		name string
		resv Reservation
		want bool
	}{
		{"account", Reservation{Accounts: []string{"physics"}}, true},
		{"another account", Reservation{Accounts: []string{"bio"}}, false},
		{"QOS", Reservation{QOS: []string{"high"}}, true},
		{"another QOS", Reservation{QOS: []string{"low"}}, false},
		{"QOS denied", Reservation{QOS: []string{"high"}, QOSNot: true}, false},
		{"another QOS denied", Reservation{QOS: []string{"low"}, QOSNot: true}, true},
		{"one of the partitions", Reservation{Partitions: []string{"cpu"}}, true},
		{"another partition", Reservation{Partitions: []string{"x"}}, false},
		{"one of the partitions denied", Reservation{Partitions: []string{"cpu"}, PartitionsNot: true}, true},
		{"both denied", Reservation{Partitions: []string{"cpu", "gpu"}, PartitionsNot: true}, false},
		{"QOS and another user", Reservation{QOS: []string{"high"}, Users: []string{"bob"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.resv.Allows(&spec); got != c.want {
				t.Errorf("the job may use it: %t", got)
			}
		})
	}
}

// TestResvOfDefaultAccount: a reservation for an account is for jobs that leave out their account, too.
func TestResvOfDefaultAccount(t *testing.T) {
	w := newWorld(t, 2)
	w.ok(root, &ChangeAccounts{Changes: []Change{
		{Account: &Account{Name: "physics"}},
		{Assoc: &Association{Account: "physics", Shares: 1}},
		{User: &User{Name: "alice", DefaultAccount: "physics"}},
		{Assoc: &Association{Account: "physics", User: "alice", Shares: 1}},
	}})
	w.ok(root, &ReservationPut{Reservation: Reservation{
		Name: "r", Start: w.now, End: w.now.Add(time.Hour), Nodes: []NodeName{"n0"}, Accounts: []string{"physics"},
	}})
	w.submit(func(s *JobSpec) { s.Reservation = "r" })
	w.refused(root, &ReservationPut{Reservation: Reservation{
		Name: "q", Start: w.now, End: w.now.Add(time.Hour), Nodes: []NodeName{"n1"}, QOS: []string{"nosuch"},
	}}, ErrQOS)
}

// TestResvFlagsApart: flags of which Slurm refuses two at a time.
func TestResvFlagsApart(t *testing.T) {
	w := newWorld(t, 2)
	for name, flags := range map[string]ResvFlags{
		"two repetitions":          ResvHourly | ResvWeekday,
		"maintenance and replace":  ResvMaint | ResvReplace,
		"static and replaced down": ResvStatic | ResvReplaceDown,
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(root, &ReservationPut{Reservation: Reservation{Name: "r", Nodes: []NodeName{"n1"},
				Users: []string{"alice"}, Start: w.now, End: w.now.Add(time.Minute), Flags: flags}}, ErrUnsupported)
		})
	}
}
