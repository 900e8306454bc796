package submit

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// finish checks what single options cannot see and fills in what was not said.
func (r *Request) finish() error {
	if err := r.hostFile(); err != nil {
		return err
	}
	if r.prog == opt.Srun {
		r.lineFirst()
	}
	r.namedNodes()
	r.tasksOfMake()
	if err := r.checkConflicts(); err != nil {
		return err
	}
	r.nearerSpec()
	r.tasksOfGPUs()
	if err := r.hinted(); err != nil {
		return err
	}
	if err := checkNodes(r); err != nil {
		return err
	}
	if r.prog == opt.Srun {
		r.checkPerNode()
	}
	r.mergePerNode()
	for _, check := range [...]func(*Request) error{
		checkCounts, addSpares, (*Request).places, contain, (*Request).checkDeadline, checkNamed,
	} {
		if err := check(r); err != nil {
			return err
		}
	}
	if r.Client.ExportGiven && !strings.EqualFold(r.Client.Export, "ALL") { // a plain ALL leaves no trace
		r.Job.Export = r.Client.Export
	}
	r.mailDefaults()
	r.rlimits()
	return notQuiet(r)
}

// checkNamed refuses accounts and QOS whose name is none.
func checkNamed(r *Request) error {
	for _, o := range [...]struct{ option, value, text string }{
		{"account", r.Job.Account, "Invalid account or account/partition combination specified"},
		{"qos", r.Job.QOS, "Invalid qos specification"},
	} {
		if o.value == "" && r.From(o.option) != NotGiven {
			return opt.Refuse(r.prog, r.Client.TestOnly, o.text)
		}
	}
	return nil
}

// checkNodes refuses numbers of nodes that cannot be, and takes no more nodes than there are tasks.
func checkNodes(r *Request) error {
	j := &r.Job
	if r.From("nodes") != NotGiven && j.MinNodes == 0 && (r.prog != opt.Sbatch || j.MaxNodes == 0) {
		return opt.Refuse(r.prog, r.Client.TestOnly, "Node count specification invalid")
	}
	if named := len(j.Wanted()); r.prog != opt.Srun && j.MaxNodes > 0 && named > j.MaxNodes {
		return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError,
			"error: invalid number of nodes (-N %d-%d)", max(named, j.MinNodes), j.MaxNodes))
	}
	if j.Tasks > 0 && j.MinNodes > j.Tasks && r.From("ntasks") >= r.From("nodes") {
		r.warn(fmt.Sprintf("Warning: can't run %d processes on %d nodes, setting nnodes to %[1]d", j.Tasks, j.MinNodes))
		j.MinNodes = j.Tasks
		j.MaxNodes = max(j.MinNodes, min(j.MaxNodes, j.Tasks))
	}
	return nil
}

// checkCounts refuses counts of generic resources below nothing.
func checkCounts(r *Request) error {
	if slices.ContainsFunc(r.Job.PerNode, func(g cluster.GRES) bool { return g.Count < 0 }) {
		return opt.Refuse(r.prog, r.Client.TestOnly, "Invalid generic resource (gres) specification")
	}
	return nil
}

// checkPerNode leaves --ntasks-per-node out where as many tasks as are asked for do not come to that many on each
// node; what the job's environment says of it only where they are more.
func (r *Request) checkPerNode() {
	j := &r.Job
	if j.TasksPerNode == 0 || j.MinNodes == 0 || j.Tasks <= j.MinNodes {
		return
	}
	each := j.Tasks / j.MinNodes
	more, said := each > j.TasksPerNode, r.From("ntasks-per-node") == FromLine
	if !more && (each == j.TasksPerNode || !said) {
		return
	}
	r.warn(fmt.Sprintf("Warning: can't honor --ntasks-per-node set to %d which doesn't match the requested tasks %d "+
		"with the number of requested nodes %d. Ignoring --ntasks-per-node.", j.TasksPerNode, j.Tasks, j.MinNodes))
	j.TasksPerNode = 0
}

// nearerSpec leaves of --core-spec and --thread-spec, of which a job has one, that of the nearer source.
func (r *Request) nearerSpec() {
	j := &r.Job
	switch {
	case j.CoreSpec == nil || j.ThreadSpec == nil:
	case r.From("core-spec") > r.From("thread-spec"):
		j.ThreadSpec = nil
	default:
		j.CoreSpec = nil
	}
}

