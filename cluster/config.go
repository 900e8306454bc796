package cluster

import (
	"slices"
	"strings"
	"time"
)

// Config is the whole configuration: one value, replaced as a whole by Configure. Its sections go by who reads them.
type Config struct {
	ClusterIdentity
	Resources
	Topologies
	JobDefaults
	JobLimits
	JobTimes
	Requeueing
	Resizing
	NodeTimes
	Consumables
	SchedulingPolicy
	Accounting
	NodePrograms
	LeaderPrograms
	Containment
	Plugins
	Partitions []Partition `json:"partitions"`
}

// ClusterIdentity is whose the configuration is and where it came from. Front-ends show it; servers compare theirs.
type ClusterIdentity struct {
	ClusterName string `json:"cluster_name"`
	// Source names the file's content that this came from.
	Source string `json:"source,omitempty"`
	// Applied says that this is not a server's own file: servers do not put theirs in its place when they begin to
	// lead.
	Applied bool `json:"applied,omitempty"`
	// Keys are all keys as read, for scontrol show config.
	Keys map[string]string `json:"keys,omitempty"`
}

// Resources are what there is to give: the nodes that are known in advance, and what is counted besides them. Configure
// declares the nodes; admission, limits and the books know the rest by it.
type Resources struct {
	// Declared are nodes known by name before their clients register (NodeName= lines).
	Declared []Node      `json:"declared,omitempty"`
	NodeSets []NodeGroup `json:"node_sets,omitempty"`
	Licenses []License   `json:"licenses,omitempty"`
	GRES     []GRESLine  `json:"gres,omitempty"` // gres.conf
	TRES     []string    `json:"tres,omitempty"` // tracked besides Slurm's own
}

// Topologies are how the network joins the nodes (topology.conf), for placement.
type Topologies struct {
	Topology      []Switch      `json:"topology,omitempty"`
	Blocks        []Block       `json:"blocks,omitempty"`          // instead of switches
	BlockSizes    []int         `json:"block_sizes,omitempty"`     // nodes, rising; each the first times a power of two
	MaxSwitchWait time.Duration `json:"max_switch_wait,omitempty"` // longest wait for --switches; 0: 300 s
	// TopoOptional says that switches matter only to jobs with --switches (TopologyParam).
	TopoOptional bool `json:"topo_optional,omitempty"`
}

// JobDefaults are what jobs get that do not say. Admission, placement and srun fill them in.
type JobDefaults struct {
	DefMem          Mem          `json:"def_mem,omitzero"`
	PerGPU          PerGPU       `json:"per_gpu,omitzero"`
	JobRequeue      bool         `json:"job_requeue"`
	Srun            SrunDefaults `json:"srun,omitzero"`
	PropagateLimits bool         `json:"propagate_limits"`
	LimitsOnly      []string     `json:"limits_only,omitempty"`   // names of the limits that are; nil: all
	LimitsExcept    []string     `json:"limits_except,omitempty"` // but these
	// AppendOutput has batch jobs add to output files that there are (JobFileAppend).
	AppendOutput bool `json:"append_output,omitempty"`
	// InteractiveStep is the options with which salloc, given no command, calls srun to begin a shell on the job's
	// first node (InteractiveStepOptions, where LaunchParameters has use_interactive_step); empty: the shell begins
	// where salloc is.
	InteractiveStep string `json:"interactive_step,omitempty"`
	// NCCLEnv is --nccl-env for all jobs (LaunchParameters=nccl_env).
	NCCLEnv bool `json:"nccl_env,omitempty"`
	// SampleEvery is how often nodes measure what steps use, of jobs that do not say so themselves; 0: every 30 s;
	// Unlimited: never, but when somebody asks.
	SampleEvery time.Duration `json:"sample_every,omitempty"`
}

