// Package launch is srun, salloc and swait: an allocation, a step in it, its streams and its end. Package submit
// defines the options. Begin with cmd_srun.go, then srun_run.go.
package launch

import (
	"errors"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// Srun runs a step: in the job it is called in, in the one --jobid names, or in an
// allocation of its own.
func Srun(sys *front.Sys, argv []string) int {
	r, err := submit.ParseSrun(argv, sys)
	if err != nil {
		return sys.Usage(err)
	}
	submit.SayNotes(sys, r)
	if _, code := submit.PickCluster(sys, r); code >= 0 {
		return code
	}
	for _, p := range r.Components() {
		if p.Step.Env, err = submit.JobEnviron(p, sys.Environ); err != nil {
			return sys.Usage(err)
		}
	}
	if r.Client.TestOnly {
		q, code := submit.Submission(sys, r)
		if code != 0 {
			return code
		}
		return submit.TestOnly(sys, r, q)
	}
	if code := findPrograms(sys, r); code != 0 {
		return code
	}
	if r.Client.JobID != 0 {
		stepLeaves(sys, r)
		tellInside(sys, r)
		if r.Way.Async {
			return asyncStep(sys, r, cluster.JobID(r.Client.JobID))
		}
		return stepOf(sys, r, cluster.JobID(r.Client.JobID))
	}
	job, server, code := allocateShown(sys, r)
	if code != 0 {
		return code
	}
	sys.Tell(front.Told, "Nodes %s are ready for job", front.NodeText(job.AllocNodes()))
	tellGranted(sys, job)
	noX11, rc := forwardX11(sys, r, server, job)
	if rc == 0 {
		rc = stepOf(sys, r, job.ID)
	}
	noX11()
	exit := cluster.ExitStatus{Code: rc}
	switch {
	case r.OutOfMemory:
		exit = cluster.OOMExit
	case rc > 128:
		exit = cluster.ExitStatus{Signal: rc - 128}
	}
	_, err = front.Call(sys, api.FinishJob, cluster.Finish{Job: job.ID, Exit: exit})
	if err != nil && !front.IsKind(err, cluster.ErrFinished) {
		text, _ := front.ErrorText(err)
		sys.Say("error: job %d could not be ended: %s", job.ID, text)
	}
	return rc
}

// noAllocation says why a job has nothing to run a step in.
func noAllocation(s *front.Sys, id cluster.JobID) {
	why := "Invalid job id specified"
	resp, _ := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}})
	if len(resp.Jobs) == 1 {
		switch resp.Jobs[0].Phase {
		case cluster.Ending, cluster.Ended:
			s.Say("error: Slurm job %d has expired", id)
			return
		case cluster.Pending:
			why = "Job is pending execution"
		}
	}
	s.Say("error: Unable to confirm allocation for job %d: %s", id, why)
}

// inJob is why an option of jobs is not gone by.
const inJob = "for a job step within an existing job."

// stepLeaves says that what a job leaves of its nodes is not for its steps to say. Slurm says nothing of threads.
func stepLeaves(s *front.Sys, r *submit.Request) {
	for _, p := range r.Components() {
		if p.Way.X11 != "" {
			s.Say("error: Ignoring --x11 option %s Set x11 options at job allocation time.", inJob)
		}
		if p.Way.Prefetch {
			s.Say("error: Ignoring --container-prefetch %s Set it at job allocation time.", inJob)
		}
		switch {
		case p.Job.CoreSpec != nil:
			s.Say("error: Ignoring --core-spec value for a job step within an existing job. " +
				"Set specialized cores at job allocation time.")
		case p.Job.ThreadSpec != nil:
			s.Say("error: Ignoring --thread-spec value for a job step within an existing job. " +
				"Set specialized threads at job allocation time.")
		}
	}
}

// runStep creates a step and sees it through, again each time that a spare takes the place of one of its nodes. The
// result is srun's exit code.
func runStep(s *front.Sys, r *submit.Request, id cluster.JobID) int {
	for {
		sio, code := newStepIO(s, r)
		if code != 0 {
			return code
		}
		resp, code := createStep(s, r, id)
		if code != 0 {
			sio.close()
			return code
		}
		run := newStepRun(s, r, []api.StepResponse{resp}, sio)
		code = run.follow()
		if code == 0 || !restarts(run) {
			return code
		}
		r.Step.Append = true // what the first run has written stays
	}
}

// follow sees a step through that was created, in one part for each component that it runs on.
func (run *stepRun) follow() int {
	run.tellLaunched()
	if err := run.io.open(&run.resp); err != nil {
		run.kill()
		run.io.close()
		return run.sys.Fail("%v", err)
	}
	return run.run()
}

// daemonAway is how long srun waits for its node's daemon to come back.
const daemonAway = 30 * time.Second

func createStep(s *front.Sys, r *submit.Request, id cluster.JobID) (api.StepResponse, int) {
	return createStepAs(s, r, api.StepRequest{Job: id, Spec: r.Step, NoWait: true, Key: submit.RequestKey(s)})
}

