package client

import (
	"time"

	"dev.muster/agent/fence"
	"dev.muster/cluster"
)

// memoryHere is how much memory an attempt's processes were last limited to, since the job got another amount.
type memoryHere struct {
	set   cluster.MemMB // 0: what it began with, or not known by this life of the client
	busy  bool          // it is being set
	again time.Time     // it could not be set, and is tried again then
}

// memoryAgain is how soon a limit is set again that could not be set.
const memoryAgain = 10 * time.Second

// memoryAction is what to do for a job's processes to have no more memory than the servers say, or when. Only of a job
// that got another size can its memory have changed.
func memoryAction(h *jobHere, now time.Time) (k actionKind, at time.Time) {
	sh, ok := h.job.Share(h.node)
	if !ok || h.job.ResizedAt().IsZero() || h.job.Phase != cluster.Running {
		return nothing, at
	}
	switch {
	case h.memory.busy || h.memory.set == sh.MemMB:
		return nothing, at
	case h.memory.again.After(now):
		return nothing, h.memory.again
	}
	return setMemory, at
}

// limitMemory has the supervisor limit the memory of a job here. Called with mu held.
func limitMemory(j *jobs, h *jobHere) {
	sh, _ := h.job.Share(h.node)
	if fence.Memory(&j.config, sh) == 0 {
		h.memory.set = sh.MemMB // nothing holds jobs to their memory
		return
	}
	h.memory.busy = true
	id := h.part(0)
	go func() { // ends with the supervisor's answer: it may have to free memory first
		err := j.cfg.Runner.SetMemory(id, sh.MemMB)
		j.mu.Lock()
		defer j.mu.Unlock()
		h.memory.busy = false
		if err == nil {
			h.memory.set = sh.MemMB
		} else {
			h.memory.again = time.Now().Add(memoryAgain)
			j.slog.Error("a job's memory could not be limited again",
				"job", id.Job, "node", id.Node, "mb", sh.MemMB, "err", err)
		}
		j.poke()
	}()
}

// forgetMemory has the supervisor forget the memory of a job that is over here. Called with mu held.
func forgetMemory(j *jobs, h *jobHere) {
	if h.memory.set == 0 {
		return
	}
	id := h.part(0)
	j.try("forget the memory", id, j.cfg.Runner.SetMemory(id, 0))
}
