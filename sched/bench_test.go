package sched

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dev.muster/cluster"
)

// mixedQueue is 1,000 nodes and a queue of mixed shapes.
func mixedQueue(b testing.TB, pending int) *testbed {
	bed := newTestbed(b, 1000)
	for i := range pending {
		bed.Submit(func(s *cluster.JobSpec) {
			s.Limit = time.Duration(10+i%50) * time.Minute
			switch i % 7 {
			case 0:
				s.MinNodes = 2 << (i % 5)
				s.MaxNodes, s.TasksPerNode = s.MinNodes, 4
			case 1, 2:
				s.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(1 + i%4)}}
				s.CPUsPerTask = 2
			case 3:
				s.Tasks = 1 + i%40
			default:
				s.CPUsPerTask, s.Mem = 1+i%16, cluster.Mem{Per: cluster.MemPerCPU, MB: cluster.MemMB(1000 * (1 + i%3))}
			}
		})
	}
	return bed
}

// BenchmarkSchedule measures one cycle on an empty cluster, and one with nothing left to do.
func BenchmarkSchedule(b *testing.B) {
	for _, pending := range []int{10_000, 100_000} {
		bed := mixedQueue(b, pending)
		snap := bed.S.Snapshot()
		b.Run(fmt.Sprintf("first/%d", pending), func(b *testing.B) {
			for b.Loop() {
				Schedule(snap, bed.Now)
			}
		})
		bed.ScheduleAll()
		snap = bed.S.Snapshot()
		b.Run(fmt.Sprintf("idle/%d", pending), func(b *testing.B) {
			for b.Loop() {
				Schedule(snap, bed.Now)
			}
		})
	}
}

// fullCluster is a cluster of nodes with 64 CPUs and 8 GPUs, nine tenths of it busy, and a queue of mixed shapes behind
// a job that waits for a third of all nodes. No two of the jobs that name their memory are alike but by chance.
func fullCluster(b testing.TB, nodes, pending int) *testbed {
	return fullClusterOf(b, nodes, pending, 0)
}

// fullClusterOf is plant with jobs of so many users, in accounts of ten. The GPUs that each of them may have are as
// many as each has on the average; and each account may have one and a half times as many of the CPUs as are its
// part.
func fullClusterOf(b testing.TB, nodes, pending, users int) *testbed {
	bed := newTestbed(b, 0)
	inv := cluster.Inventory{Sockets: 2, CoresPerSocket: 32, ThreadsPerCore: 1, CPUs: 64, MemMB: 512_000}
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, Type: "h100", Cores: cluster.RangeIDSet(i/4*32, i/4*32+31)})
	}
	for i := range nodes {
		bed.Apply(&cluster.NodeUp{Name: cluster.NodeName(fmt.Sprintf("n%05d", i)), Inventory: inv})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	if users > 0 {
		cfg := *bed.S.Config()
		cfg.Enforce = cluster.Enforce{Associations: true, Limits: true, QOS: true}
		bed.Apply(&cluster.Configure{Config: &cfg})
		bed.Apply(&cluster.ChangeAccounts{
			Changes: []cluster.Change{{QOS: &cluster.QOS{Name: "normal", UsageFactor: 1}}},
		})
		for u := range users {
			account, user := fmt.Sprintf("a%02d", u/10), fmt.Sprintf("u%03d", u)
			var changes []cluster.Change
			if u%10 == 0 {
				changes = append(changes, cluster.Change{
					Account: &cluster.Account{Name: account},
				}, cluster.Change{Under: "root",
					Assoc: &cluster.Association{Account: account,
						Shares: 1, QOS: []string{"normal"},
						Limits: cluster.Limits{{Name: "GrpTRES", TRES: "cpu", Max: int64(nodes * 64 / users * 15)}}}})
			}
			bed.Apply(&cluster.ChangeAccounts{Changes: append(changes, cluster.Change{
				User: &cluster.User{Name: user, DefaultAccount: account},
			},
				cluster.Change{
					Under: account,
					Assoc: &cluster.Association{Account: account, User: user, Shares: 1, QOS: []string{"normal"}},
				})})
		}
	}
	mixed := func(s *cluster.JobSpec) {
		if users > 0 {
			u := rng.IntN(users)
			s.UID, s.User, s.Account, s.QOS = uint32(1+u), fmt.Sprintf("u%03d", u), fmt.Sprintf("a%02d", u/10), "normal"
		}
		s.Limit = time.Duration(1+rng.IntN(48)) * time.Hour
		gpus := func(n int) { s.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(n)}} }
		switch rng.IntN(8) {
		case 0: // whole nodes
			s.MinNodes = 1 << rng.IntN(6)
			s.MaxNodes, s.CPUsPerTask = s.MinNodes, 64
			gpus(8)
		case 1, 2, 3: // a part of one
			gpus(1 << rng.IntN(3))
			s.CPUsPerTask = 4 + rng.IntN(5)
		case 4: // wherever there are GPUs
			s.PerJob = []cluster.GRES{{Name: "gpu", Count: int64(2 + rng.IntN(15))}}
			s.MinNodes = 2
			s.MaxNodes = 2
		case 5:
			s.Tasks = 1 + rng.IntN(200)
		default:
			s.CPUsPerTask, s.Mem = 1+rng.IntN(32), cluster.Mem{
				Per: cluster.MemPerNode, MB: cluster.MemMB(1000 * (1 + rng.IntN(400))),
			}
		}
	}
	for gpus := 0; gpus < nodes*8*9/10; {
		for range 256 {
			bed.Submit(mixed)
		}
		ds := Schedule(bed.S.Snapshot(), bed.Now)
		bed.Apply(&cluster.Decide{Decisions: ds})
		for _, d := range ds {
			if d.Start != nil {
				for _, sh := range d.Start.Shares {
					gpus += sh.GPUs.Len()
				}
			}
		}
	}
	for j := range bed.S.Snapshot().Queue() {
		bed.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
	}
	if users > 0 {
		bed.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{{QOS: &cluster.QOS{Name: "normal", UsageFactor: 1,
			Limits: cluster.Limits{
				{Name: "MaxTRESPerUser", TRES: "gres/gpu", Max: int64(nodes * 8 * 9 / 10 / users)},
			}}}}})
	}
	bed.Submit(func(s *cluster.JobSpec) {
		mixed(s)
		s.Layout = &cluster.Layout{MinNodes: nodes / 3}
		s.MaxNodes, s.CPUsPerTask, s.Limit = s.MinNodes, 64, 24*time.Hour
	})
	for range pending - 1 {
		bed.Submit(mixed)
	}
	return bed
}

