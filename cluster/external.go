package cluster

import (
	"slices"
	"time"
)

// A job of kind External holds nodes for another manager, such as Kubernetes: nothing of it runs under muster, no node
// hears of it, and it takes no steps. It runs from its start until it is cancelled, preempted or out of time, or a
// node of it fails. External nodes have no client, and take no other jobs.

// hasExternStep reports whether the cluster gives a job an external step, for what others start in it.
func hasExternStep(c *Config, s *JobSpec) bool { return c.Contain && s.Kind != External }

// hearsNothing reports whether no node confirms the job, which has just changed: settleExternal does.
func hearsNothing(j *Job) bool {
	return j.Spec.Kind == External && (j.Phase == Starting || j.Phase == Ending)
}

// settleExternal confirms the starts and the ends of jobs of kind External.
func settleExternal(t *tx) {
	for len(t.external) > 0 {
		list := t.external
		t.external = nil
		for _, id := range list {
			if j, ok := t.jobs.Get(id); ok && hearsNothing(j) && !j.Preparing() {
				settleOne(t, j)
			}
		}
	}
}

// settleOne confirms the start or the end of a job on all of its nodes.
func settleOne(t *tx, j *Job) {
	if j.Phase == Ending {
		for _, name := range slices.Clone(j.Waiting) {
			if left, ok := t.jobs.Get(j.ID); ok && left.Phase == Ending {
				c := *left
				t.doneOn(&c, name)
			}
		}
		return
	}
	n := *j
	n.Waiting = nil
	if n.Het != nil {
		t.confirmed(&n)
	} else {
		goOn(&n, t.at)
	}
	t.putJob(&n)
	t.tell(&n)
}

// admitExternal refuses what a job of kind External cannot have.
func admitExternal(s *JobSpec) error {
	if s.Kind != External {
		return nil
	}
	return firstError(
		refuseIf(s.Script != "", Invalid, ErrExternalJob, "an external job has no script: nothing of it runs here"),
		refuseIf(s.Prefetch != nil || s.Inside != nil, Invalid, ErrExternalJob,
			"an external job has no container: nothing of it runs here"),
		refuseIf(s.Array != nil, Invalid, ErrExternalJob, "an external job has no tasks: submit one for each"),
		refuseIf(s.BurstBuffer != "", Invalid, ErrExternalJob, "an external job has no burst buffer"),
	)
}

// beExternal has an external node serve from now on, as nothing registers it.
func (n *Node) beExternal(at time.Time) {
	if n.Expected != ExpectedExternal {
		return
	}
	n.Inventory.External = true
	n.Up = true
	n.Registered = at
	n.LastBusy = at
}

// Wanted returns the nodes that the job must have. An external job that names more nodes than it asks for takes some
// of them.
func (s *JobSpec) Wanted() []NodeName {
	if s.Kind == External && s.MaxNodes > 0 && len(s.NodeList) > s.MaxNodes {
		return nil
	}
	return s.NodeList
}
