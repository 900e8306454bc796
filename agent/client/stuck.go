package client

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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

// tellStuck puts into the node's record which of its jobs can not be killed, and runs the site's program for those
// steps of this job, unless it is over.
func (c *Client) tellStuck(ctx context.Context, h *jobHere) {
	c.stuckMu.Lock()
	c.mu.Lock()
	var faults []cluster.Fault
	var steps []int
	after, program, over := cmp.Or(c.config.Unkillable.After, unkillableAfter), c.config.Unkillable.Program, h.isOver()
	for _, id := range sortedJobs(c.nodes[h.node].jobs) {
		if o := c.nodes[h.node].jobs[id]; o.isStuck() {
			faults = append(faults, cluster.Fault{Kind: cluster.FaultSystem,
				Part: fmt.Sprintf("job %d", id), Cause: stuckCause, Action: cluster.FaultDrain, Passing: true,
				Text: fmt.Sprintf("Kill task failed: job %d has processes that outlive SIGKILL by %s", id, after)})
		}
	}
	for id, st := range c.stepsOf(h) {
		if st.State != step.Ended {
			steps = append(steps, id.Step)
		}
	}
	c.mu.Unlock()
	c.hardware.tell(ctx, h.node, stuckCause, faults)
	c.stuckMu.Unlock()
	if program == "" || over {
		return
	}
	slices.Sort(steps)
	for _, number := range steps {
		c.siteProgram(ctx, program, stuckLimit, "SLURMD_NODENAME="+string(h.node),
			"SLURM_JOB_ID="+strconv.FormatUint(uint64(h.job.ID), 10), "SLURM_STEP_ID="+strconv.Itoa(number))
	}
}

// siteProgram runs a program of the site's beside the daemon, as root and with the front-ends at hand. Only the log
// tells that it failed.
func (c *Client) siteProgram(ctx context.Context, program string, limit time.Duration, environ ...string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = "/"
	own := ""
	if exe, err := os.Executable(); err == nil { // the front-ends lie beside it
		own = filepath.Dir(exe) + ":"
	}
	cmd.Env = append(append(os.Environ(), "PATH="+own+os.Getenv("PATH"), "MUSTER_SOCKET="+c.cfg.Daemon), environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != context.Canceled {
		c.slog.Warn("a program of the site failed", "program", program, "about", environ, "err", err,
			"said", strings.TrimSpace(string(out[:min(len(out), checkSays)])))
	}
}
