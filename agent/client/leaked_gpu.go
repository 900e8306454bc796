package client

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
)

// A job that is over leaves its GPUs as it found them: its node is only done when no process that began with the
// job computes there any more and their memory is free. What does not go keeps new jobs off the node, until it is
// gone.
const (
	leftTime  = 5 * time.Second // for a driver to free what a killed process had
	leftPause = 200 * time.Millisecond
	leftAgain = 5 * time.Second // between looks at what did not go
	leftMB    = 1 << 10         // what may be in use of a GPU's memory without a process: the driver's own
	leftShare = 20              // or that part of it, if it is more
	leftCause = "left"
	// leftSlack is how much the beginning of a process, which /proc has in ticks, and the servers' clock may be off.
	leftSlack = time.Second
)

// serverOfGPU is what the name of a process begins with that serves jobs and stays: CUDA's multi-process service.
const serverOfGPU = "nvidia-cuda-mps"

// leakedGPU is a GPU that a job has not left as it found it.
type leakedGPU struct {
	gpu   cluster.GPU
	job   cluster.JobID
	user  uint32
	since time.Time // processes that are older are not the job's
	// before is what the whole GPU was set to; nil: it is not known, or another job has it now.
	before gpu.Settings
}

// mustSweep reports whether a job's GPUs are still to be looked at before its node is done. Called with mu held.
func (c *Client) mustSweep(h *jobHere) bool {
	sh, ok := h.job.Share(h.node)
	return c.cfg.GPUs != nil && !h.swept && ok && !sh.GPUs.Empty()
}

// sweep looks at the GPUs of a job that is over, until they are free or that has taken too long.
func (c *Client) sweep(ctx context.Context, h *jobHere) {
	c.mu.Lock()
	n := c.nodes[h.node]
	sh, _ := h.job.Share(h.node)
	var list []leakedGPU
	for id := range sh.GPUs.All() {
		if id < len(n.Inventory.GPUs) {
			g := n.Inventory.GPUs[id]
			list = append(list, leakedGPU{g, h.job.ID, h.job.Spec.UID, h.job.Started, c.settingsToRestore(n, h, board(&g))})
		}
	}
	c.mu.Unlock()
	var faults []cluster.Fault
	for end := time.Now().Add(leftTime); ; {
		now, known := c.judgeLeft(ctx, list, true)
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
			if slices.ContainsFunc(faults, func(f cluster.Fault) bool { return f.Part == l.gpu.UUID }) {
				c.left[l.gpu.UUID] = l
			}
		}
		c.mu.Unlock()
		c.tellFaults(ctx, c.order[0], leftCause, faults)
	}
	c.forgetSettings(clean(list, faults))
	c.mu.Lock()
	h.swept = true
	c.mu.Unlock()
	c.poke()
}

// clean are the GPUs of which there is no fault.
func clean(list []leakedGPU, faults []cluster.Fault) (out []leakedGPU) {
	for _, l := range list {
		if !slices.ContainsFunc(faults, func(f cluster.Fault) bool { return f.Part == l.gpu.UUID }) {
			out = append(out, l)
		}
	}
	return out
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
		c.cfg.Machine.found(cause, faults)
	}
	c.mu.Lock()
	inv := &c.nodes[node].Inventory
	others := slices.DeleteFunc(faultsOf(inv, cluster.FaultSystem), func(f cluster.Fault) bool { return f.Cause == cause })
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
		var list []leakedGPU
		for _, l := range c.left {
			list = append(list, l)
		}
		c.mu.Unlock()
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(a, b leakedGPU) int { return a.gpu.Number - b.gpu.Number })
		faults, known := c.judgeLeft(ctx, list, false)
		if !known {
			continue // it stays as it was
		}
		free := clean(list, faults)
		c.forgetSettings(free)
		c.mu.Lock()
		for _, l := range free {
			delete(c.left, l.gpu.UUID)
		}
		c.mu.Unlock()
		if text := fmt.Sprint(faults); text != told {
			told = text
			c.tellFaults(ctx, c.order[0], leftCause, faults)
		}
	}
}

// judgeLeft says what is left on GPUs; with kill processes of the job's user on them are killed. Their settings are
// put back. It is not known where the GPUs do not answer, of which the watch of the GPUs tells.
func (c *Client) judgeLeft(ctx context.Context, list []leakedGPU, kill bool) (out []cluster.Fault, known bool) {
	loads, err := c.cfg.GPUs.Sample(ctx)
	if err != nil {
		return nil, false
	}
	kept, err := c.restoreSettings(ctx, list, loads)
	if err != nil {
		return nil, false
	}
	for _, l := range list {
		i := slices.IndexFunc(loads, func(o gpu.Load) bool { return o.UUID == l.gpu.UUID })
		if i < 0 {
			continue
		}
		text := ""
		for _, p := range loads[i].Procs {
			name, user, began, ok := process(p.PID)
			if !ok || began.Before(l.since.Add(-leftSlack)) || strings.HasPrefix(name, serverOfGPU) {
				continue
			}
			if kill && user == l.user && user != 0 {
				_ = syscall.Kill(p.PID, syscall.SIGKILL) // it has got out of the job; the next look tells
			}
			if text == "" {
				text = fmt.Sprintf("process %d (%s of user %d) is left of job %d, with %d MB", p.PID, name, user, l.job, p.MemMB)
			}
		}
		if used := loads[i].MemUsedMB; text == "" && len(loads[i].Procs) == 0 && used > max(leftMB, int64(l.gpu.MemMB)/leftShare) {
			text = fmt.Sprintf("%d MB are in use after job %d, and no process has them", used, l.job)
		}
		if k := slices.IndexFunc(kept, func(k gpu.Kept) bool { return k.UUID == board(&l.gpu) }); k >= 0 && text == "" {
			text = fmt.Sprintf("after job %d its %s", l.job, kept[k].Text)
		}
		if text != "" {
			out = append(out, cluster.Fault{Kind: cluster.FaultSystem, Part: l.gpu.UUID, Cause: leftCause,
				Text: fmt.Sprintf("GPU %d (%s): %s", l.gpu.Minor, l.gpu.UUID, text), Action: cluster.FaultDrain, Passing: true})
		}
	}
	return out, true
}

// ticks is the unit of the times in /proc, as all of Linux's architectures that muster is built for have it.
const ticks = 100

// process tells of a process: its name, its user and when it began, within a tick. Not ok if there is none.
func process(pid int) (name string, user uint32, began time.Time, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	info, err := os.Stat(dir)
	if err != nil {
		return "", 0, began, false
	}
	if st, is := info.Sys().(*syscall.Stat_t); is {
		user = st.Uid
	}
	text, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return "", 0, began, false
	}
	head, rest, _ := strings.Cut(string(text), "(")
	end := strings.LastIndex(rest, ")")
	if head == "" || end < 0 {
		return "", 0, began, false
	}
	name = rest[:end]
	f := strings.Fields(rest[end+1:]) // from the third column on
	const state, start = 0, 19
	if len(f) <= start || f[state] == "Z" {
		return "", 0, began, false
	}
	after, err := strconv.ParseInt(f[start], 10, 64)
	boot := bootTime()
	if err != nil || boot.IsZero() {
		return "", 0, began, false
	}
	return name, user, boot.Add(time.Duration(after) * (time.Second / ticks)), true
}

// bootTime is when the machine was booted.
func bootTime() time.Time {
	text, err := os.ReadFile("/proc/uptime")
	up, perr := strconv.ParseFloat(strings.SplitN(string(text)+" ", " ", 2)[0], 64)
	if err != nil || perr != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(up * float64(time.Second)))
}
