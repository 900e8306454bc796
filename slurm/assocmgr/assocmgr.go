// Package assocmgr is scontrol show assoc_mgr: users, associations and QOS, with their limits and what jobs use of
// them.
package assocmgr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// assocFilter is what scontrol show assoc_mgr is to show.
type assocFilter struct {
	users, accounts, qos []string
	parts                []string // users, assoc, qos; none: all
}

func (f *assocFilter) part(name string) bool {
	return len(f.parts) == 0 || slices.Contains(f.parts, name)
}

// named reports whether a list is empty or has a name, in any case.
func named(list []string, name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
}

// FlagError is a word of flags= that is unknown.
type FlagError string

func (e FlagError) Error() string {
	return "invalid flag '" + string(e) + "', valid options are 'Assoc, QOS, and/or Users'"
}

// CallError is a call that failed.
type CallError struct{ Err error }

func (e *CallError) Error() string { return e.Err.Error() }

func (e *CallError) Unwrap() error { return e.Err }

// assocParts are the words of flags=, from three letters on.
var assocParts = [...]string{"users", "assoc", "qos"}

// readWords reads the words behind show assoc_mgr.
func readWords(args []string) (f assocFilter, err error) {
	for _, s := range front.Words(args) {
		list := front.SplitList(s.Value)
		switch s.Key {
		case "users", "user":
			f.users = append(f.users, list...)
		case "accounts", "account":
			f.accounts = append(f.accounts, list...)
		case "qos":
			f.qos = append(f.qos, list...)
		case "flags":
			for _, w := range list {
				word := strings.ToLower(w)
				i := slices.IndexFunc(assocParts[:], func(p string) bool { return front.IsKey(word, 1, p) })
				if i < 0 {
					return f, FlagError(w)
				}
				f.parts = append(f.parts, assocParts[i])
			}
		default:
			return f, fmt.Errorf("invalid entity: %s for keyword:show assoc_mgr", s.Text)
		}
	}
	return f, nil
}

// inUse is what jobs have of something that limits them.
type inUse struct {
	jobs, submitted, accrue int
	amounts                 []cluster.Amount
}

func (u *inUse) add(j *cluster.Job, given []cluster.Amount) {
	u.submitted += max(j.Tasks.Len(), 1)
	if j.Phase == cluster.Pending && !j.Accrue.IsZero() {
		u.accrue += max(j.Tasks.Len(), 1)
	}
	if j.Alloc == nil || j.Phase == cluster.Pending {
		return
	}
	u.jobs++
	for _, a := range given {
		i := slices.IndexFunc(u.amounts, func(b cluster.Amount) bool { return b.TRES == a.TRES })
		if i < 0 {
			i, u.amounts = len(u.amounts), append(u.amounts, cluster.Amount{TRES: a.TRES})
		}
		u.amounts[i].N += a.N
	}
}

// uses is what names have in use.
type uses map[string]*inUse

// assocMgr is one scontrol show assoc_mgr: the books and what jobs use of them.
type assocMgr struct {
	assocFilter
	oneLine    bool
	b          strings.Builder
	books      show.Books
	tres       []string
	uids       map[string]front.User
	byAssoc    map[cluster.AssocID]*inUse
	byQOS      map[string]*inUse
	runMins    map[string][]cluster.Amount
	perAccount map[string]uses // of each QOS
	perUser    map[string]uses
}

func useOf[K comparable](m map[K]*inUse, k K) *inUse {
	if m[k] == nil {
		m[k] = &inUse{}
	}
	return m[k]
}