// JobLimits are what users may ask for. Admission refuses the rest.
type JobLimits struct {
	MaxMem          Mem   `json:"max_mem,omitzero"`
	MaxTasksPerNode int   `json:"max_tasks_per_node,omitempty"` // of a job; 0: no limit
	MaxStepCount    int   `json:"max_step_count,omitempty"`     // of a job; 0: no limit
	MaxArraySize    int   `json:"max_array_size"`
	MaxJobCount     int   `json:"max_job_count"`
	FirstJobID      JobID `json:"first_job_id"`
	MaxJobID        JobID `json:"max_job_id"`
	NoRootJobs      bool  `json:"no_root_jobs,omitempty"` // root may not run jobs (DisableRootJobs)
	// SpecUse says that jobs may say what they leave of their nodes for the system (AllowSpecResourcesUsage).
	SpecUse           bool   `json:"spec_use,omitempty"`
	EnforcePartLimits string `json:"enforce_part_limits,omitempty"`
	UserTop           bool   `json:"user_top,omitempty"` // users may move their jobs to the top of theirs
}

// JobTimes are how long jobs may take to end, and stay. Apply sets the jobs' timers by them.
type JobTimes struct {
	MinJobAge time.Duration `json:"min_job_age"`
	KillWait  time.Duration `json:"kill_wait"`
	// CompleteWait is how long at most a job that ends keeps others from starting; 0: it does not.
	CompleteWait time.Duration `json:"complete_wait,omitempty"`
	// CompleteLocal has them wait only where its partition has nodes (reduce_completing_frag).
	CompleteLocal bool          `json:"complete_local,omitempty"`
	InactiveLimit time.Duration `json:"inactive_limit,omitempty"`
	OverTimeLimit time.Duration `json:"over_time_limit,omitempty"`
	ResvOverRun   time.Duration `json:"resv_over_run,omitempty"` // how much longer the jobs of a reservation may run
}

// Requeueing says which jobs go back into the queue, and which leave it. Apply reads it when a job ends.
type Requeueing struct {
	RequeueDelay time.Duration `json:"requeue_delay"` // from a requeue to BeginTime
	// RequeueExit are the exit codes after which batch jobs go back into the queue.
	RequeueExit     IDSet `json:"requeue_exit,omitzero"`
	RequeueExitHold IDSet `json:"requeue_exit_hold,omitzero"`
	// NoPrologHold says that a job whose prolog failed goes elsewhere, and is not held (nohold_on_prolog_fail).
	NoPrologHold      bool `json:"no_prolog_hold,omitempty"`
	KillInvalidDepend bool `json:"kill_invalid_depend,omitempty"`
}

// NodeTimes are how long nodes may be silent, and how they come and go. The leader and Apply read them.
type NodeTimes struct {
	ReturnToService int           `json:"return_to_service"`
	NodeTimeout     time.Duration `json:"node_timeout"` // silence after which a node is down (SlurmdTimeout)
	// LaunchTimeout is the time for all nodes of a job to confirm it (BatchStartTimeout); 0: indefinitely.
	LaunchTimeout time.Duration `json:"launch_timeout,omitempty"`
	// ResumeTimeout is the time from a reboot, or from being switched on, to the node's return.
	ResumeTimeout time.Duration `json:"resume_timeout,omitempty"`
	// Power is how nodes are switched on and off.
	Power PowerConfig `json:"power,omitzero"`
}

// Consumables are what of a node is given out, and in which units (SelectTypeParameters), for placement.
type Consumables struct {
	CoreAlloc      bool `json:"core_alloc"`                  // CPUs are given as whole cores (CR_Core)
	SocketAlloc    bool `json:"socket_alloc,omitempty"`      // CPUs are given as whole sockets (CR_Socket)
	OneTaskPerCore bool `json:"one_task_per_core,omitempty"` // without --ntasks-per-core (CR_ONE_TASK_PER_CORE)
	// PackNodes puts tasks on the first of a job's whole nodes, not evenly on all (CR_Pack_Nodes).
	PackNodes bool `json:"pack_nodes,omitempty"`
	MemAlloc  bool `json:"mem_alloc"`     // memory is a consumable (CR_*_Memory)
	LLN       bool `json:"lln,omitempty"` // the least loaded nodes first (CR_LLN)
	// DistBlock fills one socket before the next where a job has no -m (CR_CORE_DEFAULT_DIST_BLOCK).
	DistBlock bool `json:"dist_block,omitempty"`
}

