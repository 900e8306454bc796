package submit

import (
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// optionsNewer are options that came after Slurm 22.05, and pyxis's.
var optionsNewer = []opt.Option[Request]{
	{Long: "async", On: opt.Srun, Newer: true,
		Help: "return once the step has begun; swait waits for its end",
		Set: func(r *Request, _ string) error {
			r.Way.Async = true
			return nil
		}},
	{Long: "container-id", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Meta: "id", Ignored: "only OCI bundles of 23.02 have one"},
	{Long: "consolidate-segments", On: opt.All, Env: "CONSOLIDATE_SEGMENTS", Newer: true,
		Help: "all segments in one higher block",
		Set: func(r *Request, v string) error {
			r.Job.ConsolidateSegments = true
			return nil
		}},
	{Long: "exclude-topology", On: opt.All, Newer: true, Hidden: true,
		Ignored: "no such planning"},
	{Long: "external-launcher", Arg: opt.Optional, On: opt.Srun, Newer: true,
		Help: "a task on each node that takes nothing from other steps and has all that the job has there",
		Set: func(r *Request, _ string) error {
			r.Way.launcher = true
			return nil
		}},
	{Long: "extra", Arg: opt.Required, On: opt.All, Newer: true,
		Meta: "text", Ignored: "nothing reads it"},
	{Long: "notify", Arg: opt.Required, On: opt.All, Env: "NOTIFY", Newer: true,
		Meta: "URL",
		Help: "call a URL (http, https) when the job begins, ends, fails or is requeued, or at the events of --mail-type",
		Set:  setNotify},
	{Long: "oom-kill-step", Arg: opt.Optional, On: opt.All, Env: "OOM_KILL_STEP", Newer: true,
		Meta: "0|1", Ignored: "the kernel decides by cgroup"},
	{Long: "resources", Arg: opt.Required, On: opt.All, Newer: true, Hidden: true,
		Ignored: "no such planning"},
	{Long: "segment", Arg: opt.Required, On: opt.All, Env: "SEGMENT_SIZE", Newer: true,
		Meta: "size", Help: "nodes that belong into one block",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.Segment) }},
	{Long: "spread-segments", On: opt.All, Env: "SPREAD_SEGMENTS", Newer: true,
		Help: "no two segments in one base block",
		Set: func(r *Request, v string) error {
			r.Job.SpreadSegments = true
			return nil
		}},
	{Long: "stepmgr", On: opt.Sbatch | opt.Salloc, Newer: true,
		Ignored: "steps never load the server"},
	{Long: "tree-width", Arg: opt.Required, On: opt.Srun, Env: "TREE_WIDTH", Newer: true,
		Meta: "n", Ignored: "the launch has no fan-out to set"},
	{Long: "tres-bind", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.GPU,
		Meta: "list", Ignored: "use --gpu-bind"},
	{Long: "tres-per-task", Arg: opt.Required, On: opt.All, Env: "TRES_PER_TASK", Newer: true,
		Meta: "list", Help: "resources required per task",
		Set: func(r *Request, v string) error {
			return checkTRESPerTask(r, v)
		}},
	{Long: "autocomplete", Arg: opt.Required, On: opt.All, Newer: true, Hidden: true,
		Ignored: "completion is made by muster"},
	{Long: "accept-preempt", On: opt.All, Newer: true, Hidden: true,
		Ignored: "no such planning"},
}

// optionsOwn are options that Slurm does not have.
var optionsOwn = []opt.Option[Request]{
	{Long: "nccl-env", On: opt.All, Env: "NCCL_ENV", Newer: true, Group: opt.GPU,
		Help: "tell NCCL the ports nearest to each task's GPUs",
		Set: func(r *Request, _ string) error {
			r.Job.NCCLEnv = true
			return nil
		}},
}
