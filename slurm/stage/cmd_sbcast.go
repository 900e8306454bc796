package stage

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cast"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// options are what the lines of sbcast and sgather ask for.
type options struct {
	sys      *front.Sys
	exclude  string
	force    bool
	keep     bool
	preserve bool
	tree     bool // folders too
	libs     bool
	block    int
	timeout  time.Duration
	verbose  int
	target   string // -j
}

type option = opt.Option[options]

// both are the programs whose options these are.
const both = opt.Sbcast | opt.Sgather

// whole is why files are not compressed, and not sent from node to node.
const (
	asTheyAre = "files are sent as they are"
	ownStream = "each node has a stream of its own"
)

// SbcastOptions are the options of sbcast, SgatherOptions those of sgather.
var SbcastOptions = []option{
	{Long: "compress", Short: 'C', Arg: opt.Optional, On: both, Env: "COMPRESS", Meta: "lib",
		Ignored: asTheyAre},
	{Long: "exclude", Arg: opt.Required, On: opt.Sbcast, Env: "EXCLUDE", Meta: "path_list",
		Help: "shared object paths to be excluded",
		Set:  func(o *options, v string) error { o.exclude = v; return nil }},
	{Long: "force", Short: 'f', On: both, Env: "FORCE", Help: "replace destination file as required",
		Set: func(o *options, _ string) error { o.force = true; return nil }},
	{Long: "fanout", Short: 'F', Arg: opt.Required, On: both, Env: "FANOUT", Meta: "num",
		Ignored: ownStream},
	{Long: "treewidth", Arg: opt.Required, On: opt.Sbcast, Newer: true, Meta: "num", Ignored: ownStream},
	{Long: "jobid", Short: 'j', Arg: opt.Required, On: both, Meta: "#[+#][.#]",
		Help: "specify job ID with optional hetjob offset and/or step ID",
		Set:  func(o *options, v string) error { o.target = v; return nil }},
	{Long: "keep", Short: 'k', On: opt.Sgather, Help: "do not remove the source file after transmission",
		Set: func(o *options, _ string) error { o.keep = true; return nil }},
	{Long: "no-allocation", On: opt.Sbcast, Newer: true, Help: "not supported: files go to the nodes of a job",
		Set: refuseFree("no-allocation")},
	{Long: "nodelist", Arg: opt.Required, On: opt.Sbcast, Newer: true, Meta: "nodes",
		Help: "not supported: files go to all nodes of the job or step", Set: refuseFree("nodelist")},
	{Long: "preserve", Short: 'p', On: both, Env: "PRESERVE", Help: "preserve modes and times of source file",
		Set: func(o *options, _ string) error { o.preserve = true; return nil }},
	{Long: "recursive", Short: 'r', On: opt.Sgather, Help: "copy directories recursively",
		Set: func(o *options, _ string) error { o.tree = true; return nil }},
	{Long: "send-libs", Arg: opt.Optional, On: opt.Sbcast, Env: "SEND_LIBS", Meta: "yes|no",
		Help: "autodetect and broadcast executable's shared objects", Set: setLibs},
	{Long: "size", Short: 's', Arg: opt.Required, On: opt.Sbcast, Env: "SIZE", Meta: "num",
		Help: "block size in bytes (rounded off)", Set: setSize},
	{Long: "timeout", Short: 't', Arg: opt.Required, On: both, Env: "TIMEOUT", Meta: "secs",
		Help: "specify message timeout (seconds)", Set: func(o *options, v string) error {
			n, _ := strconv.Atoi(v)
			o.timeout = time.Duration(n) * time.Second
			return nil
		}},
	{Long: "verbose", Short: 'v', On: both, Help: "provide detailed event logging",
		Set: func(o *options, _ string) error { o.verbose++; return nil }},
	{Long: "version", Short: 'V', On: both, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", On: both, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: both, Group: opt.HelpGroup, Help: "print a short help"},
}

// SgatherOptions are the options of sgather.
var SgatherOptions = SbcastOptions

// refuseFree refuses to send files to nodes that are not those of a job.
func refuseFree(option string) func(*options, string) error {
	return func(*options, string) error {
		return opt.Errorf(opt.CodeError, "error: --%s is not supported: files go to all nodes of a job or step; "+
			"allocate the nodes, and name the job with -j", option)
	}
}

func setLibs(o *options, v string) error {
	on, known := LibsWord(v)
	if !known {
		o.sys.Say("error: Ignoring unrecognized --send-libs value '%s'", v)
		return nil
	}
	o.libs = on
	return nil
}

// LibsWord reads the word of --send-libs.
func LibsWord(v string) (on, known bool) {
	switch strings.ToLower(v) {
	case "", "yes":
		return true, true
	case "no":
		return false, true
	}
	return false, false
}

// setSize reads a number of bytes, with k or m.
func setSize(o *options, v string) error {
	digits := strings.TrimRight(v, "kKmM")
	n, err := strconv.Atoi(digits)
	shift, known := map[string]int{"": 0, "k": 10, "m": 20}[strings.ToLower(v[len(digits):])]
	if err != nil || n < 0 || !known {
		fmt.Fprintln(o.sys.Stderr, "size specification is invalid, ignored")
		return nil
	}
	o.block = n << shift
	return nil
}

// failed is the exit code of what ends before anything is sent.
const failed = 255

// begin reads a line of sbcast or sgather; a code of 0 or more ends the program.
func begin(s *front.Sys, prog opt.Prog, rows []option, o *options, argv []string) (source, dest string, code int) {
	o.sys = s
	rest, code := front.ParseQuery(s, prog, rows, o, argv)
	if code >= 0 {
		return "", "", code
	}
	if len(rest) != 2 {
		fmt.Fprintf(s.Stderr, "Need two file names, have %d names\nTry \"%s --help\" for more information\n",
			len(rest), s.Prog)
		return "", "", 1
	}
	if o.target == "" {
		o.target = s.Getenv("SLURM_JOB_ID")
	}
	if o.target == "" {
		return "", "", s.Fail("Need a job id to run this command.  " +
			"Run from within a Slurm job or use the --jobid option.")
	}
	return rest[0], rest[1], -1
}

// job opens a step on the nodes of the job that is meant, or of its step.
func (o *options) job() (*Job, int) {
	s := o.sys
	word, number, ofStep := strings.Cut(o.target, ".")
	step, err := strconv.Atoi(number)
	if ofStep && (err != nil || step < 0) {
		s.Say("fatal: Bad step specified: %s", word)
		return nil, 1
	}
	id := jobOf(s, word)
	var on []cluster.NodeName
	if err = nil; ofStep {
		on, err = nodesOf(s, cluster.StepID{Job: id, Step: step})
	}
	var j *Job
	if err == nil {
		j, err = OpenJob(s, id, on)
	}
	if err != nil {
		s.Say("error: Slurm job %s lookup error: %s", o.named(id), whyNot(s, id, err))
		return nil, failed
	}
	j.Block, j.Timeout = o.block, o.timeout
	return j, 0
}

// named is how a job is called that cannot be found.
func (o *options) named(id cluster.JobID) string {
	if id == 0 {
		return "0"
	}
	return o.target
}

// jobOf reads which job is meant: 42, 42_3 or 42+1; 0: none.
func jobOf(s *front.Sys, word string) cluster.JobID {
	t, ok := front.ParseTarget(word)
	if !ok || t.Ref.Tasks.Empty() && t.Ref.Part == 0 {
		return t.Ref.Job
	}
	resp, _ := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{t.Ref}})
	if len(resp.Jobs) != 1 {
		return 0
	}
	return resp.Jobs[0].ID
}

