package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

// seffOptions is what seff's line asks for.
type seffOptions struct{ verbose, debug bool }

// SeffOptions are the options of seff.
var SeffOptions = []opt.Option[seffOptions]{
	{
		Long: "verbose", Short: 'v', On: opt.Seff, Help: "more messages",
		Set: func(o *seffOptions, _ string) error { o.verbose = true; return nil },
	},
	{
		Long: "debug", Short: 'd', On: opt.Seff, Help: "print what is computed with",
		Set: func(o *seffOptions, _ string) error { o.debug = true; return nil },
	},
	{Long: "version", Short: 'V', On: opt.Seff, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Seff, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Seff, Group: opt.HelpGroup, Help: "print a short help"},
}

// Seff tells how well a job used its CPUs and memory, in the words of Slurm's contributed script.
func Seff(sys *front.Sys, argv []string) int {
	var o seffOptions
	rest, code := front.ParseQuery(sys, opt.Seff, SeffOptions, &o, argv)
	if code >= 0 {
		return code
	}
	if len(rest) != 1 {
		return sayWrong(sys, "Usage: seff [Options] <Jobid>[_<arraytask>]")
	}
	t, ok := front.ParseTarget(rest[0])
	if !ok {
		return sayWrong(sys, "seff: Invalid job id: "+rest[0])
	}
	resp, err := front.History(sys, api.HistoryQuery{Refs: []cluster.Ref{t.Ref}, Steps: true})
	if err != nil {
		text, _ := front.ErrorText(err)
		return sys.Fail("%s", text)
	}
	cl, err := front.Call(sys, api.ShowCluster, api.Empty{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return sys.Fail("%s", text)
	}
	if len(resp.Records) == 0 {
		return sayWrong(sys, "Job not found.")
	}
	r := resp.Records[0]
	e := efficiencyOf(&r, resp.Now)
	if o.debug {
		fmt.Fprintf(sys.Stdout, "Slurm data: JobID ArrayJobID User Group State Clustername Ncpus Nnodes Ntasks Reqmem PerNode Cput Walltime Mem ExitStatus\nSlurm data: %d %d %s %d %s %s %d %d %d %d 1 %d %d %d %d\n",
			r.Job.ID, r.Job.ArrayID, r.Job.Spec.User, r.Job.Spec.GID, e.state, cl.Config.ClusterName, e.cpus, e.nodes, e.tasks, e.memory/1024,
			int64(e.cpu/time.Second), int64(e.wall/time.Second), e.used/1024, r.Job.Exit.Code)
	}
	e.print(sys, r.Job, cl.Config.ClusterName)
	return 0
}

// efficiency is what a job was given and used of it. Memory is in bytes.
type efficiency struct {
	state              string
	cpus, nodes, tasks int
	cpu, wall          time.Duration
	memory, used       int64
	gpus               int
	gpuUtil            int64 // hundredths of a percent, all GPUs together; -1: not sampled
}

// efficiencyOf adds up CPU time over the steps; of memory the step counts that used most, all of its tasks as much
// as its largest, as Slurm's own records give it. Of GPUs each step's mean counts for as long as the step lasted.
func efficiencyOf(r *api.JobHistory, now time.Time) (e efficiency) {
	j := r.Job
	e.state = (&acctRow{JobRow: show.JobRow{Job: j}}).stateText()
	e.wall = j.RunTime(now).Truncate(time.Second)
	e.tasks = 1
	if j.Alloc != nil {
		e.nodes = len(j.Alloc.Shares)
		for _, sh := range j.Alloc.Shares {
			e.cpus += sh.CPUs.Len()
			e.memory += int64(sh.MemMB) << 20
			e.gpus += sh.GPUs.Len()
		}
	}
	e.gpuUtil = -1
	gpuTime := 0.0 // hundredths of a percent times seconds
	for _, st := range r.Steps {
		e.cpu += st.Usage.UserCPU + st.Usage.SystemCPU
		e.tasks = max(e.tasks, st.Tasks)
		e.used = max(e.used, st.Usage.MaxRSS*int64(max(st.Tasks, 1)))
		if m, sampled := st.Usage.Measured(cluster.MeasuredGPUUtil, false); sampled {
			gpuTime += float64(m.Tot) * st.Ended.Sub(st.Started).Seconds()
			e.gpuUtil = int64(gpuTime / max(e.wall.Seconds(), 1))
		}
	}
	e.cpu = e.cpu.Truncate(time.Second)
	return e
}

func (e *efficiency) print(sys *front.Sys, j *cluster.Job, cluster string) {
	line := func(form string, args ...any) { fmt.Fprintf(sys.Stdout, form+"\n", args...) }
	line("Job ID: %d", j.ID)
	if j.ArrayID != 0 && j.Task >= 0 {
		line("Array Job ID: %d_%d", j.ArrayID, j.Task)
	}
	line("Cluster: %s", cluster)
	group := strconv.FormatUint(uint64(j.Spec.GID), 10)
	if text, ok := front.Record("group", group); ok {
		group, _, _ = strings.Cut(text, ":")
	}
	line("User/Group: %s/%s", j.Spec.User, group)
	if e.state == "RUNNING" {
		line("State: %s", e.state)
	} else {
		line("State: %s (exit code %d)", e.state, j.Exit.Code)
	}
	if e.cpus == 1 {
		line("Cores: 1")
	} else if e.nodes > 0 {
		line("Nodes: %d", e.nodes)
		line("Cores per node: %d", e.cpus/e.nodes)
	}
	if j.Started.IsZero() || e.wall == 0 {
		line("Efficiency not available for jobs in the %s state.", e.state)
		return
	}
	core := e.wall * time.Duration(e.cpus)
	line("CPU Utilized: %s", seffTime(e.cpu))
	line("CPU Efficiency: %.2f%% of %s core-walltime", float64(e.cpu)/float64(core)*100, seffTime(core))
	line("Job Wall-clock time: %s", seffTime(e.wall))
	line("Memory Utilized: %s", seffSize(e.used))
	share := 0.0
	if e.memory > 0 {
		share = float64(e.used) / float64(e.memory) * 100
	}
	line("Memory Efficiency: %.2f%% of %s", share, seffSize(e.memory))
	if e.gpuUtil >= 0 && e.gpus > 0 {
		line("GPU Efficiency: %.1f%% of %d GPU%s", min(float64(e.gpuUtil)/100/float64(e.gpus), 100), e.gpus,
			front.Choose(e.gpus == 1, "", "s"))
	}
	if e.state == "RUNNING" {
		line("WARNING: Efficiency statistics may be misleading for RUNNING jobs.")
	}
}

// seffTime writes a time as [days-]HH:MM:SS.
func seffTime(d time.Duration) string {
	s := int64(d / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if s >= 86400 {
		return strconv.FormatInt(s/86400, 10) + "-" + text
	}
	return text
}

// seffSize writes bytes with a unit.
func seffSize(n int64) string {
	x, units := float64(n)/1024, strings.Fields("KB MB GB TB PB EB")
	for x >= 1024 && len(units) > 1 {
		x, units = x/1024, units[1:]
	}
	return fmt.Sprintf("%.2f %s", x, units[0])
}
