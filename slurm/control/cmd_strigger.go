package control

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// triggerLine is what strigger's line asks for.
type triggerLine struct {
	set, get, clear bool
	ask             api.TriggerRequest
	nodes           *string // of --node
	job             *cluster.Ref
	id              uint32
	user            string
	quiet, noHeader bool
	clusters        string
}

type triggerOption = opt.Option[triggerLine]

// event is the setter of an option that names an event.
func (o *triggerLine) event(e cluster.TriggerEvent) error {
	if !slices.Contains(o.ask.Events, e) {
		o.ask.Events = append(o.ask.Events, e)
	}
	return nil
}

// equals is why events of one backup server are none of ours.
func equals(o *triggerLine, _ string) error {
	return wrongTrigger("muster's servers are equals, there is no backup: " +
		"--backup_slurmctld_assumed_control tells that another one leads, alerts on muster_raft_* that one is away")
}

// StriggerOptions are the options of strigger.
var StriggerOptions = []triggerOption{
	{Long: "set", On: opt.Strigger, Help: "make a trigger",
		Set: func(o *triggerLine, _ string) error { o.set = true; return nil }},
	{Long: "get", On: opt.Strigger, Help: "show triggers",
		Set: func(o *triggerLine, _ string) error { o.get = true; return nil }},
	{Long: "clear", On: opt.Strigger, Help: "take triggers away",
		Set: func(o *triggerLine, _ string) error { o.clear = true; return nil }},
	{Long: "down", Short: 'd', On: opt.Strigger, Help: "a node is down",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerDown) }},
	{Long: "up", Short: 'u', On: opt.Strigger, Help: "a node is back from being down",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerUp) }},
	{Long: "drained", Short: 'D', On: opt.Strigger, Help: "a node is drained, and no job is on it",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerDrained) }},
	{Long: "draining", On: opt.Strigger, Newer: true, Help: "a node is drained, and jobs are on it",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerDraining) }},
	{Long: "resume", On: opt.Strigger, Newer: true, Help: "a node was set to RESUME",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerResume) }},
	{Long: "fail", Short: 'F', On: opt.Strigger, Help: "a node was set to FAIL",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerFail) }},
	{Long: "idle", Short: 'I', On: opt.Strigger, Help: "a node has been idle for the time of --offset",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerIdle) }},
	{Long: "reconfig", Short: 'r', On: opt.Strigger, Help: "the configuration was read again",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerReconfig) }},
	{Long: "time", Short: 't', On: opt.Strigger, Help: "a job's time limit is reached",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerTime) }},
	{Long: "fini", Short: 'f', On: opt.Strigger, Help: "a job has ended",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerFini) }},
	{Long: "primary_slurmctld_failure", Short: 'a', On: opt.Strigger,
		Help: "the server that led does not lead any more",
		Set:  func(o *triggerLine, _ string) error { return o.event(cluster.TriggerLeaderLost) }},
	{Long: "primary_slurmctld_resumed_operation", Short: 'A', On: opt.Strigger,
		Help: "a server was started and leads",
		Set:  func(o *triggerLine, _ string) error { return o.event(cluster.TriggerLeaderBegins) }},
	{Long: "primary_slurmctld_resumed_control", Short: 'b', On: opt.Strigger,
		Help: "a server that led before leads again",
		Set:  func(o *triggerLine, _ string) error { return o.event(cluster.TriggerLeaderTakes) }},
	{Long: "backup_slurmctld_assumed_control", Short: 'C', On: opt.Strigger, Help: "another server leads",
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerAnotherLeads) }},
	{Long: "backup_slurmctld_failure", Short: 'B', On: opt.Strigger, Hidden: true, Set: equals},
	{Long: "backup_slurmctld_resumed_operation", Short: 'c', On: opt.Strigger, Hidden: true, Set: equals},
	{Long: "primary_slurmctld_acct_buffer_full", Short: 'e', On: opt.Strigger, Help: never,
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerAcctFull) }},
	{Long: "primary_slurmdbd_failure", Short: 'g', On: opt.Strigger, Help: never,
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerDbdLost) }},
	{Long: "primary_slurmdbd_resumed_operation", Short: 'G', On: opt.Strigger, Help: never,
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerDbdBack) }},
	{Long: "primary_database_failure", Short: 'h', On: opt.Strigger, Help: never,
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerDatabaseLost) }},
	{Long: "primary_database_resumed_operation", Short: 'H', On: opt.Strigger, Help: never,
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerDatabaseBack) }},
	{Long: "burst_buffer", On: opt.Strigger, Help: never,
		Set: func(o *triggerLine, _ string) error { return o.event(cluster.TriggerBurstBuffer) }},
	{Long: "flags", Arg: opt.Required, On: opt.Strigger, Meta: "flag",
		Help: "PERM: the trigger stays when it was met",
		Set:  setTriggerFlags},
	{Long: "id", Short: 'i', Arg: opt.Required, On: opt.Strigger, Meta: "id", Help: "a trigger's number",
		Set: setTriggerID},
	{Long: "jobid", Short: 'j', Arg: opt.Required, On: opt.Strigger, Meta: "id", Help: "the job that it is about",
		Set: setTriggerJob},
	{Long: "node", Short: 'n', Arg: opt.Optional, On: opt.Strigger, Meta: "host",
		Help: "the nodes that it is about: all",
		Set:  func(o *triggerLine, v string) error { o.nodes = &v; return front.SetNodes(&o.ask.Nodes, v) }},
	{Long: "offset", Short: 'o', Arg: opt.Required, On: opt.Strigger, Meta: "seconds",
		Help: "how long after the event the program runs, before it if negative", Set: setTriggerOffset},
	{Long: "program", Short: 'p', Arg: opt.Required, On: opt.Strigger, Meta: "path",
		Help: "what is run, on the server that leads",
		Set:  func(o *triggerLine, v string) error { o.ask.Program = v; return nil }},
	{Long: "user", Arg: opt.Required, On: opt.Strigger, Meta: "user", Help: "only triggers of this user",
		Set: func(o *triggerLine, v string) error { o.user = v; return nil }},
	{Long: "noheader", Short: 'N', On: opt.Strigger, Help: "no heading",
		Set: func(o *triggerLine, _ string) error { o.noHeader = true; return nil }},
	{Long: "quiet", Short: 'Q', On: opt.Strigger, Help: "no errors for triggers that are gone",
		Set: func(o *triggerLine, _ string) error { o.quiet = true; return nil }},
	{Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.Strigger, Meta: "name", Help: "the cluster to ask",
		Set: func(o *triggerLine, v string) error { o.clusters = v; return nil }},
	{Long: "verbose", Short: 'v', On: opt.Strigger, Help: "more messages",
		Set: func(*triggerLine, string) error { return nil }},
	{Long: "version", Short: 'V', On: opt.Strigger, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", On: opt.Strigger, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Strigger, Group: opt.HelpGroup, Help: "print a short help"},
}

