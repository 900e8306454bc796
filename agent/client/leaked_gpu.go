package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/agent/sweep"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// A job that is over leaves its GPUs as it found them (package sweep): its node is only done when that is so, or has
// taken too long; then it keeps new jobs off the node until what was left is gone.
const (
	leftTime  = 5 * time.Second // for a driver to free what a killed process had
	leftPause = 200 * time.Millisecond
	leftAgain = 5 * time.Second // between looks at what did not go
)

// gpusOfJobs are GPUs of this machine that jobs have, or have not left as they found them.
type gpusOfJobs struct {
	left   map[string]sweep.GPU // by UUID
	before *sweep.Settings      // of those that jobs have
}

// mustSweep reports whether a job's GPUs are still to be looked at before its node is done. Called with mu held.
func (c *Client) mustSweep(h *jobHere) bool {
	sh, ok := h.job.Share(h.node)
	return c.cfg.GPUs != nil && h.gpus != swept && ok && !sh.GPUs.Empty()
}

// sweep looks at the GPUs of a job that is over, until they are free or that has taken too long.
func (c *Client) sweep(ctx context.Context, h *jobHere) {
	c.mu.Lock()
	n := c.nodes[h.node]
	sh, _ := h.job.Share(h.node)
	var list []sweep.GPU
	for id := range sh.GPUs.All() {
		if id < len(n.Inventory.GPUs) {
			g := n.Inventory.GPUs[id]
			list = append(list, sweep.GPU{
				GPU: g, Job: h.job.ID, User: h.job.Spec.UID, Since: h.job.Started,
				Before: c.settingsToRestore(n, h, sweep.Board(&g)),
			})
		}
	}
	c.mu.Unlock()
	var faults []cluster.Fault
	for end := time.Now().Add(leftTime); ; {
		now, known := sweep.Judge(ctx, c.cfg.GPUs, list, true, c.slog)
		if known {
			faults = now
		}
		if known && len(faults) == 0 || time.Now().After(end) || !sleep(ctx, leftPause) {
			break
		}
	}
	if len(faults) > 0 && ctx.Err() == nil {
		for _, f := range faults {
			c.slog.Error("a job has not left a GPU as it found it", "job", h.job.ID, "node", h.node, "err", f.Text)
		}
		c.mu.Lock()
		for _, l := range list {
			if slices.ContainsFunc(faults, func(f cluster.Fault) bool { return f.Part == l.GPU.UUID }) {
				c.gpus.left[l.GPU.UUID] = l
			}
		}
		c.mu.Unlock()
		c.tellFaults(ctx, c.order[0], sweep.Cause, faults)
	}
	c.forgetSettings(sweep.Clean(list, faults))
	c.mu.Lock()
	h.gpus.to(swept)
	c.mu.Unlock()
	c.poke()
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tellFaults puts what the client itself has found on a node into its record, in place of what it had found of the
// same cause, before anything else of the node is told.
func (c *Client) tellFaults(ctx context.Context, node cluster.NodeName, cause string, faults []cluster.Fault) {
	if c.cfg.Machine != nil {
		c.cfg.Machine.Found(cause, faults)
	}
	c.mu.Lock()
	inv := &c.nodes[node].Inventory
	others := slices.DeleteFunc(machine.FaultsOf(inv, cluster.FaultSystem),
		func(f cluster.Fault) bool { return f.Cause == cause })
	inv.SetFaults(cluster.FaultSystem, append(others, faults...))
	c.mu.Unlock()
	if err := c.register(ctx, c.order, true); err != nil {
		c.registerAnew()
	}
}

// watchLeft looks again at what was left, until it is gone.
func (c *Client) watchLeft(ctx context.Context) {
	for told := ""; sleep(ctx, leftAgain); {
		c.mu.Lock()
		var list []sweep.GPU
		for _, l := range c.gpus.left {
			list = append(list, l)
		}
		c.mu.Unlock()
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(a, b sweep.GPU) int { return a.GPU.Number - b.GPU.Number })
		faults, known := sweep.Judge(ctx, c.cfg.GPUs, list, false, c.slog)
		if !known {
			continue // it stays as it was
		}
		free := sweep.Clean(list, faults)
		c.forgetSettings(free)
		c.mu.Lock()
		for _, l := range free {
			delete(c.gpus.left, l.GPU.UUID)
		}
		c.mu.Unlock()
		if text := fmt.Sprint(faults); text != told {
			told = text
			c.tellFaults(ctx, c.order[0], sweep.Cause, faults)
		}
	}
}

// boards are the whole GPUs of a job on a node. Called with mu held.
func boards(n *node, j *cluster.Job) (out []string) {
	sh, _ := j.Share(n.Name)
	for id := range sh.GPUs.All() {
		if id >= len(n.Inventory.GPUs) {
			continue
		}
		if b := sweep.Board(&n.Inventory.GPUs[id]); !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// noteSettings asks what the GPUs of jobs that have just come are set to. It is short of what a job needs to change
// them.
func (c *Client) noteSettings(ctx context.Context, fresh []string) {
	ctx, cancel := context.WithTimeout(ctx, gpuTime)
	defer cancel()
	loads, err := c.cfg.GPUs.Sample(ctx)
	if err != nil {
		c.slog.Warn("what GPUs are set to before their jobs is not known", "err", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	settingsKept(c, c.gpus.before.Keep(fresh, loads))
}

// settingsKept tells the log where they could not be.
func settingsKept(c *Client, err error) {
	if err != nil {
		c.slog.Warn("what GPUs are set to before their jobs could not be kept: "+
			"a crash of this daemon now would lose it", "err", err)
	}
}

// freshBoards are the GPUs of jobs that were not here before, of which nothing is kept. Called with mu held.
func (c *Client) freshBoards(n *node, old map[cluster.JobID]*jobHere) (out []string) {
	if c.cfg.GPUs == nil {
		return nil
	}
	for id, h := range n.jobs {
		if old[id] == h || h.job.Phase == cluster.Ending {
			continue
		}
		for _, b := range boards(n, h.job) {
			if c.gpus.before.Of(b) == nil {
				out = append(out, b)
			}
		}
	}
	return out
}

// settingsToRestore is what a job's GPU was set to, nothing if another job has it too. Called with mu held.
func (c *Client) settingsToRestore(n *node, h *jobHere, b string) gpu.Settings {
	for _, o := range n.jobs {
		if o != h && o.gpus != swept && !o.isOver() && slices.Contains(boards(n, o.job), b) {
			return nil
		}
	}
	return c.gpus.before.Of(b)
}

// forgetSettings lets go of what GPUs were set to before jobs that are over.
func (c *Client) forgetSettings(list []sweep.GPU) {
	c.mu.Lock()
	defer c.mu.Unlock()
	settingsKept(c, c.gpus.before.Forget(list))
}
