package cluster

import (
	"slices"
	"time"
)

// Names and numbers that must not be swapped.
type (
	// JobID numbers jobs, array tasks and arrays from one counter, as Slurm does.
	JobID uint32
	// NodeName is a node's name as users write it.
	NodeName string
	// MemMB is memory in mebibytes (Slurm's unit M).
	MemMB int64
	// BlobHash is the hex SHA-256 of a stored script or environment.
	BlobHash string
	// BlobText is a stored script or environment.
	BlobText []byte
)

// Unlimited stands for "no limit" wherever a duration is a limit.
const Unlimited time.Duration = 1<<63 - 1

// GRES is a request for count generic resources, e.g. gpu:h100:2. Type may be empty.
type GRES struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	Count int64  `json:"count"`
	// Unconsumed, of a node: a job needs so many, and takes none of them (no_consume).
	Unconsumed bool `json:"unconsumed,omitempty"`
}

// MemPer says what a memory request is counted by.
type MemPer uint8

// Units of a memory request; MemDefault when none was given.
const (
	MemDefault MemPer = iota
	MemPerNode
	MemPerCPU
	MemPerGPU
)

// Mem is a memory request. With PerNode, zero asks for all memory of the node.
type Mem struct {
	Per MemPer `json:"per,omitempty"`
	MB  MemMB  `json:"mb,omitempty"`
}

// Kind is how a job came to be.
type Kind uint8

// The kinds of jobs.
const (
	Batch      Kind = iota // sbatch: the first node runs a script
	Allocation             // salloc: the caller runs a command
	SrunJob                // srun outside an allocation: one step
	External               // holds nodes for another manager; nothing of it runs here
)

// Sharing is what --exclusive and --oversubscribe ask for.
type Sharing uint8

// The ways to share a node.
const (
	ShareDefault   Sharing = iota
	ShareExclusive         // whole nodes
	ShareUser              // nodes with jobs of the same user only
	ShareMCS               // nodes with jobs of the same MCS label only
	ShareOver              // --oversubscribe
)

// Signal is --signal=[R][B:]SIG[@SECONDS].
type Signal struct {
	Num         int           `json:"num,omitempty"`
	Before      time.Duration `json:"before,omitempty"`
	BatchOnly   bool          `json:"batch_only,omitempty"`
	Reservation bool          `json:"reservation,omitempty"`
}

// DependType is the condition of one dependency term.
type DependType string

// The dependency conditions.
const (
	After       DependType = "after"
	AfterAny    DependType = "afterany"
	AfterOK     DependType = "afterok"
	AfterNotOK  DependType = "afternotok"
	AfterCorr   DependType = "aftercorr"
	AfterBurst  DependType = "afterburstbuffer"
	ExpandJob   DependType = "expand"
	SingletonOf DependType = "singleton"
)

// TaskAny as a dependency's or job's task number means "the whole job" or "no array".
const TaskAny = -1

// Depend is one term of --dependency. Task is TaskAny for a plain id; Array marks
// that the id is an array's, shown as N_*.
type Depend struct {
	Type  DependType    `json:"type"`
	Job   JobID         `json:"job,omitempty"`
	Task  int           `json:"task"`
	Array bool          `json:"array,omitempty"`
	Plus  time.Duration `json:"plus,omitempty"` // after:ID+MINUTES
	// Failed is set by Apply once the term can never be met.
	Failed bool `json:"failed,omitempty"`
}

// Depends is a whole --dependency: all terms must hold, or any one of them if Any.
type Depends struct {
	Any   bool     `json:"any,omitempty"`
	Terms []Depend `json:"terms,omitempty"`
}

// ArraySpec is --array: the task numbers and how many may run at once (0: no limit).
type ArraySpec struct {
	Tasks IDSet  `json:"tasks"`
	Limit int    `json:"limit,omitempty"`
	Step  int    `json:"step,omitempty"` // step of the first range, for SLURM_ARRAY_TASK_STEP
	Text  string `json:"text,omitempty" text:"262144"`
}

