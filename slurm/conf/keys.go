package conf

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// place is where a key's value goes, and whether scontrol show config has it from there.
type place[T any] struct {
	key   string
	of    func(*cluster.Config) *T
	shown bool
}

// The value that is shown of a key: the active one, or the file's (cluster.Config.Keys).
const (
	shown  = true
	asRead = false
)

// Keys whose value is kept as it stands, is a number, or a number of seconds.
var (
	textKeys = [...]place[string]{
		{"ClusterName", func(c *cluster.Config) *string { return &c.ClusterName }, asRead},
		{"RebootProgram", func(c *cluster.Config) *string { return &c.RebootProgram }, shown},
		{"HealthCheckProgram", func(c *cluster.Config) *string { return &c.HealthCheck.Program }, asRead},
		{"Prolog", func(c *cluster.Config) *string { return &c.Prolog }, asRead},
		{"Epilog", func(c *cluster.Config) *string { return &c.Epilog }, asRead},
		{"PrologSlurmctld", func(c *cluster.Config) *string { return &c.PrologServer }, asRead},
		{"EpilogSlurmctld", func(c *cluster.Config) *string { return &c.EpilogServer }, asRead},
		{"SlurmctldPrimaryOnProg", func(c *cluster.Config) *string { return &c.LeadProgram }, asRead},
		{"SlurmctldPrimaryOffProg", func(c *cluster.Config) *string { return &c.FollowProgram }, asRead},
		{"UnkillableStepProgram", func(c *cluster.Config) *string { return &c.Unkillable.Program }, asRead},
		{"ResvProlog", func(c *cluster.Config) *string { return &c.ResvProlog }, asRead},
		{"ResvEpilog", func(c *cluster.Config) *string { return &c.ResvEpilog }, asRead},
		{"MailProg", func(c *cluster.Config) *string { return &c.MailProg }, asRead},
		{"MailDomain", func(c *cluster.Config) *string { return &c.MailDomain }, asRead},
		{"SlurmUser", func(c *cluster.Config) *string { return &c.ServerUser }, asRead},
		{"ResumeProgram", func(c *cluster.Config) *string { return &c.Power.Resume }, asRead},
		{"SuspendProgram", func(c *cluster.Config) *string { return &c.Power.Suspend }, asRead},
		{"ResumeFailProgram", func(c *cluster.Config) *string { return &c.Power.ResumeFail }, asRead},
		{"JobCompLoc", func(c *cluster.Config) *string { return &c.JobComp.Loc }, asRead},
		{"JobCompType", func(c *cluster.Config) *string { return &c.JobComp.Kind }, asRead},
		{"SrunProlog", func(c *cluster.Config) *string { return &c.Srun.Prolog }, asRead},
		{"SrunEpilog", func(c *cluster.Config) *string { return &c.Srun.Epilog }, asRead},
		{"TaskProlog", func(c *cluster.Config) *string { return &c.TaskProlog }, shown},
		{"TaskEpilog", func(c *cluster.Config) *string { return &c.TaskEpilog }, shown},
	}
	numberKeys = [...]place[int]{
		{"MaxArraySize", func(c *cluster.Config) *int { return &c.MaxArraySize }, shown},
		{"MaxJobCount", func(c *cluster.Config) *int { return &c.MaxJobCount }, shown},
		{"ResumeRate", func(c *cluster.Config) *int { return &c.Power.ResumeRate }, asRead},
		{"SuspendRate", func(c *cluster.Config) *int { return &c.Power.SuspendRate }, asRead},
		{"ReturnToService", func(c *cluster.Config) *int { return &c.ReturnToService }, shown},
		{"MaxTasksPerNode", func(c *cluster.Config) *int { return &c.MaxTasksPerNode }, asRead},
		{"MaxStepCount", func(c *cluster.Config) *int { return &c.MaxStepCount }, asRead},
	}
	secondKeys = [...]place[time.Duration]{
		{"BatchStartTimeout", func(c *cluster.Config) *time.Duration { return &c.LaunchTimeout }, shown},
		{"UnkillableStepTimeout", func(c *cluster.Config) *time.Duration { return &c.Unkillable.After }, asRead},
		{"HealthCheckInterval", func(c *cluster.Config) *time.Duration { return &c.HealthCheck.Interval }, shown},
		{"PrologEpilogTimeout", func(c *cluster.Config) *time.Duration { return &c.PrologTimeout }, asRead},
		{"CompleteWait", func(c *cluster.Config) *time.Duration { return &c.CompleteWait }, asRead},
		{"KillWait", func(c *cluster.Config) *time.Duration { return &c.KillWait }, shown},
		{"MinJobAge", func(c *cluster.Config) *time.Duration { return &c.MinJobAge }, shown},
		{"ResumeTimeout", func(c *cluster.Config) *time.Duration { return &c.ResumeTimeout }, shown},
		{"SuspendTimeout", func(c *cluster.Config) *time.Duration { return &c.Power.Leaving }, shown},
		{"WaitTime", func(c *cluster.Config) *time.Duration { return &c.Srun.Wait }, shown},
		{"SlurmdTimeout", func(c *cluster.Config) *time.Duration { return &c.NodeTimeout }, shown},
	}
)

