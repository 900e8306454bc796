package launch

import (
	"os"
	"path"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// srun --async, of Slurm 26.05: the step goes on without its srun, its nodes write its files. Here srun stays until the
// step has begun; there is no queue of steps.

// asyncOutput is where tasks write if nothing is said.
const asyncOutput = "slurm-%J.out"

// asyncStep starts a step that goes on alone, and says which it is.
func asyncStep(s *front.Sys, r *submit.Request, id cluster.JobID) int {
	if len(r.Parts) > 0 || r.Group > 0 {
		return s.Usage(r.Cannot("--async with several components", "their tasks are one step by srun's work",
			"start each by an srun of its own: --het-group"))
	}
	st := &r.Step
	if st.MPI == "" {
		st.MPI = "none" // its processes find each other by srun
	}
	if st.Stdin == "" {
		st.Stdin = "none"
	}
	if st.Stdout == "" {
		st.Stdout = asyncOutput
	}
	for _, name := range []string{st.Stdout, st.Stderr} {
		if err := emptyFile(r, name); err != nil {
			return s.Fail("could not open stdout file: %s", front.PlainError(err))
		}
	}
	resp, code := createStep(s, r, id)
	if code != 0 {
		return code
	}
	name := strconv.FormatUint(uint64(id), 10) + "." + strconv.Itoa(resp.Step.ID.Step)
	if r.Client.Quiet == 0 && !r.Client.Parsable {
		name = "Submitted step " + name
	}
	if r.Client.Quiet == 0 {
		_, _ = s.Stdout.Write([]byte(name + "\n"))
	}
	return 0
}

// emptyFile empties a file that all nodes write to: each of them can only append. One whose name has the step's number
// is new.
func emptyFile(r *submit.Request, name string) error {
	st := &r.Step
	if !front.IsFile(name) || front.PerTask(name) || st.Append {
		return nil
	}
	st.Append = true
	if strings.Contains(name, "%J") || strings.Contains(name, "%s") {
		return nil
	}
	job := &cluster.Job{ID: cluster.JobID(r.Client.JobID), Task: cluster.TaskAny,
		Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: st.Name, User: st.User}}
	name = env.FileName(name, &cluster.Launch{Job: job, Step: &cluster.Step{}, Spec: st})
	if !path.IsAbs(name) {
		name = path.Join(st.WorkDir, name)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}
