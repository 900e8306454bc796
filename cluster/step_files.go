package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// StepFiles are where the tasks of a step write, for who reads it later: patterns of names, empty where the output
// goes to srun.
type StepFiles struct {
	WorkDir string `json:"work_dir,omitempty"`
	Stdout  string `json:"stdout,omitempty"`
	Stderr  string `json:"stderr,omitempty"` // empty: with the output
	// SrunStdout and SrunStderr are of all tasks: srun writes them, where it runs.
	SrunStdout string `json:"srun_stdout,omitempty"`
	SrunStderr string `json:"srun_stderr,omitempty"`
	// The facts that give the ranks of its nodes, in addition to the distribution.
	PlaneSize int        `json:"plane_size,omitempty"`
	NodeList  []NodeName `json:"node_list,omitempty"` // of an arbitrary distribution
	FirstRank int        `json:"first_rank,omitempty"`
}

// filesOf is what a step's record keeps of where it writes.
func filesOf(s *StepSpec) *StepFiles {
	f := &StepFiles{
		WorkDir:    s.WorkDir,
		Stdout:     fileName(s.Stdout),
		Stderr:     fileName(s.Stderr),
		SrunStdout: s.SrunStdout,
		SrunStderr: s.SrunStderr,
		PlaneSize:  s.PlaneSize,
	}
	if cmp.Or(f.Stdout, f.Stderr, f.SrunStdout, f.SrunStderr) == "" {
		return nil
	}
	if dist(s) == "arbitrary" {
		f.NodeList = s.NodeList
	}
	if s.World != nil {
		f.FirstRank = s.World.Rank
	}
	return f
}

// fileName is the name of a file, "" for the other words that say where a stream leads.
func fileName(mode string) string {
	if _, err := strconv.Atoi(mode); err == nil || mode == "all" || mode == "none" {
		return ""
	}
	return mode
}

// Name is the pattern of what its tasks write, or write as errors, "" if that goes to srun; all: one file of all
// tasks, which srun writes.
func (f *StepFiles) Name(errors bool) (pattern string, all bool) {
	switch {
	case f == nil:
		return "", false
	case errors && cmp.Or(f.Stderr, f.SrunStderr) != "":
		return cmp.Or(f.Stderr, f.SrunStderr), f.Stderr == ""
	}
	return cmp.Or(f.Stdout, f.SrunStdout), f.Stdout == ""
}

// First is the rank of a step's first task; that of another component of its job may be 0.
func (f *StepFiles) First() int {
	if f == nil {
		return 0
	}
	return f.FirstRank
}

// Ranks are those of each node of a step, as far as its record tells.
func (s *Step) Ranks() [][]int {
	f := cmp.Or(s.Files, &StepFiles{})
	counts := make([]int, len(s.Shares))
	for i := range s.Shares {
		counts[i] = s.Shares[i].Tasks
	}
	ranks := RankLayout(counts, &StepSpec{Layout: Layout{Distribution: s.Distribution, PlaneSize: f.PlaneSize,
		NodeList: f.NodeList}})
	for _, list := range ranks {
		for i := range list {
			list[i] += f.FirstRank
		}
	}
	return ranks
}

// Task finds a task: the index of its node, and which of those there it is.
func (s *Step) Task(rank int) (node, local int, ok bool) {
	for node, list := range s.Ranks() {
		if local := slices.Index(list, rank); local >= 0 {
			return node, local, true
		}
	}
	return 0, 0, false
}

// Writes finds the node that has what a task of a step writes, or writes as errors; a negative task is the first.
func (s *Step) Writes(j *Job, task int, errors bool) (NodeName, int, error) {
	name, all := s.Files.Name(errors)
	first := s.Files.First()
	if name == "" {
		return "", 0, Errorf(Conflict, "", "%s", s.Goes(j))
	}
	if all && task >= 0 {
		return "", 0, Errorf(Invalid, "", "step %d.%d writes one file of all its tasks: name no task",
			s.ID.Job, s.ID.Step)
	}
	if task < 0 {
		task = first
	}
	node, _, ok := s.Task(task)
	if !ok {
		return "", 0, Errorf(NotFound, "", "step %d.%d has %d tasks, %d to %d", s.ID.Job, s.ID.Step, s.Tasks, first,
			first+s.Tasks-1)
	}
	if !all {
		return s.Shares[node].Node, task, nil
	}
	for _, sh := range j.Alloc.Shares { // srun has written it: on its node, if it is one of the job's
		if string(sh.Node) == s.SrunHost {
			return sh.Node, task, nil
		}
	}
	return "", task, nil // the job's first node may see it
}

// Goes says where the output of a step goes that no file has.
func (s *Step) Goes(j *Job) string {
	switch {
	case j.RunsScript():
		return fmt.Sprintf("the output of step %d.%d goes where srun's does: to that of the job's script, "+
			"unless the script says otherwise", s.ID.Job, s.ID.Step)
	case s.Ended.IsZero():
		return fmt.Sprintf("the output of step %d.%d goes where srun's does, on %s; sattach %[1]d.%[2]d shows it, too",
			s.ID.Job, s.ID.Step, s.SrunHost)
	}
	return fmt.Sprintf("the output of step %d.%d went where srun's did, on %s", s.ID.Job, s.ID.Step, s.SrunHost)
}
