package control

import (
	"fmt"
	"slices"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// noData refuses --json and --yaml where Slurm has no answer in that form.
func noData(c *control, what string) int {
	return c.complain("scontrol: error: " + what + " has no answer in JSON or YAML: leave the option out")
}

// pingRow is a server in its place.
type pingRow struct {
	api.Server
	first bool
}

func pingRows(servers []api.Server) []pingRow {
	rows := make([]pingRow, len(servers))
	for i, s := range servers {
		rows[i] = pingRow{s, i == 0}
	}
	return rows
}

// pingTable makes the objects of servers.
var pingTable = data.Table[pingRow]{Schema: "controller_ping", Members: []data.Member[pingRow]{
	{Path: "hostname", Of: func(s *pingRow) data.Value { return data.Text(s.Name) }},
	{Path: "pinged", Of: func(s *pingRow) data.Value { return data.Text(front.Choose(s.Up, "UP", "DOWN")) }},
	{Path: "responding", Of: func(s *pingRow) data.Value { return data.Bool(s.Up) }},
	{Path: "latency", Of: func(*pingRow) data.Value { return data.Num(0) }},
	{Path: "mode", Of: func(s *pingRow) data.Value { return data.Text(front.Choose(s.first, "primary", "backup")) }},
	{Path: "primary", Of: func(s *pingRow) data.Value { return data.Bool(s.first) }},
	{Path: "status", Of: func(s *pingRow) data.Value {
		return data.Text(front.Choose(s.Up, "No error", "Unable to contact slurm controller (connect failure)"))
	}},
}}

// listed is what runs on this machine.
func listed(c *control) (resp api.ProcessesResponse, code int) {
	resp, err := front.Call(c.sys, api.ListProcesses, api.ProcessQuery{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return resp, c.complain("scontrol: error: " + text)
	}
	return resp, -1
}

var listedJobTable = data.Table[cluster.JobID]{Schema: "listed_job", Members: []data.Member[cluster.JobID]{
	{Path: "job_id", Of: func(id *cluster.JobID) data.Value { return data.Num(*id) }},
}}

var listedStepTable = data.Table[string]{Schema: "listed_step", Members: []data.Member[string]{
	{Path: "step_id", Of: func(id *string) data.Value { return data.Text(*id) }},
}}

// listJobs is scontrol listjobs: the jobs that have steps on this machine.
func listJobs(c *control, _ []string) int {
	resp, code := listed(c)
	if code >= 0 {
		return code
	}
	var ids []cluster.JobID
	for _, p := range resp.Processes {
		if !slices.Contains(ids, p.ID.Job) {
			ids = append(ids, p.ID.Job)
		}
	}
	if c.data.On {
		return c.sys.Answer(&c.data, c.out, c.view(resp.Now).Config().Config.ClusterName, data.Each("jobs",
			&listedJobTable, ids))
	}
	_, _ = c.out.WriteString("JOBID\n")
	for _, id := range ids {
		_, _ = fmt.Fprintln(c.out, id)
	}
	return 0
}

// listSteps is scontrol liststeps: the steps that run on this machine.
func listSteps(c *control, _ []string) int {
	resp, code := listed(c)
	if code >= 0 {
		return code
	}
	var ids []string
	for _, p := range resp.Processes {
		if id := fmt.Sprint(p.ID.Job, ".", show.StepName(p.ID.Step)); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if c.data.On {
		return c.sys.Answer(&c.data, c.out, c.view(resp.Now).Config().Config.ClusterName, data.Each("steps",
			&listedStepTable, ids))
	}
	_, _ = c.out.WriteString("STEPID\n")
	for _, id := range ids {
		_, _ = c.out.WriteString(id + "\n")
	}
	return 0
}
