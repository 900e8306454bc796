package sched

import (
	"math/rand/v2"
	"testing"
	"time"

	"dev.muster/cluster"
)

type tweak = func(*cluster.JobSpec)

func TestPlacement(t *testing.T) {
	gpu := func(kind string, n int64) []cluster.GRES { return []cluster.GRES{{Name: "gpu", Type: kind, Count: n}} }
	for name, c := range map[string]struct {
		threads int
		jobs    []tweak
		want    []string
	}{
		"one CPU jobs fill a socket": {
			1, []tweak{nil, nil, nil}, []string{"n000:1:0::0", "n000:1:1::0", "n000:1:2::0"},
		},
		"-N2 -n4 is 3+1": {1, []tweak{func(s *cluster.JobSpec) { s.MinNodes, s.MaxNodes, s.Tasks = 2, 2, 4 }},
			[]string{"n000:3:0-1,8::0 n001:1:0::0"}},
		"-N3 -n8 is 6,1,1": {1, []tweak{func(s *cluster.JobSpec) { s.MinNodes, s.MaxNodes, s.Tasks = 3, 3, 8 }},
			[]string{"n000:6:0-2,8-10::0 n001:1:0::0 n002:1:0::0"}},
		"-n20 fills up": {
			1, []tweak{func(s *cluster.JobSpec) { s.Tasks = 20 }},
			[]string{"n000:16:0-15::0 n001:4:0-1,8-9::0"},
		},
		"-n40, 2 nodes at least": {1, []tweak{func(s *cluster.JobSpec) { s.MinNodes, s.Tasks = 2, 40 }},
			[]string{"n000:16:0-15::0 n001:16:0-15::0 n002:8:0-3,8-11::0"}},
		"-n20, 3 nodes at least": {1, []tweak{func(s *cluster.JobSpec) { s.MinNodes, s.Tasks = 3, 20 }},
			[]string{"n000:16:0-15::0 n001:3:0-1,8::0 n002:1:0::0"}},
		"-O -N3 -n8": {
			1,
			[]tweak{func(s *cluster.JobSpec) { s.MinNodes, s.MaxNodes, s.Tasks, s.Overcommit = 3, 3, 8, true }},
			[]string{"n000:3:0::0 n001:3:0::0 n002:2:0::0"},
		},
		"-O -n20 -c2": {
			1, []tweak{func(s *cluster.JobSpec) { s.Tasks, s.CPUsPerTask, s.Overcommit = 20, 2, true }},
			[]string{"n000:20:0-1::0"},
		},
		"-n300": {
			1, []tweak{func(s *cluster.JobSpec) { s.Tasks = 300 }},
			[]string{"waits " + string(cluster.WaitPartitionConfig)},
		},
		"-N2 -n6 -c5": {
			1, []tweak{func(s *cluster.JobSpec) { s.MinNodes, s.Tasks, s.CPUsPerTask = 2, 6, 5 }},
			[]string{"n000:3:0-14::0 n001:3:0-14::0"},
		},
		"exclusive": {
			1, []tweak{nil, func(s *cluster.JobSpec) { s.Sharing = cluster.ShareExclusive }},
			[]string{"n000:1:0::0", "n001:1:0-15:0-3:0"},
		},
		"GPU's socket": {
			1, []tweak{func(s *cluster.JobSpec) { s.PerNode, s.Tasks = gpu("h100", 1), 2 }},
			[]string{"n000:2:8-9:2:0"},
		},
		"types": {
			1,
			[]tweak{
				func(s *cluster.JobSpec) { s.PerNode = gpu("h100", 3) },
				func(s *cluster.JobSpec) { s.PerNode = gpu("", 3) },
			},
			[]string{"waits " + string(cluster.WaitNodesDown), "n000:1:0:0-2:0"},
		},
		"two types": {
			1, []tweak{func(s *cluster.JobSpec) { s.PerJob = append(gpu("a100", 1), gpu("h100", 2)...) }},
			[]string{"n000:1:0:0,2-3:0"},
		},
		"--gpus=6": {
			1, []tweak{func(s *cluster.JobSpec) { s.PerJob, s.Tasks = gpu("", 6), 2 }},
			[]string{"n000:1:0:0-3:0 n001:1:0:0-1:0"},
		},
		"per task": {
			1, []tweak{func(s *cluster.JobSpec) { s.PerTask, s.Tasks = gpu("a100", 1), 3 }},
			[]string{"n000:2:0-1:0-1:0 n001:1:0:0:0"},
		},
		"mem per node": {
			1,
			[]tweak{
				func(s *cluster.JobSpec) { s.Mem = cluster.Mem{Per: cluster.MemPerNode, MB: 40000} },
				func(s *cluster.JobSpec) { s.Mem = cluster.Mem{Per: cluster.MemPerNode, MB: 40000} },
			},
			[]string{"n000:1:0::40000", "n001:1:0::40000"},
		},
		"mem per CPU": {
			1,
			[]tweak{func(s *cluster.JobSpec) { s.Mem, s.Tasks = cluster.Mem{Per: cluster.MemPerCPU, MB: 10000}, 8 }},
			[]string{"n000:6:0-2,8-10::60000 n001:2:0,8::20000"},
		},
		"all memory": {
			1, []tweak{nil, func(s *cluster.JobSpec) { s.Mem = cluster.Mem{Per: cluster.MemPerNode} }},
			[]string{"n000:1:0::0", "n000:1:1::64000"},
		},
		"mem per GPU": {1, []tweak{func(s *cluster.JobSpec) {
			s.Mem, s.PerTask, s.Tasks = cluster.Mem{Per: cluster.MemPerGPU, MB: 30000}, gpu("", 1), 3
		}}, []string{"n000:2:0-1:0-1:60000 n001:1:0:0:30000"}},
		"mem per GPU of --gpus": {1, []tweak{func(s *cluster.JobSpec) {
			s.Mem, s.PerJob, s.Tasks = cluster.Mem{Per: cluster.MemPerGPU, MB: 20000}, gpu("", 4), 0
		}}, []string{"n000:1:0:0-1:40000 n001:1:0:0-1:40000"}},
		"mem per GPU of --gpus, never": {1, []tweak{func(s *cluster.JobSpec) {
			s.Mem, s.PerJob, s.Tasks = cluster.Mem{Per: cluster.MemPerGPU, MB: 65000}, gpu("", 2), 0
		}}, []string{"waits " + string(cluster.WaitNodesDown)}},
		"-w and -x": {
			1,
			[]tweak{
				func(s *cluster.JobSpec) { s.NodeList = []cluster.NodeName{"n002"} },
				func(s *cluster.JobSpec) { s.Exclude = []cluster.NodeName{"n000"} },
				func(s *cluster.JobSpec) { s.NodeList, s.MinNodes = []cluster.NodeName{"n002"}, 2 },
			},
			[]string{"n002:1:0::0", "n001:1:0::0", "n000:1:0::0 n002:1:1::0"},
		},
		"whole cores": {
			2, []tweak{nil, func(s *cluster.JobSpec) { s.Tasks = 3 }},
			[]string{"n000:1:0-1::0", "n000:3:2-3,16-17::0"},
		},
		"cores' memory": {
			2,
			[]tweak{func(s *cluster.JobSpec) { s.Tasks, s.Mem = 3, cluster.Mem{Per: cluster.MemPerCPU, MB: 20000} }},
			[]string{"n000:2:0-1::40000 n001:1:0-1::40000"},
		},
		"tasks per node": {
			1, []tweak{func(s *cluster.JobSpec) { s.TasksPerNode, s.Tasks, s.MinNodes = 3, 4, 3 }},
			[]string{"n000:2:0,8::0 n001:1:0::0 n002:1:0::0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestbed(t, 0)
			for i := range 3 {
				b.Apply(&cluster.NodeUp{Name: nodeName(i), Inventory: node(c.threads)})
			}
			for i, j := range c.jobs {
				id := b.Submit(j)
				b.ScheduleAll()
				if got := b.Where(id); got != c.want[i] {
					t.Errorf("job %d: %s\nwant   %s", i, got, c.want[i])
				}
			}
		})
	}
}