// SchedulingPolicy is which jobs go first, and where to (SchedulerParameters and the keys of priorities and
// preemption). Package sched reads it, and Apply for the priorities that it stores.
type SchedulingPolicy struct {
	Priority      PriorityConfig `json:"priority,omitzero"`
	Preempt       PreemptConfig  `json:"preempt,omitzero"`
	BackfillDepth int            `json:"backfill_depth,omitempty"`
	// SerialAtEnd starts jobs of one CPU from the last node on (pack_serial_at_end).
	SerialAtEnd bool `json:"serial_at_end,omitempty"`
	// StrictOrder tries jobs in the order of the queue, see package sched.
	StrictOrder bool `json:"strict_order,omitempty"`
	// ShortestFirst tries jobs by their limits where it is neither that order nor that of priorities.
	ShortestFirst bool `json:"shortest_first,omitempty"`
	// BestFit gives jobs of one node the node that they leave least of; NoBestFit has none of that where it is
	// usual, see package sched.
	BestFit   bool `json:"best_fit,omitempty"`
	NoBestFit bool `json:"no_best_fit,omitempty"`
	// PlanWhole keeps the nodes of planned starts as a whole: other jobs get nothing of what would be left of them
	// beside.
	PlanWhole bool `json:"plan_whole,omitempty"`
	// Gradient gives them the node of which they spoil least for the recent jobs; of equals the one that BestFit
	// gives them.
	Gradient bool `json:"gradient,omitempty"`
	// LimitStop has a job that a limit of its association or QOS holds back hold back those behind it in its partitions
	// (assoc_limit_stop).
	LimitStop bool `json:"limit_stop,omitempty"`
	// ReservePriority is the least priority of a job for which nodes are kept free (bf_min_prio_reserve).
	ReservePriority uint32 `json:"reserve_priority,omitempty"`
	// ReserveAge is how long a job waits before nodes are kept free for it (bf_min_age_reserve); nil: as package
	// sched says.
	ReserveAge *time.Duration `json:"reserve_age,omitempty"`
}

// Accounting is what of the books binds users, and how long history is kept. Admission reads the former, the leader's
// hooks the latter.
type Accounting struct {
	Enforce    Enforce `json:"enforce,omitzero"`
	TrackWCKey bool    `json:"track_wckey,omitempty"` // jobs have one of their user's workload characterization keys
	// JobComp is how ends of jobs are recorded besides history.
	JobComp JobComp `json:"job_comp,omitzero"`
	// Retention is how long history is kept (slurmdbd.conf).
	Retention Retention `json:"retention,omitzero"`
}

// NodePrograms run at nodes, beside jobs. Their clients read them.
type NodePrograms struct {
	// Prolog runs on each node of a job before it begins there, as root; a pattern of paths.
	Prolog        string        `json:"prolog,omitempty"`
	Epilog        string        `json:"epilog,omitempty"`         // and when nothing of it is left
	PrologTimeout time.Duration `json:"prolog_timeout,omitempty"` // of either; 0: none
	TaskProlog    string        `json:"task_prolog,omitempty"`    // runs before each task, as its user
	TaskEpilog    string        `json:"task_epilog,omitempty"`
	RebootProgram string        `json:"reboot_program,omitempty"` // restarts a node's machine
	Unkillable    Unkillable    `json:"unkillable,omitzero"`
	// HealthCheck is the site's own, on each node.
	HealthCheck HealthCheck `json:"health_check,omitzero"`
}

// LeaderPrograms run at servers, most as hooks of the leader.
type LeaderPrograms struct {
	// PrologServer runs at the leader before a job's nodes hear of it (PrologSlurmctld).
	PrologServer string `json:"prolog_server,omitempty"`
	EpilogServer string `json:"epilog_server,omitempty"` // and when it has ended
	// LeadProgram runs at a server that begins to lead (SlurmctldPrimaryOnProg).
	LeadProgram   string `json:"lead_program,omitempty"`
	FollowProgram string `json:"follow_program,omitempty"` // and at one that leads no longer (SlurmctldPrimaryOffProg)
	ResvProlog    string `json:"resv_prolog,omitempty"`    // runs at the leader when a reservation begins
	ResvEpilog    string `json:"resv_epilog,omitempty"`    // and when its time is over
	MailProg      string `json:"mail_prog,omitempty"`      // sends mail; empty: none is sent
	MailDomain    string `json:"mail_domain,omitempty"`    // of users without an address
	// ServerUser is who these programs run as (SlurmUser); empty: as the server does.
	ServerUser  string `json:"server_user,omitempty"`
	NotifyLocal bool   `json:"notify_local,omitempty"` // --notify may call addresses of the servers themselves
	// Channels are where the site is notified (Channel= in muster.conf).
	Channels []Channel `json:"channels,omitempty"`
}

