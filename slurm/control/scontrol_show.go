package control

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
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
		r.b = append(r.b, p...)
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

// jobRecord writes one job as scontrol show job does.
func (c *control) jobRecord(r *show.JobRow) {
	o, s := c.record(), r.Spec
	head := "JobId=" + front.UintText(uint32(r.ID))
	if r.ArrayID != 0 {
		head += " ArrayJobId=" + front.UintText(uint32(r.ArrayID)) + " ArrayTaskId=" + r.TaskText()
		if t := r.Throttle(); t > 0 {
			head += " ArrayTaskThrottle=" + strconv.Itoa(t)
		}
	}
	if r.Het != nil {
		head += " HetJobId=" + front.UintText(uint32(r.Het.ID)) + " HetJobOffset=" + strconv.Itoa(r.Het.Offset)
	}
	o.line(head, " JobName=", format.Null(s.Name))
	if r.Het != nil {
		o.line("HetJobIdSet=", show.HetSet(r.Het))
	}
	o.line("UserId=", s.User, "(", front.UintText(s.UID), ") GroupId=", r.Group(), "(", front.UintText(s.GID), ") MCS_label=", show.OrNA(s.MCSLabel))
	o.line("Priority=", front.UintText(r.Priority), " Nice=", strconv.Itoa(s.Nice), " Account=", format.Null(s.Account), " QOS=", format.Null(s.QOS), wckey(s))
	o.line("JobState=", r.State.Long, " Reason=", strings.ReplaceAll(r.Reason(), " ", "_"), " Dependency=", format.Null(r.DependsText()))
	o.line("Requeue=", show.Bit(r.Requeues()), " Restarts=", strconv.Itoa(r.Restarts), " BatchFlag=", show.Bit(s.Kind == cluster.Batch),
		" Reboot=", show.Bit(s.Reboot), " ExitCode=", show.ExitText(show.ShownExit(r)))
	if c.details {
		o.line("DerivedExitCode=", show.ExitText(r.Derived))
	}
	c.jobTimes(o, r)
	o.line("Partition=", r.Partition(), " AllocNode:Sid=", s.SubmitHost, ":", strconv.Itoa(s.AllocSid))
	o.line("ReqNodeList=", format.Null(front.NodeText(s.NodeList)), " ExcNodeList=", format.Null(front.NodeText(s.Exclude)))
	planned := ""
	if len(r.PlannedNodes) > 0 {
		planned = " SchedNodeList=" + front.NodeText(r.PlannedNodes)
	}
	o.line("NodeList=", r.Nodes(), planned)
	if n := r.FirstNode(); n != "" && s.Kind == cluster.Batch {
		o.line("BatchHost=", n)
	}
	c.jobSizes(o, r)
	c.jobFiles(o, r)
	if c.explains && !c.oneLine && r.Phase == cluster.Pending { // scripts take a line apart: one JobId= in it
		c.jobCauses(o, r)
	}
	o.line("")
	c.print(o)
}

// jobCauses writes what -d adds for a pending job that is asked for by its number: what muster why says.
func (c *control) jobCauses(o *record, r *show.JobRow) {
	resp, err := front.Call(c.sys, api.WhyJob, api.WhyRequest{Ref: cluster.Ref{Job: r.ID}})
	if err != nil {
		return // what it waits for is told all the same
	}
	for _, x := range resp.Causes {
		o.line("Why=", string(x.Reason), ": ", x.Text)
	}
	for _, h := range resp.Holders {
		job := ""
		if h.Job != nil {
			job = " JobId=" + front.UintText(uint32(h.Job.ID))
		}
		o.line("HeldBy=", front.NodeText(h.Nodes), job, " Until=", front.Stamp(h.Until))
	}
	for _, x := range resp.Changes {
		when := front.Stamp(x.StartsAt)
		if x.Now {
			when = "now"
		}
		o.line("Sooner=", x.Change, ": ", when)
	}
}

func wckey(s *cluster.JobSpec) string {
	if s.WCKey == "" {
		return ""
	}
	return " WCKey=" + s.WCKey
}

