// Package report is what is told of the past, of use and of shares: sacct, sreport, sshare, sprio, sstat, seff and
// sdiag. It changes nothing, and stands on package show for how a job is written. Each command begins in its file
// cmd_*.go; the columns of sacct are in sacct_columns.go.
package report

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/imported"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// sacctOptions is what sacct's line asks for.
type sacctOptions struct {
	sys      *front.Sys
	query    api.HistoryQuery
	assocs   []string // numbers of associations
	format   string
	clusters string
	header   bool
	parse    int // 1: | at the end too (-p), 2: between (-P)
	delim    string
	jobsOnly bool
	all      bool
	byJob    bool
	states   []string
	from, to string
	truncate bool
	list     bool
	data     data.Ask
	script   bool
	env      bool
	raw      bool
	brief    bool
	long     bool
	// completion is -c, which asks what JobCompType has recorded.
	completion bool
	unit       byte // of memory; 0: as it comes
	// maxMinutes is -K, which counts beside -k only.
	maxMinutes int
	steps      []front.Target // single steps that -j names
	wholes     []cluster.Ref  // jobs that it names
	fed        front.FedAsk
	perTask    bool // --array
}

// Columns of sacct without -o, with -b and with -l.
const (
	sacctDefault = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
	sacctBrief   = "JobID,State,ExitCode"
	// briefFields are the fields that brief records tell, beside those of what steps use.
	briefFields = " Account AllocCPUS AllocNodes AllocTRES AssocID Cluster CPUTime CPUTimeRAW DerivedExitCode Elapsed ElapsedRaw End ExitCode" +
		" JobID JobIDRaw JobName NCPUS NodeList NTasks Partition Priority QOS Start State Submit Suspended Timelimit TimelimitRaw UID User "
	sacctLong = "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask," +
		"AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State," +
		"ExitCode,AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode," +
		"MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,ReqTRES,AllocTRES,TRESUsageInAve," +
		"TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot," +
		"TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutAve,TRESUsageOutTot"
)

type sacctOption = opt.Option[sacctOptions]

// Asked is what --json and --yaml say.
func (o *sacctOptions) Asked() *data.Ask {
	return &o.data
}

