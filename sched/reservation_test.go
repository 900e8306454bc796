package sched_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/explain"
)

// reserve makes a reservation of nodes n000, n001, … that begins so long from now.
func (b *testbed) reserve(name string, in, long time.Duration, nodes int, change func(*cluster.Reservation)) {
	b.T.Helper()
	r := cluster.Reservation{Name: name, Start: b.Now.Add(in), End: b.Now.Add(in + long), Users: []string{"vip"}}
	for i := range nodes {
		r.Nodes = append(r.Nodes, nodeName(i))
	}
	if change != nil {
		change(&r)
	}
	b.Apply(&cluster.ReservationPut{Reservation: r})
}

func lasts(d time.Duration, more ...func(*cluster.JobSpec)) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) {
		s.Limit = d
		for _, f := range more {
			f(s)
		}
	}
}

func wants(nodes int) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) { s.MinNodes, s.MaxNodes, s.Sharing = nodes, nodes, cluster.ShareExclusive }
}

func inside(name string) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) { s.Reservation, s.User = name, "vip" }
}

func (b *testbed) on(id cluster.JobID) string {
	j, _ := b.S.Job(id)
	if j.Alloc == nil {
		return strings.TrimSuffix(string(j.Wait)+", "+j.WaitNote, ", ")
	}
	var names []string
	for _, sh := range j.Alloc.Shares {
		names = append(names, string(sh.Node))
	}
	return strings.Join(names, " ")
}

func (b *testbed) wantOn(id cluster.JobID, want string) {
	b.T.Helper()
	if got := b.on(id); got != want {
		b.T.Errorf("job %d: %s, want %s", id, got, want)
	}
}

// Jobs outside a reservation keep off its nodes if their limit reaches into it, and only then.
func TestReservedAhead(t *testing.T) {
	b := newTestbed(t, 3)
	b.reserve("r", 2*time.Hour, time.Hour, 2, nil)
	long := b.Submit(lasts(3*time.Hour, wants(1)))
	short := b.Submit(lasts(2*time.Hour, wants(1)))
	late := b.Submit(lasts(3*time.Hour, wants(1)))
	b.ScheduleAll()
	b.wantOn(long, "n002")
	b.wantOn(short, "n000")
	b.wantOn(late, "ReqNodeNotAvail, May be reserved for other job")
	if j, _ := b.S.Job(late); !j.PlannedStart.Equal(epoch.Add(3 * time.Hour)) {
		t.Errorf("planned for %v, want both ends at 11:00", j.PlannedStart)
	}
	e := explain.Job(b.S.Snapshot(), b.Now, late)
	if text := e.Causes[0].Text + " / " + e.Causes[0].Hint; !strings.Contains(text, "reservation r has 2 nodes") || !strings.Contains(text, "timelimit=120") {
		t.Errorf("why: %s", text)
	}
}

// Jobs inside wait for its begin, use its nodes only, and go to none that is not theirs.
func TestReservedInside(t *testing.T) {
	b := newTestbed(t, 3)
	b.reserve("r", time.Hour, 2*time.Hour, 2, nil)
	b.reserve("m", time.Hour, 2*time.Hour, 3, func(r *cluster.Reservation) { r.Flags = cluster.ResvOverlap })
	two := b.Submit(lasts(time.Hour, wants(2), inside("r")))
	one := b.Submit(lasts(time.Hour, wants(1), inside("r")))
	b.ScheduleAll()
	b.wantOn(two, "Reservation")
	b.Now = b.Now.Add(time.Hour)
	b.ScheduleAll()
	b.wantOn(two, "n000 n001")
	b.wantOn(one, "Resources")
	if j, _ := b.S.Job(two); j.Alloc.Reservation != "r" {
		t.Errorf("runs in reservation %q", j.Alloc.Reservation)
	}
	other := b.Submit(lasts(time.Minute, wants(1)))
	b.ScheduleAll()
	b.wantOn(other, "ReqNodeNotAvail, May be reserved for other job")
}

