package cluster

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Phase is where a job stands on its one line of life. Edges between phases are the table
// edges; a command that asks for another move is rejected.
type Phase uint8

// The phases.
const (
	Pending   Phase = iota
	Starting        // nodes given, not all have confirmed
	Running         // every node has confirmed
	Suspended       // processes stopped
	Ending          // told to end, not every node is clean yet
	Ended
)

// edges lists the moves a job may make, from each value that a Phase can have. Pending is reached
// again only by a requeue, and left for Running by what nodes know after a restore (NodeTell). An array, not a map:
// it costs nothing at start.
var edges = [256][]Phase{
	Pending:   {Starting, Running, Suspended, Ended},
	Starting:  {Running, Suspended, Ending, Ended, Pending},
	Running:   {Suspended, Ending, Ended, Pending},
	Suspended: {Running, Ending, Ended, Pending},
	Ending:    {Ended, Pending},
	Ended:     {Pending},
}

// Edges returns the table of permitted moves, for documents and checkers.
func Edges() [256][]Phase { return edges }

// Reason is why a job waits, or a detail of how it ended. It is the domain's word;
// slurm/ has the table of Slurm's names, which are mostly the same.
type Reason string

// The reasons of this version.
const (
	NoReason              Reason = ""
	WaitPriority          Reason = "Priority"
	WaitResources         Reason = "Resources"
	WaitDependency        Reason = "Dependency"
	WaitDependencyNever   Reason = "DependencyNeverSatisfied"
	WaitBegin             Reason = "BeginTime"
	WaitHeldUser          Reason = "JobHeldUser"
	WaitHeldAdmin         Reason = "JobHeldAdmin"
	WaitArrayLimit        Reason = "JobArrayTaskLimit"
	WaitPartitionTime     Reason = "PartitionTimeLimit"
	WaitPartitionNodes    Reason = "PartitionNodeLimit"
	WaitPartitionConfig   Reason = "PartitionConfig"
	WaitPartitionDown     Reason = "PartitionDown"
	WaitPartitionInactive Reason = "PartitionInactive"
	WaitNodeNotAvail      Reason = "ReqNodeNotAvail"
	WaitNodesDown         Reason = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
	WaitLicenses          Reason = "Licenses"
	WaitReservation       Reason = "Reservation"
	WaitResvDeleted       Reason = "ReservationDeleted"
	WaitSiblings          Reason = "FedJobLock"
	WaitBurst             Reason = "BurstBufferResources" // it is to stage in
	WaitStageIn           Reason = "BurstBufferStageIn"
	WaitBurstOperation    Reason = "BurstBufferOperation" // what it had in its last attempt is staged out or torn down
	WaitRequeueHeld       Reason = "job requeued in held state"
	WaitLaunchFailedHeld  Reason = "launch failed requeued held"
	EndNonZeroExit        Reason = "NonZeroExitCode"
	EndTimeLimit          Reason = "TimeLimit"
	EndDeadline           Reason = "DeadLine"
	EndLaunchFailure      Reason = "JobLaunchFailure"
	EndNodeDown           Reason = "NodeDown"
	EndBadConstraints     Reason = "BadConstraints"
	EndOutOfMemory        Reason = "OutOfMemory"
	EndPreempted          Reason = "Preempted" // of Expire alone: the grace is over
)

// Hold says who holds a job.
type Hold uint8

// The holders; a job in special exit is held too.
const (
	NotHeld Hold = iota
	HeldUser
	HeldAdmin
)

// WaitCode is the exit code of sbatch --wait for the job: 1 where a signal or the platform ended it, and 0 where it was
// cancelled before it began.
func WaitCode(j *Job) int {
	switch {
	case j.Outcome == Cancelled && j.Started.IsZero():
		return j.Exit.Code
	case j.Exit.Signal != 0, j.Outcome != Completed && j.Exit.Code == 0:
		return 1
	}
	return j.Exit.Code
}