// parts adds partition long with the nodes of main, and partition quick with so many nodes of its own, which are free.
func (b *testbed) parts(nodes int) {
	cfg := *b.S.Config()
	cfg.Partitions = slices.Clone(cfg.Partitions)
	main, quick := &cfg.Partitions[0], cluster.Partition{Name: "quick", State: cluster.PartitionUp}
	for n := range b.S.Snapshot().Nodes() {
		main.Nodes = append(main.Nodes, n.Name)
	}
	for i := range nodes {
		quick.Nodes = append(quick.Nodes, cluster.NodeName(fmt.Sprintf("quick%d", i)))
	}
	main.All = false
	cfg.Partitions = append(cfg.Partitions, quick, cluster.Partition{
		Name: "long", State: cluster.PartitionUp, Nodes: main.Nodes,
	})
	b.Apply(&cluster.Configure{Config: &cfg})
	for _, name := range quick.Nodes {
		b.Apply(&cluster.NodeUp{Name: name, Inventory: node(2)})
	}
}

// settle lets passes follow each other until nothing more starts.
func (b *testbed) settle() {
	for {
		ds := newCycle(b.S.Snapshot(), b.Now).fullPass(math.MaxInt)
		if len(ds) == 0 {
			return
		}
		b.Apply(&cluster.Decide{Decisions: ds})
	}
}

// BenchmarkPass measures passes over the whole queue: the first, one when all has been decided, one after a job has
// ended, and one after a job was submitted.
func BenchmarkPass(b *testing.B) {
	for _, size := range []struct{ nodes, pending int }{
		{1000, 1000}, {1000, 10_000}, {10_000, 1000}, {10_000, 10_000}, {10_000, 100_000},
	} {
		var bed *testbed
		measure := func(name string) {
			b.Run(fmt.Sprintf("nodes=%d/pending=%d/%s", size.nodes, size.pending, name), func(b *testing.B) {
				if bed == nil {
					bed = fullCluster(b, size.nodes, size.pending)
				}
				if name != "first" {
					bed.settle()
				}
				switch name {
				case "ended":
					for j := range bed.S.Snapshot().Live() {
						bed.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
						bed.EndJob(j.ID)
						break
					}
				case "submitted":
					bed.Submit(func(s *cluster.JobSpec) { s.CPUsPerTask = 64 })
				}
				snap := bed.S.Snapshot()
				var c *cycle
				for b.Loop() {
					c = newCycle(snap, bed.Now)
					c.fullPass(math.MaxInt)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.looked), "ns/job")
				b.ReportMetric(float64(c.looked), "looked")
				b.ReportMetric(float64(len(c.started)), "starts")
				b.ReportMetric(float64(len(c.book.byKey)), "shapes")
			})
		}
		for _, name := range []string{"first", "idle", "ended", "submitted"} {
			measure(name)
		}
	}
}

