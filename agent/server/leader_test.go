package server

import (
	"slices"
	"testing"
	"time"

	"dev.muster/agent/heartbeat"
	"dev.muster/cluster"
	"dev.muster/sched"
)

// A launch that is late is undone only once its nodes have had the time with this leader: what they
// confirmed while nobody led comes first. Then the job starts elsewhere.
func TestLateLaunch(t *testing.T) {
	s, now := cluster.NewState(), time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	apply := func(cmd cluster.Command) cluster.Applied {
		t.Helper()
		a := s.Apply(cluster.Entry{Index: s.Index + 1, At: now, By: cluster.Identity{System: true}, Cmd: cmd})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a
	}
	config := cluster.DefaultConfig()
	apply(&cluster.Configure{Config: &config})
	for _, n := range []cluster.NodeName{"a", "b", "c"} {
		apply(&cluster.NodeUp{
			Name:      n,
			Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 1000},
		})
	}
	id := apply(&cluster.Submit{Spec: &cluster.JobSpec{Layout: &cluster.Layout{MinNodes: 2}}}).Result.(cluster.JobID)
	var scheduler sched.Scheduler
	const never = -1
	var led time.Time
	step := func(since time.Duration) (out []cluster.Command) {
		t.Helper()
		leases := heartbeat.Leases{}
		for _, n := range []cluster.NodeName{"a", "b", "c"} {
			leases[n] = heartbeat.Lease{Until: now.Add(time.Minute), Since: now.Add(-since), Led: led}
			if since == never {
				leases[n] = heartbeat.Lease{Until: now.Add(time.Minute), Led: led}
			}
		}
		out = Step(s.Snapshot(), leases, now, &scheduler)
		for _, c := range out {
			apply(c)
		}
		return out
	}
	step(0)
	apply(&cluster.Report{
		Node: "a", Seq: 1,
		Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: id, Attempt: 1, At: now}},
	})
	now = now.Add(time.Minute)
	if cmds := step(config.LaunchTimeout - time.Second); len(cmds) != 0 {
		t.Errorf("undone by a new leader: %+v", cmds[0])
	}
	if led = now.Add(-time.Second); len(step(never)) != 0 {
		t.Error("undone while its nodes have not called a leader that did not begin it")
	}
	if cmds := step(config.LaunchTimeout); len(cmds) != 1 {
		t.Errorf("%d commands, want one that undoes the launch", len(cmds))
	}
	apply(&cluster.Report{
		Node: "a", Seq: 2,
		Updates: []cluster.Update{{Kind: cluster.NodeDone, Job: id, Attempt: 1, At: now}},
	})
	step(config.LaunchTimeout)
	if j, _ := s.Job(id); j.Phase != cluster.Starting || !slices.Equal(j.AllocNodes(), []cluster.NodeName{"a", "c"}) {
		t.Errorf("the job is in phase %d on %v", j.Phase, j.AllocNodes())
	}
	now = now.Add(time.Minute)
	led = now.Add(-2 * time.Minute)
	if cmds := step(never); len(cmds) != 1 {
		t.Errorf("%d commands, want one that undoes the launch of this leader", len(cmds))
	}
}
