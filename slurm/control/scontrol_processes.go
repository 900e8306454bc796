package control

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// listPIDs is scontrol listpids [JOB[.STEP]] [NODE]: the processes of steps on this machine.
func listPIDs(c *control, args []string) int {
	code := processes(c, args)
	_ = c.out.Flush()
	return code
}

const pidsHead = "PID      JOBID    STEPID   LOCALID GLOBALID\n"

func processes(c *control, args []string) int {
	if len(args) > 2 {
		return c.complain("too many arguments for keyword:listpids")
	}
	args = append(append([]string(nil), args...), "", "")
	w := wanted{text: args[0], node: args[1]}
	var step string
	if w.job, step, w.stepped = strings.Cut(args[0], "."); w.job != "" && w.job != "*" {
		var err error
		if w.id, err = strconv.ParseUint(w.job, 10, 32); err != nil || w.id == 0 {
			return c.complain(fmt.Sprintf("%q does not look like a jobid", args[0]))
		}
	}
	var err error
	if w.step, err = strconv.Atoi(step); w.stepped && (err != nil || w.step < 0) {
		_, _ = c.out.WriteString(pidsHead)
		return toldWell(c, fmt.Sprintf("%q does not look like a stepid", args[0]))
	}
	resp, err := front.Call(c.sys, api.ListProcesses, api.ProcessQuery{Node: cluster.NodeName(w.node)})
	if err != nil {
		return noClient(c, err)
	}
	_, _ = c.out.WriteString(pidsHead)
	found := false
	for i := range resp.Processes {
		if p := &resp.Processes[i]; w.is(p) {
			found = true
			printProcess(c.out, p)
		}
	}
	if found {
		return 0
	}
	return c.complain(w.missing(&resp))
}

// wanted are the processes that listpids is to list: of one job, or step, or node; all without.
type wanted struct {
	text, job, node string
	id              uint64 // 0: all jobs
	stepped         bool
	step            int
}

func (w *wanted) is(p *api.StepProcess) bool {
	return (w.id == 0 || uint64(p.ID.Job) == w.id) && (!w.stepped || p.ID.Step == w.step)
}

// missing says in Slurm's words that there are none.
func (w *wanted) missing(resp *api.ProcessesResponse) string {
	node := w.node
	if node == "" && len(resp.Nodes) > 0 {
		node = front.NodeText(resp.Nodes)
	}
	switch {
	case w.stepped:
		return "StepId=" + w.text + " does not exist on node " + node + "."
	case w.id != 0 && len(resp.Processes) == 0:
		return "JobId=" + w.job + " does not exist on node " + node + "."
	case w.id != 0:
		return "There are no steps for job " + w.job + " on node " + node + "."
	}
	return "No job steps exist on this node."
}

func printProcess(out *bufio.Writer, p *api.StepProcess) {
	local, global := "-", "-"
	if p.Task >= 0 {
		local, global = strconv.Itoa(p.Task), strconv.Itoa(p.Rank)
	}
	_, _ = fmt.Fprintf(out, "%-8d %-8d %-8s %-7s %-8s\n", p.PID, p.ID.Job, show.StepName(p.ID.Step), local, global)
}

// noClient words that this machine runs no client that could know its processes.
func noClient(c *control, err error) int {
	text, _ := front.ErrorText(err)
	return c.complain("scontrol: error: "+text, "why: a machine's own muster-client knows its processes")
}

// pidInfo is scontrol pidinfo PID: the job of a process on this machine.
func pidInfo(c *control, args []string) int {
	switch len(args) {
	case 0:
		return c.complain("missing argument for keyword:pidinfo")
	case 1:
	default:
		return c.complain("too many arguments for keyword:pidinfo")
	}
	const none = "Failed to locate job for requested pid"
	pid, err := strconv.Atoi(args[0])
	if err != nil || pid <= 0 {
		return c.complain(none)
	}
	resp, err := front.Call(c.sys, api.ListProcesses, api.ProcessQuery{PID: pid})
	if err != nil || resp.Job == nil {
		return c.complain(none)
	}
	conf, err := c.cluster()
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_ctl_conf error", err)
	}
	ends, left := "never", "UNLIMITED"
	if end := resp.Job.EndLimit(&conf.Config); !end.IsZero() {
		ends, left = end.Local().Format(time.ANSIC), strconv.Itoa(int(max(end.Sub(resp.Now), 0)/time.Second))
	}
	_, _ = fmt.Fprintf(c.out, "Slurm job id %d ends at %s\nslurm_get_rem_time is %s\n", resp.Job.ID, ends, left)
	return 0
}