// InForce yields the keys with plain values of which show config tells what is active: a string, an int or a
// time.Duration.
func InForce(c *cluster.Config) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		_ = eachShown(textKeys[:], c, yield) && eachShown(numberKeys[:], c, yield) && eachShown(secondKeys[:], c, yield)
	}
}

func eachShown[T any](rows []place[T], c *cluster.Config, yield func(string, any) bool) bool {
	for _, p := range rows {
		if p.shown && !yield(p.key, *p.of(c)) {
			return false
		}
	}
	return true
}

// placeOf finds a key's row.
func placeOf[T any](rows []place[T], key string, c *cluster.Config) *T {
	for _, p := range rows {
		if strings.EqualFold(p.key, key) {
			return p.of(c)
		}
	}
	return nil
}

func (r *reader) key(file string, n int, p pair) {
	c := r.cfg
	if old := c.Keys[p.key]; old != "" && p.key == controllerKey { // a line for each server
		p.value = old + "," + p.value
	}
	if !strings.Contains(secretKeys, " "+p.key+" ") {
		c.Keys[p.key] = p.value
	}
	if r.simple(file, n, p) {
		return
	}
	own := func(row keyReader) bool { return row.key == p.key }
	if i := slices.IndexFunc(keyReaders[:], own); i >= 0 {
		keyReaders[i].read(r, file, n, p)
		return
	}
	if !r.retention(file, n, p) && !r.params(file, n, p) {
		r.leave(file, n, p)
	}
}

// keyReader reads a key that is more than a value in its place.
type keyReader struct {
	key  string
	read func(r *reader, file string, n int, p pair)
}

var keyReaders = [...]keyReader{
	{"firstjobid", readFirstJobID},
	{"maxjobid", readMaxJobID},
	{"jobrequeue", readJobRequeue},
	{"killonbadexit", readKillOnBadExit},
	{"defmempercpu", readMemory},
	{"defmempernode", readMemory},
	{"maxmempercpu", readMemory},
	{"maxmempernode", readMemory},
	{"healthchecknodestate", (*reader).healthStates},
	{"suspendtime", (*reader).suspend},
	{"suspendexcnodes", (*reader).suspend},
	{"suspendexcparts", (*reader).suspend},
	{"suspendexcstates", (*reader).suspend},
	{"communicationparameters", (*reader).wordKey},
	{"prologflags", (*reader).wordKey},
	{"scronparameters", (*reader).wordKey},
	{"launchparameters", (*reader).launchKey},
	{"interactivestepoptions", (*reader).launchKey},
	{"defcpupergpu", (*reader).launchKey},
	{"defmempergpu", (*reader).launchKey},
	{"jobdefaults", (*reader).launchKey},
	{"jobfileappend", (*reader).launchKey},
	{"allowspecresourcesusage", (*reader).launchKey},
	{"disablerootjobs", (*reader).launchKey},
	{"enforcepartlimits", readPartLimits},
	{"selecttypeparameters", (*reader).selectType},
	{"licenses", readLicenses},
	{"jobacctgatherfrequency", (*reader).sampling},
	{"overtimelimit", readOverTimeLimit},
	{"resvoverrun", readResvOverRun},
	{"topologyparam", readTopologyParam},
	{"dependencyparameters", (*reader).scheduler},
	{"schedulerparameters", (*reader).scheduler},
	{"propagateresourcelimits", (*reader).propagate},
	{"propagateresourcelimitsexcept", (*reader).propagate},
	{"requeueexit", (*reader).requeueExit},
	{"requeueexithold", (*reader).requeueExit},
	{"inactivelimit", (*reader).inactiveLimit},
	{"mpiparams", readMPIParams},
	{controllerKey, readElsewhere},
	{"jobcontainertype", readElsewhere},
	{"plugstackconfig", readElsewhere},
}

