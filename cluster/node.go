package cluster

import (
	"strconv"
	"strings"
	"time"
)

// AMDModels is what the model names of AMD's GPUs begin with.
const AMDModels = "AMD "

// AMD reports whether the device is one of AMD's.
func (g *GPU) AMD() bool { return strings.HasPrefix(g.Model, AMDModels) }

// GPU is one device (or MIG instance) of a node.
type GPU struct {
	Index int    `json:"index"`
	Type  string `json:"type"` // Slurm's type name: h100, a100, a100_3g.20gb …
	UUID  string `json:"uuid,omitempty"`
	PCI   string `json:"pci,omitempty"`
	Minor int    `json:"minor"`
	Model string `json:"model,omitempty"`
	MemMB MemMB  `json:"mem_mb,omitempty"`
	NUMA  int    `json:"numa,omitempty"`
	Cores IDSet  `json:"cores,omitzero"` // CPUs near the device
	// Number is one more than the driver's number for the device, its place by bus address; 0: not known.
	Number int `json:"number,omitempty"`
	// NVLinks is how many NVLinks are up; Switched says that they lead to NVSwitches.
	NVLinks  int  `json:"nvlinks,omitempty"`
	Switched bool `json:"switched,omitempty"`
	// Links is how many NVLinks lead straight to each GPU of the machine, in the order of their bus addresses;
	// -1 is the GPU itself (Links= of gres.conf). Empty where all lead to switches.
	Links []int `json:"links,omitempty"`
	// Fabric is the NVLink domain that reaches beyond the machine, CLUSTER-UUID.CLIQUE: the GPUs of all nodes
	// with the same one (an NVL72 rack, say) are one.
	Fabric string `json:"fabric,omitempty"`
	MIG    *MIG   `json:"mig,omitempty"` // set if this is a slice of a GPU
	// Env are the variables that show the device to jobs, by their flags of gres.conf(5): nvidia_gpu_env,
	// amd_gpu_env …; empty: those that suit its make.
	Env []string `json:"env,omitempty"`
	// Missing marks a device that was here and is not found any more.
	Missing bool `json:"missing,omitempty"`
}

// MIG says of which GPU a slice is (MIG: a Multi-Instance GPU is cut into devices of their own).
type MIG struct {
	Parent   string `json:"parent"`  // UUID of the whole GPU; the slice's PCI and Minor are its
	Profile  string `json:"profile"` // 3g.20gb: compute slices and memory
	Instance int    `json:"gi"`      // GPU instance
	Compute  int    `json:"ci"`      // compute instance in it
}

// NIC is one InfiniBand or RoCE port.
type NIC struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	State  string `json:"state,omitempty"`
	Rate   string `json:"rate,omitempty"`
	Link   string `json:"link,omitempty"` // InfiniBand or Ethernet
	PCI    string `json:"pci,omitempty"`
	NUMA   int    `json:"numa,omitempty"`
	Net    string `json:"net,omitempty"` // its network interface
	// Near are the GPUs by how far they are, the nearest first; those across sockets are left out.
	Near []NearGPUs `json:"near,omitempty"`
	// Leaf is the name of the switch at the other end of its cable, LeafGUID that one's address.
	Leaf     string    `json:"leaf,omitempty"`
	LeafGUID string    `json:"leaf_guid,omitempty"`
	Errors   []Counter `json:"errors,omitempty"` // counters of errors that are not 0
}

// PortActive is the state of a port that is well.
const PortActive = "ACTIVE"

// Gbits is how fast the port's link is, in Gbit/s; 0: not known.
func (n *NIC) Gbits() float64 {
	word, _, _ := strings.Cut(n.Rate, " ") // 400 Gb/sec (4X NDR)
	f, _ := strconv.ParseFloat(word, 64)
	return f
}

// Counter is one counter of a port.
type Counter struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// NearGPUs are GPUs at the same distance from a port, by their minor numbers.
type NearGPUs struct {
	Distance string `json:"distance"`
	GPUs     IDSet  `json:"gpus"`
}

