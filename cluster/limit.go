package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// measure says what a limit is compared with.
type measure uint8

const (
	ofSubmits   measure = iota // jobs in the queue or running, with the one that comes
	ofRunning                  // jobs that run
	ofWall                     // the job's time limit, in seconds
	ofJob                      // what the job asks for
	ofNode                     // what it asks of each node
	ofLeast                    // what it asks for must be as much
	ofJobMins                  // what it asks for, times its time limit
	ofHeld                     // what those that run hold
	ofRunMins                  // what those that run hold, times the minutes that are left to them
	ofSpentMins                // what was used up, decayed
	ofSpentWall
)

// limitRow is a row of the table of limits that hold back jobs: its name, what it is compared with and whose
// tally counts, and the parts of Slurm's words for it. same is the limit of associations that a QOS's takes
// the place of.
type limitRow struct {
	name, same string
	what       measure
	whose      scopeKind
	word       string // after Assoc or QOS: of a limit on resources with * for the resource
	short      bool   // the resource mem is Mem also for QOS
}

// limitTable lists them in the order in which they are looked at.
func limitTable() []limitRow {
	return []limitRow{
		{"GrpSubmitJobs", "", ofSubmits, scopeQOS, "GrpSubmitJobsLimit", false},
		{"MaxSubmitJobs", "", ofSubmits, scopeAssoc, "MaxSubmitJobLimit", false},
		{"MaxSubmitJobsPerUser", "MaxSubmitJobs", ofSubmits, scopeUser, "MaxSubmitJobPerUserLimit", false},
		{"MaxSubmitJobsPerAccount", "", ofSubmits, scopeAccount, "!MaxSubmitJobsPerAccount", false},
		{"GrpJobs", "", ofRunning, scopeQOS, "GrpJobsLimit", false},
		{"MaxJobs", "", ofRunning, scopeAssoc, "MaxJobsLimit", false},
		{"MaxJobsPerUser", "MaxJobs", ofRunning, scopeUser, "MaxJobsPerUserLimit", false},
		{"MaxJobsPerAccount", "", ofRunning, scopeAccount, "!MaxJobsPerAccount", false},
		{"GrpWall", "", ofSpentWall, scopeQOS, "GrpWallLimit", false},
		{"MaxWall", "", ofWall, scopeQOS, "MaxWallDurationPerJobLimit", false},
		{"GrpTRESMins", "", ofSpentMins, scopeQOS, "Grp*Minutes", false},
		{"GrpTRES", "", ofHeld, scopeQOS, "Grp*", true},
		{"GrpTRESRunMins", "", ofRunMins, scopeQOS, "Grp*RunMinutes", false},
		{"MaxTRES", "", ofJob, scopeQOS, "Max*PerJob", false},
		{"MaxTRESPerNode", "", ofNode, scopeQOS, "Max*PerNode", false},
		{"MaxTRESMins", "", ofJobMins, scopeQOS, "Max*MinutesPerJob", false},
		{"MaxTRESPerUser", "", ofHeld, scopeUser, "Max*PerUser", false},
		{"MaxTRESPerAccount", "", ofHeld, scopeAccount, "!Max*PerAccount", false},
		{"MaxTRESRunMinsPerUser", "", ofRunMins, scopeUser, "Grp*RunMinutes", false},
		{"MaxTRESRunMinsPerAccount", "", ofRunMins, scopeAccount, "Grp*RunMinutes", false},
		{"MinTRES", "", ofLeast, scopeQOS, "Min*", false},
	}
}