func readElsewhere(*reader, string, int, pair) {}

func readFirstJobID(r *reader, file string, n int, p pair) {
	v := 0
	r.number(file, n, p, &v)
	r.cfg.FirstJobID = cluster.JobID(max(v, 1))
}

func readMaxJobID(r *reader, file string, n int, p pair) {
	v, first := 0, r.cfg.FirstJobID
	r.number(file, n, p, &v)
	if cluster.JobID(v) <= first {
		r.note(file, n, "MaxJobId=%s is not above the first number, %d; ignored", p.value, first)
		return
	}
	r.cfg.MaxJobID = cluster.JobID(v)
}

func readJobRequeue(r *reader, _ string, _ int, p pair) { r.cfg.JobRequeue = p.value != "0" }

func readKillOnBadExit(r *reader, _ string, _ int, p pair) {
	r.cfg.Srun.KillOnBadExit = p.value == "1" || strings.EqualFold(p.value, "yes")
}

// readMemory reads what jobs get by default, or at most, of a node or with a CPU.
func readMemory(r *reader, file string, n int, p pair) {
	v := 0
	r.number(file, n, p, &v)
	to, per := &r.cfg.DefMem, cluster.MemPerNode
	if strings.HasPrefix(p.key, "max") {
		to = &r.cfg.MaxMem
	}
	if strings.HasSuffix(p.key, "cpu") {
		per = cluster.MemPerCPU
	}
	*to = cluster.Mem{Per: per, MB: cluster.MemMB(v)}
}

func readPartLimits(r *reader, _ string, _ int, p pair) {
	r.cfg.EnforcePartLimits = strings.ToUpper(p.value)
}

func readLicenses(r *reader, file string, n int, p pair) {
	list, ok := cluster.ParseLicenses(p.value)
	r.cfg.Licenses = list
	if !ok {
		r.note(file, n, "Licenses=%s: want NAME[:COUNT], joined by commas; ignored", p.value)
	}
}

func readOverTimeLimit(r *reader, file string, n int, p pair) {
	r.minutes(file, n, p, &r.cfg.OverTimeLimit)
}

func readResvOverRun(r *reader, file string, n int, p pair) {
	r.minutes(file, n, p, &r.cfg.ResvOverRun)
}

func readTopologyParam(r *reader, file string, n int, p pair) {
	r.cfg.TopoOptional = hasAny(strings.ToLower(p.value), "topooptional")
	r.params(file, n, p)
}

// cronWords looks at what says whether users have crontabs; it is read where it is asked for (Config.Cron).
func cronWords(r *reader, file string, n int, value string) {
	for w := range strings.SplitSeq(value, ",") {
		if w != "enable" && w != "explicit_scancel" && w != "" {
			r.note(file, n, "ScronParameters: there is no word %s: want enable and explicit_scancel; ignored", w)
		}
	}
}

// wordKey reads a key of many words of which some are honoured.
func (r *reader) wordKey(file string, n int, p pair) {
	words := strings.ToLower(p.value)
	if p.key == "scronparameters" {
		cronWords(r, file, n, words)
		return
	}
	if p.key == "prologflags" {
		r.cfg.Contain = hasAny(words, "contain", "x11")
	} else {
		r.cfg.NotifyLocal = strings.Contains(words, "notify_local")
	}
	r.params(file, n, p)
}

// inactiveLimit reads how long Slurm lets a job be whose srun or salloc is gone.
func (r *reader) inactiveLimit(file string, n int, p pair) {
	v := 0
	if r.number(file, n, p, &v); v > 0 {
		r.note(file, n, "InactiveLimit=%s has no effect: a job whose srun is gone ends at once, "+
			"one whose salloc is gone keeps its nodes up to its time limit", p.value)
	}
	r.cfg.InactiveLimit = time.Duration(v) * time.Second
}

