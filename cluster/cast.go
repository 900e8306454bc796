package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// Cast has muster's own program put files on the nodes of a step, or take some from there, as the job's user.
type Cast struct {
	// Alone: the step is nothing else. It takes nothing from other steps and is in no books.
	Alone bool       `json:"alone,omitempty"`
	Nodes []NodeName `json:"nodes,omitempty"` // where it is so; empty: on all of the job
	// Program is the file that the tasks run in place of their first word, once it is there (CastPath).
	Program string `json:"program,omitempty" text:"4096"`
	Libs    bool   `json:"libs,omitempty"` // the program's libraries are beside it, in the folder Program_libs
}

// CastPath is what a path is on a node, for a step: %J is JOB.STEP, %N the node's name, %% is %.
func CastPath(pattern string, id StepID, n NodeName) string {
	step := strconv.FormatUint(uint64(id.Job), 10) + "." + strconv.Itoa(id.Step)
	return strings.NewReplacer("%%", "%", "%J", step, "%N", string(n)).Replace(pattern)
}

// FirstCast is the number of the first step that only puts files on nodes: those are counted apart.
const FirstCast = 1 << 30

// IsCast reports whether the step only puts files on nodes.
func (id StepID) IsCast() bool { return id.Step >= FirstCast }

// PlaceCast is where a step runs that only puts files on nodes: one task on each, with nothing of its own.
func PlaceCast(j *Job, c *Cast) ([]Share, *Error) {
	var shares []Share
	for _, sh := range j.HeldShares() {
		if len(c.Nodes) == 0 || slices.Contains(c.Nodes, sh.Node) {
			shares = append(shares, Share{Node: sh.Node, Tasks: 1})
		}
	}
	if len(shares) < max(len(c.Nodes), 1) {
		return nil, Errorf(Invalid, ErrStepNodes, "job %d has not all of these nodes", j.ID)
	}
	return shares, nil
}