// Jobs that still run at a reservation's end are ended, and jobs that wait for it are held; a repeating one comes back.
func TestReservationOver(t *testing.T) {
	for _, c := range []struct {
		flags  cluster.ResvFlags
		phase  cluster.Phase
		held   cluster.Hold
		remain int
	}{
		{0, cluster.Ending, cluster.HeldAdmin, 0},
		{cluster.ResvNoHold, cluster.Ending, cluster.NotHeld, 0},
		{cluster.ResvFlex, cluster.Starting, cluster.HeldAdmin, 0},
		{cluster.ResvDaily, cluster.Ending, cluster.NotHeld, 1},
	} {
		b := newTestbed(t, 2)
		b.reserve("r", 0, time.Hour, 1, func(r *cluster.Reservation) { r.Flags = c.flags | cluster.ResvIgnoreJobs })
		runs := b.Submit(lasts(5*time.Hour, wants(1), inside("r")))
		waits := b.Submit(lasts(5*time.Hour, wants(2), inside("r")))
		b.ScheduleAll()
		b.Now = b.Now.Add(time.Hour)
		if at := b.S.Snapshot().NextTimer(epoch.Add(59 * time.Minute)); !at.Equal(b.Now) {
			t.Errorf("%b: the clock is next asked at %v", c.flags, at)
		}
		for _, cmd := range cluster.Due(b.S.Snapshot(), b.Now) {
			b.Apply(cmd)
		}
		j, _ := b.S.Job(runs)
		w, _ := b.S.Job(waits)
		all := b.S.Reservations()
		if j.Phase != c.phase || w.Held != c.held || len(all) != c.remain {
			t.Errorf("%b: phase %v, held %v, %d reservations; want %+v", c.flags, j.Phase, w.Held, len(all), c)
		}
		if c.remain > 0 && !all[0].Start.Equal(epoch.Add(24*time.Hour)) {
			t.Errorf("comes back at %v", all[0].Start)
		}
	}
}

// Jobs that may use a magnetic reservation do so unasked; if it is full they run elsewhere.
func TestReservedMagnetic(t *testing.T) {
	b := newTestbed(t, 2)
	b.reserve("r", 0, 9*time.Hour, 1,
		func(r *cluster.Reservation) { r.Flags, r.Users = cluster.ResvMagnetic, []string{"u"} })
	first, second := b.Submit(lasts(time.Hour, wants(1))), b.Submit(lasts(time.Hour, wants(1)))
	foreign := b.Submit(lasts(time.Hour, wants(1), func(s *cluster.JobSpec) { s.User = "x" }))
	b.ScheduleAll()
	b.wantOn(first, "n000")
	b.wantOn(second, "n001")
	b.wantOn(foreign, "Resources")
	b.EndJob(second)
	b.ScheduleAll()
	b.wantOn(foreign, "n001")
}

// A job of a FLEX reservation may run past its end, but not into what others have of its nodes afterwards.
func TestFlexBeforeOthers(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit time.Duration
		want  string
	}{
		{"over before they come", 2 * time.Hour, "n000"},
		{"would run into them", 2*time.Hour + time.Minute, "ReqNodeNotAvail, May be reserved for other job"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTestbed(t, 1)
			b.reserve("r", 0, time.Hour, 1, func(r *cluster.Reservation) { r.Flags = cluster.ResvFlex })
			b.reserve("later", 2*time.Hour, time.Hour, 1, nil)
			id := b.Submit(lasts(c.limit, wants(1), inside("r")))
			b.ScheduleAll()
			b.wantOn(id, c.want)
		})
	}
}

// A reservation that is to have another number of nodes keeps those that have jobs, then the last ones, and gets the
// first that are free. The choice is that of Slurm 22.05.
func TestReserveOtherCount(t *testing.T) {
	b := newTestbed(t, 6)
	b.reserve("x", 0, time.Hour, 4, nil)
	b.Submit(lasts(time.Hour, wants(1), inside("x"))) // n000
	b.ScheduleAll()
	b.reserve("o", time.Hour/2, time.Hour, 0,
		func(r *cluster.Reservation) { r.Nodes = []cluster.NodeName{nodeName(4)} })
	for count, want := range map[int]string{
		1: "[n000]", 2: "[n000 n003]", 3: "[n000 n002 n003]", 4: "[n000 n001 n002 n003]",
		5: "[n000 n001 n002 n003 n005]", 6: "reservation_busy",
	} {
		r, _ := b.S.Reservation("x")
		more := *r
		more.Nodes = slices.Clone(r.Nodes)
		slices.Reverse(more.Nodes)
		more.Count = count
		names, _, err := sched.Reserve(b.S.Snapshot(), &more, b.Now)
		got := fmt.Sprint(names)
		if err != nil {
			got = string(err.Kind)
		}
		if got != want {
			t.Errorf("%d nodes: %s, want %s", count, got, want)
		}
	}
}

