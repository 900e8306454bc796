package cluster

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"
)

// AssocID numbers associations; root's is 1, none is 0.
type AssocID uint32

// Amount is so much of a resource, by Slurm's name for it: cpu, mem (MB), node, gres/gpu, gres/gpu:h100, billing.
type Amount struct {
	TRES string  `json:"tres"`
	N    float64 `json:"n"`
}

// amountOf finds how much of a resource a list has.
func amountOf(list []Amount, tres string) (n float64) {
	for _, a := range list {
		if a.TRES == tres {
			return a.N
		}
	}
	return 0
}

// Limit is one limit of an association or a QOS: a row of LimitNames, for those that limit resources of
// one resource. Times are seconds.
type Limit struct {
	Name string `json:"name"`
	TRES string `json:"tres,omitempty"`
	Max  int64  `json:"max"`
}

// Unit says what a limit's number counts.
type Unit uint8

// The units of limits.
const (
	UnitCount   Unit = iota
	UnitTRES         // a number for each resource
	UnitSeconds      // of a time limit, or of a sum of them
)

// LimitName is a row of the table of limits: what it is called, what it counts, whose it may be.
type LimitName struct {
	Name       string
	Unit       Unit
	Assoc, QOS bool
}

// LimitNames is the table. It is a function, so that front-ends pay nothing for it at start.
func LimitNames() []LimitName {
	return []LimitName{
		{"GrpTRES", UnitTRES, true, true}, {"GrpTRESMins", UnitTRES, true, true},
		{"GrpTRESRunMins", UnitTRES, true, true},
		{"GrpJobs", UnitCount, true, true}, {"GrpJobsAccrue", UnitCount, true, true},
		{"GrpSubmitJobs", UnitCount, true, true},
		{"GrpWall", UnitSeconds, true, true},
		{"MaxTRES", UnitTRES, true, true}, {"MaxTRESPerNode", UnitTRES, true, true},
		{"MaxTRESMins", UnitTRES, true, true},
		{"MaxWall", UnitSeconds, true, true}, {"MinPrioThreshold", UnitCount, true, true},
		{"MaxJobs", UnitCount, true, false}, {"MaxJobsAccrue", UnitCount, true, false},
		{"MaxSubmitJobs", UnitCount, true, false},
		{"MaxTRESPerUser", UnitTRES, false, true}, {"MaxTRESPerAccount", UnitTRES, false, true},
		{"MaxTRESRunMinsPerUser", UnitTRES, false, true}, {"MaxTRESRunMinsPerAccount", UnitTRES, false, true},
		{"MaxJobsPerUser", UnitCount, false, true}, {"MaxJobsPerAccount", UnitCount, false, true},
		{"MaxSubmitJobsPerUser", UnitCount, false, true}, {"MaxSubmitJobsPerAccount", UnitCount, false, true},
		{"MaxJobsAccruePerUser", UnitCount, false, true}, {"MaxJobsAccruePerAccount", UnitCount, false, true},
		{"MinTRES", UnitTRES, false, true},
	}
}

// Limits are the limits that are set, in order of name and resource.
type Limits []Limit

// Get finds a limit.
func (l Limits) Get(name, tres string) (int64, bool) {
	for _, x := range l {
		if x.Name == name && x.TRES == tres {
			return x.Max, true
		}
	}
	return 0, false
}

// Named yields the limits of one name, one for each resource.
func (l Limits) Named(name string) iter.Seq[Limit] {
	return func(yield func(Limit) bool) {
		for _, x := range l {
			if x.Name == name && !yield(x) {
				return
			}
		}
	}
}

// With is the limits with one changed; a negative number takes it away.
func (l Limits) With(x Limit) Limits {
	out := slices.DeleteFunc(slices.Clone(l), func(o Limit) bool {
		return o.Name == x.Name && o.TRES == x.TRES
	})
	if x.Max >= 0 {
		out = append(out, x)
	}
	slices.SortFunc(out,
		func(a, b Limit) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.TRES, b.TRES)) })
	return out
}

