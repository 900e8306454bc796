package slurm

import (
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/slurmtest"
)

// TestForgedRows: a job's name, comment and folder begin no row of a list and no line of a record, and control no
// terminal. JSON has them as they are.
func TestForgedRows(t *testing.T) {
	const odd = "a\nJobId=99 JobName=b\r\x1b[31m"
	for _, line := range [][]string{
		{"squeue", "-o", "%i|%j|%k|%Z"},
		{"squeue", "-O", "jobid,name:100,comment:100"},
		{"scontrol", "show", "job"},
		{"scontrol", "-o", "show", "job"},
		{"qstat"},
		{"qstat", "-f"},
		{"bjobs", "-w"},
	} {
		counts := [2]int{}
		for i, text := range [...]string{"plain", odd} {
			f := slurmtest.New()
			for _, j := range f.Jobs {
				own := *j.Spec
				own.Name, own.Comment, own.WorkDir = text, text, "/"+text
				j.Spec = &own
			}
			got := runLine(f, t, 0, nil, line...)
			counts[i] = strings.Count(got, "\n")
			if strings.ContainsAny(got, "\r\x1b") {
				t.Errorf("%q: a terminal is controlled: %q", line, got)
			}
		}
		if counts[0] != counts[1] || counts[0] == 0 {
			t.Errorf("%q: %d lines become %d", line, counts[0], counts[1])
		}
	}
	f := slurmtest.New()
	f.Jobs = f.Jobs[:1]
	f.Jobs[0].Spec = &cluster.JobSpec{Layout: f.Jobs[0].Spec.Layout, Name: odd}
	if got := runLine(f, t, 0, nil, "squeue", "--json"); !strings.Contains(got, `a\nJobId=99 JobName=b\r\u001b[31m`) {
		t.Errorf("JSON: %s", got)
	}
}
