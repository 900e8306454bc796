// Package submit is what a command line, a script and the environment ask sbatch, srun and salloc for, and sbatch;
// the other two are in package launch. Options are tables of rows (options_*.go) that set fields of a Request (setters.go), which is completed
// when all are read (finish.go). It knows neither what shows jobs nor what changes them. Begin with request.go; then
// cmd_sbatch.go.
package submit

import (
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/pmi"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// Source is where an option came from; a higher one wins.
type Source uint8

// The sources of options, weakest first.
const (
	NotGiven Source = iota
	FromDirective
	FromEnv
	FromLine
)

// Given records one option that was given.
type Given struct {
	Long  string
	Value string
	From  Source
}

// Request is what a command line, its environment and its script ask for. For srun and
// salloc, Job is what to allocate if there is no allocation yet; Step is srun's step.
type Request struct {
	Job    cluster.JobSpec
	Step   cluster.StepSpec
	Client ClientOptions
	Set    []Given // in the order they took effect
	Script []byte  // the batch script
	Argv   []string
	Notes  []string // to be said on stderr, without the program's name; -Q silences them
	// Parts are the other components of a heterogeneous job, or of a step of several of them; Group is the number
	// of the component in its allocation.
	Parts []*Request
	Group int

	sys   *front.Sys
	prog  opt.Prog
	from  Source // of the option being set
	given bool   // the option being set has an argument
	named bool   // a name was given, if an empty one
	// memFrom is where --mem, --mem-per-cpu and --mem-per-gpu came from, by cluster.MemPer.
	memFrom      [4]Source
	gres         []cluster.GRES     // --gres
	gpusPerNode  []cluster.GRES     // --gpus-per-node
	noGPUs       bool               // srun's line asks for none, as in --gres=none
	exportFile   []byte             // what --export-file names
	hosts        []cluster.NodeName // -w, -F or SLURM_HOSTFILE with repetitions, for -m arbitrary
	addedShebang bool               // the first line of Script is not the user's
	inside       cluster.Container  // --container-*
	bundle       string             // --container
	verbose      int                // how many -v
	OutOfMemory  bool               // a task of srun's step was killed for want of memory
	Bcast        Bcast              // --bcast
	line         []string           // the words of the command
	typed        []byte             // the script, if it came by the input
	site         *siteOptions       // what the site's script has set; nil: it was not asked
	Way          ways               // how its programs are run
}

// ways are options about how programs are run, and what for.
type ways struct {
	X11         string // where --x11 wants a display
	Prefetch    bool   // --container-prefetch
	Async       bool   // --async
	Spawned     bool   // by MPI_Comm_spawn
	OOMKillStep bool   // a task that is killed for want of memory ends its step
	Ignore      []int  // --ignore-signals
	launcher    bool   // --external-launcher
}

// ClientOptions are the options that the front-end acts on itself.
type ClientOptions struct {
	Quiet          int
	Parsable       bool
	Wait           bool // sbatch -W
	TestOnly       bool
	IgnorePBS      bool
	UID, GID       *uint32 // --uid, --gid
	Export         string  // --export as written
	ExportGiven    bool
	ExportFile     string
	Chdir          string
	JobID          uint32 // srun --jobid
	PTY            bool
	Label          bool
	Unbuffered     bool
	MultiProg      bool
	Prolog, Epilog string // of srun, on its own host
	OpenMode       byte   // 'a', 't' or 0
	Input          string
	Output         string
	Error          string
	Immediate      *time.Duration // nil: not given; 0: at once
	NoShell        bool
	KillCommand    int // signal of salloc -K; 0: not given
	Bell           *bool
	Propagate      string
	PreserveEnv    bool
	QuitOnInt      bool
	DisableStatus  bool
	NoAllocate     bool
	MPI            string
	Interactive    bool
	Whole          bool
	WaitSeconds    *int // srun -W
}

// From says where an option was given last, by its long name.
func (r *Request) From(long string) Source {
	for i := len(r.Set) - 1; i >= 0; i-- {
		if r.Set[i].Long == long {
			return r.Set[i].From
		}
	}
	return NotGiven
}

// apply sets options that came from one source.
func (r *Request) apply(found []opt.Found[Request], from Source) error {
	for _, f := range found {
		if from == FromDirective && f.Row.Group == opt.HelpGroup {
			continue // 22.05 does not answer --help in a script
		}
		r.from, r.given = from, f.Given
		if f.Row.Ignored != "" && from != FromEnv {
			r.note("option --" + f.Row.Long + " has no effect: " + f.Row.Ignored)
		}
		if f.Row.Set != nil {
			if err := f.Row.Set(r, f.Value); err != nil {
				return r.word(f.Row.Long, f.Value, err)
			}
		}
		r.Set = append(r.Set, Given{Long: f.Row.Long, Value: f.Value, From: from})
	}
	return nil
}

// word makes err printable.
func (r *Request) word(long, value string, err error) error {
	if reason, ok := err.(opt.Refused); ok {
		return opt.Refuse(r.prog, r.Client.TestOnly, string(reason))
	}
	return opt.Named(r.prog, long, value, err)
}

// note remembers a remark about muster, once.
func (r *Request) note(text string) { r.warn("note: " + text) }

// noteFreq says that a frequency is recorded and shown, but not set; of one from the environment nothing is said.
func noteFreq(r *Request, option string) {
	if r.from != FromEnv {
		r.note("option --" + option + " has no effect yet: muster leaves the clocks as they are")
	}
}

// warn remembers a line for stderr, once.
func (r *Request) warn(text string) {
	for _, n := range r.Notes {
		if n == text {
			return
		}
	}
	r.Notes = append(r.Notes, text)
}

// fatal is a conflict that Slurm calls fatal.
func (r *Request) fatal(text string) error {
	return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError, "fatal: %s", text))
}

