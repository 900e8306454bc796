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

// gpus asks for GPUs: "4", "h100:2" or several of these with commas.
func gpus(text string) (list []cluster.GRES) {
	for word := range strings.SplitSeq(text, ",") {
		kind, count, typed := strings.Cut(word, ":")
		if !typed {
			kind, count = "", word
		}
		g := cluster.GRES{Name: "gpu", Type: kind}
		_, _ = fmt.Sscan(count, &g.Count)
		list = append(list, g)
	}
	return list
}

// reserveParts makes a reservation for an hour of what is chosen for it; it returns what it has, or what is wrong.
func (b *testbed) reserveParts(name string, in time.Duration, change func(*cluster.Reservation)) string {
	b.T.Helper()
	r := &cluster.Reservation{Name: name, Start: b.Now.Add(in), End: b.Now.Add(in + time.Hour), Users: []string{"vip"}}
	change(r)
	r, err := sched.ReserveParts(b.S.Snapshot(), r, b.Now)
	if err != nil {
		return string(err.Kind) + ": " + err.Message
	}
	b.Apply(&cluster.ReservationPut{Reservation: *r})
	out := ""
	for k, n := range r.Nodes {
		out += fmt.Sprintf("%s %s/%s ", n, r.CPUs[k], r.GPUsAt(k))
	}
	return strings.TrimSpace(out)
}