// Slurm's words about jobs that nothing can be sent to.
const (
	unknown = "Invalid job id specified"
	over    = "Job/step already completing or completed"
	pending = "Job is pending execution"
)

// whyNot says why nothing can be sent to a job.
func whyNot(s *front.Sys, id cluster.JobID, err error) string {
	switch {
	case front.IsKind(err, cluster.ErrJobID):
		return phaseText(s, id)
	case front.IsKind(err, cluster.ErrAccess):
		return "Invalid user id"
	case front.IsKind(err, cluster.ErrFinished):
		return over
	}
	text, _ := front.ErrorText(err)
	return text
}

// phaseText says why a job has no nodes.
func phaseText(s *front.Sys, id cluster.JobID) string {
	resp, _ := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}})
	if len(resp.Jobs) != 1 {
		return unknown
	}
	switch resp.Jobs[0].Phase {
	case cluster.Pending:
		return pending
	case cluster.Ending, cluster.Ended:
		return over
	}
	return unknown
}

// nodesOf are the nodes of a step.
func nodesOf(s *front.Sys, id cluster.StepID) (on []cluster.NodeName, err error) {
	resp, err := front.Call(s, api.ListSteps, api.StepQuery{Job: id.Job})
	for _, st := range resp.Steps {
		if st.ID == id {
			for _, sh := range st.Shares {
				on = append(on, sh.Node)
			}
		}
	}
	if err == nil && on == nil {
		err = cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "no such step")
	}
	return on, err
}

