package client

import (
	"context"
	"time"

	"dev.muster/cluster"
)

// check runs the site's health check on each node when it is due.
func (c *Client) check(ctx context.Context) {
	last := map[cluster.NodeName]time.Time{}
	t := time.NewTicker(checkPace)
	defer t.Stop()
	for {
		for _, n := range c.due(last, time.Now()) {
			c.cfg.siteProgram(ctx, c.slog, n.program, checkLimit, "SLURMD_NODENAME="+string(n.name))
			last[n.name] = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// dueCheck is a node whose check is due.
type dueCheck struct {
	name    cluster.NodeName
	program string
}

// due lists the nodes to check now. The first time is when the daemon comes up, as in Slurm.
func (c *Client) due(last map[cluster.NodeName]time.Time, now time.Time) (out []dueCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &c.config.HealthCheck
	if h.Program == "" {
		return nil
	}
	for _, name := range c.order {
		n := c.nodes[name]
		used := 0
		for _, j := range n.jobs {
			for _, sh := range j.job.Alloc.Shares {
				if sh.Node == name {
					used += sh.CPUs.Len()
				}
			}
		}
		at, ran := last[name]
		if n.index != 0 && (!ran || h.Interval > 0 && now.Sub(at) >= h.Interval) && h.Of(used, n.jobCPUs) {
			out = append(out, dueCheck{name, h.Program})
		}
	}
	return out
}