// Nodes of the testbed have 2 a100 near CPUs 0-7 and 2 h100 near CPUs 8-15.
func TestReserveGPUs(t *testing.T) {
	named := func(nodes ...int) func(*cluster.Reservation) {
		return func(r *cluster.Reservation) {
			for _, i := range nodes {
				r.Nodes = append(r.Nodes, nodeName(i))
			}
		}
	}
	count := func(n int) func(*cluster.Reservation) { return func(r *cluster.Reservation) { r.Count = n } }
	total := func(text string) func(*cluster.Reservation) {
		return func(r *cluster.Reservation) { r.GRES = gpus(text) }
	}
	each := func(text string) func(*cluster.Reservation) {
		return func(r *cluster.Reservation) { r.GRES, r.PerNode = gpus(text), true }
	}
	cores := func(n ...int) func(*cluster.Reservation) { return func(r *cluster.Reservation) { r.Cores = n } }
	type changes = []func(*cluster.Reservation)
	for _, c := range []struct {
		name string
		ask  changes
		want string
	}{
		{"total over named nodes", changes{named(0, 1), total("4")}, "n000 0-7/0-1 n001 0-7/0-1"},
		{"first node gets one more", changes{named(0, 1), total("3")}, "n000 0-7/0-1 n001 0-7/0"},
		{"all of a node", changes{named(1), total("4")}, "n001 0-15/0-3"},
		{"by type", changes{named(0, 1), total("h100:2")}, "n000 8-15/2 n001 8-15/2"},
		{"two types", changes{named(0), total("h100:1,a100:2")}, "n000 0-15/0-2"},
		{"as few nodes as have them", changes{total("4")}, "n000 0-15/0-3"},
		{"more than a node has", changes{total("6")}, "n000 0-15/0-2 n001 0-15/0-2"},
		{"a number of nodes", changes{count(3), total("6")}, "n000 0-7/0-1 n001 0-7/0-1 n002 0-7/0-1"},
		{"per node", changes{count(2), each("2")}, "n000 0/0-1 n001 0/0-1"},
		{"per node of a type", changes{count(2), each("h100:2")}, "n000 8/2-3 n001 8/2-3"},
		{"per node from both sockets", changes{named(2), each("3")}, "n002 0,8/0-2"},
		{"per node with cores", changes{named(0, 1), each("1"), cores(4)}, "n000 0-3/0 n001 0-3/0"},
		{"total with cores", changes{named(0, 1), total("h100:2"), cores(5)}, "n000 8-10/2 n001 8-9/2"},
		{"cores per node alone", changes{count(2), each(""), func(r *cluster.Reservation) { r.GRES = nil }, cores(3)},
			"n000 0-2/ n001 0-2/"},
		{"too many per node", changes{named(0), each("5")}, "reservation_gpus: node n000 has 4 GPUs, not the 5 " +
			"that are to be reserved per node; ask for fewer or leave the node out"},
		{"too many per node anywhere", changes{count(1), each("5")},
			"reservation_gpus: no node of partition main has 5 GPUs; the most that one has is 4"},
		{"too many in all", changes{named(0, 1), total("9")},
			"reservation_gpus: 2 nodes cannot give 9 GPUs; it has 8 in all"},
		{"unknown type", changes{named(0), total("v100:1")},
			"reservation_gpus: node n000 has 0 v100 GPUs (its types: a100, h100); leave it out"},
		{"unknown type anywhere", changes{total("v100:1")}, "reservation_gpus: no node of partition main has a " +
			"v100 GPU; scontrol show nodes lists what they have as Gres"},
		{"node without GPUs", changes{named(3), each("1")}, "reservation_gpus: node n003 has 0 GPUs, not the 1 " +
			"that are to be reserved per node; ask for fewer or leave the node out"},
		{"node without GPUs in all", changes{named(0, 3), total("2")},
			"reservation_gpus: node n003 has 0 GPUs; leave it out"},
		{"fewer than nodes", changes{named(0, 1, 2), total("2")},
			"reservation_gpus: 2 GPUs for 3 nodes: ask for one GPU or more for each node"},
		{"per node without nodes", changes{each("1")},
			"node_name: TRESPerNode needs nodes: add Nodes= or NodeCnt="},
		{"list of cores", changes{named(0, 1), total("2"), cores(2, 2)},
			"reservation_core_count: 2 numbers of cores alongside GPUs: give one number, above 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTestbed(t, 3)
			bare := node(1)
			bare.GPUs = nil
			b.Apply(&cluster.NodeUp{Name: nodeName(3), Inventory: bare})
			got := b.reserveParts("r", 0, func(r *cluster.Reservation) {
				for _, f := range c.ask {
					f(r)
				}
			})
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Free GPUs come first, then those of jobs that end before; GPUs of others are not given.
func TestReserveFreeGPUs(t *testing.T) {
	each := func(n string) func(*cluster.Reservation) {
		return func(r *cluster.Reservation) {
			r.GRES, r.PerNode, r.Nodes = gpus(n), true, []cluster.NodeName{nodeName(0)}
		}
	}
	b := newTestbed(t, 1)
	b.Submit(lasts(30*time.Minute, func(s *cluster.JobSpec) { s.PerNode = gpus("a100:1") })) // GPU 0 until 8:30
	b.ScheduleAll()
	for _, c := range []struct {
		in         time.Duration
		ask, want  string
		reservName string
	}{
		{0, "4", "reservation_busy: 4 GPUs per node of partition main are not free from 2026-03-01 08:00:00 on", "x"},
		{time.Hour, "a100:1", "n000 1/1", "a"},
		{time.Hour, "a100:1", "n000 2/0", "b"},
		{time.Hour, "a100:1", "reservation_busy: 1 a100 GPU per node of partition main are not free from " +
			"2026-03-01 09:00:00 on", "c"},
		{2 * time.Hour, "a100:2", "n000 1/0-1", "d"},
	} {
		if got := b.reserveParts(c.reservName, c.in, each(c.ask)); got != c.want {
			t.Errorf("%s: %s, want %s", c.reservName, got, c.want)
		}
	}
}

// Jobs outside keep off reserved GPUs, those inside have these alone; the rest of the node is for all.
func TestReservedGPUs(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		name   string
		in     time.Duration // until the reservation begins
		limit  time.Duration
		gres   string
		inside bool
		want   string
	}{
		{"all outside", 0, hour, "4", false, "waits ReqNodeNotAvail"},
		{"its type outside", 0, hour, "h100:1", false, "waits ReqNodeNotAvail"},
		{"the rest outside", 0, hour, "2", false, "n000:1:0:0-1:0"},
		{"as many inside", 0, hour, "2", true, "n000:1:8:2-3:0"},
		{"fewer inside", 0, hour, "1", true, "n000:1:8:2:0"},
		{"more inside", 0, hour, "3", true, "waits Resources"},
		{"another type inside", 0, hour, "a100:1", true, "waits Resources"},
		{"over before it begins", hour, hour, "4", false, "n000:1:0:0-3:0"},
		{"would run into it", hour, hour + time.Minute, "4", false, "waits ReqNodeNotAvail"},
		{"runs past it on the rest", hour, 9 * hour, "2", false, "n000:1:0:0-1:0"},
		{"before it begins", hour, time.Minute, "1", true, "waits Reservation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTestbed(t, 1)
			half := func(r *cluster.Reservation) {
				r.GRES, r.PerNode, r.Nodes = gpus("h100:2"), true, []cluster.NodeName{nodeName(0)}
			}
			if got := b.reserveParts("r", c.in, half); got != "n000 8/2-3" {
				t.Fatal(got)
			}
			id := b.Submit(lasts(c.limit, func(s *cluster.JobSpec) {
				s.PerNode = gpus(c.gres)
				if c.inside {
					inside("r")(s)
				}
			}))
			b.ScheduleAll()
			if got := b.Where(id); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if !strings.Contains(c.want, "ReqNodeNotAvail") {
				return
			}
			e := explain.Job(b.S.Snapshot(), b.Now, id)
			if text := e.Causes[0].Text; !strings.Contains(text, "reservation r has 2 GPUs and 1 CPU of 1 node from") {
				t.Errorf("why: %s", text)
			}
		})
	}
}

// Jobs of a reservation of cores alone do not have GPUs that another reservation has of the same node.
func TestGPUsBesideCores(t *testing.T) {
	b := newTestbed(t, 1)
	on := []cluster.NodeName{nodeName(0)}
	b.reserve("c", 0, time.Hour, 1, func(r *cluster.Reservation) {
		r.Cores, r.CPUs = []int{8}, []cluster.IDSet{cluster.RangeIDSet(8, 15)}
	})
	b.reserveParts("g", 0, func(r *cluster.Reservation) { r.GRES, r.PerNode, r.Nodes = gpus("h100:2"), true, on })
	id := b.Submit(lasts(time.Minute, inside("c"), func(s *cluster.JobSpec) { s.PerNode = gpus("h100:1") }))
	other := b.Submit(lasts(time.Minute, inside("c"), func(s *cluster.JobSpec) { s.PerNode = gpus("a100:1") }))
	b.ScheduleAll()
	if got, free := b.Where(id), b.Where(other); got != "waits ReqNodeNotAvail" || free != "n000:1:8:0:0" {
		t.Errorf("%s and %s", got, free)
	}
}

// A planned start that must keep off reserved GPUs later is not delayed by a job that takes its GPU instead of these.
func TestPlannedBesideGPUs(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit time.Duration
		want  string
	}{
		{"over before it", time.Hour, "n000:1:6:0:0"},
		{"over before the reservation", 2 * time.Hour, "n000:1:6:1:0"},
		{"into the reservation", 20 * time.Hour, "waits ReqNodeNotAvail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTestbed(t, 1)
			b.Submit(lasts(time.Hour, func(s *cluster.JobSpec) { s.Tasks = 12 }))
			b.ScheduleAll()
			one := func(tasks int) func(*cluster.JobSpec) {
				return func(s *cluster.JobSpec) { s.Tasks, s.PerNode = tasks, gpus("a100:1") }
			}
			at := b.Now.Add(10 * time.Hour)
			b.Apply(&cluster.ReservationPut{Reservation: cluster.Reservation{
				Name: "r", Start: at, End: at.Add(time.Hour), Users: []string{"vip"}, GRES: gpus("a100:1"),
				Nodes: []cluster.NodeName{nodeName(0)}, CPUs: []cluster.IDSet{cluster.NewIDSet(15)},
				GPUs: []cluster.IDSet{cluster.NewIDSet(1)},
			}})
			planned := b.Submit(lasts(20*time.Hour, one(8))) // in an hour, on GPU 0
			id := b.Submit(lasts(c.limit, one(1)))
			b.ScheduleAll()
			if got := b.Where(id); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if j, _ := b.S.Job(planned); !j.PlannedStart.Equal(b.Now.Add(time.Hour)) {
				t.Errorf("the job ahead is planned for %v", j.PlannedStart)
			}
		})
	}
}