// Containment is what keeps jobs apart on a node. Their clients read it.
type Containment struct {
	// Constrain is what of a job's share its processes are not held to.
	Constrain Constrain `json:"constrain,omitzero"`
	// Contain makes every job have an external step, for what others start in it.
	Contain bool `json:"contain,omitempty"`
	// PrivateDirs are the folders that jobs have for themselves (job_container.conf).
	PrivateDirs []PrivateDirs `json:"private_dirs,omitempty"`
	// RemoveIPC has nodes remove what a user left in their memory after the last of the user's jobs there
	// (LaunchParameters=remove_ipc).
	RemoveIPC bool `json:"remove_ipc,omitempty"`
}

// Plugins are the site's say in what is submitted.
type Plugins struct {
	// SubmitPlugins look at what is submitted and changed, in this order (JobSubmitPlugins).
	SubmitPlugins []string `json:"submit_plugins,omitempty"`
	// Scripts are the site's scripts in Lua, by the names of their files.
	Scripts map[string]string `json:"scripts,omitempty"`
	// Containers is what the site says of containers (plugstack.conf).
	Containers ContainerDefaults `json:"containers,omitzero"`
	// Burst is how the script for burst buffers is called; nil: there is none (BurstBufferType, burst_buffer.conf).
	Burst *BurstConfig `json:"burst,omitempty"`
}

// Resizing says what sizes jobs that run may get.
type Resizing struct {
	// NoShrink: they give no nodes back (disable_job_shrink).
	NoShrink bool `json:"no_shrink,omitempty"`
	// Expand: they may get those of others (permit_job_expansion).
	Expand bool `json:"expand,omitempty"`
}

// PartitionState says what a partition takes and starts.
type PartitionState string

// The partition states.
const (
	PartitionUp       PartitionState = "UP"
	PartitionDown     PartitionState = "DOWN"     // queues, starts nothing
	PartitionDrain    PartitionState = "DRAIN"    // takes nothing, starts what is queued
	PartitionInactive PartitionState = "INACTIVE" // neither
)

// Partition is a queue over a set of nodes.
type Partition struct {
	_ struct{} `retired:"named"`

	Name          string         `json:"name"`
	Nodes         []NodeName     `json:"nodes"` // with All, every node
	All           bool           `json:"all,omitempty"`
	Features      []string       `json:"features,omitempty"`   // nodes with one of these are among Nodes, too
	Joined        []NodeName     `json:"joined,omitempty"`     // those of Nodes that are there by what they bring
	NodesText     string         `json:"nodes_text,omitempty"` // as configured
	Default       bool           `json:"default,omitempty"`
	State         PartitionState `json:"state"`
	Hidden        bool           `json:"hidden,omitempty"`
	RootOnly      bool           `json:"root_only,omitempty"`
	ExclusiveUser bool           `json:"exclusive_user,omitempty"`
	OverSubscribe string         `json:"over_subscribe,omitempty"` // see ParseOverSubscribe; empty: NO
	PartitionLimits
	PriorityTier      int `json:"priority_tier,omitempty"`
	PriorityJobFactor int `json:"priority_job_factor,omitempty"`
	PartitionAccess
	GraceTime       time.Duration `json:"grace_time,omitempty"`
	DisableRootJobs bool          `json:"disable_root_jobs,omitempty"`
	LLN             bool          `json:"lln,omitempty"`
	ReqResv         bool          `json:"req_resv,omitempty"`
	PreemptMode     string        `json:"preempt_mode,omitempty"` // empty: the cluster's
	QOS             string        `json:"qos,omitempty"`          // whose limits count here too
	MaxCPUsPerUser  int           `json:"max_cpus_per_user,omitempty"`
	BillingWeights  []Amount      `json:"billing_weights,omitempty"` // mem: of a MB
	PerGPU          PerGPU        `json:"per_gpu,omitzero"`          // instead of the cluster's
	PartitionPower
	IdleRules
	// NoNewPrivs has programs of the partition's jobs gain no rights by being executed (no_new_privs, prctl(2)): set-uid
	// programs, sudo above all, run as the user.
	NoNewPrivs bool `json:"no_new_privs,omitempty"`
}

