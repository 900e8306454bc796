package client

import (
	"slices"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// tellLost tells of nodes that jobs led here have lost, and without which they go on. fresh are the nodes of which
// something was said. Called with mu held.
func tellLost(j *jobs, fresh map[cluster.NodeName]uint64) {
	for name := range fresh {
		for _, h := range j.nodes[name].jobs {
			lost := cluster.LostNodes(h.job)
			if len(lost) <= h.lost || h.job.Alloc.Shares[0].Node != name {
				continue
			}
			for _, n := range lost[h.lost:] {
				if _, again := h.job.Share(n); again {
					continue
				}
				h.ear.tell(j.cfg.LostNote(n), time.Now()) // srun finds out by itself
				loseNode(j.steps, h, n)
			}
			h.lost = len(lost)
		}
	}
}

// loseNode ends steps that had a part on a node which has failed, unless they were to go on without it.
// Called with mu held.
func loseNode(s *steps, h *jobHere, node cluster.NodeName) {
	for _, ls := range s.live {
		if ls.record.ID.Job != h.job.ID || ls.record.Attempt != h.job.Attempt || !ls.endedAt.IsZero() {
			continue
		}
		if !slices.ContainsFunc(ls.ids, func(id step.ID) bool { return id.Node == node }) {
			continue
		}
		if !ls.spec.NoKill {
			s.signalStepNow(ls, syscall.SIGKILL)
		}
	}
}
