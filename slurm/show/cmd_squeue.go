package show

import (
	"bufio"
	"cmp"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// The formats that squeue's options stand for.
const (
	queueFormat      = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	queueLongFormat  = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	queueStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
	stateFormat      = "%.18i %.2t"
	stepFormat       = "%.15i %.8j %.9P %.8u %.9M %N"
)

// jobChoice is what newer options of squeue choose jobs by.
type jobChoice struct {
	notMe     bool
	onlyState bool
	over      time.Duration // --running-over; 0: not given
	under     time.Duration // --running-under; 0: not given
}

// queueOptions is what squeue's line and variables ask for.
type queueOptions struct {
	query                      api.JobQuery
	format, long               string // -o, -O
	sort                       string
	licenses                   []string
	reservation                string
	states                     []*JobState
	stepRefs                   []cluster.StepID
	every                      time.Duration
	steps, allStates, wide     bool
	noHeader, perTask, perPart bool
	start, raw, me             bool
	data                       data.Ask
	hidden, follow             bool
	choice                     jobChoice
	badUsers                   []string
	jobWord, stepWord          bool   // -j or -s without an argument: it may be the next word
	jobText, stepText          string // those arguments, as they stand
	clusters                   string
	fed                        front.FedAsk
}

// Asked is what --json and --yaml say.
func (o *queueOptions) Asked() *data.Ask { return &o.data }

// SqueueOptions are the options of squeue.
var SqueueOptions = []opt.Option[queueOptions]{
	{Long: "account", Short: 'A', Arg: opt.Required, On: opt.Squeue, Env: "ACCOUNT", Meta: "accounts",
		Help: "only jobs of these accounts",
		Set: func(o *queueOptions, v string) error {
			o.query.Accounts = front.FilterList(strings.ToLower(v))
			return nil
		}},
	{Long: "accounts", Arg: opt.Required, On: opt.Squeue, Alias: "account"},
	{Long: "all", Short: 'a', On: opt.Squeue, Env: "ALL", Help: "jobs in hidden partitions too",
		Set: func(o *queueOptions, _ string) error { o.hidden = true; return nil }},
	{Long: "array", Short: 'r', On: opt.Squeue, Env: "ARRAY", Help: "one line for each array task",
		Set: func(o *queueOptions, _ string) error { o.perTask = true; return nil }},
	{Long: "array-unique", On: opt.Squeue, Env: "ARRAY_UNIQUE", Help: "one line for each pending array task",
		Set: func(o *queueOptions, _ string) error { o.perTask = true; return nil }},
	{Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.Squeue, Env: "CLUSTERS squeue=SLURM_CLUSTERS",
		Meta: "names", Help: "clusters to ask",
		Set: func(o *queueOptions, v string) error { return opt.SetClusters(v, &o.clusters) }},
	{Long: "cluster", Arg: opt.Required, On: opt.Squeue, Alias: "clusters"},
	{Long: "expand-patterns", On: opt.Squeue, Newer: true, Help: "expand the patterns of file names: always so",
		Set: func(*queueOptions, string) error { return nil }},
	{Long: "federation", On: opt.Squeue, Env: "FEDERATION", Help: "all clusters of the federation in one list",
		Set: func(o *queueOptions, _ string) error { o.fed.Federation = true; return nil }},
	{Long: "follow", On: opt.Squeue, Newer: true,
		Help: "then a line for each change of a job's state, until all jobs of -j have ended",
		Set:  func(o *queueOptions, _ string) error { o.follow = true; return nil }},
	{Long: "format", Short: 'o', Arg: opt.Required, On: opt.Squeue, Env: "FORMAT", Meta: "format",
		Help: "what to show, as %[[.]width]letter",
		Set:  func(o *queueOptions, v string) error { o.format, o.long = v, ""; return nil }},
	{Long: "Format", Short: 'O', Arg: opt.Required, On: opt.Squeue, Env: "FORMAT2", Meta: "fields",
		Help: "what to show, as name[:[.]width],...",
		Set:  func(o *queueOptions, v string) error { o.format, o.long = "", v; return nil }},
	{Long: "helpFormat", On: opt.Squeue, Newer: true, Group: opt.HelpGroup, Help: "list the fields of -O",
		Set: func(*queueOptions, string) error { return longNames(jobColumns()) }},
	{Long: "helpformat", On: opt.Squeue, Newer: true, Group: opt.HelpGroup, Help: "list the letters of -o",
		Set: func(*queueOptions, string) error { return shortNames(jobColumns()) }},
	{Long: "helpstate", On: opt.Squeue, Newer: true, Group: opt.HelpGroup, Help: "list the states of -t",
		Set: func(*queueOptions, string) error {
			return opt.Answer(strings.Split(strings.ToLower(validStates), ",")...)
		}},
	{
		Long: "hide", On: opt.Squeue, Help: "no jobs in hidden partitions",
		Set: func(o *queueOptions, _ string) error { o.hidden = false; return nil },
	},
	{Long: "iterate", Short: 'i', Arg: opt.Required, On: opt.Squeue, Meta: "seconds",
		Help: "repeat after this time",
		Set: func(o *queueOptions, v string) error {
			return setEvery(&o.every, v)
		}},
	{
		Long: "jobs", Short: 'j', Arg: opt.Optional, On: opt.Squeue, Meta: "ids", Help: "only these jobs",
		Set: setQueueJobs,
	},
	{Long: "job", Arg: opt.Optional, On: opt.Squeue, Alias: "jobs"},
	{Long: "json", Arg: opt.Optional, On: opt.Squeue, Meta: "version",
		Help: "print JSON: v0.0.42 to v0.0.45, or list", Set: func(o *queueOptions,
			v string) error {
			return o.data.JSON(v)
		}},
	{Long: "yaml", Arg: opt.Optional, On: opt.Squeue, Meta: "version", Help: "print YAML, as --json",
		Set: func(o *queueOptions, v string) error { return o.data.Yaml(v) }},
	{Long: "licenses", Short: 'L', Arg: opt.Required, On: opt.Squeue, Env: "LICENSES", Meta: "names",
		Help: "only jobs with these licenses",
		Set:  func(o *queueOptions, v string) error { o.licenses = front.FilterList(v); return nil }},
	{Long: "local", On: opt.Squeue, Env: "LOCAL", Help: "this cluster only, also with FederationParameters=fed_display",
		Set: func(o *queueOptions, _ string) error { o.fed.Local = true; return nil }},
	{
		Long: "long", Short: 'l', On: opt.Squeue, Help: "more columns",
		Set: func(o *queueOptions, _ string) error { o.wide = true; return nil },
	},
	{
		Long: "me", On: opt.Squeue, Help: "only own jobs",
		Set: func(o *queueOptions, _ string) error { o.me = true; return nil },
	},
	{Long: "name", Short: 'n', Arg: opt.Required, On: opt.Squeue, Env: "NAMES", Meta: "names",
		Help: "only jobs or steps of these names",
		Set:  func(o *queueOptions, v string) error { o.query.Names = front.FilterList(v); return nil }},
	{
		Long: "noconvert", On: opt.Squeue, Help: "memory in mebibytes",
		Set: func(o *queueOptions, _ string) error { o.raw = true; return nil },
	},
	{Long: "nodelist", Short: 'w', Arg: opt.Required, On: opt.Squeue, Meta: "nodes", Help: "only jobs on these nodes",
		Set: func(o *queueOptions, v string) error { return front.SetNodes(&o.query.Nodes, v) }},
	{Long: "node", Arg: opt.Required, On: opt.Squeue, Alias: "nodelist"},
	{Long: "nodes", Arg: opt.Required, On: opt.Squeue, Alias: "nodelist"},
	{
		Long: "noheader", Short: 'h', On: opt.Squeue, Help: "no line of headers",
		Set: func(o *queueOptions, _ string) error { o.noHeader = true; return nil },
	},
	{
		Long: "notme", On: opt.Squeue, Newer: true, Help: "only jobs of others",
		Set: func(o *queueOptions, _ string) error {
			o.choice.notMe = true
			return nil
		},
	},
	{Long: "only-job-state", On: opt.Squeue, Newer: true,
		Help: "only IDs and states: with -j, -t, and options that choose clusters or columns",
		Set: func(o *queueOptions, _ string) error {
			o.choice.onlyState = true
			return nil
		}},
	{Long: "partition", Short: 'p', Arg: opt.Required, On: opt.Squeue, Env: "PARTITION", Meta: "names",
		Help: "only jobs in these partitions",
		Set: func(o *queueOptions, v string) error {
			o.query.Partitions = front.FilterList(v)
			o.hidden = true // one that is named may be hidden
			return nil
		}},
	{Long: "partitions", Arg: opt.Required, On: opt.Squeue, Alias: "partition"},
	{Long: "priority", Short: 'P', On: opt.Squeue, Env: "PRIORITY", Help: "a line for each partition of a pending job",
		Set: func(o *queueOptions, _ string) error { o.perPart = true; return nil }},
	{Long: "qos", Short: 'q', Arg: opt.Required, On: opt.Squeue, Env: "QOS", Meta: "names",
		Help: "only jobs with these QOS",
		Set:  func(o *queueOptions, v string) error { o.query.QOS = front.FilterList(strings.ToLower(v)); return nil }},
	{Long: "reservation", Short: 'R', Arg: opt.Required, On: opt.Squeue, Meta: "name",
		Help: "only jobs in this reservation",
		Set:  func(o *queueOptions, v string) error { o.reservation = v; return nil }},
	{Long: "running-over", Arg: opt.Required, On: opt.Squeue, Newer: true, Meta: "time",
		Help: "only jobs that have run longer than this",
		Set:  func(o *queueOptions, v string) error { return setRunning(&o.choice.over, v) }},
	{Long: "running-under", Arg: opt.Required, On: opt.Squeue, Newer: true, Meta: "time",
		Help: "only jobs that run, and have for less than this",
		Set:  func(o *queueOptions, v string) error { return setRunning(&o.choice.under, v) }},
	{Long: "sibling", On: opt.Squeue, Env: "SIB SIBLING",
		Help: "the jobs of the federation at each cluster that has them",
		Set:  func(o *queueOptions, _ string) error { o.fed.Sibling = true; return nil }},
	{Long: "sort", Short: 'S', Arg: opt.Required, On: opt.Squeue, Env: "SORT", Meta: "fields",
		Help: "letters to sort by, - before one for the other direction",
		Set:  func(o *queueOptions, v string) error { o.sort = v; return nil }},
	{
		Long: "start", On: opt.Squeue, Env: "START", Help: "when pending jobs are expected to start",
		Set: func(o *queueOptions, _ string) error { o.start = true; return nil },
	},
	{
		Long: "states", Short: 't', Arg: opt.Required, On: opt.Squeue, Env: "STATES", Meta: "states",
		Help: "only jobs in these states, or all", Set: setQueueStates,
	},
	{
		Long: "steps", Short: 's', Arg: opt.Optional, On: opt.Squeue, Meta: "ids",
		Help: "steps instead of jobs", Set: setQueueSteps,
	},
	{Long: "step", Arg: opt.Optional, On: opt.Squeue, Alias: "steps"},
	{
		Long: "user", Short: 'u', Arg: opt.Required, On: opt.Squeue, Env: "USERS", Meta: "users",
		Help: "only jobs of these users", Set: setQueueUsers,
	},
	{Long: "users", Arg: opt.Required, On: opt.Squeue, Alias: "user"},
	{Long: "verbose", Short: 'v', On: opt.Squeue, Help: "tell what is asked for",
		Set: func(*queueOptions, string) error { return nil }},
	{Long: "version", Short: 'V', On: opt.Squeue, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", On: opt.Squeue, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Squeue, Group: opt.HelpGroup, Help: "print a short help"},
}

// longNames answers --helpFormat.
func longNames[T any](cols []format.Column[T]) error {
	return opt.Answer(opt.Listed(format.LongNames(cols), 4, format.LongWidth)...)
}

// shortNames answers --helpformat.
func shortNames[T any](cols []format.Column[T]) error {
	return opt.Answer(opt.Listed(format.Letters(cols), 8, 6)...)
}

// setRunning reads the time of --running-over and --running-under.
func setRunning(to *time.Duration, v string) error {
	d, ok := opt.ParseSpan(v)
	if slices.Contains([]string{"unlimited", "infinite"}, strings.ToLower(v)) {
		d, ok = cluster.Unlimited, true
	}
	if !ok || d == 0 {
		return opt.Errorf(opt.CodeError, "fatal: Invalid time limit specification")
	}
	*to = d
	return nil
}

// besideState are the options that --only-job-state goes together with.
var besideState = []string{"only-job-state", "jobs", "states", "clusters", "federation", "local", "sibling", "format",
	"Format", "noheader", "sort", "array", "all", "iterate", "verbose"}

// checkOnlyState returns what to say if --only-job-state stands beside an option that looks at more than states.
func (o *queueOptions) checkOnlyState(given []string) string {
	if !o.choice.onlyState {
		return ""
	}
	if o.data.On { // Slurm's objects are others than squeue's here
		return "--only-job-state prints no JSON or YAML; leave it out"
	}
	for _, name := range given {
		if !slices.Contains(besideState, name) {
			return "fatal: Option --only-job-state only works alone, with -j (--jobs) and/or -t (--states) " +
				"parameters, parameters for cluster/federation selection, and the printing options."
		}
	}
	return ""
}

// setEvery reads the seconds of --iterate.
func setEvery(to *time.Duration, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		return opt.Errorf(opt.CodeError, "error: Error: invalid entry for --iterate=%s", v)
	}
	*to = time.Duration(n) * time.Second
	return nil
}

func setQueueJobs(o *queueOptions, v string) error {
	o.jobWord = v == ""
	o.jobText = v
	for _, w := range front.SplitOutside(v) {
		if w == "" {
			continue
		}
		t, ok := front.ParseTarget(w)
		if !ok || t.Step != nil {
			return opt.Errorf(opt.CodeError, "error: Invalid job id: %s", w)
		}
		t.Ref.Part = 0 // as Slurm does: all components
		o.query.Refs = append(o.query.Refs, t.Ref)
	}
	return nil
}

func setQueueSteps(o *queueOptions, v string) error {
	o.steps, o.stepWord = true, v == ""
	o.stepText = v
	for _, w := range front.SplitOutside(v) {
		if w == "" {
			continue
		}
		t, ok := front.ParseTarget(w)
		if !ok || t.Step == nil {
			return opt.Errorf(opt.CodeError, "error: Invalid job_step id: %s.??", w)
		}
		o.stepRefs = append(o.stepRefs, cluster.StepID{Job: t.Ref.One(), Step: *t.Step})
	}
	return nil
}

// noneOf reports whether a filter's list is of commas alone: nothing passes it.
func noneOf(v string) bool { return slices.Equal(front.FilterList(v), []string{","}) }

// nobody is a number that no user has.
const nobody = 1<<32 - 1

func setQueueUsers(o *queueOptions, v string) error {
	if noneOf(v) {
		o.query.Users = append(o.query.Users, nobody)
		return nil
	}
	for _, w := range front.SplitList(v) {
		u, ok := front.LookupUser(w) // a number is a user's too, or none's
		if !ok {
			o.badUsers = append(o.badUsers, w)
			continue
		}
		o.query.Users = append(o.query.Users, u.UID)
	}
	return nil
}

// validStates is what squeue says that it knows.
const validStates = "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL,DEADLINE,OUT_OF_MEMORY," +
	"COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"

// emptyStates are states that no job of muster's is ever in, with their short names.
const emptyStates = ",CONFIGURING,CF,RESIZING,RS,RESV_DEL_HOLD,RD,REQUEUE_FED,RF,REQUEUE_HOLD,RH,SIGNALING,SI,"

// expediting is the state of jobs that wait before all others, beside PENDING.
var expediting = JobState{"EX", "EXPEDITING", "it waits first", []cluster.Phase{cluster.Pending}, cluster.Expedited}

func setQueueStates(o *queueOptions, v string) error {
	o.states, o.allStates = nil, strings.EqualFold(v, "all")
	if o.allStates { // in a list it is no state
		return nil
	}
	if noneOf(v) {
		o.states = []*JobState{nil}
		return nil
	}
	for _, w := range front.SplitList(v) {
		word := w
		w = strings.ToUpper(w)
		named := findState(func(s *JobState) bool { return s.Short == w || s.Long == w })
		switch {
		case named != nil:
			o.states = append(o.states, named)
		case w == expediting.Short || w == expediting.Long:
			o.states = append(o.states, &expediting)
		case strings.Contains(emptyStates, ","+w+","):
			o.states = append(o.states, nil)
		default:
			return &opt.UsageError{Code: opt.CodeError, Lines: []string{"error: Invalid job state specified: " + word,
				"error: Valid job states include: " + validStates, ""}}
		}
	}
	return nil
}

// squeueUsage is what Slurm prints before it refuses a stray word.
const squeueUsage = `Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]
              [-n name] [-o format] [-p partitions] [--qos qos]
              [--reservation reservation] [--sort fields] [--start]
              [--step step_id] [-t states] [-u user_name] [--usage]
              [-L licenses] [-w nodes] [--federation] [--local] [--sibling]
	      [-ahjlrsv]
`

// Squeue lists jobs or steps.
func Squeue(sys *front.Sys, argv []string) int {
	var o queueOptions
	rest, code := front.ParseQuery(sys, opt.Squeue, SqueueOptions, &o, argv)
	if code >= 0 {
		return code
	}
	rest, err := o.words(rest)
	switch {
	case err != nil:
		return sys.Usage(opt.Named(opt.Squeue, "jobs", "", err))
	case len(rest) > 0:
		_, _ = sys.Stdout.Write([]byte(squeueUsage))
		return sys.Fail("Unrecognized option: %s", rest[0])
	}
	given := onLine(opt.Squeue, SqueueOptions, argv)
	if text := cmp.Or(o.formats(sys, given), o.checkOnlyState(given)); text != "" {
		sys.Say("%s", text)
		return 1
	}
	if o.me {
		o.query.Users = []uint32{sys.UID}
	}
	for _, w := range o.badUsers {
		sys.Say("error: Invalid user: %s\n", w) // with an empty line, as Slurm's
	}
	if bad := o.badSort(); bad != "" {
		return sys.Fail("Invalid sort specification: %s", bad)
	}
	if len(o.badUsers) > 0 && len(o.query.Users) == 0 {
		o.query.Users = []uint32{nobody}
	}
	if err := checkNodes(sys, o.query.Nodes); err != "" {
		return sys.Fail("%s", err)
	}
	if !o.data.On && !sys.Once() && sys.Tells(front.Told) {
		front.TellAsked(sys.Stdout, "\n\n", o.asked(sys, argv))
	}
	if o.follow {
		return followQueue(sys, &o)
	}
	for {
		if code := queueOnce(sys, &o); code != 0 || o.every == 0 || sys.Once() {
			return code
		}
		time.Sleep(o.every)
	}
}

// formats tells which of the formats that the line asks for exclude each other; those of variables give way to -l and
// --start, and that of SQUEUE_FORMAT2 to that of SQUEUE_FORMAT.
func (o *queueOptions) formats(s *front.Sys, given []string) string {
	short, long := slices.Index(given, "format"), slices.Index(given, "Format")
	wide := slices.Contains(given, "long")
	switch {
	case short >= 0 && long > short:
		return "error: -O (--Format) is incompatible with -o (--format)"
	case long >= 0 && short > long:
		return "error: -o (--format) is incompatible with -O (--Format)"
	case wide && short >= 0:
		return mixedFormats
	case long >= 0 || short >= 0:
	case wide || o.start:
		o.format = ""
		o.long = ""
	case o.long != "" && s.Getenv("SQUEUE_FORMAT") != "":
		o.format = s.Getenv("SQUEUE_FORMAT")
		o.long = ""
	}
	return ""
}

// badSort is the first letter of --sort that stands for no field, "" for none.
func (o *queueOptions) badSort() string {
	for _, c := range []byte(o.sort) {
		if strings.IndexByte("-+,# ", c) >= 0 {
			continue
		}
		job := format.Find(jobColumns(), c)
		known := job != nil && job.Head != "" // selectjobinfo has nothing to sort by
		if o.steps {
			known = format.Find(stepColumns, c) != nil
		}
		if !known {
			return string(c)
		}
	}
	return ""
}

// words takes the arguments of -j and -s that stand in words of their own.
func (o *queueOptions) words(rest []string) ([]string, error) {
	if o.jobWord && len(rest) > 0 {
		if err := setQueueJobs(o, rest[0]); err != nil {
			return rest, err
		}
		rest = rest[1:]
	}
	if o.stepWord && len(rest) > 0 {
		if err := setQueueSteps(o, rest[0]); err != nil {
			return rest, err
		}
		rest = rest[1:]
	}
	return rest, nil
}

// checkNodes returns what to say if a node that was named does not exist.
func checkNodes(s *front.Sys, names []cluster.NodeName) string {
	if len(names) == 0 {
		return ""
	}
	resp, err := front.Call(s, api.ListNodes, api.NodeQuery{Names: names})
	if err == nil && len(resp.Missing) > 0 {
		return "Invalid node name " + string(resp.Missing[0])
	}
	return ""
}

// queueOnce asks and prints once.
func queueOnce(s *front.Sys, o *queueOptions) int {
	out := bufio.NewWriterSize(s.Stdout, 1<<16)
	defer out.Flush()
	v := &View{Sys: s, Raw: o.raw, TimeFmt: TimeFormat(s)}
	own, code := s.OwnCluster(o.clusters)
	if code >= 0 {
		return code
	}
	if own != "" && !o.noHeader && !o.data.On {
		_, _ = out.WriteString(s.ClusterHead(own))
	}
	if o.steps {
		return queueSteps(s, o, v, out)
	}
	q := o.query
	o.phases(&q)
	q.Starts = o.start
	q.Listed = !o.hidden
	f, bad := o.jobFormat()
	q.Brief = o.light(f.Codes())
	resp, err := ListJobs(s, q)
	if err != nil {
		return LoadFailed(s, "slurm_load_jobs error", err)
	}
	v.Now = resp.Now
	wide := o.fed.Wants(o.clusters, resp.Federal)
	if len(q.Refs) == 1 && len(resp.Missing) == 1 && !wide && !hasWhole(s, q) {
		return LoadFailed(s, "slurm_load_jobs error", cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "no such job"))
	}
	o.tellRecords(v, out, len(resp.Jobs))
	rows := o.rows(v, resp.Jobs)
	if wide {
		rows = FederalRows(v, q, o.fed.Sibling, rows, o.rows)
	}
	if o.data.On {
		sortRows(rows, jobColumns(), jobOrders[:], "i")
		return WriteJobs(out, v, &o.data, rows)
	}
	for _, x := range bad {
		s.Say("error: Invalid job format specification: %s", x)
	}
	o.table(v, out, &f, rows)
	return 0
}

