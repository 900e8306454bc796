package slurm

import (
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

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
		{setSacctUnits, "X", "sacct: error: Invalid unit type 'X'. Possible options are 'KMGTP'\nsacct: fatal: Invalid unit type"},
		{func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }, "1-2", ""},
		{func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }, "x", "sacct: error: Invalid numeric value \"x\" for requested cpu range."},
		{func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }, "1:00:00", ""},
		{func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }, "abc", "sacct: fatal: Invalid time limit specification"},
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
	for name, n := range map[string]int{"5.batch": cluster.BatchStep, "5.extern": cluster.ExternStep, "5.0": 0, "5.1": 1} {
		rows[name] = acctRow{JobRow: show.JobRow{Job: job}, step: &cluster.Step{ID: cluster.StepID{Job: 5, Step: n}}}
	}
	for list, want := range map[string]string{"5": "5 5.batch 5.extern 5.0 5.1", "5.1": "5.1", "5.batch,5.0": "5.batch 5.0", "5.0,5": "5 5.batch 5.extern 5.0 5.1", "6": "5 5.batch 5.extern 5.0 5.1"} {
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