// ByDefault tells which parts of a request stem from the site's defaults.
type ByDefault uint8

// The parts.
const (
	CPUsPerGPUByDefault ByDefault = 1 << iota
	MemPerGPUByDefault
)

// Layout is what job and step requests have in common: how many of what, and where.
// Zero means "not asked" everywhere; pointers are used where zero is a request.
type Layout struct {
	_ struct{} `retired:"tres_per_task,container,containers"`

	MinNodes       int        `json:"min_nodes,omitempty"`
	MaxNodes       int        `json:"max_nodes,omitempty"`
	Tasks          int        `json:"tasks,omitempty"`
	TasksPerNode   int        `json:"tasks_per_node,omitempty"`
	TasksPerSocket int        `json:"tasks_per_socket,omitempty"`
	TasksPerCore   int        `json:"tasks_per_core,omitempty"`
	TasksPerGPU    int        `json:"tasks_per_gpu,omitempty"`
	CPUsPerTask    int        `json:"cpus_per_task,omitempty"`
	CPUsPerGPU     int        `json:"cpus_per_gpu,omitempty"`
	MinCPUs        int        `json:"min_cpus,omitempty"` // --mincpus: per node
	SocketsPerNode int        `json:"sockets_per_node,omitempty"`
	CoresPerSocket int        `json:"cores_per_socket,omitempty"`
	ThreadsPerCore int        `json:"threads_per_core,omitempty"`
	Mem            Mem        `json:"mem,omitzero"`
	ByDefault      ByDefault  `json:"by_default,omitempty"`    // what was not asked for
	PerNode        []GRES     `json:"per_node,omitempty"`      // --gres, --gpus-per-node
	PerJob         []GRES     `json:"per_job,omitempty"`       // --gpus
	PerSocket      []GRES     `json:"per_socket,omitempty"`    // --gpus-per-socket
	PerTask        []GRES     `json:"per_task,omitempty"`      // --gpus-per-task
	GPUsPerNode    bool       `json:"gpus_per_node,omitempty"` // PerNode came from --gpus-per-node
	NodeList       []NodeName `json:"node_list,omitempty"`     // -w
	Exclude        []NodeName `json:"exclude,omitempty"`       // -x
	Constraint     string     `json:"constraint,omitempty"`
	Contiguous     bool       `json:"contiguous,omitempty"`
	Spread         bool       `json:"spread,omitempty"`
	UseMinNodes    bool       `json:"use_min_nodes,omitempty"`
	// Segment is how many nodes of a job belong into one block (--segment); 0: all of them.
	Segment             int    `json:"segment,omitempty"`
	ConsolidateSegments bool   `json:"consolidate_segments,omitempty"` // all in one higher block
	SpreadSegments      bool   `json:"spread_segments,omitempty"`      // no two in one base block
	Overcommit          bool   `json:"overcommit,omitempty"`
	Distribution        string `json:"distribution,omitempty"` // as typed; parsed by slurm
	PlaneSize           int    `json:"plane_size,omitempty"`
	Hint                string `json:"hint,omitempty"`
	CPUBind             string `json:"cpu_bind,omitempty" text:"65536"`
	GPUBind             string `json:"gpu_bind,omitempty" text:"65536"`
	MemBind             string `json:"mem_bind,omitempty" text:"65536"`
	GRESFlags           string `json:"gres_flags,omitempty"`
	GPUFreq             string `json:"gpu_freq,omitempty"`
	// NCCLEnv tells NCCL the ports nearest to each task's GPUs (--nccl-env).
	NCCLEnv     bool   `json:"nccl_env,omitempty"`
	CPUFreq     string `json:"cpu_freq,omitempty"`
	Network     string `json:"network,omitempty"`
	Profile     string `json:"profile,omitempty"`
	AcctgFreq   string `json:"acctg_freq,omitempty"`
	BurstBuffer string `json:"burst_buffer,omitempty" text:"65536,lines"`

	// Of jobs only.
	Features   string        `json:"cluster_features,omitempty"` // --cluster-constraint
	Clusters   string        `json:"clusters,omitempty"`
	Prefer     string        `json:"prefer,omitempty"`
	Licenses   string        `json:"licenses,omitempty"`
	TmpMB      int64         `json:"tmp_mb,omitempty"`
	Switches   int           `json:"switches,omitempty"`
	SwitchWait time.Duration `json:"switch_wait,omitempty"`
	CoreSpec   *int          `json:"core_spec,omitempty"`   // cores of each node that the job leaves for the system
	ThreadSpec *int          `json:"thread_spec,omitempty"` // threads, instead
	Remarks
}

