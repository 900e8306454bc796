package client

import (
	"cmp"
	"context"
	"errors"
	"syscall"
	"time"

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
	c.awaitJob(ctx, q.User)
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
	again := c.have.get(id) != nil && c.have.get(id).State == step.Ended
	if c.have.get(id) == nil || again { // known before it begins, so that the job does not end without it
		c.have.put(id, &step.Status{ID: id, State: step.Starting})
	}
	c.mu.Unlock()
	l := &cluster.Launch{Job: j, Config: &cfg, Inventory: &inv, Node: h.node, Daemon: c.cfg.Daemon, Fenced: fenced(&cfg, &inv)}
	spec := step.Spec{ID: id, UID: j.Spec.UID, GID: j.Spec.GID, Groups: j.Spec.Groups, Dir: "/", Umask: j.Spec.Umask,
		Fence: fence(&cfg, &inv, found, l.ShareHere()), Private: c.private(n, id, l), HostName: c.hostName(n), Hosts: c.hosts(n),
		Tasks: []step.Task{{Argv: holder}}}
	if again { // its holder was killed
		err = c.cfg.Runner.Forget(id)
	}
	if err == nil {
		err = c.cfg.Runner.Start(spec)
	}
	c.mu.Lock()
	switch st := c.have.get(id); {
	case err != nil && st != nil && st.State == step.Starting:
		c.have.drop(id) // there is nothing to end
	case err == nil && (n.jobs[j.ID] != h || h.done || h.job.Phase == cluster.Ending): // what ended it may have found nothing yet
		c.have.put(id, cmp.Or(st, &step.Status{ID: id, State: step.Starting}))
		c.try("kill", id, c.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
		err = errors.New("the job has ended")
	}
	c.mu.Unlock()
	c.poke()
	if err == nil {
		err = c.cfg.Runner.Adopt(id, q.PID)
	}
	if err != nil {
		return out, cluster.Errorf(cluster.Conflict, "", "process %d could not be put into job %d: %v", q.PID, j.ID, err)
	}
	c.slog.Info("a session was put into a job", "job", j.ID, "node", h.node, "pid", q.PID, "user", q.User)
	return api.AdoptResponse{Job: j.ID}, nil
}

// sessionWait is how long a session waits for a job that its user does not have here: the servers, and so squeue,
// know of what they have just given a moment before its node does.
const sessionWait = 2 * time.Second

// awaitJob waits until a user has a job here, or should have.
func (c *Client) awaitJob(ctx context.Context, user string) {
	late := time.NewTimer(sessionWait)
	defer late.Stop()
	for {
		c.mu.Lock()
		h, _ := c.newest(user)
		arrived := c.arrived
		c.mu.Unlock()
		if h != nil {
			return
		}
		select {
		case <-arrived:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// takesSessions reports whether a job has begun here, its prolog done: its confirmation may still be on its way.
func (h *jobHere) takesSessions() bool {
	switch h.job.Phase {
	case cluster.Running, cluster.Suspended:
		return !h.done
	case cluster.Starting:
		return !h.done && (h.confirmed || h.launching || h.before)
	}
	return false
}

// newest is the job of a user that began last on this client's nodes, nil if there is none, and whether there are
// several. Called with mu held.
func (c *Client) newest(user string) (best *jobHere, several bool) {
	for _, name := range c.order {
		for _, h := range c.nodes[name].jobs {
			j := h.job
			if j.Spec.User != user || !h.takesSessions() {
				continue
			}
			several = several || best != nil
			if best == nil || j.Started.After(best.job.Started) || j.Started.Equal(best.job.Started) && j.ID > best.job.ID {
				best = h
			}
		}
	}
	return best, several
}
