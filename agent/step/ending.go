package step

import (
	"cmp"
	"fmt"

	"dev.muster/cluster"
)

// Ending is how a task ended, or, where it did not begin, the number of the error; 1: that has none.
func (t *TaskStatus) Ending() cluster.ExitStatus {
	switch {
	case t.Errno != 0:
		return cluster.ExitStatus{Code: min(t.Errno, 255)}
	case t.Error != "" && t.Exit == (cluster.ExitStatus{}):
		return cluster.ExitStatus{Code: 1}
	}
	return t.Exit
}

// Succeeded reports whether a part's first task ended well.
func (st *Status) Succeeded() bool {
	if len(st.Tasks) == 0 {
		return false
	}
	t := &st.Tasks[0]
	return t.Exit == cluster.ExitStatus{} && t.Error == "" && !t.Lost
}

// ScriptEnd words how a script ended that is the part's first task.
func (st *Status) ScriptEnd() string {
	if len(st.Tasks) == 0 {
		return "it was lost"
	}
	return cmp.Or(st.Tasks[0].Error,
		fmt.Sprintf("exit code %d, signal %d", st.Tasks[0].Exit.Code, st.Tasks[0].Exit.Signal))
}