// Spent is what was used up so far, decayed: billing-seconds, seconds, and resource-seconds.
type Spent struct {
	Raw  float64  `json:"raw,omitempty"`
	Wall float64  `json:"wall,omitempty"`
	TRES []Amount `json:"tres,omitempty"`
}

// Account is a group of users who share resources.
type Account struct {
	Name         string `json:"name"`
	Description  string `json:"description,omitempty"`
	Organization string `json:"organization,omitempty"`
	// Coordinators may change what belongs to the account and to those below it, and the jobs charged there.
	Coordinators []string `json:"coordinators,omitempty"`
}

// User is somebody with associations.
type User struct {
	Name           string `json:"name"`
	DefaultAccount string `json:"default_account,omitempty"`
	AdminLevel     string `json:"admin_level,omitempty"` // None, Operator, Administrator
	// WCKeys are the user's keys by name; DefaultWCKey is one of them, or none.
	WCKeys       []WCKey `json:"wckeys,omitempty"`
	DefaultWCKey string  `json:"default_wckey,omitempty"`
}

// ShareParent as a number of shares is fairshare=parent.
const ShareParent = -1

// Association is a place in the tree of accounts: an account's, or a user's in it, perhaps for one
// partition alone. Limits and QOS that are not set are the parent's.
type Association struct {
	ID         AssocID  `json:"id"`
	Parent     AssocID  `json:"parent,omitempty"` // 0: it is root's
	Account    string   `json:"account"`
	User       string   `json:"user,omitempty"`
	Partition  string   `json:"partition,omitempty"`
	Shares     int      `json:"shares"` // or ShareParent
	Priority   int      `json:"priority,omitempty"`
	QOS        []string `json:"qos,omitempty"`
	DefaultQOS string   `json:"default_qos,omitempty"`
	Limits     Limits   `json:"limits,omitempty"`
	Comment    string   `json:"comment,omitempty"`
	// Only Apply changes these: what was used up here and below, and the fair-share factor.
	Spent     Spent   `json:"spent,omitzero"`
	FairShare float64 `json:"fair_share,omitempty"`
}

// QOS is a quality of service: a priority and limits that jobs ask for by name.
type QOS struct {
	ID             uint32        `json:"id"`
	Name           string        `json:"name"`
	Description    string        `json:"description,omitempty"`
	Priority       int           `json:"priority,omitempty"`
	UsageFactor    float64       `json:"usage_factor"`
	UsageThreshold *float64      `json:"usage_threshold,omitempty"`
	LimitFactor    *float64      `json:"limit_factor,omitempty"`
	GraceTime      time.Duration `json:"grace_time,omitempty"`
	Preempt        []string      `json:"preempt,omitempty"`
	PreemptMode    string        `json:"preempt_mode,omitempty"` // empty: the cluster's
	PreemptExempt  time.Duration `json:"preempt_exempt,omitempty"`
	Flags          []string      `json:"flags,omitempty"` // as Slurm writes them: DenyOnLimit …
	Limits         Limits        `json:"limits,omitempty"`
	// UsageReset is how often the usage of the QOS is set to zero. With a period of its own it neither fades nor is
	// set to zero with the cluster's: GrpTRESMins is a budget of that period. Without one it does as the cluster's
	// does.
	UsageReset Period `json:"usage_reset,omitempty"`
	Spent      Spent  `json:"spent,omitzero"` // only Apply changes it
}

// budget reports whether the usage of the QOS is counted in periods of its own.
func (q *QOS) budget() bool { return q.UsageReset != ResetNever }

// Flag reports whether the QOS has a flag.
func (q *QOS) Flag(name string) bool {
	return q != nil && slices.ContainsFunc(q.Flags, func(f string) bool { return strings.EqualFold(f, name) })
}

// The names that are always there once anything is.
const (
	RootName  = "root"
	NormalQOS = "normal"
)

// owner is whose an association is.
type owner string

func ownerOf(account, user, partition string) owner {
	return owner(account + "\x00" + user + "\x00" + partition)
}

// Accounting reports whether there are accounts. Without any nobody needs one.
func (b *books) Accounting() bool { return b.assocs.Len() > 0 }

// Accounts yields the accounts by name.
func (b *books) Accounts() iter.Seq[*Account] { return valuesOf(b.accounts) }