// NoNewPrivs reports whether the partition in which j runs forbids its programs to gain rights.
func (c *Config) NoNewPrivs(j *Job) bool {
	if j.Alloc == nil {
		return false
	}
	return slices.ContainsFunc(c.Partitions, func(p Partition) bool {
		return p.NoNewPrivs && p.Name == j.Alloc.Partition
	})
}

// refusesJobs reports whether nothing can be submitted to the partition.
func (p *Partition) refusesJobs() bool {
	return p.State == PartitionDrain || p.State == PartitionInactive
}

// openPartitions replaces partitions that take no jobs by those that take theirs for them (Alternate). An alternate
// that takes none either is not followed further, as in Slurm.
func (c *Config) openPartitions(names []string) []string {
	find := func(name string) int {
		return slices.IndexFunc(c.Partitions, func(p Partition) bool { return p.Name == name })
	}
	out := slices.Clone(names)
	for i, name := range names {
		at := find(name)
		if at >= 0 && c.Partitions[at].refusesJobs() && find(c.Partitions[at].Alternate) >= 0 {
			out[i] = c.Partitions[at].Alternate
		}
	}
	return out
}

// PartitionLimits are what a job gets of a partition, and what it may ask for there.
type PartitionLimits struct {
	MaxTime        time.Duration `json:"max_time,omitempty"`     // 0 or Unlimited: none
	DefaultTime    time.Duration `json:"default_time,omitempty"` // 0: MaxTime
	MinNodes       int           `json:"min_nodes,omitempty"`
	MaxNodes       int           `json:"max_nodes,omitempty"`         // 0: no limit
	MaxCPUsPerNode int           `json:"max_cpus_per_node,omitempty"` // of all its jobs together; 0: no limit
	DefMem         Mem           `json:"def_mem,omitzero"`
	MaxMem         Mem           `json:"max_mem,omitzero"`
	// MaxCPUsPerSocket bounds the CPUs that all jobs of the partition together have of a socket, as MaxCPUsPerNode does
	// for a node; 0: no limit.
	MaxCPUsPerSocket int `json:"max_cpus_per_socket,omitempty"`
	// OverTimeLimit is how long the partition's jobs may run on after their time limit; nil: as the cluster says.
	OverTimeLimit *time.Duration `json:"over_time_limit,omitempty"`
}

// LimitsCPUs reports whether the partition's jobs may have only some CPUs of a node.
func (l *PartitionLimits) LimitsCPUs() bool { return l.MaxCPUsPerNode > 0 || l.MaxCPUsPerSocket > 0 }

// PartitionAccess is whose jobs a partition takes; empty: everybody's.
type PartitionAccess struct {
	AllowGroups   []string `json:"allow_groups,omitempty"`
	AllowAccounts []string `json:"allow_accounts,omitempty"`
	AllowQOS      []string `json:"allow_qos,omitempty"`
	DenyAccounts  []string `json:"deny_accounts,omitempty"`
	DenyQOS       []string `json:"deny_qos,omitempty"`
	// AllocNodes are the machines on which jobs for the partition may be submitted.
	AllocNodes []string `json:"alloc_nodes,omitempty"`
	// Alternate is the partition that takes the jobs for this one while it takes none itself; empty: they are refused.
	Alternate string `json:"alternate,omitempty"`
}

// TakesFrom reports whether jobs for the partition may be submitted on a machine, which may be told with its domain.
func (a *PartitionAccess) TakesFrom(host string) bool {
	short, _, _ := strings.Cut(host, ".")
	return len(a.AllocNodes) == 0 || slices.Contains(a.AllocNodes, host) || slices.Contains(a.AllocNodes, short)
}

