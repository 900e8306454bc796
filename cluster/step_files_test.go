package cluster

import "testing"

// TestStepFiles: the record of a step tells where each task writes, and on which node it is.
func TestStepFiles(t *testing.T) {
	j := &Job{ID: 1, Spec: &JobSpec{Layout: &Layout{}}}
	shares := []Share{{Node: "a", Tasks: 2}, {Node: "b", Tasks: 2}}
	for _, c := range []struct {
		spec        StepSpec
		out, errs   string
		all         bool
		node, local int // of task 1
	}{
		{StepSpec{}, "", "", false, 0, 1},
		{StepSpec{Stdout: "none"}, "", "", false, 0, 1},
		{StepSpec{Stdout: "%t.out"}, "%t.out", "%t.out", false, 0, 1},
		{StepSpec{Stdout: "%t.out", Stderr: "%t.err"}, "%t.out", "%t.err", false, 0, 1},
		{StepSpec{Stdout: "%t.out", StepHelpers: StepHelpers{SrunStderr: "err"}}, "%t.out", "err", false, 0, 1},
		{StepSpec{StepHelpers: StepHelpers{SrunStdout: "out"}}, "out", "out", true, 0, 1},
		{StepSpec{Stdout: "%t", Layout: Layout{Distribution: "cyclic"}}, "%t", "%t", false, 1, 0},
	} {
		st := NewStep(j, 0, &c.spec, shares, j.Submitted)
		out, all := st.Files.Name(false)
		errs, _ := st.Files.Name(true)
		if out != c.out || errs != c.errs || all != c.all && out != "" {
			t.Errorf("%+v: %q and %q, of all tasks: %v", st.Files, out, errs, all)
		}
		if node, local, ok := st.Task(1); !ok || node != c.node || local != c.local {
			t.Errorf("%+v: task 1 is %d of node %d, %v", st.Files, local, node, ok)
		}
	}
	st := NewStep(j, 0, &StepSpec{Stdout: "%t", World: &StepWorld{Rank: 5}}, shares, j.Submitted)
	if node, local, ok := st.Task(7); !ok || node != 1 || local != 0 {
		t.Errorf("task 7 of a part that begins with 5: %d of node %d, %v", local, node, ok)
	}
}
