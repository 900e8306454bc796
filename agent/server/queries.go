package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
)

func (s *Server) listJobs(ctx context.Context, who api.Caller, q api.JobQuery) (api.JobsResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.JobsResponse{}, err
	}
	q.Refs = cluster.MergeRefs(q.Refs)
	if missing := func(r cluster.Ref) bool { return len(snap.Find(r)) == 0 }; slices.ContainsFunc(q.Refs, missing) {
		s.CatchUp(ctx) // it may have been submitted elsewhere a moment ago
		snap = s.Snapshot()
	}
	out := selectJobs(snap, &q, visibility.Of(snap, who))
	if q.Starts {
		s.foretell(snap, out.Jobs)
	}
	return out, nil
}

// selectJobs answers a query with the jobs of a snapshot that the caller may see, by rising id unless jobs are named.
func selectJobs(snap *cluster.Snapshot, q *api.JobQuery, sees visibility.Scope) api.JobsResponse {
	out := api.JobsResponse{Index: snap.Index, Now: time.Now(), Brief: q.Brief, Federal: federal(snap)}
	lists := listsOf(snap, sees.Who, q.Listed && len(q.Refs) == 0)
	matches := q.Filter()
	sought := func(j *cluster.Job) bool {
		return (q.To == 0 || q.From <= j.ID && j.ID <= q.To) && matches(j)
	}
	add := func(j *cluster.Job) {
		if sought(j) && sees.Job(j) && lists.Job(j) {
			out.Jobs = append(out.Jobs, j)
		}
	}
	switch {
	case len(q.Refs) > 0:
		seen := map[cluster.JobID]bool{}
		for _, r := range q.Refs {
			found := slices.DeleteFunc(snap.Find(r), func(j *cluster.Job) bool { return !sees.Job(j) })
			if len(found) == 0 { // to whom may not see it it does not exist
				out.Missing = append(out.Missing, r)
			}
			for _, j := range found {
				if !seen[j.ID] {
					seen[j.ID] = true
					add(j)
				}
			}
		}
	case onlyLive(snap, q.Phases):
		for j := range snap.Live() {
			add(j)
		}
	case q.To != 0:
		for j := range snap.JobsFrom(q.From) {
			if j.ID > q.To {
				break
			}
			add(j)
		}
	default:
		for j := range snap.Jobs() {
			add(j)
		}
	}
	if q.Pages {
		slices.SortFunc(out.Jobs, func(a, b *cluster.Job) int { return cmp.Compare(a.ID, b.ID) })
		out.Jobs, out.Rest = firstPage(out.Jobs)
	}
	return out
}

// listsOf says what an answer leaves out: nothing unless it is to be as a list.
func listsOf(snap *cluster.Snapshot, who api.Caller, listed bool) visibility.Lists {
	if !listed {
		return visibility.Lists{}
	}
	return visibility.ListsOf(snap, who)
}

// firstPage cuts a list (by rising id) after the first page, which is short since nothing is done
// beside it, and names the ranges of the others.
func firstPage(jobs []*cluster.Job) (page []*cluster.Job, rest []api.JobRange) {
	first := min(len(jobs), api.FirstJobs)
	for at := first; at < len(jobs); at += api.PageJobs {
		last := min(at+api.PageJobs, len(jobs)) - 1
		rest = append(rest, api.JobRange{From: jobs[at].ID, To: jobs[last].ID})
	}
	return jobs[:first], rest
}

func (s *Server) listNodes(ctx context.Context, who api.Caller, q api.NodeQuery) (api.NodesResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.NodesResponse{}, err
	}
	if err := visibility.Of(snap, who).Nodes(); err != nil {
		return api.NodesResponse{}, err
	}
	out := api.NodesResponse{Index: snap.Index, Now: time.Now(), Partitions: withModes(snap.Config()),
		Federal: federal(snap)}
	lists := listsOf(snap, who, q.Listed)
	out.Partitions = slices.DeleteFunc(out.Partitions,
		func(p cluster.Partition) bool { return !lists.Partition(p.Name) })
	mark, misplaced := api.ReservedNow(snap, out.Now), snap.Misplaced()
	add := func(n *cluster.Node) {
		l := snap.Load(n.Name)
		info := api.NodeInfo{Node: *n, Load: *l, Misplaced: misplaced[n.Name]}
		for _, id := range l.Jobs {
			if j, ok := snap.Job(id); ok && j.On(n.Name).Phase == cluster.Ending {
				info.Ending = true
			}
		}
		mark(&info)
		out.Nodes = append(out.Nodes, info)
	}
	if len(q.Names) == 0 {
		for n := range snap.Nodes() {
			if lists.Node(n.Name) {
				add(n)
			}
		}
	}
	told := make(map[cluster.NodeName]bool)
	for _, name := range q.Names {
		n, ok := snap.Node(name)
		switch {
		case !ok || !lists.Node(name):
			out.Missing = append(out.Missing, name)
		case !told[name]: // an answer about one node is a hundred times as long as its name
			told[name] = true
			add(n)
		}
	}
	return out, nil
}

func (s *Server) listSteps(ctx context.Context, who api.Caller, q api.StepQuery) (api.StepsResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.StepsResponse{}, err
	}
	out := api.StepsResponse{Now: time.Now()}
	sees := visibility.Of(snap, who)
	lists := listsOf(snap, who, q.Listed)
	add := func(j *cluster.Job) {
		if !sees.Job(j) || !lists.Job(j) || len(q.Users) > 0 && !slices.Contains(q.Users, j.Spec.UID) {
			return
		}
		before := len(out.Steps)
		out.Steps = append(out.Steps, j.OwnSteps()...)
		for st := range snap.Steps(j.ID) {
			out.Steps = append(out.Steps, st)
		}
		if len(out.Steps) > before {
			out.Jobs = append(out.Jobs, j)
		}
	}
	if q.Job != 0 {
		if j, ok := snap.Job(q.Job); ok && j.Phase != cluster.Ended {
			add(j)
		} else {
			return out, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run", q.Job)
		}
		return out, nil
	}
	for j := range snap.Live() {
		add(j)
	}
	return out, nil
}

// withModes are the partitions, each with the PreemptMode that is active there.
func withModes(cfg *cluster.Config) []cluster.Partition {
	out := slices.Clone(cfg.Partitions)
	for i := range out {
		if mode := cfg.PreemptModeText(&out[i]); mode != string(cluster.PreemptOff) {
			out[i].PreemptMode = mode
		}
	}
	return out
}

// visibleTo is what a caller may see of the present. Where nothing is hidden no snapshot is made for it.
func (s *Server) visibleTo(who api.Caller) visibility.Scope {
	s.mu.Lock()
	cfg := s.state.Config()
	s.mu.Unlock()
	if who.Operator() || !visibility.Restricts(cfg) {
		return visibility.Scope{Who: who, All: true}
	}
	return visibility.Of(s.committed(), who)
}

// onlyLive reports whether a query asks for nothing but jobs that have nodes: none of those is over and stages out.
func onlyLive(snap *cluster.Snapshot, phases []cluster.Phase) bool {
	if len(phases) == 0 || slices.Contains(phases, cluster.Pending) || slices.Contains(phases, cluster.Ended) {
		return false
	}
	return snap.Config().Burst == nil || !slices.Contains(phases, cluster.Ending)
}
