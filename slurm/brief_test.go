package slurm

import (
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
)

// TestBriefSuffices: the columns that squeue shows from brief answers read the same from full ones.
func TestBriefSuffices(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := &cluster.JobSpec{Layout: &cluster.Layout{MinNodes: 2, Tasks: 4, CPUsPerTask: 2, Mem: cluster.Mem{Per: cluster.MemPerCPU, MB: 100},
		PerNode: []cluster.GRES{{Name: "gpu", Type: "h100", Count: 2}}}, Name: "n", UID: 7, GID: 8, User: "u", Group: "g", Account: "a", QOS: "q",
		Partitions: []string{"p", "r"}, Limit: time.Hour, WorkDir: "/w", Command: "/c", Stdout: "o", Array: &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, 9), Limit: 3}}
	jobs := []*cluster.Job{
		{ID: 1, Task: cluster.TaskAny, Spec: spec, Submitted: at, Eligible: at, Wait: cluster.WaitBegin, Limit: time.Hour, Priority: 5},
		{ID: 2, Task: cluster.TaskAny, ArrayID: 2, Tasks: cluster.RangeIDSet(3, 9), Spec: spec, Submitted: at, Wait: cluster.WaitResources, PlannedStart: at.Add(time.Hour), Limit: time.Hour},
		{ID: 3, Task: 4, ArrayID: 2, Spec: spec, Phase: cluster.Running, Submitted: at, Started: at, Limit: time.Hour, Attempt: 1,
			Alloc: &cluster.Alloc{Partition: "r", Shares: []cluster.Share{{Node: "x1", CPUs: cluster.RangeIDSet(0, 3)}, {Node: "x2", CPUs: cluster.RangeIDSet(0, 3)}}}},
		{ID: 4, Task: cluster.TaskAny, Spec: spec, Phase: cluster.Ended, Outcome: cluster.Failed, EndReason: cluster.EndNonZeroExit, Submitted: at, Started: at, Ended: at.Add(time.Minute)},
	}
	v := &view{now: at.Add(10 * time.Minute)}
	for _, code := range []byte(lightCodes) {
		col := format.Find(jobColumns, code)
		if col == nil {
			t.Errorf("column %c does not exist", code)
			continue
		}
		for _, j := range jobs {
			c := &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}
			j.Brief(c)
			full, brief := newRow(v, j), newRow(v, c)
			if a, b := col.Of(&full), col.Of(&brief); a != b {
				t.Errorf("column %c of job %d: %q from a full answer, %q from a brief one", code, j.ID, a, b)
			}
		}
	}
}
