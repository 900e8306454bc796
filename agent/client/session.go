package client

import (
	"context"
	"errors"
	"syscall"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// adoptSession puts a process of a session, one of ssh say, into the newest job that its user has here.
func (c *Client) adoptSession(ctx context.Context, who api.Caller, q api.AdoptRequest) (
	out api.AdoptResponse, err error) {
	if err := mayAdopt(who, q); err != nil {
		return out, err
	}
	if err := c.await(ctx, c.known, c.told); err != nil {
		return out, err
	}
	c.awaitJob(ctx, q.User)
	s, err := c.openSession(q)
	if err != nil {
		return out, err
	}
	id := s.spec.ID
	if err = c.beginSession(s); err == nil {
		err = c.cfg.Runner.Adopt(id, q.PID)
	}
	if err != nil {
		return out, notAdopted(q, id, err)
	}
	c.slog.Info("a session was put into a job", "job", id.Job, "node", id.Node, "pid", q.PID, "user", q.User)
	return api.AdoptResponse{Job: id.Job}, nil
}

// notAdopted words why a process is not in a job. That the job or its step has ended is what its user can bring about,
// by scancel or by killing the step's holder at the right moment: then there is no job that takes the session, and that
// lets nobody in whom a fault of the node would.
func notAdopted(q api.AdoptRequest, id step.ID, err error) error {
	if errors.Is(err, errJobEnded) || errors.Is(err, step.ErrUnknown) || errors.Is(err, unix.ESRCH) {
		return cluster.Errorf(cluster.NotFound, cluster.ErrJobID,
			"job %d of user %s takes no session, as it or its external step has just ended (%v): log in again",
			id.Job, q.User, err)
	}
	return cluster.Errorf(cluster.Conflict, "", "process %d could not be put into job %d: %v", q.PID, id.Job, err)
}

// mayAdopt refuses a caller that is not this node's root, and a request that names nobody.
func mayAdopt(who api.Caller, q api.AdoptRequest) error {
	if !who.Admin || who.PID == 0 || who.Member != "" {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"only root of this node may put processes into jobs")
	}
	if q.PID <= 1 || q.User == "" {
		return cluster.Errorf(cluster.Invalid, "", "process %d of user %q: want both", q.PID, q.User)
	}
	return nil
}

// errJobEnded is why a session's step was ended at once.
var errJobEnded = errors.New("the job has ended")

// session is the step in which a job's sessions are.
type session struct {
	job   *jobHere
	spec  step.Spec
	again bool // its holder was killed
}

// openSession finds the job that a user's session goes into, and has its step be known before it begins, so that the
// job does not end without it.
func (c *Client) openSession(q api.AdoptRequest) (s session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, several := c.newest(q.User)
	if several && q.Only {
		return s, cluster.Errorf(cluster.Denied, "", "user %s has several jobs on this node", q.User)
	}
	if h == nil {
		return s, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "user %s has no job on this node", q.User)
	}
	id := h.part(cluster.ExternStep)
	st := c.have.Get(id)
	s = session{job: h, spec: c.build.sessionSpec(h, id), again: st != nil && st.State == step.Ended}
	if st == nil || s.again {
		c.have.Put(id, &step.Status{ID: id, State: step.Starting})
	}
	return s, nil
}

// beginSession has the step of a job's sessions run.
func (c *Client) beginSession(s session) error {
	h, id := s.job, s.spec.ID
	var err error
	if s.again {
		err = c.cfg.Runner.Forget(id)
	}
	if err == nil {
		err = c.cfg.Runner.Start(s.spec)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.poke()
	if err != nil {
		if st := c.have.Get(id); st != nil && st.State == step.Starting {
			c.have.Drop(id) // there is nothing to end
		}
		return err
	}
	here := c.nodes[h.node].jobs[id.Job] == h
	if here && !h.isOver() && h.job.Phase != cluster.Ending {
		return nil
	}
	if c.have.Get(id) == nil { // what ended the job may have found nothing yet
		c.have.Put(id, &step.Status{ID: id, State: step.Starting})
	}
	c.try("kill", id, c.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
	return errJobEnded
}