// ExitStatus is a wait(2) status of a task, batch script or the worst of several:
// exit code and terminating signal.
type ExitStatus struct {
	Code   int `json:"code,omitempty"`
	Signal int `json:"signal,omitempty"`
}

// Outcome is that of a task or script which ended by itself: a signal counts as a cancellation.
func (e ExitStatus) Outcome() Outcome {
	switch {
	case e.Signal != 0:
		return Cancelled
	case e.Code != 0:
		return Failed
	}
	return Completed
}

// OOMExit is how a step ends of which processes were killed because the job's memory was used up, in the books.
var OOMExit = ExitStatus{Signal: 125}

// Share is what one node gives to a job or step.
type Share struct {
	Node  NodeName `json:"node"`
	CPUs  IDSet    `json:"cpus,omitzero"`
	GPUs  IDSet    `json:"gpus,omitzero"` // device indexes on the node
	Part  *GPUPart `json:"part,omitempty"`
	MemMB MemMB    `json:"mem_mb,omitempty"`
	Tasks int      `json:"tasks,omitempty"` // how many tasks are meant to run here
	// Counted is what it has of the site's own resources, sorted.
	Counted []GRES `json:"counted,omitempty"`
	// Usable are the CPUs on which tasks run where these are not CPUs, see UsableBy.
	Usable IDSet `json:"usable,omitzero"`
}

// Devices returns the GPUs of which it has some or all.
func (sh *Share) Devices() IDSet {
	if sh.Part == nil {
		return sh.GPUs
	}
	return sh.GPUs.Union(NewIDSet(sh.Part.GPU))
}

// Same reports whether two shares differ in nothing but their nodes.
func (sh *Share) Same(o *Share) bool {
	if sh.MemMB != o.MemMB || sh.Tasks != o.Tasks || !samePart(sh.Part, o.Part) {
		return false
	}
	if !slices.Equal(sh.Counted, o.Counted) {
		return false
	}
	return sh.CPUs.Equal(o.CPUs) && sh.Usable.Equal(o.Usable) && sh.GPUs.Equal(o.GPUs)
}

// GivesAs reports whether a job has the same CPUs, GPUs, memory and counted resources by two shares.
func (sh *Share) GivesAs(o *Share) bool {
	if sh.MemMB != o.MemMB || !slices.Equal(sh.Counted, o.Counted) {
		return false
	}
	return sh.TaskCPUs().Equal(o.TaskCPUs()) && sh.GPUs.Equal(o.GPUs)
}

// samePart reports whether two shares have the same of a GPU's parts.
func samePart(a, b *GPUPart) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Avoided is a node that could not launch a job, and why.
type Avoided struct {
	Node NodeName `json:"node"`
	Why  string   `json:"why"`
}

// Alloc is what was given to a job: one share a node, in the order of the node list.
type Alloc struct {
	Shares    []Share `json:"shares"`
	Partition string  `json:"partition"`
	// Reservation is the one whose nodes these are, if any.
	Reservation string `json:"reservation,omitempty"`
	// Types maps GPU type to count over all shares, for TRES texts.
	Types map[string]int64 `json:"types,omitempty"`
	// Billing is what it is billed each second, by the partition's weights when it was given; nil before
	// this was recorded.
	Billing *float64 `json:"billing,omitempty"`
	// Over is how many jobs may be on each of its CPUs, it among them; 0: it alone.
	Over int `json:"over,omitempty"`
	// Spares are what it has of nodes that stand by; see spares.go.
	Spares []Share `json:"spares,omitempty"`
	// Protected: nodes were kept free for the job before it started, as it had waited so long.
	Protected bool `json:"protected,omitempty"`
	// Keeps: the job ends and starts again at once, so it keeps all of its nodes until they are clean.
	Keeps bool `json:"keeps,omitempty"`
}

// Pause is a time in which a job was suspended.
type Pause struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// maxPauses bounds how many of its pauses a job remembers one by one: what comes later lengthens the last of them,
// as if it had followed at once.
const maxPauses = 64

