// Package step says what a step's part on one node is (Spec), how it fares (Status), and who runs it (Runner): by
// Remote the supervisor, a process of its own that outlives the daemon (package supervisor), over the messages of
// wire.go; by supervisor.Timers nobody, for nodes without processes.
package step

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/container"
	"dev.muster/api/stream"
	"dev.muster/cluster"
)

// Errors of a Runner.
var (
	ErrUnknown = errors.New("no such step")
	ErrClosed  = errors.New("runner closed")
)

// ID names the part of one step that runs on one node. Step is a step number or
// cluster.BatchStep. Attempt fences a requeued job's earlier runs.
type ID struct {
	Job     cluster.JobID    `json:"job"`
	Attempt int              `json:"attempt"`
	Step    int              `json:"step"`
	Node    cluster.NodeName `json:"node"`
}

// IOKind says where one of a task's standard streams leads.
type IOKind uint8

// The kinds of stream.
const (
	Null   IOKind = iota // /dev/null
	File                 // a file opened as the user
	Stream               // frames over an attached connection (pipes held by the supervisor)
	Same                 // stderr only: the same open file as stdout
)

// IO is where one standard stream of a task leads.
type IO struct {
	Kind   IOKind `json:"kind,omitempty"`
	Path   string `json:"path,omitempty"`   // absolute; missing directories are created as the user
	Append bool   `json:"append,omitempty"` // do not truncate
	Label  string `json:"label,omitempty"`  // of an output file: what stands before each line
}

// Task is one process to start: rank and what differs from the others of the step.
type Task struct {
	Rank   int           `json:"rank"` // global rank
	Argv   []string      `json:"argv"`
	Env    []string      `json:"env,omitempty"` // appended to Spec.Env; later values win
	Stdin  IO            `json:"stdin,omitzero"`
	Stdout IO            `json:"stdout,omitzero"`
	Stderr IO            `json:"stderr,omitzero"`
	CPUs   cluster.IDSet `json:"cpus,omitzero"` // affinity by real CPU number; empty: inherited
	// Memory is where its memory comes from.
	Memory *Memory `json:"memory,omitempty"`
	// Refused says why it does not start; empty: it does.
	Refused string `json:"refused,omitempty"`
	// Greeting is lines of the node's own on the task's standard error, before anything of the
	// task itself; %d in them is the task's process id.
	Greeting string `json:"greeting,omitempty"`
}

// Spec is everything a node must know to run its part of a step.
type Spec struct {
	ID      ID               `json:"id"`
	UID     uint32           `json:"uid"`
	GID     uint32           `json:"gid"`
	Groups  []uint32         `json:"groups,omitempty"`
	Dir     string           `json:"dir"` // missing: run in /tmp and say so on stderr, as Slurm does
	Umask   uint32           `json:"umask"`
	Rlimits []cluster.Rlimit `json:"rlimits,omitempty"`
	Env     cluster.BlobText `json:"env,omitempty"` // NUL-separated NAME=value, shared by all tasks
	Tasks   []Task           `json:"tasks"`
	PTY     *cluster.Winsize `json:"pty,omitempty"`    // the lowest rank gets a terminal
	Script  cluster.BlobText `json:"script,omitempty"` // written to ScriptPath, mode 0500, owned by the user
	// ScriptPath is where Script goes; argv[0] of a batch task is this path.
	ScriptPath string `json:"script_path,omitempty"`
	// HostName, when set, is what gethostname answers inside (hollow nodes); the names in Hosts
	// resolve to 127.0.0.1 there. Needs root; without it the real name stays.
	HostName string             `json:"host_name,omitempty"`
	Hosts    []cluster.NodeName `json:"hosts,omitempty"`
	// PIDEnv names an environment variable that shall hold the task's own process id.
	PIDEnv string `json:"pid_env,omitempty"`
	// Fence is what the job's processes may use.
	Fence cgroup.Fence `json:"fence,omitzero"`
	// Server is a process that serves the tasks; nil: none. They start once it is ready.
	Server *Server `json:"server,omitempty"`
	// Private are folders that the job has for itself; nil: none. Needs root.
	Private *Private `json:"private,omitempty"`
	// Container is what the tasks run in; nil: the node itself. Needs root.
	Container *container.Spec `json:"container,omitempty"`
	// NoNewPrivs has the tasks gain no rights by what they execute.
	NoNewPrivs bool `json:"no_new_privs,omitempty"`
	// OOMText is a line for the step's standard error if processes were killed because the job's memory was used up; %d
	// in it is how many.
	OOMText string `json:"oom_text,omitempty"`
	// Own says that the daemon has made all of it, and nothing of it was asked for by a user or another node. No number
	// of a step says so.
	Own bool `json:"own,omitempty"`
	// Note is the caller's own record of the step. It comes back in Status, so that a daemon
	// that was restarted knows its steps again.
	Note []byte `json:"note,omitempty"`
}

// Bye is what a client of a step's stream sends last once it has all of it.
var Bye = stream.AppendFrame(nil, stream.Frame{Kind: stream.Bye})

// State is where a step's part on this node stands.
type State uint8

// The states.
const (
	Starting State = iota
	Running
	Ended // every process is gone; exit statuses are final
)