// jobTimes writes the lines of a job's times.
func (c *control) jobTimes(o *record, r *show.JobRow) {
	s := r.Spec
	unknown := func(t time.Time) string { return format.Stamp(t, "Unknown") }
	none := func(t time.Time) string { return format.Stamp(t, "None") }
	limitMin := "N/A"
	if s.LimitMin > 0 {
		limitMin = format.Padded(s.LimitMin)
	}
	o.line("RunTime=", format.Padded(r.Elapsed()), " TimeLimit=", format.Padded(r.Limit), " TimeMin=", limitMin)
	o.line("SubmitTime=", unknown(r.Submitted), " EligibleTime=", unknown(r.EligibleTime()))
	o.line("AccrueTime=", unknown(r.AccrueTime()))
	if at := r.ResizedAt(); !at.IsZero() {
		o.line("ResizeTime=", unknown(at))
	}
	o.line("StartTime=", unknown(r.Start()), " EndTime=", unknown(r.End()), " Deadline=", format.Stamp(s.Deadline, "N/A"))
	if !r.Started.IsZero() && r.Phase != cluster.Pending {
		var at time.Time
		if r.Preempt != nil {
			at = r.Preempt.At
		}
		o.line("PreemptEligibleTime=", unknown(r.Started.Add(r.View.Config().Config.Preempt.Exempt)), " PreemptTime=", none(at))
	}
	sched := "Main"
	if r.Backfilled {
		sched = "Backfill"
	}
	if r.Phase == cluster.Pending && !r.LastEval.IsZero() {
		sched += ":*"
	}
	o.line("SuspendTime=", none(r.SuspendedAt), " SecsPreSuspend=", strconv.Itoa(int(r.PreSuspend/time.Second)),
		" LastSchedEval=", unknown(r.EvalTime()), " Scheduler=", sched)
}

// jobSizes writes the lines that say what was asked for and given.
func (c *control) jobSizes(o *record, r *show.JobRow) {
	s := r.Spec
	nodes := strconv.Itoa(r.NumNodes())
	if r.Phase == cluster.Pending && s.MinNodes > 0 && s.Array == nil {
		nodes += "-" + strconv.Itoa(max(s.MaxNodes, r.NumNodes()))
	}
	o.line("NumNodes=", nodes, " NumCPUs=", strconv.Itoa(r.NumCPUs()), " NumTasks=", strconv.Itoa(r.NumTasks()),
		" CPUs/Task=", strconv.Itoa(s.TaskCPUs()), " ReqB:S:C:T=0:0:", show.Star(s.CoresPerSocket), ":", show.Star(s.ThreadsPerCore))
	o.line("TRES=", r.TRES())
	left := " CoreSpec=" + strings.ReplaceAll(r.CoreSpec(), "N/A", "*")
	if s.ThreadSpec != nil {
		left = " ThreadSpec=" + strconv.Itoa(*s.ThreadSpec)
	}
	o.line("Socks/Node=", show.Star(s.SocketsPerNode), " NtasksPerN:B:S:C=", zero(s.TasksPerNode), ":0:", show.Star(s.TasksPerSocket), ":", show.Star(s.TasksPerCore), left)
	if c.details && r.Alloc != nil {
		c.jobNodes(o, r)
	}
	m := r.Memory()
	per := "Node"
	if m.Per == cluster.MemPerCPU {
		per = "CPU"
	}
	o.line("MinCPUsNode=", strconv.Itoa(r.MinCPUs()), " MinMemory", per, "=", r.View.Mem(r.MinMemory()), " MinTmpDiskNode=", r.View.Mem(cluster.MemMB(s.TmpMB)))
	o.line("Features=", format.Null(s.Constraint), " DelayBoot=", format.Padded(s.DelayBoot))
	if s.Prefer != "" {
		o.line("Prefer=", s.Prefer)
	}
	if s.Reservation != "" {
		o.line("Reservation=", s.Reservation)
	}
	o.line("OverSubscribe=", r.Sharing(), " Contiguous=", show.Bit(s.Contiguous), " Licenses=", format.Null(s.Licenses), " Network=", format.Null(s.Network))
}

func zero(n int) string { return strconv.Itoa(n) }

