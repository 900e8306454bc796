package adopt

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dev.muster/adopt/dump"
	"dev.muster/cluster"
)

// The tables of accounting that all clusters share, and the one of keys that each cluster has.
const (
	acctTable  = "acct_table"
	coordTable = "acct_coord_table"
	userTable  = "user_table"
	qosTable   = "qos_table"
	wckeyTable = "_wckey_table"
)

// maxAssocs bounds the associations and reservations of a database, and with them the memory that an import takes.
const maxAssocs = 1 << 19

// accounting is what the first pass finds of accounts, users and QOS: the rows that are not deleted.
type accounting struct {
	accounts []*accountRow
	users    []*userRow
	qos      []*qosRow
	coords   map[string][]string // users by account
	refused  []Refused
	columns  map[*dump.Table]columns
	lists    map[string]string // of QOS, each once: most associations have one of a few
	assocs   int               // how many
	resvs    int
}

// place tells where a row is: its table, and its number there.
type place struct {
	table string
	row   int64
}

type accountRow struct {
	place
	cluster.Account
	flags uint64
}

type userRow struct {
	place
	cluster.User
}

// keyRow is a wckey of a user.
type keyRow struct {
	place
	name, user string
	isDefault  bool
}

// limitTexts are limits on resources, by the numbers of these.
type limitTexts struct{ name, text string }

type assocRow struct {
	place
	cluster.Association
	id, parent uint32 // parent: 0 where the table has none
	above      string // the account that an account is below
	isDefault  bool
	flags      uint64
	qos, delta string // numbers
	defaultQOS string
	tres       []limitTexts
}

type qosRow struct {
	place
	cluster.QOS
	id      string
	flags   uint64
	mode    uint64
	preempt string // numbers
	tres    []limitTexts
}

// limitColumn is a column of a limit.
type limitColumn struct{ column, limit string }

var assocLimits = []limitColumn{
	{"max_jobs", "MaxJobs"}, {"max_jobs_accrue", "MaxJobsAccrue"}, {"min_prio_thresh", "MinPrioThreshold"},
	{"max_submit_jobs", "MaxSubmitJobs"}, {"max_tres_pj", "MaxTRES"}, {"max_tres_pn", "MaxTRESPerNode"},
	{"max_tres_mins_pj", "MaxTRESMins"}, {"max_wall_pj", "MaxWall"}, {"grp_jobs", "GrpJobs"},
	{"grp_jobs_accrue", "GrpJobsAccrue"}, {"grp_submit_jobs", "GrpSubmitJobs"}, {"grp_tres", "GrpTRES"},
	{"grp_tres_mins", "GrpTRESMins"}, {"grp_tres_run_mins", "GrpTRESRunMins"}, {"grp_wall", "GrpWall"},
}

var qosLimits = []limitColumn{
	{"max_jobs_pa", "MaxJobsPerAccount"}, {"max_jobs_per_user", "MaxJobsPerUser"},
	{"max_jobs_accrue_pa", "MaxJobsAccruePerAccount"}, {"max_jobs_accrue_pu", "MaxJobsAccruePerUser"},
	{"min_prio_thresh", "MinPrioThreshold"}, {"max_submit_jobs_pa", "MaxSubmitJobsPerAccount"},
	{"max_submit_jobs_per_user", "MaxSubmitJobsPerUser"}, {"max_tres_pa", "MaxTRESPerAccount"},
	{"max_tres_pj", "MaxTRES"}, {"max_tres_pn", "MaxTRESPerNode"}, {"max_tres_pu", "MaxTRESPerUser"},
	{"max_tres_mins_pj", "MaxTRESMins"}, {"max_tres_run_mins_pa", "MaxTRESRunMinsPerAccount"},
	{"max_tres_run_mins_pu", "MaxTRESRunMinsPerUser"}, {"min_tres_pj", "MinTRES"},
	{"max_wall_duration_per_job", "MaxWall"}, {"grp_jobs", "GrpJobs"}, {"grp_jobs_accrue", "GrpJobsAccrue"},
	{"grp_submit_jobs", "GrpSubmitJobs"}, {"grp_tres", "GrpTRES"}, {"grp_tres_mins", "GrpTRESMins"},
	{"grp_tres_run_mins", "GrpTRESRunMins"}, {"grp_wall", "GrpWall"},
}

// collector returns what reads the rows of a table of accounting, nil for another table. It returns what keeps a row
// that can be read.
func (s *Source) collector(table string) func(place, *row) (keep func()) {
	a := &s.accounting
	switch table {
	case acctTable:
		return a.account
	case coordTable:
		return a.coordinator
	case userTable:
		return a.user
	case qosTable:
		return a.addQOS
	}
	if name, ok := strings.CutSuffix(table, assocTable); ok {
		return func(p place, r *row) func() { return a.assoc(p, r, s.of(name)) }
	}
	if name, ok := strings.CutSuffix(table, resvTable); ok {
		return func(p place, r *row) func() { return a.resv(p, r, s.of(name)) }
	}
	if name, ok := strings.CutSuffix(table, wckeyTable); ok {
		return func(p place, r *row) func() { return a.key(p, r, s.of(name)) }
	}
	return nil
}