// paused adds a pause that is over.
func (j *Job) paused(from, to time.Time) {
	j.SuspendTotal += to.Sub(from)
	j.Pauses = slices.Clone(j.Pauses)
	if n := len(j.Pauses); n == maxPauses {
		j.Pauses[n-1].To = j.Pauses[n-1].To.Add(to.Sub(from))
		return
	}
	j.Pauses = append(j.Pauses, Pause{from, to})
}

// Job is one job, one array task, or an array's tasks that do not differ yet.
type Job struct {
	ID          JobID    `json:"id"`
	Key         string   `json:"key,omitempty"`      // of its submission, see Submit
	Spec        *JobSpec `json:"spec" wire:"shared"` // never changed
	Phase       Phase    `json:"phase"`
	Outcome     Outcome  `json:"outcome,omitempty"`
	Held        Hold     `json:"held,omitempty"`
	SpecialExit bool     `json:"special_exit,omitempty"`

	// ArrayID is the array's id, 0 for a plain job. Task is this record's task number or
	// TaskAny; Tasks are the task numbers of a record that stands for several.
	ArrayID JobID `json:"array_id,omitempty"`
	Task    int   `json:"task"`
	Tasks   IDSet `json:"tasks,omitzero"`
	// Het: it is a component of a heterogeneous job.
	Het *HetPart `json:"het,omitempty"`

	HeldWhy      Reason     `json:"held_why,omitempty"`
	Wait         Reason     `json:"wait,omitempty"`
	WaitNote     string     `json:"wait_note,omitempty"` // text behind the reason, e.g. the unavailable nodes
	Depends      Depends    `json:"depends,omitzero"`    // what is still unmet of Spec.Depends
	Eligible     time.Time  `json:"eligible,omitzero"`
	PlannedStart time.Time  `json:"planned_start,omitzero"`
	PlannedNodes []NodeName `json:"planned_nodes,omitempty"`
	Priority     uint32     `json:"priority"` // 0 while held
	// Assoc is the association that it is charged to, if any.
	Assoc    AssocID   `json:"assoc,omitempty"`
	LastEval time.Time `json:"last_eval,omitzero"`

	Alloc    *Alloc `json:"alloc,omitempty"`   // kept after the end, for history
	Attempt  int    `json:"attempt,omitempty"` // 0 before the first start, then 1, 2 …
	Restarts int    `json:"restarts,omitempty"`
	// Avoid are the nodes that could not launch it: it does not go there again unless it is released.
	Avoid []Avoided `json:"avoid,omitempty"`

	Submitted    time.Time     `json:"submitted"`
	Started      time.Time     `json:"started,omitzero"`
	Ended        time.Time     `json:"ended,omitzero"`
	SuspendedAt  time.Time     `json:"suspended_at,omitzero"`
	PreSuspend   time.Duration `json:"pre_suspend,omitempty"` // run time before SuspendedAt
	SuspendTotal time.Duration `json:"suspend_total,omitempty"`
	Pauses       []Pause       `json:"pauses,omitempty"` // when it was suspended, for history; the sum is SuspendTotal
	Limit        time.Duration `json:"limit,omitempty"`  // effective time limit

	CancelledBy *uint32    `json:"cancelled_by,omitempty"`
	EndingAt    time.Time  `json:"ending_at,omitzero"`
	EndReason   Reason     `json:"end_reason,omitempty"`
	Exit        ExitStatus `json:"exit,omitzero"`
	Derived     ExitStatus `json:"derived,omitzero"` // worst step, or what was said afterwards
	// SystemComment is what the site's programs say of it.
	SystemComment string `json:"system_comment,omitempty"`
	// Waiting lists the nodes whose confirmation (Starting) or clean end (Ending) is missing; in Pending those of the
	// attempt before, which may still tell how its steps ended.
	Waiting []NodeName `json:"waiting,omitempty"`
	// Signals asked for by users that the nodes deliver once, by rising number.
	Signals  []JobSignal `json:"signals,omitempty"`
	NextStep int         `json:"next_step,omitempty"` // next step number, as far as reported
	// Accrue is since when its age counts; Charged the part of its run time that is charged already.
	Accrue  time.Time     `json:"accrue,omitzero"`
	Charged time.Duration `json:"charged,omitempty"`
	// Owed is what of that would be given back, if the site gives back what faults took; Refunded that it was.
	Owed     *Owed `json:"owed,omitempty"`
	Refunded bool  `json:"refunded,omitempty"`
	// EndingWhy is set in Ending: how the job will end.
	EndingWhy    Outcome `json:"ending_why,omitempty"`
	RequeueAfter bool    `json:"requeue_after,omitempty"` // Ending leads back to Pending
	RequeueHold  bool    `json:"requeue_hold,omitempty"`
	Backfilled   bool    `json:"backfilled,omitempty"`
	// Stopped: a user's SIGSTOP has stopped it, and no SIGCONT followed.
	Stopped bool `json:"stopped,omitempty"`
	// Noticed is how much of its time was over, in percent, when its user was told so last.
	Noticed uint8 `json:"noticed,omitempty"`
	// Contain: the cluster gave every job an external step when this one began.
	Contain bool `json:"contain,omitempty"`
	// Preempt: it made room for another job in its last attempt, or is about to. Evicted counts those that made
	// room for it.
	Preempt *Preemption `json:"preempt,omitempty"`
	Evicted Evictions   `json:"evicted,omitzero"`
	// Prelude: PrologSlurmctld runs before its nodes hear of it, or has run.
	Prelude *Prelude `json:"prelude,omitempty"`
	// Blame is what of the platform ended it; nil if nothing is known to have.
	Blame *Blame `json:"blame,omitempty"`
	Rarely
}

