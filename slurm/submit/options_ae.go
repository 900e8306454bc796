package submit

import (
	"strings"

	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// optionsAtoE are the options A to E, in the order that getopt lists them.
var optionsAtoE = []opt.Option[Request]{
	{Long: "accel-bind", Arg: opt.Required, On: opt.Srun, Group: opt.GPU,
		Meta: "options", Help: "bind tasks to the nearest accelerators", Ignored: "use --gpu-bind",
		Set: func(r *Request, v string) error { return checkLetters(v, "gmnv") }},
	{Long: "account", Short: 'A', Arg: opt.Required, On: opt.All, Env: "ACCOUNT",
		Meta: "name", Help: "charge job to specified account",
		Set: func(r *Request, v string) error {
			r.Job.Account = strings.ToLower(v) // names of accounts know no case
			return nil
		}},
	{Long: "acctg-freq", Arg: opt.Required, On: opt.All, Env: "ACCTG_FREQ",
		Meta: "kind=seconds", Help: "sampling intervals of accounting and profiling",
		Set: func(r *Request, v string) error {
			r.Job.AcctgFreq = v
			return values.CheckAcctgFreq(v)
		}},
	{Long: "array", Short: 'a', Arg: opt.Required, On: opt.Sbatch, Env: "sbatch=SBATCH_ARRAY_INX",
		Meta: "indexes", Help: "job array index values",
		Set: setArray},
	{Long: "batch", Arg: opt.Required, On: opt.Sbatch, Env: "BATCH",
		Meta: "list", Help: "features of the node that runs the script",
		Ignored: "the script runs on the first node of the allocation"},
	{Long: "bcast", Arg: opt.Optional, On: opt.Srun, Env: "BCAST",
		Meta: "path", Help: "copy the program to the nodes",
		Set: func(r *Request, v string) error {
			r.Bcast.On, r.Bcast.Dest = true, v
			return nil
		}},
	{Long: "bcast-exclude", Arg: opt.Required, On: opt.Srun, Env: "BCAST_EXCLUDE",
		Meta: "paths", Help: "folders whose libraries --send-libs does not copy",
		Set: func(r *Request, v string) error {
			r.Bcast.Exclude = v
			return nil
		}},
	{Long: "begin", Short: 'b', Arg: opt.Required, On: opt.All,
		Meta: "time", Help: "defer job until HH:MM MM/DD/YY",
		Set: setBegin},
	{Long: "bell", On: opt.Salloc, Env: "BELL",
		Help: "ring the terminal bell when the job is allocated",
		Set: func(r *Request, v string) error {
			yes := true
			r.Client.Bell = &yes
			return nil
		}},
	{Long: "bb", Arg: opt.Required, On: opt.All, Env: "BURST_BUFFER",
		Meta: "spec", Help: "burst buffer specification",
		Set: func(r *Request, v string) error {
			r.Job.BurstBuffer = v
			return nil
		}},
	{Long: "bbf", Arg: opt.Required, On: opt.All,
		Meta: "file", Help: "burst buffer specification file",
		Set: setBurstBufferFile},
	{Long: "cluster-constraint", Arg: opt.Required, On: opt.All, Group: opt.Constraints,
		Meta: "list", Help: "features that a federated cluster must have",
		Set: func(r *Request, v string) error {
			r.Job.Features = v
			return nil
		}},
	{Long: "chdir", Short: 'D', Arg: opt.Required, On: opt.All, Env: "srun=SLURM_REMOTE_CWD srun=SLURM_WORKING_DIR",
		Meta: "path", Help: "change the working directory of the job",
		Set: func(r *Request, v string) error {
			r.Client.Chdir = v
			return nil
		}},
	{Long: "cluster", Arg: opt.Required, On: opt.All, Alias: "clusters"},
	{Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.All,
		Env:  "CLUSTERS sbatch=SLURM_CLUSTERS salloc=SLURM_CLUSTERS",
		Meta: "names", Help: "clusters to issue commands to",
		Set: func(r *Request, v string) error { return opt.SetClusters(v, &r.Job.Clusters) }},
	{Long: "comment", Arg: opt.Required, On: opt.All,
		Meta: "text", Help: "arbitrary comment",
		Set: func(r *Request, v string) error {
			r.Job.Comment = v
			return nil
		}},
	{Long: "compress", Arg: opt.Optional, On: opt.Srun, Env: "COMPRESS",
		Meta: "library", Ignored: "with --bcast programs are sent as they are"},
	{Long: "container", Arg: opt.Required, On: opt.All,
		Env: "sbatch=SBATCH_CONTAINER srun=SRUN_CONTAINER salloc=SALLOC_CONTAINER", Group: opt.Containers,
		Meta: "path", Help: "folder of an OCI bundle to run in: its root, mounts and variables",
		Set: setBundle},
	{Long: "context", Arg: opt.Required, On: opt.All, Hidden: true,
		Ignored: "SELinux contexts are not set"},
	{Long: "contiguous", On: opt.All, Group: opt.Constraints,
		Help: "demand a contiguous range of nodes",
		Set: func(r *Request, v string) error {
			r.Job.Contiguous = true
			return nil
		}},
	{Long: "constraint", Short: 'C', Arg: opt.Required, On: opt.All, Env: "CONSTRAINT", Group: opt.Constraints,
		Meta: "list", Help: "features that the nodes must have",
		Set: func(r *Request, v string) error {
			r.Job.Constraint = v
			return nil
		}},
	{Long: "core-spec", Short: 'S', Arg: opt.Required, On: opt.All, Env: "CORE_SPEC",
		Meta: "cores", Help: "count of reserved cores",
		Set: setCoreSpec},
	{Long: "cores-per-socket", Arg: opt.Required, On: opt.All, Group: opt.Affinity,
		Meta: "C", Help: "cores per socket that the nodes must have",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.CoresPerSocket) }},
	{Long: "cpu-bind", Arg: opt.Required, On: opt.Srun, Env: "CPU_BIND", Group: opt.Affinity,
		Meta: "type", Help: "bind tasks to CPUs (see --cpu-bind=help)",
		Set: func(r *Request, v string) error {
			r.Job.CPUBind = v
			return values.CheckCPUBind(v)
		}},
	{Long: "cpu_bind", Arg: opt.Required, On: opt.Srun, Alias: "cpu-bind", Hidden: true},
	{Long: "cpu-freq", Arg: opt.Required, On: opt.All, Env: "CPU_FREQ_REQ",
		Meta: "min[-max[:gov]]", Help: "requested CPU frequency and governor",
		Set: func(r *Request, v string) error {
			freq := values.SpellFreq(v)
			r.Job.CPUFreq, r.Step.CPUFreq = freq, freq
			noteFreq(r, "cpu-freq")
			return values.CheckCPUFreq(v)
		}},
	{Long: "cpus-per-gpu", Arg: opt.Required, On: opt.All, Env: "CPUS_PER_GPU", Group: opt.GPU,
		Meta: "n", Help: "CPUs required per allocated GPU",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.CPUsPerGPU) }},
	{Long: "cpus-per-task", Short: 'c', Arg: opt.Required, On: opt.All, Env: "srun=SRUN_CPUS_PER_TASK",
		Meta: "ncpus", Help: "CPUs required per task",
		Set: func(r *Request, v string) error { return values.SetCount(v, 1, &r.Job.CPUsPerTask) }},
	{Long: "deadline", Arg: opt.Required, On: opt.All,
		Meta: "time", Help: "remove the job if it cannot end before this time",
		Set: setDeadline},
	{Long: "debugger-test", On: opt.Srun, Hidden: true,
		Ignored: "it is a test of debuggers of Slurm"},
	{Long: "delay-boot", Arg: opt.Required, On: opt.All, Env: "DELAY_BOOT",
		Meta: "minutes", Help: "delay boot for desired node features",
		Set: setDelayBoot},
	{Long: "dependency", Short: 'd', Arg: opt.Required, On: opt.All, Env: "srun=SLURM_DEPENDENCY",
		Meta: "type:jobid[:jobid]", Help: "defer job until condition on jobid is satisfied",
		Set: setDepends},
	{Long: "disable-status", Short: 'X', On: opt.Srun, Env: "DISABLE_STATUS",
		Help: "one Ctrl-C is passed on to the tasks at once",
		Set: func(r *Request, v string) error {
			r.Client.DisableStatus = true
			return nil
		}},
	{Long: "distribution", Short: 'm', Arg: opt.Required, On: opt.All,
		Env:  "sbatch=SBATCH_DISTRIBUTION srun=SLURM_DISTRIBUTION",
		Meta: "type", Help: "how tasks are laid over nodes, sockets and cores",
		Set: setDistribution},
	{Long: "epilog", Arg: opt.Required, On: opt.Srun, Env: "EPILOG",
		Meta: "program", Help: "run after the step, on the host of srun",
		Set: func(r *Request, v string) error {
			r.Client.Epilog = v
			return nil
		}},
	{Long: "error", Short: 'e', Arg: opt.Required, On: opt.Sbatch | opt.Srun,
		Env:  "sbatch=SBATCH_ERROR srun=SLURM_STDERRMODE",
		Meta: "file", Help: "file for standard error",
		Set: func(r *Request, v string) error {
			r.Client.Error = v
			return nil
		}},
	{Long: "exact", On: opt.Srun, Env: "EXACT", Group: opt.Consumable,
		Help: "use only the resources requested for the step",
		Set: func(r *Request, v string) error {
			r.Step.Exact = true
			return nil
		}},
	{Long: "exclude", Short: 'x', Arg: opt.Required, On: opt.All, Group: opt.Constraints,
		Meta: "hosts", Help: "exclude a specific list of hosts",
		Set: func(r *Request, v string) error { return r.setHosts(v, &r.Job.Exclude) }},
	{Long: "exclusive", Arg: opt.Optional, On: opt.All, Env: "EXCLUSIVE", Group: opt.Consumable,
		Meta: "user|mcs", Help: "allocate whole nodes; for a step the same as --exact",
		Set: setExclusive},
	{Long: "export", Arg: opt.Required, On: opt.Sbatch | opt.Srun,
		Env:  "sbatch=SBATCH_EXPORT srun=SLURM_EXPORT_ENV srun=SRUN_EXPORT_ENV",
		Meta: "names|ALL|NONE", Help: "environment variables to export",
		Set: func(r *Request, v string) error {
			r.Client.Export, r.Client.ExportGiven = v, true
			return nil
		}},
	{Long: "export-file", Arg: opt.Required, On: opt.Sbatch,
		Meta: "file|fd", Help: "file or descriptor with NAME=value pairs to export",
		Set: setExportFile},
	{Long: "extra-node-info", Short: 'B', Arg: opt.Required, On: opt.All, Group: opt.Affinity,
		Meta: "S[:C[:T]]", Help: "sockets, cores and threads that the nodes must have",
		Set: setNodeInfo},
}
