package launch

import (
	"slices"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// srun starts a step again when a spare of its job (sbatch --spare) has taken the place of one of its nodes.

const (
	// replaceWait is how long srun waits for the servers to notice that a node is gone with which it has lost contact.
	replaceWait  = 3 * time.Minute
	replaceEvery = 500 * time.Millisecond
)

// restarts reports whether a step that has failed is to start again, since a spare has taken the place of one of its
// nodes. If srun has lost contact with a node, it waits until the servers know what became of the node.
func restarts(run *stepRun) bool {
	if run.interrupted || run.unsent {
		return false
	}
	for end := time.Now().Add(replaceWait); ; {
		j, ok := jobOf(run.sys, run.parts[0].Job)
		if !ok || !startsStepsAgain(j) {
			return false
		}
		if node, gone := goneFrom(run, j); gone {
			run.sys.Say("StepId=%s starts again on %s: node %s was replaced", run.stepText(),
				front.NodeText(j.AllocNodes()), node)
			return true
		}
		if !run.lostContact || time.Now().After(end) {
			return false
		}
		time.Sleep(replaceEvery)
	}
}

// jobOf returns a job as the servers know it; false if they do not answer.
func jobOf(s *front.Sys, id cluster.JobID) (*cluster.Job, bool) {
	resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}})
	if err != nil || len(resp.Jobs) != 1 {
		return nil, false
	}
	return resp.Jobs[0], true
}

// startsStepsAgain reports whether steps of a job start again when a spare takes the place of a node.
func startsStepsAgain(j *cluster.Job) bool {
	asked := j.Spec.Survives()
	how := asked.Restart
	return j.Phase == cluster.Running && asked.Spares > 0 &&
		(how == cluster.RestartDefault || how == cluster.RestartStep)
}

// goneFrom returns a node of the step that its job has lost.
func goneFrom(run *stepRun, j *cluster.Job) (node cluster.NodeName, gone bool) {
	lost := cluster.LostNodes(j)
	for i := range run.resp.Nodes {
		node = run.resp.Nodes[i].Node
		if _, has := j.Share(node); !has && slices.Contains(lost, node) {
			return node, true
		}
	}
	return "", false
}
