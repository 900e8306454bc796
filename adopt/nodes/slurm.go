package nodes

import (
	"fmt"
	"slices"
	"strings"
)

// ReadSlurm reads what scontrol -o show node prints of one node. jobs is what squeue prints of the jobs there. A line
// that is not understood is an error: nothing may be concluded from it.
func ReadSlurm(name, line, jobs string) (State, error) {
	fields := strings.Fields(line)
	if !strings.HasPrefix(line, "NodeName="+name+" ") {
		return State{}, fmt.Errorf("scontrol show node %s: the answer is of another node: %.80q", name, line)
	}
	i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "State=") })
	if i < 0 {
		return State{}, fmt.Errorf("scontrol show node %s: the answer has no State", name)
	}
	text := strings.TrimPrefix(fields[i], "State=")
	words := strings.Split(text, "+")
	base := strings.TrimRight(words[0], "*~#!%$@^-")
	has := func(flags ...string) bool {
		isOne := func(w string) bool { return slices.Contains(flags, w) }
		return slices.ContainsFunc(words[1:], isOne)
	}
	isAway := strings.Contains(text, "*") || has("NOT_RESPONDING")
	isGone := slices.Contains([]string{"UNKNOWN", "FUTURE"}, base) // DOWN lasts until it is resumed
	isFree := slices.Contains([]string{"IDLE", "DOWN"}, base) && slices.Contains(fields, "CPUAlloc=0")
	hasJobs := strings.TrimSpace(jobs) != "" || has("COMPLETING")
	return State{Known: true, Up: !isAway && !isGone, Drained: has("DRAIN"), Busy: hasJobs || !isFree}, nil
}
