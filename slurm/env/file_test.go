package env

import (
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