func TestPartitions(t *testing.T) {
	b := newTestbed(t, 3, cluster.Partition{
		Name: "small", Nodes: []cluster.NodeName{"n002"}, State: cluster.PartitionUp,
	},
		cluster.Partition{Name: "down", All: true, State: cluster.PartitionDown})
	all := func(s *cluster.JobSpec) { s.MinNodes, s.MaxNodes, s.Sharing = 3, 3, cluster.ShareExclusive }
	nodes := func(n int) tweak {
		return func(s *cluster.JobSpec) { s.MinNodes, s.MaxNodes, s.Sharing = n, n, cluster.ShareExclusive }
	}
	first := b.Submit(nodes(2))
	b.ScheduleAll()
	head := b.Submit(all) // n002 is free, n000 and n001 for an hour taken
	both := b.Submit(func(s *cluster.JobSpec) {
		s.Partitions, s.Limit = []string{
			"down", "main", "small",
		}, 30*time.Minute
	})
	long := b.Submit(func(s *cluster.JobSpec) { s.Limit = 2 * time.Hour })
	b.ScheduleAll()
	for id, want := range map[cluster.JobID]string{
		head: "waits Resources", both: "n002:1:0::0", long: "waits Priority",
	} {
		if got := b.Where(id); got != want {
			t.Errorf("job %d: %s, want %s", id, got, want)
		}
	}
	if j, _ := b.S.Job(head); !j.PlannedStart.Equal(epoch.Add(time.Hour)) || len(j.PlannedNodes) != 3 {
		t.Errorf("the head is planned for %s on %v", j.PlannedStart, j.PlannedNodes)
	}
	if j, _ := b.S.Job(both); !j.Backfilled || j.Alloc.Partition != "main" {
		t.Errorf("backfilled %v in %s", j.Backfilled, j.Alloc.Partition)
	}
	b.EndJob(first)
	b.EndJob(both)
	b.ScheduleAll()
	if got := b.Where(head); got[0] == 'w' {
		t.Errorf("the head does not start: %s", got)
	}
}