// hasWhole reports whether the job is there of which a task, or a component, is asked for: then none of that is no
// mistake.
func hasWhole(s *front.Sys, q api.JobQuery) bool {
	ref := q.Refs[0]
	if ref.Tasks.Empty() && ref.Part == 0 {
		return false
	}
	q.Refs = []cluster.Ref{{Job: ref.Job}}
	resp, err := front.Call(s, api.ListJobs, q)
	return err == nil && len(resp.Missing) == 0
}

// table prints rows in their order below the headers.
func (o *queueOptions) table(v *View, out *bufio.Writer, f *format.Format[JobRow], rows []JobRow) {
	sortRows(rows, jobColumns(), jobOrders[:], cmp.Or(o.sort, o.defaultSort()))
	o.heading(v, out)
	f.Table(out, !o.noHeader, rows)
}

// fetchers is how many pages are fetched at a time.
const fetchers = 3

// ListJobs asks for jobs; of a long list the pages behind the first are fetched side by side.
func ListJobs(s *front.Sys, q api.JobQuery) (api.JobsResponse, error) {
	q.Pages = len(q.Refs) == 0 && s.Direct == nil
	first, err := front.Call(s, api.ListJobs, q)
	if err != nil || len(first.Rest) == 0 {
		return first, err
	}
	// Memory that is never touched costs nothing and puts the next garbage collection off until
	// after the list is printed. (Package runtime/debug, which could say so, is initialized late.)
	ballast := make([]byte, 128<<20)
	defer runtime.KeepAlive(ballast)
	pages, errs := make([][]*cluster.Job, len(first.Rest)), make([]error, fetchers)
	var wg sync.WaitGroup
	for k := range fetchers {
		wg.Go(func() {
			for i := k; i < len(first.Rest); i += fetchers {
				part := q
				part.Pages, part.From, part.To = false, first.Rest[i].From, first.Rest[i].To
				resp, err := front.Call(s, api.ListJobs, part)
				if err != nil {
					errs[k] = err
					return
				}
				pages[i] = resp.Jobs
			}
		})
	}
	wg.Wait()
	for _, p := range pages {
		first.Jobs = append(first.Jobs, p...)
	}
	return first, errors.Join(errs...)
}

