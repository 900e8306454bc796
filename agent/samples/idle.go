package samples

import (
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/telemetry"
)

// When nothing is known any more.
const (
	idleGap   = 3               // spans that may be missing
	idleLeast = 3 * time.Minute // for which nothing may be heard, or idleGap spans
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

// Of is what of a job's GPUs has done nothing for a time.
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

func partitionOf(snap *cluster.Snapshot, j *cluster.Job) *cluster.Partition {
	p, ok := snap.Partition(j.Alloc.Partition)
	if !ok {
		return nil
	}
	return p
}

func joined(nodes []cluster.NodeName) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	return hostlist.Compress(names)
}
