package submit

import (
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/jobfield"
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
	{Long: "container-type", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Meta: "type", Ignored: "muster runs containers by itself, whatever their type"},
	{Long: "exclude-topology", On: opt.All, Newer: true, Hidden: true,
		Ignored: "no such planning"},
	{Long: "external", On: opt.Sbatch, Newer: true,
		Help: "hold nodes for another manager: run nothing until the job is cancelled or its time is over",
		Set:  func(*Request, string) error { return nil }},
	{Long: "external-launcher", Arg: opt.Optional, On: opt.Srun, Newer: true,
		Help: "a task on each node that takes nothing from other steps and has all that the job has there",
		Set: func(r *Request, _ string) error {
			r.Way.launcher = true
			return nil
		}},
	{Long: "ignore-signals", Arg: opt.Required, On: opt.Srun, Newer: true,
		Meta: "signals", Help: "signals that srun itself ignores", Set: setIgnoredSignals},
	{Long: "mem-update", Arg: opt.Required, On: opt.All, Newer: true, Hidden: true, Meta: "margin@delay",
		Help: "not supported: change the memory of a running job with scontrol update", Set: refuseMemUpdate},
	{Long: "notify", Arg: opt.Required, On: opt.All, Env: "NOTIFY", Newer: true,
		Meta: "URL",
		Help: "call a URL (http, https) when the job begins, ends, fails or is requeued, or at the events of --mail-type",
		Set:  setNotify},
	{Long: "oom-kill-step", Arg: opt.Optional, On: opt.All, Env: "OOM_KILL_STEP", Newer: true,
		Meta: "0|1", Help: "end the whole step when a process of it is killed for want of memory",
		Set: setOOMKillStep},
	{Long: "resources", Arg: opt.Required, On: opt.All, Newer: true, Hidden: true,
		Ignored: "no such planning"},
	{Long: "resv-ports", Arg: opt.Optional, On: opt.Sbatch | opt.Salloc, Newer: true, Hidden: true,
		Meta: "count", Help: "not supported for jobs: use srun --resv-ports",
		Set: refuseJobPorts},
	{Long: "stepmgr", On: opt.All, Newer: true,
		Ignored: "steps never load the server"},
	{Long: "tree-width", Arg: opt.Required, On: opt.Srun, Env: "TREE_WIDTH", Newer: true,
		Meta: "n", Ignored: noFanOut, Set: checkTreeWidth},
	{Long: "treewidth", Arg: opt.Required, On: opt.Srun, Newer: true, Alias: "tree-width"},
	{Long: "tres-bind", Arg: opt.Required, On: opt.All, Env: "TRES_BIND", Newer: true, Group: opt.GPU,
		Meta: "list", Help: "bind tasks to GPUs: gres/gpu:TYPE, with the types of --gpu-bind",
		Set: setTRESBind},
	{Long: "tres-per-task", Arg: opt.Required, On: opt.All, Env: "TRES_PER_TASK", Newer: true,
		Meta: "list", Help: "resources required per task",
		Set: func(r *Request, v string) error {
			return checkTRESPerTask(r, v)
		}},
	{Long: "wait-for-children", On: opt.Srun, Newer: true, Hidden: true,
		Help: "not supported: a task ends with its first process", Set: refuseChildren},
	{Long: "accept-preempt", On: opt.All, Newer: true, Hidden: true,
		Ignored: "no such planning"},
}

// noFanOut is why widths of trees have no effect.
const noFanOut = "the launch has no fan-out to set"

// maxTreeWidth is Slurm's bound.
const maxTreeWidth = 65533

// checkTreeWidth refuses what Slurm refuses of --treewidth.
func checkTreeWidth(_ *Request, v string) error {
	n := 0
	if strings.EqualFold(v, "off") || values.SetCount(v, 1, &n) == nil && n <= maxTreeWidth {
		return nil
	}
	return opt.Errorf(opt.CodeUsage, "error: Invalid --treewidth value: %s", v)
}

// refuseJobPorts refuses ports of a whole job, as Slurm does without its step manager.
func refuseJobPorts(r *Request, v string) error {
	if err := setResvPorts(r, v); err != nil {
		return err
	}
	return opt.Errorf(opt.CodeError, "error: --resv-ports: muster reserves ports for steps only; "+
		"use srun --resv-ports in the job")
}

// refuseChildren refuses to wait for processes that a task leaves behind.
func refuseChildren(*Request, string) error {
	return opt.Errorf(opt.CodeError, "error: --wait-for-children is not supported: "+
		"a task ends with its first process; let that wait for the others, for example by `wait` in a shell script")
}

// refuseMemUpdate refuses to measure a job and take memory from it, and what Slurm refuses of --mem-update.
func refuseMemUpdate(_ *Request, v string) error {
	margin, delay, ok := strings.Cut(v, "@")
	if !ok {
		return opt.Errorf(opt.CodeError, "error: --mem-update requires MARGIN@DELAY format")
	}
	n := 0
	if _, valid := values.ParseTimeLimit(delay); !valid || values.SetCount(margin, 1, &n) != nil {
		return opt.Errorf(opt.CodeError, "error: Invalid --mem-update specification")
	}
	return opt.Errorf(opt.CodeError, "error: --mem-update is not supported: to reduce a running job's memory, "+
		"use scontrol update jobid=JOB minmemorynode=MB; sstat shows what it has used")
}