// LoadFailed prints why nothing could be listed.
func LoadFailed(s *front.Sys, what string, err error) int {
	text, _ := front.ErrorText(err)
	_, _ = s.Stderr.Write([]byte(what + ": " + text + "\n"))
	return 1
}

// heading is the date above long lists.
func (o *queueOptions) heading(v *View, out *bufio.Writer) {
	if (o.wide || o.every > 0) && !o.noHeader && !v.Sys.Tells(front.Told) {
		_, _ = out.WriteString(v.Now.Local().Format("Mon Jan 02 15:04:05 2006\n"))
	}
}

// phases says which jobs the server need send.
func (o *queueOptions) phases(q *api.JobQuery) {
	switch {
	case o.start && len(o.states) == 0:
		q.Phases = []cluster.Phase{cluster.Pending}
	case o.allStates:
	case len(o.states) == 0:
		q.Phases = []cluster.Phase{
			cluster.Pending, cluster.Starting, cluster.Running, cluster.Suspended, cluster.Ending,
		}
	default:
		for _, st := range o.states {
			if st != nil {
				q.Phases = append(q.Phases, st.phases...)
			}
		}
	}
	if o.data.On && len(o.states) == 0 && !o.start {
		q.Phases = nil
	}
}

// lightCodes are the columns that need no more of a job than a brief answer holds.
const lightCodes = "iAFKjuUtTMDRNrPlLCpQqaSeV"