// oddWords are those that do not follow the rule: most of CPUs and nodes end in Limit.
func oddWords() map[Reason]Reason {
	return map[Reason]Reason{
		"AssocGrpCpu":              "AssocGrpCpuLimit",
		"AssocGrpMem":              "AssocGrpMemLimit",
		"AssocGrpNode":             "AssocGrpNodeLimit",
		"QOSGrpCpu":                "QOSGrpCpuLimit",
		"QOSGrpMem":                "QOSGrpMemLimit",
		"QOSGrpNode":               "QOSGrpNodeLimit",
		"AssocGrpCpuMinutes":       "AssocGrpCPUMinutesLimit",
		"QOSGrpCpuMinutes":         "QOSGrpCPUMinutesLimit",
		"AssocGrpCpuRunMinutes":    "AssocGrpCPURunMinutesLimit",
		"QOSGrpCpuRunMinutes":      "QOSGrpCPURunMinutesLimit",
		"AssocMaxCpuPerJob":        "AssocMaxCpuPerJobLimit",
		"QOSMaxCpuPerJob":          "QOSMaxCpuPerJobLimit",
		"AssocMaxNodePerJob":       "AssocMaxNodePerJobLimit",
		"QOSMaxNodePerJob":         "QOSMaxNodePerJobLimit",
		"AssocMaxCpuMinutesPerJob": "AssocMaxCpuMinutesPerJobLimit",
		"QOSMaxCpuMinutesPerJob":   "QOSMaxCpuMinutesPerJobLimit",
		"QOSMaxCpuPerUser":         "QOSMaxCpuPerUserLimit",
		"QOSMaxNodePerUser":        "QOSMaxNodePerUserLimit",
		"QOSMinCpu":                "QOSMinCpuNotSatisfied",
	}
}

// reason is Slurm's word for a limit on a resource (empty: on none) of a QOS or an association.
func (r *limitRow) reason(qos bool, tres string) Reason {
	word, is := strings.CutPrefix(r.word, "!")
	switch {
	case is:
	case qos:
		word = "QOS" + word
	default:
		word = "Assoc" + word
	}
	if tres != "" {
		kind, _, _ := strings.Cut(tres, "/")
		name, known := map[string]string{
			"cpu":     "Cpu",
			"mem":     "Mem",
			"node":    "Node",
			"gres":    "GRES",
			"license": "License",
			"billing": "Billing",
			"energy":  "Energy",
			"bb":      "BB",
		}[kind]
		if !known {
			name = "Unknown"
		}
		if name == "Mem" && (qos || is) && !r.short {
			name = "Memory"
		}
		word = strings.Replace(word, "*", name, 1)
	}
	if odd, ok := oddWords()[Reason(word)]; ok {
		return odd
	}
	return Reason(word)
}

// limitBound is one limit that holds for a job: it may not go above max.
type limitBound struct {
	name   string // in the table
	what   measure
	tres   string
	max    float64
	scope  scope
	reason Reason
	safe   float64 // with safe limits the job's own usage counts so much
}

// gateKey is what jobs must have in common to have the same bounds.
type gateKey struct {
	assoc   AssocID
	qos     string
	account string
	uid     uint32
	part    string
}

// Gate is what holds back jobs of one kind.
type Gate struct {
	bounds    []limitBound
	assoc     AssocID
	deny      bool      // what the job alone cannot keep is refused when it is submitted
	least     []float64 // fair share, below which nothing of this kind starts
	noReserve bool
	minPrio   uint32   // to be given a planned start
	usage     *float64 // the QOS's factor, where it counts for safe limits
}

// level is one place where limits may be set, first ones first.
type level struct {
	limits Limits
	qos    *QOS
	assoc  *Association
}

// levels are the places that count for a job: the partition's QOS and the job's, and the associations upwards.
func (t *tables) levels(k gateKey) (out []level) {
	job, _ := t.qos.Get(k.qos)
	var part *QOS
	if p, ok := t.Partition(k.part); ok && p.QOS != "" && p.QOS != k.qos {
		part, _ = t.qos.Get(p.QOS)
	}
	list := []*QOS{part, job}
	if job.Flag("OverPartQOS") {
		list = []*QOS{job, part}
	}
	for _, q := range list {
		if q != nil {
			out = append(out, level{q.Limits, q, nil})
		}
	}
	for a := range t.Line(k.assoc) {
		out = append(out, level{a.Limits, nil, a})
	}
	return out
}

// gateOf works out the bounds of a kind of job.
func (t *tables) gateOf(k gateKey) *Gate {
	g := &Gate{assoc: k.assoc}
	if p, ok := t.Partition(k.part); ok && p.MaxCPUsPerUser > 0 {
		g.bounds = append(g.bounds, limitBound{
			"MaxCPUsPerUser", ofHeld, "cpu", float64(p.MaxCPUsPerUser),
			scope{scopePartition, k.uid, p.Name}, "QOSMaxCpuPerUserLimit", 1,
		})
	}
	if !t.config.Enforce.Limits {
		return g
	}
	rows := limitTable()
	levels := t.levels(k)
	factor := 1.0
	for _, l := range levels {
		if l.qos != nil {
			g.qos(k, l.qos)
			if f := l.qos.LimitFactor; f != nil && *f > 0 && factor == 1 {
				factor = *f
			}
		}
	}
	for i := range rows {
		g.add(&rows[i], k, levels, factor)
	}
	for i := range g.bounds {
		if g.bounds[i].safe = 1; g.usage != nil {
			g.bounds[i].safe = *g.usage
		}
	}
	for _, l := range levels {
		if n, ok := l.limits.Get("MinPrioThreshold", ""); ok {
			g.minPrio = uint32(n)
			break
		}
	}
	return g
}

