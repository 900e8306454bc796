package control

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/assocmgr"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// record collects the lines of one record. With -o they stand in one line.
type record struct {
	b    []byte
	join string
}

func (c *control) record() *record {
	if c.oneLine {
		return &record{join: " "}
	}
	return &record{join: "\n   "}
}

// line begins the next line of the record.
func (r *record) line(parts ...string) {
	if len(r.b) > 0 {
		r.b = append(r.b, r.join...)
	}
	for _, p := range parts {
		r.b = append(r.b, cluster.PlainLine(p)...)
	}
}

// print writes the record and an empty line, or with -o the line.
func (c *control) print(r *record) {
	end := "\n\n"
	if c.oneLine {
		end = "\n"
	}
	_, _ = c.out.Write(append(r.b, end...))
}

// showSteps is scontrol show step [ID].
func (c *control) showSteps(arg string) int {
	var want front.Target
	if arg != "" {
		t, ok := show.StepTarget(arg)
		if !ok {
			return c.complain("slurm_get_job_steps error: Invalid job id specified")
		}
		want = t
	}
	resp, err := front.Call(c.sys, api.ListSteps, api.StepQuery{Job: want.Ref.One(), Listed: !c.all})
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_get_job_steps error", err)
	}
	v := c.view(resp.Now)
	if c.data.On {
		rows := slices.DeleteFunc(show.StepRows(v, resp),
			func(r show.StepRow) bool { return want.Step != nil && r.ID.Step != *want.Step })
		return show.WriteSteps(c.out, v, &c.data, rows)
	}
	found := false
	for _, r := range show.StepRows(v, resp) {
		if want.Step != nil && r.ID.Step != *want.Step {
			continue
		}
		found = true
		c.stepRecord(&r)
	}
	switch {
	case !found && want.Step != nil:
		_, _ = c.out.WriteString("Job step " + arg + " not found\n")
		return 1
	case !found && arg != "":
		return c.complain("slurm_get_job_steps error: Invalid job id specified")
	case !found:
		_, _ = c.out.WriteString("No job steps in the system\n")
	}
	return 0
}

func (c *control) stepRecord(s *show.StepRow) {
	o := c.record()
	nodes := s.NodeNames()
	o.line("StepId=", s.ShownID(), " UserId=", front.UintText(s.Job.Spec.UID), " StartTime=",
		stamp(c, s.Started, "Unknown"), " TimeLimit=", format.Padded(s.TimeLimit()))
	o.line("State=RUNNING Partition=", s.Job.Partition(), " NodeList=", front.NodeText(nodes))
	o.line("Nodes=", strconv.Itoa(len(nodes)), " CPUs=", strconv.Itoa(s.CPUs()), " Tasks=",
		strconv.Itoa(s.Tasks), " Name=", s.Name, " Network=(null)")
	tres := "(null)"
	if s.ID.Step >= 0 {
		tres = stepTRES(s)
	}
	o.line("TRES=", tres)
	o.line("ResvPorts=", format.Null(s.Ports))
	asked, dist := "", ""
	if s.ID.Step >= 0 {
		asked, dist = values.ParseFreq(s.CPUFreq).Shown(), " Dist="+show.Distribution(s.Distribution, s.Tasks,
			len(nodes))
	}
	o.line(cmp.Or(asked, "CPUFreqReq=Default"), dist)
	o.line("SrunHost:Pid=", format.Null(s.SrunHost), ":", strconv.Itoa(s.SrunPID))
	for _, f := range [...][2]string{
		{"CpusPerTres=", s.CPUsPerTRES()},
		{"MemPerTres=", s.MemPerTRES()},
		{"TresBind=", s.TRESBind()},
		{"TresPerStep=", s.PerStep()},
		{"TresPerNode=", s.PerNode()},
		{"TresPerSocket=", format.GRES(s.AskedOf().PerSocket)},
		{"TresPerTask=", s.PerTask()},
	} {
		if f[1] != "" {
			o.line(f[0], f[1])
		}
	}
	c.print(o)
}

// stepTRES is what a step holds, in Slurm's order of names.
func stepTRES(s *show.StepRow) string {
	var mem cluster.MemMB
	gpus := 0
	for _, sh := range s.Shares {
		mem += sh.MemMB
		gpus += sh.GPUs.Len()
	}
	types := map[string]int64{}
	if s.Job.Alloc != nil && len(s.Job.Alloc.Types) == 1 && gpus > 0 {
		for name := range s.Job.Alloc.Types {
			types[name] = int64(gpus)
		}
	}
	return show.AlphaTRES(s.CPUs(), len(s.Shares), s.Job.View.Mem(mem), int64(gpus), types, 0)
}

// showAssocMgr is scontrol show assoc_mgr.
func showAssocMgr(c *control, args []string) int {
	text, err := assocmgr.Read(c.sys, c.oneLine, args)
	var call *assocmgr.CallError
	var flag assocmgr.FlagError
	switch {
	case errors.As(err, &call):
		return show.LoadFailed(c.sys, "slurm_load_assoc_mgr_info error", call.Err)
	case errors.As(err, &flag):
		return toldWell(c, err.Error())
	case err != nil:
		return c.complain(err.Error())
	}
	_, _ = c.out.WriteString(text)
	return 0
}
