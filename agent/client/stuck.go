package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// Processes that outlive SIGKILL (they wait in the kernel, mostly for a file system) keep their job from ending and
// its CPUs from others. After UnkillableStepTimeout the node is drained for that, until they are gone, and
// UnkillableStepProgram runs.
const (
	stuckCause = "unkillable"
	stuckLimit = time.Minute // one run of the program
)

// tellStuck puts into the node's record which of its jobs cannot be killed, and runs the site's program for those
// steps of this job, unless it is over.
func (j *jobs) tellStuck(ctx context.Context, h *jobHere) {
	j.stuckMu.Lock()
	j.mu.Lock()
	var faults []cluster.Fault
	var steps []int
	after, program, over := cmp.Or(j.config.Unkillable.After, unkillableAfter), j.config.Unkillable.Program, h.isOver()
	for _, id := range sortedJobs(j.nodes[h.node].jobs) {
		if o := j.nodes[h.node].jobs[id]; o.isStuck() {
			faults = append(faults, cluster.Fault{Kind: cluster.FaultSystem,
				Part: fmt.Sprintf("job %d", id), Cause: stuckCause, Action: cluster.FaultDrain, Passing: true,
				Text: fmt.Sprintf("Kill task failed: job %d has processes that outlive SIGKILL by %s", id, after)})
		}
	}
	for id, st := range j.stepsOf(h) {
		if st.State != step.Ended {
			steps = append(steps, id.Step)
		}
	}
	j.mu.Unlock()
	j.hardware.Tell(ctx, h.node, stuckCause, faults)
	j.stuckMu.Unlock()
	if program == "" || over {
		return
	}
	slices.Sort(steps)
	for _, number := range steps {
		j.cfg.siteProgram(ctx, j.slog, program, stuckLimit, "SLURMD_NODENAME="+string(h.node),
			"SLURM_JOB_ID="+strconv.FormatUint(uint64(h.job.ID), 10), "SLURM_STEP_ID="+strconv.Itoa(number))
	}
}