// Rarely is what few jobs have.
type Rarely struct {
	// Turn: it takes turns with others on its CPUs; nil: it has not had to yet.
	Turn *Turn `json:"turn,omitempty"`
	// Shrunk: it has given nodes back while it ran.
	Shrunk *Shrunk `json:"shrunk,omitempty"`
	// Fed: clusters of a federation share it.
	Fed *SharedJob `json:"fed,omitempty"`
	// Burst: it has a burst buffer.
	Burst *Burst `json:"burst,omitempty"`
	// Survival: it has saved checkpoints, or was found to hang.
	Survival *Survival `json:"survival,omitempty"`
	// Imported: it ran in a Slurm cluster.
	Imported *ImportedJob `json:"imported,omitempty"`
}

// FieldOrder returns the order in which a job is written, by the names of its fields in JSON: logs and snapshots hold
// its bytes. In memory small fields stand side by side. A new field needs no place here, it comes behind.
func (Job) FieldOrder() []string {
	return strings.Fields(`
		id key spec phase outcome array_id task tasks het held special_exit backfilled held_why wait wait_note
		depends eligible planned_start planned_nodes priority assoc last_eval alloc attempt restarts avoid
		submitted started ended suspended_at pre_suspend suspend_total pauses limit ending_why requeue_after
		requeue_hold cancelled_by ending_at end_reason exit derived system_comment waiting signals next_step
		accrue charged owed refunded stopped noticed contain preempt evicted prelude blame turn shrunk fed burst
		survival imported`)
}

// OwnSteps are the steps that a job is by itself, besides those of srun: the external step, for
// what others start on its nodes, and the batch script while it runs (its end is reported like that
// of any step). They are records only; no process stands for the external step.
func (j *Job) OwnSteps() (out []*Step) {
	if j.Alloc == nil || j.Started.IsZero() || j.Phase < Running || j.Imported != nil {
		return nil
	}
	if j.Shrunk != nil && j.Submitted.Equal(j.Shrunk.At) {
		return nil // it had them as it had another size
	}
	if j.Contain {
		out = append(out, externStep(j))
	}
	goesOn := j.Phase != Ended || len(j.Waiting) > 0 || j.Outcome == Resized
	lost := j.Phase == Ended && j.Outcome == NodeFailed // with what would have reported the script's end
	if (goesOn || lost) && j.RunsScript() {
		s := ownStep(j, BatchStep, "batch", j.Alloc.Shares[:1])
		s.Ended = j.Ended
		s.Outcome = j.Outcome
		if lost {
			s.Outcome = Cancelled // as the steps of srun, in Slurm, too
		}
		out = append(out, s)
	}
	return out
}