// jobNodes writes what -d adds: what each node gives, like ones in one line.
func (c *control) jobNodes(o *record, r *show.JobRow) {
	kind := r.GPUType()
	gres := "(null)"
	if n := r.NumGPUs(); n > 0 {
		gres = "gpu:" + kind + strconv.Itoa(n)
	}
	o.line("JOB_GRES=", gres)
	shares := r.Alloc.Shares
	for i := 0; i < len(shares); {
		k := i + 1
		for k < len(shares) && shares[k].MemMB == shares[i].MemMB && shares[k].TaskCPUs().Equal(shares[i].TaskCPUs()) && shares[k].GPUs.Equal(shares[i].GPUs) {
			k++
		}
		var names []cluster.NodeName
		for _, sh := range shares[i:k] {
			names = append(names, sh.Node)
		}
		text := ""
		if g := shares[i].GPUs; !g.Empty() && r.Phase != cluster.Ended {
			text = "gpu:" + kind + strconv.Itoa(g.Len()) + "(IDX:" + g.String() + ")"
		}
		o.line("  Nodes=", front.NodeText(names), " CPU_IDs=", shares[i].TaskCPUs().String(), " Mem=", strconv.FormatInt(int64(shares[i].MemMB), 10), " GRES=", text)
		i = k
	}
}

// jobFiles writes the lines of commands and files, and the optional ones at the end.
func (c *control) jobFiles(o *record, r *show.JobRow) {
	s := r.Spec
	o.line("Command=", format.Null(r.Command()))
	o.line("WorkDir=", s.WorkDir)
	optional := func(name, value string) {
		if value != "" {
			o.line(name, "=", value)
		}
	}
	if s.AdminComment != "" {
		o.line("AdminComment=", s.AdminComment, " ")
	}
	if r.SystemComment != "" {
		o.line("SystemComment=", r.SystemComment, " ")
	}
	if s.Comment != "" {
		o.line("Comment=", s.Comment, " ")
	}
	if s.Kind == cluster.Batch {
		o.line("StdErr=", r.StdFile(2))
		o.line("StdIn=", r.StdFile(0))
		o.line("StdOut=", r.StdFile(1))
	}
	if asked := values.ParseFreq(s.CPUFreq).Shown(); asked != "" {
		o.line(asked, " ")
	}
	if s.Switches > 0 {
		o.line("Switches=", strconv.Itoa(s.Switches), "@", format.Padded(min(cmp.Or(s.SwitchWait, maxSwitchWait), maxSwitchWait)))
	}
	optional("BurstBuffer", s.BurstBuffer)
	o.line("Power=", s.Power)
	if kept := bindingKept(s.GRESFlags); kept != "" || s.Spread {
		spread := ""
		if s.Spread {
			spread = "SpreadJob=Yes"
		}
		o.line(kept, spread)
	}
	optional("CpusPerTres", r.CPUsPerTRES())
	optional("MemPerTres", r.MemPerTRES())
	if s.GPUBind != "" {
		o.line("TresBind=gpu:", s.GPUBind)
	}
	if s.GPUFreq != "" {
		o.line("TresFreq=gpu:", s.GPUFreq)
	}
	optional("TresPerJob", format.GRES(s.PerJob))
	optional("TresPerNode", format.GRES(s.PerNode))
	optional("TresPerSocket", format.GRES(s.PerSocket))
	optional("TresPerTask", format.GRES(s.PerTask))
	if s.TasksPerGPU > 0 {
		o.line("NtasksPerTRES=", strconv.Itoa(s.TasksPerGPU))
	}
	if len(s.MailType) > 0 {
		o.line("MailUser=", format.Null(s.MailUser), " MailType=", strings.Join(s.MailType, ","))
	}
}

// bindingKept tells whether a job's GPUs must be near its CPUs, if --gres-flags said so; 22.05 leaves no blank behind it.
func bindingKept(flags string) string {
	switch {
	case strings.Contains(flags, "enforce-binding"):
		return "GresEnforceBind=Yes"
	case strings.Contains(flags, "disable-binding"):
		return "GresEnforceBind=No"
	}
	return ""
}