// Remarks are texts of a job that change nothing.
type Remarks struct {
	Power string `json:"power,omitempty"`
	Extra string `json:"extra,omitempty" text:"1024,lines"` // the user's own
}

// Clone is a copy to be changed; that of none asks for nothing.
func (l *Layout) Clone() *Layout {
	if l == nil {
		return &Layout{}
	}
	c := *l
	return &c
}

// JobSpec is what was asked. It never changes once admitted, but for Update.
type JobSpec struct {
	_ struct{} `retired:"immediate,no_kill,wait_all_nodes,het_group"`

	// Layout is never nil and, once the spec is in the state, never changed: jobs that ask alike share one.
	*Layout
	Kind         Kind     `json:"kind,omitempty"`
	Name         string   `json:"name"`
	UID          uint32   `json:"uid"`
	GID          uint32   `json:"gid"`
	User         string   `json:"user"`
	Group        string   `json:"group,omitempty"`
	Groups       []uint32 `json:"groups,omitempty"` // supplementary
	Account      string   `json:"account,omitempty"`
	QOS          string   `json:"qos,omitempty"`
	WCKey        string   `json:"wckey,omitempty"`
	Partitions   []string `json:"partitions,omitempty"`
	Reservation  string   `json:"reservation,omitempty"`
	Comment      string   `json:"comment,omitempty" text:"1024,lines"`
	AdminComment string   `json:"admin_comment,omitempty" text:"1024,lines" by:"operator"`
	MCSLabel     string   `json:"mcs_label,omitempty"`

	Script     BlobHash `json:"script,omitempty"`
	Env        BlobHash `json:"env,omitempty"`                       // NUL-separated NAME=value
	Command    string   `json:"command,omitempty" text:"4096,lines"` // absolute path of the script, or the command
	Args       []string `json:"args,omitempty" text:"131072,lines"`
	SubmitLine string   `json:"submit_line,omitempty" text:"65536,lines"`
	SubmitHost string   `json:"submit_host,omitempty"`
	SubmitDir  string   `json:"submit_dir,omitempty" text:"4096"` // where the command was given
	AllocSid   int      `json:"alloc_sid,omitempty"`              // session id of the submitting shell
	WorkDir    string   `json:"work_dir,omitempty" text:"4096"`
	Stdin      string   `json:"stdin,omitempty" text:"4096"`
	Stdout     string   `json:"stdout,omitempty" text:"4096"` // pattern, unexpanded
	Stderr     string   `json:"stderr,omitempty" text:"4096"`
	Append     bool     `json:"append,omitempty"`   // --open-mode=append
	Truncate   bool     `json:"truncate,omitempty"` // --open-mode=truncate
	UserEnv    bool     `json:"user_env,omitempty"` // start from the login environment
	Umask      uint32   `json:"umask,omitempty"`
	ShellLimits
	Export string `json:"export,omitempty" text:"120000,lines"` // --export as given; sets SLURM_EXPORT_ENV

	Array             *ArraySpec `json:"array,omitempty"`
	Depends           Depends    `json:"depends,omitzero"`
	KillInvalidDepend *bool      `json:"kill_invalid_depend,omitempty"`
	Timing
	Deadline  time.Time     `json:"deadline,omitzero"`
	Limit     time.Duration `json:"limit,omitempty"` // 0: the partition's default
	LimitMin  time.Duration `json:"limit_min,omitempty"`
	DelayBoot time.Duration `json:"delay_boot,omitempty"`
	JobFlags
	Nice     int      `json:"nice,omitempty"`
	Site     int      `json:"site,omitempty" by:"operator"` // the site's own part of the priority
	Priority *uint32  `json:"priority,omitempty"`
	Sharing  Sharing  `json:"sharing,omitempty"`
	Requeue  *bool    `json:"requeue,omitempty"` // nil: the cluster's JobRequeue
	Signal   Signal   `json:"signal,omitzero"`
	MailType []string `json:"mail_type,omitempty"`
	MailUser string   `json:"mail_user,omitempty"`
	Notify   string   `json:"notify,omitempty" text:"4096"` // URL that is called at the events of MailType
	// Resilience is never changed once the spec is in the state; nil asks for nothing.
	Resilience *Resilience `json:"resilience,omitempty"`
	// Inside is the container that the script runs in. Of a job without a script it is the image that its steps are
	// to have. nil: none.
	Inside *Container `json:"inside,omitempty"`
}

