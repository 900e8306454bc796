package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/telemetry"
	"dev.muster/ui"
	"dev.muster/wire"
)

// GPUs that somebody has and nobody uses. Every server follows what samples tell; the one that leads holds
// the rules of partitions.

const (
	idleEvery = 2 * time.Second // between looks
	idleGap   = 3               // spans that may be missing
	idleLeast = 3 * time.Minute // for which nothing may be heard, or idleGap spans
	idleTold  = 5 * time.Second // for a job to be told
	idleBack  = 2 * time.Hour   // that a server which starts reads of its history
)

// idleGPUs is since when which GPUs of jobs do nothing.
type idleGPUs map[cluster.JobID]map[cluster.NodeName]*idleNode

// idleNode is a job on a node.
type idleNode struct {
	at    time.Time // until when is known
	span  time.Duration
	since map[int]time.Time // by GPU
}

// note takes in what a job's GPUs did in a time.
func (l idleGPUs) note(job cluster.JobID, node cluster.NodeName, s *telemetry.Sample, from, to time.Time) {
	if len(s.GPUs) == 0 {
		return
	}
	on := l[job]
	if on == nil {
		on = map[cluster.NodeName]*idleNode{}
		l[job] = on
	}
	n := on[node]
	if n == nil || from.Sub(n.at) > n.patience() {
		n = &idleNode{since: map[int]time.Time{}}
		on[node] = n
	}
	n.at, n.span = to, to.Sub(from)
	for _, g := range s.GPUs {
		switch util := g.Values[telemetry.GPUUtil]; {
		case util < 0 || util >= cluster.IdleGPUPercent:
			delete(n.since, g.Index)
		case n.since[g.Index].IsZero():
			n.since[g.Index] = from
		}
	}
}

func (n *idleNode) patience() time.Duration { return max(idleGap*n.span, idleLeast) }

// of is what of a job's GPUs has done nothing for a time.
func (l idleGPUs) of(j *cluster.Job, least time.Duration, now time.Time) (out api.IdleJob) {
	out.Job = j
	var nodes []cluster.NodeName
	for i := range j.Alloc.Shares {
		sh := &j.Alloc.Shares[i]
		out.GPUs += sh.GPUs.Len()
		n, here := l[j.ID][sh.Node], false
		if n == nil || now.Sub(n.at) > n.patience() {
			continue // nothing is known
		}
		for g := range sh.GPUs.All() {
			since, idle := n.since[g]
			if since.Before(j.Started) {
				since = j.Started
			}
			if !idle || now.Sub(since) < least {
				continue
			}
			if out.Idle++; out.Since.IsZero() || since.After(out.Since) {
				out.Since = since
			}
			here = true
		}
		if here {
			nodes = append(nodes, sh.Node)
		}
	}
	out.Nodes = joined(nodes)
	return out
}

// idleJobs are the jobs that run with GPUs which have done nothing for a time, those of the longest first;
// 0: the time of their partitions.
func (h *samples) idleJobs(snap *cluster.Snapshot, least time.Duration, now time.Time) (out []api.IdleJob) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.idle {
		j, ok := snap.Job(id)
		if !ok || j.Phase == cluster.Ended || j.Alloc == nil {
			if ok || id < snap.NextID {
				delete(h.idle, id)
			}
			continue
		}
		if j.Phase != cluster.Running {
			continue
		}
		p, wait, rule := partitionOf(snap, j), least, cluster.IdleRule("")
		if p != nil {
			rule = p.IdleGPU
		}
		if wait == 0 {
			if wait = cluster.IdleGPUTime; p != nil {
				wait = p.IdleTime()
			}
		}
		if one := h.idle.of(j, wait, now); one.Idle > 0 {
			one.Rule = rule
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b api.IdleJob) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return int(a.Job.ID) - int(b.Job.ID)
	})
	return out
}

func partitionOf(snap *cluster.Snapshot, j *cluster.Job) *cluster.Partition {
	p, ok := snap.Partition(j.Alloc.Partition)
	if !ok {
		return nil
	}
	return p
}

// listIdle answers for who may see the jobs.
func listIdle(s *Server) func(context.Context, api.Caller, api.IdleQuery) (api.IdleAnswer, error) {
	return func(_ context.Context, who api.Caller, q api.IdleQuery) (api.IdleAnswer, error) {
		snap, now := s.Snapshot(), time.Now()
		sees := visibilityOf(snap, who)
		list := s.samples.idleJobs(snap, q.For, now)
		return api.IdleAnswer{Now: now, Jobs: slices.DeleteFunc(list, func(j api.IdleJob) bool { return !sees.job(j.Job) })}, nil
	}
}

// enforceIdle holds the rules of partitions, for one term.
func enforceIdle(term context.Context, s *Server) {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	tried := map[cluster.JobID]int{} // the attempt that was dealt with
	for {
		select {
		case <-term.Done():
			return
		case <-tick.C:
		}
		snap := s.committed()
		if !slices.ContainsFunc(snap.Config().Partitions, func(p cluster.Partition) bool { return p.IdleGPU != "" }) {
			continue
		}
		for _, one := range s.samples.idleJobs(snap, 0, time.Now()) {
			if one.Rule == "" || one.Idle < one.GPUs || tried[one.Job.ID] == one.Job.Attempt+1 {
				continue
			}
			tried[one.Job.ID] = one.Job.Attempt + 1
			if err := dealIdle(term, s, &one); err != nil && term.Err() == nil {
				s.slog.Warn("a rule for idle GPUs could not be held", "job", one.Job.ID, "rule", one.Rule, "err", err)
			}
		}
	}
}