// simple reads a key whose value is kept as it stands, or is about the order and the rank of jobs, and reports
// whether it is one.
func (r *reader) simple(file string, n int, p pair) bool {
	c := r.cfg
	switch p.key {
	case "mpidefault":
		processManager(r, file, n, p)
		return true
	case "jobsubmitplugins":
		c.SubmitPlugins = readPlugins(r, file, n, p, submitPlugins)
		return true
	case "authaltparameters": // the servers read it where they check tokens
		tokenKeys(r, file, n, p)
		return true
	case "burstbuffertype":
		burstType(r, file, n, p)
		return true
	case "clifilterplugins": // see settleScripts
		readPlugins(r, file, n, p, cliPlugins)
		return true
	}
	if to := placeOf(textKeys[:], p.key, c); to != nil {
		*to = p.value
		return true
	}
	if to := placeOf(numberKeys[:], p.key, c); to != nil {
		r.number(file, n, p, to)
		return true
	}
	if to := placeOf(secondKeys[:], p.key, c); to != nil {
		v := int(*to / time.Second)
		r.number(file, n, p, &v)
		if *to = time.Duration(v) * time.Second; c.NodeTimeout == 0 { // never
			c.NodeTimeout = cluster.Unlimited / 2 // so that something can be added
		}
		return true
	}
	known, err := policyKey(c, p.key, p.value)
	if err != nil {
		r.note(file, n, "%v", err)
	}
	return known
}

// sampling reads how often what steps use is measured.
func (r *reader) sampling(file string, n int, p pair) {
	value := p.value
	every, ok := cluster.ParseSampling(value)
	if r.cfg.SampleEvery = every; !ok {
		r.note(file, n, "JobAcctGatherFrequency=%s: want SECONDS or task=SECONDS, "+
			"joined by commas to energy=, network= and filesystem=; ignored", value)
	}
}

// hasAny reports whether a text has one of some words in it.
func hasAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// holdsNothing says why a limit of a partition would not be held, "" if it is: a configuration with one is refused.
func holdsNothing(p pair) string {
	if p.key == "maxnodes" && p.value == "0" {
		return "MaxNodes=0 would leave it open: close it by State=DRAIN, or State=DOWN"
	}
	return ""
}

// processManager reads that of MPI programs. A cluster of older servers knows none, so that none is not written down.
func processManager(r *reader, file string, n int, p pair) {
	switch cluster.ManagerOf(p.value) {
	case cluster.ManagerNone:
		r.cfg.Srun.MPI = ""
	case cluster.ManagerUnknown:
		r.refused = append(r.refused, fmt.Errorf("%s:%d: MpiDefault=%s: there is no such process manager of MPI here; "+
			"there are none, pmi2 and pmix", file, n, p.value))
	default:
		r.cfg.Srun.MPI = p.value
	}
}

// readMPIParams looks at the ports that steps may have for themselves; they are read where they are given out
// (Config.StepPorts).
func readMPIParams(r *reader, file string, n int, p pair) {
	words := slices.DeleteFunc(strings.Split(strings.ToLower(p.value), ","), func(w string) bool {
		return w == "disable_slurm_hydra_bootstrap" // it is so: jobs get no variables of Hydra's
	})
	all, ok := cluster.ParsePortRange(strings.Join(words, ","))
	if ok || len(words) == 0 {
		return
	}
	means := "no ports are reserved"
	if all.Len() > 0 {
		means = "the rest is ignored"
	}
	r.note(file, n, "MpiParams=%s: want ports=FIRST-LAST, as ports=12000-12999; %s", p.value, means)
}

// leave tells of a key that nothing reads.
func (r *reader) leave(file string, n int, p pair) {
	if why := differs(p); why != "" {
		r.note(file, n, "%s=%s %s", p.key, p.value, why)
		return
	}
	why, fine := unread(p.key)
	if text := fmt.Sprintf("%s:%d: %s %s", file, n, p.typed, why); fine {
		r.fine = append(r.fine, strings.Replace(text, p.typed+" ", p.typed+" needs no setting: ", 1))
	} else {
		r.notes = append(r.notes, text)
	}
}

// requeueExit reads exit codes after which batch jobs go back into the queue.
func (r *reader) requeueExit(file string, n int, p pair) {
	set, err := cluster.ParseIDSet(p.value)
	if err != nil || set.Max() > 255 {
		r.note(file, n, "%s=%s: want exit codes from 0 to 255, as 100,120-130; ignored", p.typed, p.value)
		return
	}
	if p.key == "requeueexit" {
		r.cfg.RequeueExit = set
	} else {
		r.cfg.RequeueExitHold = set
	}
}