// Users yields the users by name.
func (b *books) Users() iter.Seq[*User] { return valuesOf(b.users) }

// Assocs yields the associations by number.
func (b *books) Assocs() iter.Seq[*Association] { return valuesOf(b.assocs) }

// QOSes yields the qualities of service by name.
func (b *books) QOSes() iter.Seq[*QOS] { return valuesOf(b.qos) }

// Assoc finds an association by number.
func (b *books) Assoc(id AssocID) (*Association, bool) { return b.assocs.Get(id) }

// User finds a user.
func (b *books) User(name string) (*User, bool) { return b.users.Get(name) }

// Account finds an account.
func (b *books) Account(name string) (*Account, bool) { return b.accounts.Get(name) }

// QOS finds a quality of service.
func (b *books) QOS(name string) (*QOS, bool) { return b.qos.Get(name) }

// AssocOf finds a user's association with an account: the one for the partition, or for all.
func (b *books) AssocOf(account, user, partition string) (*Association, bool) {
	id, ok := b.byOwner.Get(ownerOf(account, user, partition))
	if !ok {
		id, ok = b.byOwner.Get(ownerOf(account, user, ""))
	}
	if !ok {
		return nil, false
	}
	return b.assocs.Get(*id)
}

// Line yields an association and those above it, up to root's.
func (b *books) Line(id AssocID) iter.Seq[*Association] {
	return func(yield func(*Association) bool) {
		for range maxDepth {
			a, ok := b.assocs.Get(id)
			if !ok || !yield(a) {
				return
			}
			id = a.Parent
		}
	}
}

// maxDepth bounds the tree of accounts.
const maxDepth = 64

// AllowedQOS is what an association's jobs may ask for: its own list, or the next one above.
func (b *books) AllowedQOS(id AssocID) []string {
	for a := range b.Line(id) {
		if len(a.QOS) > 0 {
			return a.QOS
		}
	}
	return nil
}

// DefaultQOS is what jobs that ask for no QOS get: the default one, else the only one that is allowed, else normal,
// allowed or not.
func (b *books) DefaultQOS(id AssocID) string {
	for a := range b.Line(id) {
		if a.DefaultQOS != "" {
			return a.DefaultQOS
		}
	}
	if list := b.AllowedQOS(id); len(list) == 1 {
		return list[0]
	}
	return NormalQOS
}

func named(what, name string) error {
	if name == "" || len(name) > MaxNameBytes {
		return Errorf(Invalid, ErrAccount, "%q is not a name of %s: it has between 1 and %d letters", name,
			what, MaxNameBytes)
	}
	return nil
}

// Change puts one record of the books, known by its name or by whose it is, or takes it away. Exactly one
// of the pointers is set.
type Change struct {
	Account *Account     `json:"account,omitempty"`
	User    *User        `json:"user,omitempty"`
	Assoc   *Association `json:"assoc,omitempty"`
	QOS     *QOS         `json:"qos,omitempty"`
	Delete  bool         `json:"delete,omitempty"`
	// Under names the account that an account's association hangs below, in place of Assoc.Parent: it may be one
	// that the same command makes.
	Under string `json:"under,omitempty"`
	// Reset sets the usage of an association (and of those above it as much less) or QOS to zero.
	Reset bool `json:"reset,omitempty"`
	// Usage sets the usage of an association, and of those above it as much more or less, or that of a QOS. Without
	// TRES, the usage of resources and of time stays. The usage of the associations below stays in any case.
	Usage *Spent `json:"usage,omitempty"`
}

// Period is how often usage is set to zero.
type Period string

// The periods. ResetNow is once, when the configuration is read.
const (
	ResetNever     Period = ""
	ResetNow       Period = "NOW"
	ResetDaily     Period = "DAILY"
	ResetWeekly    Period = "WEEKLY"
	ResetMonthly   Period = "MONTHLY"
	ResetQuarterly Period = "QUARTERLY"
	ResetYearly    Period = "YEARLY"
)

// Periods are those that come again and again.
func Periods() []Period {
	return []Period{ResetDaily, ResetWeekly, ResetMonthly, ResetQuarterly, ResetYearly}
}