// Read asks for what scontrol show assoc_mgr prints, a record a line where oneLine says so. Its errors are of the
// words, or of the calls.
func Read(sys *front.Sys, oneLine bool, args []string) (text string, err error) {
	f, err := readWords(args)
	if err != nil {
		return "", err
	}
	m := assocMgr{oneLine: oneLine, assocFilter: f, byAssoc: map[cluster.AssocID]*inUse{}, byQOS: uses{},
		runMins: map[string][]cluster.Amount{}, perAccount: map[string]uses{}, perUser: map[string]uses{}}
	if err := m.read(sys); err != nil {
		return "", &CallError{err}
	}
	m.text("Current Association Manager state\n")
	for _, part := range []struct {
		name string
		show func(*assocMgr)
	}{{"users", (*assocMgr).showUsers}, {"assoc", (*assocMgr).showAssocs}, {"qos", (*assocMgr).showQOS}} {
		if f.part(part.name) {
			part.show(&m)
		}
	}
	if oneLine {
		lines := strings.NewReplacer("\n        ", " ", "\n    ", " ", "\n\n", "\n") // a record each
		return lines.Replace(m.b.String()), nil
	}
	return m.b.String(), nil
}

// read asks for the books, and for the jobs that use them.
func (m *assocMgr) read(sys *front.Sys) error {
	books, err := front.Call(sys, api.ListBooks, api.AfterQuery{})
	if err != nil {
		return err
	}
	jobs, err := front.Call(sys, api.ListJobs, api.JobQuery{})
	if err != nil {
		return err
	}
	conf, err := front.Call(sys, api.ShowCluster, api.Empty{})
	if err != nil {
		return err
	}
	m.books = show.Books{BooksResponse: books}
	m.tres = append(show.SlurmTRES(), books.TRES...)
	names := make([]string, 0, len(books.Users))
	for _, u := range books.Users {
		names = append(names, u.Name)
	}
	m.uids = front.LookupUsers(names)
	m.count(&conf.Config, jobs.Jobs, jobs.Now)
	return nil
}

// count adds up what jobs have: of their association and those above, of their QOS, and there of their account
// and user.
func (m *assocMgr) count(conf *cluster.Config, jobs []*cluster.Job, now time.Time) {
	for _, j := range jobs {
		if j.Phase == cluster.Ended {
			continue
		}
		given := j.Amounts(conf, nil)
		if j.Alloc != nil && j.Alloc.Billing != nil {
			given = append(given, cluster.Amount{TRES: "billing", N: *j.Alloc.Billing})
		}
		for a := m.books.Assoc(j.Assoc); a != nil; a = m.books.Assoc(a.Parent) {
			useOf(m.byAssoc, a.ID).add(j, given)
		}
		q := j.Spec.QOS
		if q == "" {
			continue
		}
		if end := j.EndLimit(conf); !end.IsZero() && j.Phase < cluster.Ending {
			for _, a := range given {
				a.N *= max(end.Sub(now).Minutes(), 0)
				m.runMins[q] = append(m.runMins[q], a)
			}
		}
		if m.perAccount[q] == nil {
			m.perAccount[q], m.perUser[q] = uses{}, uses{}
		}
		useOf(m.byQOS, q).add(j, given)
		useOf(m.perAccount[q], j.Spec.Account).add(j, given)
		useOf(m.perUser[q], front.UintText(j.Spec.UID)).add(j, given)
	}
}

func (m *assocMgr) text(format string, args ...any) { _, _ = fmt.Fprintf(&m.b, format, args...) }

// userText is a user with its number.
func (m *assocMgr) userText(name string) string {
	if name == "" {
		return ""
	}
	u, ok := m.uids[name]
	if !ok {
		return name + "(4294967294)"
	}
	return name + "(" + front.UintText(u.UID) + ")"
}

func (m *assocMgr) showUsers() {
	found, title := false, "\nUser Records\n\n"
	for _, u := range m.books.Users {
		if !named(m.users, u.Name) {
			continue
		}
		m.text("%s", title)
		found, title = true, ""
		key, level := u.DefaultWCKey, u.AdminLevel
		if key == "" {
			key = "(null)"
		}
		if level == "" {
			level = "Not Set" // where one was taken back, None
		}
		m.text("UserName=%s DefAccount=%s DefWckey=%s AdminLevel=%s\n", m.userText(u.Name), u.DefaultAccount,
			key, level)
	}
	if !found {
		m.text("\nNo users currently cached in Slurm.\n\n")
	}
}