// PartitionPower is when nodes of a partition are switched off and on.
type PartitionPower struct {
	// Of the partition's nodes, in place of the cluster's: Config.Power.After (Unlimited: never),
	// Config.Power.Leaving and Config.ResumeTimeout; nil: the cluster's. Of a node's partitions the longest time
	// counts.
	SuspendTime    *time.Duration `json:"suspend_time,omitempty"`
	SuspendTimeout *time.Duration `json:"suspend_timeout,omitempty"`
	ResumeTimeout  *time.Duration `json:"resume_timeout,omitempty"`
}

// IdleRules are those of a partition for jobs that make no progress, and for GPUs that do nothing.
type IdleRules struct {
	// IdleGPU is what becomes of jobs whose GPUs do nothing for IdleGPUTime (0: IdleGPUTime of the package).
	IdleGPU     IdleRule      `json:"idle_gpu,omitempty"`
	IdleGPUTime time.Duration `json:"idle_gpu_time,omitempty"`
	// Hang is the rule for jobs that make no progress and have none of their own; see ParseHangRule.
	Hang string `json:"hang,omitempty"`
}

// IdleRule is what becomes of jobs whose GPUs do nothing; empty: nothing.
type IdleRule string

// The rules.
const (
	IdleNotify  IdleRule = "notify"
	IdleRequeue IdleRule = "requeue"
	IdleCancel  IdleRule = "cancel"
)

// IdleGPUTime is how long GPUs may do nothing unless a partition says otherwise, and IdleGPUPercent how much that is.
const (
	IdleGPUTime    = 30 * time.Minute
	IdleGPUPercent = 5
)

// IdleTime is how long GPUs of the partition's jobs may do nothing.
func (p *Partition) IdleTime() time.Duration {
	if p.IdleGPUTime > 0 {
		return p.IdleGPUTime
	}
	return IdleGPUTime
}

// PerGPU is what jobs with GPUs get for each that do not say how many CPUs or how much memory they need (DefCpuPerGPU,
// DefMemPerGPU); 0: what jobs without GPUs get.
type PerGPU struct {
	CPUs  int   `json:"cpus,omitempty"`
	MemMB MemMB `json:"mem_mb,omitempty"`
}

// Unkillable says what follows when processes of a job outlive SIGKILL: the node is drained for as long as they do.
type Unkillable struct {
	// Program: runs on the node for each step of which there are such (UnkillableStepProgram).
	Program string        `json:"program,omitempty"`
	After   time.Duration `json:"after,omitempty"` // 0: 60 s (UnkillableStepTimeout)
}

// HealthCheck is a program that looks at a node now and then (HealthCheckProgram).
type HealthCheck struct {
	Program  string        `json:"program,omitempty"`
	Interval time.Duration `json:"interval,omitempty"` // 0: only when the client comes up
	// In which states of use nodes are checked; with none of these, in all.
	Idle  bool `json:"idle,omitempty"`
	Mixed bool `json:"mixed,omitempty"`
	Alloc bool `json:"alloc,omitempty"`
}

// Of reports whether a node is checked of whose CPUs so many are in use.
func (h *HealthCheck) Of(used, cpus int) bool {
	if !h.Idle && !h.Mixed && !h.Alloc {
		return true
	}
	switch {
	case used >= cpus && h.Alloc:
		return true
	case used == 0:
		return h.Idle
	case used < cpus:
		return h.Mixed
	}
	return false
}

// JobComp is how ends of jobs are recorded besides history.
type JobComp struct {
	// Kind: empty: not at all; filetxt: a line in the file Loc; script: by the program Loc.
	Kind string `json:"kind,omitempty"`
	Loc  string `json:"loc,omitempty"`
}

// Constrain says what of a job's share on a node its processes are not held to (cgroup.conf).
type Constrain struct {
	NoMemory  bool `json:"no_memory,omitempty"`
	NoCores   bool `json:"no_cores,omitempty"`
	NoDevices bool `json:"no_devices,omitempty"`
}