// mpiList answers --mpi=list in the words of Slurm's, which scripts search: what there is on this machine.
func mpiList() string {
	list := "MPI plugin types are...\n\tnone\n\tpmi2"
	if pmi.HasPMIx() {
		list += "\n\tpmix"
	}
	return list
}

// checkMPI answers --mpi=list and refuses names that Slurm does not know either.
func (r *Request) checkMPI() error {
	name := r.Client.MPI
	if name == "list" {
		return values.Answer(0, mpiList())
	}
	if cluster.ManagerOf(name) == cluster.ManagerUnknown {
		return opt.Named(r.prog, "", "", &opt.UsageError{Code: opt.CodeError, Lines: []string{
			"error: Couldn't find the specified plugin name for mpi/" + name + " looking at all files",
			"error: cannot find mpi plugin for mpi/" + name, "error: MPI: Cannot create context for mpi/" + name,
			"error: MPI: Unable to load any plugin",
			"error: Invalid MPI type '" + name + "', --mpi=list for acceptable types"}})
	}
	r.Step.MPI = name
	return nil
}

// Cannot refuses an option that changes what a program does and cannot be done yet: with what would happen, and
// the way out.
func (r *Request) Cannot(option, otherwise, wayOut string) error {
	return opt.Named(r.prog, "", "", &opt.UsageError{Code: opt.CodeError, Lines: []string{
		"error: " + option + " cannot be done yet: " + otherwise, "error: the way out: " + wayOut}})
}

// maxSubmitLine bounds the record of a command line, in bytes: what is beyond it is not kept.
const maxSubmitLine = 60 << 10

func keptLine(line string) string {
	if len(line) <= maxSubmitLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxSubmitLine], "") + "..."
}

// siteOptions are what the script has set.
type siteOptions struct {
	cli              front.SiteScript
	hash             cluster.BlobHash
	defaults, forced []front.SiteOption
}
