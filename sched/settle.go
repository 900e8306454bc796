package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// settling finds the partitions in which nothing starts yet, for jobs end there (CompleteWait): a job that waits gets the
// nodes of one that ended together, not one after the other. Without reduce_completing_frag these are all partitions, with
// it those that have nodes in common with the partition of a job that ends.
func settling(s *cluster.Snapshot, now time.Time) map[*cluster.Partition]bool {
	cfg := s.Config()
	if cfg.CompleteWait == 0 {
		return nil
	}
	var out map[*cluster.Partition]bool
	for j := range s.Live() {
		if !now.Before(cfg.SettlesUntil(j)) {
			continue
		}
		own, ok := s.Partition(j.Alloc.Partition)
		if cfg.CompleteLocal && !ok {
			continue
		}
		for i := range cfg.Partitions {
			p, ok := s.Partition(cfg.Partitions[i].Name)
			if ok && (!cfg.CompleteLocal || overlaps(p, own)) {
				if out == nil {
					out = map[*cluster.Partition]bool{}
				}
				out[p] = true
			}
		}
		if !cfg.CompleteLocal {
			break
		}
	}
	return out
}

// overlaps reports whether partitions have nodes in common.
func overlaps(p, o *cluster.Partition) bool {
	return p == o || p.All || o.All || slices.ContainsFunc(p.Nodes, func(n cluster.NodeName) bool { return slices.Contains(o.Nodes, n) })
}

// settles reports whether a job, of a heterogeneous one any component, waits for others that end, wherever it may run.
func (c *cycle) settles(j *cluster.Job) bool {
	if len(c.settling) == 0 {
		return false
	}
	all := []*cluster.Job{j}
	if j.Het != nil {
		all = c.s.Components(j)
	}
	return slices.ContainsFunc(all, func(o *cluster.Job) bool {
		return !slices.ContainsFunc(o.Spec.Partitions, func(name string) bool { p, ok := c.s.Partition(name); return ok && !c.settling[p] })
	})
}
