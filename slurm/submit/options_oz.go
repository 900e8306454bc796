package submit

import (
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// optionsOtoZ are the options O to Z.
var optionsOtoZ = []opt.Option[Request]{
	{Long: "open-mode", Arg: opt.Required, On: opt.Sbatch | opt.Srun, Env: "OPEN_MODE",
		Meta: "append|truncate", Help: "how to open output files",
		Set: setOpenMode},
	{Long: "output", Short: 'o', Arg: opt.Required, On: opt.Sbatch | opt.Srun,
		Env:  "sbatch=SBATCH_OUTPUT srun=SLURM_STDOUTMODE",
		Meta: "file", Help: "file for standard output",
		Set: func(r *Request, v string) error {
			r.Client.Output = v
			return nil
		}},
	{Long: "overcommit", Short: 'O', On: opt.All, Env: "OVERCOMMIT",
		Help: "allow more tasks than CPUs",
		Set: func(r *Request, v string) error {
			r.Job.Overcommit = true
			return nil
		}},
	{Long: "overlap", On: opt.Srun, Env: "OVERLAP",
		Help: "let other steps use the same resources",
		Set: func(r *Request, v string) error {
			r.Step.Overlap = true
			return nil
		}},
	{Long: "oversubscribe", Short: 's', On: opt.All,
		Help: "share nodes and CPUs with other jobs",
		Set: func(r *Request, v string) error {
			r.Job.Sharing = cluster.ShareOver
			return nil
		}},
	{Long: "pack-group", Arg: opt.Required, On: opt.Srun, Alias: "het-group", Hidden: true},
	{Long: "parsable", On: opt.Sbatch | opt.Srun,
		Help: "print only the job id, and ;cluster; of srun --async the step's id",
		Set: func(r *Request, v string) error {
			r.Client.Parsable = true
			return nil
		}},
	{Long: "partition", Short: 'p', Arg: opt.Required, On: opt.All, Env: "PARTITION",
		Meta: "names", Help: "partitions requested",
		Set: func(r *Request, v string) error {
			if r.Job.Partitions = front.SplitList(v); v == "" {
				r.Job.Partitions = []string{""} // an unset variable, say: refused, as one that is not there
			}
			return nil
		}},
	{Long: "power", Arg: opt.Required, On: opt.All, Env: "POWER",
		Meta: "flags", Help: "power management options", Ignored: "Slurm has given it up too"},
	{Long: "prefer", Arg: opt.Required, On: opt.All, Group: opt.Constraints,
		Meta: "list", Help: "features that are liked but not needed",
		Set: func(r *Request, v string) error {
			r.Job.Prefer = v
			return nil
		}},
	{Long: "preserve-env", Short: 'E', On: opt.Srun,
		Help: "let the environment win for node and task counts",
		Set: func(r *Request, v string) error {
			r.Client.PreserveEnv = true
			return nil
		}},
	{Long: "priority", Arg: opt.Required, On: opt.All,
		Meta: "value", Help: "set the priority (administrators only)",
		Set: setPriority},
	{Long: "profile", Arg: opt.Required, On: opt.All, Env: "PROFILE",
		Meta: "list", Help: "what to profile: all, none, energy, lustre, network, task (muster samples JOB shows it)",
		Set: func(r *Request, v string) error {
			r.Job.Profile = values.SpellProfile(v)
			return values.CheckProfile(v)
		}},
	{Long: "prolog", Arg: opt.Required, On: opt.Srun, Env: "PROLOG",
		Meta: "program", Help: "run before the step, on the host of srun",
		Set: func(r *Request, v string) error {
			r.Client.Prolog = v
			return nil
		}},
	{Long: "propagate", Arg: opt.Optional, On: opt.Sbatch | opt.Srun,
		Meta: "limits", Help: "resource limits to pass on to the job",
		Set: func(r *Request, v string) error {
			r.Client.Propagate = v
			return values.CheckPropagate(v)
		}},
	{Long: "pty", On: opt.Srun,
		Help: "run task zero in a pseudo terminal",
		Set: func(r *Request, v string) error {
			r.Client.PTY = true
			return nil
		}},
	{Long: "qos", Short: 'q', Arg: opt.Required, On: opt.All, Env: "QOS",
		Meta: "qos", Help: "quality of service",
		Set: func(r *Request, v string) error {
			r.Job.QOS = strings.ToLower(v)
			return nil
		}},
	{Long: "quiet", Short: 'Q', On: opt.All,
		Help: "suppress informational messages",
		Set: func(r *Request, v string) error {
			r.Client.Quiet++
			return nil
		}},
	{Long: "quit-on-interrupt", On: opt.Srun,
		Help: "quit on a single Ctrl-C",
		Set: func(r *Request, v string) error {
			r.Client.QuitOnInt = true
			return nil
		}},
	{Long: "reboot", On: opt.All,
		Help: "refused: have an administrator reboot the nodes",
		Set: func(r *Request, v string) error {
			return r.Cannot("--reboot", "the nodes would not be rebooted",
				"have an administrator reboot them: scontrol reboot ASAP NODES")
		}},
	{Long: "relative", Short: 'r', Arg: opt.Required, On: opt.Srun,
		Meta: "n", Help: "run the step from node n of the allocation on",
		Set: setRelative},
	{Long: "requeue", Arg: opt.Optional, On: opt.Sbatch, Env: "REQUEUE",
		Meta: "expedite", Help: "permit the job to be requeued; expedite: after a failure, before all other jobs",
		Set: setRequeue},
	{Long: "reservation", Arg: opt.Required, On: opt.All, Env: "RESERVATION", Group: opt.Constraints,
		Meta: "name", Help: "use a reservation",
		Set: func(r *Request, v string) error {
			r.Job.Reservation = v
			return nil
		}},
	{Long: "resv-ports", Arg: opt.Optional, On: opt.Srun, Env: "RESV_PORTS", Group: opt.Consumable,
		Meta: "count", Help: "reserve so many ports of each node for the step; none without a count",
		Set: setResvPorts},
	{Long: "send-libs", Arg: opt.Optional, On: opt.Srun, Env: "SEND_LIBS",
		Meta: "yes|no", Help: "copy the program's libraries with it",
		Set: setSendLibs},
	{Long: "signal", Arg: opt.Required, On: opt.All, Env: "SIGNAL",
		Meta: "[R][B:]num[@time]", Help: "send a signal this many seconds before the end",
		Set: setSignal},
	{Long: "slurmd-debug", Arg: opt.Required, On: opt.Srun, Env: "srun=SLURMD_DEBUG",
		Meta: "level", Ignored: "the log of a node has one level"},
	{Long: "sockets-per-node", Arg: opt.Required, On: opt.All, Group: opt.Affinity,
		Meta: "S", Help: "sockets that the nodes must have",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.SocketsPerNode) }},
	{Long: "spread-job", On: opt.All, Env: "SPREAD_JOB",
		Help: "spread job across as many nodes as possible",
		Set: func(r *Request, v string) error {
			r.Job.Spread = true
			return nil
		}},
	{Long: "switches", Arg: opt.Required, On: opt.All, Env: "REQ_SWITCH",
		Meta: "count[@time]", Help: "most switches to span, and how long to wait for that",
		Set: setSwitches},
	{Long: "task-epilog", Arg: opt.Required, On: opt.Srun, Env: "TASK_EPILOG",
		Meta: "program", Help: "run after each task",
		Set: func(r *Request, v string) error {
			r.Step.TaskEpilog = v
			return nil
		}},
	{Long: "task-prolog", Arg: opt.Required, On: opt.Srun, Env: "TASK_PROLOG",
		Meta: "program", Help: "run before each task",
		Set: func(r *Request, v string) error {
			r.Step.TaskProlog = v
			return nil
		}},
	{Long: "tasks-per-node", Arg: opt.Required, On: opt.All, Alias: "ntasks-per-node", Hidden: true},
	{Long: "test-only", On: opt.Sbatch | opt.Srun,
		Help: "say when the job would start; submit nothing",
		Set: func(r *Request, v string) error {
			r.Client.TestOnly = true
			return nil
		}},
	{Long: "thread-spec", Arg: opt.Required, On: opt.All, Env: "THREAD_SPEC",
		Meta: "threads", Help: "count of reserved threads",
		Set: setThreadSpec},
	{Long: "threads", Short: 'T', Arg: opt.Required, On: opt.Srun, Env: "THREADS",
		Meta: "n", Ignored: "the launch has no fan-out to set",
		Set: func(r *Request, v string) error {
			var n int
			return values.SetCount(v, 1, &n)
		}},
	{Long: "threads-per-core", Arg: opt.Required, On: opt.All, Env: "THREADS_PER_CORE", Group: opt.Affinity,
		Meta: "T", Help: "threads per core to use",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.ThreadsPerCore) }},
	{Long: "time", Short: 't', Arg: opt.Required, On: opt.All, Env: "TIMELIMIT",
		Meta: "minutes", Help: "time limit",
		Set: func(r *Request, v string) error { return values.SetLimit(v, &r.Job.Limit) }},
	{Long: "time-min", Arg: opt.Required, On: opt.All,
		Meta: "minutes", Help: "least time limit",
		Set: func(r *Request, v string) error { return values.SetLimit(v, &r.Job.LimitMin) }},
	{Long: "tmp", Arg: opt.Required, On: opt.All, Group: opt.Constraints,
		Meta: "MB", Help: "temporary disk space",
		Set: setTmp},
	{Long: "uid", Arg: opt.Required, On: opt.All,
		Meta: "user", Help: "user to run job as (root only)",
		Set: setUID},
	{Long: "unbuffered", Short: 'u', On: opt.Srun, Env: "srun=SLURM_UNBUFFEREDIO",
		Help: "do not wait for whole lines of output",
		Set: func(r *Request, v string) error {
			r.Client.Unbuffered = true
			return nil
		}},
	{Long: "use-min-nodes", On: opt.All, Env: "USE_MIN_NODES",
		Help: "prefer the smaller count of a range of nodes",
		Set: func(r *Request, v string) error {
			r.Job.UseMinNodes = true
			return nil
		}},
	{Long: "verbose", Short: 'v', On: opt.All, Env: "DEBUG",
		Help: "tell what is done; -vv and more tell more",
		Set:  setVerbose},
	{Long: "version", Short: 'V', On: opt.All, Group: opt.Other,
		Help: "print the version"},
	{Long: "usage", On: opt.All, Group: opt.HelpGroup,
		Help: "display brief usage message"},
	{Long: "wait", Short: 'W', On: opt.Sbatch, Env: "WAIT",
		Help: "wait for completion of the job",
		Set: func(r *Request, v string) error {
			r.Client.Wait = true
			return nil
		}},
	{Long: "wait", Short: 'W', Arg: opt.Required, On: opt.Srun, Env: "WAIT",
		Meta: "seconds", Help: "end the step this long after its first task",
		Set: setWait},
	{Long: "wait-all-nodes", Arg: opt.Required, On: opt.Sbatch | opt.Salloc, Env: "WAIT_ALL_NODES",
		Meta: "0|1", Ignored: "a job always begins when all of its nodes are ready",
		Set: checkWaitAllNodes},
	{Long: "wckey", Arg: opt.Required, On: opt.All, Env: "WCKEY",
		Meta: "wckey", Help: "wckey to run job under",
		Set: func(r *Request, v string) error {
			r.Job.WCKey = v
			return nil
		}},
	{Long: "whole", On: opt.Srun, Group: opt.Consumable,
		Help: "use all resources of the nodes for the step",
		Set: func(r *Request, v string) error {
			r.Client.Whole = true
			return nil
		}},
	{Long: "wrap", Arg: opt.Required, On: opt.Sbatch,
		Meta: "command", Help: "make a script of a command",
		Set: readAhead},
	{Long: "x11", Arg: opt.Optional, On: opt.Srun | opt.Salloc,
		Meta: "all|batch|first|last", Help: "programs of the job show windows on this X server",
		Set: setX11},
}
