package client

import (
	"context"

	"dev.muster/api"
	"dev.muster/cluster"
)

// watchRoutes registers what is asked by those who look on beside a step's srun.
func watchRoutes(c *Client, m *api.Mux) {
	watch := func(ctx context.Context, who api.Caller, req []byte, conn api.Conn) error {
		return watchStep(ctx, c, who, req, conn)
	}
	describe := func(ctx context.Context, who api.Caller, q api.StepWait) (api.StepResponse, error) {
		return describeStep(ctx, c, who, q)
	}
	api.HandleTunnel(m, api.WatchStep, api.User, c.checkAttach, watch)
	api.Handle(m, api.DescribeStep, describe)
}

// describeStep tells of a step that runs.
func describeStep(ctx context.Context, c *Client, who api.Caller, q api.StepWait) (api.StepResponse, error) {
	if err := c.await(ctx, c.known); err != nil {
		return api.StepResponse{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ls, err := c.liveStep(q.ID, who)
	if err != nil {
		return api.StepResponse{}, err
	}
	if !ls.endedAt.IsZero() {
		err = cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "step %s has ended", stepName(q.ID))
		return api.StepResponse{}, err
	}
	return c.describe(ls), nil
}

// watchStep carries the stream of one node's part of a step to who looks on. The step is not forgotten
// before that one has its end.
func watchStep(ctx context.Context, c *Client, who api.Caller, req []byte, conn api.Conn) error {
	c.mu.Lock()
	ls, _, i, err := c.attachTarget(who, req)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	ctx, t := ls.take(ctx, i)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		ls.leave(t)
		c.drop(ls)
		c.poke()
	}()
	far, err := c.attachTo(ctx, ls.ids[i])
	if err != nil {
		return err
	}
	api.Splice(ctx, conn, far)
	return nil
}