// SacctOptions are the options of sacct.
var SacctOptions = []sacctOption{
	{
		Long: "allusers", Short: 'a', On: opt.Sacct, Help: "jobs of all users",
		Set: func(o *sacctOptions, _ string) error { o.all = true; return nil },
	},
	{Long: "array", On: opt.Sacct, Newer: true, Help: "one line for each pending task of an array",
		Set: func(o *sacctOptions, _ string) error { o.perTask = true; return nil }},
	{Long: "expand-patterns", On: opt.Sacct, Newer: true, Help: "expand the patterns of file names: always so",
		Set: func(*sacctOptions, string) error { return nil }},
	{Long: "helpreason", On: opt.Sacct, Newer: true, Group: opt.HelpGroup, Help: "list the reasons of -R",
		Set: func(*sacctOptions, string) error { return opt.Answer(opt.Listed(reasonWords(), 2, 39)...) }},
	{Long: "helpstate", On: opt.Sacct, Newer: true, Group: opt.HelpGroup, Help: "list the states of -s",
		Set: func(*sacctOptions, string) error { return opt.Answer(opt.Listed(stateWords(), 4, 20)...) }},
	{Long: "accounts", Short: 'A', Arg: opt.Required, On: opt.Sacct, Help: "jobs of these accounts", Meta: "list",
		Set: func(o *sacctOptions, v string) error {
			o.query.Accounts = namedList(strings.ToLower(v))
			return nil
		}},
	{
		Long: "brief", Short: 'b', On: opt.Sacct, Help: "only jobid, state and exit code",
		Set: func(o *sacctOptions, _ string) error { o.brief = true; return nil },
	},
	{
		Long: "batch-script", Short: 'B', On: opt.Sacct, Help: "print the batch script of -j",
		Set: func(o *sacctOptions, _ string) error { o.script = true; return nil },
	},
	{
		Long: "completion", Short: 'c', On: opt.Sacct,
		Help: "only with a JobCompType: the same as history here",
		Set:  func(o *sacctOptions, _ string) error { o.completion = true; return nil },
	},
	{Long: "constraints", Short: 'C', Arg: opt.Required, On: opt.Sacct, Help: "jobs with these constraints",
		Meta: "list",
		Set:  func(o *sacctOptions, v string) error { o.query.Constraints = front.SplitList(v); return nil }},
	{Long: "delimiter", Arg: opt.Required, On: opt.Sacct, Help: "what separates fields with -p and -P", Meta: "char",
		Set: func(o *sacctOptions, v string) error { o.delim = v; return nil }},
	{Long: "duplicates", Short: 'D', On: opt.Sacct, Help: "every attempt of requeued jobs",
		Set: func(o *sacctOptions, _ string) error { o.query.Duplicates = true; return nil }},
	{
		Long: "help-fields", On: opt.Sacct, Newer: true, Alias: "helpformat",
	},
	{
		Long: "helpformat", Short: 'e', On: opt.Sacct, Help: "list the fields",
		Set: func(o *sacctOptions, _ string) error { o.list = true; return nil },
	},
	{Long: "endtime", Short: 'E', Arg: opt.Required, On: opt.Sacct,
		Help: "jobs that lived before this time", Meta: "time",
		Set: func(o *sacctOptions, v string) error { o.to = v; return nil }},
	{
		Long: "env-vars", On: opt.Sacct, Help: "print the environment of -j",
		Set: func(o *sacctOptions, _ string) error { o.env = true; return nil },
	},
	{Long: "federation", On: opt.Sacct, Help: "all clusters of the federation in one list",
		Set: func(o *sacctOptions, _ string) error { o.fed.Federation = true; return nil }},
	{
		Long: "file", Short: 'f', Arg: opt.Required, On: opt.Sacct, Help: "another job completion file",
		Meta: "file", Ignored: "history is a database here",
		Set: func(_ *sacctOptions, v string) error { return checkCompletionFile(v) },
	},
	{Long: "flags", Short: 'F', Arg: opt.Required, On: opt.Sacct, Help: "jobs with these flags", Meta: "list",
		Set: setSacctFlags},
	{Long: "group", Short: 'g', Arg: opt.Required, On: opt.Sacct, Help: "jobs of these groups", Meta: "list",
		Set: setSacctGroups},
	{Long: "gid", Arg: opt.Required, On: opt.Sacct, Help: "jobs of these groups", Meta: "list",
		Set: setSacctGroups},
	{Long: "jobs", Short: 'j', Arg: opt.Required, On: opt.Sacct, Help: "these jobs", Meta: "list", Set: setSacctJobs},
	{Long: "json", Arg: opt.Optional, On: opt.Sacct, Meta: "version",
		Help: "print JSON: v0.0.42 to v0.0.45, or list", Set: func(o *sacctOptions,
			v string) error {
			return o.data.JSON(v)
		}},
	{Long: "yaml", Arg: opt.Optional, On: opt.Sacct, Meta: "version", Help: "print YAML, as --json",
		Set: func(o *sacctOptions, v string) error { return o.data.Yaml(v) }},
	{Long: "timelimit-min", Short: 'k', Arg: opt.Required, On: opt.Sacct,
		Help: "jobs with this limit, or with -K at least", Meta: "time",
		Set: func(o *sacctOptions, v string) error { return sacctLimit(v, &o.query.Minutes.Min) }},
	{Long: "timelimit-max", Short: 'K', Arg: opt.Required, On: opt.Sacct,
		Help: "with -k: at most this limit", Meta: "time",
		Set: func(o *sacctOptions, v string) error { return sacctLimit(v, &o.maxMinutes) }},
	{Long: "local", On: opt.Sacct, Help: "this cluster only, also with FederationParameters=fed_display",
		Set: func(o *sacctOptions, _ string) error { o.fed.Local = true; return nil }},
	{
		Long: "long", Short: 'l', On: opt.Sacct, Help: "many fields",
		Set: func(o *sacctOptions, _ string) error { o.long = true; return nil },
	},
	{
		Long: "allclusters", Short: 'L', On: opt.Sacct, Help: "all clusters: there is one",
		Set: func(*sacctOptions, string) error { return nil },
	},
	{Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.Sacct, Env: "sacct=SLURM_CLUSTERS",
		Help: "these clusters", Meta: "list",
		Set: func(o *sacctOptions, v string) error { o.clusters = v; return nil }},
	{
		Long: "noheader", Short: 'n', On: opt.Sacct, Help: "no header",
		Set: func(o *sacctOptions, _ string) error { o.header = false; return nil },
	},
	{Long: "name", Arg: opt.Required, On: opt.Sacct, Help: "jobs of these names", Meta: "list",
		Set: func(o *sacctOptions, v string) error { o.query.Names = namedList(v); return nil }},
	{Long: "ncpus", Short: 'I', Arg: opt.Required, On: opt.Sacct, Help: "jobs with this many CPUs", Meta: "range",
		Set: func(o *sacctOptions, v string) error { return sacctRange("cpu", v, &o.query.CPUCount) }},
	{Long: "nnodes", Short: 'i', Arg: opt.Required, On: opt.Sacct, Help: "jobs with this many nodes", Meta: "range",
		Set: func(o *sacctOptions, v string) error { return sacctRange("node", v, &o.query.NodeCount) }},
	{
		Long: "noconvert", On: opt.Sacct, Help: "no change of units",
		Set: func(o *sacctOptions, _ string) error { o.raw = true; return nil },
	},
	{Long: "nodelist", Short: 'N', Arg: opt.Required, On: opt.Sacct, Help: "jobs that ran on these nodes", Meta: "list",
		Set: setSacctNodes},
	{Long: "format", Short: 'o', Arg: opt.Required, On: opt.Sacct, Env: "FORMAT",
		Help: "the fields to print", Meta: "list",
		Set: func(o *sacctOptions, v string) error { o.format = v; return nil }},
	{Long: "fields", Arg: opt.Required, On: opt.Sacct, Alias: "format"},
	{
		Long: "parsable", Short: 'p', On: opt.Sacct, Help: "fields end with |",
		Set: func(o *sacctOptions, _ string) error { o.parse = 1; return nil },
	},
	{
		Long: "parsable2", Short: 'P', On: opt.Sacct, Help: "fields are separated by |",
		Set: func(o *sacctOptions, _ string) error { o.parse = 2; return nil },
	},
	{Long: "qos", Short: 'q', Arg: opt.Required, On: opt.Sacct, Help: "jobs with these QOS", Meta: "list",
		Set: func(o *sacctOptions, v string) error { o.query.QOS = namedList(strings.ToLower(v)); return nil }},
	{Long: "partition", Short: 'r', Arg: opt.Required, On: opt.Sacct, Help: "jobs of these partitions", Meta: "list",
		Set: func(o *sacctOptions, v string) error { o.query.Partitions = namedList(v); return nil }},
	{Long: "reason", Short: 'R', Arg: opt.Required, On: opt.Sacct,
		Help: "jobs that waited for these reasons", Meta: "list",
		Set: setSacctReasons},
	{Long: "state", Short: 's', Arg: opt.Required, On: opt.Sacct, Help: "jobs in these states", Meta: "list",
		Set: func(o *sacctOptions, v string) error { o.states = front.SplitList(v); return nil }},
	{Long: "starttime", Short: 'S', Arg: opt.Required, On: opt.Sacct,
		Help: "jobs that lived after this time", Meta: "time",
		Set: func(o *sacctOptions, v string) error { o.from = v; return nil }},
	{
		Long: "truncate", Short: 'T', On: opt.Sacct, Help: "cut times to the window",
		Set: func(o *sacctOptions, _ string) error { o.truncate = true; return nil },
	},
	{
		Long: "user", Short: 'u', Arg: opt.Required, On: opt.Sacct, Help: "jobs of these users",
		Meta: "list", Set: setSacctUsers,
	},
	{Long: "uid", Arg: opt.Required, On: opt.Sacct, Help: "jobs of these users", Meta: "list", Set: setSacctUsers},
	{Long: "units", Arg: opt.Required, On: opt.Sacct, Help: "unit of memory", Meta: "[KMGTP]",
		Set: setSacctUnits},
	{
		Long: "use-local-uid", On: opt.Sacct, Help: "user names of this machine: always so",
		Set: func(*sacctOptions, string) error { return nil },
	},
	{Long: "associations", Short: 'x', Arg: opt.Required, On: opt.Sacct, Help: "jobs of these associations",
		Meta: "list",
		Set:  func(o *sacctOptions, v string) error { o.assocs = namedList(v); return nil }},
	{Long: "wckeys", Short: 'W', Arg: opt.Required, On: opt.Sacct, Help: "jobs with these keys", Meta: "list",
		Set: func(o *sacctOptions, v string) error { o.query.WCKeys = namedList(v); return nil }},
	{
		Long: "whole-hetjob", Arg: opt.Optional, On: opt.Sacct, Meta: "yes|no",
		Help: "all components of a heterogeneous job, or only those named", Set: setWholeHet,
	},
	{
		Long: "allocations", Short: 'X', On: opt.Sacct, Help: "only the jobs, no steps",
		Set: func(o *sacctOptions, _ string) error { o.jobsOnly = true; return nil },
	},
	{
		Long: "verbose", Short: 'v', On: opt.Sacct, Help: "tell what is asked for",
		Set: func(*sacctOptions, string) error { return nil },
	},
	{Long: "version", Short: 'V', On: opt.Sacct, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Sacct, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sacct, Group: opt.HelpGroup, Help: "print a short help"},
}

