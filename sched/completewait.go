package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// partitionsCompleting finds the partitions in which nothing starts yet because jobs are completing (CompleteWait),
// and of these jobs the one that will take longest: so a waiting job gets the nodes of one that ends together, and
// not one by one. Without reduce_completing_frag these are all partitions, with it those that share nodes with the
// partition of such a job.
func partitionsCompleting(s *cluster.Snapshot, now time.Time) map[*cluster.Partition]*cluster.Job {
	cfg := s.Config()
	if cfg.CompleteWait == 0 {
		return nil
	}
	last := map[*cluster.Partition]*cluster.Job{} // by partition; nil: of any partition
	for j := range s.Live() {
		until := cfg.SettlesUntil(j)
		if !now.Before(until) {
			continue
		}
		var own *cluster.Partition
		if cfg.CompleteLocal {
			own, _ = s.Partition(j.Alloc.Partition)
			if own == nil {
				continue
			}
		}
		if l := last[own]; l == nil || cfg.SettlesUntil(l).Before(until) {
			last[own] = j
		}
	}
	if len(last) == 0 {
		return nil
	}
	out := map[*cluster.Partition]*cluster.Job{}
	for i := range cfg.Partitions {
		p, ok := s.Partition(cfg.Partitions[i].Name)
		if !ok {
			continue
		}
		longest := func(j *cluster.Job) {
			if l := out[p]; j != nil && (l == nil || cfg.SettlesUntil(l).Before(cfg.SettlesUntil(j))) {
				out[p] = j
			}
		}
		longest(last[nil])
		for k := range cfg.Partitions {
			if o, ok := s.Partition(cfg.Partitions[k].Name); ok && last[o] != nil && shareNodes(p, o) {
				longest(last[o])
			}
		}
	}
	return out
}

// nodesCompleting are the nodes of those partitions, which jobs of other partitions do not get meanwhile, either.
func (c *cycle) nodesCompleting() (nodes place.NodeSet) {
	for i := range c.s.Config().Partitions {
		p, ok := c.s.Partition(c.s.Config().Partitions[i].Name)
		if !ok || !c.s.Config().CompleteLocal || c.completing[p] == nil {
			continue
		}
		if nodes == nil {
			nodes = c.free.NoNodes()
		}
		for _, at := range c.free.Members(p) {
			nodes[at] = true
		}
	}
	return nodes
}

// shareNodes reports whether partitions have nodes in common.
func shareNodes(p, o *cluster.Partition) bool {
	return p == o || p.All || o.All || slices.ContainsFunc(p.Nodes,
		func(n cluster.NodeName) bool { return slices.Contains(o.Nodes, n) })
}

// waitsForCompleting reports whether all partitions of a job, or of any component of it, wait for completing jobs.
func (c *cycle) waitsForCompleting(j *cluster.Job) bool {
	if len(c.completing) == 0 {
		return false
	}
	all := []*cluster.Job{j}
	if j.Het != nil {
		all = c.s.Components(j)
	}
	return slices.ContainsFunc(all, func(o *cluster.Job) bool {
		return !slices.ContainsFunc(o.Spec.Partitions,
			func(name string) bool { p, ok := c.s.Partition(name); return ok && c.completing[p] == nil })
	})
}
