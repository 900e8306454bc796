package server

import (
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// settleTime is how long a leader whose state was brought back from a file waits for its nodes to tell what they
// know, before it takes and starts jobs without them.
const settleTime = 15 * time.Second

// unsure are those of some nodes that have not told yet what they know: one that is new here may have run jobs
// after the save.
func (s *Server) unsure(names []cluster.NodeName) (out []cluster.NodeName) {
	snap := s.Snapshot()
	if snap.Restored() == nil {
		return nil
	}
	for _, name := range names {
		if n, ok := snap.Node(name); !ok || n.Unsure {
			out = append(out, name)
		}
	}
	return out
}

// tellOf is what a node tells; one of an older version tells nothing.
func tellOf(name cluster.NodeName, seen *api.Seen) *cluster.NodeTell {
	c := &cluster.NodeTell{Node: name}
	if seen != nil {
		c.NextJob, c.Jobs, c.Unknown, c.Ended = seen.NextJob, seen.Jobs, seen.Unknown, seen.Ended
	}
	return c
}

// asks is what nodes are to be asked before they tell what they know: what they are taken to run. One of an older
// version is not.
func (s *Server) asks(q *api.RegisterRequest, anew []cluster.NodeName) map[cluster.NodeName][]cluster.Held {
	out := map[cluster.NodeName][]cluster.Held{}
	for _, name := range anew {
		if seen := q.Seen[name]; seen != nil && !seen.Asked {
			out[name] = s.Snapshot().HeldOn(name)
		}
	}
	return out
}

// unsettled is how many nodes are still waited for: what they run might be started elsewhere, and numbers that they
// have seen be given again.
func (s *Server) unsettled(snap *cluster.Snapshot, now time.Time) int {
	since := s.tookOver.Load()
	if snap.Restored() == nil || since == nil || now.Sub(*since) >= settleTime {
		return 0
	}
	return len(snap.Unsure())
}

// settled refuses submissions and reports for as long as nodes are waited for; they are tried again meanwhile. A
// report may be of a job that another node will tell of.
func (s *Server) settled() error {
	n := s.unsettled(s.Snapshot(), time.Now())
	if n == 0 {
		return nil
	}
	return cluster.Errorf(cluster.Unavailable, cluster.ErrNoLeader,
		"the cluster was restored a moment ago, and %d nodes have not told yet what they run; nothing was done, try again", n)
}