func externStep(j *Job) *Step {
	s := ownStep(j, ExternStep, "extern", j.Alloc.Shares)
	if j.Phase != Ended {
		return s
	}
	s.Ended = j.Ended
	s.Outcome = Completed
	if j.Outcome == NodeFailed || j.Outcome == Resized {
		s.Outcome = j.Outcome
	}
	return s
}

func ownStep(j *Job, number int, name string, shares []Share) *Step {
	return &Step{
		ID:      StepID{j.ID, number},
		Attempt: j.Attempt,
		Name:    name,
		User:    j.Spec.User,
		UID:     j.Spec.UID,
		Shares:  shares,
		Tasks:   len(shares),
		Started: j.Started,
	}
}

// Settled is the job as accounting shows it: one that was told to end is over, though not every node is clean yet, as
// Slurm's records say it. One that will wait again afterwards is not.
func (j *Job) Settled() *Job {
	if j.Phase != Ending || j.RequeueAfter {
		return j
	}
	over := *j
	over.Phase = Ended
	over.Outcome = j.EndingWhy
	over.Ended = j.EndingAt
	return &over
}

// SignalScope says which processes of a job get a signal.
type SignalScope uint8

// The scopes, as scancel's options choose them.
const (
	SignalSteps      SignalScope = iota // the steps, not the batch shell
	SignalBatchShell                    // only the batch shell's own process (-b)
	SignalFull                          // batch shell, its children and all steps (-f)
	SignalBatchFull                     // batch shell and its children (-b -f)
)

// Numbers of the signals that ask a job to end, continue and stop it.
const (
	sigTerm = 15
	sigCont = 18
	sigStop = 19
)

// JobSignal is one signal to deliver to a running job. Step is a step number or AllSteps.
type JobSignal struct {
	Num   int         `json:"num"` // counts up within the job
	Sig   int         `json:"sig"`
	Scope SignalScope `json:"scope,omitempty"`
	Step  int         `json:"step"`
	UID   uint32      `json:"uid,omitempty"` // who sent it
}

// Step numbers that are not a plain step's, as Slurm numbers them on the wire.
const (
	BatchStep       = -5
	ExternStep      = -4
	InteractiveStep = -6
	AllSteps        = -1
)

// StepID names a step of a job.
type StepID struct {
	Job  JobID `json:"job"`
	Step int   `json:"step"`
}

// Step is the record of one step, made by the job's first node and reported to the servers.
type Step struct {
	ID           StepID        `json:"id"`
	Attempt      int           `json:"attempt"`
	Name         string        `json:"name"`
	User         string        `json:"user,omitempty"`
	UID          uint32        `json:"uid,omitempty"`
	Shares       []Share       `json:"shares,omitempty"`
	Tasks        int           `json:"tasks"`
	Distribution string        `json:"distribution,omitempty"`
	SubmitLine   string        `json:"submit_line,omitempty"`
	CPUFreq      string        `json:"cpu_freq,omitempty"` // what --cpu-freq asked for; nothing sets it
	SrunHost     string        `json:"srun_host,omitempty"`
	SrunPID      int           `json:"srun_pid,omitempty"`
	Started      time.Time     `json:"started"`
	Ended        time.Time     `json:"ended,omitzero"`
	Outcome      Outcome       `json:"outcome,omitempty"`
	CancelledBy  *uint32       `json:"cancelled_by,omitempty"`
	Exit         ExitStatus    `json:"exit,omitzero"`
	Limit        time.Duration `json:"limit,omitempty"`
	Usage        Usage         `json:"usage,omitzero"`
	// Failed is the task that failed first.
	Failed *TaskEnd `json:"failed,omitempty"`
	// Asked is what it asked for of GPUs, and beside them; nil: nothing.
	Asked *StepAsked `json:"asked,omitempty"`
	// Files are where its tasks write; nil: to their srun alone, or it is not known.
	Files *StepFiles `json:"files,omitempty"`
	// Ports are those of each of its nodes that it has for itself, as 12000-12003,12007.
	Ports string `json:"ports,omitempty"`
	// Imported: its job ran in a Slurm cluster.
	Imported *ImportedStep `json:"imported,omitempty"`
}