// JobFlags are what a job is or is not told to do.
type JobFlags struct {
	Hold   bool `json:"hold,omitempty"`
	Reboot bool `json:"reboot,omitempty"`
	// NoKill: where a node fails that is not its first, it goes on with the others.
	NoKill bool `json:"keep_on_node_fail,omitempty"`
}

// Rlimit is one resource limit of the submitting shell, by its RLIMIT_ name without
// the prefix (CPU, FSIZE, NOFILE …).
type Rlimit struct {
	Name string `json:"name"`
	Soft uint64 `json:"soft"`
}

// ShellLimits are those of the submitting shell that tasks shall have.
type ShellLimits struct {
	Rlimits   []Rlimit `json:"rlimits,omitempty"`
	OwnLimits bool     `json:"own_limits,omitempty"` // --propagate chose them: the site's choice does not count
}

// Propagated are the limits that tasks get of those that their user had where the job was submitted
// (PropagateResourceLimits and PropagateResourceLimitsExcept); own: the user has chosen.
func (c *Config) Propagated(list []Rlimit, own bool) []Rlimit {
	if own || c.PropagateLimits && c.LimitsOnly == nil && c.LimitsExcept == nil {
		return list
	}
	if !c.PropagateLimits {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(l Rlimit) bool {
		return c.LimitsOnly != nil && !slices.Contains(c.LimitsOnly, l.Name) || slices.Contains(c.LimitsExcept, l.Name)
	})
}

// SrunDefaults is what srun does where its options say nothing.
type SrunDefaults struct {
	KillOnBadExit bool          `json:"kill_on_bad_exit,omitempty"`
	Wait          time.Duration `json:"wait,omitempty"` // how long other tasks go on after the first has ended; 0: no end
	Prolog        string        `json:"prolog,omitempty"`
	Epilog        string        `json:"epilog,omitempty"`
	MPI           string        `json:"mpi,omitempty"` // process manager (MpiDefault); empty: none
}