// TestGPUsApart plays random reservations of GPUs and of cores, and jobs: no job has a GPU or core of a reservation
// that it has no part in at any moment at which it may run, and a job inside has what is its reservation's alone.
func TestGPUsApart(t *testing.T) {
	seed, in, beside := rand.Uint64(), 0, 0
	for round := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, round))
		b := newTestbed(t, 0)
		for i := range 1 + r.IntN(3) {
			b.Apply(&cluster.NodeUp{Name: nodeName(i), Inventory: node(1 + r.IntN(2))})
		}
		for range 3 {
			b.Submit(randomGPUJob(r, nil))
		}
		b.ScheduleAll()
		for k := range 1 + r.IntN(5) {
			b.reserveParts(fmt.Sprint("r", k), time.Duration(r.IntN(4)*30)*time.Minute, randomParts(r))
		}
		for range 14 {
			if change := randomGPUJob(r, b.S.Reservations()); r.IntN(4) == 0 {
				b.het(change, randomGPUJob(r, nil))
			} else {
				b.Submit(change)
			}
		}
		for range 7 {
			b.ScheduleAll()
			i, o := b.gpusApart(t, fmt.Sprintf("seed %d round %d", seed, round))
			in, beside = in+i, beside+o
			b.Now = b.Now.Add(15 * time.Minute)
			b.Apply(&cluster.ReservationsDue{Names: []string{"r0", "r1", "r2", "r3", "r4"}})
		}
	}
	if in < 50 || beside < 100 {
		t.Errorf("%d jobs seen within reservations, %d beside them: the trials say little", in, beside)
	}
}