// checkDeadline refuses a deadline before the job may begin. A job that names no limit of its own has what is left
// until its deadline, a minute at least.
func (r *Request) checkDeadline() error {
	j := &r.Job
	if j.Deadline.IsZero() {
		return nil
	}
	if j.Begin.After(j.Deadline) {
		return opt.Named(r.prog, "", "",
			opt.Errorf(opt.CodeError, "error: Incompatible begin and deadline time specification"))
	}
	if j.Limit == 0 && j.LimitMin == 0 {
		j.LimitMin = time.Minute
	}
	return nil
}

// namedNodes makes a task for each line of a host file with -m arbitrary, and otherwise has srun leave out what -w
// names beyond the largest number of nodes.
func (r *Request) namedNodes() {
	j := &r.Job
	named := len(j.Wanted())
	switch {
	case strings.HasPrefix(strings.ToLower(j.Distribution), "arbitrary"):
		if j.Tasks == 0 {
			j.Tasks = len(r.hosts)
		}
	case r.prog == opt.Srun && j.MaxNodes > 0 && named > j.MaxNodes:
		r.warn(fmt.Sprintf("error: Required nodelist includes more nodes than permitted by max-node count (%d > %d). "+
			"Eliminating nodes from the nodelist.", named, j.MaxNodes))
		j.NodeList = j.NodeList[:j.MaxNodes]
	}
}

// tasksOfMake makes a task for each thread, or core or socket, that -B names, on each node, unless the tasks are
// counted; for srun only where all three are named.
func (r *Request) tasksOfMake() {
	j := &r.Job
	named := r.prog != opt.Srun || min(j.SocketsPerNode, j.CoresPerSocket, j.ThreadsPerCore) > 0
	if named && r.From("extra-node-info") != NotGiven && j.Tasks == 0 && j.TasksPerNode == 0 {
		j.Tasks = max(j.MinNodes, len(j.Wanted()), 1) * max(j.SocketsPerNode, 1) * max(j.CoresPerSocket, 1) * max(j.ThreadsPerCore, 1)
	}
}

// hinted asks of cores what --hint stands for, unless options say it in detail: then it counts for nothing, as in
// Slurm.
func (r *Request) hinted() error {
	j := &r.Job
	if j.ThreadsPerCore > 0 || j.TasksPerCore > 0 {
		j.Hint = ""
		return nil
	}
	if r.From("hint") == NotGiven {
		return nil
	}
	if err := values.CheckHint(j.Hint); err != nil {
		return opt.Named(r.prog, "hint", j.Hint, err)
	}
	for word := range strings.SplitSeq(strings.ToLower(j.Hint), ",") {
		switch word {
		case "memory_bound":
			j.CoresPerSocket, j.ThreadsPerCore = max(j.CoresPerSocket, 1), 1
		case "compute_bound", "nomultithread":
			j.ThreadsPerCore = 1
		}
	}
	return nil
}

// hostFile takes nodes and layout from the file that SLURM_HOSTFILE names: a node for each task.
func (r *Request) hostFile() error {
	j, name := &r.Job, r.sys.Getenv("SLURM_HOSTFILE")
	if name == "" || len(j.NodeList) > 0 {
		return nil
	}
	fail := func(text string) error {
		return opt.Named(r.prog, "", "", &opt.UsageError{
			Code:  opt.CodeError,
			Lines: []string{"error: " + text, "error: Failure getting NodeNames from hostfile"},
		})
	}
	var list, all []cluster.NodeName
	if err := readHostFile(r.sys, name, &list, &all); err != nil {
		if !strings.Contains(name, "/") {
			name = "./" + name
		}
		_, serr := os.Stat(name)
		if serr == nil {
			return fail("Hostlist is empty!")
		}
		return fail("slurm_allocate_resources error opening file " + name + ", " + front.PlainError(serr))
	}
	if len(all) < j.Tasks {
		return fail("Too few NodeNames in Slurm Hostfile")
	}
	if j.Tasks == 0 {
		j.Tasks = len(all)
	}
	all = all[:j.Tasks]
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = string(n)
	}
	j.NodeList, r.hosts, j.Distribution, j.PlaneSize = front.NodeNames(names), all, "arbitrary", 0
	return nil
}

