package server

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
)

// listBooks answers with accounts, users, associations and QOS. Before anything was changed there is what
// the first change finds.
func (s *Server) listBooks(ctx context.Context, who api.Caller, q api.AfterQuery) (api.BooksResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.BooksResponse{}, err
	}
	out := api.BooksResponse{Index: snap.Index, Cluster: snap.Config().ClusterName,
		TRES: snap.Config().TRES, TrackWCKey: snap.Config().TracksWCKey(), Priority: snap.Config().Priority,
		Enforce:  &snap.Config().Enforce,
		Accounts: slices.Collect(snap.Accounts()), Users: slices.Collect(snap.Users()),
		Assocs: slices.Collect(snap.Assocs()),
		QOS:    slices.Collect(snap.QOSes()), RunMins: runMins(snap, time.Now())}
	sees := visibility.Of(snap, who)
	out.Users = slices.DeleteFunc(out.Users,
		func(u *cluster.User) bool { return !sees.Owner(cluster.PrivateUsers, u.Name, "") })
	out.Assocs = slices.DeleteFunc(out.Assocs, func(a *cluster.Association) bool {
		return a.User != "" && !(sees.Owner(cluster.PrivateUsers, a.User, a.Account) && sees.Owner(cluster.PrivateUsage, a.User, a.Account))
	})
	shown := map[cluster.AssocID]bool{}
	for _, a := range out.Assocs {
		shown[a.ID] = true
	}
	maps.DeleteFunc(out.RunMins, func(id cluster.AssocID, _ []cluster.Amount) bool { return !shown[id] })
	slices.SortFunc(out.QOS, func(a, b *cluster.QOS) int { return cmp.Compare(a.ID, b.ID) })
	if !snap.Accounting() {
		account, user, qos, assocs := cluster.FirstBooks()
		out.Accounts = []*cluster.Account{account}
		out.Users = []*cluster.User{user}
		out.QOS = []*cluster.QOS{qos}
		out.Assocs = assocs
	}
	return out, nil
}

// runMins sums for each association, and those above it, what runs there times the minutes that are left.
func runMins(snap *cluster.Snapshot, now time.Time) map[cluster.AssocID][]cluster.Amount {
	out := map[cluster.AssocID][]cluster.Amount{}
	for j := range snap.Live() {
		if j.Assoc == 0 || j.Limit == cluster.Unlimited {
			continue
		}
		left := max(j.Limit-j.RunTime(now), 0).Minutes()
		amounts := snap.AmountsOf(j)
		amounts = append(amounts, cluster.Amount{TRES: "billing", N: snap.BillingOf(j.Alloc.Partition, amounts)})
		for a := range snap.Line(j.Assoc) {
			sum := out[a.ID]
			for _, x := range amounts {
				i := slices.IndexFunc(sum, func(y cluster.Amount) bool { return y.TRES == x.TRES })
				if i < 0 {
					i, sum = len(sum), append(sum, cluster.Amount{TRES: x.TRES})
				}
				sum[i].N += x.N * left
			}
			out[a.ID] = sum
		}
	}
	return out
}

// listPriorities answers with the factors of every pending job that grows older, as they were when it was
// last ranked.
func (s *Server) listPriorities(ctx context.Context, who api.Caller, q api.AfterQuery) (api.PrioritiesResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.PrioritiesResponse{}, err
	}
	p := snap.Config().Priority
	out := api.PrioritiesResponse{Priority: p, TRESWeights: snap.Config().Keys["priorityweighttres"],
		Federal: federal(snap)}
	if !p.Multifactor {
		return out, nil
	}
	r, now, sees := snap.Ranker(), time.Now(), visibility.Of(snap, who)
	for j := range snap.Jobs() {
		if !ranked(j, &p, now) || !sees.Job(j) {
			continue
		}
		at := j.Submitted
		if snap.Decayed.After(at) {
			at = snap.Decayed
		}
		brief := cluster.Job{Spec: &cluster.JobSpec{}}
		j.Brief(&brief)
		for _, part := range j.Spec.Partitions {
			row := api.JobPriority{Job: &brief, Partition: part, Sum: j.Priority}
			if j.Spec.Priority == nil {
				row.Factors = r.Factors(j, part, at)
				if len(j.Spec.Partitions) > 1 {
					row.Sum = row.Factors.Weigh(&p.Weights).Priority()
				}
			}
			out.Jobs = append(out.Jobs, row)
		}
	}
	return out, nil
}

// ranked reports whether a job is one whose priority is computed: it may start, or with CALCULATE_RUNNING it runs.
func ranked(j *cluster.Job, p *cluster.PriorityConfig, now time.Time) bool {
	if j.Held != cluster.NotHeld || j.Accrue.IsZero() || j.Accrue.After(now) || cluster.Elsewhere(j) {
		return false
	}
	return j.Phase == cluster.Pending || p.CalculateRunning && j.Phase != cluster.Ended
}