// Sbcast puts a file on all nodes of a job.
func Sbcast(s *front.Sys, argv []string) int {
	var o options
	source, dest, code := begin(s, opt.Sbcast, SbcastOptions, &o, argv)
	if code >= 0 {
		return code
	}
	if strings.HasSuffix(dest, "/") {
		return s.Fail("Target filename cannot be a directory.")
	}
	full, err := absolute(s, dest)
	if err != nil {
		return s.Fail("%v", err)
	}
	if o.verbose > 0 {
		o.tell(source, dest)
	}
	f, fi, code := openSource(s, source)
	if code != 0 {
		return code
	}
	defer f.Close()
	var libs []string
	if o.libs {
		libs, o.libs = Libraries(s, source, o.exclude)
	}
	j, code := o.job()
	if code != 0 {
		return code
	}
	defer j.Close()
	err = j.Put(&cast.Order{Put: full, Force: o.force, Times: o.preserve, About: About(fi)}, f)
	if err == nil && o.libs {
		err = j.PutLibraries(full, libs)
	}
	return said(s, err)
}

// said tells why files did not reach their nodes, and returns the exit code.
func said(s *front.Sys, err error) int {
	var all Failures
	switch {
	case err == nil:
		return 0
	case errors.As(err, &all):
		all.Say(s, Call)
		return all.Code()
	}
	s.Say("error: %s", front.PlainError(err))
	return failed
}

// Call is what Slurm names in the errors of nodes.
const Call = "REQUEST_FILE_BCAST"

// absolute is a path seen from where the program was called.
func absolute(s *front.Sys, name string) (string, error) {
	if path.IsAbs(name) {
		return name, nil
	}
	dir, err := s.Getwd()
	return path.Join(dir, name), err
}

// openSource opens the file that is to be sent.
func openSource(s *front.Sys, name string) (*os.File, os.FileInfo, int) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		s.Say("error: Can't open `%s`: %s", name, front.PlainError(err))
		return nil, nil, failed
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
		s.Say("error: Can't stat `%s`: %s", name, front.PlainError(err))
	case fi.Mode().IsRegular() || fi.Mode()&os.ModeDevice != 0 && fi.Size() == 0:
		if fi.Size() == 0 {
			s.Say("error: Warning: file `%s` is empty.", name)
		}
		return f, fi, 0
	default:
		s.Say("error: Can't mmap file `%s`, %s.", name, front.PlainError(syscall.ENODEV))
	}
	f.Close()
	return nil, nil, failed
}

// tell says what is asked for.
func (o *options) tell(source, dest string) {
	const line = "-----------------------------"
	s := o.sys
	exclude := o.exclude
	if exclude == "" {
		exclude = noLibs
	}
	s.Say(line)
	s.Say("block_size = %d", cmp.Or(o.block, blockSize))
	s.Say("compress   = 0")
	s.Say("exclude    = %s", exclude)
	s.Say("force      = %t", o.force)
	s.Say("fanout     = 0")
	s.Say("preserve   = %t", o.preserve)
	s.Say("send_libs  = %t", o.libs)
	s.Say("timeout    = %d", int(o.timeout.Seconds()))
	s.Say("verbose    = %d", o.verbose)
	s.Say("source     = %s", source)
	s.Say("dest       = %s", dest)
	s.Say(line)
}