// Enforce is what of accounts binds users (AccountingStorageEnforce).
type Enforce struct {
	Associations bool `json:"associations,omitempty"` // a job needs one
	Limits       bool `json:"limits,omitempty"`
	QOS          bool `json:"qos,omitempty"`    // a job's QOS is one that its association allows
	Safe         bool `json:"safe,omitempty"`   // no job starts that could not run to its end
	WCKeys       bool `json:"wckeys,omitempty"` // a job's key is one that its user has
}

// Switch is one line of topology.conf.
type Switch struct {
	Name      string     `json:"name"`
	Switches  []string   `json:"switches,omitempty"`
	Nodes     []NodeName `json:"nodes,omitempty"`
	Features  []string   `json:"features,omitempty"`   // as a Partition's
	Joined    []NodeName `json:"joined,omitempty"`     // as a Partition's
	NodesText string     `json:"nodes_text,omitempty"` // as configured, where that names a set
}

// Block is one line of topology.conf with topology/block: nodes that belong together, an NVLink
// domain say.
type Block struct {
	Name      string     `json:"name"`
	Nodes     []NodeName `json:"nodes"`
	Features  []string   `json:"features,omitempty"` // these three as a Switch's
	Joined    []NodeName `json:"joined,omitempty"`
	NodesText string     `json:"nodes_text,omitempty"`
}

// DefaultConfig is what a cluster without any configuration file uses: Slurm's own
// defaults where slurm.conf(5) names them, one partition "main" over all nodes.
func DefaultConfig() Config {
	return Config{
		ClusterIdentity: ClusterIdentity{ClusterName: "muster"},
		JobDefaults:     JobDefaults{JobRequeue: true, PropagateLimits: true},
		JobLimits: JobLimits{
			MaxArraySize: 1_000_001,
			MaxJobCount:  1_000_000,
			FirstJobID:   1,
			MaxJobID:     0x03ff0000,
		},
		JobTimes: JobTimes{MinJobAge: 300 * time.Second, KillWait: 30 * time.Second},
		NodeTimes: NodeTimes{
			ReturnToService: 1,
			NodeTimeout:     4 * time.Second,
			ResumeTimeout:   time.Minute,
			LaunchTimeout:   20 * time.Second,
		},
		Consumables:      Consumables{CoreAlloc: true, MemAlloc: true},
		SchedulingPolicy: SchedulingPolicy{BackfillDepth: 1000},
		LeaderPrograms:   LeaderPrograms{MailProg: "/bin/mail"},
		Partitions:       []Partition{{Name: "main", All: true, NodesText: "ALL", Default: true, State: PartitionUp}},
	}
}

// FieldOrder is that in which a configuration is written, by their names in JSON: logs and snapshots hold its bytes,
// and servers of several versions write them. A new field needs no place here, it comes behind.
func (Config) FieldOrder() []string {
	return strings.Fields(`
		cluster_name partitions declared def_mem max_mem per_gpu max_tasks_per_node max_step_count no_root_jobs
		spec_use append_output interactive_step max_array_size max_job_count first_job_id max_job_id min_job_age
		kill_wait complete_wait no_shrink expand complete_local inactive_limit requeue_delay job_requeue
		kill_invalid_depend over_time_limit return_to_service node_timeout launch_timeout propagate_limits
		limits_only limits_except srun core_alloc socket_alloc one_task_per_core pack_nodes mem_alloc
		enforce_part_limits backfill_depth licenses node_sets topology blocks block_sizes max_switch_wait lln
		dist_block serial_at_end prolog epilog prolog_timeout no_prolog_hold prolog_server epilog_server
		lead_program follow_program unkillable resv_prolog resv_epilog resv_over_run topo_optional mail_prog
		mail_domain server_user notify_local requeue_exit requeue_exit_hold task_prolog task_epilog reboot_program
		resume_timeout user_top priority enforce track_wckey preempt strict_order shortest_first best_fit
		no_best_fit plan_whole gradient power health_check constrain limit_stop reserve_priority reserve_age tres
		gres contain sample_every source applied nccl_env private_dirs remove_ipc job_comp retention submit_plugins
		scripts containers burst keys`)
}