// TestBackfillNeverDelaysTheHead gives random queues to the scheduler. If every job runs to its
// limit, the head must start no later than it would if nobody came after it.
func TestBackfillNeverDelaysTheHead(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for round := range 60 {
		seed := r.Uint64()
		alone, at := drain(t, seed, false)
		with, at2 := drain(t, seed, true)
		if alone != with {
			t.Fatalf("round %d: different heads %d, %d", round, alone, with)
		}
		if at2.After(at) {
			t.Fatalf("round %d: the head %d starts at %s, alone at %s", round, alone, at2, at)
		}
	}
}

// drain fills a cluster, adds a head that does not fit and perhaps others, and runs everything to
// its limit until the head has started.
func drain(t *testing.T, seed uint64, others bool) (cluster.JobID, time.Time) {
	r := rand.New(rand.NewPCG(seed, 1))
	b := newTestbed(t, 4)
	random := func(s *cluster.JobSpec) {
		s.MinNodes = 1 + r.IntN(3)
		s.MaxNodes, s.CPUsPerTask = s.MinNodes, 1+r.IntN(16)
		s.Limit = time.Duration(1+r.IntN(8)) * 10 * time.Minute
	}
	for range 6 {
		b.Submit(random)
	}
	b.ScheduleAll()
	b.Apply(&cluster.NodeSet{Nodes: nil})
	for j := range b.S.Snapshot().Queue() {
		b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
	}
	head := b.Submit(func(s *cluster.JobSpec) {
		s.MinNodes = 2 + r.IntN(3)
		s.MaxNodes, s.CPUsPerTask, s.Limit = s.MinNodes, 12+r.IntN(5), time.Hour
	})
	if others {
		for range 25 {
			b.Submit(random)
		}
	}
	for range 100 {
		b.ScheduleAll()
		if j, _ := b.S.Job(head); j.Alloc != nil {
			return head, b.Now
		}
		var next time.Time
		for j := range b.S.Live() {
			if at := j.EndLimit(b.S.Config()); next.IsZero() || at.Before(next) {
				next = at
			}
		}
		b.Now = next
		var over []cluster.JobID
		for j := range b.S.Live() {
			if !j.EndLimit(b.S.Config()).After(b.Now) {
				over = append(over, j.ID)
			}
		}
		for _, id := range over {
			b.EndJob(id)
		}
	}
	t.Fatal("the head never starts")
	return 0, time.Time{}
}

// TestBesideTheHead: a job that outlives the start of the first that waits may use of its node what will be left
// beside it, and no more.
func TestBesideTheHead(t *testing.T) {
	cpus := func(n int, limit time.Duration) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) { s.Tasks, s.MinNodes, s.MaxNodes, s.Limit = n, 1, 1, limit }
	}
	for _, tc := range []struct {
		name string
		head func(*cluster.JobSpec)
		next func(*cluster.JobSpec)
		runs bool
	}{
		{"long, and enough is left", cpus(12, time.Hour), cpus(4, 10*time.Hour), true},
		{"long, and one CPU too many", cpus(13, time.Hour), cpus(4, 10*time.Hour), false},
		{"it ends before", cpus(16, time.Hour), cpus(4, time.Hour), true},
		{
			"the head wants the node for itself",
			func(s *cluster.JobSpec) { s.Tasks, s.Sharing = 1, cluster.ShareExclusive },
			cpus(1, 10*time.Hour), false,
		},
		{"GPUs of the type are left", func(s *cluster.JobSpec) {
			cpus(8, time.Hour)(s)
			s.PerNode = []cluster.GRES{{Name: "gpu", Type: "a100", Count: 1}}
		}, func(s *cluster.JobSpec) {
			cpus(1, 10*time.Hour)(s)
			s.PerNode = []cluster.GRES{{Name: "gpu", Type: "a100", Count: 1}}
		}, true},
		{"no GPU of the type is left", func(s *cluster.JobSpec) {
			cpus(8, time.Hour)(s)
			s.PerNode = []cluster.GRES{{Name: "gpu", Type: "a100", Count: 2}}
		}, func(s *cluster.JobSpec) {
			cpus(1, 10*time.Hour)(s)
			s.PerNode = []cluster.GRES{{Name: "gpu", Type: "a100", Count: 1}}
		}, false},
	} {
		b := newTestbed(t, 1)
		b.Submit(cpus(12, time.Hour))
		b.ScheduleAll()
		head, next := b.Submit(tc.head), b.Submit(tc.next)
		b.ScheduleAll()
		if b.Where(head) != "waits Resources" {
			t.Errorf("%s: the head %s", tc.name, b.Where(head))
		}
		if j, _ := b.S.Job(next); (j.Alloc != nil) != tc.runs {
			t.Errorf("%s: the next %s", tc.name, b.Where(next))
		}
	}
}