// showJobs is scontrol show job [ID].
func (c *control) showJobs(arg string) int {
	q := api.JobQuery{}
	if arg != "" {
		t, ok := front.ParseTarget(arg)
		if !ok {
			return c.complain("scontrol_print_job error: Invalid job id specified")
		}
		q.Refs, q.Starts, c.explains = []cluster.Ref{t.Ref}, true, c.details
	}
	resp, err := front.Call(c.sys, api.ListJobs, q)
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_jobs error", err)
	}
	v := c.view(resp.Now)
	switch {
	case len(resp.Jobs) == 0 && strings.Contains(arg, "+"):
		_, _ = c.out.WriteString("Job " + arg + " not found\n")
		return 1
	case len(resp.Jobs) == 0 && arg != "":
		return c.complain("slurm_load_jobs error: Invalid job id specified")
	case len(resp.Jobs) == 0:
		_, _ = c.out.WriteString("No jobs in the system\n")
		return 0
	}
	if c.json {
		rows := make([]show.JobRow, 0, len(resp.Jobs))
		for _, j := range resp.Jobs {
			rows = append(rows, show.NewRow(v, j))
		}
		return show.WriteJobs(c.out, v, rows)
	}
	for _, j := range resp.Jobs {
		r := show.NewRow(v, j)
		if len(q.Refs) == 1 && !q.Refs[0].Tasks.Empty() && !j.Tasks.Empty() {
			one := *j
			one.Tasks = j.Tasks.Intersect(q.Refs[0].Tasks)
			if one.Tasks.Len() == 1 {
				one.Task, one.Tasks = one.Tasks.Min(), cluster.IDSet{}
			}
			r = show.NewRow(v, &one)
		}
		c.jobRecord(&r)
	}
	return 0
}

// nodeRecord writes one node as scontrol show node does.
func (c *control) nodeRecord(n *api.NodeInfo, parts []cluster.Partition) {
	o, inv := c.record(), &n.Inventory
	o.line("NodeName=", string(n.Name), arch(inv.Arch), " CoresPerSocket=", strconv.Itoa(inv.CoresPerSocket), " ")
	o.line("CPUAlloc=", strconv.Itoa(n.Load.CPUs.Len()), " CPUEfctv=", strconv.Itoa(inv.JobCPUCount()), " CPUTot=", strconv.Itoa(inv.CPUs), " CPULoad=N/A")
	o.line("AvailableFeatures=", show.Joined(inv.Available(), "(null)"))
	o.line("ActiveFeatures=", show.Joined(inv.Features, "(null)"))
	o.line("Gres=", show.GRESText(inv))
	if c.details {
		o.line("GresDrain=N/A")
		o.line("GresUsed=", show.GRESUsed(n))
		if len(inv.NICs) > 0 {
			o.line("NICs=", show.NICText(inv))
		}
	}
	o.line("NodeAddr=", show.NodeAddr(n), " NodeHostName=", cmp.Or(inv.Host, string(n.Name)), " Port=", show.NodePort(n), " Version=", cmp.Or(inv.Version, front.SlurmVersion))
	if inv.OS != "" {
		o.line("OS=", inv.OS, " ")
	}
	free := "N/A"
	if inv.FreeMemMB > 0 {
		free = strconv.FormatInt(int64(inv.FreeMemMB), 10)
	}
	o.line("RealMemory=", strconv.FormatInt(int64(inv.MemMB), 10), " AllocMem=", strconv.FormatInt(int64(n.Load.MemMB), 10), " FreeMem=", free,
		" Sockets=", strconv.Itoa(inv.Sockets), " Boards=1")
	if kept := keptText(inv); kept != "" {
		o.line(kept)
	}
	o.line("State=", show.StateFlags(show.NodeState(n)), " ThreadsPerCore=", strconv.Itoa(inv.ThreadsPerCore), " TmpDisk=", strconv.FormatInt(inv.TmpMB, 10),
		" Weight=", strconv.Itoa(max(inv.Weight, 1)), " Owner=N/A MCS_label=N/A", nextState(n))
	var names []string
	for i := range parts {
		if parts[i].All || slices.Contains(parts[i].Nodes, n.Name) {
			names = append(names, parts[i].Name)
		}
	}
	if len(names) > 0 {
		o.line("Partitions=", strings.Join(names, ","), " ")
	}
	o.line("BootTime=", format.Stamp(inv.Boot, "None"), " SlurmdStartTime=", format.Stamp(n.Registered, "None"))
	o.line("LastBusyTime=", format.Stamp(n.LastBusy, "Unknown"))
	o.line("CfgTRES=", show.NodeTRES(n, false))
	o.line("AllocTRES=", show.NodeTRES(n, true))
	o.line("CapWatts=n/a")
	o.line("CurrentWatts=0 AveWatts=0")
	o.line("ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s")
	if n.Comment != "" {
		o.line("Comment=", n.Comment)
	}
	if n.Extra != "" {
		o.line("Extra=", n.Extra)
	}
	if n.Reason != "" {
		o.line("Reason=", n.Reason, " [", n.ReasonBy, "@", format.Stamp(n.ReasonAt, "Unknown"), "]")
	}
	c.print(o)
}