// never is what help says of events of daemons that a cluster of muster does not have.
const never = "not applicable: muster has no such event"

// neverEvents are those of what there is not.
var neverEvents = []cluster.TriggerEvent{cluster.TriggerAcctFull, cluster.TriggerDbdLost, cluster.TriggerDbdBack,
	cluster.TriggerDatabaseLost, cluster.TriggerDatabaseBack, cluster.TriggerBurstBuffer}

// wrongTrigger is a mistake in an option, in Slurm's words.
func wrongTrigger(format string, args ...any) error {
	return opt.Errorf(opt.CodeError, "strigger: error: "+format, args...)
}

func setTriggerFlags(o *triggerLine, v string) error {
	for _, f := range front.SplitList(v) {
		if !strings.EqualFold(f, "PERM") {
			return wrongTrigger("Invalid flags %s", v)
		}
		o.ask.Permanent = true
	}
	return nil
}

func setTriggerID(o *triggerLine, v string) error {
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || n == 0 {
		return wrongTrigger("Invalid id %s", v)
	}
	o.id = uint32(n)
	return nil
}

func setTriggerJob(o *triggerLine, v string) error {
	t, ok := front.ParseTarget(v)
	if !ok || t.Step != nil {
		return wrongTrigger("Invalid jobid %s", v)
	}
	o.job = &t.Ref
	return nil
}

