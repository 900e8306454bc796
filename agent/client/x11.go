package client

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"dev.muster/agent/x11"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Displays of jobs (package agent/x11). Each lives as long as the tunnel of the srun or salloc that serves it, or
// until its job is over here; all steps of the job on the node get it.

// x11Routes registers what those ask who serve displays.
func (c *Client) x11Routes(m *api.Mux) {
	check := func(who api.Caller, req []byte) error {
		if err := c.await(context.Background(), c.known, c.told); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		_, q, err := c.x11Job(who, req)
		if err == nil && q.Take == 0 {
			err = c.x11Allowed()
		}
		return err
	}
	serve := func(ctx context.Context, who api.Caller, req []byte, conn api.Conn) error {
		return c.serveX11(ctx, who, req, conn)
	}
	api.HandleTunnel(m, api.ForwardX11, api.User, check, serve)
}

// x11Allowed refuses where the site does not want displays. Called with mu held.
func (c *Client) x11Allowed() error {
	if allowed, _ := cluster.X11(&c.config); !allowed {
		return cluster.Errorf(cluster.Invalid, "", "X11 forwarding not available: slurm.conf has no PrologFlags=X11")
	}
	return nil
}

// x11Job is the job that a request is about, which is its caller's. Called with mu held.
func (c *Client) x11Job(who api.Caller, req []byte) (*jobHere, api.X11Request, error) {
	var q api.X11Request
	if err := wire.Unmarshal(req, &q); err != nil {
		return nil, q, cluster.Errorf(cluster.Invalid, "", "bad request for a display: %v", err)
	}
	n := c.nodes[q.Node]
	if n == nil || n.jobs[q.Job] == nil {
		return nil, q, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run on %s", q.Job, q.Node)
	}
	h := n.jobs[q.Job]
	switch phase := h.job.Phase; {
	case who.UID != h.job.Spec.UID && !who.Admin:
		return nil, q, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "job %d is not yours", q.Job)
	case h.isOver() || phase >= cluster.Ending:
		return nil, q, cluster.Errorf(cluster.Conflict, cluster.ErrFinished, "job %d does not run any more", q.Job)
	}
	return h, q, nil
}

// serveX11 holds a display, or carries one of its connections.
func (c *Client) serveX11(ctx context.Context, who api.Caller, req []byte, tunnel api.Conn) error {
	if q := (api.X11Request{}); wire.Unmarshal(req, &q) == nil && q.Take > 0 {
		c.mu.Lock()
		h, _, err := c.x11Job(who, req)
		if err != nil {
			c.mu.Unlock()
			return err
		}
		d := h.display
		c.mu.Unlock()
		if conn := d.Take(q.Take); conn != nil {
			api.Splice(ctx, tunnel, conn)
		}
		return nil
	}
	d, err := c.openX11(who, req)
	if err != nil {
		_, _ = fmt.Fprintf(tunnel, "error: %v\n", err)
		return err
	}
	return d.Serve(ctx, tunnel)
}

// openX11 gives a job its display here. A tunnel that is made again may find the one before still held, whose end is
// not known yet: it takes its place.
func (c *Client) openX11(who api.Caller, req []byte) (*x11.Display, error) {
	c.mu.Lock()
	h, q, err := c.x11Job(who, req)
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	old := h.display
	h.display = nil
	o, err := c.x11Options(h, q)
	c.mu.Unlock()
	old.Close()
	if err != nil {
		return nil, err
	}
	d, err := x11.Open(o)
	if err != nil {
		c.slog.Warn("no X11 forwarding", "job", q.Job, "node", q.Node, "err", err)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, _, err := c.x11Job(who, req); err != nil || now.display != nil {
		d.Close()
		return nil, cmp.Or(err, error(cluster.Errorf(cluster.Conflict, "", "job %d has another display", q.Job)))
	} else {
		now.display = d
	}
	c.slog.Info("X11 forwarding established", "job", q.Job, "node", q.Node, "display", d.Number)
	return d, nil
}

// x11Options are those of a job's display. Called with mu held.
func (c *Client) x11Options(h *jobHere, q api.X11Request) (o x11.Options, err error) {
	dir := filepath.Join(c.cfg.Spool, string(h.node))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return o, fmt.Errorf("make a folder for XAUTHORITY: %w", err)
	}
	j := h.job.Spec
	machine, _ := os.Hostname() // else any name fits the second entry
	o = x11.Options{Number: q.Number, Cookie: q.Cookie, Host: cmp.Or(c.hardware.HostName(h.node), machine)}
	o.File = filepath.Join(dir, fmt.Sprintf("job%05d.Xauthority", h.job.ID))
	o.Owner = x11.Owner{UID: j.UID, GID: j.GID, Groups: j.Groups}
	if _, o.InHome = cluster.X11(&c.config); o.InHome && c.cfg.Program.Account != nil {
		o.Owner.Home, _ = c.cfg.Program.Account(j.UID)
	}
	return o, nil
}
