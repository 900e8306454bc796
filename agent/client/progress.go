package client

import (
	"context"
	"slices"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// How far jobs say that they have come (muster progress).

// Bounds of what is remembered of a job's reports.
const (
	pacesKept  = 32 // times between reports of which the median is told
	pacesLeast = 4  // that must be known
)

// progress is what a job has told a node of how far it has come.
type progress struct {
	last  api.Progress
	at    time.Time
	paces []float64 // between the last reports, seconds
}

// note takes a report. One that says no more than the last one is none: the job may be telling it out of a loop.
func (p *progress) note(q *api.ProgressRequest, now time.Time) {
	if !p.at.IsZero() && q.Step == p.last.Step {
		return
	}
	if !p.at.IsZero() {
		p.paces = append(p.paces[max(0, len(p.paces)+1-pacesKept):], now.Sub(p.at).Seconds())
	}
	p.at = now
	p.last = api.Progress{Step: q.Step, Of: q.Of, Loss: q.Loss, At: now.Unix()}
	if len(p.paces) >= pacesLeast {
		sorted := slices.Sorted(slices.Values(p.paces))
		p.last.Pace = sorted[len(sorted)/2]
	}
}

// reportProgress takes what a job says of itself, on any of its nodes.
func reportProgress(ctx context.Context, c *Client, who api.Caller, q api.ProgressRequest) (api.Empty, error) {
	if q.Step < 0 || q.Of < 0 {
		return api.Empty{}, cluster.Errorf(cluster.Invalid, "",
			"step %d of %d: want numbers from 0 on", q.Step, q.Of)
	}
	if err := c.await(ctx, c.known, c.told); err != nil {
		return api.Empty{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.order {
		h := c.nodes[name].jobs[q.Job]
		if h == nil {
			continue
		}
		if _, err := c.jobFor(h, who); err != nil {
			return api.Empty{}, err
		}
		if h.progress == nil {
			h.progress = &progress{}
		}
		h.progress.note(&q, time.Now())
		return api.Empty{}, nil
	}
	return api.Empty{}, cluster.Errorf(cluster.NotFound, cluster.ErrJobID,
		"job %d does not run on this machine: a job reports its progress on one of its nodes", q.Job)
}

// progressOf is what a job has told one of this client's nodes; nil: nothing.
func progressOf(c *Client, node cluster.NodeName, id cluster.JobID) *api.Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lastProgress(c, id, node)
}

// lastProgress returns the last report of a job to nodes of this client; nil: there is none. Called with mu held.
func lastProgress(c *Client, id cluster.JobID, nodes ...cluster.NodeName) (last *api.Progress) {
	for _, name := range nodes {
		n := c.nodes[name]
		if n == nil {
			continue
		}
		if h := n.jobs[id]; h != nil && h.progress != nil {
			told := h.progress.last
			last = last.Later(&told)
		}
	}
	return last
}
