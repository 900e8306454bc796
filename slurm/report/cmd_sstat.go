package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// statOptions is what sstat's line asks for.
type statOptions struct {
	sys                                       *front.Sys
	all, list, noHeader, pids, verbose, whole bool
	format                                    string
	parse                                     int // 1: fields end with |, 2: | is between them
	targets                                   []statTarget
}

// statTarget is one word of -j: a job, or a step of it.
type statTarget struct {
	ref  cluster.Ref
	step *int
}

const pidFields = "jobid,nodelist,pids"

type sstatOption = opt.Option[statOptions]

// SstatOptions are the options of sstat.
var SstatOptions = []sstatOption{
	{
		Long: "allsteps", Short: 'a', On: opt.Sstat, Help: "all steps of jobs without a step",
		Set: func(o *statOptions, _ string) error { o.all = true; return nil },
	},
	{
		Long: "helpformat", Short: 'e', On: opt.Sstat, Help: "list the fields",
		Set: func(o *statOptions, _ string) error { o.list = true; return nil },
	},
	{
		Long: "pidformat", Short: 'i', On: opt.Sstat, Help: "the processes of each step on each node",
		Set: func(o *statOptions, _ string) error { o.pids = true; return nil },
	},
	{
		Long: "jobs", Short: 'j', Arg: opt.Required, On: opt.Sstat,
		Help: "these jobs or steps: job[.step],...", Meta: "list", Set: setStatJobs,
	},
	{
		Long: "noheader", Short: 'n', On: opt.Sstat, Help: "no header",
		Set: func(o *statOptions, _ string) error { o.noHeader = true; return nil },
	},
	{
		Long: "noconvert", On: opt.Sstat, Help: "no change of units",
		Set: func(o *statOptions, _ string) error { o.whole = true; return nil },
	},
	{Long: "format", Short: 'o', Arg: opt.Required, On: opt.Sstat, Help: "the fields to print", Meta: "list",
		Set: func(o *statOptions, v string) error { o.format = v; return nil }},
	{Long: "fields", Arg: opt.Required, On: opt.Sstat, Alias: "format"},
	{
		Long: "parsable", Short: 'p', On: opt.Sstat, Help: "fields end with |",
		Set: func(o *statOptions, _ string) error { o.parse = 1; return nil },
	},
	{
		Long: "parsable2", Short: 'P', On: opt.Sstat, Help: "fields are separated by |",
		Set: func(o *statOptions, _ string) error { o.parse = 2; return nil },
	},
	{
		Long: "verbose", Short: 'v', On: opt.Sstat, Help: "tell what is asked for",
		Set: func(o *statOptions, _ string) error { o.verbose = true; return nil },
	},
	{Long: "version", Short: 'V', On: opt.Sstat, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Sstat, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sstat, Group: opt.HelpGroup, Help: "print a short help"},
}

// setStatJobs reads job[.step][,...]; a task behind the step is allowed and means nothing.
func setStatJobs(o *statOptions, v string) error {
	for _, w := range front.SplitOutside(v) {
		if w == "" {
			continue
		}
		job, step, hasStep := strings.Cut(w, ".")
		t, ok := front.ParseTarget(job)
		if !ok {
			return opt.Errorf(opt.CodeError, "sstat: fatal: Bad job/step specified: %s", w)
		}
		target := statTarget{ref: t.Ref}
		if hasStep {
			number, _, _ := strings.Cut(step, ".")
			n, ok := sacctStep(job + "." + step)
			if !ok {
				n, ok = sacctStep(job + "." + number)
				ok = ok && n >= 0
			}
			if !ok {
				return opt.Errorf(opt.CodeError, "sstat: fatal: Bad step specified: %d", t.Ref.Job)
			}
			target.step = &n
		}
		o.targets = append(o.targets, target)
	}
	return nil
}

// statRow is one line of sstat: a step, or with -i its processes on one node.
type statRow struct {
	stepUse
	tasks int
	nodes string
	pids  []int
	told  *api.Progress // of its job; nil: nothing
}

// statColumn is one field of sstat; of is nil for those of usageColumns.
type statColumn struct {
	name  string
	width int // default; negative: left-justified
	of    func(*statRow) string
}

