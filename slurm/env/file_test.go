package env

import (
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestIndexDigit: %b is the last digit of a task's number in its array, and that of what %a shows outside one.
func TestIndexDigit(t *testing.T) {
	step := &cluster.Step{}
	for _, c := range []struct {
		task    int
		step    *cluster.Step
		pattern string
		want    string
	}{
		{12, nil, "x-%b.txt", "x-2.txt"},
		{12, step, "x-%b.txt", "x-2.txt"},
		{23, nil, "x-%3b", "x-003"},
		{cluster.TaskAny, nil, "%b", "4"},
	} {
		l := &cluster.Launch{Job: &cluster.Job{ID: 9, Task: c.task, Spec: &cluster.JobSpec{}}, Step: c.step}
		if got := FileName(c.pattern, l); got != c.want {
			t.Errorf("%s of task %d: %q, want %q", c.pattern, c.task, got, c.want)
		}
	}
}

// TestLongFileNames: however often a name of output has the job's name in it, a prolog can be executed with the
// variables that hold it: one that cannot takes its node out of service.
func TestLongFileNames(t *testing.T) {
	const kernel = 128 << 10 // bytes of a variable
	name := strings.Repeat("n", 1024)
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: name, User: name,
		WorkDir: "/" + strings.Repeat("d", 4095)}
	j := &cluster.Job{ID: 9, Task: cluster.TaskAny, Spec: spec,
		Alloc: &cluster.Alloc{Shares: []cluster.Share{{Node: "n1"}}}}
	for _, pattern := range []string{"/tmp/%x", "%x", "%u%10j"} {
		t.Run(pattern, func(t *testing.T) {
			long := (pattern + strings.Repeat(pattern[strings.Index(pattern, "%"):], 4096))[:4096]
			spec.Stdin, spec.Stdout, spec.Stderr = long, long, long
			l := &cluster.Launch{Job: j, Config: &cluster.Config{}, Node: "n1"}
			for _, v := range append(Scripts(l, true), Server(j, l.Config, "prolog_slurmctld")...) {
				if len(v) >= kernel {
					t.Errorf("%.30s… has %d bytes", v, len(v))
				}
			}
			if got := FileName(long, l); len(got) < 4096 {
				t.Errorf("the name has %d bytes: it could be opened", len(got))
			}
		})
	}
}