// places fills in directory, files, host and user.
func (r *Request) places() error {
	j := &r.Job
	cwd, err := r.sys.Getwd()
	if err != nil {
		cwd = "/tmp"
	}
	if j.WorkDir = r.Client.Chdir; j.WorkDir == "" {
		j.WorkDir = cwd
	} else if !path.IsAbs(j.WorkDir) {
		j.WorkDir = path.Join(cwd, j.WorkDir)
	}
	if r.prog == opt.Salloc && r.Client.Chdir != "" {
		if _, err := os.Stat(j.WorkDir); err != nil {
			return opt.Errorf(opt.CodeError, "salloc: error: chdir(%s): %s", r.Client.Chdir, front.PlainError(err))
		}
	}
	j.Stdin = r.fileName(r.Client.Input)
	j.Stdout = r.fileName(r.Client.Output)
	j.Stderr = r.fileName(r.Client.Error)
	j.Append, j.Truncate = r.Client.OpenMode == 'a', r.Client.OpenMode == 't'
	j.Umask = r.sys.Umask
	j.AllocSid = r.sys.Sid
	if r.sys.Hostname != nil {
		j.SubmitHost, _ = r.sys.Hostname()
	}
	if j.Name == "" && !r.named {
		j.Name = r.defaultName()
	}
	return nil
}

// fileName is the file that a word for a stream means: a batch job's "none" is nothing, and ~/ is where the user lives.
func (r *Request) fileName(word string) string {
	if r.prog == opt.Sbatch && strings.EqualFold(word, "none") {
		return os.DevNull
	}
	home := r.sys.Getenv("HOME")
	if rest, of := strings.CutPrefix(word, "~/"); of && path.IsAbs(home) {
		return path.Join(home, rest)
	}
	return word
}

// defaultName is what a job is called without --job-name; sbatch knows its script's.
func (r *Request) defaultName() string {
	switch {
	case r.prog == opt.Salloc && r.Client.NoShell:
		return "no-shell"
	case r.prog == opt.Salloc:
		return "interactive"
	case r.prog == opt.Srun && len(r.Argv) > 0:
		return path.Base(r.Argv[0])
	}
	return "sbatch"
}

// mailDefaults makes the submitting user the one who is sent mail.
func (r *Request) mailDefaults() {
	r.Job.User = r.sys.NameOf(r.Job.UID)
	if len(r.Job.MailType) > 0 && r.Job.MailUser == "" {
		r.Job.MailUser = r.Job.User
	}
}

// rlimits keeps the limits that --propagate names; all of them without it.
func (r *Request) rlimits() {
	if r.sys.Rlimits == nil || r.Client.Propagate == "NONE" {
		return
	}
	r.Job.Rlimits, r.Job.OwnLimits = r.sys.Rlimits(), r.Client.Propagate != ""
	if p := r.Client.Propagate; p != "" && p != "ALL" {
		names := front.SplitList(p)
		r.Job.Rlimits = slices.DeleteFunc(r.Job.Rlimits, func(l cluster.Rlimit) bool {
			return !slices.Contains(names, l.Name) && !slices.Contains(names, "RLIMIT_"+l.Name)
		})
	}
}

// checkConflicts refuses options that exclude each other, in Slurm's words.
func (r *Request) checkConflicts() error {
	j := &r.Job
	strongest, kinds := NotGiven, 0
	for _, from := range r.memFrom {
		switch {
		case from == NotGiven || from < strongest:
		case from == strongest:
			kinds++
		default:
			strongest, kinds = from, 1
		}
	}
	given := func(long string) bool { return r.From(long) != NotGiven }
	switch {
	case kinds > 1 && strongest == FromEnv:
		return r.fatal("SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.")
	case kinds > 1:
		return r.fatal("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
	case given("core-spec") && r.From("core-spec") == r.From("thread-spec"):
		return r.fatal("-S/--core-spec and --thred-spec options are mutually exclusive")
	}
	if j.TasksPerGPU > 0 {
		for _, long := range [...]string{"gpus-per-task", "gpus-per-socket", "ntasks-per-node"} {
			if given(long) {
				name := "--" + long
				if r.From(long) == FromEnv {
					name = "SLURM_" + strings.ToUpper(strings.ReplaceAll(long, "-", "_"))
				}
				return r.fatal(name + " is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU")
			}
		}
	}
	if err := r.checkGPUs(given); err != nil {
		return err
	}
	return r.checkPlaces()
}

// checkPlaces refuses a layout that needs nodes by name without them.
func (r *Request) checkPlaces() error {
	if strings.HasPrefix(strings.ToLower(r.Job.Distribution), "arbitrary") && len(r.Job.NodeList) == 0 {
		return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError,
			"error: With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option"))
	}
	if r.Client.NoAllocate && len(r.Job.NodeList) == 0 {
		return opt.Named(r.prog, "", "",
			opt.Errorf(opt.CodeError, "error: must specify a node list with -Z, --no-allocate."))
	}
	return nil
}