// statColumns are the fields, in the order of sstat -e.
var statColumns = [...]statColumn{
	{"AveCPU", 10, nil}, {"AveCPUFreq", 10, nil}, {"AveDiskRead", 12, nil}, {"AveDiskWrite", 12, nil},
	{"AvePages", 10, nil}, {"AveRSS", 10, nil}, {"AveVMSize", 10, nil}, {"ConsumedEnergy", 14, nil},
	{"ConsumedEnergyRaw", 17, nil},
	{
		"JobID", -12,
		func(r *statRow) string { return front.UintText(uint32(r.ID.Job)) + "." + show.StepName(r.ID.Step) },
	},
	{"MaxDiskRead", 12, nil}, {"MaxDiskReadNode", 15, nil}, {"MaxDiskReadTask", 15, nil},
	{"MaxDiskWrite", 12, nil}, {"MaxDiskWriteNode", 16, nil}, {"MaxDiskWriteTask", 16, nil},
	{"MaxPages", 8, nil}, {"MaxPagesNode", 12, nil}, {"MaxPagesTask", 14, nil},
	{"MaxRSS", 10, nil}, {"MaxRSSNode", 10, nil}, {"MaxRSSTask", 10, nil},
	{"MaxVMSize", 10, nil}, {"MaxVMSizeNode", 14, nil}, {"MaxVMSizeTask", 14, nil},
	{"MinCPU", 10, nil}, {"MinCPUNode", 10, nil}, {"MinCPUTask", 10, nil},
	{"Nodelist", 20, func(r *statRow) string { return r.nodes }},
	{"NTasks", 8, func(r *statRow) string { return strconv.Itoa(r.tasks) }},
	{"Pids", 20, func(r *statRow) string { return pidList(r.pids) }},
	{"ReqCPUFreq", 10, func(r *statRow) string { return values.ReqFreq(r.Step).Max }},
	{"ReqCPUFreqMin", 13, func(r *statRow) string { return values.ReqFreq(r.Step).Min }},
	{"ReqCPUFreqMax", 13, func(r *statRow) string { return values.ReqFreq(r.Step).Max }},
	{"ReqCPUFreqGov", 13, func(r *statRow) string { return values.ReqFreq(r.Step).Governor }},
	{"TRESUsageInAve", 14, nil}, {"TRESUsageInMax", 14, nil}, {"TRESUsageInMaxNode", 18, nil},
	{"TRESUsageInMaxTask", 18, nil},
	{"TRESUsageInMin", 14, nil}, {"TRESUsageInMinNode", 18, nil}, {"TRESUsageInMinTask", 18, nil},
	{"TRESUsageInTot", 14, nil},
	{"TRESUsageOutAve", 15, nil}, {"TRESUsageOutMax", 15, nil}, {"TRESUsageOutMaxNode", 19, nil},
	{"TRESUsageOutMaxTask", 19, nil},
	{"TRESUsageOutMin", 15, nil}, {"TRESUsageOutMinNode", 19, nil}, {"TRESUsageOutMinTask", 19, nil},
	{"TRESUsageOutTot", 15, nil},
	{"AllocTRES", 10, func(r *statRow) string { return r.allocTRES() }},
	{"SLUID", 14, func(*statRow) string { return "" }},
	{"Progress", 40, func(r *statRow) string { return r.progress() }}, // muster's own
}

// progress is how far the job of a step says that it has come.
func (r *statRow) progress() string {
	if r.told == nil {
		return ""
	}
	return r.told.Text()
}

// allocTRES is what a step that was launched has of its job.
func (r *statRow) allocTRES() string {
	if r.ID.Step < 0 {
		return ""
	}
	cpus, gpus := 0, 0
	var mem cluster.MemMB
	for _, sh := range r.Shares {
		cpus += sh.CPUs.Len()
		gpus += sh.GPUs.Len()
		mem += sh.MemMB
	}
	view := show.View{Raw: r.raw, Unit: r.unit}
	return show.AlphaTRES(cpus, len(r.Shares), view.Mem(mem), int64(gpus), nil, 0)
}

const statFormat = "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode," +
	"MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov," +
	"ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask," +
	"AveDiskWrite,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin,TRESUsageInMinNode," +
	"TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutMin," +
	"TRESUsageOutMinNode,TRESUsageOutMinTask,TRESUsageOutTot"