// Sacct prints history.
func Sacct(sys *front.Sys, argv []string) int {
	o := sacctOptions{sys: sys, header: true, delim: "|"}
	rest, code := front.ParseQuery(sys, opt.Sacct, SacctOptions, &o, argv)
	if code >= 0 {
		return code
	}
	if len(rest) > 0 {
		sys.Say("error: Unknown arguments:")
		return sys.Fail(" %s", strings.Join(rest, "\nsacct: error:  "))
	}
	if o.list {
		return o.listFields()
	}
	cols, code := o.columns()
	if code != 0 {
		return code
	}
	if code := o.window(); code != 0 {
		return code
	}
	if code := o.checkCompletion(); code != 0 {
		return code
	}
	o.tell()
	if _, code := sys.OwnCluster(o.clusters); code >= 0 {
		return code
	}
	if code := o.checkQOS(); code != 0 {
		return code
	}
	if o.script || o.env {
		return o.printScripts()
	}
	o.complete(cols)
	resp, err := front.History(sys, o.query)
	if err != nil {
		text, _ := front.ErrorText(err)
		return sys.Fail("%s", text)
	}
	if len(o.assocs) > 0 {
		resp.Records = slices.DeleteFunc(resp.Records, func(h api.JobHistory) bool {
			return !slices.Contains(o.assocs, front.UintText(uint32(h.Job.Assoc)))
		})
	}
	all := o.federal(placed{sys, "", &resp})
	if o.data.On {
		return o.printData(all)
	}
	o.print(cols, all)
	return 0
}