// Distances on the PCI buses, in the words of nvidia-smi topo.
const (
	DistancePIX  = "PIX"  // below the same switch
	DistancePXB  = "PXB"  // across switches
	DistancePHB  = "PHB"  // across ports of the same root complex
	DistanceNODE = "NODE" // across root complexes of the same NUMA node
	DistanceSYS  = "SYS"  // across sockets
)

// Distances lists them from the nearest.
var Distances = []string{DistancePIX, DistancePXB, DistancePHB, DistanceNODE, DistanceSYS}

// DistanceTo is how far a GPU is from the port.
func (n *NIC) DistanceTo(g *GPU) string {
	for _, at := range n.Near {
		if at.GPUs.Has(g.Minor) {
			return at.Distance
		}
	}
	return DistanceSYS
}

// Inventory is what a node found itself to be, or what hollow flags or configuration say.
type Inventory struct {
	Host           string    `json:"host,omitempty"` // the machine's own name
	Addr           string    `json:"addr,omitempty"` // where its client listens
	Sockets        int       `json:"sockets"`
	CoresPerSocket int       `json:"cores_per_socket"`
	ThreadsPerCore int       `json:"threads_per_core"`
	CPUs           int       `json:"cpus"`
	MemMB          MemMB     `json:"mem_mb"`
	FreeMemMB      MemMB     `json:"free_mem_mb,omitempty"`
	TmpMB          int64     `json:"tmp_mb,omitempty"`
	GPUs           []GPU     `json:"gpus,omitempty"`
	NICs           []NIC     `json:"nics,omitempty"`
	Features       []string  `json:"features,omitempty"`                             // those that are active
	Inactive       []string  `json:"inactive_features,omitempty" since:"1,optional"` // that are available beside them
	OS             string    `json:"os,omitempty"`
	Arch           string    `json:"arch,omitempty"`
	Version        string    `json:"version,omitempty"`
	Boot           time.Time `json:"boot,omitzero"`
	Isolation      string    `json:"isolation,omitempty"` // how jobs are fenced: cgroup2, cgroup1, none
	BootID         string    `json:"boot_id,omitempty"`   // another one after each boot
	Hollow         bool      `json:"hollow,omitempty"`
	Weight         int       `json:"weight,omitempty"`
	SpecCPUs       IDSet     `json:"spec_cpus,omitzero"`    // not for jobs (CpuSpecList, CoreSpecCount)
	SpecMemMB      MemMB     `json:"spec_mem_mb,omitempty"` // nor this memory (MemSpecLimit)
	Shared         []GRES    `json:"shared,omitempty"`      // shards and MPS shares of all GPUs, as gres.conf has them
	GPUDriver      string    `json:"gpu_driver,omitempty"`  // its version
	Interface      string    `json:"interface,omitempty"`   // the network interface that has Addr
	Faults         []Fault   `json:"faults,omitempty"`      // what is wrong with the machine's parts
	Topology       string    `json:"topology,omitempty"`    // the leaf switch or block that it says it is in
	Said           Hardware  `json:"said,omitzero"`         // what its client was told that it has
}

// CoresOf are the cores that CPUs are of.
func (inv *Inventory) CoresOf(cpus IDSet) (cores IDSet) {
	for k := range cpus.All() {
		cores.put(k / max(inv.ThreadsPerCore, 1))
	}
	return cores
}

