package show

import (
	"cmp"
	"path"

	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/env"
)

// ownFrequency is what the steps that a job is by itself ask for of their CPUs' frequency: nothing. The frequencies of
// others have no numbers here.
func ownFrequency(s *StepRow) data.Value {
	if s.ID.Step < 0 {
		return data.Num(0)
	}
	return data.Unset
}

// file is the pattern of what a step's tasks write, "" if they write to their srun. Errors that go with the output have
// none of their own.
func (s *StepRow) file(errors bool) string {
	if f := s.Files; f != nil && errors {
		return cmp.Or(f.Stderr, f.SrunStderr)
	}
	name, _ := s.Files.Name(errors)
	return name
}

// firstFile is the file of a step's first task.
func (s *StepRow) firstFile(errors bool) string {
	name := s.file(errors)
	if name == "" {
		return ""
	}
	name = env.FileName(name, &cluster.Launch{Job: s.Job.Job, Step: s.Step, Node: s.NodeNames()[0],
		Rank: s.Files.First()})
	if !path.IsAbs(name) {
		name = path.Join(s.Files.WorkDir, name)
	}
	return name
}