// StepAsked is what a step asked for of GPUs, and for each task, for lists.
type StepAsked struct {
	PerNode     []GRES `json:"per_node,omitempty"`
	PerJob      []GRES `json:"per_job,omitempty"`
	PerSocket   []GRES `json:"per_socket,omitempty"`
	PerTask     []GRES `json:"per_task,omitempty"`
	GPUBind     string `json:"gpu_bind,omitempty"`
	CPUsPerTask int    `json:"cpus_per_task,omitempty"`
	CPUsPerGPU  int    `json:"cpus_per_gpu,omitempty"`
	MemPerGPU   MemMB  `json:"mem_per_gpu,omitempty"`
}

// askedOf is what a step's record keeps of its request.
func askedOf(s *StepSpec) *StepAsked {
	a := &StepAsked{
		PerNode:     s.PerNode,
		PerJob:      s.PerJob,
		PerSocket:   s.PerSocket,
		PerTask:     s.PerTask,
		GPUBind:     s.GPUBind,
		CPUsPerTask: s.CPUsPerTask,
		CPUsPerGPU:  s.CPUsPerGPU,
	}
	if s.Mem.Per == MemPerGPU {
		a.MemPerGPU = s.Mem.MB
	}
	if reflect.ValueOf(a).Elem().IsZero() {
		return nil
	}
	return a
}

// NewStep is the record of a step that begins: what it asked for, and what it got.
func NewStep(j *Job, number int, s *StepSpec, shares []Share, now time.Time) Step {
	r := Step{
		ID:           StepID{Job: j.ID, Step: number},
		Attempt:      j.Attempt,
		Name:         s.Name,
		User:         j.Spec.User,
		UID:          j.Spec.UID,
		Shares:       shares,
		Distribution: s.Distribution,
		SubmitLine:   s.SubmitLine,
		CPUFreq:      cmp.Or(s.CPUFreq, j.Spec.CPUFreq),
		SrunHost:     s.SrunHost,
		SrunPID:      s.SrunPID,
		Started:      now,
		Limit:        s.Limit,
		Asked:        askedOf(s),
		Files:        filesOf(s),
	}
	for _, sh := range shares {
		r.Tasks += sh.Tasks
	}
	return r
}

// Usage is what a step consumed.
type Usage struct {
	UserCPU   time.Duration `json:"user_cpu,omitempty"`
	SystemCPU time.Duration `json:"system_cpu,omitempty"`
	MaxRSS    int64         `json:"max_rss,omitempty"` // bytes
	// In and Out are what was measured of its tasks: what they took in and gave out.
	In  []Measure `json:"in,omitempty"`
	Out []Measure `json:"out,omitempty"`
}