// keptText is what a node keeps from jobs.
func keptText(inv *cluster.Inventory) (text string) {
	if !inv.SpecCPUs.Empty() {
		text = "CoreSpecCount=" + strconv.Itoa(inv.CoresOf(inv.SpecCPUs).Len()) + " CPUSpecList=" + inv.SpecCPUs.String() + " "
	}
	if inv.SpecMemMB > 0 {
		text += "MemSpecLimit=" + strconv.FormatInt(int64(inv.SpecMemMB), 10)
	}
	return text
}

// maxSwitchWait is the longest wait for switches unless a cluster says otherwise, and the default.
const maxSwitchWait = 5 * time.Minute

// nextState is the state in which a node is after the reboot that is asked for.
func nextState(n *api.NodeInfo) string {
	switch {
	case n.Reboot == nil:
	case n.Reboot.Next == cluster.NodeSetDown:
		return " NextState=DOWN"
	case n.Reboot.Asap || n.Reboot.Next == cluster.NodeResume:
		return " NextState=RESUME"
	}
	return ""
}

func arch(text string) string {
	if text == "" {
		return ""
	}
	return " Arch=" + text
}

// showNodes is scontrol show node [LIST].
func (c *control) showNodes(arg string) int {
	var q api.NodeQuery
	all := arg == "" || strings.EqualFold(arg, "ALL")
	names, bad := hostlist.Expand(arg)
	if !all && bad == nil && !c.json {
		for _, name := range names {
			q.Names = append(q.Names, cluster.NodeName(name))
		}
	}
	resp, err := front.Call(c.sys, api.ListNodes, q)
	switch {
	case err != nil:
		return show.LoadFailed(c.sys, "slurm_load_node error", err)
	case c.json:
		return c.nodesJSON(resp)
	case all:
		if len(resp.Nodes) == 0 {
			_, _ = c.out.WriteString("No nodes in the system\n")
		}
		for i := range resp.Nodes {
			if n := &resp.Nodes[i]; c.future || !show.Hidden(show.NodeState(n)) {
				c.nodeRecord(n, resp.Partitions)
			}
		}
		return 0
	case bad != nil:
		return c.complain("Node " + arg + " not found")
	}
	found := make(map[cluster.NodeName]*api.NodeInfo, len(resp.Nodes))
	for i := range resp.Nodes {
		found[resp.Nodes[i].Name] = &resp.Nodes[i]
	}
	code := 0
	for _, name := range q.Names {
		n, ok := found[name]
		if !ok {
			_, _ = c.out.WriteString("Node " + string(name) + " not found\n")
			code = 1
			continue
		}
		c.nodeRecord(n, resp.Partitions)
	}
	return code
}

// nodesJSON prints the nodes as JSON.
func (c *control) nodesJSON(resp api.NodesResponse) int {
	return show.WriteList(c.out, c.view(resp.Now), "nodes", show.NodeMembers, resp.Nodes)
}

func upperYesNo(b bool) string { return strings.ToUpper(show.YesNo(b)) }