// A job that asks for nodes outside of its reservations can never run; one that may go beyond its own is told of
// those of others only, with the words of Slurm 22.05.
func TestRequiredOutside(t *testing.T) {
	b := newTestbed(t, 8)
	at := func(name string, in time.Duration, node int, flags cluster.ResvFlags) {
		b.reserve(name, in, time.Hour, 0,
			func(r *cluster.Reservation) { r.Nodes, r.Flags = []cluster.NodeName{nodeName(node)}, flags })
	}
	at("flex", 0, 1, cluster.ResvFlex)
	at("flex2", 0, 2, cluster.ResvFlex)
	at("own", 0, 3, 0)
	at("other", 0, 4, cluster.ResvMaint)
	at("later", 30*time.Minute, 5, 0)
	at("any", 0, 6, cluster.ResvAnyNodes)
	b.reserve("cores", 0, time.Hour, 0, func(r *cluster.Reservation) {
		r.Nodes, r.Cores, r.CPUs = []cluster.NodeName{nodeName(7)}, []int{2}, []cluster.IDSet{cluster.RangeIDSet(0, 1)}
	})
	const outside, problem = "Required nodes outside of the reservation", "Problem using reservation"
	for _, c := range []struct {
		resv, nodes string
		minutes     time.Duration
		want        string
	}{
		{"flex", "1", 60, ""}, {"flex", "0", 60, ""}, {"flex", "4", 60, outside},
		{"flex", "14", 60, outside}, {"flex", "2", 60, outside}, {"flex", "5", 60, outside},
		{"flex", "5", 30, ""}, {"flex", "7", 60, ""}, {"any", "0", 60, ""}, {"any", "3", 60, outside},
		{"flex,flex2", "2", 60, ""}, {"flex,flex2", "3", 60, outside},
		{"own", "3", 60, ""}, {"own", "4", 60, problem}, {"own", "0", 60, problem}, {"own", "", 60, ""},
		{"cores", "7", 60, ""}, {"cores", "0", 60, problem},
		{"flex,own", "0", 60, ""}, {"flex,own", "3", 60, ""}, {"flex,own", "4", 60, problem},
		{"own,flex", "4", 60, outside}, {"", "4", 60, ""},
	} {
		spec := &cluster.JobSpec{
			Partitions: []string{"main"}, Reservation: c.resv, Limit: c.minutes * time.Minute,
			Layout: &cluster.Layout{MinNodes: max(1, len(c.nodes))},
		}
		for _, n := range c.nodes {
			spec.NodeList = append(spec.NodeList, nodeName(int(n-'0')))
		}
		got := ""
		if err := new(sched.Judge).Feasible(b.S.Snapshot(), spec, b.Now); err != nil {
			got = err.Hint
		}
		if got != c.want {
			t.Errorf("--reservation=%s -w n%s for %d minutes: %q, want %q", c.resv, c.nodes, c.minutes, got, c.want)
		}
	}
	many := &cluster.JobSpec{
		Partitions: []string{"main"}, Reservation: "own", Limit: time.Hour,
		Layout: &cluster.Layout{Tasks: 1000},
	}
	if err := new(sched.Judge).Feasible(b.S.Snapshot(), many, b.Now); err != nil {
		t.Errorf("more tasks than the partition has CPUs: %v; they wait", err)
	}
}