// BenchmarkEvent measures cycles of a scheduler that goes on from its last one: with nothing new, after a job was
// submitted that waits or starts at once, and after one has ended; with those that follow until nothing more starts.
func BenchmarkEvent(b *testing.B) {
	for _, size := range []struct {
		nodes, pending int
		responsive     bool
		what           string
		waited         time.Duration // of all pending jobs: after long enough, nodes are kept free for some
		users          int           // whose jobs are held to limits
		resv           time.Duration // until maintenance begins; 0: there is none
		long           int           // nodes of the job that is the first of a second partition with the same nodes
	}{
		{nodes: 1000, pending: 1000, what: "plain"}, {nodes: 10_000, pending: 1000, what: "plain"},
		{nodes: 10_000, pending: 10_000, what: "plain"},
		{nodes: 10_000, pending: 10_000, what: "maintenance", resv: 14 * 24 * time.Hour},
		{nodes: 10_000, pending: 10_000, what: "overlap", long: 5000},
		{nodes: 10_000, pending: 10_000, what: "limits", users: 200},
		{nodes: 10_000, pending: 10_000, what: "limits", responsive: true, users: 200},
		{nodes: 10_000, pending: 10_000, what: "plain", responsive: true},
		{nodes: 10_000, pending: 10_000, what: "20h", responsive: true, waited: 20 * time.Hour},
		{nodes: 10_000, pending: 10_000, what: "100d", responsive: true, waited: 100 * 24 * time.Hour},
	} {
		var bed *testbed
		var s Scheduler
		whose := func(s *cluster.JobSpec) {
			if size.users > 0 {
				s.User, s.Account, s.QOS = "u000", "a00", "normal"
			}
		}
		for name, event := range map[string]func(){
			"idle": func() {},
			"waits": func() {
				bed.Submit(func(s *cluster.JobSpec) {
					whose(s)
					s.CPUsPerTask = 64
					s.MinNodes = 2
					s.Limit = 48 * time.Hour
				})
			},
			"starts": func() {
				bed.Submit(func(s *cluster.JobSpec) {
					whose(s)
					s.Limit = time.Minute
					s.Partitions = []string{"quick"}
				})
			},
			"ended": func() {
				for j := range bed.S.Snapshot().Live() {
					bed.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
					bed.EndJob(j.ID)
					return
				}
			},
		} {
			b.Run(fmt.Sprintf("nodes=%d/pending=%d/responsive=%v/%s/%s", size.nodes, size.pending,
				size.responsive, size.what, name), func(b *testing.B) {
				if bed == nil {
					bed = fullClusterOf(b, size.nodes, size.pending, size.users)
					if size.responsive {
						bed.UseResponsiveOrder()
					}
					bed.parts(100)
					if size.long > 0 {
						bed.Submit(func(s *cluster.JobSpec) {
							s.Partitions = []string{"long"}
							s.MinNodes = size.long
							s.CPUsPerTask = 64
							s.Limit = 24 * time.Hour
							s.MaxNodes = size.long
						})
					}
					if at := bed.Now.Add(size.resv); size.resv > 0 {
						bed.Apply(&cluster.ReservationPut{Reservation: cluster.Reservation{Name: "maintenance",
							Partition: "main", Nodes: []cluster.NodeName{"n00001"},
							Start: at, End: at.Add(time.Hour), Users: []string{"root"}, Flags: cluster.ResvMaint}})
					}
					bed.Now = bed.Now.Add(size.waited)
				}
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				cycles, full, starts, used := 0, 0, 0, time.Duration(0)
				round := func() {
					for {
						last, before := s.last, threadTime()
						ds := s.Schedule(bed.S.Snapshot(), bed.Now)
						used += threadTime() - before
						cycles, full = cycles+1, full+b2i(last == nil || last != s.last)
						if len(ds) == 0 {
							return
						}
						b.StopTimer()
						for _, d := range ds {
							starts += b2i(d.Start != nil)
						}
						bed.Apply(&cluster.Decide{Decisions: ds})
						b.StartTimer()
					}
				}
				round()
				cycles, full, starts, used = 0, 0, 0, 0
				for b.Loop() {
					b.StopTimer()
					event()
					b.StartTimer()
					round()
				}
				b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op") // of the one thread: what others do on the machine does not count
				b.StopTimer()
				runtime.GC()
				var mem runtime.MemStats
				runtime.ReadMemStats(&mem)
				runtime.KeepAlive(&s)
				b.ReportMetric(float64(mem.HeapAlloc)/(1<<20), "MiB")
				b.ReportMetric(float64(cycles)/float64(b.N), "cycles/op")
				b.ReportMetric(float64(full)/float64(b.N), "full/op")
				b.ReportMetric(float64(starts)/float64(b.N), "starts/op")
			})
		}
	}
}

