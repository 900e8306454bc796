package client

import (
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// A node runs the cluster's prolog before anything of a job begins there, and its epilog when nothing of the job is
// left: each as a step of root, with a number that no user's step has, so that the supervisor keeps it over the
// death of the daemon. A job is confirmed only once its prolog has succeeded, so that a gang begins when all nodes
// are prepared.
const (
	prologStep = -20
	epilogStep = -21
)

// ours reports whether a step is not the job's but the node's own.
func ours(id step.ID) bool { return id.Step <= prologStep && id.Step >= fetchStep }

// prolog says what is to be done about the prolog before a job goes on, and whether it may.
func prolog(h *jobHere, own *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (
	next actionKind, ready bool) {
	switch {
	case cfg.Prolog == "" || h.job.Phase != cluster.Starting || h.hasBegun():
		return 0, true
	case own == nil:
		return startProlog, false
	case own.State != step.Ended:
		return overdue(own, cfg, now, sooner), false
	}
	return prologFailed, own.Succeeded()
}

// epilog says what is to be done about the epilog before a job's node is clean, and whether it is.
func epilog(h *jobHere, own *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) (
	next actionKind, ready bool) {
	switch {
	case cfg.Epilog == "":
		return 0, true
	case own == nil:
		return startEpilog, false
	case own.State != step.Ended:
		return overdue(own, cfg, now, sooner), false
	}
	return 0, true
}

// overdue kills a script that runs longer than it may.
func overdue(own *step.Status, cfg *cluster.Config, now time.Time, sooner func(time.Time)) actionKind {
	if cfg.PrologTimeout == 0 || len(own.Tasks) == 0 || own.Tasks[0].Started.IsZero() {
		return nothing
	}
	if at := own.Tasks[0].Started.Add(cfg.PrologTimeout); at.After(now) {
		sooner(at)
		return nothing
	}
	return killScript
}

// With --container-prefetch a node gets the job's image after the prolog and before it confirms the job, whose time
// begins to count once all nodes have confirmed. It is a step of the node's own, as the prolog is.
const fetchStep = -22

// prefetch says what is to be done about the image before a job goes on, and whether it may. Before it comes the
// prolog, of which before and done tell the same.
func prefetch(h *jobHere, own *step.Status, before actionKind, done bool) (next actionKind, ready bool) {
	switch {
	case !done:
		return before, false
	case h.job.Spec.Prefetch == nil || h.job.Phase != cluster.Starting || h.hasBegun():
		return nothing, true
	case own == nil:
		return startFetch, false
	case own.State != step.Ended:
		return nothing, false
	}
	return fetchFailed, own.Succeeded()
}