// Node is one compute node: what it is and whether it may be used. What is in use there is
// its Load, kept beside it.
type Node struct {
	Name       NodeName      `json:"name"`
	Order      int           `json:"order"` // in which it became known, see CompareNodes
	Inventory  Inventory     `json:"inventory"`
	Owner      string        `json:"owner,omitempty"` // the member whose client it is; empty on the servers' own machine
	Up         bool          `json:"up"`              // its client holds a lease
	Quiet      bool          `json:"quiet,omitempty"` // its client has not been heard of for a moment
	Down       bool          `json:"down"`            // set down by an operator or after it was lost
	Drain      bool          `json:"drain"`
	Failing    bool          `json:"failing,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	ReasonBy   string        `json:"reason_by,omitempty"`
	ReasonUID  uint32        `json:"reason_uid,omitempty"`
	ReasonAt   time.Time     `json:"reason_at,omitzero"`
	Registered time.Time     `json:"registered,omitzero"`
	LastBusy   time.Time     `json:"last_busy,omitzero"`
	Silent     bool          `json:"silent,omitempty"` // down since it fell silent, whatever reason it is drained for
	Comment    string        `json:"comment,omitempty"`
	Extra      string        `json:"extra,omitempty"`
	Full       Hardware      `json:"full,omitzero"`         // what it should have
	Lacks      string        `json:"lacks,omitempty"`       // what of that it has not, in words
	DrainedFor []Fault       `json:"drained_for,omitempty"` // faults, as long as they are the reason
	Trouble    *FailureScore `json:"trouble,omitempty"`     // nil: its client is of a version before this
	Expected   Expected      `json:"expected,omitempty"`
	Reboot     *Reboot       `json:"reboot,omitempty"`                    // asked for or under way
	Power      *Power        `json:"power,omitempty"`                     // off, or on its way between on and off
	ReportSeq  uint64        `json:"report_seq,omitempty"`                // last Report applied, for idempotence
	Unsure     bool          `json:"unsure,omitempty" since:"1,optional"` // the state was restored, and it has not told yet what it knows (Restored)
}

// Expected says how a node was made known before it registered; empty if it came by itself.
type Expected string

// The kinds of node that an operator makes known in advance.
const (
	ExpectedCloud  Expected = "cloud"  // comes and goes
	ExpectedFuture Expected = "future" // not shown before it has come
)

// Usable reports whether new work may be given to the node: it is there, or can be switched on.
func (n *Node) Usable() bool {
	if n.Down || n.Drain || n.Failing || n.Reboot.Issued() {
		return false
	}
	if !n.Up {
		return n.Off()
	}
	return !n.Quiet && !n.Leaving()
}

// nodeWords are the conditions of a node, the first that holds; busy: jobs are on it.
var nodeWords = [...]struct {
	is   func(n *Node, busy bool) bool
	word string
}{
	{func(n *Node, _ bool) bool { return n.Down }, "down"},
	{func(n *Node, busy bool) bool { return n.Drain && busy }, "draining"},
	{func(n *Node, _ bool) bool { return n.Drain }, "drained"},
	{func(n *Node, _ bool) bool { return !n.Up && n.Leaving() }, "powering down"},
	{func(n *Node, _ bool) bool { return !n.Up && n.Off() && n.Power.State != PowerOff }, "powering up"},
	{func(n *Node, _ bool) bool { return !n.Up && n.Off() }, "off"},
	{func(n *Node, _ bool) bool { return n.Registered.IsZero() }, "absent"},
	{func(n *Node, _ bool) bool { return !n.Up || n.Quiet }, "silent"},
	{func(_ *Node, busy bool) bool { return busy }, "running"},
}

// Word is a node's condition in the word that all of muster shows people; busy: jobs are on it.
func (n *Node) Word(busy bool) string {
	for _, row := range nodeWords {
		if row.is(n, busy) {
			return row.word
		}
	}
	return "idle"
}

// Load is what is given out on a node: the sum of the shares of its jobs.
type Load struct {
	Node NodeName `json:"node"`
	CPUUse
	GPUs  IDSet   `json:"gpus,omitzero"` // those of which parts are given out, too
	MemMB MemMB   `json:"mem_mb,omitempty"`
	Jobs  []JobID `json:"jobs,omitempty"` // rising
	// Parts sums what is given out of parts of GPUs, by device and name.
	Parts []GPUPart `json:"parts,omitempty"`
	// Closed is one more than the id of the user for whose jobs alone the node is (--exclusive=user); 0: for all.
	Closed int64 `json:"closed,omitempty"`
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

	Name              string         `json:"name"`
	Nodes             []NodeName     `json:"nodes"` // with All, every node
	All               bool           `json:"all,omitempty"`
	Features          []string       `json:"features,omitempty"`   // nodes with one of these are among Nodes, too
	Joined            []NodeName     `json:"joined,omitempty"`     // those of Nodes that are there by what they bring
	NodesText         string         `json:"nodes_text,omitempty"` // as configured
	Default           bool           `json:"default,omitempty"`
	State             PartitionState `json:"state"`
	Hidden            bool           `json:"hidden,omitempty"`
	RootOnly          bool           `json:"root_only,omitempty"`
	ExclusiveUser     bool           `json:"exclusive_user,omitempty"`
	OverSubscribe     string         `json:"over_subscribe,omitempty"` // see ParseOverSubscribe; empty: NO
	MaxTime           time.Duration  `json:"max_time,omitempty"`       // 0 or Unlimited: none
	DefaultTime       time.Duration  `json:"default_time,omitempty"`   // 0: MaxTime
	MinNodes          int            `json:"min_nodes,omitempty"`
	MaxNodes          int            `json:"max_nodes,omitempty"` // 0: no limit
	MaxCPUsPerNode    int            `json:"max_cpus_per_node,omitempty"`
	DefMem            Mem            `json:"def_mem,omitzero"`
	MaxMem            Mem            `json:"max_mem,omitzero"`
	PriorityTier      int            `json:"priority_tier,omitempty"`
	PriorityJobFactor int            `json:"priority_job_factor,omitempty"`
	AllowGroups       []string       `json:"allow_groups,omitempty"`
	AllowAccounts     []string       `json:"allow_accounts,omitempty"`
	AllowQOS          []string       `json:"allow_qos,omitempty"`
	DenyAccounts      []string       `json:"deny_accounts,omitempty"`
	DenyQOS           []string       `json:"deny_qos,omitempty"`
	GraceTime         time.Duration  `json:"grace_time,omitempty"`
	DisableRootJobs   bool           `json:"disable_root_jobs,omitempty"`
	LLN               bool           `json:"lln,omitempty"`
	ReqResv           bool           `json:"req_resv,omitempty"`
	PreemptMode       string         `json:"preempt_mode,omitempty"` // empty: the cluster's
	QOS               string         `json:"qos,omitempty"`          // whose limits count here too
	MaxCPUsPerUser    int            `json:"max_cpus_per_user,omitempty"`
	BillingWeights    []Amount       `json:"billing_weights,omitempty"` // mem: of a MB
	PerGPU            PerGPU         `json:"per_gpu,omitzero"`          // instead of the cluster's
	PartitionPower
	IdleRules
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

// IdleRules are those of a partition for GPUs that do nothing.
type IdleRules struct {
	// IdleGPU is what becomes of jobs whose GPUs do nothing for IdleGPUTime (0: IdleGPUTime of the package).
	IdleGPU     IdleRule      `json:"idle_gpu,omitempty" since:"3,optional"`
	IdleGPUTime time.Duration `json:"idle_gpu_time,omitempty" since:"3,optional"`
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

// LeaderPrograms run at servers.
type LeaderPrograms struct {
	PrologServer  string `json:"prolog_server,omitempty"`  // runs at the leader before a job's nodes hear of it (PrologSlurmctld)
	EpilogServer  string `json:"epilog_server,omitempty"`  // and when it has ended
	LeadProgram   string `json:"lead_program,omitempty"`   // runs at a server that begins to lead (SlurmctldPrimaryOnProg)
	FollowProgram string `json:"follow_program,omitempty"` // and at one that leads no longer (SlurmctldPrimaryOffProg)
}

// Plugins are the site's say in what is submitted.
type Plugins struct {
	// SubmitPlugins look at what is submitted and changed, in this order (JobSubmitPlugins).
	SubmitPlugins []string `json:"submit_plugins,omitempty" since:"3,optional"`
	// Scripts are the site's scripts in Lua, by the names of their files.
	Scripts map[string]string `json:"scripts,omitempty" since:"3,optional"`
	// Containers is what the site says of containers (plugstack.conf).
	Containers ContainerDefaults `json:"containers,omitzero" since:"5,optional"`
	// Burst is how the script for burst buffers is called; nil: there is none (BurstBufferType, burst_buffer.conf).
	Burst *BurstConfig `json:"burst,omitempty" since:"7"`
}

// Resizing says what sizes jobs that run may get.
type Resizing struct {
	// NoShrink: they give no nodes back (disable_job_shrink).
	NoShrink bool `json:"no_shrink,omitempty"`
	// Expand: they may get those of others (permit_job_expansion).
	Expand bool `json:"expand,omitempty" since:"8"`
}

// Config is the whole configuration: one value, replaced as a whole by Configure.
type Config struct {
	ClusterName string      `json:"cluster_name"`
	Partitions  []Partition `json:"partitions"`
	// Declared are nodes known by name before their clients register (NodeName= lines).
	Declared        []Node `json:"declared,omitempty"`
	DefMem          Mem    `json:"def_mem,omitzero"`
	MaxMem          Mem    `json:"max_mem,omitzero"`
	PerGPU          PerGPU `json:"per_gpu,omitzero"`
	MaxTasksPerNode int    `json:"max_tasks_per_node,omitempty"` // of a job; 0: no limit
	MaxStepCount    int    `json:"max_step_count,omitempty"`     // of a job; 0: no limit
	NoRootJobs      bool   `json:"no_root_jobs,omitempty"`       // root may not run jobs (DisableRootJobs)
	SpecUse         bool   `json:"spec_use,omitempty"`           // jobs may say what they leave of their nodes for the system (AllowSpecResourcesUsage)
	AppendOutput    bool   `json:"append_output,omitempty"`      // batch jobs add to output files that there are (JobFileAppend)
	// InteractiveStep is the options with which salloc, given no command, calls srun to begin a shell on the job's
	// first node (InteractiveStepOptions, where LaunchParameters has use_interactive_step); empty: the shell begins
	// where salloc is.
	InteractiveStep string        `json:"interactive_step,omitempty"`
	MaxArraySize    int           `json:"max_array_size"`
	MaxJobCount     int           `json:"max_job_count"`
	FirstJobID      JobID         `json:"first_job_id"`
	MaxJobID        JobID         `json:"max_job_id"`
	MinJobAge       time.Duration `json:"min_job_age"`
	KillWait        time.Duration `json:"kill_wait"`
	CompleteWait    time.Duration `json:"complete_wait,omitempty"` // how long at most a job that ends keeps others from starting; 0: it does not
	Resizing
	CompleteLocal     bool          `json:"complete_local,omitempty"` // only where its partition has nodes (reduce_completing_frag)
	InactiveLimit     time.Duration `json:"inactive_limit,omitempty"`
	RequeueDelay      time.Duration `json:"requeue_delay"` // from a requeue to BeginTime
	JobRequeue        bool          `json:"job_requeue"`
	KillInvalidDepend bool          `json:"kill_invalid_depend,omitempty"`
	OverTimeLimit     time.Duration `json:"over_time_limit,omitempty"`
	ReturnToService   int           `json:"return_to_service"`
	NodeTimeout       time.Duration `json:"node_timeout"`             // silence after which a node is down (SlurmdTimeout)
	LaunchTimeout     time.Duration `json:"launch_timeout,omitempty"` // for all nodes of a job to confirm it (BatchStartTimeout); 0: for ever
	PropagateLimits   bool          `json:"propagate_limits"`
	LimitsOnly        []string      `json:"limits_only,omitempty"`   // names of the limits that are; nil: all
	LimitsExcept      []string      `json:"limits_except,omitempty"` // but these
	Srun              SrunDefaults  `json:"srun,omitzero"`
	CoreAlloc         bool          `json:"core_alloc"`                  // CPUs are given as whole cores (CR_Core)
	SocketAlloc       bool          `json:"socket_alloc,omitempty"`      // CPUs are given as whole sockets (CR_Socket)
	OneTaskPerCore    bool          `json:"one_task_per_core,omitempty"` // without --ntasks-per-core (CR_ONE_TASK_PER_CORE)
	PackNodes         bool          `json:"pack_nodes,omitempty"`        // tasks on the first of a job's whole nodes, not evenly on all (CR_Pack_Nodes)
	MemAlloc          bool          `json:"mem_alloc"`                   // memory is a consumable (CR_*_Memory)
	EnforcePartLimits string        `json:"enforce_part_limits,omitempty"`
	BackfillDepth     int           `json:"backfill_depth,omitempty"`
	Licenses          []License     `json:"licenses,omitempty"`
	NodeSets          []NodeGroup   `json:"node_sets,omitempty"`
	Topology          []Switch      `json:"topology,omitempty"`
	Blocks            []Block       `json:"blocks,omitempty"`          // instead of switches
	BlockSizes        []int         `json:"block_sizes,omitempty"`     // nodes, rising; each the first times a power of two
	MaxSwitchWait     time.Duration `json:"max_switch_wait,omitempty"` // longest wait for --switches; 0: 300 s
	LLN               bool          `json:"lln,omitempty"`             // the least loaded nodes first (CR_LLN)
	DistBlock         bool          `json:"dist_block,omitempty"`      // one socket is filled before the next without -m (CR_CORE_DEFAULT_DIST_BLOCK)
	SerialAtEnd       bool          `json:"serial_at_end,omitempty"`   // jobs of one CPU from the last node on (pack_serial_at_end)
	Prolog            string        `json:"prolog,omitempty"`          // runs on each node of a job before it begins there, as root; a pattern of paths
	Epilog            string        `json:"epilog,omitempty"`          // and when nothing of it is left
	PrologTimeout     time.Duration `json:"prolog_timeout,omitempty"`  // of either; 0: none
	NoPrologHold      bool          `json:"no_prolog_hold,omitempty"`  // a job whose prolog failed goes elsewhere, and is not held
	LeaderPrograms
	Unkillable      Unkillable     `json:"unkillable,omitzero"`
	ResvProlog      string         `json:"resv_prolog,omitempty"`   // runs at the leader when a reservation begins
	ResvEpilog      string         `json:"resv_epilog,omitempty"`   // and when its time is over
	ResvOverRun     time.Duration  `json:"resv_over_run,omitempty"` // how much longer its jobs may run
	TopoOptional    bool           `json:"topo_optional,omitempty"` // switches matter only to jobs with --switches (TopologyParam)
	MailProg        string         `json:"mail_prog,omitempty"`     // sends mail; empty: none is sent
	MailDomain      string         `json:"mail_domain,omitempty"`   // of users without an address
	ServerUser      string         `json:"server_user,omitempty"`   // who these programs run as (SlurmUser); empty: as the server does
	NotifyLocal     bool           `json:"notify_local,omitempty"`  // --notify may call addresses of the servers themselves
	RequeueExit     IDSet          `json:"requeue_exit,omitzero"`   // exit codes after which batch jobs go back into the queue
	RequeueExitHold IDSet          `json:"requeue_exit_hold,omitzero"`
	TaskProlog      string         `json:"task_prolog,omitempty"` // runs before each task, as its user
	TaskEpilog      string         `json:"task_epilog,omitempty"`
	RebootProgram   string         `json:"reboot_program,omitempty"` // restarts a node's machine
	ResumeTimeout   time.Duration  `json:"resume_timeout,omitempty"` // from that to the node's return
	UserTop         bool           `json:"user_top,omitempty"`       // users may move their jobs to the top of theirs
	Priority        PriorityConfig `json:"priority,omitzero"`
	Enforce         Enforce        `json:"enforce,omitzero"`
	TrackWCKey      bool           `json:"track_wckey,omitempty"` // jobs have one of their user's workload characterization keys
	Preempt         PreemptConfig  `json:"preempt,omitzero"`
	// StrictOrder tries jobs in the order of the queue, see package sched.
	StrictOrder bool `json:"strict_order,omitempty"`
	// ShortestFirst tries jobs by their limits where it is neither that order nor that of priorities.
	ShortestFirst bool `json:"shortest_first,omitempty"`
	// BestFit gives jobs of one node the node that they leave least of; NoBestFit has none of that where it is
	// usual, see package sched.
	BestFit   bool `json:"best_fit,omitempty"`
	NoBestFit bool `json:"no_best_fit,omitempty" since:"1,optional"`
	// PlanWhole keeps the nodes of planned starts as a whole: other jobs get nothing of what would be left of them
	// beside.
	PlanWhole bool `json:"plan_whole,omitempty"`
	// Gradient gives them the node of which they spoil least for the jobs of late; of equals the one that BestFit
	// gives them.
	Gradient bool `json:"gradient,omitempty"`
	// Power is how nodes are switched on and off.
	Power PowerConfig `json:"power,omitzero"`
	// HealthCheck is the site's own, on each node.
	HealthCheck HealthCheck `json:"health_check,omitzero"`
	// Constrain is what of a job's share its processes are not held to.
	Constrain Constrain `json:"constrain,omitzero"`
	// LimitStop has a job that a limit of its association or QOS holds back hold back those behind it in its partitions
	// (assoc_limit_stop).
	LimitStop bool `json:"limit_stop,omitempty"`
	// ReservePriority is the least priority of a job for which nodes are kept free (bf_min_prio_reserve).
	ReservePriority uint32 `json:"reserve_priority,omitempty"`
	// ReserveAge is how long a job waits before nodes are kept free for it (bf_min_age_reserve); nil: as package
	// sched says.
	ReserveAge *time.Duration `json:"reserve_age,omitempty"`
	TRES       []string       `json:"tres,omitempty"` // tracked besides Slurm's own
	GRES       []GRESLine     `json:"gres,omitempty"` // gres.conf
	// Contain makes every job have an external step, for what others start in it.
	Contain bool `json:"contain,omitempty"`
	// SampleEvery is how often nodes measure what steps use, of jobs that do not say so themselves; 0: every 30 s;
	// Unlimited: never, but when somebody asks.
	SampleEvery time.Duration `json:"sample_every,omitempty"`
	// Source names the file's content that this came from.
	Source string `json:"source,omitempty"`
	// Applied says that this is not a server's own file: servers do not put theirs in its place when they begin to
	// lead.
	Applied bool `json:"applied,omitempty"`
	// NCCLEnv is --nccl-env for all jobs (LaunchParameters=nccl_env).
	NCCLEnv bool `json:"nccl_env,omitempty"`
	// PrivateDirs are the folders that jobs have for themselves (job_container.conf).
	PrivateDirs []PrivateDirs `json:"private_dirs,omitempty"`
	// RemoveIPC has nodes remove what a user left in their memory after the last of the user's jobs there
	// (LaunchParameters=remove_ipc).
	RemoveIPC bool `json:"remove_ipc,omitempty"`
	// JobComp is how ends of jobs are recorded besides history.
	JobComp JobComp `json:"job_comp,omitzero"`
	// Retention is how long history is kept (slurmdbd.conf).
	Retention Retention `json:"retention,omitzero"`
	Plugins
	// Keys are all keys as read, for scontrol show config.
	Keys map[string]string `json:"keys,omitempty"`
}

// Unkillable says what follows when processes of a job outlive SIGKILL: the node is drained for as long as they do.
type Unkillable struct {
	Program string        `json:"program,omitempty"` // runs on the node for each step of which there are such (UnkillableStepProgram)
	After   time.Duration `json:"after,omitempty"`   // 0: 60 s (UnkillableStepTimeout)
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
	Kind string `json:"kind,omitempty"` // empty: not at all; filetxt: a line in the file Loc; script: by the program Loc
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
// defaults where BEHAVIOUR or slurm.conf(5) name them, one partition "main" over all nodes.
func DefaultConfig() Config {
	return Config{
		ClusterName:     "muster",
		MaxArraySize:    1_000_001,
		MaxJobCount:     1_000_000,
		FirstJobID:      1,
		MaxJobID:        0x03ff0000,
		MinJobAge:       300 * time.Second,
		KillWait:        30 * time.Second,
		RequeueDelay:    0,
		JobRequeue:      true,
		ReturnToService: 1,
		NodeTimeout:     4 * time.Second,
		ResumeTimeout:   time.Minute,
		LaunchTimeout:   20 * time.Second,
		MailProg:        "/bin/mail",
		PropagateLimits: true,
		CoreAlloc:       true,
		MemAlloc:        true,
		BackfillDepth:   1000,
		Partitions:      []Partition{{Name: "main", All: true, NodesText: "ALL", Default: true, State: PartitionUp}},
	}
}
