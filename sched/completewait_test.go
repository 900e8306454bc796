package sched_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/explain"
)

// TestCompleteWait has jobs wait while another one ends: in all partitions, or where its own has nodes; for so long
// at most.
func TestCompleteWait(t *testing.T) {
	part := func(name string, nodes ...cluster.NodeName) cluster.Partition {
		return cluster.Partition{Name: name, Nodes: nodes, State: cluster.PartitionUp}
	}
	for _, local := range []bool{false, true} {
		b := newTestbed(t, 3, part("own", nodeName(0)), part("beside", nodeName(0), nodeName(1)),
			part("apart", nodeName(2)), part("next", nodeName(1), nodeName(2)))
		cfg := *b.S.Snapshot().Config()
		cfg.CompleteWait = 30 * time.Second
		cfg.CompleteLocal = local
		cfg.Partitions = cfg.Partitions[1:] // not that of all nodes, in which each job ends
		b.Apply(&cluster.Configure{Config: &cfg})
		to := func(parts ...string) cluster.JobID {
			return b.Submit(func(s *cluster.JobSpec) { s.Partitions = parts })
		}
		ends := to("own")
		b.ScheduleAll()
		j, _ := b.S.Job(ends)
		n, _ := b.S.Node(nodeName(0))
		b.Apply(&cluster.Report{
			Node: n.Name, Seq: n.ReportSeq + 1,
			Updates: []cluster.Update{{Kind: cluster.BatchOver, Job: ends, Attempt: j.Attempt, At: b.Now}},
		})
		if j, _ = b.S.Job(ends); j.Phase != cluster.Ending {
			t.Fatalf("phase %d", j.Phase)
		}
		jobs := map[string]cluster.JobID{"own": to("own"), "beside": to("beside"), "apart": to("apart"),
			"either": to("own", "apart"), "next": to("next"),
			"next, there": b.Submit(func(s *cluster.JobSpec) {
				s.Partitions = []string{"next"}
				s.NodeList = []cluster.NodeName{nodeName(1)}
			})}
		runs := func(name string) bool { j, _ := b.S.Job(jobs[name]); return j.Alloc != nil }
		if at := b.S.Snapshot().NextTimer(b.Now); !at.Equal(b.Now.Add(30 * time.Second)) {
			t.Errorf("the next cycle is at %s", at)
		}
		b.Now = b.Now.Add(29 * time.Second)
		b.ScheduleAll()
		for name := range jobs {
			if want := local && (name == "apart" || name == "either" || name == "next"); runs(name) != want {
				t.Errorf("local %t, while a job ends: the job for %s runs %t", local, name, !want)
			}
			if j, _ := b.S.Job(jobs[name]); j.Alloc == nil && j.Wait != cluster.NoReason && name != "next, there" {
				t.Errorf("%s waits for %s", name, j.Wait)
			}
			told := explain.Job(b.S.Snapshot(), b.Now, jobs[name]).Causes
			says := len(told) > 0 && strings.Contains(told[0].Text,
				fmt.Sprintf("(CompleteWait=30 in slurm.conf): job %d of u does, and is waited for until %s at most",
					ends, b.Now.Add(time.Second).Format(time.DateTime)))
			if !runs(name) && !says {
				t.Errorf("local %t: why %s waits: %v", local, name, told)
			}
		}
		b.Now = b.Now.Add(time.Second)
		b.ScheduleAll()
		for name := range jobs {
			if !runs(name) {
				t.Errorf("local %t, when the time is over: the job for %s waits", local, name)
			}
		}
	}
}