func (g *Gate) qos(k gateKey, q *QOS) {
	g.deny = g.deny || q.Flag("DenyOnLimit")
	g.noReserve = g.noReserve || q.Flag("NoReserve")
	if q.Name == k.qos && q.Flag("UsageFactorSafe") {
		g.usage = &q.UsageFactor
	}
	if q.UsageThreshold != nil && q.Flag("EnforceUsageThreshold") {
		g.least = append(g.least, *q.UsageThreshold)
	}
}

// spentIn is what was used up in a scope.
func (t *tables) spentIn(s scope) *Spent {
	switch s.kind {
	case scopeAssoc:
		if a, ok := t.assocs.Get(AssocID(s.id)); ok {
			return &a.Spent
		}
	case scopeQOS:
		if q, ok := t.qos.Get(s.name); ok {
			return &q.Spent
		}
	}
	return &Spent{}
}

// add adds the bounds of one row: of limits for each job or user those of the first place that sets one; of
// those of groups a QOS's, or all of the associations'.
func (g *Gate) add(r *limitRow, k gateKey, levels []level, factor float64) {
	group := strings.HasPrefix(r.name, "Grp")
	var done []string // resources that are decided
	for _, l := range levels {
		ofQOS := l.qos != nil
		if r.same != "" && !ofQOS {
			continue
		}
		for x := range l.limits.Named(r.name) {
			if slices.Contains(done, x.TRES) {
				continue
			}
			if !ofQOS && !group && overridden(levels, r.name) {
				continue
			}
			if !group || ofQOS {
				done = append(done, x.TRES)
			}
			b := limitBound{
				name:   r.name,
				what:   r.what,
				tres:   x.TRES,
				max:    float64(x.Max),
				reason: r.reason(ofQOS, x.TRES),
				scope:  l.scopeOf(r, k, group),
			}
			if !ofQOS && x.TRES != "" {
				b.max *= factor
			}
			g.bounds = append(g.bounds, b)
		}
	}
}

// scopeOf is whose use a limit that is set here is compared with.
func (l level) scopeOf(r *limitRow, k gateKey, group bool) scope {
	switch {
	case l.qos == nil && group:
		return scope{kind: scopeAssoc, id: uint32(l.assoc.ID)}
	case l.qos == nil:
		return scope{kind: scopeAssoc, id: uint32(k.assoc)}
	case r.whose == scopeUser:
		return scope{scopeUser, k.uid, l.qos.Name}
	case r.whose == scopeAccount:
		return scope{kind: scopeAccount, name: l.qos.Name + "\x00" + k.account}
	}
	return scope{kind: scopeQOS, name: l.qos.Name}
}

// overridden reports whether a QOS sets its own limit in place of an association's.
func overridden(levels []level, name string) bool {
	for _, r := range limitTable() {
		for _, l := range levels {
			if _, set := l.limits.Get(r.name, ""); r.same == name && l.qos != nil && set {
				return true
			}
		}
	}
	return false
}

// Meter compares jobs with their limits: with what a snapshot's jobs hold and what has been started since.
// It belongs to one goroutine.
type Meter struct {
	t       *tables
	now     time.Time
	plain   bool // without limits that need a look at all running jobs
	gates   map[gateKey]*Gate
	started map[scope]*tally
	minutes map[scope][]Amount // nil until it is asked for

	watched  map[scope][]*Gate // those that look at what runs there
	unsteady []*Gate           // those for which time alone makes a difference, or what was used up
	reopened map[*Gate]bool    // since it was last asked
}