func pidList(pids []int) string {
	var out []string
	for _, p := range pids {
		out = append(out, strconv.Itoa(p))
	}
	return strings.Join(out, ",")
}

// statField is a column with its width and, of usageColumns, its function.
type statField struct {
	*statColumn
	width int
	use   func(*stepUse) string
}

func (f *statField) cell(r *statRow) string {
	if f.of != nil {
		return f.of(r)
	}
	return f.use(&r.stepUse)
}

// fields reads -o: names or beginnings of them, with an optional %width, negative to justify left.
func (o *statOptions) fields() (out []statField, bad string) {
	spec := cmp.Or(o.format, statFormat)
	switch {
	case o.pids && o.format == "":
		spec = pidFields
	case o.pids:
		spec = pidFields + "," + o.format
	}
	for word := range strings.SplitSeq(spec, ",") {
		if word == "" {
			continue
		}
		name, width, _ := strings.Cut(word, "%")
		i := slices.IndexFunc(statColumns[:], func(c statColumn) bool { return strings.EqualFold(c.name, name) })
		if i < 0 {
			i = slices.IndexFunc(statColumns[:], func(c statColumn) bool {
				return name != "" && len(c.name) > len(name) && strings.EqualFold(c.name[:len(name)], name)
			})
		}
		if i < 0 {
			return nil, name
		}
		f := statField{&statColumns[i], statColumns[i].width, usageField(statColumns[i].name)}
		if n, err := strconv.Atoi(width); err == nil && n != 0 {
			f.width = n
		}
		out = append(out, f)
	}
	return out, ""
}

// Sstat shows what running steps use.
func Sstat(sys *front.Sys, argv []string) int {
	o := statOptions{sys: sys}
	rest, code := front.ParseQuery(sys, opt.Sstat, SstatOptions, &o, argv)
	if code >= 0 {
		return code
	}
	for _, w := range rest {
		if err := setStatJobs(&o, w); err != nil {
			return sys.Usage(err)
		}
	}
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	if o.list {
		for i, c := range statColumns {
			fmt.Fprintf(out, "%-19s%s", c.name, front.Choose((i+1)%4 == 0 || i+1 == len(statColumns), "\n", " "))
		}
		return 0
	}
	if len(o.targets) == 0 {
		return sys.Fail("You didn't give me any jobs to stat.")
	}
	fields, bad := o.fields()
	if bad != "" {
		return sys.Fail("Invalid field requested: \"%s\"", bad)
	}
	o.heading(out, fields)
	for _, t := range o.targets {
		rows := o.ask(out, t)
		for i := range rows {
			cells := make([]string, len(fields))
			for k := range fields {
				cells[k] = fields[k].cell(&rows[i])
			}
			o.line(out, fields, cells, "+")
		}
	}
	return 0
}

func (o *statOptions) heading(out *bufio.Writer, fields []statField) {
	if o.noHeader {
		return
	}
	cells, rules := make([]string, len(fields)), make([]string, len(fields))
	for i, f := range fields {
		cells[i], rules[i] = f.name, strings.Repeat("-", max(f.width, -f.width))
	}
	o.line(out, fields, cells, "")
	if o.parse == 0 {
		o.line(out, fields, rules, "")
	}
}

// line writes cells; one that is too long is cut, and ends in mark.
func (o *statOptions) line(out io.StringWriter, fields []statField, cells []string, mark string) {
	var b strings.Builder
	for i, cell := range cells {
		if o.parse != 0 {
			b.WriteString(front.Choose(i > 0, "|", "") + cell)
			continue
		}
		width := max(fields[i].width, -fields[i].width)
		if len(cell) > width {
			cell = cell[:width-len(mark)] + mark
		}
		fmt.Fprintf(&b, "%*s ", fields[i].width, cell)
	}
	_, _ = out.WriteString(b.String() + front.Choose(o.parse == 1, "|", "") + "\n")
}