// BenchmarkSilentNode is the cycle after one of so many nodes has fallen silent or was heard of again, as happens all
// the time in a large cluster: nothing waits, or jobs that do not fit.
func BenchmarkSilentNode(b *testing.B) {
	for _, size := range []struct{ nodes, pending int }{{1000, 0}, {10_000, 0}, {10_000, 1000}} {
		var bed *testbed
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size.nodes, size.pending), func(b *testing.B) {
			if bed == nil {
				bed = fullCluster(b, size.nodes, max(size.pending, 1))
				bed.UseResponsiveOrder()
				for j := range bed.S.Snapshot().Queue() {
					if size.pending == 0 {
						bed.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
					}
				}
				for n := range bed.S.Snapshot().Nodes() { // as it came from the log: with a list of its own
					inv := n.Inventory
					inv.GPUs = slices.Clone(inv.GPUs)
					bed.Apply(&cluster.NodeUp{Name: n.Name, Inventory: inv})
				}
				bed.settle()
			}
			var s Scheduler
			s.Schedule(bed.S.Snapshot(), bed.Now)
			k := 0
			for b.Loop() {
				b.StopTimer()
				bed.Apply(&cluster.NodeQuiet{
					Nodes: []cluster.NodeName{cluster.NodeName(fmt.Sprintf("n%05d", k/2*7%size.nodes))},
					Quiet: k%2 == 0,
				})
				k++
				b.StartTimer()
				s.Schedule(bed.S.Snapshot(), bed.Now)
			}
		})
	}
}

// threadTime is the CPU time that the calling thread has used.
func threadTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCycle is a cycle over a crowd of jobs: the first, and one with nothing left to do.
func BenchmarkCycle(b *testing.B) {
	bed := mixedQueue(b, 10_000)
	for _, what := range []string{"first", "settled"} {
		snap := bed.S.Snapshot()
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				Schedule(snap, bed.Now)
			}
		})
		bed.ScheduleAll()
	}
}

// fitWords are how jobs of one node may choose it.
var fitWords = []struct {
	name string
	set  func(*cluster.Config)
}{
	{"usual", func(*cluster.Config) {}},
	{"best_fit", func(cfg *cluster.Config) { cfg.BestFit = true }},
	{"fgd", func(cfg *cluster.Config) { cfg.Gradient = true }},
}

// BenchmarkFit measures what it costs to choose one of 10,000 nodes for a job of one GPU, by each of the words: an
// event that starts one job, and a pass that starts five hundred of two shapes; where nine tenths are given out, and
// where nothing is.
func BenchmarkFit(b *testing.B) {
	beds := map[bool]*testbed{}
	for _, word := range fitWords {
		for _, empty := range []bool{false, true} {
			for _, jobs := range []int{1, 500} {
				b.Run(fmt.Sprintf("%s/empty=%t/starts=%d", word.name, empty, jobs), func(b *testing.B) {
					bed := beds[empty]
					if bed == nil {
						bed = fullCluster(b, 10_000, 1)
						bed.settle()
						if empty {
							bed.clear()
						}
						beds[empty] = bed
					}
					cfg := *bed.S.Config()
					cfg.BestFit, cfg.Gradient = false, false
					word.set(&cfg)
					bed.Apply(&cluster.Configure{Config: &cfg})
					bed.startAll(b, jobs)
				})
			}
		}
	}
}

// clear ends all jobs.
func (b *testbed) clear() {
	for j := range b.S.Snapshot().Queue() {
		b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
	}
	for j := range b.S.Snapshot().Live() {
		b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
		b.EndJob(j.ID)
	}
}

// startAll measures passes that start so many jobs of a GPU each, which then end.
func (b *testbed) startAll(bench *testing.B, jobs int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var s Scheduler
	s.Schedule(b.S.Snapshot(), b.Now)
	starts, used := 0, time.Duration(0)
	for bench.Loop() {
		for k := range jobs {
			b.Submit(func(s *cluster.JobSpec) {
				s.Limit, s.PerNode, s.CPUsPerTask = time.Minute, []cluster.GRES{{Name: "gpu", Count: 1}}, 1+k%2
			})
		}
		snap, before := b.S.Snapshot(), threadTime()
		ds := s.Schedule(snap, b.Now)
		used += threadTime() - before
		b.Apply(&cluster.Decide{Decisions: ds})
		for _, d := range ds {
			if d.Start != nil {
				starts++
				b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: d.Job}})
				b.EndJob(d.Job)
			}
		}
		s.Schedule(b.S.Snapshot(), b.Now) // and sees that they have ended
	}
	bench.ReportMetric(float64(used.Nanoseconds())/float64(starts), "cpu-ns/start")
	bench.ReportMetric(float64(starts)/float64(bench.N), "starts/op")
}
