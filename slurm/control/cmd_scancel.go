package control

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/federation"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// cancelOptions is what scancel's line asks for.
type cancelOptions struct {
	filter      api.JobQuery
	signal      int
	batch, full bool
	interactive bool
	quiet, cron bool
	me          bool
	clusters    string
	filters     []string // for -v: name=value
	sibling     string   // --sibling, and its number
	siblingID   federation.ID
	hurry       bool
	reservation string
	wckey       string
	comment     *string  // --admin-comment
	badFlags    []string // what is wrong with variables that stand for flags
}

// ScancelOptions are the options of scancel.
var ScancelOptions = []opt.Option[cancelOptions]{
	{Long: "account", Short: 'A', Arg: opt.Required, On: opt.Scancel, Env: "ACCOUNT",
		Help: "act only on jobs charging this account", Meta: "account",
		Set: func(o *cancelOptions, v string) error {
			o.filter.Accounts = []string{v}
			o.note("account", v)
			return nil
		}},
	{Long: "admin-comment", Arg: opt.Required, On: opt.Scancel, Newer: true, Meta: "text",
		Help: "set the job's AdminComment first; operators only",
		Set:  func(o *cancelOptions, v string) error { o.comment = &v; return nil }},
	{Long: "batch", Short: 'b', On: opt.Scancel, Env: "BATCH", Help: "signal the batch shell only",
		Set: func(o *cancelOptions, v string) error { return setCancelFlag(o, &o.batch, "BATCH", v) }},
	{Long: "cron", Short: 'c', On: opt.Scancel, Env: "CRON", Newer: true,
		Help: "confirm to end all runs of a job of scrontab",
		Set:  func(o *cancelOptions, _ string) error { o.cron = true; return nil }},
	{Long: "full", Short: 'f', On: opt.Scancel, Env: "FULL", Help: "signal the batch shell and all steps",
		Set: func(o *cancelOptions, v string) error { return setCancelFlag(o, &o.full, "FULL", v) }},
	{Long: "hurry", Short: 'H', On: opt.Scancel, Env: "HURRY", Help: "stage nothing out of burst buffers",
		Set: func(o *cancelOptions, _ string) error { o.hurry = true; return nil }},
	{Long: "interactive", Short: 'i', On: opt.Scancel, Env: "INTERACTIVE", Help: "ask before each job",
		Set: func(o *cancelOptions, v string) error { return setCancelFlag(o, &o.interactive, "INTERACTIVE", v) }},
	{Long: "me", On: opt.Scancel, Help: "act only on own jobs",
		Set: func(o *cancelOptions, _ string) error { o.me = true; return nil }},
	{Long: "name", Short: 'n', Arg: opt.Required, On: opt.Scancel, Env: "NAME",
		Help: "act only on jobs of this name", Meta: "job_name",
		Set: func(o *cancelOptions, v string) error {
			o.filter.Names = front.FilterList(v)
			o.note("job_name", v)
			return nil
		}},
	{Long: "jobname", Arg: opt.Required, On: opt.Scancel, Alias: "name"},
	{Long: "nodelist", Short: 'w', Arg: opt.Required, On: opt.Scancel,
		Help: "act only on jobs on these nodes", Meta: "nodes",
		Set: func(o *cancelOptions, v string) error { return front.SetNodes(&o.filter.Nodes, v) }},
	{Long: "partition", Short: 'p', Arg: opt.Required, On: opt.Scancel, Env: "PARTITION",
		Help: "act only on jobs of this partition", Meta: "partition",
		Set: func(o *cancelOptions, v string) error {
			o.filter.Partitions = front.FilterList(v)
			o.note("partition", v)
			return nil
		}},
	{Long: "qos", Short: 'q', Arg: opt.Required, On: opt.Scancel, Env: "QOS",
		Help: "act only on jobs with this QOS", Meta: "qos",
		Set: func(o *cancelOptions, v string) error {
			o.filter.QOS = front.FilterList(v)
			o.note("qos", v)
			return nil
		}},
	{Long: "quiet", Short: 'Q', On: opt.Scancel, Help: "no messages",
		Set: func(o *cancelOptions, _ string) error { o.quiet = true; return nil }},
	{Long: "reservation", Short: 'R', Arg: opt.Required, On: opt.Scancel,
		Help: "act only on jobs in this reservation", Meta: "name",
		Set: func(o *cancelOptions, v string) error {
			o.reservation = v
			o.note("reservation", v)
			return nil
		}},
	{Long: "signal", Short: 's', Arg: opt.Required, On: opt.Scancel,
		Help: "signal to send instead of ending the job", Meta: "name | number",
		Set: setCancelSignal},
	{Long: "state", Short: 't', Arg: opt.Required, On: opt.Scancel, Env: "STATE",
		Help: "act only on jobs in this state", Meta: "states", Set: setCancelState},
	{Long: "user", Short: 'u', Arg: opt.Required, On: opt.Scancel, Env: "USER",
		Help: "act only on jobs of this user", Meta: "user_name", Set: setCancelUser},
	{Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.Scancel, Env: "scancel=SLURM_CLUSTERS",
		Help: "clusters to act on", Meta: "names",
		Set: func(o *cancelOptions, v string) error { return opt.SetClusters(v, &o.clusters) }},
	{Long: "ctld", On: opt.Scancel, Help: "no effect: signals always travel by the servers",
		Set: func(*cancelOptions, string) error { return nil }},
	{Long: "sibling", Arg: opt.Required, On: opt.Scancel, Meta: "name",
		Help: "have jobs that wait not run at this cluster of the federation",
		Set:  func(o *cancelOptions, v string) error { o.sibling = v; return nil }},
	{Long: "wckey", Arg: opt.Required, On: opt.Scancel, Env: "WCKEY",
		Help: "act only on jobs with this key", Meta: "wckey",
		Set: func(o *cancelOptions, v string) error {
			o.wckey = v
			o.note("wckey", v)
			return nil
		}},
	{Long: "verbose", Short: 'v', On: opt.Scancel, Env: "VERBOSE", Help: "more messages",
		Set: func(o *cancelOptions, v string) error { return setCancelFlag(o, new(bool), "VERBOSE", v) }},
	{Long: "version", Short: 'V', On: opt.Scancel, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", On: opt.Scancel, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Scancel, Group: opt.HelpGroup, Help: "print a short help"},
}

func (o *cancelOptions) note(name, value string) { o.filters = append(o.filters, name+"="+value) }

// setCancelFlag sets a flag. Its variable is true or false: another word is told and changes nothing.
func setCancelFlag(o *cancelOptions, to *bool, variable, v string) error {
	switch {
	case v == "", strings.EqualFold(v, "true"):
		*to = true
	case strings.EqualFold(v, "false"):
		*to = false
	default:
		o.badFlags = append(o.badFlags, "Unrecognized SCANCEL_"+variable+" value: "+v)
	}
	return nil
}

func setCancelSignal(o *cancelOptions, v string) error {
	if o.signal = values.SignalNumber(v); o.signal <= 0 {
		return opt.Errorf(opt.CodeError, "Unknown job signal: %s", v)
	}
	return nil
}

func setCancelState(o *cancelOptions, v string) error {
	o.filter.Phases = nil
	for _, s := range strings.Split(v, ",") {
		switch strings.ToUpper(s) {
		case "PENDING", "PD":
			o.filter.Phases = append(o.filter.Phases, cluster.Pending)
		case "RUNNING", "R":
			o.filter.Phases = append(o.filter.Phases, cluster.Starting, cluster.Running)
		case "SUSPENDED", "S":
			o.filter.Phases = append(o.filter.Phases, cluster.Suspended)
		default:
			return &opt.UsageError{Code: 1, Lines: []string{"Invalid job state specified: " + s,
				"Valid job states are PENDING, RUNNING, and SUSPENDED"}}
		}
	}
	o.note("state", v)
	return nil
}

func setCancelUser(o *cancelOptions, v string) error {
	u, ok := front.LookupUser(v)
	if !ok {
		return opt.Errorf(opt.CodeError, "scancel: error: Invalid user name: %s", v)
	}
	o.filter.Users = []uint32{u.UID}
	o.note("user_name", v)
	return nil
}

// Scancel ends or signals jobs and steps.
func Scancel(sys *front.Sys, argv []string) int {
	var o cancelOptions
	rest, code := front.ParseQuery(sys, opt.Scancel, ScancelOptions, &o, argv)
	if code >= 0 {
		return code
	}
	for _, text := range o.badFlags {
		sys.Say("error: %s", text)
	}
	if _, code := sys.OwnCluster(o.clusters); code >= 0 {
		return code
	}
	if code := findSibling(sys, &o); code != 0 {
		return code
	}
	if o.me {
		o.filter.Users = []uint32{sys.UID}
	}
	var targets []front.Target
	for _, w := range rest {
		for _, one := range front.SplitOutside(w) {
			t, ok := front.ParseTarget(one)
			if !ok {
				return sys.Fail("Invalid job id %s", one)
			}
			targets = append(targets, t)
		}
	}
	filtered := len(o.filters) > 0 || o.me || len(o.filter.Nodes) > 0
	if len(targets) == 0 && !filtered {
		sys.Say("error: No job identification provided")
		return 1
	}
	if filtered || o.interactive {
		return cancelMatching(sys, &o, targets)
	}
	return cancelAll(sys, &o, targets)
}

// findSibling looks up the number of the cluster that --sibling names.
func findSibling(s *front.Sys, o *cancelOptions) int {
	if o.sibling == "" {
		return 0
	}
	resp, err := front.Call(s, api.ShowFederation, api.AfterQuery{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return s.Fail("%s", text)
	}
	if resp.Record != nil {
		for _, m := range resp.Record.Members {
			if strings.EqualFold(m.Name, o.sibling) {
				o.siblingID = m.ID
				return 0
			}
		}
	}
	return s.Fail("--sibling=%s: no such cluster is in the federation of this one: scontrol show federation", o.sibling)
}

// cancelsAtOnce is how many calls are under way together: servers write down together what comes together.
const cancelsAtOnce = 32

// cancelAll ends or signals many; what there is to say of them is said in their order.
func cancelAll(s *front.Sys, o *cancelOptions, targets []front.Target) int {
	worst := 0
	for some := range slices.Chunk(targets, cancelsAtOnce) {
		errs := make([]error, len(some))
		var calls sync.WaitGroup
		for i, t := range some {
			calls.Go(func() { errs[i] = cancelOne(s, o, t) })
		}
		calls.Wait()
		for i, t := range some {
			worst = max(worst, sayCancelled(s, o, t, errs[i]))
		}
	}
	return worst
}

// cancelOne ends or signals one. A job that waits has no batch shell yet: what would kill that ends the job.
func cancelOne(s *front.Sys, o *cancelOptions, t front.Target) error {
	q := o.command(t)
	if err := o.writeComment(s, q.Ref); err != nil {
		return err
	}
	_, err := front.Call(s, api.CancelJob, q)
	if q.Sig == 9 && q.Step == nil && front.IsKind(err, cluster.ErrPending) {
		q.Sig = 0
		q.Scope = 0
		_, err = front.Call(s, api.CancelJob, q)
	}
	return err
}

// writeComment sets a job's AdminComment, as --admin-comment asks.
func (o *cancelOptions) writeComment(s *front.Sys, job cluster.Ref) error {
	if o.comment == nil {
		return nil
	}
	patch := cluster.UpdateJob{
		Ref:   job,
		Patch: cluster.Patch{AdminComment: o.comment},
	}
	_, err := front.Call(s, api.UpdateJob, patch)
	return err
}

// command is what the servers are to do with a target.
func (o *cancelOptions) command(t front.Target) cluster.Cancel {
	q := cluster.Cancel{Ref: t.Ref, Sig: o.signal, Step: t.Step, Cron: o.cron, Sibling: o.siblingID, Hurry: o.hurry}
	switch {
	case o.batch && o.full:
		q.Scope = cluster.SignalBatchFull
	case o.batch:
		q.Scope = cluster.SignalBatchShell
	case o.full:
		q.Scope = cluster.SignalFull
	case o.signal == 9:
		q.Sig = 0
	}
	if (o.batch || o.full) && q.Sig == 0 {
		q.Sig = 9
	}
	if t.Ref.Part == 1 && t.Step == nil { // the leader stands for all
		q.Ref.Part = 0
	}
	return q
}

// tells is what -v says of a target: what becomes of it, as Slurm words it.
func (o *cancelOptions) tells(t front.Target, id string) string {
	what := "job " + id
	switch {
	case t.Step != nil:
		what = fmt.Sprintf("step %s.%d", id, *t.Step)
	case o.full:
		what = "full job " + id
	case o.batch:
		what = "batch job " + id
	case !t.Ref.Tasks.Empty() && t.Ref.Tasks.Len() == 1:
		what += "_" + t.Ref.Tasks.String()
	case !t.Ref.Tasks.Empty():
		what += "_[" + t.Ref.Tasks.String() + "]"
	}
	if o.signal == 0 || o.signal == 9 {
		return "Terminating " + what
	}
	return fmt.Sprintf("Signal %d to %s", o.signal, what)
}

// sayCancelled tells how it went with a target, and what that makes of the exit status.
func sayCancelled(s *front.Sys, o *cancelOptions, t front.Target, err error) int {
	id := strconv.FormatUint(uint64(t.Ref.Job), 10)
	if t.Ref.Part > 0 {
		id += "+" + strconv.Itoa(t.Ref.Part-1)
	}
	s.Tell(front.Told, "%s", o.tells(t, id))
	if err == nil || t.Step != nil && front.IsKind(err, cluster.ErrPending) {
		return 0
	}
	text, no := front.ErrorText(err)
	gone := front.IsKind(err, cluster.ErrJobID) || front.IsKind(err, cluster.ErrFinished)
	switch {
	case gone && t.Step == nil && (o.signal != 0 || o.batch): // Slurm is silent about jobs that are only to end
		return sayUnsignalled(s, o, t, id)
	case gone && t.Step == nil:
		if s.Tells(front.Told) {
			s.Say("error: Kill job error on job id %s: %s", id, text)
		} else if front.OnTerminal(s.Stderr) && !o.quiet { // Slurm is silent, for scripts
			s.Say("why: nothing to cancel: %v", err)
		}
		return 0
	case errors.Is(err, api.ErrUnreachable):
		return s.Fail("%s", text)
	case gone:
		if !o.quiet {
			s.Say("error: Kill job error on job step id %s.%d: %s", id, *t.Step, text)
		}
		return 1
	}
	if !o.quiet {
		s.Say("error: Kill job error on job id %s: %s", id, text)
	}
	return max(no%256, 1)
}

// sayUnsignalled tells of jobs and tasks that are not there to get a signal.
func sayUnsignalled(s *front.Sys, o *cancelOptions, t front.Target, id string) int {
	names := []string{id}
	if !t.Ref.Tasks.Empty() {
		names = nil
		for k := range t.Ref.Tasks.All() {
			names = append(names, id+"_"+strconv.Itoa(k))
		}
	}
	for _, name := range names {
		if !o.quiet {
			s.Say("error: Kill job error on job id %s: Invalid job id specified", name)
		}
	}
	return 1
}

// cancelMatching ends the jobs that all filters select, asking first with -i. The servers know who may: operators,
// coordinators of the job's account and its user.
func cancelMatching(s *front.Sys, o *cancelOptions, targets []front.Target) int {
	for _, t := range targets {
		o.filter.Refs = append(o.filter.Refs, t.Ref)
	}
	if len(o.filter.Phases) == 0 {
		o.filter.Phases = []cluster.Phase{
			cluster.Pending, cluster.Starting, cluster.Running, cluster.Suspended, cluster.Ending,
		}
	}
	o.filter.Brief = o.reservation == "" && o.wckey == "" // which a brief answer does not hold
	resp, err := front.Call(s, api.ListJobs, o.filter)
	if err != nil {
		text, _ := front.ErrorText(err)
		return s.Fail("%s", text)
	}
	resp.Jobs = slices.DeleteFunc(resp.Jobs, func(j *cluster.Job) bool { return !o.selects(j.Spec) })
	in := bufio.NewReader(s.Stdin)
	worst := 0
	var chosen []front.Target
	for _, j := range resp.Jobs {
		for _, t := range targetsOf(j, targets) {
			if o.interactive && !agreesToCancel(s, in, j, t) {
				continue
			}
			chosen = append(chosen, t)
			if o.interactive { // who says yes means now
				worst = max(worst, cancelAll(s, o, chosen))
				chosen = nil
			}
		}
	}
	if len(resp.Jobs) == 0 && s.Tells(front.Told) {
		s.Say("error: No active jobs match ALL job filters, including: %s ", strings.Join(o.filters, " "))
	}
	return max(worst, cancelAll(s, o, chosen))
}

// selects reports whether a job passes the filters that the servers do not know.
func (o *cancelOptions) selects(spec *cluster.JobSpec) bool {
	if o.reservation != "" && o.reservation != spec.Reservation {
		return false
	}
	return o.wckey == "" || o.wckey == strings.TrimPrefix(spec.WCKey, "*")
}

// targetsOf is what of a job that was selected is to be cancelled: the steps that were named, else the job.
func targetsOf(j *cluster.Job, named []front.Target) []front.Target {
	t := front.Target{Ref: cluster.Ref{Job: j.ID}}
	if j.ArrayID == j.ID && j.Task != cluster.TaskAny {
		t.Ref.Tasks = cluster.NewIDSet(j.Task)
	} else if j.ArrayID == j.ID {
		t.Ref.Tasks = j.Tasks
	}
	var steps []front.Target
	for _, n := range named {
		ofTask := n.Ref.Job == j.ArrayID && j.Task >= 0 && n.Ref.Tasks.Has(j.Task)
		if n.Step != nil && (n.Ref.Job == j.ID || ofTask) {
			steps = append(steps, front.Target{Ref: t.Ref, Step: n.Step})
		}
	}
	if steps != nil {
		return steps
	}
	return []front.Target{t}
}

// agreesToCancel asks whether a job, or a step of it, is to be cancelled.
func agreesToCancel(s *front.Sys, in *bufio.Reader, j *cluster.Job, t front.Target) bool {
	what := fmt.Sprintf("job_id=%d", j.ID)
	if t.Step != nil {
		what = fmt.Sprintf("step_id=%d.%d", j.ID, *t.Step)
	}
	fmt.Fprintf(s.Stdout, "Cancel %s name=%s partition=%s [y/n]? ", what, cluster.PlainLine(j.Spec.Name),
		strings.Join(j.Spec.Partitions, ","))
	line, _ := in.ReadString('\n')
	return strings.HasPrefix(strings.ToLower(line), "y")
}