// ask gets the rows of one job or step. Missing rows are reported, and are no failure.
func (o *statOptions) ask(out *bufio.Writer, t statTarget) (rows []statRow) {
	refuse := func(format string, args ...any) []statRow {
		_ = out.Flush()
		o.sys.Fail(format, args...)
		return rows
	}
	id, known := o.jobOf(t.ref)
	live, err := front.Call(o.sys, api.ListSteps, api.StepQuery{Job: id})
	switch {
	case err != nil && !front.IsKind(err, cluster.ErrJobID):
		text, _ := front.ErrorText(err)
		return refuse("couldn't get steps for job %d: %s", id, text)
	case !known:
		return refuse("couldn't get steps for job %d", id)
	}
	steps := live.Steps
	slices.SortFunc(steps, func(a, b *cluster.Step) int { // extern, batch, and those of srun
		return cmp.Or(cmp.Compare(front.BoolInt(a.ID.Step >= 0), front.BoolInt(b.ID.Step >= 0)),
			cmp.Compare(max(-a.ID.Step, a.ID.Step), max(-b.ID.Step, b.ID.Step)))
	})
	only := cluster.AllSteps
	switch {
	case t.step != nil:
		if !slices.ContainsFunc(steps, func(s *cluster.Step) bool { return s.ID.Step == *t.step }) {
			return refuse("StepId=%d.%s not found running.", id, show.StepName(*t.step))
		}
		only = *t.step
	case len(steps) == 0:
		return refuse("No steps running for job %d", id)
	case !o.all:
		first := slices.IndexFunc(steps, func(s *cluster.Step) bool { return s.ID.Step >= 0 })
		if first < 0 {
			return nil
		}
		only = steps[first].ID.Step
	}
	steps = slices.DeleteFunc(steps,
		func(s *cluster.Step) bool { return only != cluster.AllSteps && s.ID.Step != only })
	for _, s := range steps {
		if o.verbose {
			o.sys.Say("requesting info for StepId=%d.%s", id, show.StepName(s.ID.Step))
		}
	}
	resp, err := front.Call(o.sys, api.MeasureSteps, api.MeasureRequest{Job: id, Step: only})
	if err != nil {
		for _, s := range steps {
			o.refused(out, s, err)
		}
		return nil
	}
	for _, m := range resp.Missing {
		refuse("slurm_job_step_stat: there was an error with the request to %s rc = %s", m.Node, m.Why)
	}
	for _, s := range steps {
		for i := range resp.Steps {
			if resp.Steps[i].Step.ID == s.ID {
				rows = append(rows, o.rows(&resp.Steps[i], resp.Progress)...)
			}
		}
	}
	return rows
}

// refused tells, as Slurm does, that the nodes of a step gave nothing.
func (o *statOptions) refused(out *bufio.Writer, s *cluster.Step, err error) {
	_ = out.Flush()
	text, _ := front.ErrorText(err)
	if front.IsKind(err, cluster.ErrAccess) {
		text = "Invalid user id"
	}
	for _, sh := range s.Shares {
		o.sys.Fail("slurm_job_step_stat: there was an error with the request to %s rc = %s", sh.Node, text)
	}
	o.sys.Fail("problem getting step_layout for StepId=%d.%s: %s", s.ID.Job, show.StepName(s.ID.Step), text)
}

// jobOf finds the number of a job, that too of a task or a part, and whether there is one.
func (o *statOptions) jobOf(ref cluster.Ref) (cluster.JobID, bool) {
	resp, err := front.Call(o.sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}})
	if err != nil || len(resp.Jobs) == 0 {
		return ref.Job, false
	}
	i := slices.IndexFunc(resp.Jobs,
		func(j *cluster.Job) bool { return j.ID == ref.Job && ref.Tasks.Empty() && ref.Part == 0 })
	return resp.Jobs[max(i, 0)].ID, true
}

// rows are the lines of one step: one, or with -i one a node.
func (o *statOptions) rows(u *api.StepUsage, told *api.Progress) (rows []statRow) {
	row := statRow{stepUse: stepUse{Step: &u.Step, raw: o.whole, live: true}, tasks: u.Step.Tasks, told: told}
	var names []cluster.NodeName
	for _, sh := range u.Step.Shares {
		names = append(names, sh.Node)
		row.pids = append(row.pids, u.PIDs[sh.Node]...)
		if o.pids {
			one := row
			one.tasks, one.nodes, one.pids = 0, string(sh.Node), u.PIDs[sh.Node]
			rows = append(rows, one)
		}
	}
	if o.pids {
		return rows
	}
	row.nodes = front.NodeText(names)
	return []statRow{row}
}
