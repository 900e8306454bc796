package slurm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
)

var briefTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// jobsOfLists are jobs as lists show them: waiting, in an array, running and over.
func jobsOfLists() []*cluster.Job {
	at := briefTime
	spec := &cluster.JobSpec{Layout: &cluster.Layout{MinNodes: 2, Tasks: 4, CPUsPerTask: 2, Mem: cluster.Mem{Per: cluster.MemPerCPU, MB: 100},
		PerNode: []cluster.GRES{{Name: "gpu", Type: "h100", Count: 2}}}, Name: "n", UID: 7, GID: 8, User: "u", Group: "g", Account: "a", QOS: "q",
		Partitions: []string{"p", "r"}, Limit: time.Hour, WorkDir: "/w", Command: "/c", Stdout: "o", Array: &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, 9), Limit: 3}}
	return []*cluster.Job{
		{ID: 1, Task: cluster.TaskAny, Spec: spec, Submitted: at, Eligible: at, Wait: cluster.WaitBegin, Limit: time.Hour, Priority: 5},
		{ID: 2, Task: cluster.TaskAny, ArrayID: 2, Tasks: cluster.RangeIDSet(3, 9), Spec: spec, Submitted: at, Wait: cluster.WaitResources, PlannedStart: at.Add(time.Hour), Limit: time.Hour},
		{ID: 3, Task: 4, ArrayID: 2, Spec: spec, Phase: cluster.Running, Submitted: at, Started: at, Limit: time.Hour, Attempt: 1,
			Alloc: &cluster.Alloc{Partition: "r", Shares: []cluster.Share{{Node: "x1", CPUs: cluster.RangeIDSet(0, 3)}, {Node: "x2", CPUs: cluster.RangeIDSet(0, 3)}}}},
		{ID: 4, Task: cluster.TaskAny, Spec: spec, Phase: cluster.Ended, Outcome: cluster.Failed, EndReason: cluster.EndNonZeroExit, Assoc: 9, Exit: cluster.ExitStatus{Code: 3}, Derived: cluster.ExitStatus{Code: 4}, SuspendTotal: time.Second, Submitted: at, Started: at, Ended: at.Add(time.Minute)},
	}
}

// briefOf is what a brief answer has of a job.
func briefOf(j *cluster.Job) *cluster.Job {
	c := &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}
	j.Brief(c)
	return c
}

// TestBriefSuffices: the columns that squeue shows from brief answers read the same from full ones.
func TestBriefSuffices(t *testing.T) {
	v := &view{now: briefTime.Add(10 * time.Minute)}
	for _, code := range []byte(lightCodes) {
		col := format.Find(jobColumns, code)
		if col == nil {
			t.Errorf("column %c does not exist", code)
			continue
		}
		for _, j := range jobsOfLists() {
			full, brief := newRow(v, j), newRow(v, briefOf(j))
			if a, b := col.Of(&full), col.Of(&brief); a != b {
				t.Errorf("column %c of job %d: %q from a full answer, %q from a brief one", code, j.ID, a, b)
			}
		}
	}
}

// TestBriefHistorySuffices: so do the fields that sacct shows from brief records, of jobs and of steps.
func TestBriefHistorySuffices(t *testing.T) {
	o := &sacctOptions{}
	v := &view{now: briefTime.Add(10 * time.Minute), conf: &api.ClusterResponse{Config: cluster.Config{ClusterName: "c"}}}
	steps := []*cluster.Step{{ID: cluster.StepID{Job: 3, Step: 0}, Name: "s", Tasks: 2, Started: briefTime, Ended: briefTime.Add(time.Minute), Outcome: cluster.Completed,
		Shares: []cluster.Share{{Node: "x1", CPUs: cluster.RangeIDSet(0, 1)}}}}
	for _, name := range strings.Fields(briefFields) {
		i := slices.IndexFunc(acctColumns[:], func(c acctColumn) bool { return c.name == name })
		if i < 0 {
			t.Errorf("field %s does not exist", name)
			continue
		}
		col := acctColumns[i].sized(0)
		for _, j := range jobsOfLists() {
			full := o.rows(v, &api.JobHistory{Job: j, Steps: steps})
			brief := o.rows(v, &api.JobHistory{Job: briefOf(j), Steps: steps})
			for k := range full {
				if a, b := col.cell(&full[k]), col.cell(&brief[k]); a != b {
					t.Errorf("%s of job %d: %q from a full record, %q from a brief one", name, j.ID, a, b)
				}
			}
		}
	}
}
