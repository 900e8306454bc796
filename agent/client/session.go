package client

import (
	"context"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// holder is the task of an external step: it keeps the step, until the job is over.
var holder = []string{"/bin/sleep", "infinity"}

// adoptSession puts a process of a session, one of ssh say, into the newest job that its user has here.
func (c *Client) adoptSession(ctx context.Context, who api.Caller, q api.AdoptRequest) (out api.AdoptResponse, err error) {
	if !who.Admin || who.PID == 0 || who.Member != "" {
		return out, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "only root of this node may put processes into jobs")
	}
	if q.PID <= 1 || q.User == "" {
		return out, cluster.Errorf(cluster.Invalid, "", "process %d of user %q: want both", q.PID, q.User)
	}
	if err := c.await(ctx, c.known, c.told); err != nil {
		return out, err
	}
	c.mu.Lock()
	h, several := c.newest(q.User)
	if several && q.Only {
		c.mu.Unlock()
		return out, cluster.Errorf(cluster.Denied, "", "user %s has several jobs on this node", q.User)
	}
	if h == nil {
		c.mu.Unlock()
		return out, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "user %s has no job on this node", q.User)
	}
	j, n, cfg := h.job, c.nodes[h.node], c.config
	id := step.ID{Job: j.ID, Attempt: j.Attempt, Step: cluster.ExternStep, Node: h.node}
	inv, found := n.Inventory, n.detected
	again := c.have[id] != nil && c.have[id].State == step.Ended
	c.mu.Unlock()
	l := &cluster.Launch{Job: j, Config: &cfg, Inventory: &inv, Node: h.node, Daemon: c.cfg.Daemon, Fenced: fenced(&cfg, &inv)}
	spec := step.Spec{ID: id, UID: j.Spec.UID, GID: j.Spec.GID, Groups: j.Spec.Groups, Dir: "/", Umask: j.Spec.Umask,
		Fence: fence(&cfg, &inv, found, l.ShareHere()), Private: c.private(n, id, l), HostName: c.hostName(n), Hosts: c.hosts(n),
		Tasks: []step.Task{{Argv: holder}}}
	if again { // its holder was killed
		err = c.cfg.Runner.Forget(id)
	}
	if err == nil {
		c.mu.Lock()
		if c.have[id] == nil || again {
			c.have[id] = &step.Status{ID: id, State: step.Starting}
		}
		c.mu.Unlock()
		if err = c.cfg.Runner.Start(spec); err != nil {
			c.mu.Lock()
			delete(c.have, id)
			c.mu.Unlock()
		}
	}
	if err == nil {
		c.poke()
		err = c.cfg.Runner.Adopt(id, q.PID)
	}
	if err != nil {
		return out, cluster.Errorf(cluster.Conflict, "", "process %d could not be put into job %d: %v", q.PID, j.ID, err)
	}
	c.slog.Info("a session was put into a job", "job", j.ID, "node", h.node, "pid", q.PID, "user", q.User)
	return api.AdoptResponse{Job: j.ID}, nil
}

// newest is the job of a user that began last on this client's nodes, nil if there is none, and whether there are several. Called with mu held.
func (c *Client) newest(user string) (best *jobHere, several bool) {
	for _, name := range c.order {
		for _, h := range c.nodes[name].jobs {
			j := h.job
			begun := j.Phase == cluster.Running || j.Phase == cluster.Suspended || j.Phase == cluster.Starting && (h.confirmed || h.before)
			if j.Spec.User != user || h.done || !begun {
				continue
			}
			several = best != nil
			if best == nil || j.Started.After(best.job.Started) || j.Started.Equal(best.job.Started) && j.ID > best.job.ID {
				best = h
			}
		}
	}
	return best, several
}