// StepSpec is what a step asked for: one srun.
type StepSpec struct {
	Layout
	StepHelpers
	Name    string   `json:"name"`
	Argv    []string `json:"argv" text:"131072,lines"`
	Env     BlobText `json:"env,omitempty"` // NUL-separated
	WorkDir string   `json:"work_dir,omitempty" text:"4096"`
	User    string   `json:"user"`
	Umask   uint32   `json:"umask,omitempty"`
	ShellLimits
	CPUFreq       string   `json:"cpu_freq,omitempty"` // of --cpu-freq; empty: the job's
	Relative      *int     `json:"relative,omitempty"` // -r
	Exact         bool     `json:"exact,omitempty"`
	Overlap       bool     `json:"overlap,omitempty"`
	Interactive   bool     `json:"interactive,omitempty"`        // one task on the first node that takes nothing from other steps
	KeepCounts    bool     `json:"keep_counts,omitempty"`        // the environment given says how many tasks and nodes there are (-E)
	StdinOpen     bool     `json:"stdin_open,omitempty"`         // srun sends its own input
	Stdin         string   `json:"stdin,omitempty" text:"4096"`  // pattern, "all", "none" or a task number; empty: all
	Stdout        string   `json:"stdout,omitempty" text:"4096"` // pattern, "all", "none" or a task number
	Stderr        string   `json:"stderr,omitempty" text:"4096"`
	Append        bool     `json:"append,omitempty"`
	Label         bool     `json:"label,omitempty"`
	Unbuffered    bool     `json:"unbuffered,omitempty"`
	PTY           *Winsize `json:"pty,omitempty"`
	MultiProgFile bool     `json:"multi_prog_file,omitempty"`                 // Argv begins with a file's name that says what each task runs
	MultiProg     string   `json:"multi_prog,omitempty" text:"1048576,lines"` // the text of that file
	StepFailure
	WaitAfterFirst time.Duration `json:"wait_after_first,omitempty"`
	Limit          time.Duration `json:"limit,omitempty"`
	SrunHost       string        `json:"srun_host,omitempty"`
	SrunPID        int           `json:"srun_pid,omitempty"`
	SubmitLine     string        `json:"submit_line,omitempty" text:"65536,lines"`
	World          *StepWorld    `json:"world,omitempty"`
	Inside         *Container    `json:"inside,omitempty"` // the container that the tasks run in; nil: none
}

// StepFailure is what becomes of a step of which a part fails.
type StepFailure struct {
	KillOnBadExit *bool `json:"kill_on_bad_exit,omitempty"`
	NoKill        bool  `json:"keep_on_node_fail,omitempty"` // tasks on other nodes go on where one fails
}

// StepHelpers run before, after and beside the tasks of a step.
type StepHelpers struct {
	TaskProlog string `json:"task_prolog,omitempty" text:"4096"`
	TaskEpilog string `json:"task_epilog,omitempty" text:"4096"`
	MPI        string `json:"mpi,omitempty" text:"64"` // none, pmi2, pmix; empty: Srun.MPI
	Cast       *Cast  `json:"cast,omitempty"`          // files that are put on the step's nodes; nil: none
	// Save is the file that each node saves the step's container to, at its end.
	Save string `json:"save,omitempty" text:"4096"`
	// SrunStdout and SrunStderr are files that srun writes itself, for all tasks, where it runs.
	SrunStdout string `json:"srun_stdout,omitempty" text:"4096"`
	SrunStderr string `json:"srun_stderr,omitempty" text:"4096"`
	// Ports is how many ports of each of its nodes the step has for itself; nil: one more than it has tasks on one.
	Ports *int `json:"ports,omitempty"`
	// Terminal says that srun's standard error is a terminal.
	Terminal bool `json:"terminal,omitempty"`
}

// StepWorld is the whole of a step of a heterogeneous job, of which each component has its part as a step of its own.
type StepWorld struct {
	Job    JobID   `json:"job"`    // the leader
	Number int     `json:"number"` // of the step, in every component
	Size   int     `json:"size"`   // components of the job
	Rank   int     `json:"rank"`   // of the first task of this part
	Node   int     `json:"node"`   // number of the first node of this part
	Tasks  int     `json:"tasks"`
	Shares []Share `json:"shares"` // the step's, by name of the node
	Given  []Share `json:"given"`  // the jobs' on these nodes
}

// Winsize is a terminal's size in characters.
type Winsize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Timing is when a job may begin. With Cron it runs again and again, and Begin is that of the next run.
type Timing struct {
	Begin time.Time `json:"begin,omitzero"`
	Cron  *Cron     `json:"cron,omitempty"`
	// Prefetch is an image that nodes get before the job's time counts; nil: none.
	Prefetch *Prefetch `json:"prefetch,omitempty"`
}

// maxCount bounds every number of nodes, tasks, CPUs and devices that may be asked for.
const maxCount = 1 << 24