// partitionRecord writes one partition as scontrol show partition does.
func (c *control) partitionRecord(p *cluster.Partition, resp *api.NodesResponse) {
	o := c.record()
	row, of := show.InfoRow{Part: p}, make(map[cluster.NodeName]bool, len(p.Nodes))
	for _, name := range p.Nodes {
		of[name] = true
	}
	for i := range resp.Nodes {
		if n := &resp.Nodes[i]; p.All || of[n.Name] {
			row.Nodes = append(row.Nodes, n)
		}
	}
	o.line("PartitionName=", p.Name)
	o.line("AllowGroups=", show.Joined(p.AllowGroups, "ALL"), allow("Accounts", p.AllowAccounts, p.DenyAccounts), allow("Qos", p.AllowQOS, p.DenyQOS))
	o.line("AllocNodes=ALL Default=", upperYesNo(p.Default), " QoS=", cmp.Or(p.QOS, "N/A"))
	deflt := "NONE"
	if p.DefaultTime != 0 {
		deflt = format.Padded(p.DefaultTime)
	}
	o.line("DefaultTime=", deflt, " DisableRootJobs=", upperYesNo(p.DisableRootJobs), " ExclusiveUser=", upperYesNo(p.ExclusiveUser),
		" GraceTime=", strconv.Itoa(int(p.GraceTime/time.Second)), " Hidden=", upperYesNo(p.Hidden))
	o.line("MaxNodes=", show.UnlimitedCount(p.MaxNodes), " MaxTime=", format.Padded(show.MaxTime(p.MaxTime)), " MinNodes=", strconv.Itoa(p.MinNodes),
		" LLN=", upperYesNo(p.LLN), " MaxCPUsPerNode=", show.UnlimitedCount(p.MaxCPUsPerNode))
	o.line("Nodes=", format.Null(row.NodeList()))
	o.line("PriorityJobFactor=", strconv.Itoa(max(p.PriorityJobFactor, 1)), " PriorityTier=", strconv.Itoa(max(p.PriorityTier, 1)),
		" RootOnly=", upperYesNo(p.RootOnly), " ReqResv=", upperYesNo(p.ReqResv), " OverSubscribe=", cmp.Or(p.OverSubscribe, "NO"))
	o.line("OverTimeLimit=NONE PreemptMode=", cmp.Or(p.PreemptMode, "OFF"))
	_, _, _, cpus := row.CPUCounts()
	o.line("State=", cmp.Or(string(p.State), "UP"), " TotalCPUs=", strconv.Itoa(cpus), " TotalNodes=", strconv.Itoa(len(row.Nodes)), " SelectTypeParameters=NONE")
	o.line("JobDefaults=", jobDefaults(p.PerGPU))
	o.line(partitionMem("Def", p.DefMem), " ", partitionMem("Max", p.MaxMem))
	t := format.TRES{CPUs: cpus, Nodes: len(row.Nodes), Types: map[string]int64{}}
	for _, n := range row.Nodes {
		t.Mem += n.Inventory.MemMB
		gpus := n.Inventory.Found()
		t.GPUs += len(gpus)
		for _, g := range gpus {
			t.Types[g.Type]++
		}
	}
	if cpus > 0 {
		o.line("TRES=", c.billedAs(p, t))
	}
	if w := billingWeights(p); w != "" {
		o.line("TRESBillingWeights=", w)
	}
	c.print(o)
}

// billingWeights writes cpu=1,mem=0.25G,gres/gpu=2; memory is weighed by the gibibyte.
func billingWeights(p *cluster.Partition) string {
	var words []string
	for _, a := range p.BillingWeights {
		n, unit := a.N, ""
		if a.TRES == "mem" {
			n, unit = n*1024, "G"
		}
		words = append(words, a.TRES+"="+strconv.FormatFloat(n, 'f', -1, 64)+unit)
	}
	return strings.Join(words, ",")
}