// collect reads a row of a table of accounting.
func (s *Source) collect(in *dump.Row) error {
	read := s.collector(in.Table.Name)
	if read == nil {
		return nil
	}
	a := &s.accounting
	at, known := a.columns[in.Table]
	if !known {
		at = columnsOf(in.Table)
		a.columns[in.Table] = at
	}
	r := newRow(at, in)
	p := place{in.Table.Name, in.Table.Rows}
	keep := func() {}
	past := strings.HasSuffix(p.table, resvTable) // deleted reservations are history
	if r.err == nil && (past || r.number("deleted", 8) == 0) {
		keep = read(p, r)
	}
	if r.err != nil {
		a.refused = append(a.refused, Refused{
			Table: p.table,
			Row:   p.row,
			Name:  r.label(),
			Why:   r.err.Error(),
		})
		return nil
	}
	keep()
	if a.assocs+a.resvs > maxAssocs {
		return fmt.Errorf("the database has more than %d associations and reservations", maxAssocs)
	}
	return nil
}

// label names what a row of accounting is about, as far as it can be read.
func (r *row) label() string {
	clean := &row{at: r.at, values: r.values}
	var words []string
	for _, column := range [...]string{"name", "acct", "user", "partition", "wckey_name"} {
		if text := clean.text(column); text != "" {
			words = append(words, fmt.Sprintf("%.64s", text))
		}
	}
	return strings.Join(words, " ")
}

// name returns a name; optional: it may be empty.
func (r *row) name(column string, optional bool) string {
	text := r.plain(column)
	if text == "" && !optional || len(text) > cluster.MaxNameBytes || strings.ContainsAny(text, "\n\t") {
		r.refuse("%s %.64q is not a name", column, text)
	}
	return text
}

// plain returns a text without control characters but tabs and ends of lines.
func (r *row) plain(column string) string {
	text := r.text(column)
	control := func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f }
	switch {
	case !utf8.ValidString(text):
		r.refuse("%s %.64q is not UTF-8", column, text)
	case strings.ContainsFunc(text, control):
		r.refuse("%s %.64q has control characters", column, text)
	}
	return text
}

// optional returns a number that may be NULL, and none where it is: -1 stands for that, too.
func (r *row) optional(column string) (n int64, set bool) {
	text := r.value(column)
	if text == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil || n < -1 || n > math.MaxUint32:
		r.refuse("%s is %.40q", column, text)
		return 0, false
	case n == -1 || n >= noValue:
		return 0, false
	}
	return n, true
}

// factor returns a number with a fraction that may be NULL; nil where it is.
func (r *row) factor(column string) *float64 {
	n := r.float(column)
	if r.null(column) || n >= noValue {
		return nil
	}
	return &n
}

// limits reads the limits of a row.
func (r *row) limits(list []limitColumn) (limits cluster.Limits, tres []limitTexts) {
	units := map[string]cluster.Unit{}
	for _, l := range cluster.LimitNames() {
		units[l.Name] = l.Unit
	}
	for _, c := range list {
		unit := units[c.limit]
		if unit == cluster.UnitTRES {
			if text := r.text(c.column); text != "" {
				tres = append(tres, limitTexts{c.limit, text})
			}
			continue
		}
		n, set := r.optional(c.column)
		if unit == cluster.UnitSeconds {
			n *= 60
		}
		if set {
			limits = limits.With(cluster.Limit{Name: c.limit, Max: n})
		}
	}
	return limits, tres
}

func (a *accounting) account(p place, r *row) func() {
	row := &accountRow{
		place: p,
		flags: r.number("flags", 64),
		Account: cluster.Account{
			Name:         r.name("name", false),
			Description:  r.plain("description"),
			Organization: r.plain("organization"),
		},
	}
	return func() { a.accounts = append(a.accounts, row) }
}

func (a *accounting) coordinator(_ place, r *row) func() {
	account := r.name("acct", false)
	user := r.name("user", false)
	return func() { a.coords[account] = append(a.coords[account], user) }
}

// adminLevels are the levels of users by their numbers.
var adminLevels = [...]string{"", "", "Operator", "Administrator"}

func (a *accounting) user(p place, r *row) func() {
	row := &userRow{place: p, User: cluster.User{Name: r.name("name", false)}}
	level := r.number("admin_level", 16)
	if int(level) >= len(adminLevels) {
		r.refuse("admin_level is %d", level)
		level = 0
	}
	row.AdminLevel = adminLevels[level]
	return func() { a.users = append(a.users, row) }
}

