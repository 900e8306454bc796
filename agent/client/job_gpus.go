package client

import (
	"context"
	"slices"

	"dev.muster/agent/sweep"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// mustSweep reports whether a job's GPUs are still to be looked at before its node is done. Called with mu held.
func (j *jobs) mustSweep(h *jobHere) bool {
	sh, ok := h.job.Share(h.node)
	return j.cfg.GPUs != nil && h.gpus != swept && ok && !sh.GPUs.Empty()
}

// sweep has the GPUs of a job looked at that is over, until they are free or that has taken too long.
func (j *jobs) sweep(ctx context.Context, h *jobHere) {
	j.mu.Lock()
	list := j.toSweep(h)
	j.mu.Unlock()
	j.gpus.Sweep(ctx, h.job.ID, h.node, list)
	j.mu.Lock()
	h.gpus.to(swept)
	j.mu.Unlock()
	j.poke()
}

// toSweep are the GPUs of a job, with what they are to be set to again. Called with mu held.
func (j *jobs) toSweep(h *jobHere) (list []sweep.GPU) {
	n, inv := j.nodes[h.node], j.hardware.Inventory(h.node)
	sh, _ := h.job.Share(h.node)
	for id := range sh.GPUs.All() {
		if id < len(inv.GPUs) {
			g := inv.GPUs[id]
			list = append(list, sweep.GPU{
				GPU: g, Job: h.job.ID, User: h.job.Spec.UID, Since: h.job.Started,
				Before: j.settingsToRestore(n, inv, h, sweep.Board(&g)),
			})
		}
	}
	return list
}

// settingsToRestore is what a job's GPU was set to, nothing if another job has it too. Called with mu held.
func (j *jobs) settingsToRestore(n *node, inv *cluster.Inventory, h *jobHere, board string) gpu.Settings {
	for _, o := range n.jobs {
		if o != h && o.gpus != swept && !o.isOver() && slices.Contains(boards(n.name, inv, o.job), board) {
			return nil
		}
	}
	return j.gpus.Before(board)
}

// boards are the whole GPUs of a job on a node.
func boards(n cluster.NodeName, inv *cluster.Inventory, j *cluster.Job) (out []string) {
	sh, _ := j.Share(n)
	for id := range sh.GPUs.All() {
		if id >= len(inv.GPUs) {
			continue
		}
		if b := sweep.Board(&inv.GPUs[id]); !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// freshBoards are the GPUs of jobs that were not here before, of which nothing is kept. Called with mu held.
func (j *jobs) freshBoards(n *node, old map[cluster.JobID]*jobHere) (out []string) {
	if j.cfg.GPUs == nil {
		return nil
	}
	inv := j.hardware.Inventory(n.name)
	for id, h := range n.jobs {
		if old[id] == h || h.job.Phase == cluster.Ending {
			continue
		}
		for _, b := range boards(n.name, inv, h.job) {
			if j.gpus.Before(b) == nil {
				out = append(out, b)
			}
		}
	}
	return out
}
