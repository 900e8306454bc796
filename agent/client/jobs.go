package client

import (
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/container"
	"dev.muster/agent/hardware"
	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/agent/sweep"
	"dev.muster/agent/userfile"
	"dev.muster/cluster"
)

// jobs are the attempts on this client's nodes: they do what reconcile says.
type jobs struct {
	*tables
	reports  *outbox.Reports
	link     *link
	hardware *hardware.Nodes
	gpus     *sweep.JobGPUs
	steps    *steps
	parts    *parts
	build    *builder

	staged    *outbox.Confirmed // gangs led here whose confirmation is kept; guarded by mu
	gpusMoved chan struct{}     // poked when the jobs of this machine have changed
	stuckMu   sync.Mutex        // for telling what cannot be killed: taken before mu
}

// signalTasks signals the job's tasks and its script, and not what they have started: that is theirs to end.
// Sessions that were put into the job have no task of their own; all of theirs hear it.
func (j *jobs) signalTasks(h *jobHere, sig syscall.Signal) {
	for id, st := range j.stepsOf(h) {
		scope := step.Leaders
		if id.Step == cluster.ExternStep {
			scope = step.All
		}
		if st.State != step.Ended {
			j.try("signal", id, j.cfg.Runner.Signal(id, sig, scope))
		}
	}
}

// freeze stops all of the job without its knowing, or lets it go on.
func (j *jobs) freeze(h *jobHere, on bool) {
	next := going
	if on {
		next = frozen
	}
	h.pause.to(next)
	for id := range j.stepsOf(h) {
		j.try("freeze", id, j.cfg.Runner.Freeze(id, on))
	}
}

// killAll kills every process of the job.
func (j *jobs) killAll(h *jobHere) {
	for id, st := range j.stepsOf(h) {
		if st.State != step.Ended {
			j.try("kill", id, j.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
		}
	}
}

// announceEnd writes Slurm's line about why a job ends into the output of its steps.
func (j *jobs) announceEnd(h *jobHere, now time.Time) {
	for id, st := range j.stepsOf(h) {
		if st.State != step.Ended {
			if text := j.cfg.EndNote(h.job, id.Step, id.Node, now); text != "" {
				j.try("note", id, j.cfg.Runner.Say(id, text, true))
			}
		}
	}
}

// stage keeps that this life confirms an attempt. Called with mu held.
func (j *jobs) stage(h *jobHere) {
	k := h.key()
	if err := j.staged.Add(k, j.cfg.Runner.Instance()); err != nil {
		j.slog.Warn("a gang could not be staged: a crash of this daemon now would lose it", "job", k.Job, "err", err)
	}
}

func (j *jobs) stray(id step.ID) {
	if _, live := j.live[cluster.StepID{Job: id.Job, Step: id.Step}]; live && j.have.Get(id).State == step.Ended {
		return // its output is still being taken
	}
	if j.have.Get(id).State != step.Ended {
		j.try("kill", id, j.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
		return
	}
	j.have.Drop(id)
	j.try("forget", id, j.cfg.Runner.Forget(id))
}

// forget drops what is known of a job that is over here: the batch step; numbered steps are dropped when their
// output was taken.
func (j *jobs) forget(h *jobHere) {
	j.leave(h)
	j.queues.free(h.job.ID)
	var ids []step.ID
	for id := range j.allOf(h) {
		_, live := j.live[cluster.StepID{Job: id.Job, Step: id.Step}]
		if h.job.EndingWhy == cluster.Resized && id.Step >= 0 {
			live = true // the job goes on elsewhere, and what leads the step takes the output and says when
		}
		if !live {
			ids = append(ids, id)
			j.have.Drop(id)
		}
	}
	if len(ids) > 0 {
		j.try("forget", ids[0], j.cfg.Runner.Forget(ids...))
	}
}

// leave takes away what the steps of a job that is over had in common on its node. Called with mu held.
func (j *jobs) leave(h *jobHere) {
	h.display.Close()
	forgetMemory(j, h)
	id := h.part(0)
	if p := j.hardware.Secluded(&j.config, h.node); p != nil {
		j.try("release", id, j.cfg.Runner.Release(id))
		// This may take long; what is left when the daemon ends is removed by the next.
		go removeFolders(j.slog, filepath.Join(p.Base, id.JobName()))
	}
	if store := j.cfg.Images; store != "" && j.cfg.Sampler != nil {
		go removeFolders(j.slog, container.JobDir(store, id.JobName())) // most jobs have none
	}
	if j.config.RemoveIPC && !j.hardware.Inventory(h.node).Hollow && !j.worksHere(h) {
		go sweep.IPC(h.job.Spec.UID, j.slog)
	}
}

// worksHere reports whether a job's user has another one on its node.
func (j *jobs) worksHere(but *jobHere) bool {
	for _, o := range j.nodes[but.node].jobs {
		if o != but && !o.isOver() && o.job.Spec.UID == but.job.Spec.UID {
			return true
		}
	}
	return false
}

func removeFolders(log *slog.Logger, top string) {
	if err := userfile.Remove(top); err != nil {
		log.Error("a job's private folders could not be removed", "path", top, "err", err)
	}
}
