package show

import (
	"testing"

	"dev.muster/cluster"
)

// TestStepFile: where a step writes, as it was asked and of its first task; errors that go with the output have no file
// of their own.
func TestStepFile(t *testing.T) {
	step := &cluster.Step{ID: cluster.StepID{Job: 7, Step: 2}, Shares: []cluster.Share{{Node: "n1"}}}
	row := StepRow{Step: step, Job: JobRow{Job: &cluster.Job{ID: 7, Spec: &cluster.JobSpec{}}}}
	for _, c := range []struct {
		files                       *cluster.StepFiles
		out, outName, errs, errName string
	}{
		{nil, "", "", "", ""},
		{&cluster.StepFiles{WorkDir: "/w", Stdout: "o-%j.%s-%t"}, "o-%j.%s-%t", "/w/o-7.2-0", "", ""},
		{&cluster.StepFiles{WorkDir: "/w", SrunStdout: "/o", Stderr: "/e-%N"}, "/o", "/o", "/e-%N", "/e-n1"},
	} {
		step.Files = c.files
		if row.file(false) != c.out || row.firstFile(false) != c.outName {
			t.Errorf("%+v: %q %q", c.files, row.file(false), row.firstFile(false))
		}
		if row.file(true) != c.errs || row.firstFile(true) != c.errName {
			t.Errorf("%+v: errors %q %q", c.files, row.file(true), row.firstFile(true))
		}
	}
}