// The nodes of a reservation by number are those that nobody will have then.
func TestReserveNodes(t *testing.T) {
	b := newTestbed(t, 4)
	b.reserve("r", 2*time.Hour, time.Hour, 1, nil)
	b.Submit(lasts(3*time.Hour, wants(1))) // n001: n000 is reserved
	b.ScheduleAll()
	ask := func(count int, in time.Duration, flags cluster.ResvFlags) string {
		r := &cluster.Reservation{
			Name: "x", Count: count, Start: b.Now.Add(in), End: b.Now.Add(in + time.Hour), Flags: flags,
		}
		names, _, err := sched.Reserve(b.S.Snapshot(), r, b.Now)
		if err != nil {
			return string(err.Kind)
		}
		var out []string
		for _, n := range names {
			out = append(out, string(n))
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		count int
		in    time.Duration
		flags cluster.ResvFlags
		want  string
	}{
		{2, 2 * time.Hour, 0, "n002 n003"},
		{3, 2 * time.Hour, 0, string(cluster.ErrResvBusy)},
		{3, 2 * time.Hour, cluster.ResvIgnoreJobs, "n001 n002 n003"},
		{3, 2 * time.Hour, cluster.ResvMaint, "n000 n002 n003"},
		{3, 3 * time.Hour, 0, "n000 n001 n002"},
		{2, 2 * time.Hour, cluster.ResvMaint, "n002 n003"},
		{2, 2 * time.Hour, cluster.ResvOverlap, "n002 n003"},
		{5, 9 * time.Hour, 0, string(cluster.ErrResvBusy)},
	} {
		if got := ask(c.count, c.in, c.flags); got != c.want {
			t.Errorf("%d in %v: %s, want %s", c.count, c.in, got, c.want)
		}
	}
}

// TestCoresApart plays random reservations of cores and jobs: what is given keeps off the cores of all reservations
// that a job has no part in while it may run, and stays within its own; and some jobs of either kind run at all. Some
// nodes have two threads a core, some jobs are heterogeneous, some may do with less time.
func TestCoresApart(t *testing.T) {
	seed, inside, beside := rand.Uint64(), 0, 0
	for round := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, round))
		b := newTestbed(t, 0)
		for i := range 1 + r.IntN(3) {
			b.Apply(&cluster.NodeUp{Name: nodeName(i), Inventory: node(1 + r.IntN(2))})
		}
		for k := range 1 + r.IntN(4) {
			in := time.Duration(r.IntN(3)*30) * time.Minute
			res := cluster.Reservation{
				Name: fmt.Sprint("r", k), Start: b.Now.Add(in), End: b.Now.Add(in + time.Hour),
				Users: []string{"vip"}, Cores: []int{1 + r.IntN(12)},
			}
			if nodes, cpus, err := sched.Reserve(b.S.Snapshot(), &res, b.Now); err == nil {
				res.Nodes, res.CPUs = nodes, cpus
				b.Apply(&cluster.ReservationPut{Reservation: res})
			}
		}
		for range 12 {
			list := b.S.Reservations()
			some := func(s *cluster.JobSpec) {
				s.Tasks, s.Limit, s.User = 1+r.IntN(10), time.Duration(10+r.IntN(9)*10)*time.Minute, "vip"
				if len(list) > 0 && r.IntN(2) == 0 {
					s.Reservation = list[r.IntN(len(list))].Name
				}
				if r.IntN(5) == 0 {
					s.Sharing = cluster.ShareExclusive
				}
				if r.IntN(4) == 0 {
					s.LimitMin = 10 * time.Minute
				}
			}
			if r.IntN(3) == 0 {
				b.het(some, some)
			} else {
				b.Submit(some)
			}
		}
		for range 6 {
			b.ScheduleAll()
			in, out := b.apart(t, fmt.Sprintf("seed %d round %d", seed, round))
			inside, beside = inside+in, beside+out
			b.Now = b.Now.Add(15 * time.Minute)
			b.Apply(&cluster.ReservationsDue{Names: []string{"r0", "r1", "r2", "r3"}})
		}
	}
	if inside < 100 || beside < 100 {
		t.Errorf("%d jobs seen within reservations, %d beside them: the trials say little", inside, beside)
	}
}

// apart checks what has been started just now, and counts the jobs within reservations and on the nodes of others.
func (b *testbed) apart(t *testing.T, when string) (inside, beside int) {
	t.Helper()
	for j := range b.S.Live() {
		if !j.Started.Equal(b.Now) {
			continue
		}
		for _, k := range b.S.Reservations() {
			own := j.Alloc.Reservation == k.Name
			for _, sh := range j.Alloc.Shares {
				n := slices.Index(k.Nodes, sh.Node)
				switch {
				case own && (n < 0 || !k.CPUs[n].Contains(sh.CPUs)):
					t.Fatalf("%s: job %d has CPUs %s of %s, which reservation %s has not", when, j.ID,
						sh.CPUs, sh.Node, k.Name)
				case own:
					inside++
				case n >= 0 && k.Keeps(b.Now, b.Now.Add(j.Limit)) && j.Alloc.Reservation == "":
					if beside++; !k.CPUs[n].Intersect(sh.CPUs).Empty() {
						t.Fatalf("%s: job %d has CPUs %s of %s, of which reservation %s has %s", when, j.ID,
							sh.CPUs, sh.Node, k.Name, k.CPUs[n])
					}
				}
			}
		}
	}
	return inside, beside
}