func setTriggerOffset(o *triggerLine, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return wrongTrigger("Invalid offset %s: want seconds", v)
	}
	o.ask.Offset = time.Duration(n) * time.Second
	return nil
}

// Strigger sets, shows and clears triggers, which run a program when something happens.
func Strigger(sys *front.Sys, argv []string) int {
	var o triggerLine
	_, code := front.ParseQuery(sys, opt.Strigger, StriggerOptions, &o, argv)
	if code >= 0 {
		return code
	}
	if _, code := sys.OwnCluster(o.clusters); code >= 0 {
		return code
	}
	switch {
	case front.BoolInt(o.set)+front.BoolInt(o.get)+front.BoolInt(o.clear) != 1:
		return triggerError(sys, "You must use exactly one of the following options: --set, --get or --clear")
	case o.set:
		return setTrigger(sys, &o)
	case o.clear:
		return clearTriggers(sys, &o)
	}
	return showTriggers(sys, &o)
}

func triggerError(sys *front.Sys, format string, args ...any) int {
	sys.Say("error: "+format, args...)
	return 1
}

// noTrigger is what Slurm says where no event is named.
const noTrigger = `You must specify a trigger (--down, --up, --reconfig, --time, --fini, --burst_buffer,
--primary_slurmctld_failure,
--primary_slurmctld_resumed_operation,
--primary_slurmctld_resumed_control,
--primary_slurmctld_acct_buffer_full,
--backup_slurmctld_failure,
--backup_slurmctld_resumed_operation,
--backup_slurmctld_as_ctrl,
--primary_slurmdbd_failure,
--primary_slurmdbd_resumed_operation,
--primary_database_failure, or 
--primary_database_resumed_operation)
`

func setTrigger(sys *front.Sys, o *triggerLine) int {
	q := o.ask
	q.Ref = o.job
	ofJob := slices.Contains(q.Events, cluster.TriggerTime) || slices.Contains(q.Events, cluster.TriggerFini)
	switch {
	case len(q.Events) == 0:
		return triggerError(sys, "%s", noTrigger)
	case ofJob && q.Ref == nil:
		return triggerError(sys, "You must specify a --jobid value")
	case q.Program == "":
		return triggerError(sys, "You must specify a --program value")
	case q.Program[0] != '/':
		return triggerError(sys, `The --program value must start with "/"`)
	}
	path := strings.Fields(q.Program)[0]
	switch info, err := os.Stat(path); {
	case err != nil:
		return triggerError(sys, "Invalid --program value, file not found")
	case !info.Mode().IsRegular():
		return triggerError(sys, "Invalid --program value, not regular file")
	case info.Mode()&0o111 == 0:
		return triggerError(sys, "Invalid --program value, file not executable")
	}
	if slices.ContainsFunc(q.Events, func(e cluster.TriggerEvent) bool { return slices.Contains(neverEvents, e) }) {
		sys.Say("note: muster has no slurmdbd, no database and no burst-buffer events: %s never occurs", q.Events[0])
	}
	_, err := front.Call(sys, api.SetTrigger, q)
	return triggerDone(sys, "slurm_set_trigger", err)
}

// triggerDone words the refusal of a call about triggers as Slurm does; why it is denied comes behind.
func triggerDone(sys *front.Sys, call string, err error) int {
	if err == nil {
		return 0
	}
	text, _ := front.ErrorText(err)
	fmt.Fprintf(sys.Stderr, "%s: %s\n", call, text)
	if front.IsKind(err, cluster.ErrAccess) {
		sys.Say("why: %s", err)
	}
	return 1
}

