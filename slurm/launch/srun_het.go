package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// A step of a heterogeneous job is a step of its own in each component that it runs on, all of the same number, which
// the leader's first node keeps for them. Where each part runs is asked for first: so every task can be told of the
// whole, its world, in which the ranks go on from one component to the next.

// stepOf runs the step of a request in a job, or in some components of a heterogeneous one.
func stepOf(s *front.Sys, r *submit.Request, id cluster.JobID) int {
	if len(r.Parts) == 0 && r.Group == 0 {
		return runStep(s, r, id)
	}
	resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}})
	if err == nil && len(resp.Jobs) == 0 {
		err = cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not exist", id)
	}
	if err != nil {
		text, _ := front.ErrorText(err)
		return s.Fail("error: Unable to confirm allocation for job %d: %s", id, text)
	}
	jobs := resp.Jobs
	for _, p := range r.Components() {
		switch {
		case p.Group < len(jobs):
		case len(r.Parts) == 0:
			return s.Fail("Requested het-group offset exceeds highest hetjob index (%d > %d)", p.Group, len(jobs)-1)
		default:
			code := s.Fail("Attempt to run a job step with het group value of %d, "+
				"but the job allocation has maximum value of %d",
				p.Group, len(jobs)-1)
			if jobs[0].Het == nil {
				s.Fail("Job %d has one component only: give its tasks different commands by --multi-prog, "+
					"or submit a heterogeneous job (sbatch A : B)", id)
			}
			return code
		}
		if j := jobs[p.Group]; j.Phase != cluster.Running || j.Alloc == nil {
			return s.Fail("Unable to create step for job %d: component %s does not run", id, front.HetText(j.Het))
		}
	}
	sio, code := newStepIO(s, r)
	if code != 0 {
		return code
	}
	for _, p := range r.Parts { // srun's input is one for all, and so is how it writes
		p.Step.Stdin, p.Step.StdinOpen = r.Step.Stdin, r.Step.StdinOpen
		p.Step.Label, p.Step.Unbuffered = r.Step.Label, r.Step.Unbuffered
	}
	made, code := createParts(s, r, jobs)
	if code != 0 {
		sio.close()
		return code
	}
	return newStepRun(s, r, made, sio).follow()
}

// createParts creates a step in each component; all or none.
func createParts(s *front.Sys, r *submit.Request, jobs []*cluster.Job) (made []api.StepResponse, code int) {
	lead := jobs[0].ID
	spec := r.Step // any place will do
	spec.Layout = cluster.Layout{MinNodes: 1, Tasks: 1}
	spec.Overlap, spec.Env = true, nil
	kept, err := front.Call(s, api.CreateStep, api.StepRequest{
		Job: lead, Spec: spec, NoWait: true, Plan: true, Keep: true,
	})
	if err != nil {
		text, _ := front.ErrorText(err)
		return nil, s.Fail("Unable to create step for job %d: %s", lead, text)
	}
	plans, given := []api.StepResponse{}, []cluster.Share(nil)
	world := cluster.StepWorld{Job: lead, Number: kept.Step.ID.Step, Size: len(jobs)}
	for _, p := range r.Components() {
		plan, code := createStepAs(s, p, api.StepRequest{Job: jobs[p.Group].ID, Spec: p.Step, NoWait: true, Plan: true})
		if code != 0 {
			return nil, code
		}
		plans, given = append(plans, plan), append(given, jobs[p.Group].Alloc.Shares...)
		world.Tasks += plan.Step.Tasks
		world.Shares = append(world.Shares, plan.Step.Shares...)
	}
	world.Shares, world.Given = byName(world.Shares), byName(given)
	for k, p := range r.Components() {
		own := world
		p.Step.World = &own
		if p.Job.Kind == cluster.SrunJob && r.Client.JobID == 0 {
			p.Step.Env = append(p.Step.Env, oldGroups(jobs)...)
		}
		part, code := createStepAs(s, p, api.StepRequest{
			Job: jobs[p.Group].ID, Spec: p.Step, NoWait: true, Key: submit.RequestKey(s),
		})
		if code == 0 && part.Step.Tasks != plans[k].Step.Tasks {
			made = append(made, part)
			code = s.Fail("Unable to create step for job %d: component %d has room for %d tasks, and had for %d",
				lead, p.Group, part.Step.Tasks, plans[k].Step.Tasks)
		}
		if code != 0 {
			for _, m := range made {
				_, _ = front.Call(s, api.SignalStep, api.StepSignal{ID: m.Step.ID, Kill: true})
			}
			return nil, code
		}
		made = append(made, part)
		world.Rank, world.Node = world.Rank+part.Step.Tasks, world.Node+len(part.Step.Shares)
	}
	return made, 0
}

// byName sorts shares by their nodes.
func byName(shares []cluster.Share) []cluster.Share {
	out := slices.Clone(shares)
	slices.SortFunc(out, func(a, b cluster.Share) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// oldGroups are the variables of the components that tasks have where srun made the allocation: under their names of
// old alone, as in Slurm.
func oldGroups(jobs []*cluster.Job) []byte {
	var b strings.Builder
	for k, j := range jobs {
		for _, v := range [][2]string{{"JOB_ID", strconv.FormatUint(uint64(j.ID), 10)},
			{"JOB_ACCOUNT", j.Spec.Account}, {"JOB_PARTITION", j.Alloc.Partition},
			{"JOB_QOS", j.Spec.QOS},
			{
				"JOB_CPUS_PER_NODE",
				env.PerNode(j.Alloc.Shares, func(sh cluster.Share) int { return sh.TaskCPUs().Len() }),
			},
			{"JOB_NODELIST", front.NodeText(j.AllocNodes())}} {
			fmt.Fprintf(&b, "SLURM_%s_PACK_GROUP_%d=%s\x00", v[0], k, v[1])
		}
	}
	return []byte(b.String())
}