// TaskStatus is one task's end, or its life so far.
type TaskStatus struct {
	Rank    int                `json:"rank"`
	PID     int                `json:"pid,omitempty"`
	Started time.Time          `json:"started,omitzero"`
	Ended   time.Time          `json:"ended,omitzero"`
	Exit    cluster.ExitStatus `json:"exit,omitzero"`
	Core    bool               `json:"core,omitempty"`  // dumped core
	OOM     bool               `json:"oom,omitempty"`   // the job's memory was used up: the kernel killed processes
	Error   string             `json:"error,omitempty"` // could not be started: what failed
	Errno   int                `json:"errno,omitempty"`
	Fault   bool               `json:"fault,omitempty"` // that it could not be started is this node's fault
	// Lost: the supervisor itself was replaced by force and the kernel could not tell the exit code.
	Lost  bool              `json:"lost,omitempty"`
	Usage cluster.TaskUsage `json:"usage,omitzero"`
}

// Status is what the supervisor knows of a step.
type Status struct {
	ID     ID            `json:"id"`
	State  State         `json:"state"`
	Frozen bool          `json:"frozen,omitempty"`
	Tasks  []TaskStatus  `json:"tasks"`
	Usage  cluster.Usage `json:"usage,omitzero"`
	Note   []byte        `json:"note,omitempty"`
	// OOMKills is how many of its processes the kernel killed because the job's memory was used up. Known with the end.
	OOMKills int `json:"oom_kills,omitempty"`
}

// Scope says which processes of a step a signal is for.
type Scope uint8

// The scopes.
const (
	Leaders Scope = 0 // the tasks' own processes
	All     Scope = 2 // every process of the step
	Script  Scope = 3 // as All, but for the sruns of a script, whose tasks have the signal already
)

// Runner runs steps on this machine. Start is idempotent by ID. All methods may be called
// from any goroutine. Implementations: Remote (the supervisor process), Timers (hollow
// nodes without execution: a step is a duration), and fakes in tests.
type Runner interface {
	// Start begins a step. It returns once the supervisor holds the Spec; whether the
	// processes could be started is told by Changes.
	Start(specs ...Spec) error
	// Signal sends sig; SIGKILL with scope All uses the kernel's kill of the whole cgroup.
	Signal(id ID, sig syscall.Signal, scope Scope) error
	// Freeze stops (or continues) every process of the step without their knowing.
	Freeze(id ID, stop bool) error
	// SetNote replaces the caller's own record of a step, Spec.Note.
	SetNote(id ID, note []byte) error
	// Say writes a line of the node's own to the standard error of the step's first task; ends: that tells of the
	// step's end.
	Say(id ID, text string, ends bool) error
	// Instance names what holds the steps: as long as it is the same, no step was lost. "" if unknown.
	Instance() string
	// List tells of every step not yet forgotten.
	List() ([]Status, error)
	// Changes delivers a Status whenever one changed; it is closed with the Runner.
	Changes() <-chan Status
	// Forget drops an ended step after its status was taken; unknown ids are no error.
	Forget(ids ...ID) error
	// Adopt puts a process that others have started, and so what it starts from then on, into a step.
	Adopt(id ID, pid int) error
	// Release lets go of what a job's steps had in common, once the job is over on its node: of id, job, attempt
	// and node count.
	Release(id ID) error
	// SetMemory limits what a job's processes may use, of id, job, attempt and node count; 0 MB forgets it. Processes
	// that use more are killed.
	SetMemory(id ID, mb cluster.MemMB) error
	// Attach opens the step's stream connection (see DESIGN.md of this package).
	Attach(id ID) (net.Conn, error)
}

// Group is the step's cgroup below that of its supervisor: JOB/STEP.
func (id ID) Group() string {
	job, name := id.GroupPath()
	return job + "/" + name
}

// GroupPath names the groups of a step's job and, below it, of the step.
func (id ID) GroupPath() (job, name string) {
	node := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' {
			return '_'
		}
		return r
	}, string(id.Node))
	job = fmt.Sprintf("job_%d.%d@%s", id.Job, id.Attempt, node)
	switch id.Step {
	case cluster.BatchStep:
		return job, "step_batch"
	case cluster.ExternStep:
		return job, "step_extern"
	case cluster.InteractiveStep:
		return job, "step_interactive"
	}
	return job, "step_" + strconv.Itoa(id.Step)
}

// Server is a process of the step's user that serves the tasks of a node: the process manager of an
// MPI library. Package pmi says what it finds at which descriptor. It starts before the tasks and
// ends with the step.
type Server struct {
	Argv  []string `json:"argv"`
	Env   []string `json:"env,omitempty"`
	Setup []byte   `json:"setup,omitempty"` // of pmi.Setup; dropped after the launch
	Tasks bool     `json:"tasks,omitempty"` // each task has a socket to it
	// Wait is how long the tasks wait until it is ready; 0: for readyTime.
	Wait time.Duration `json:"wait,omitempty"`
	// Dir is a folder of the user's that is there as long as the step is; empty: none.
	Dir string `json:"dir,omitempty"`
}

// ErrorsTo is where a task's standard error leads.
func (t *Task) ErrorsTo() IO {
	if t.Stderr.Kind == Same {
		return t.Stdout
	}
	return t.Stderr
}

// ExecFailed is what the error of a task starts with whose program could not be run.
const ExecFailed = "execve(): "

// NotRun reports whether the task's program could not be run; Errno says why.
func (t *TaskStatus) NotRun() bool {
	return t.Errno != 0 && strings.HasPrefix(t.Error, ExecFailed)
}
