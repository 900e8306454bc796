package client

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"dev.muster/cluster"
	"dev.muster/durable"
	"dev.muster/gpu"
	"dev.muster/wire"
)

// What a job changes of its GPUs (their compute mode, clocks …) is put back when it is over. So what they were set
// to is asked for when a job comes, and kept in a file until the GPU is free: the daemon may be another one by
// then.

// settingsFile has what GPUs with jobs were set to before, by UUID.
const settingsFile = "gpu-settings"

// board is the UUID of a whole GPU: a slice is set with it.
func board(g *cluster.GPU) string {
	if g.MIG != nil {
		return g.MIG.Parent
	}
	return g.UUID
}

// boards are those of a job on a node. Called with mu held.
func boards(n *node, j *cluster.Job) (out []string) {
	sh, _ := j.Share(n.Name)
	for id := range sh.GPUs.All() {
		if id < len(n.Inventory.GPUs) {
			if b := board(&n.Inventory.GPUs[id]); !slices.Contains(out, b) {
				out = append(out, b)
			}
		}
	}
	return out
}

// loadSettings reads what an earlier life of this client has kept.
func (c *Client) loadSettings() {
	text, err := os.ReadFile(filepath.Join(c.cfg.Dir, settingsFile))
	if os.IsNotExist(err) {
		return
	}
	if err == nil {
		err = wire.Unmarshal(text, &c.before)
	}
	if err != nil {
		c.slog.Warn("what GPUs were set to before their jobs is not known any more", "err", err)
	}
	if c.before == nil {
		c.before = map[string]gpu.Settings{}
	}
}

// saveSettings keeps c.before. Called with mu held.
func (c *Client) saveSettings() {
	path := filepath.Join(c.cfg.Dir, settingsFile)
	text, err := wire.Marshal(c.before)
	if err == nil {
		err = durable.Swap(path, text, 0o600)
	}
	if err != nil {
		c.slog.Warn("what GPUs are set to before their jobs could not be kept: a crash of this daemon now would lose it", "err", err)
	}
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
	noted := false
	for i := range loads {
		if l := &loads[i]; slices.Contains(fresh, l.UUID) && c.before[l.UUID] == nil && len(l.Settings) > 0 {
			c.before[l.UUID], noted = l.Settings, true
		}
	}
	if noted {
		c.saveSettings()
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
			if c.before[b] == nil {
				out = append(out, b)
			}
		}
	}
	return out
}

// settingsToRestore is what a job's GPU was set to, nothing if another job has it too. Called with mu held.
func (c *Client) settingsToRestore(n *node, h *jobHere, b string) gpu.Settings {
	for _, o := range n.jobs {
		if o != h && !o.swept && !o.done && slices.Contains(boards(n, o.job), b) {
			return nil
		}
	}
	return c.before[b]
}

// restoreSettings puts back what GPUs were set to, and tells what could not be.
func (c *Client) restoreSettings(ctx context.Context, list []leakedGPU, loads []gpu.Load) ([]gpu.Kept, error) {
	var want []gpu.Want
	for _, l := range list {
		b := board(&l.gpu)
		i := slices.IndexFunc(loads, func(o gpu.Load) bool { return o.UUID == b })
		asked := slices.ContainsFunc(want, func(w gpu.Want) bool { return w.UUID == b })
		if i >= 0 && !asked && !l.before.Same(loads[i].Settings) {
			want = append(want, gpu.Want{UUID: b, Settings: l.before})
		}
	}
	if len(want) == 0 {
		return nil, nil
	}
	kept, err := c.cfg.GPUs.Set(ctx, want)
	if err == nil {
		c.slog.Info("GPUs were set back to what they were before a job", "count", len(want), "failed", len(kept))
	}
	return kept, err
}

// forgetSettings lets go of what GPUs were set to before jobs that are over.
func (c *Client) forgetSettings(list []leakedGPU) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped := false
	for _, l := range list {
		if b := board(&l.gpu); l.before != nil && c.before[b] != nil {
			delete(c.before, b)
			dropped = true
		}
	}
	if dropped {
		c.saveSettings()
	}
}
