package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
	"dev.muster/slurm/slurmtest"
)

// TestBriefHistorySuffices: so do the fields that sacct shows from brief records, of jobs and of steps.
func TestBriefHistorySuffices(t *testing.T) {
	o := &sacctOptions{}
	v := &show.View{
		Now:  slurmtest.BriefTime.Add(10 * time.Minute),
		Conf: &api.ClusterResponse{Config: cluster.Config{ClusterIdentity: cluster.ClusterIdentity{ClusterName: "c"}}},
	}
	steps := []*cluster.Step{{ID: cluster.StepID{Job: 3, Step: 0}, Name: "s", Tasks: 2,
		Started: slurmtest.BriefTime, Ended: slurmtest.BriefTime.Add(time.Minute), Outcome: cluster.Completed,
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

// TestSacctFilters: the values of sacct's filters, and how wrong ones are refused.
func TestSacctFilters(t *testing.T) {
	for _, c := range []struct {
		set  func(*sacctOptions, string) error
		v    string
		want string
	}{
		{setSacctFlags, "SchedMain,schedbackfill", ""},
		{setSacctFlags, "nope", "sacct: error: str_2_job_flags: Invalid job flag nope"},
		{setSacctGroups, "0", ""},
		{setSacctGroups, "nogroup_x", "sacct: error: Invalid group id: nogroup_x"},
		{setSacctUnits, "g", ""},
		{
			setSacctUnits, "X",
			"sacct: error: Invalid unit type 'X'. Possible options are 'KMGTP'\nsacct: fatal: Invalid unit type",
		},
		{func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }, "1-2", ""},
		{
			func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }, "x",
			"sacct: error: Invalid numeric value \"x\" for requested cpu range.",
		},
		{func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }, "1:00:00", ""},
		{
			func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }, "abc",
			"sacct: fatal: Invalid time limit specification",
		},
	} {
		var o sacctOptions
		got := ""
		if err := c.set(&o, c.v); err != nil {
			got = strings.Join(err.(*opt.UsageError).Lines, "\n")
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.v, got, c.want)
		}
	}
}

// TestSacctShows: -j JOB.STEP selects that step alone.
func TestSacctShows(t *testing.T) {
	job := &cluster.Job{ID: 5}
	rows := map[string]acctRow{"5": {JobRow: show.JobRow{Job: job}}}
	for name, n := range map[string]int{
		"5.batch": cluster.BatchStep, "5.extern": cluster.ExternStep, "5.0": 0, "5.1": 1,
	} {
		rows[name] = acctRow{JobRow: show.JobRow{Job: job}, step: &cluster.Step{ID: cluster.StepID{Job: 5, Step: n}}}
	}
	for list, want := range map[string]string{
		"5": "5 5.batch 5.extern 5.0 5.1", "5.1": "5.1", "5.batch,5.0": "5.batch 5.0",
		"5.0,5": "5 5.batch 5.extern 5.0 5.1", "6": "5 5.batch 5.extern 5.0 5.1",
	} {
		var o sacctOptions
		if err := setSacctJobs(&o, list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"5", "5.batch", "5.extern", "5.0", "5.1"} {
			if r := rows[name]; o.shows(&r) {
				got = append(got, name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("-j %s: %s, want %s", list, text, want)
		}
	}
}