// idlePrefix begins what is said of a job by a rule.
const idlePrefix = "IdleGPU="

// dealIdle does what a partition's rule says with a job, and tells its user why: in its output, and in its record.
func dealIdle(ctx context.Context, s *Server, one *api.IdleJob) error {
	j, rule := one.Job, one.Rule
	if rule == cluster.IdleNotify && strings.HasPrefix(j.SystemComment, idlePrefix) {
		return nil // a former leader has told it
	}
	if rule == cluster.IdleRequeue && (j.Spec.Kind != cluster.Batch || j.Spec.Requeue != nil && !*j.Spec.Requeue) {
		rule = cluster.IdleCancel // as preemption does
	}
	will := map[cluster.IdleRule]string{cluster.IdleNotify: "leave them to others if it needs them no more",
		cluster.IdleRequeue: "it goes back into the queue", cluster.IdleCancel: "it is cancelled"}[rule]
	text := fmt.Sprintf("%s%s of partition %s: %d of %d GPUs below %d %% since %s; %s", idlePrefix, one.Rule, j.Alloc.Partition, one.Idle,
		one.GPUs, cluster.IdleGPUPercent, one.Since.Format("2006-01-02T15:04:05"), will)
	s.slog.Info("GPUs are idle", "job", j.ID, "user", j.Spec.User, "gpus", one.Idle, "since", one.Since, "rule", one.Rule)
	by := cluster.Identity{System: true}
	cmds := []cluster.Command{&cluster.AmendJobs{Jobs: []cluster.JobRecord{{ID: j.ID, Submitted: j.Submitted, UID: j.Spec.UID}},
		Amendment: cluster.Amendment{SystemComment: &text}}}
	if _, _, err := s.propose(ctx, by, cmds...); err != nil {
		s.slog.Warn("why a job is idle could not be noted", "job", j.ID, "err", err)
	}
	tellJob(ctx, s, j.ID, "muster: "+text)
	ref := cluster.Ref{Job: j.ID}
	var err error
	switch rule {
	case cluster.IdleRequeue:
		_, _, err = s.propose(ctx, by, &cluster.Requeue{Ref: ref})
	case cluster.IdleCancel:
		_, _, err = s.propose(ctx, by, &cluster.Cancel{Ref: ref})
	}
	return err
}

// tellJob writes a line into a job's output, if somebody takes it.
func tellJob(ctx context.Context, s *Server, job cluster.JobID, text string) {
	call := s.samples.callAs.Load()
	if call == nil {
		return
	}
	body, err := wire.Marshal(api.NotifyRequest{Job: job, Text: text})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, idleTold)
	defer cancel()
	root := api.Caller{Identity: cluster.Identity{User: "root", Admin: true}}
	status, reply, err := (*call)(ctx, root, api.NotifyJob.Method, api.NotifyJob.Path, body)
	if err != nil || status != http.StatusOK {
		s.slog.Warn("a job could not be told that its GPUs are idle", "job", job, "answer", string(reply), "err", err)
	}
}

// recallIdle reads of history what a server that has started was told before.
func recallIdle(ctx context.Context, s *Server) {
	db, ok := s.hist.(*acct.DB)
	if !ok {
		return
	}
	select {
	case <-s.current:
	case <-ctx.Done():
		return
	}
	now := time.Now()
	for j := range s.Snapshot().Live() {
		if j.Alloc == nil || j.Phase != cluster.Running || !slices.ContainsFunc(j.Alloc.Shares, func(sh cluster.Share) bool { return !sh.GPUs.Empty() }) {
			continue
		}
		list, err := acct.SamplesOf(db).Job(ctx, j.ID, "", now.Add(-idleBack), now)
		if err != nil {
			return
		}
		s.samples.mu.Lock()
		for _, row := range list {
			if n := s.samples.idle[j.ID][row.Node]; n != nil && n.at.After(row.At) {
				continue // it is known already
			}
			if one, err := telemetry.Unpack(row.Data); err == nil {
				s.samples.idle.note(j.ID, row.Node, one, row.At, row.At.Add(row.Span))
			}
		}
		s.samples.mu.Unlock()
	}
}

// viewIdle is the page of GPUs that jobs have and do not use.
func (s *pages) viewIdle(sees visibility, _ *http.Request) (string, string, any, error) {
	now := time.Now()
	v := ui.One{Head: fmt.Sprintf("jobs with GPUs below %d %% for the IdleGPUTime of their partition, %s unless it is set", cluster.IdleGPUPercent, span(cluster.IdleGPUTime))}
	for _, one := range s.idle(sees, now) {
		text := fmt.Sprintf("%d of %d GPUs since %s, %s, on %s", one.Idle, one.GPUs, stamped(one.Since), span(now.Sub(one.Since)), one.Nodes)
		if one.Rule != "" {
			text += "; the rule of the partition: " + string(one.Rule)
		}
		v.Rows = append(v.Rows, ui.Row{Name: fmt.Sprintf("job %s of %s", jobPath(one.Job)[len("/jobs/"):], one.Job.Spec.User), Value: text, To: jobPath(one.Job)})
	}
	if len(v.Rows) == 0 {
		v.Note = "There are none."
	}
	return "one", "Idle GPUs", v, nil
}

// idle are the jobs with idle GPUs that a visitor may see.
func (s *pages) idle(sees visibility, now time.Time) []api.IdleJob {
	if s.samples == nil {
		return nil
	}
	return slices.DeleteFunc(s.samples.idleJobs(sees.snap, 0, now), func(j api.IdleJob) bool { return !sees.job(j.Job) })
}

func joined(nodes []cluster.NodeName) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	return hostlist.Compress(names)
}