// number reads a whole number.
func (r *reader) number(file string, n int, p pair, to *int) {
	v, err := strconv.Atoi(p.value)
	if err != nil {
		r.note(file, n, "%s=%s is not a number; ignored", p.typed, p.value)
		return
	}
	*to = v
}

// minutes reads a whole number of minutes, or UNLIMITED.
func (r *reader) minutes(file string, n int, p pair, to *time.Duration) {
	if strings.EqualFold(p.value, "UNLIMITED") {
		*to = cluster.Unlimited
		return
	}
	v := int(*to / time.Minute)
	r.number(file, n, p, &v)
	*to = time.Duration(v) * time.Minute
}

// healthStates reads in which states nodes are checked.
func (r *reader) healthStates(file string, n int, p pair) {
	value := p.value
	h := &r.cfg.HealthCheck
	for word := range strings.SplitSeq(strings.ToUpper(value), ",") {
		switch word {
		case "IDLE", "NONDRAINED_IDLE":
			h.Idle = true
		case "MIXED":
			h.Mixed = true
		case "ALLOC":
			h.Alloc = true
		case "ANY", "CYCLE", "START_ONLY":
		default:
			r.note(file, n,
				"HealthCheckNodeState=%s is not known: want ALLOC, ANY, CYCLE, IDLE or MIXED; ignored", word)
		}
	}
}

// selectWord is a word of SelectTypeParameters and what it sets; unit says that it names what is given at once, and
// may have _MEMORY behind it.
type selectWord struct {
	name string
	unit bool
	set  func(*cluster.Config)
}

var selectWords = [...]selectWord{
	{"CR", true, func(c *cluster.Config) { c.CoreAlloc, c.SocketAlloc = false, false }},
	{"CR_CPU", true, func(c *cluster.Config) { c.CoreAlloc, c.SocketAlloc = false, false }},
	{"CR_CORE", true, func(c *cluster.Config) { c.CoreAlloc, c.SocketAlloc = true, false }},
	{"CR_SOCKET", true, func(c *cluster.Config) { c.CoreAlloc, c.SocketAlloc = true, true }},
	{"CR_LLN", false, func(c *cluster.Config) { c.LLN = true }},
	{"CR_PACK_NODES", false, func(c *cluster.Config) { c.PackNodes = true }},
	{"CR_ONE_TASK_PER_CORE", false, func(c *cluster.Config) { c.OneTaskPerCore = true }},
	{"CR_CORE_DEFAULT_DIST_BLOCK", false, func(c *cluster.Config) { c.DistBlock = true }},
}

// selectType reads SelectTypeParameters: what is given to jobs, and how.
func (r *reader) selectType(file string, n int, p pair) {
	value := p.value
	c := r.cfg
	for word := range strings.SplitSeq(strings.ToUpper(value), ",") {
		what, mem := strings.CutSuffix(word, "_MEMORY")
		k := slices.IndexFunc(selectWords[:], func(w selectWord) bool { return w.name == what && (w.unit || !mem) })
		if k < 0 {
			r.note(file, n, "SelectTypeParameters=%s is not known; ignored", word)
			continue
		}
		if selectWords[k].set(c); selectWords[k].unit {
			c.MemAlloc = mem
		}
	}
}

// launchKey reads what jobs get and how they begin where they say nothing.
func (r *reader) launchKey(file string, n int, p pair) {
	c, words := r.cfg, strings.ToLower(p.value)
	var err error
	switch p.key {
	case "launchparameters":
		c.NCCLEnv = hasAny(words, "nccl_env")
		r.interactive = hasAny(words, "use_interactive_step")
		c.RemoveIPC = hasAny(words, "remove_ipc")
		r.params(file, n, p)
	case "interactivestepoptions":
		r.interactiveOptions = p.value
	case "jobdefaults":
		err = jobDefaults(&c.PerGPU, p.value)
	case "allowspecresourcesusage":
		err = yes(&c.SpecUse, p.key, p.value)
	case "disablerootjobs":
		err = yes(&c.NoRootJobs, p.key, p.value)
	case "jobfileappend":
		c.AppendOutput = p.value == "1"
	default:
		err = perGPU(&c.PerGPU, p.key, p.value)
	}
	if err != nil {
		r.note(file, n, "%v", err)
	}
}