// Meter makes one for a pass at a time.
func (t *tables) Meter(now time.Time) *Meter {
	return &Meter{
		t:        t,
		now:      now,
		gates:    map[gateKey]*Gate{},
		started:  map[scope]*tally{},
		watched:  map[scope][]*Gate{},
		reopened: map[*Gate]bool{},
	}
}

// Fork is a meter that counts on from here by itself: to try what several starts would come to.
func (m *Meter) Fork() *Meter {
	f := *m
	f.started = maps.Clone(m.started)
	f.minutes = maps.Clone(m.minutes)
	f.reopened = maps.Clone(m.reopened)
	return &f
}

// Off reports whether there are no limits at all.
func (m *Meter) Off() bool { return !m.t.config.counting() }

// Gate is what holds back jobs like this one in a partition.
func (m *Meter) Gate(j *Job, part string) *Gate {
	k := gateKey{j.Assoc, j.Spec.QOS, j.Spec.Account, j.Spec.UID, part}
	g, ok := m.gates[k]
	if !ok {
		g = m.t.gateOf(k)
		m.gates[k] = g
		m.watch(g)
	}
	return g
}

// MostNodes returns the most nodes that limits ever allow a job of this kind; 0: any number. A group that has nodes
// already may have fewer left at present.
func (g *Gate) MostNodes() (most int) {
	for i := range g.bounds {
		b := &g.bounds[i]
		if b.tres != "node" || b.what != ofJob && b.what != ofHeld || b.max < 1 {
			continue
		}
		if most == 0 || int(b.max) < most {
			most = int(b.max)
		}
	}
	return most
}

// Reserves reports whether a planned start may be kept free for the job.
func (m *Meter) Reserves(j *Job, part string) bool {
	if m.Off() {
		return true
	}
	g := m.Gate(j, part)
	return !g.noReserve && j.Priority >= g.minPrio
}

// Lifted reports whether the job's QOS lets it go over its partition's time limit.
func (m *Meter) Lifted(j *Job) bool { return m.t.lifted(j.Spec) }

func (t *tables) lifted(s *JobSpec) bool { return t.lifts(s, "PartitionTimeLimit") }

// lifts reports whether the job's QOS has a flag that lifts a limit of partitions.
func (t *tables) lifts(s *JobSpec, flag string) bool {
	q, _ := t.qos.Get(s.QOS)
	return t.config.Enforce.Limits && q.Flag(flag)
}

// NodeBounds are how many nodes a job may have in a partition at least and at most, unless its QOS lifts that; 0: any.
func (t *tables) NodeBounds(p *Partition, s *JobSpec) (least, most int) {
	least = p.MinNodes
	most = p.MaxNodes
	if (least | most) == 0 {
		return 0, 0
	}
	if t.lifts(s, "PartitionMinNodes") {
		least = 0
	}
	if t.lifts(s, "PartitionMaxNodes") {
		most = 0
	}
	return least, most
}

// Blocked is why limits keep a job from starting in a partition: with what it asks for, or with an
// allocation; NoReason if they do not.
func (m *Meter) Blocked(j *Job, part string, alloc *Alloc) Reason {
	if m.Off() {
		return NoReason
	}
	return m.Verdict(m.Gate(j, part), j.Limit, &Asking{Like: j, Part: part, Alloc: alloc})
}

// Verdict is Blocked for a job of this time limit whose gate is known, and what jobs like it ask for.
func (m *Meter) Verdict(g *Gate, limit time.Duration, ask *Asking) Reason {
	return m.verdict(g, limit, ask, func(i int) float64 { return m.used(&g.bounds[i]) })
}

func (m *Meter) verdict(g *Gate, limit time.Duration, ask *Asking, used func(bound int) float64) Reason {
	if why := m.always(g); why != NoReason {
		return why
	}
	for i := range g.bounds {
		b := &g.bounds[i]
		if b.what == ofSubmits {
			continue
		}
		if b.what > ofWall && !ask.known {
			ask.asking = m.t.askingOf(ask.Like, ask.Part, ask.Alloc)
			ask.known = true
		}
		if m.concerns(b, &ask.asking) && m.exceeds(b, used(i), limit, &ask.asking) {
			return b.reason
		}
	}
	return NoReason
}

// Asking is what jobs of one kind ask of a partition, or what one was given; worked out when it is needed.
type Asking struct {
	Like  *Job // one of them
	Part  string
	Alloc *Alloc
	asking
	known bool
}

