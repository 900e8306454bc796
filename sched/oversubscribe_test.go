package sched_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestOversubscribedRandom starts, suspends, resumes and ends random jobs in partitions that share CPUs in different
// ways: after each cycle, no CPU has more jobs than it may (see State.Check), and a state read back says the same.
func TestOversubscribedRandom(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := newTestbed(t, 3, cluster.Partition{
			Name: "force", All: true, OverSubscribe: "FORCE:3", State: cluster.PartitionUp,
		},
			cluster.Partition{Name: "may", All: true, OverSubscribe: "YES:2", State: cluster.PartitionUp})
		twice := false
		for range 60 {
			b.Submit(func(s *cluster.JobSpec) {
				s.Partitions = []string{[...]string{"main", "force", "may"}[r.IntN(3)]}
				s.Tasks, s.Limit = 1+r.IntN(30), time.Duration(1+r.IntN(90))*time.Minute
				if r.IntN(2) == 0 {
					s.Sharing = cluster.ShareOver
				}
			})
			b.ScheduleAll()
			live := []*cluster.Job{}
			for j := range b.S.Snapshot().Live() {
				live = append(live, j)
			}
			for n := range b.S.Snapshot().Nodes() {
				l := b.S.Load(n.Name)
				twice = twice || len(l.Again) > 0
				if len(l.Again) > 2 || l.CPUs.Max() >= 16 {
					t.Fatalf("seed %d: node %s has %+v", seed, n.Name, l)
				}
			}
			switch j := live[r.IntN(len(live))]; {
			case r.IntN(3) > 0:
				b.EndJob(j.ID)
			case j.Phase == cluster.Suspended: // refused where others have its CPUs
				b.S.Apply(cluster.Entry{
					At: b.Now, By: cluster.Identity{System: true},
					Cmd: &cluster.Suspend{Ref: cluster.Ref{Job: j.ID}, Resume: true},
				})
			case j.Phase == cluster.Starting:
				b.confirm(j.ID)
				b.Apply(&cluster.Suspend{Ref: cluster.Ref{Job: j.ID}})
			}
			if err := b.S.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if !twice {
			t.Errorf("seed %d: no CPU ever had two jobs", seed)
		}
		var first, second bytes.Buffer
		if err := b.S.Snapshot().Encode(&first); err != nil {
			t.Fatal(err)
		}
		back, err := cluster.Decode(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := back.Check(); err != nil {
			t.Errorf("seed %d: read back: %v", seed, err)
		}
		if err := back.Snapshot().Encode(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("seed %d: a state read back is another one (%v)", seed, err)
		}
	}
}

// TestOversubscribeRefused has Apply refuse a start that shares CPUs as its partition does not.
func TestOversubscribeRefused(t *testing.T) {
	b := newTestbed(t, 1, cluster.Partition{
		Name: "force", All: true, OverSubscribe: "FORCE:2", State: cluster.PartitionUp,
	})
	all := func(part string, over int) cluster.Decision {
		id := b.Submit(func(s *cluster.JobSpec) { s.Partitions, s.Tasks = []string{part}, 16 })
		return cluster.Decision{Job: id, Task: cluster.TaskAny, Start: &cluster.Alloc{Partition: part, Over: over,
			Shares: []cluster.Share{{Node: nodeName(0), CPUs: cluster.RangeIDSet(0, 15), Tasks: 16}}}}
	}
	for _, step := range []struct {
		what string
		d    cluster.Decision
		want string
	}{
		{
			"more than the partition says", all("force", 3),
			"job 1 would have its CPUs with 3 jobs, in partition force now with 2",
		},
		{
			"in one that does not share", all("main", 2),
			"job 2 would have its CPUs with 2 jobs, in partition main now with 0",
		},
		{"the first", all("force", 2), ""},
		{"beside it, alone", all("main", 0), "node n000 is full"},
		{"the second", all("force", 2), ""},
		{"the third", all("force", 2), "node n000 is full"},
	} {
		got := ""
		if e := b.Apply(&cluster.Decide{Decisions: []cluster.Decision{step.d}}).([]*cluster.Error)[0]; e != nil {
			got = e.Message
		}
		if got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
}