// complete has the query ask for what the columns show.
func (o *sacctOptions) complete(cols []sizedColumn) {
	named := len(o.query.Users) > 0 || o.all || o.byJob
	if !named && o.sys.UID != 0 {
		o.query.Users = []uint32{o.sys.UID}
	}
	if o.query.Minutes.Min > 0 {
		o.query.Minutes.Max = o.maxMinutes
	}
	ofSteps := func(c sizedColumn) bool { return c.name == "Verdict" || c.name == "BlameNode" }
	o.query.Steps = !o.jobsOnly || slices.ContainsFunc(cols, ofSteps)
	o.query.Brief = !o.data.On && !slices.ContainsFunc(cols, func(c sizedColumn) bool { return !c.brief() })
}

// placed is what a cluster has said.
type placed struct {
	sys   *front.Sys
	place string // its name, where there are several
	resp  *api.HistoryResponse
}

// dropRevoked leaves out what another cluster of the federation has run, unless every record is asked for.
func (o *sacctOptions) dropRevoked(resp *api.HistoryResponse) {
	if o.query.Duplicates || len(o.states) > 0 {
		return
	}
	resp.Records = slices.DeleteFunc(resp.Records, func(h api.JobHistory) bool {
		return show.StateOf(h.Job).Short == "RV"
	})
}

