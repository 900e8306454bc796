package submit

import (
	"dev.muster/cluster"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// optionsFtoN are the options F to N.
var optionsFtoN = []opt.Option[Request]{
	{Long: "get-user-env", Arg: opt.Optional, On: opt.Sbatch | opt.Salloc, Env: "sbatch=SBATCH_GET_USER_ENV",
		Meta: "timeout|mode", Help: "start from the login environment of the user",
		Set: setGetUserEnv},
	{Long: "gid", Arg: opt.Required, On: opt.All,
		Meta: "group", Help: "group to run job as (root only)",
		Set: setGID},
	{Long: "gpu-bind", Arg: opt.Required, On: opt.All, Env: "GPU_BIND", Group: opt.GPU,
		Meta: "type", Help: "bind tasks to GPUs",
		Set: func(r *Request, v string) error {
			r.Job.GPUBind = v
			return values.CheckGPUBind(v)
		}},
	{Long: "gpu-freq", Arg: opt.Required, On: opt.All, Env: "GPU_FREQ", Group: opt.GPU,
		Meta: "[type=]value", Help: "frequency of GPUs",
		Set: func(r *Request, v string) error {
			r.Job.GPUFreq = v
			noteFreq(r, "gpu-freq")
			return values.CheckGPUFreq(v)
		}},
	{Long: "gpus", Short: 'G', Arg: opt.Required, On: opt.All, Env: "GPUS", Group: opt.GPU,
		Meta: "[type:]n", Help: "GPUs required for the job",
		Set: func(r *Request, v string) error { return values.SetGPUs(v, &r.Job.PerJob) }},
	{Long: "gpus-per-node", Arg: opt.Required, On: opt.All, Env: "GPUS_PER_NODE", Group: opt.GPU,
		Meta: "[type:]n", Help: "GPUs required per allocated node",
		Set: setGPUsPerNode},
	{Long: "gpus-per-socket", Arg: opt.Required, On: opt.All, Group: opt.GPU,
		Meta: "[type:]n", Help: "GPUs required per allocated socket",
		Set: func(r *Request, v string) error { return values.SetGPUs(v, &r.Job.PerSocket) }},
	{Long: "gpus-per-task", Arg: opt.Required, On: opt.All, Env: "GPUS_PER_TASK", Group: opt.GPU,
		Meta: "[type:]n", Help: "GPUs required per spawned task",
		Set: func(r *Request, v string) error { return values.SetGPUs(v, &r.Job.PerTask) }},
	{Long: "gres", Arg: opt.Required, On: opt.All, Env: "GRES",
		Meta: "list", Help: "required generic resources",
		Set: setGRES},
	{Long: "gres-flags", Arg: opt.Required, On: opt.All, Env: "GRES_FLAGS",
		Meta: "type", Help: "how generic resources and CPUs go together",
		Set: setGRESFlags},
	{Long: "help", Short: 'h', On: opt.All, Group: opt.HelpGroup,
		Help: "show this help message"},
	{Long: "het-group", Arg: opt.Required, On: opt.Srun,
		Meta: "value", Help: "components of a heterogeneous job",
		Set: readAhead},
	{Long: "hint", Arg: opt.Required, On: opt.All, Env: "HINT sbatch=SLURM_HINT salloc=SLURM_HINT", Group: opt.Affinity,
		Meta: "type", Help: "bind tasks by what the application is bound by (see --hint=help)",
		Set: func(r *Request, v string) error {
			r.Job.Hint = v
			if v == "help" {
				return values.CheckHint(v)
			}
			return nil // hinted looks at it: one that options overrule may be anything
		}},
	{Long: "hold", Short: 'H', On: opt.All,
		Help: "submit job in held state",
		Set: func(r *Request, v string) error {
			r.Job.Hold = true
			return nil
		}},
	{Long: "ignore-pbs", On: opt.Sbatch, Env: "IGNORE_PBS",
		Help: "ignore #PBS and #BSUB lines of the script",
		Set: func(r *Request, v string) error {
			r.Client.IgnorePBS = true
			return nil
		}},
	{Long: "immediate", Short: 'I', Arg: opt.Optional, On: opt.Srun | opt.Salloc, Env: "IMMEDIATE",
		Meta: "seconds", Help: "give up if the resources are not there in this time",
		Set: setImmediate},
	{Long: "input", Short: 'i', Arg: opt.Required, On: opt.Sbatch | opt.Srun,
		Env:  "sbatch=SBATCH_INPUT srun=SLURM_STDINMODE",
		Meta: "file", Help: "file for standard input",
		Set: func(r *Request, v string) error {
			r.Client.Input = v
			return nil
		}},
	{Long: "interactive", On: opt.Srun, Hidden: true,
		Set: func(r *Request, v string) error {
			r.Client.Interactive = true
			return nil
		}},
	{Long: "jobid", Arg: opt.Required, On: opt.Srun, Env: "srun=SLURM_JOB_ID",
		Meta: "id", Help: "run under an allocated job",
		Set: setJobID},
	{Long: "job-name", Short: 'J', Arg: opt.Required, On: opt.All, Env: "sbatch=SBATCH_JOB_NAME srun=SLURM_JOB_NAME",
		Meta: "name", Help: "name of job",
		Set: setJobName},
	{Long: "kill-command", Short: 'K', Arg: opt.Optional, On: opt.Salloc, Env: "salloc=SALLOC_KILL_CMD",
		Meta: "signal", Help: "send the command a signal when the job ends",
		Set: setKillCommand},
	{Long: "kill-on-bad-exit", Short: 'K', Arg: opt.Optional, On: opt.Srun, Env: "srun=SLURM_KILL_BAD_EXIT",
		Meta: "0|1", Help: "end the step if a task fails",
		Set: setKillOnBadExit},
	{Long: "kill-on-invalid-dep", Arg: opt.Required, On: opt.Sbatch,
		Meta: "yes|no", Help: "end the job if its dependency can never be met",
		Set: setKillInvalidDep},
	{Long: "label", Short: 'l', On: opt.Srun, Env: "srun=SLURM_LABELIO",
		Help: "put the task number before each line of output",
		Set: func(r *Request, v string) error {
			r.Client.Label = true
			return nil
		}},
	{Long: "licenses", Short: 'L', Arg: opt.Required, On: opt.All,
		Meta: "names", Help: "required licenses",
		Set: func(r *Request, v string) error {
			r.Job.Licenses = v
			return nil
		}},
	{Long: "mail-type", Arg: opt.Required, On: opt.All,
		Meta: "type", Help: "when to send mail: BEGIN, END, FAIL, ALL ...",
		Set: setMailType},
	{Long: "mail-user", Arg: opt.Required, On: opt.All,
		Meta: "user", Help: "who is sent mail",
		Set: setMailUser},
	{Long: "mcs-label", Arg: opt.Required, On: opt.All,
		Meta: "mcs", Help: "MCS label",
		Set: func(r *Request, v string) error {
			r.Job.MCSLabel = v
			return nil
		}},
	{Long: "mem", Arg: opt.Required, On: opt.All,
		Env:   "sbatch=SBATCH_MEM_PER_NODE srun=SLURM_MEM_PER_NODE salloc=SALLOC_MEM_PER_NODE",
		Group: opt.Constraints,
		Meta:  "MB", Help: "memory per node; 0: all of it",
		Set: func(r *Request, v string) error { return r.setMem(v, cluster.MemPerNode) }},
	{Long: "mem-bind", Arg: opt.Required, On: opt.All, Env: "MEM_BIND", Group: opt.Affinity,
		Meta: "type", Help: "bind memory to NUMA domains (see --mem-bind=help)",
		Set: func(r *Request, v string) error {
			r.Job.MemBind = v
			return values.CheckMemBind(v)
		}},
	{Long: "mem-per-cpu", Arg: opt.Required, On: opt.All, Env: "MEM_PER_CPU", Group: opt.Consumable,
		Meta: "MB", Help: "memory per allocated CPU",
		Set: func(r *Request, v string) error { return r.setMem(v, cluster.MemPerCPU) }},
	{Long: "mem-per-gpu", Arg: opt.Required, On: opt.All, Env: "MEM_PER_GPU", Group: opt.GPU,
		Meta: "MB", Help: "memory per allocated GPU",
		Set: func(r *Request, v string) error { return r.setMem(v, cluster.MemPerGPU) }},
	{Long: "mincpus", Arg: opt.Required, On: opt.All, Group: opt.Constraints,
		Meta: "n", Help: "least count of CPUs per node",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.MinCPUs) }},
	{Long: "mpi", Arg: opt.Required, On: opt.Srun, Env: "srun=SLURM_MPI_TYPE",
		Meta: "type", Help: "kind of MPI (see --mpi=list)",
		Set: func(r *Request, v string) error {
			r.Client.MPI = v
			return nil
		}},
	{Long: "msg-timeout", Arg: opt.Required, On: opt.Srun,
		Meta: "seconds", Ignored: "time limits of messages are fixed",
		Set: func(r *Request, v string) error {
			var n int
			return values.SetCount(v, 1, &n)
		}},
	{Long: "multi-prog", On: opt.Srun, Env: "srun=SLURM_SRUN_MULTI",
		Help: "the program named is a file that says what each task runs",
		Set: func(r *Request, v string) error {
			r.Client.MultiProg = true
			return nil
		}},
	{Long: "network", Arg: opt.Required, On: opt.All, Env: "NETWORK",
		Meta: "type", Help: "network resources",
		Set: func(r *Request, v string) error {
			r.Job.Network = v
			return nil
		}},
	{Long: "nice", Arg: opt.Optional, On: opt.All,
		Meta: "value", Help: "lower the priority by value",
		Set: setNice},
	{Long: "no-allocate", Short: 'Z', On: opt.Srun, Group: opt.Constraints,
		Ignored: "nodes are always allocated",
		Set:     func(r *Request, v string) error { return r.checkNoAllocate() }},
	{Long: "no-bell", On: opt.Salloc, Env: "NO_BELL",
		Help: "do not ring the terminal bell",
		Set: func(r *Request, v string) error {
			no := false
			r.Client.Bell = &no
			return nil
		}},
	{Long: "no-kill", Short: 'k', Arg: opt.Optional, On: opt.All, Env: "NO_KILL",
		Meta: "off", Help: "go on with the other nodes where one fails that is not the first",
		Set: setNoKill},
	{Long: "no-requeue", On: opt.Sbatch, Env: "NO_REQUEUE",
		Help: "do not permit the job to be requeued",
		Set: func(r *Request, v string) error {
			no := false
			r.Job.Requeue = &no
			return nil
		}},
	{Long: "no-shell", On: opt.Salloc,
		Help: "allocate and leave without running a command",
		Set: func(r *Request, v string) error {
			r.Client.NoShell = true
			return nil
		}},
	{Long: "nodefile", Short: 'F', Arg: opt.Required, On: opt.All, Group: opt.Constraints,
		Meta: "file", Help: "file with a list of hosts to request",
		Set: setNodeFile},
	{Long: "nodelist", Short: 'w', Arg: opt.Required, On: opt.All, Group: opt.Constraints,
		Meta: "hosts", Help: "request a specific list of hosts",
		Set: func(r *Request, v string) error { return r.setHosts(v, &r.Job.NodeList) }},
	{Long: "nodes", Short: 'N', Arg: opt.Required, On: opt.All, Env: "srun=SLURM_JOB_NUM_NODES",
		Meta: "N", Help: "number of nodes (N = min[-max])",
		Set: setNodes},
	{Long: "ntasks", Short: 'n', Arg: opt.Required, On: opt.All, Env: "srun=SLURM_NPROCS srun=SLURM_NTASKS",
		Meta: "n", Help: "number of tasks",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.Tasks) }},
	{Long: "ntasks-per-core", Arg: opt.Required, On: opt.All, Env: "srun=SLURM_NTASKS_PER_CORE", Group: opt.Affinity,
		Meta: "n", Help: "tasks on each core",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.TasksPerCore) }},
	{Long: "ntasks-per-gpu", Arg: opt.Required, On: opt.All, Env: "srun=SLURM_NTASKS_PER_GPU", Group: opt.Affinity,
		Meta: "n", Help: "tasks for each GPU",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.TasksPerGPU) }},
	{Long: "ntasks-per-node", Arg: opt.Required, On: opt.All, Env: "srun=SLURM_NTASKS_PER_NODE",
		Meta: "n", Help: "tasks on each node",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.TasksPerNode) }},
	{Long: "ntasks-per-socket", Arg: opt.Required, On: opt.All, Env: "srun=SLURM_NTASKS_PER_SOCKET",
		Group: opt.Affinity,
		Meta:  "n", Help: "tasks on each socket",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.TasksPerSocket) }},
	{Long: "ntasks-per-tres", Arg: opt.Required, On: opt.All, Env: "srun=SLURM_NTASKS_PER_TRES", Hidden: true,
		Meta: "n", Help: "tasks for each GPU",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.TasksPerGPU) }},
}