// always is why nothing gets past a gate, whatever it asks for.
func (m *Meter) always(g *Gate) Reason {
	for _, least := range g.least {
		if a, ok := m.t.assocs.Get(g.assoc); ok && a.FairShare < least {
			return "QOSUsageThreshold"
		}
	}
	return NoReason
}

// Regardless is why limits keep a job from starting in a partition whatever it asks for: those on jobs, on time and
// on fair share; NoReason if they do not. Slurm looks at them before it asks whether the partition takes the
// account and the QOS.
func (m *Meter) Regardless(j *Job, part string) Reason {
	if m.Off() {
		return NoReason
	}
	g := m.Gate(j, part)
	for i := range g.bounds {
		switch b := &g.bounds[i]; b.what {
		case ofRunning, ofWall, ofSpentWall:
			if m.over(b, j.Limit, &asking{}) {
				return b.reason
			}
		}
	}
	return m.always(g)
}

// asking is what a job asks for or was given, in all and of the node that gives most.
type asking struct {
	tres, node []Amount
	limit      time.Duration
}

func (t *tables) askingOf(j *Job, part string, alloc *Alloc) (a asking) {
	n := *j
	n.Alloc = alloc
	p, _ := t.Partition(part)
	a.tres = t.withBilling(part, n.Amounts(t.config, p))
	a.limit = j.Limit
	if alloc == nil {
		nodes := max(amountOf(a.tres, "node"), 1)
		for _, x := range a.tres {
			a.node = append(a.node, Amount{x.TRES, x.N / nodes})
		}
		return a
	}
	for _, sh := range alloc.Shares {
		one := Job{Spec: j.Spec, Alloc: &Alloc{Shares: []Share{sh}}}
		for _, x := range one.Amounts(t.config, p) {
			i := slices.IndexFunc(a.node, func(y Amount) bool { return y.TRES == x.TRES })
			if i < 0 {
				i = len(a.node)
				a.node = append(a.node, Amount{TRES: x.TRES})
			}
			a.node[i].N = max(a.node[i].N, x.N)
		}
	}
	return a
}

// over reports whether a job of this time limit would go over a bound.
func (m *Meter) over(b *limitBound, limit time.Duration, ask *asking) bool {
	return m.concerns(b, ask) && m.exceeds(b, m.used(b), limit, ask)
}

// concerns reports whether a bound is about something that is asked for.
func (m *Meter) concerns(b *limitBound, ask *asking) bool {
	switch b.what {
	case ofRunMins, ofHeld, ofSpentMins:
		return amountOf(ask.tres, b.tres) > 0 && !(m.plain && b.what == ofRunMins)
	}
	return true
}

// exceeds reports whether what is asked for is too much where so much counts against the bound already.
func (m *Meter) exceeds(b *limitBound, used float64, limit time.Duration, ask *asking) bool {
	asks := m.adds(b, limit, ask)
	switch b.what {
	case ofLeast:
		return asks < b.max
	case ofSpentMins, ofSpentWall:
		return used >= b.max || used+asks > b.max
	}
	return used+asks > b.max
}

// endless is how long a job without a limit counts: Slurm's year.
const endless = 365 * 24 * time.Hour

// takes is what a job of this time limit comes to by itself: jobs; amounts of a resource; minutes of them; seconds
// of time.
func (b *limitBound) takes(limit time.Duration, ask *asking) float64 {
	switch b.what {
	case ofWall:
		return min(limit, Unlimited).Seconds()
	case ofSpentWall:
		return min(limit, endless).Seconds()
	case ofJob, ofLeast, ofHeld:
		return amountOf(ask.tres, b.tres)
	case ofNode:
		return amountOf(ask.node, b.tres)
	case ofJobMins, ofRunMins, ofSpentMins:
		return amountOf(ask.tres, b.tres) * min(limit, endless).Minutes()
	}
	return 1
}

// adds is what a job would add to what counts against a bound.
func (m *Meter) adds(b *limitBound, limit time.Duration, ask *asking) float64 {
	asks := b.takes(limit, ask)
	if b.what == ofSpentMins || b.what == ofSpentWall {
		if asks *= b.safe; !m.t.config.Enforce.Safe { // it may begin as long as something is left
			asks = 0
		}
	}
	return asks
}