// setIgnoredSignals reads names and numbers of signals.
func setIgnoredSignals(r *Request, v string) error {
	var list []int
	for word := range strings.SplitSeq(v, ",") {
		n := values.SignalNumber(word)
		switch {
		case v == "":
			return opt.Errorf(opt.CodeError, "error: --ignore-signals requires at least one signal")
		case n <= 0 || n > maxSignal:
			return opt.Errorf(opt.CodeError, "error: Invalid signal name or number: %s", word)
		case n == sigKill || n == sigStop:
			return opt.Errorf(opt.CodeError, "error: Signal %s cannot be ignored", word)
		}
		list = append(list, n)
	}
	r.Way.Ignore = list
	return nil
}

// The highest signal, and those that no program can ignore.
const (
	maxSignal = 64
	sigKill   = 9
	sigStop   = 19
)

// optionsOwn are options that Slurm does not have.
var optionsOwn = []opt.Option[Request]{
	{Long: "nccl-env", On: opt.All, Env: "NCCL_ENV", Newer: true, Group: opt.GPU,
		Help: "tell NCCL the ports nearest to each task's GPUs",
		Set: func(r *Request, _ string) error {
			r.Job.NCCLEnv = true
			return nil
		}},
	{Long: "chain", On: opt.Sbatch, Env: "CHAIN", Newer: true,
		Help: "at the time limit, requeue a job that has saved a checkpoint since it began",
		Set: func(r *Request, _ string) error {
			survives(r).Chain = true
			return nil
		}},
	{Long: "checkpoint-file", Arg: opt.Required, On: opt.All, Env: "CHECKPOINT_FILE", Newer: true,
		Meta: "path", Help: "a file that changes whenever the job has saved a checkpoint",
		Set: setCheckpointFile},
	{Long: "checkpoint-signal", Arg: opt.Required, On: opt.All, Env: "CHECKPOINT_SIGNAL", Newer: true,
		Meta: "[B:]num[@time]", Help: "as --signal; the job saves a checkpoint on it, so it also comes before a preemption",
		Set: setCheckpointSignal},
	{Long: "hang", Arg: opt.Required, On: opt.All, Env: "HANG", Newer: true,
		Meta: "off|report|stack|signal|swap|requeue[,after=time]",
		Help: "what becomes of the job when it makes no progress any more",
		Set:  setHang},
	{Long: "straggler", Arg: opt.Required, On: opt.Sbatch | opt.Salloc, Env: "STRAGGLER", Newer: true,
		Meta: "off|report|swap", Help: "what becomes of the job when one of its GPUs is slower than the others",
		Set: func(r *Request, v string) error {
			survives(r).Straggler = cluster.StragglerAction(strings.ToLower(v))
			return nil
		}},
	{Long: "spare", Arg: opt.Required, On: opt.Sbatch | opt.Salloc, Env: "SPARE", Newer: true, Group: opt.Constraints,
		Meta: "n|n%", Help: "allocate n more nodes, which take the place of nodes that fail while the job runs",
		Set: setSpares},
	{Long: "spare-restart", Arg: opt.Required, On: opt.Sbatch | opt.Salloc, Env: "SPARE_RESTART", Newer: true,
		Meta: "step|job|signal|rank", Help: "what starts again when a spare takes the place of a node (default: step)",
		Set: func(r *Request, v string) error {
			survives(r).Restart = cluster.SpareRestart(strings.ToLower(v))
			return nil
		}},
}

// survives is where a request says what the job asks for against faults.
func survives(r *Request) *cluster.Resilience {
	if r.Job.Resilience == nil {
		r.Job.Resilience = &cluster.Resilience{}
	}
	return r.Job.Resilience
}

// setCheckpointFile keeps where the job's own programs say that a checkpoint is saved.
func setCheckpointFile(r *Request, v string) error {
	if v == "" {
		return opt.ErrSpec
	}
	survives(r).CheckpointFile = v
	return nil
}

// setCheckpointSignal keeps the signal on which the job saves its work.
func setCheckpointSignal(r *Request, v string) error {
	if err := setSignal(r, v); err != nil {
		return err
	}
	survives(r).SavesOnSignal = r.Job.Signal.Num != 0
	return nil
}

// setHang keeps the job's rule for hangs.
func setHang(r *Request, v string) error {
	if _, err := cluster.ParseHangRule(v); err != nil {
		return opt.Errorf(opt.CodeError, "error: --hang: %v", err)
	}
	survives(r).Hang = v
	return nil
}

// optionsOfFields are the options of which all is said by a row of jobfield.
func optionsOfFields() (list []opt.Option[Request]) {
	for i := range jobfield.Rows {
		if row := &jobfield.Rows[i]; row.New != nil {
			list = append(list, optionOf(row))
		}
	}
	return list
}

// optionOf is the option of a row.
func optionOf(row *jobfield.Row) opt.Option[Request] {
	o := opt.Option[Request]{Long: row.Option, Arg: opt.Required, On: opt.All, Newer: true}
	o.Env = row.New.Env
	o.Group = row.New.Group
	o.Meta = row.New.Meta
	o.Help = row.New.Help
	switch row.Form {
	case jobfield.Text:
		at := jobfield.In[string](row)
		o.Set = func(r *Request, v string) error {
			*at(&r.Job) = v
			return nil
		}
	case jobfield.Count:
		at := jobfield.In[int](row)
		o.Set = func(r *Request, v string) error { return values.SetCount(v, 1, at(&r.Job)) }
	case jobfield.Flag:
		at := jobfield.In[bool](row)
		o.Arg = opt.None
		o.Set = func(r *Request, _ string) error {
			*at(&r.Job) = true
			return nil
		}
	}
	return o
}

// setSpares keeps how many nodes stand by: N, or N% of the job's nodes, which finish counts.
func setSpares(r *Request, v string) error {
	n := 0
	if err := values.SetCount(strings.TrimSuffix(v, "%"), 0, &n); err != nil {
		return err
	}
	survives(r).Spares = n
	return nil
}