// TestLateEnd: a job that is to get the node of one that has not ended in time is planned to start now at the
// earliest, so that a reservation is in its way which its limit reaches.
func TestLateEnd(t *testing.T) {
	b := newTestbed(t, 1)
	late := b.Submit(wants(1))
	b.ScheduleAll()
	b.confirm(late)
	b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: late}})
	b.Now = b.Now.Add(30 * time.Second)
	b.reserve("r", time.Hour-10*time.Second, time.Hour, 1, nil)
	id := b.Submit(lasts(time.Hour, wants(1)))
	b.ScheduleAll()
	if want, got := b.Now.Add(2*time.Hour-10*time.Second), sched.ForecastOf(b.S.Snapshot(), b.Now, id).At; !got.Equal(want) {
		t.Errorf("it is to start at %s, want %s", got, want)
	}
	if list := explain.Changes(b.S.Snapshot(), b.Now, id, func(*cluster.Partition) bool { return true }); len(list) != 1 || list[0].Text != "with 59 min instead of 1 h" {
		t.Errorf("what would start it sooner: %+v", list)
	}
}

// TestWhyCores: what keeps a job off cores, or has too few of them, is told.
func TestWhyCores(t *testing.T) {
	b := newTestbed(t, 1)
	r := cluster.Reservation{
		Name: "r", Start: b.Now, End: b.Now.Add(time.Hour), Users: []string{"vip"}, Cores: []int{4},
	}
	nodes, cpus, err := sched.Reserve(b.S.Snapshot(), &r, b.Now)
	if err != nil {
		t.Fatal(err)
	}
	r.Nodes, r.CPUs = nodes, cpus
	b.Apply(&cluster.ReservationPut{Reservation: r})
	tasks := func(n int) func(*cluster.JobSpec) { return func(s *cluster.JobSpec) { s.Tasks = n } }
	out, in := b.Submit(tasks(13)), b.Submit(lasts(time.Minute, tasks(5), inside("r")))
	b.ScheduleAll()
	for id, want := range map[cluster.JobID]string{
		out: "reservation r has 4 CPUs of 1 node from", in: "1 of 1 node in service can take 4 tasks",
	} {
		text := ""
		for _, c := range explain.Job(b.S.Snapshot(), b.Now, id).Causes {
			text += c.Text + "\n"
		}
		if !strings.Contains(text, want) {
			t.Errorf("job %d: %s\nlacks %q", id, text, want)
		}
	}
}

// TestBeginsOnTime: a scheduler that goes on starts what waits for a reservation at the very moment when that begins,
// though no other job has looked for nodes.
func TestBeginsOnTime(t *testing.T) {
	b := newTestbed(t, 2)
	b.reserve("r", time.Hour, time.Hour, 1, nil)
	id := b.Submit(lasts(10*time.Minute, inside("r")))
	var s sched.Scheduler
	cycle := func() []cluster.Decision {
		list := s.Schedule(b.S.Snapshot(), b.Now)
		if len(list) > 0 {
			b.Apply(&cluster.Decide{Decisions: list})
		}
		return list
	}
	for len(cycle()) > 0 {
	}
	b.wantOn(id, string(cluster.WaitReservation))
	b.Now = b.Now.Add(time.Hour)
	cycle()
	b.wantOn(id, "n000")
}

// TestReservedForPartition: what is reserved for jobs of a partition, or of a QOS, other jobs do not have, whichever
// user's they are; and a job of two partitions has it in that one alone.
func TestReservedForPartition(t *testing.T) {
	b := newTestbed(t, 2, cluster.Partition{Name: "other", All: true, State: cluster.PartitionUp})
	b.reserve("r", 0, 9*time.Hour, 1,
		func(r *cluster.Reservation) { r.Users, r.Partitions = nil, []string{"other"} })
	of := func(parts ...string) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) { s.Partitions = parts }
	}
	one := b.Submit(lasts(time.Hour, wants(1), inside("r"), of("main", "other")))
	b.ScheduleAll()
	b.wantOn(one, "n000")
	if j, _ := b.S.Job(one); j.Alloc.Partition != "other" {
		t.Errorf("the job runs in partition %s", j.Alloc.Partition)
	}
	out := b.S.Apply(cluster.Entry{
		Index: b.N + 1, At: b.Now, By: cluster.Identity{System: true},
		Cmd: &cluster.Submit{Spec: &cluster.JobSpec{
			UID: 1, User: "u", Reservation: "r", Partitions: []string{"main"}, Layout: &cluster.Layout{},
		}},
	})
	b.N++
	if out.Err == nil || out.Err.Kind != cluster.ErrResvAccess {
		t.Errorf("a job of partition main: %v", out.Err)
	}
}