// used is what counts against a bound already, where others count.
func (m *Meter) used(b *limitBound) float64 {
	switch b.what {
	case ofRunning:
		return float64(m.tally(b.scope).running)
	case ofHeld:
		return amountOf(m.tally(b.scope).tres, b.tres)
	case ofRunMins:
		return m.runMins(b)
	case ofSpentWall:
		return m.t.spentIn(b.scope).Wall
	case ofSpentMins:
		spent := m.t.spentIn(b.scope)
		if b.tres == "billing" {
			return spent.Raw / 60
		}
		return amountOf(spent.TRES, b.tres) / 60
	}
	return 0
}

func (m *Meter) tally(s scope) *tally {
	if x, ok := m.started[s]; ok {
		return x
	}
	return m.t.tallyOf(s)
}

func (m *Meter) runMins(b *limitBound) float64 {
	if m.minutes == nil {
		m.minutes = m.t.runMinutes(m.now)
	}
	return amountOf(m.minutes[b.scope], b.tres)
}

// Start counts a job that the pass has started in a partition: with its allocation, or where there is none yet with
// what it asks for.
func (m *Meter) Start(j *Job, part string, alloc *Alloc) {
	if m.Off() {
		return
	}
	ask := m.t.askingOf(j, part, alloc)
	c := counted{
		runs:    1,
		assoc:   j.Assoc,
		uid:     j.Spec.UID,
		qos:     j.Spec.QOS,
		account: j.Spec.Account,
		part:    part,
		alloc:   alloc,
	}
	for _, s := range m.t.scopes(c) {
		m.reopen(s)
		m.started[s] = m.tally(s).plus(c, ask.tres, 1)
		if m.minutes != nil {
			m.minutes[s] = Spent{TRES: m.minutes[s]}.plus(Spent{
				TRES: Spent{TRES: ask.tres}.times(min(j.Limit, endless).Minutes()).TRES,
			}).TRES
		}
	}
}

// Size is how many nodes a partition has.
func (p *Partition) Size(s *Snapshot) int {
	if p.All {
		return s.NodeCount()
	}
	return len(p.Nodes)
}

// Barred is why a partition takes no jobs of an account or QOS; NoReason if it does.
func (p *Partition) Barred(s *JobSpec) Reason {
	has := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, name) })
	}
	text := func(what, verb, word string, list []string, name string) Reason {
		return Reason("Job's " + what + " not permitted to use this partition (" + p.Name + " " + verb + " " + strings.Join(list, ",") + " " + word + " " + name + ")")
	}
	switch {
	case p.AllowAccounts != nil && !has(p.AllowAccounts, s.Account):
		return text("account", "allows", "not", p.AllowAccounts, s.Account)
	case p.AllowAccounts == nil && has(p.DenyAccounts, s.Account):
		return text("account", "denies", "including", p.DenyAccounts, s.Account)
	case p.AllowQOS != nil && !has(p.AllowQOS, s.QOS):
		return text("QOS", "allows", "not", p.AllowQOS, s.QOS)
	case p.AllowQOS == nil && has(p.DenyQOS, s.QOS):
		return text("QOS", "denies", "including", p.DenyQOS, s.QOS)
	}
	return NoReason
}

// endSpent ends what runs and has used up what its limits allow.
func (t *tx) endSpent() {
	if !t.config.Enforce.Limits {
		return
	}
	m := t.Meter(t.at)
	var over []*Job
	for j := range t.Live() {
		if j.Phase == Running && m.spent(j) {
			over = append(over, j)
		}
	}
	for _, j := range over {
		n := *j
		t.end(&n, TimedOut, EndTimeLimit)
		t.putJob(&n)
		t.tell(&n)
	}
}

// spent reports whether a job that runs has used up one of its limits.
func (m *Meter) spent(j *Job) bool {
	g := m.Gate(j, j.Alloc.Partition)
	for i := range g.bounds {
		b := &g.bounds[i]
		has := amountOf(m.t.held(j), b.tres)
		switch {
		case b.what == ofSpentWall && m.t.spentIn(b.scope).Wall >= b.max,
			b.what == ofSpentMins && has > 0 && amountOf(m.t.spentIn(b.scope).TRES, b.tres)/60 >= b.max,
			b.what == ofJobMins && float64(has*j.RunTime(m.now).Minutes()) >= b.max:
			return true
		}
	}
	return false
}
