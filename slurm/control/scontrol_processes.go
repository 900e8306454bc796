package control

import (
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

func processes(c *control, args []string) int {
	if len(args) > 2 {
		return c.complain("too many arguments for keyword:listpids")
	}
	args = append(append([]string(nil), args...), "", "")
	job, step, stepped := strings.Cut(args[0], ".")
	var want uint64
	if job != "" && job != "*" {
		var err error
		if want, err = strconv.ParseUint(job, 10, 32); err != nil || want == 0 {
			return c.complain(fmt.Sprintf("%q does not look like a jobid", args[0]))
		}
	}
	number, err := strconv.Atoi(step)
	if stepped && (err != nil || number < 0) {
		return toldWell(c, fmt.Sprintf("%q does not look like a stepid", args[0]))
	}
	q := api.ProcessQuery{Job: cluster.JobID(want), Node: cluster.NodeName(args[1])}
	resp, err := front.Call(c.sys, api.ListProcesses, q)
	if err != nil {
		return noClient(c, err)
	}
	_, _ = c.out.WriteString("PID      JOBID    STEPID   LOCALID GLOBALID\n")
	found := false
	for _, p := range resp.Processes {
		if stepped && p.ID.Step != number {
			continue
		}
		found = true
		local, global := "-", "-"
		if p.Task >= 0 {
			local, global = strconv.Itoa(p.Task), strconv.Itoa(p.Rank)
		}
		_, _ = fmt.Fprintf(c.out, "%-8d %-8d %-8s %-7s %-8s\n", p.PID, p.ID.Job, show.StepName(p.ID.Step),
			local, global)
	}
	node := args[1]
	if node == "" && len(resp.Nodes) > 0 {
		node = front.NodeText(resp.Nodes)
	}
	switch {
	case found:
		return 0
	case stepped:
		return c.complain("StepId=" + args[0] + " does not exist on node " + node + ".")
	case want != 0:
		return c.complain("There are no steps for job " + job + " on node " + node + ".")
	}
	return c.complain("No job steps exist on this node.")
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
