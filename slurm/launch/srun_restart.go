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
	// replaceWait is how long srun waits for the servers to notice that a node is gone with which it has lost contact,
	// or until one of them answers.
	replaceWait = 3 * time.Minute
	// replaceLag is how far the server that answers may be behind the one that has replaced a node.
	replaceLag   = 3 * time.Second
	replaceEvery = 500 * time.Millisecond
)

// restarts reports whether a step that has failed is to start again, since a spare has taken the place of one of its
// nodes. If srun has lost contact with a node, it waits until the servers know what became of the node.
func restarts(run *stepRun) bool {
	if run.interrupted || run.unsent || !run.resp.Again {
		return false
	}
	began := time.Now()
	for {
		j, err := jobOf(run.sys, run.parts[0].Job)
		if err == nil && !startsStepsAgain(j) {
			return false
		}
		if node, gone := goneFrom(run, j); gone {
			run.sys.Say("StepId=%s starts again on %s: node %s was replaced", run.stepText(),
				front.NodeText(j.AllocNodes()), node)
			return true
		}
		patience := replaceWait
		if err == nil && !run.lostContact {
			patience = replaceLag
		}
		if time.Since(began) > patience {
			return false
		}
		time.Sleep(replaceEvery)
	}
}

// jobOf returns a job as the servers know it; nil if it is not in the queue any more. The error is that they do not
// answer.
func jobOf(s *front.Sys, id cluster.JobID) (*cluster.Job, error) {
	resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}})
	if err != nil && !front.IsKind(err, cluster.ErrJobID) {
		return nil, err
	}
	if len(resp.Jobs) != 1 {
		return nil, nil
	}
	return resp.Jobs[0], nil
}

// startsStepsAgain reports whether steps of a job start again when a spare takes the place of a node; nil: it is over.
func startsStepsAgain(j *cluster.Job) bool {
	return j != nil && j.Phase == cluster.Running && j.Spec.StepsAgain()
}

// goneFrom returns a node of the step that its job has lost; j is nil where the servers do not answer.
func goneFrom(run *stepRun, j *cluster.Job) (node cluster.NodeName, gone bool) {
	if j == nil {
		return "", false
	}
	lost := cluster.LostNodes(j)
	for i := range run.resp.Nodes {
		node = run.resp.Nodes[i].Node
		if _, has := j.Share(node); !has && slices.Contains(lost, node) {
			return node, true
		}
	}
	return "", false
}