// billedAs writes what a partition has, billed by its weights.
func (c *control) billedAs(p *cluster.Partition, t format.TRES) string {
	text := t.String()
	if conf, err := c.cluster(); err == nil && len(p.BillingWeights) > 0 {
		list := []cluster.Amount{{TRES: "cpu", N: float64(t.CPUs)}, {TRES: "mem", N: float64(t.Mem)}, {TRES: "node", N: float64(t.Nodes)}, {TRES: "gres/gpu", N: float64(t.GPUs)}}
		for kind, n := range t.Types {
			list = append(list, cluster.Amount{TRES: "gres/gpu:" + kind, N: float64(n)})
		}
		billing := int64(cluster.Billing(&conf.Config.Priority, p, list))
		text = strings.Replace(text, fmt.Sprintf("billing=%d", t.CPUs), fmt.Sprintf("billing=%d", billing), 1)
	}
	return text
}

func allow(name string, yes, no []string) string {
	if len(no) > 0 {
		return " Deny" + name + "=" + strings.Join(no, ",")
	}
	return " Allow" + name + "=" + show.Joined(yes, "ALL")
}

// jobDefaults is what jobs get for each GPU.
func jobDefaults(d cluster.PerGPU) string {
	var words []string
	if d.CPUs > 0 {
		words = append(words, "DefCpuPerGPU="+strconv.Itoa(d.CPUs))
	}
	if d.MemMB > 0 {
		words = append(words, "DefMemPerGPU="+strconv.FormatInt(int64(d.MemMB), 10))
	}
	return format.Null(strings.Join(words, ","))
}

func partitionMem(head string, m cluster.Mem) string {
	per := "Node"
	switch m.Per {
	case cluster.MemPerCPU:
		per = "CPU"
	case cluster.MemPerGPU:
		per = "GPU"
	}
	return head + "MemPer" + per + "=" + show.UnlimitedCount(int(m.MB))
}

// showPartitions is scontrol show partition [NAME].
func (c *control) showPartitions(arg string) int {
	resp, err := front.Call(c.sys, api.ListNodes, api.NodeQuery{})
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_partitions error", err)
	}
	found := false
	for i := range resp.Partitions {
		if p := &resp.Partitions[i]; arg == "" || p.Name == arg {
			c.partitionRecord(p, &resp)
			found = true
		}
	}
	if !found && arg != "" {
		_, _ = c.out.WriteString("Partition " + arg + " not found\n")
		return 1
	}
	return 0
}

// showSteps is scontrol show step [ID].
func (c *control) showSteps(arg string) int {
	var want front.Target
	if arg != "" {
		t, ok := front.ParseTarget(arg)
		if !ok {
			return c.complain("slurm_get_job_steps error: Invalid job id specified")
		}
		want = t
	}
	resp, err := front.Call(c.sys, api.ListSteps, api.StepQuery{Job: want.Ref.One()})
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_get_job_steps error", err)
	}
	v := c.view(resp.Now)
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
	o.line("StepId=", s.ShownID(), " UserId=", front.UintText(s.Job.Spec.UID), " StartTime=", format.Stamp(s.Started, "Unknown"), " TimeLimit=", format.Padded(s.TimeLimit()))
	o.line("State=RUNNING Partition=", s.Job.Partition(), " NodeList=", front.NodeText(nodes))
	o.line("Nodes=", strconv.Itoa(len(nodes)), " CPUs=", strconv.Itoa(s.CPUs()), " Tasks=", strconv.Itoa(s.Tasks), " Name=", s.Name, " Network=(null)")
	tres := "(null)"
	if s.ID.Step >= 0 {
		tres = stepTRES(s)
	}
	o.line("TRES=", tres)
	o.line("ResvPorts=(null)")
	asked, dist := "", ""
	if s.ID.Step >= 0 {
		asked, dist = values.ParseFreq(s.CPUFreq).Shown(), " Dist="+distribution(s.Distribution, s.Tasks, len(nodes))
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

// distribution names a step's distribution as scontrol does.
func distribution(asked string, tasks, nodes int) string {
	asked, _, _ = strings.Cut(asked, ":")
	switch {
	case asked == "" && tasks <= nodes:
		return "Cyclic"
	case asked == "":
		return "Block"
	}
	return strings.ToUpper(asked[:1]) + asked[1:]
}
