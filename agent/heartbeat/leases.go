package heartbeat

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// Commands say which nodes are down, which do not respond and which do again, and which launches are late.
func (leases Leases) Commands(s *cluster.Snapshot, now time.Time) (out []cluster.Command) {
	var lost, quiet, heard []cluster.NodeName
	for name, l := range leases {
		n, ok := s.Node(name)
		if !ok || !n.Up || n.Expected == cluster.ExpectedExternal {
			continue
		}
		silent := !l.Quiet.IsZero() && l.Quiet.Before(now)
		switch {
		case l.Until.Before(now):
			lost = append(lost, n.Name)
		case silent && !n.Quiet:
			quiet = append(quiet, n.Name)
		case n.Quiet && !silent:
			heard = append(heard, n.Name)
		}
	}
	for _, list := range [][]cluster.NodeName{lost, quiet, heard} {
		slices.SortFunc(list, cluster.CompareNodes)
	}
	if lost != nil {
		out = append(out, &cluster.NodeDown{Nodes: lost, Why: "Not responding", Keep: true})
	}
	if quiet != nil {
		out = append(out, &cluster.NodeQuiet{Nodes: quiet, Quiet: true})
	}
	if heard != nil {
		out = append(out, &cluster.NodeQuiet{Nodes: heard})
	}
	if late := leases.late(s, now); late != nil {
		out = append(out, &cluster.Expire{Jobs: late, Why: cluster.EndLaunchFailure})
	}
	return out
}

// late lists the jobs that were not confirmed in time by nodes which are there. Jobs that nodes wanted
// to confirm while nobody led come first: they have had the time with this leader too. A node that has not called it
// yet is no reason to wait with a job that this leader began.
func (leases Leases) late(s *cluster.Snapshot, now time.Time) (late []cluster.JobID) {
	for j := range s.Unconfirmed(now) {
		mute := func(n cluster.NodeName) bool {
			l := leases[n]
			if l.Since.IsZero() {
				return l.Led.IsZero() || j.Started.Before(l.Led)
			}
			return now.Sub(l.Since) < s.Config().LaunchTimeout
		}
		if !slices.ContainsFunc(j.Waiting, mute) {
			late = append(late, j.ID)
		}
	}
	return late
}