// isExact reports whether a step has no more CPUs than its tasks ask for. With --exclusive the one task of each node
// of srun's own allocation has them all, as in Slurm, unless tasks are counted.
func isExact(r *Request) bool {
	own := r.Client.JobID == 0 && r.Job.Sharing == cluster.ShareExclusive
	counted := r.From("ntasks") != NotGiven || r.From("ntasks-per-node") != NotGiven
	return r.Step.Exact && (!own || counted) || r.From("cpus-per-task") == FromLine
}

// stepConflicts refuses what a step cannot have at once.
func stepConflicts(r *Request) error {
	text := ""
	switch {
	case r.Step.Exact && r.Client.Whole:
		text = "error: --exact and --whole are mutually exclusive."
	case r.From("exclusive") == FromLine && r.From("overlap") == FromLine:
		text = "error: --exclusive and --overlap are mutually exclusive"
	default:
		return nil
	}
	return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError, "%s", text))
}

// placeNamed gives the step a node for each task where -m arbitrary asks for it. The step then has the nodes that are
// named: the size of its job, which the environment says, does not count, and more cannot be had.
func placeNamed(r *Request) error {
	s := &r.Step
	if !strings.HasPrefix(strings.ToLower(s.Distribution), "arbitrary") {
		return nil
	}
	named := len(s.NodeList)
	switch {
	case named == 0:
	case r.From("nodes") == FromEnv:
		s.MinNodes, s.MaxNodes = named, named
	case s.MinNodes > named && r.Client.JobID != 0:
		return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError,
			"error: Unable to create step for job %d: Requested node configuration is not available", r.Client.JobID))
	}
	if len(r.hosts) > named {
		s.NodeList = r.hosts
	}
	return nil
}

// finishStep makes srun's step of what was asked for its job.
func (r *Request) finishStep() error {
	s, j := &r.Step, &r.Job
	if s.Relative != nil && r.Client.JobID == 0 {
		return r.fatal("--relative option invalid for job allocation request")
	}
	if err := stepConflicts(r); err != nil {
		return err
	}
	s.Layout = *j.Layout
	if r.From("mem") == FromEnv && s.Mem.Per == cluster.MemPerNode { // the job's own: its steps share that
		s.Mem = cluster.Mem{}
	}
	if err := placeNamed(r); err != nil {
		return err
	}
	if v, ok := r.sys.LookupEnv("SLURM_STEP_GRES"); ok && r.From("gres") != FromLine {
		list, valid := values.ParseGRES(v)
		if !valid {
			return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError, values.BadGRES))
		}
		s.PerNode = list
	}
	if r.noGPUs {
		s.PerNode = append(slices.Clip(s.PerNode), cluster.GRES{Name: "none"})
	}
	if s.KeepCounts = r.Client.PreserveEnv; r.Client.Interactive {
		s.Layout = cluster.Layout{MinNodes: 1, MaxNodes: 1, Tasks: 1, CPUBind: "none"}
		s.Interactive = true
		s.Overlap = true
	}
	s.Exact = isExact(r)
	launches(r, s)
	s.Argv = r.Argv
	if s.Name = j.Name; !r.named {
		s.Name = path.Base(r.Argv[0])
	}
	s.WorkDir, s.User, s.Umask, s.Rlimits, s.OwnLimits = j.WorkDir, j.User, j.Umask, j.Rlimits, j.OwnLimits
	s.Stdin, s.Stdout, s.Stderr = j.Stdin, j.Stdout, j.Stderr
	s.Append = j.Append
	s.Label, s.Unbuffered = r.Client.Label, r.Client.Unbuffered || r.Client.PTY
	s.Limit, s.SubmitLine = j.Limit, j.SubmitLine
	s.SrunHost, s.SrunPID = j.SubmitHost, os.Getpid()
	if w := r.Client.WaitSeconds; w != nil {
		s.WaitAfterFirst = time.Duration(*w) * time.Second
	}
	if !r.Client.MultiProg {
		return nil
	}
	text, err := r.sys.ReadFile(r.Argv[0], front.MaxHostFile)
	if err != nil {
		return opt.Errorf(opt.CodeError, "srun: error: Could not open multi_prog config file %s", r.Argv[0])
	}
	s.MultiProgFile, s.MultiProg = true, joinedLines(string(text))
	return nil
}

// joinedLines appends the next line to one that ends in a backslash.
func joinedLines(text string) string { return strings.ReplaceAll(text, "\\\n", "") }