func (m *assocMgr) showAssocs() {
	m.text("\nAssociation Records\n\n")
	p := &m.books.Priority
	stands := cluster.FairShares(slices.Values(m.books.Assocs), p.NoFairTree, p.Dampening)
	level := map[cluster.AssocID]int{}
	for _, a := range m.books.Assocs {
		level[a.Parent] += max(a.Shares, 0)
	}
	left, depth := 0, 0
	for i, t := range show.TreeOf(m.books.Assocs) {
		if i > 0 { // those that were left on the way here count, too
			left += 1 + max(depth-t.Depth+1, 0)
		} else {
			left = 1
		}
		depth = t.Depth
		if named(m.accounts, t.Account) && (t.User == "" || named(m.users, t.User)) {
			m.assoc(t.Association, stands[t.ID], level[t.Parent], left)
		}
	}
}

func (m *assocMgr) assoc(a *cluster.Association, s *cluster.Standing, level, left int) {
	parent, isDefault, norm, used := "", "No", s.NormUsage, s.Usage
	if p := m.books.Assoc(a.Parent); p != nil && a.User == "" {
		parent = p.Account + "(" + front.UintText(uint32(p.ID)) + ")"
	}
	if u := m.books.User(a.User); u != nil && u.DefaultAccount == a.Account && a.Partition == "" {
		isDefault = "Yes"
	}
	if a.Parent == 0 {
		norm, used = 1, 1
	}
	u := useOf(m.byAssoc, a.ID)
	m.text("ClusterName=%s Account=%s UserName=%s Partition=%s Priority=%d ID=%d\n", m.books.Cluster, a.Account,
		m.userText(a.User), a.Partition, a.Priority, a.ID)
	m.text("    SharesRaw/Norm/Level/Factor=%d/%.2f/%d/%.2f\n", a.Shares, s.NormShares, level, a.FairShare)
	m.text("    UsageRaw/Norm/Efctv=%.2f/%.2f/%.2f\n", a.Spent.Raw, norm, used)
	m.text("    ParentAccount=%s Lft=%d DefAssoc=%s\n", parent, left, isDefault)
	l := a.Limits
	m.text("    GrpJobs=%s GrpJobsAccrue=%s\n", limitOf(l, "GrpJobs", u.jobs), limitOf(l, "GrpJobsAccrue", u.accrue))
	m.text("    GrpSubmitJobs=%s GrpWall=%s\n", limitOf(l, "GrpSubmitJobs", u.submitted), wallOf(l, a.Spent.Wall))
	m.groupTRES(l, u, a.Spent, m.books.RunMins[a.ID])
	m.text("    MaxJobs=%s MaxJobsAccrue=%s MaxSubmitJobs=%s MaxWallPJ=%s\n", limitSet(l, "MaxJobs", u.jobs),
		limitSet(l, "MaxJobsAccrue", u.accrue), limitSet(l, "MaxSubmitJobs", u.submitted), wallMax(l))
	m.perJob(l)
	m.text("    MinPrioThresh=%s\n", show.LimitText(l, "MinPrioThreshold"))
}

// perJob writes the three lines of limits for each job.
func (m *assocMgr) perJob(l cluster.Limits) {
	m.text("    MaxTRESPJ=%s\n    MaxTRESPN=%s\n    MaxTRESMinsPJ=%s\n", show.LimitText(l, "MaxTRES"),
		show.LimitText(l, "MaxTRESPerNode"), show.LimitText(l, "MaxTRESMins"))
}

// limitOf is a limit of numbers, N for none, and what is used of it.
func limitOf(l cluster.Limits, name string, used int) string {
	text := "N"
	if n, ok := l.Get(name, ""); ok {
		text = strconv.FormatInt(n, 10)
	}
	return text + "(" + strconv.Itoa(used) + ")"
}

// limitSet is a limit that is there, with what is used of it.
func limitSet(l cluster.Limits, name string, used int) string {
	if _, ok := l.Get(name, ""); !ok {
		return ""
	}
	return limitOf(l, name, used)
}

// wallOf is GrpWall and what was used, in minutes.
func wallOf(l cluster.Limits, spent float64) string {
	text := "N"
	if n, ok := l.Get("GrpWall", ""); ok {
		text = strconv.FormatInt(n/60, 10)
	}
	return fmt.Sprintf("%s(%.2f)", text, spent/60)
}