// userOf is the user of --user, nil without one.
func (o *triggerLine) userOf(sys *front.Sys) (uid *uint32, code int) {
	if o.user == "" {
		return nil, -1
	}
	u, ok := front.LookupUser(o.user)
	if !ok {
		return nil, triggerError(sys, "Invalid user %s", o.user)
	}
	return &u.UID, -1
}

func clearTriggers(sys *front.Sys, o *triggerLine) int {
	uid, code := o.userOf(sys)
	switch {
	case code >= 0:
		return code
	case o.id == 0 && o.job == nil && uid == nil:
		return triggerError(sys, "You must specify a --id, --jobid, or --user to clear")
	}
	_, err := front.Call(sys, api.ClearTriggers, api.TriggerClearRequest{ID: o.id, Ref: o.job, UID: uid})
	if o.quiet && front.IsKind(err, cluster.ErrNoTrigger) {
		return 0
	}
	return triggerDone(sys, "slurm_clear_trigger", err)
}

// wants reports whether --get is to show a trigger.
func (o *triggerLine) wants(g *api.TriggerRow, uid *uint32) bool {
	switch {
	case o.id != 0 && g.ID != o.id, o.job != nil && g.Job != o.job.Job, uid != nil && g.UID != *uid:
		return false
	case len(o.ask.Events) > 0 && !slices.ContainsFunc(o.ask.Events, func(e cluster.TriggerEvent) bool {
		return slices.Contains(g.Events, e)
	}):
		return false
	case o.nodes == nil:
		return true
	case g.Kind != cluster.OfNodes:
		return false
	}
	of := func(n cluster.NodeName) bool { return slices.Contains(g.Nodes, n) }
	return len(o.ask.Nodes) == 0 || len(g.Nodes) == 0 || slices.ContainsFunc(o.ask.Nodes, of)
}

// printTrigger prints a line of --get: number, kind, what it is about, events, offset, user, flags, program.
func printTrigger(w io.Writer, columns ...any) {
	fmt.Fprintf(w, "%7v %-9v %7v %-35v %6v %-8v %-5v %v\n", columns...)
}

func showTriggers(sys *front.Sys, o *triggerLine) int {
	uid, code := o.userOf(sys)
	if code >= 0 {
		return code
	}
	r, err := front.Call(sys, api.ListTriggers, api.Empty{})
	if err != nil {
		return triggerDone(sys, "slurm_get_triggers", err)
	}
	if sys.Verbose > 0 {
		sys.Say("Read %d trigger records", len(r.Triggers))
	}
	head := !o.noHeader
	for i := range r.Triggers {
		g := &r.Triggers[i]
		if !o.wants(g, uid) {
			continue
		}
		if head {
			head = false
			printTrigger(sys.Stdout, "TRIG_ID", "RES_TYPE", "RES_ID", "TYPE", "OFFSET", "USER", "FLAGS", "PROGRAM")
		}
		printTrigger(sys.Stdout, g.ID, g.Kind, aboutText(g), eventsText(g.Events), int64(g.Offset/time.Second),
			userText(g.UID), flagsText(g), g.Program)
	}
	return 0
}

// aboutText is the column RES_ID.
func aboutText(g *api.TriggerRow) string {
	switch {
	case g.Job != 0:
		return strconv.FormatUint(uint64(g.Job), 10)
	case len(g.Nodes) > 0:
		return front.NodeText(g.Nodes)
	}
	return "*"
}

// eventsText is the column TYPE; where Slurm says unknown of several events they are named.
func eventsText(list []cluster.TriggerEvent) string {
	var words []string
	for _, e := range list {
		words = append(words, string(e))
	}
	return strings.Join(words, ",")
}

func userText(uid uint32) string {
	if u, ok := front.UserByID(uid); ok {
		return u.Name
	}
	return strconv.FormatUint(uint64(uid), 10)
}

func flagsText(g *api.TriggerRow) string {
	if g.Permanent {
		return "PERM"
	}
	return ""
}