// creates is the call that makes a step.
func creates(spec *cluster.StepSpec) api.Endpoint[api.StepRequest, api.StepResponse] {
	if spec.AsksPorts() {
		return api.CreatePorts
	}
	if spec.Cast != nil {
		return api.CreateCast
	}
	if spec.Helped(cluster.ManagerOf(spec.MPI)) {
		return api.CreateHelped
	}
	return api.CreateStep
}

// createStepAs makes a request for a step, and waits until its job has room for it.
func createStepAs(s *front.Sys, r *submit.Request, q api.StepRequest) (api.StepResponse, int) {
	id, create := q.Job, creates(&q.Spec)
	resp, err := front.Call(s, create, q)
	for end := time.Now().Add(daemonAway); front.IsUnreachable(err) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // the node's daemon restarts: the job runs on meanwhile
		resp, err = front.Call(s, create, q)
	}
	waited := false
	for front.IsKind(err, cluster.ErrBusy, cluster.ErrPortsBusy) || front.IsUnreachable(err) && waited {
		why, _ := front.ErrorText(err)
		if r.Client.Immediate != nil {
			return resp, s.Fail("Unable to create step for job %d: %s", id, why)
		}
		if !waited && r.Client.Quiet == 0 {
			s.Say("Job %d step creation temporarily disabled, retrying (%s)", id, why)
			sayHeld(s, r)
		}
		waited, q.NoWait = true, false
		if front.IsUnreachable(err) {
			time.Sleep(100 * time.Millisecond)
		}
		resp, err = front.Call(s, create, q)
	}
	if err == nil {
		if waited && r.Client.Quiet == 0 {
			s.Say("Step created for job %d", id)
		}
		return resp, 0
	}
	return resp, stepRefused(s, r, id, api.OldClient(err))
}

// sayHeld says what to do where a step of MPI_Comm_spawn waits, perhaps for its own parent.
func sayHeld(s *front.Sys, r *submit.Request) {
	if r.Way.Spawned {
		s.Say("why: MPI_Comm_spawn waits for what other steps of the job hold, its parent too: " +
			"SLURM_OVERLAP=1 in the environment has steps share it")
	}
}

// isExternal reports whether nothing of a job runs under muster.
func isExternal(s *front.Sys, id cluster.JobID) bool {
	resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}, Brief: true})
	return err == nil && len(resp.Jobs) == 1 && resp.Jobs[0].Spec.Kind == cluster.External
}

// stepRefused tells why a job cannot have a step.
func stepRefused(s *front.Sys, r *submit.Request, id cluster.JobID, err error) int {
	switch {
	case isExternal(s, id):
		s.Say("error: Unable to create step for job %d: Requested operation not supported on this system", id)
		s.Say("why: job %d is external: it holds its nodes for another manager", id)
	case front.IsKind(err, cluster.ErrJobID, cluster.ErrFinished):
		noAllocation(s, id)
		s.Tell(front.Info, "Check SLURM_JOB_ID environment variable. Expired or invalid job %d", id)
	case front.IsKind(err, cluster.ErrStepGRES):
		var e *api.Error
		if errors.As(err, &e) && e.Hint == cluster.NoGRES {
			s.Say("error: Step requested GRES but job doesn't have GRES")
		}
		s.Say("error: Unable to create step for job %d: Invalid generic resource (gres) specification", id)
	case front.IsKind(err, cluster.ErrStepNodes) && r.Step.MinNodes > 0:
		s.Say("error: %s", err.Error())
	case front.IsKind(err, cluster.ErrPortsMany):
		text, _ := front.ErrorText(err)
		s.Say("error: Unable to create step for job %d: %s", id, text)
		s.Say("why: %s", err)
	case front.IsKind(err, cluster.ErrMultiProg):
		sayErrors(s, err.Error())
	case front.IsKind(err, cluster.ErrStepBind):
		return bindRefused(s, err)
	default:
		text, _ := front.ErrorText(err)
		s.Say("error: Unable to create step for job %d: %s", id, text)
	}
	return s.ErrorExit()
}

func sayErrors(s *front.Sys, lines string) {
	for line := range strings.Lines(lines) {
		s.Say("error: %s", strings.TrimSuffix(line, "\n"))
	}
}

// bindFailed is the exit code of a binding that cannot be: Slurm's error 4032, modulo 256.
const bindFailed = 192

// bindRefused tells why tasks cannot be bound; the hint names the step and the nodes.
func bindRefused(s *front.Sys, err error) int {
	const text = "Unable to satisfy cpu bind request"
	sayErrors(s, err.Error())
	var e *api.Error
	if errors.As(err, &e) {
		words := strings.Fields(e.Hint)
		for i := 1; i < len(words); i++ {
			s.Say("error: Task launch for StepId=%s failed on node %s: %s", words[0], words[i], text)
		}
	}
	s.Say("error: Application launch failed: %s", text)
	s.Tell(front.Info, "Job step aborted")
	return bindFailed
}