// light reports whether brief answers do for what is shown and sorted by.
func (o *queueOptions) light(codes []byte) bool {
	for _, c := range codes {
		if strings.IndexByte(lightCodes, c) < 0 {
			return false
		}
	}
	return !o.data.On && o.reservation == "" && len(o.licenses) == 0 && o.sort == ""
}

func (o *queueOptions) jobFormat() (format.Format[JobRow], []string) {
	switch {
	case o.choice.onlyState && o.long == "" && o.format == "":
		return format.Parse(jobColumns(), stateFormat, "")
	case o.long != "":
		return format.ParseLong(jobColumns(), o.long)
	case o.format != "":
		return format.Parse(jobColumns(), o.format, allJobFields)
	case o.start:
		return format.Parse(jobColumns(), queueStartFormat, "")
	case o.wide:
		return format.Parse(jobColumns(), queueLongFormat, "")
	}
	return format.Parse(jobColumns(), queueFormat, "")
}

func (o *queueOptions) defaultSort() string {
	if o.start {
		return "S"
	}
	return "P,t,-p"
}

// queueSteps lists steps.
func queueSteps(s *front.Sys, o *queueOptions, v *View, out *bufio.Writer) int {
	resp, err := front.Call(s, api.ListSteps, api.StepQuery{Users: o.query.Users, Listed: !o.hidden})
	if err != nil {
		return LoadFailed(s, "slurm_get_job_steps error", err)
	}
	v.Now = resp.Now
	rows := StepRows(v, resp)
	rows = slices.DeleteFunc(rows, func(r StepRow) bool { return !o.keepsStep(&r) })
	if o.data.On {
		return WriteSteps(out, v, &o.data, rows)
	}
	f, bad := format.Parse(stepColumns, cmp.Or(o.format, stepFormat), allStepFields)
	if o.long != "" {
		f, bad = format.ParseLong(stepColumns, o.long)
	}
	for _, x := range bad {
		s.Say("error: Invalid job step format specification: %s", x)
	}
	sortRows(rows, stepColumns, stepOrders[:], cmp.Or(o.sort, "P,i"))
	o.heading(v, out)
	f.Table(out, !o.noHeader, rows)
	return 0
}