// randomParts asks for GPUs or cores.
func randomParts(r *rand.Rand) func(*cluster.Reservation) {
	return func(v *cluster.Reservation) {
		v.GRES = gpus([...]string{"1", "2", "3", "a100:1", "h100:2", "a100:1,h100:1"}[r.IntN(6)])
		v.PerNode = r.IntN(2) == 0
		if v.PerNode || r.IntN(2) == 0 {
			v.Count = 1 + r.IntN(2)
		}
		if r.IntN(2) == 0 {
			v.Cores = []int{1 + r.IntN(6)}
		}
		if r.IntN(6) == 0 && v.PerNode && v.Cores != nil {
			v.GRES = nil
		}
		if r.IntN(5) == 0 {
			v.Flags = cluster.ResvFlex
		}
	}
}

// randomGPUJob asks for CPUs and GPUs, perhaps in one of some reservations.
func randomGPUJob(r *rand.Rand, list []*cluster.Reservation) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) {
		s.Tasks, s.Limit, s.User = 1+r.IntN(4), time.Duration(10+r.IntN(12)*10)*time.Minute, "vip"
		switch r.IntN(5) {
		case 0:
			s.PerJob = gpus(fmt.Sprint(1 + r.IntN(4)))
		case 1:
			s.PerNode = gpus([...]string{"a100:1", "h100:1", "h100:2"}[r.IntN(3)])
		case 2:
			s.PerTask = gpus("1")
		case 3:
			s.PerNode = []cluster.GRES{{Name: "shard", Count: int64(1 + r.IntN(4))}}
		}
		if len(list) > 0 && r.IntN(3) > 0 {
			s.Reservation = list[r.IntN(len(list))].Name
		}
		if r.IntN(6) == 0 {
			s.Sharing = cluster.ShareExclusive
		}
		if r.IntN(4) == 0 {
			s.LimitMin = 10 * time.Minute
		}
	}
}

// gpusApart checks what has been started just now without the scheduler's help, and counts the jobs within
// reservations and on nodes of others.
func (b *testbed) gpusApart(t *testing.T, when string) (within, beside int) {
	t.Helper()
	for j := range b.S.Live() {
		if !j.Started.Equal(b.Now) {
			continue
		}
		over := b.endOf(j)
		for _, k := range b.S.Reservations() {
			for s := range j.Alloc.Shares {
				sh := &j.Alloc.Shares[s]
				cpus, gpus, on := partsOn(k, sh.Node)
				own := j.Alloc.Reservation == k.Name
				switch {
				case own && k.Flags&cluster.ResvFlex != 0:
				case own:
					within++
					hasGPUs := k.GPUs == nil || gpus.Contains(sh.Devices())
					if !on || !hasGPUs || !cpus.Contains(sh.CPUs) {
						t.Fatalf("%s: job %d has CPUs %s and GPUs %s of %s, which reservation %s has not", when, j.ID,
							sh.CPUs, sh.Devices(), sh.Node, k.Name)
					}
				case on && k.Keeps(b.Now, over):
					beside++
					if !gpus.Intersect(sh.Devices()).Empty() || !cpus.Intersect(sh.CPUs).Empty() {
						t.Fatalf("%s: job %d of reservation %q has CPUs %s and GPUs %s of %s; reservation %s has %s and %s",
							when, j.ID, j.Alloc.Reservation, sh.CPUs, sh.Devices(), sh.Node, k.Name, cpus, gpus)
					}
				}
			}
		}
	}
	return within, beside
}

// endOf is when a job ends at the latest: at its limit, or with its reservation.
func (b *testbed) endOf(j *cluster.Job) time.Time {
	over := b.Now.Add(j.Limit)
	own, ok := b.S.Reservation(j.Alloc.Reservation)
	if !ok || own.Flags&cluster.ResvFlex != 0 || own.End.After(over) {
		return over
	}
	return own.End
}

// partsOn are the CPUs and GPUs that a reservation has of a node; on is false if it has none.
func partsOn(r *cluster.Reservation, node cluster.NodeName) (cpus, gpus cluster.IDSet, on bool) {
	n := slices.Index(r.Nodes, node)
	if n < 0 {
		return cpus, gpus, false
	}
	return r.CPUs[n], r.GPUsAt(n), true
}
