package slurmtest

import (
	"time"

	"dev.muster/cluster"
)

// BriefTime is when the jobs of JobsOfLists are looked at.
var BriefTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// JobsOfLists are jobs as lists show them: waiting, in an array, running and over.
func JobsOfLists() []*cluster.Job {
	at := BriefTime
	spec := &cluster.JobSpec{Layout: &cluster.Layout{MinNodes: 2, Tasks: 4, CPUsPerTask: 2,
		Mem:     cluster.Mem{Per: cluster.MemPerCPU, MB: 100},
		PerNode: []cluster.GRES{{Name: "gpu", Type: "h100", Count: 2}}}, Name: "n", UID: 7, GID: 8,
		User: "u", Group: "g", Account: "a", QOS: "q",
		Partitions: []string{"p", "r"}, Limit: time.Hour, WorkDir: "/w", Command: "/c", Stdout: "o",
		Array: &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, 9), Limit: 3}}
	return []*cluster.Job{
		{
			ID: 1, Task: cluster.TaskAny, Spec: spec, Submitted: at, Eligible: at, Wait: cluster.WaitBegin,
			Limit: time.Hour, Priority: 5,
		},
		{
			ID: 2, Task: cluster.TaskAny, ArrayID: 2, Tasks: cluster.RangeIDSet(3, 9), Spec: spec,
			Submitted: at, Wait: cluster.WaitResources, PlannedStart: at.Add(time.Hour), Limit: time.Hour,
		},
		{ID: 3, Task: 4, ArrayID: 2, Spec: spec, Phase: cluster.Running, Submitted: at, Started: at,
			Limit: time.Hour, Attempt: 1,
			Alloc: &cluster.Alloc{
				Partition: "r",
				Shares: []cluster.Share{
					{Node: "x1", CPUs: cluster.RangeIDSet(0, 3)},
					{Node: "x2", CPUs: cluster.RangeIDSet(0, 3)},
				},
			}},
		{
			ID: 4, Task: cluster.TaskAny, Spec: spec, Phase: cluster.Ended, Outcome: cluster.Failed,
			EndReason: cluster.EndNonZeroExit, Assoc: 9, Exit: cluster.ExitStatus{Code: 3},
			Derived: cluster.ExitStatus{Code: 4}, SuspendTotal: time.Second, Submitted: at, Started: at,
			Ended: at.Add(time.Minute),
		},
	}
}

// BriefOf is what a brief answer has of a job.
func BriefOf(j *cluster.Job) *cluster.Job {
	c := &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}
	j.Brief(c)
	return c
}
