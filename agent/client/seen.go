package client

import (
	"slices"
	"syscall"

	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// A client may know more than the servers: their state may have been brought back from a file that
// is older. So it tells when it registers what it has heard and what runs here.

// seen is what a node tells, and if it was asked what became of attempts that it is taken to run. Called with mu held.
func (j *jobs) seen(name cluster.NodeName, held []cluster.Held, asked bool) *api.Seen {
	n := j.nodes[name]
	out := &api.Seen{Index: n.index, NextJob: max(j.nextJob, j.reports.NextJob()), Asked: asked}
	for _, h := range held {
		updates, err := j.reports.Ended(outbox.Attempt{Job: h.Job, Attempt: h.Attempt, Node: name})
		if err != nil {
			j.slog.Error("how a job ended cannot be told again", "job", h.Job, "node", name, "err", err)
		}
		out.Ended = append(out.Ended, updates...)
	}
	runs := map[cluster.JobID]int{} // attempts of which something lives
	for id, st := range j.have[name] {
		if st.State != step.Ended && !ours(id) {
			runs[id.Job] = id.Attempt
		}
	}
	for id, h := range n.jobs {
		out.NextJob = max(out.NextJob, id+1)
		key := outbox.Attempt{Job: id, Attempt: h.job.Attempt, Node: name}
		if h.isReported() || j.reports.IsOver(key) || j.reports.HasEnded(key) {
			continue
		}
		if h.isConfirmed() || runs[id] == h.job.Attempt {
			out.Jobs = append(out.Jobs, h.job)
			delete(runs, id)
		}
	}
	for id := range runs {
		out.NextJob = max(out.NextJob, id+1)
		out.Unknown = append(out.Unknown, id)
	}
	slices.SortFunc(out.Jobs, func(a, b *cluster.Job) int { return int(a.ID) - int(b.ID) })
	slices.Sort(out.Unknown)
	return out
}

// beginAnew has nodes ask for all of their work: the servers' numbers are others than those that they have seen.
// Called with mu held.
func (j *jobs) beginAnew(names []cluster.NodeName) {
	for _, name := range names {
		j.nodes[name].index = 0
	}
	// From which index on the servers know that an attempt is over counts no more: if one is named, it is told again.
	j.reports.ForgetAll(names)
	if len(names) > 0 {
		j.slog.Warn("the servers' state is older than what this machine has seen: it was told what is known here",
			"nodes", names)
	}
}

// tellAgain tells once more how attempts ended that the servers take for running: they knew it, and their state is
// older than that. Called with mu held.
func (j *jobs) tellAgain(n *node) {
	for id, h := range n.jobs {
		key := outbox.Attempt{Job: id, Attempt: h.job.Attempt, Node: n.name}
		if h.job.Phase == cluster.Ending || !j.reports.HasEnded(key) {
			continue
		}
		updates, err := j.reports.Ended(key)
		if err != nil || len(updates) == 0 {
			j.slog.Error("how a job ended cannot be told again", "job", id, "node", n.name, "err", err)
			continue
		}
		j.slog.Info("told again how a job ended", "job", id, "node", n.name)
		delete(n.jobs, id)
		j.reports.Put(n.name, withEnd(h.job, n.name, updates)...)
	}
}

// withEnd adds the end of a job that it did not have of itself: it was cancelled, or its time was over, and of that
// the servers know nothing any more. Its first node tells that it was ended by a signal, as it was.
func withEnd(j *cluster.Job, node cluster.NodeName, updates []cluster.Update) []cluster.Update {
	own := func(u cluster.Update) bool { return u.Kind == cluster.BatchOver || u.Kind == cluster.LaunchFailed }
	if j.Alloc == nil || j.Alloc.Shares[0].Node != node || slices.ContainsFunc(updates, own) {
		return updates
	}
	over := cluster.Update{Kind: cluster.BatchOver, Job: j.ID, Attempt: j.Attempt, At: updates[0].At,
		Exit: cluster.ExitStatus{Signal: int(syscall.SIGTERM)}}
	return append([]cluster.Update{over}, updates...)
}
