package slurm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/show"
	"dev.muster/slurm/slurmtest"
)

// TestBriefHistorySuffices: so do the fields that sacct shows from brief records, of jobs and of steps.
func TestBriefHistorySuffices(t *testing.T) {
	o := &sacctOptions{}
	v := &show.View{Now: slurmtest.BriefTime.Add(10 * time.Minute), Conf: &api.ClusterResponse{Config: cluster.Config{ClusterName: "c"}}}
	steps := []*cluster.Step{{ID: cluster.StepID{Job: 3, Step: 0}, Name: "s", Tasks: 2, Started: slurmtest.BriefTime, Ended: slurmtest.BriefTime.Add(time.Minute), Outcome: cluster.Completed,
		Shares: []cluster.Share{{Node: "x1", CPUs: cluster.RangeIDSet(0, 1)}}}}
	for _, name := range strings.Fields(briefFields) {
		i := slices.IndexFunc(acctColumns[:], func(c acctColumn) bool { return c.name == name })
		if i < 0 {
			t.Errorf("field %s does not exist", name)
			continue
		}
		col := acctColumns[i].sized(0)
		for _, j := range slurmtest.JobsOfLists() {
			full := o.rows(v, &api.JobHistory{Job: j, Steps: steps})
			brief := o.rows(v, &api.JobHistory{Job: slurmtest.BriefOf(j), Steps: steps})
			for k := range full {
				if a, b := col.cell(&full[k]), col.cell(&brief[k]); a != b {
					t.Errorf("%s of job %d: %q from a full record, %q from a brief one", name, j.ID, a, b)
				}
			}
		}
	}
}