// key reads a wckey. Rows without a name, and those of a name with * before it, stand for the default of a user: they
// are no keys.
func (a *accounting) key(p place, r *row, to *own) func() {
	row := &keyRow{
		place:     p,
		name:      r.name("wckey_name", true),
		user:      r.name("user", false),
		isDefault: r.number("is_def", 8) != 0,
	}
	if row.name == "" || strings.HasPrefix(row.name, cluster.WCKeyDefault) {
		return func() {}
	}
	return func() { to.keys = append(to.keys, row) }
}

// shareParent is what Slurm has for fairshare=parent.
const shareParent = 1<<31 - 1

func (a *accounting) assoc(p place, r *row, to *own) func() {
	row := &assocRow{
		place:     p,
		id:        r.count("id_assoc"),
		parent:    r.count("id_parent"),
		above:     r.name("parent_acct", true),
		isDefault: r.number("is_def", 8) != 0,
		flags:     r.number("flags", 64),
		qos:       a.list(r, "qos"),
		delta:     a.list(r, "delta_qos"),
		Association: cluster.Association{
			Account:   r.name("acct", false),
			User:      r.name("user", true),
			Partition: r.name("partition", true),
			Comment:   r.plain("comment"),
		},
	}
	row.Limits, row.tres = r.limits(assocLimits)
	shares, _ := r.optional("shares")
	if row.Shares = int(shares); shares == shareParent {
		row.Shares = cluster.ShareParent
	}
	priority, _ := r.optional("priority")
	row.Priority = int(priority)
	if n, set := r.optional("def_qos_id"); set {
		row.defaultQOS = strconv.FormatInt(n, 10)
	}
	if text := r.text("max_tres_run_mins"); text != "" {
		row.tres = append(row.tres, limitTexts{"MaxTRESRunMins", text})
	}
	return func() {
		a.assocs++
		to.assocs = append(to.assocs, row)
	}
}

// list returns a list of QOS, the same text for the same list.
func (a *accounting) list(r *row, column string) string {
	text := r.plain(column)
	if known, ok := a.lists[text]; ok {
		return known
	}
	a.lists[text] = text
	return text
}

func (a *accounting) addQOS(p place, r *row) func() {
	row := &qosRow{
		place:   p,
		id:      r.name("id", false),
		flags:   r.number("flags", 64),
		mode:    r.number("preempt_mode", 32),
		preempt: r.plain("preempt"),
		QOS: cluster.QOS{
			Name:           r.name("name", false),
			Description:    r.plain("description"),
			UsageFactor:    r.float("usage_factor"),
			UsageThreshold: r.factor("usage_thres"),
			LimitFactor:    r.factor("limit_factor"),
		},
	}
	row.Limits, row.tres = r.limits(qosLimits)
	priority, _ := r.optional("priority")
	row.Priority = int(priority)
	grace, _ := r.optional("grace_time")
	row.GraceTime = time.Duration(grace) * time.Second
	exempt, _ := r.optional("preempt_exempt_time")
	row.PreemptExempt = time.Duration(exempt) * time.Second
	return func() { a.qos = append(a.qos, row) }
}

// qosFlags are the flags of a QOS by their bits, in the order in which muster keeps them.
var qosFlags = []struct {
	bit  uint
	name string
}{
	{6, "DenyOnLimit"}, {3, "EnforceUsageThreshold"}, {4, "NoReserve"}, {1, "PartitionMaxNodes"},
	{0, "PartitionMinNodes"}, {7, "OverPartQOS"}, {2, "PartitionTimeLimit"}, {5, "RequiresReservation"}, {8, "NoDecay"},
	{9, "UsageFactorSafe"},
}

// knownFlags are the bits that flags of a QOS can have in a database; those above mark changes alone.
const knownFlags = 1<<28 - 1

// preemptModes are the modes of a QOS by their numbers, behind gang and within.
var preemptModes = map[uint64]string{
	1: string(cluster.PreemptSuspend), 2: string(cluster.PreemptRequeue), 8: string(cluster.PreemptCancel),
}

const (
	preemptWithin = 0x4000
	preemptGang   = 0x8000
)

// modeText writes the mode of a QOS; ok is false for one that is not known.
func modeText(mode uint64) (text string, ok bool) {
	base := mode &^ (preemptWithin | preemptGang)
	text, ok = preemptModes[base]
	if !ok {
		return "", base == 0
	}
	if mode&preemptGang != 0 {
		text += ",GANG"
	}
	if mode&preemptWithin != 0 {
		text += ",WITHIN"
	}
	return text, true
}

// namesOf are the names of numbers in a list such as ,1,2, in order; numbers without a name are of QOS that are gone.
func namesOf(list string, names map[string]string) (out []string) {
	for id := range strings.SplitSeq(list, ",") {
		if name := names[id]; name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