// Brief makes c, which has a Spec to fill, a copy with what the usual lists show: who, where, how
// large, in which state and why.
func (j *Job) Brief(c *Job) {
	s := j.Spec
	spec := c.Spec
	*c = *j
	c.Spec = spec
	*spec = JobSpec{
		Layout:     s.Layout,
		Kind:       s.Kind,
		Name:       s.Name,
		UID:        s.UID,
		User:       s.User,
		Account:    s.Account,
		QOS:        s.QOS,
		Partitions: s.Partitions,
		Limit:      s.Limit,
		Array:      s.Array,
		Sharing:    s.Sharing,
		Timing:     Timing{Begin: s.Begin},
	}
	c.Key = ""
	c.Signals = nil
	c.LastEval = time.Time{}
	c.PlannedNodes = nil
	if j.Wait != WaitBegin {
		c.Eligible = time.Time{}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sooner is the earlier of two times that are not zero.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (j *Job) holds() bool {
	return j.Phase >= Starting && j.Phase <= Ending
}

// HoldsCPUs reports whether a job that holds nodes also holds its CPUs there: one that was suspended does not.
func (j *Job) HoldsCPUs() bool {
	return j.SuspendedAt.IsZero() || j.AwaitsTurn()
}

// HeldShares lists the shares that are still the job's: where it ends, those on nodes that are not clean, and what
// it has given back on such nodes.
func (j *Job) HeldShares() []Share {
	shares := j.Alloc.Shares
	if j.Phase != Ending || j.Alloc.Keeps {
		shares = j.Alloc.Parts()
	} else if len(j.Waiting) < len(shares) {
		shares = slices.DeleteFunc(slices.Clone(shares),
			func(sh Share) bool { return !slices.Contains(j.Waiting, sh.Node) })
	}
	return append(slices.Clip(shares), j.Leaving()...)
}

// Leaving lists the shares that the job has given back on nodes that are not clean of it.
func (j *Job) Leaving() []Share {
	if j.Shrunk == nil {
		return nil
	}
	return j.Shrunk.Leaving
}

// move changes a job's phase along the table of edges.
func (t *tx) move(j *Job, to Phase) error {
	if !slices.Contains(edges[j.Phase], to) {
		return fmt.Errorf("job %d cannot go from phase %d to %d", j.ID, j.Phase, to)
	}
	j.Phase = to
	return nil
}

// Begun is from when on the job's time counts: it loses none by waiting for its nodes.
func (j *Job) Begun() time.Time {
	if j.Prelude != nil {
		return later(j.Started, j.Prelude.Over)
	}
	return j.Started
}

// EndLimit is when the job's time limit runs out, zero if it has none or has not started.
func (j *Job) EndLimit(c *Config) time.Time {
	if j.Started.IsZero() || j.Limit == 0 || j.Limit == Unlimited {
		return time.Time{}
	}
	all := j.Limit + j.SuspendTotal + c.overTime(j)
	if all < j.Limit {
		return time.Time{} // longer than a duration can tell
	}
	return j.Begun().Add(all)
}

// overTime is how long a job may run on after its time limit.
func (c *Config) overTime(j *Job) time.Duration {
	if j.Alloc == nil {
		return c.OverTimeLimit
	}
	for i := range c.Partitions {
		if p := &c.Partitions[i]; p.OverTimeLimit != nil && p.Name == j.Alloc.Partition {
			return *p.OverTimeLimit
		}
	}
	return c.OverTimeLimit
}

// deadline is when the clock ends the job for its deadline, zero if it has none: while it waits, as soon as it
// cannot end in time any more, even with its shortest time limit.
func (j *Job) deadline() time.Time {
	at := j.Spec.Deadline
	if j.Phase != Pending || at.IsZero() {
		return at
	}
	if need := cmp.Or(j.Spec.LimitMin, j.Spec.Limit); need != 0 && need != Unlimited {
		return at.Add(time.Second - need)
	}
	return at
}

// AllocNodes lists the nodes of the allocation in order.
func (j *Job) AllocNodes() []NodeName {
	if j.Alloc == nil {
		return nil
	}
	names := make([]NodeName, len(j.Alloc.Shares))
	for i, sh := range j.Alloc.Shares {
		names[i] = sh.Node
	}
	return names
}

// Share finds what the job has on a node.
func (j *Job) Share(n NodeName) (Share, bool) {
	if j.Alloc != nil {
		for _, sh := range j.Alloc.Shares {
			if sh.Node == n {
				return sh, true
			}
		}
	}
	return Share{}, false
}