// federal asks all clusters of the federation, if they are meant.
func (o *sacctOptions) federal(here placed) (all []placed) {
	o.dropRevoked(here.resp)
	if !o.fed.Wants(o.clusters, here.resp.Federal) {
		return []placed{here}
	}
	members := here.sys.Members()
	if members == nil {
		return []placed{here}
	}
	for _, one := range members {
		there := placed{one, one.Named(), here.resp}
		if one.Remote() {
			resp, err := front.History(one, o.query)
			if err != nil {
				one.MemberFailed(err)
				continue
			}
			o.dropRevoked(&resp)
			there.resp = &resp
		}
		all = append(all, there)
	}
	return all
}

// checkCompletion refuses -c where nothing records how jobs end, beside history.
func (o *sacctOptions) checkCompletion() int {
	if !o.completion || o.script || o.env {
		return 0
	}
	conf, err := front.Call(o.sys, api.ShowCluster, api.Empty{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return o.sys.Fail("%s", text)
	}
	if conf.Config.JobComp.Kind == "" {
		fmt.Fprintln(o.sys.Stderr, "Slurm job completion is disabled")
		return 1
	}
	return 0
}

// checkQOS refuses names of QOS that are not there.
func (o *sacctOptions) checkQOS() int {
	if len(o.query.QOS) == 0 {
		return 0
	}
	books, err := front.Call(o.sys, api.ListBooks, api.AfterQuery{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return o.sys.Fail("%s", text)
	}
	var names []string
	for _, q := range books.QOS {
		names = append(names, q.Name)
	}
	for _, name := range o.query.QOS {
		if name != "" && !slices.Contains(names, name) {
			o.sys.Say("error: You gave a bad qos '%s'. Valid QOS's are %s", name, strings.Join(names, ","))
			o.sys.Say("fatal: problem processing qos list")
			return 1
		}
	}
	return 0
}

func (o *sacctOptions) listFields() int {
	w := bufio.NewWriter(o.sys.Stdout)
	for i, c := range acctColumns {
		last := (i+1)%4 == 0 || i+1 == len(acctColumns)
		fmt.Fprintf(w, "%-19s%s", c.name, front.Choose(last, "\n", " "))
	}
	return front.BoolInt(w.Flush() != nil)
}

// sizedColumn is a column with the width asked for.
type sizedColumn struct {
	*acctColumn
	width int
	use   func(*stepUse) string // what a step used; nil: the field tells something else
}

func (c *acctColumn) sized(width int) sizedColumn {
	return sizedColumn{c, width, usageField(c.name)}
}

// brief reports whether brief records tell the field.
func (c *sizedColumn) brief() bool {
	return c.use != nil || strings.Contains(briefFields, " "+c.name+" ")
}

// cell is the field of a row. A step's usage is known with its end.
func (c *sizedColumn) cell(r *acctRow) string {
	if r.Job.Imported != nil {
		if text, ok := r.imported().Field(c.name); ok {
			return text
		}
	}
	switch {
	case r.step == nil:
		return c.job(r)
	case c.use != nil && r.step.Ended.IsZero():
		return front.Choose(strings.HasPrefix(c.name, "ConsumedEnergy"), "0", "")
	case c.use != nil:
		return c.use(&stepUse{Step: r.step, raw: r.View.Raw, unit: r.View.Unit})
	case c.step != nil:
		return c.step(r)
	}
	return ""
}

// columns reads -o: names with an optional %width, negative to justify left.
func (o *sacctOptions) columns() (cols []sizedColumn, code int) {
	spec := o.format
	switch {
	case spec != "":
	case o.brief:
		spec = sacctBrief
	case o.long:
		spec = sacctLong
	default:
		spec = sacctDefault
	}
	for _, word := range front.SplitList(spec) {
		name, width, sized := strings.Cut(strings.TrimSpace(word), "%")
		if strings.EqualFold(name, "ALL") {
			for i := range acctColumns {
				cols = append(cols, acctColumns[i].sized(acctColumns[i].width))
			}
			continue
		}
		i := slices.IndexFunc(acctColumns[:], func(c acctColumn) bool { return strings.EqualFold(c.name, name) })
		if i < 0 { // an unambiguous beginning will do
			i = slices.IndexFunc(acctColumns[:], func(c acctColumn) bool {
				return name != "" && len(c.name) > len(name) && strings.EqualFold(c.name[:len(name)], name)
			})
		}
		if i < 0 {
			return nil, o.sys.Fail("Invalid field requested: \"%s\"", name)
		}
		c := acctColumns[i].sized(acctColumns[i].width)
		if n, err := strconv.Atoi(width); sized && err == nil {
			c.width = n
		}
		cols = append(cols, c)
	}
	return cols, 0
}

// window settles which time is looked at: without -j or -S since midnight, with -s and no end only the moment of -S,
// or now.
func (o *sacctOptions) window() int {
	now := o.sys.Now()
	parse := func(text, long string, to *time.Time) int {
		if text == "" {
			return 0
		}
		t, pos, ok := values.ParsePast(text, now)
		if sec, isUTS := strings.CutPrefix(text, "uts"); isUTS {
			n, err := strconv.ParseInt(sec, 10, 64)
			t, ok = time.Unix(n, 0), err == nil
		}
		if !ok {
			fmt.Fprintf(o.sys.Stderr, "Invalid time specification (pos=%d): %s\n", pos, text)
			return 1
		}
		*to = t
		return 0
	}
	if parse(o.from, "starttime", &o.query.From)+parse(o.to, "endtime", &o.query.To) > 0 {
		return 1
	}
	for _, s := range o.states {
		st, ok := historyState(s)
		if slices.Contains(strings.Fields(unaccountedStates), strings.ToUpper(s)) {
			o.sys.Say("fatal: job state %s is not supported / accounted", s)
			return 1
		}
		if !ok {
			fmt.Fprintf(o.sys.Stderr, "sacct: fatal: unrecognized job state value '%s'\n", s)
			return 1
		}
		o.query.States = append(o.query.States, st...)
	}
	if o.from == "" && !o.byJob {
		y, m, d := now.Date()
		o.query.From = time.Date(y, m, d, 0, 0, 0, 0, now.Location())
		if len(o.states) > 0 {
			o.query.From = now
		}
	}
	if len(o.states) > 0 && o.to == "" {
		o.query.To = o.query.From
	}
	to := o.query.To
	if to.IsZero() {
		to = now
	}
	if o.query.From.After(to) {
		return o.sys.Fail("Start time (%s) requested is after end time (%s).",
			front.Stamp(o.query.From), front.Stamp(to))
	}
	return 0
}

// tell tells with -v of which jobs, and of which time, the answer is.
func (o *sacctOptions) tell() {
	if !o.sys.Tells(front.Told) {
		return
	}
	date := func(t time.Time) string {
		if t.IsZero() {
			return "Epoch 0"
		}
		return t.Local().Format("Mon Jan 02 15:04:05 2006")
	}
	which, to := "Eligible", o.query.To
	if to.IsZero() {
		to = o.sys.Now()
	}
	if len(o.states) > 0 {
		which = strings.ToUpper(strings.Join(o.states, ","))
	}
	o.sys.Say("Jobs %s in the time window from %s to %s", which, date(o.query.From), date(to))
}

// unaccountedStates are those that history does not keep.
const unaccountedStates = "CF CONFIGURING CG COMPLETING SE SPECIAL_EXIT SI SIGNALING ST STOPPED " +
	"SO STAGE_OUT RF REQUEUE_FED RD RESV_DEL_HOLD RH REQUEUE_HOLD"

// historyState finds the phases and outcomes that a state's name stands for.
func historyState(name string) ([]api.HistoryState, bool) {
	for _, s := range show.JobStates() {
		if s.Short == "ST" || s.Short == "SO" { // history has no such state
			continue
		}
		if !strings.EqualFold(s.Short, name) && !strings.EqualFold(s.Long, name) {
			continue
		}
		var out []api.HistoryState
		for p := cluster.Pending; p < cluster.Ended; p++ {
			if s.Is(&cluster.Job{Phase: p}) && s.Long != "REQUEUED" {
				out = append(out, api.HistoryState{Phase: p})
			}
		}
		if s.Long == "RUNNING" {
			out = append(out, api.HistoryState{Phase: cluster.Ending}) // and will wait again
		}
		for _, oc := range cluster.Outcomes() {
			if out == nil && oc.State() == s.Long {
				out = append(out, api.HistoryState{Phase: cluster.Ended, Outcome: oc})
			}
		}
		return out, true
	}
	return nil, false
}

// rows makes the lines of one record: the job, then its steps.
func (o *sacctOptions) rows(v *show.View, rec *api.JobHistory) []acctRow {
	rows := []acctRow{{JobRow: show.JobRow{Job: rec.Job, View: v}, why: show.VerdictOf(rec.Job, rec.Steps)}}
	rows[0].steps = rec.Steps
	for _, s := range rec.Steps {
		rows[0].total.UserCPU += s.Usage.UserCPU
		rows[0].total.SystemCPU += s.Usage.SystemCPU
		energy, _ := s.Usage.Measured(cluster.MeasuredEnergy, false)
		rows[0].joule += energy.Tot
		if len(s.Shares) > 0 || s.Imported != nil {
			rows = append(rows, acctRow{JobRow: show.JobRow{Job: rec.Job, View: v}, step: s, steps: rec.Steps})
		}
	}
	slices.SortStableFunc(rows[1:], func(a, b acctRow) int { // batch, extern, then the others as they came
		return cmp.Compare(min(a.step.ID.Step, 0), min(b.step.ID.Step, 0))
	})
	return rows
}

func (o *sacctOptions) print(cols []sizedColumn, all []placed) {
	w := bufio.NewWriterSize(o.sys.Stdout, 1<<16)
	defer w.Flush()
	if o.header {
		cells := make([]string, len(cols))
		for i, c := range cols {
			cells[i] = c.name
			if o.parse == 0 { // a header is cut without a mark
				cells[i] = c.name[:min(len(c.name), max(c.width, -c.width))]
			}
		}
		o.line(w, cols, cells)
		if o.parse == 0 {
			for _, c := range cols {
				w.WriteString(strings.Repeat("-", max(c.width, -c.width)))
				w.WriteByte(' ')
			}
			w.WriteByte('\n')
		}
	}
	times := show.TimeFormat(o.sys)
	for _, one := range all {
		v := &show.View{Sys: one.sys, Place: one.place, Now: one.resp.Now, Raw: o.raw, Unit: o.unit,
			TimeFmt: times}
		o.printRecords(w, v, cols, one.resp)
	}
}

// oldFirst orders the jobs of Slurm clusters as these did, before those of this one, which stay as they are.
func oldFirst(a, b api.JobHistory) int {
	if a.Job.Imported == nil || b.Job.Imported == nil {
		return front.BoolInt(a.Job.Imported == nil) - front.BoolInt(b.Job.Imported == nil)
	}
	return imported.Order(a.Job, b.Job)
}

// printRecords prints what one cluster has said.
func (o *sacctOptions) printRecords(w *bufio.Writer, v *show.View, cols []sizedColumn, resp *api.HistoryResponse) {
	cells := make([]string, len(cols))
	slices.SortStableFunc(resp.Records, oldFirst)
	for i := range resp.Records {
		for _, row := range o.split(o.rows(v, &resp.Records[i])) {
			if !o.shows(&row) {
				continue
			}
			for k := range cols {
				cells[k] = o.plain(&row, cols[k].cell(&row))
			}
			o.line(w, cols, cells)
		}
	}
}

// plain is a cell that stays on its line. Programs that read what Slurm wrote of its own jobs get the same bytes.
func (o *sacctOptions) plain(r *acctRow, text string) string {
	exact := o.parse != 0 && r.Job.Imported != nil
	return front.Choose(exact, text, cluster.PlainLine(text))
}

// split makes a line of each task that waits, with --array.
func (o *sacctOptions) split(rows []acctRow) []acctRow {
	job := rows[0].Job
	if !o.perTask || job.Tasks.Empty() {
		return rows
	}
	var out []acctRow
	for task := range job.Tasks.All() {
		one := *job
		one.Task, one.Tasks = task, cluster.IDSet{}
		row := rows[0]
		row.JobRow = show.JobRow{Job: &one, View: row.View}
		out = append(out, row)
	}
	return append(out, rows[1:]...)
}

// line writes the cells; one that is too long is cut and ends in +.
func (o *sacctOptions) line(w *bufio.Writer, cols []sizedColumn, cells []string) {
	for i, cell := range cells {
		if o.parse != 0 {
			if i > 0 {
				w.WriteString(o.delim)
			}
			w.WriteString(cell)
			continue
		}
		width := max(cols[i].width, -cols[i].width)
		if n := len(cell); n > width {
			if width > 0 {
				w.WriteString(cell[:width-1])
				w.WriteByte('+')
			}
		} else if cols[i].width < 0 {
			w.WriteString(cell)
			w.WriteString(strings.Repeat(" ", width-n))
		} else {
			w.WriteString(strings.Repeat(" ", width-n))
			w.WriteString(cell)
		}
		w.WriteByte(' ')
	}
	if o.parse == 1 {
		w.WriteString(o.delim)
	}
	w.WriteByte('\n')
}

// printScripts prints the stored script of the jobs, as long as the servers have it.
func (o *sacctOptions) printScripts() int {
	what, title := "scripts", "Batch Script for %d\n%s\n"
	if o.env {
		what, title = "environment", "Environment used for %d (must be batch to display)\n%s\n"
	}
	if !o.byJob {
		fmt.Fprintf(o.sys.Stderr,
			"sacct: fatal: When requesting job %s you must also request specific jobs with the '-j' option.\n",
			what)
		return 1
	}
	for _, r := range o.query.Refs {
		resp, err := front.Call(o.sys, api.JobScript, api.ScriptRequest{Job: r.Job, Env: o.env})
		switch {
		case front.IsKind(err, cluster.ErrJobID), front.IsKind(err, cluster.ErrAccess):
			continue
		case err != nil:
			resp.Script = cluster.BlobText("NONE")
		}
		text := strings.TrimRight(strings.ReplaceAll(string(resp.Script), "\x00", "\n"), "\n")
		fmt.Fprintf(o.sys.Stdout, title+"%s\n\n", r.Job, strings.Repeat("-", 80), text)
	}
	return 0
}
