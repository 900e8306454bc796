package client

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// Where the processes of a job are in the kernel: whether they compute, wait for each other, or for a device or file
// system that does not answer.

// Bounds of an answer.
const (
	stackProcs = 64      // processes of a job on a node
	stackLines = 12      // of one stack
	stackBytes = 2 << 10 // of one file of the kernel
)

// showStacks reads the stacks of a job's processes on a node.
func showStacks(ctx context.Context, c *Client, who api.Caller, q api.StackQuery) (out api.StackAnswer, err error) {
	if err := c.await(ctx, c.known, c.told); err != nil {
		return out, err
	}
	c.meter.Measure(ctx, time.Now(), true)
	c.mu.Lock()
	h, refused := c.jobOnNode(who, api.TailRequest{Job: q.Job, Node: q.Node})
	if refused != nil {
		c.mu.Unlock()
		return out, refused
	}
	uid := h.job.Spec.UID
	var list []api.StepProcess
	for id, st := range c.have[h.node] {
		if id.Job == q.Job {
			list = append(list, c.processesOf(id, st)...)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b api.StepProcess) int { return cmp.Compare(a.PID, b.PID) })
	list = slices.CompactFunc(list, func(a, b api.StepProcess) bool { return a.PID == b.PID })
	var text strings.Builder
	for i := range list {
		if i == stackProcs {
			out.More = len(list) - stackProcs
			break
		}
		part, state := stackOf(h.node, &list[i], uid)
		text.WriteString(part)
		if state == tracedState {
			out.Traced++
		}
	}
	out.Text = text.String()
	return out, nil
}

// tracedState is the state of a process that a debugger has stopped.
const tracedState = "t"

// stackOf words where a process is, if it is still there and its user's, and returns its state.
func stackOf(node cluster.NodeName, p *api.StepProcess, uid uint32) (text, state string) {
	dir := "/proc/" + strconv.Itoa(p.PID)
	st := syscall.Stat_t{}
	if syscall.Stat(dir, &st) != nil || st.Uid != uid {
		return "", ""
	}
	name, state := commandOf(readShort(dir + "/stat"))
	rank := ""
	if p.Rank >= 0 {
		rank = fmt.Sprintf(", rank %d", p.Rank)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: step %s, process %d (%s)%s: state %s, waits in %s\n", node, stackStep(p.ID), p.PID, name, rank,
		state, cmp.Or(strings.TrimPrefix(readShort(dir+"/wchan"), "0"), "nothing"))
	lines := strings.Split(strings.TrimSpace(readShort(dir+"/stack")), "\n")
	for i, line := range lines {
		_, call, _ := strings.Cut(line, "] ")
		if i == stackLines || call == "" {
			break
		}
		b.WriteString("    " + call + "\n")
	}
	return b.String(), state
}

// stackStep is a step's number as users write it, without the job.
func stackStep(id cluster.StepID) string {
	switch id.Step {
	case cluster.BatchStep:
		return "batch"
	case cluster.ExternStep:
		return "extern"
	}
	return strconv.Itoa(id.Step)
}

// commandOf reads the command and the state of a process from its line in stat. A process chooses its name: what is no
// plain letter of it becomes a question mark.
func commandOf(stat string) (name, state string) {
	begin, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if begin < 0 || end < begin || end+2 >= len(stat) {
		return "?", "?"
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, stat[begin+1:end])
	return name, stat[end+2 : end+3]
}

// readShort reads the beginning of a file of the kernel; "" if it cannot be read.
func readShort(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, stackBytes)
	n, _ := f.Read(b)
	return string(b[:n])
}
