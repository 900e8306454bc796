package sched_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
)

// TestForecast compares what is told of a job before it is submitted (--test-only) with what the cycle then does
// with it, and with the list of all that wait (squeue --start).
func TestForecast(t *testing.T) {
	hour := func(n int) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) { s.Limit = time.Duration(n) * time.Hour }
	}
	nodes := func(n, hours int) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) {
			s.MinNodes, s.MaxNodes, s.Sharing, s.Limit = n, n, cluster.ShareExclusive, time.Duration(hours)*time.Hour
		}
	}
	with := func(all ...func(*cluster.JobSpec)) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) {
			for _, f := range all {
				f(s)
			}
		}
	}
	begin := func(in, hours int) func(*cluster.JobSpec) {
		return with(nodes(1, hours), func(s *cluster.JobSpec) { s.Begin = epoch.Add(time.Duration(in) * time.Hour) })
	}
	part := func(name string) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) { s.Partitions = []string{name} }
	}
	resv := func(in, long int, users ...string) *cluster.ReservationPut {
		at := epoch.Add(time.Duration(in) * time.Hour)
		return &cluster.ReservationPut{Reservation: cluster.Reservation{Name: "r", Start: at,
			End: at.Add(time.Duration(long) * time.Hour), Users: users,
			Nodes: []cluster.NodeName{"n000", "n001"}}}
	}
	type jobs []func(*cluster.JobSpec)
	for _, c := range []struct {
		name    string
		preempt cluster.PreemptConfig
		setup   []cluster.Command
		run     jobs
		comes   func(*cluster.JobSpec)
		want    string // hours from now, and nodes; or why it waits; behind a bar, in the responsive order
	}{
		{"an empty cluster", cluster.PreemptConfig{}, nil, nil, nodes(2, 1), "0 [n000 n001]"},
		{"behind what runs", cluster.PreemptConfig{}, nil, jobs{nodes(1, 3)}, nodes(2, 1), "3 [n000 n001]"},
		{"a short one passes", cluster.PreemptConfig{}, nil, jobs{nodes(1, 3), nodes(2, 1)}, nodes(1, 3), "0 [n001]"},
		{
			"a long one does not", cluster.PreemptConfig{}, nil, jobs{nodes(1, 3), nodes(2, 1)},
			nodes(1, 4), "4 [n000] | 0 [n001]",
		},
		{
			"behind two that wait", cluster.PreemptConfig{}, nil,
			jobs{nodes(2, 3), nodes(2, 1), nodes(2, 2)}, nodes(1, 1), "6 [n000]",
		},
		{
			"beside one that waits", cluster.PreemptConfig{}, nil, jobs{nodes(2, 3), nodes(1, 1)},
			nodes(1, 1), "3 [n001]",
		},
		{
			"before a reservation", cluster.PreemptConfig{}, []cluster.Command{resv(2, 2, "vip")}, nil,
			nodes(1, 2), "0 [n000]",
		},
		{
			"after a reservation", cluster.PreemptConfig{}, []cluster.Command{resv(2, 2, "vip")}, nil,
			nodes(1, 3), "4 [n000]",
		},
		{"in a reservation to come", cluster.PreemptConfig{}, []cluster.Command{resv(2, 2, "u")}, nil,
			with(nodes(1, 1), func(s *cluster.JobSpec) { s.Reservation = "r" }), "2 [n000]"},
		{"at its begin", cluster.PreemptConfig{}, nil, jobs{nodes(2, 1)},
			with(nodes(1, 1), func(s *cluster.JobSpec) { s.Begin = epoch.Add(90 * time.Minute) }), "1.5 [n000]"},
		{
			"before one that begins later", cluster.PreemptConfig{}, nil,
			jobs{nodes(2, 3), nodes(1, 2), begin(6, 1000)}, nodes(2, 2), "5 [n000 n001]",
		},
		{
			"behind one that has begun by then", cluster.PreemptConfig{}, nil,
			jobs{nodes(2, 3), nodes(2, 3), begin(4, 9)}, nodes(2, 2), "15 [n000 n001] | 6 [n000 n001]",
		},
		{"a limit", cluster.PreemptConfig{},
			[]cluster.Command{
				&cluster.PartitionSet{
					Partition: cluster.Partition{
						Name: "main", All: true, Default: true, State: cluster.PartitionUp,
						MaxCPUsPerUser: 20,
					},
				},
			},
			jobs{nodes(1, 1)}, nodes(1, 1), "QOSMaxCpuPerUserLimit"},
		{
			"a partition's time limit", cluster.PreemptConfig{}, nil, nil, with(part("short"), hour(2)),
			"PartitionTimeLimit",
		},
		{
			"preemption", tiers(cluster.PreemptCancel), nil, jobs{nodes(2, 9)},
			with(part("high"), nodes(1, 1)), "0 [n000]",
		},
		{"no preemption", cluster.PreemptConfig{}, nil, jobs{nodes(2, 9)}, with(part("high"), nodes(1, 1)), "9 [n000]"},
		{
			"before those of a lower tier", cluster.PreemptConfig{}, nil, jobs{nodes(2, 9), nodes(2, 5)},
			with(part("high"), nodes(2, 1)), "9 [n000 n001]",
		},
	} {
		inOrder, responsive, differ := strings.Cut(c.want, " | ")
		check := func(t *testing.T, strict bool, want string) {
			b := newTestbed(t, 2, cluster.Partition{
				Name: "short", All: true, State: cluster.PartitionUp,
				PartitionLimits: cluster.PartitionLimits{MaxTime: time.Hour},
			},
				cluster.Partition{Name: "high", All: true, State: cluster.PartitionUp, PriorityTier: 9})
			cfg := *b.S.Config()
			cfg.Preempt, cfg.StrictOrder = c.preempt, strict
			b.Apply(&cluster.Configure{Config: &cfg})
			for _, cmd := range c.setup {
				b.Apply(cmd)
			}
			for _, change := range c.run {
				b.Submit(change)
				b.ScheduleAll()
			}
			spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "j", UID: 1, User: "u", Limit: time.Hour}
			c.comes(spec)
			st, id, err := sched.Test(b.S.Snapshot(), b.Now, cluster.Identity{UID: 1}, spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := told(b, st); got != want {
				t.Errorf("told %q, want %q", got, want)
			}
			if own := b.Submit(c.comes); own != id {
				t.Errorf("it is job %d, told %d", own, id)
			}
			listed := sched.Forecast(b.S.Snapshot(), b.Now)[id]
			if told(b, listed) != want {
				t.Errorf("listed %q, want %q", told(b, listed), want)
			}
			if b.firstPass(); b.job(id).Phase == cluster.Pending {
				if j := b.job(id); j.Wait != st.Why {
					t.Errorf("it waits for %s, told %s", j.Wait, st.Why)
				} else if !j.PlannedStart.IsZero() && !j.PlannedStart.Equal(st.At) {
					t.Errorf("planned at %s, told %s", j.PlannedStart, st.At)
				}
			} else if !st.At.Equal(b.Now) || fmt.Sprint(b.job(id).AllocNodes()) != fmt.Sprint(st.Nodes()) {
				t.Errorf("it starts now on %v, told %s", b.job(id).AllocNodes(), told(b, st))
			}
		}
		t.Run(c.name, func(t *testing.T) { check(t, true, inOrder) })
		if !differ {
			responsive = inOrder
		}
		t.Run(c.name+", responsive", func(t *testing.T) { check(t, false, responsive) })
	}
}

// firstPass is one pass of the scheduler.
func (b *testbed) firstPass() {
	b.Apply(&cluster.Decide{Decisions: sched.Schedule(b.S.Snapshot(), b.Now)})
}

func told(b *testbed, st sched.Start) string {
	if st.At.IsZero() {
		return string(st.Why)
	}
	return fmt.Sprint(st.At.Sub(b.Now).Hours(), " ", st.Nodes())
}

// TestForecastBehindMany: a job that is asked about gets a start however many wait before it.
func TestForecastBehindMany(t *testing.T) {
	b := newTestbed(t, 1)
	for range 41 { // more than are told of without being asked about
		b.Submit(wants(1))
	}
	id := b.Submit(wants(1))
	if st := sched.ForecastOf(b.S.Snapshot(), b.Now, id); st.At.IsZero() {
		t.Errorf("it waits for %s, and no start is told", st.Why)
	}
}
