package launch

import (
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// tellGranted tells of the nodes that an allocation has.
func tellGranted(s *front.Sys, j *cluster.Job) {
	if !s.Tells(front.Told) || j == nil || j.Alloc == nil {
		return
	}
	s.Say("jobid %d: nodes(%d):`%s', cpu counts: %s", j.ID, len(j.Alloc.Shares),
		front.NodeText(j.AllocNodes()), front.CPUCounts(j.Alloc.Shares))
}

// tellInside tells of the nodes of the job in which a step is to run.
func tellInside(s *front.Sys, r *submit.Request) {
	if !s.Tells(front.Told) {
		return
	}
	q := api.JobQuery{Refs: []cluster.Ref{{Job: cluster.JobID(r.Client.JobID)}}}
	if resp, err := front.Call(s, api.ListJobs, q); err == nil && len(resp.Jobs) > 0 {
		tellGranted(s, resp.Jobs[0])
	}
}

// tellLaunched tells where the tasks of a step were started.
func (run *stepRun) tellLaunched() {
	for i, n := range run.resp.Nodes {
		ranks := run.ownRanks(i, n.Ranks)
		text := ranks.String()
		if len(n.Ranks) > 1 {
			text = "[" + text + "]"
		}
		run.sys.Tell(front.Told, "launching StepId=%s on host %s, %d tasks: %s", run.stepText(), n.Node,
			len(n.Ranks), text)
	}
}

// tellStarted tells of the tasks that every node has started.
func (run *stepRun) tellStarted() {
	for _, n := range run.resp.Nodes {
		run.sys.Tell(front.Told, "launch/slurm: _task_start: Node %s, %d tasks started", n.Node, len(n.Ranks))
	}
}

// ownRanks are the ranks of a node as its component counts them.
func (run *stepRun) ownRanks(node int, ranks []int) cluster.IDSet {
	var own []int
	for _, k := range ranks {
		own = append(own, k-run.first0[node])
	}
	return cluster.NewIDSet(own...)
}

// tellExit tells of tasks that have ended alike.
func (run *stepRun) tellExit(g *exitGroup) {
	s := "s"
	if g.rank.Len() == 1 {
		s = ""
	}
	run.sys.Tell(front.Told, "launch/slurm: _task_finish: "+
		"Received task exit notification for %d task%s of StepId=%s (status=0x%04x).",
		g.rank.Len(), s, run.stepText(), g.status)
}