// wallMax is MaxWall in minutes.
func wallMax(l cluster.Limits) string {
	n, ok := l.Get("MaxWall", "")
	if !ok {
		return ""
	}
	return strconv.FormatInt(n/60, 10)
}

// groupTRES writes the three lines of limits for all jobs together.
func (m *assocMgr) groupTRES(l cluster.Limits, u *inUse, spent cluster.Spent, run []cluster.Amount) {
	mins := slices.Concat(spent.TRES, []cluster.Amount{{TRES: "billing", N: spent.Raw}})
	for i := range mins {
		mins[i].N /= 60
	}
	m.text("    GrpTRES=%s\n    GrpTRESMins=%s\n    GrpTRESRunMins=%s\n", m.tresOf(l, "GrpTRES", u.amounts),
		m.tresOf(l, "GrpTRESMins", mins), m.tresOf(l, "GrpTRESRunMins", run))
}

// tresOf writes a limit of each resource, N for none, and what is used of it.
func (m *assocMgr) tresOf(l cluster.Limits, name string, used []cluster.Amount) string {
	var parts []string
	for _, t := range m.tres {
		text := "N"
		if n, ok := l.Get(name, t); ok {
			text = strconv.FormatInt(n, 10)
		}
		parts = append(parts, t+"="+text+"("+strconv.FormatInt(int64(sum(used, t)), 10)+")")
	}
	return strings.Join(parts, ",")
}

func sum(list []cluster.Amount, tres string) (n float64) {
	for _, a := range list {
		if a.TRES == tres {
			n += a.N
		}
	}
	return n
}

func (m *assocMgr) showQOS() {
	m.text("\nQOS Records\n\n")
	for _, q := range m.books.QOS {
		if !named(m.qos, q.Name) {
			continue
		}
		u, mode := useOf(m.byQOS, q.Name), q.PreemptMode
		if mode == "" || strings.EqualFold(mode, "cluster") {
			mode = "OFF"
		}
		l := q.Limits
		m.text("QOS=%s(%d)\n    UsageRaw=%.6f\n", q.Name, q.ID, q.Spent.Raw)
		m.text("    GrpJobs=%s GrpJobsAccrue=%s GrpSubmitJobs=%s GrpWall=%s\n", limitOf(l, "GrpJobs", u.jobs),
			limitOf(l, "GrpJobsAccrue", u.accrue), limitOf(l, "GrpSubmitJobs", u.submitted), wallOf(l, q.Spent.Wall))
		m.groupTRES(l, u, q.Spent, m.runMins[q.Name])
		m.text("    MaxWallPJ=%s\n", wallMax(l))
		m.perJob(l)
		m.text("    MinPrioThresh=%s \n    MinTRESPJ=%s\n    PreemptMode=%s\n    Priority=%d\n",
			show.LimitText(l, "MinPrioThreshold"), show.LimitText(l, "MinTRES"), mode, q.Priority)
		m.holders("Account", "PA", l, m.perAccount[q.Name])
		m.holders("User", "PU", l, m.perUser[q.Name])
	}
}

// holders writes what each account or user has of a QOS.
func (m *assocMgr) holders(who, short string, l cluster.Limits, all uses) {
	m.text("    %s Limits", who)
	open, between, end := "\n      %s\n        ", "\n        ", ""
	if m.oneLine {
		open, between, end = " %s={", " ", "}"
		m.text("=")
	}
	switch {
	case len(all) > 0:
	case m.oneLine:
		m.text("No %ss", who)
	default:
		m.text(between+"No %ss", who)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		u, per := all[name], "Per"+who
		m.text(open+"MaxJobs%s=%s MaxJobsAccrue%s=%s MaxSubmitJobs%s=%s", name,
			short, limitOf(l, "MaxJobs"+per, u.jobs), short, limitOf(l, "MaxJobsAccrue"+per, u.accrue),
			short, limitOf(l, "MaxSubmitJobs"+per, u.submitted))
		m.text(between+"MaxTRES%s=%s"+end, short, m.tresOf(l, "MaxTRES"+per, u.amounts))
	}
	m.text("\n")
}
