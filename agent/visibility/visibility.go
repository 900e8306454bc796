// Package visibility says what a caller may see of a cluster: PrivateData of slurm.conf, for all reads alike.
package visibility

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Nobody is who looks at the page without a login.
const Nobody = 65534

// Stranger is a caller of whom nothing is known.
var Stranger = api.Caller{Identity: cluster.Identity{UID: Nobody, GID: Nobody}}

// Scope is what a caller may see of a snapshot: all, but for what PrivateData keeps to operators and to whom
// it concerns.
type Scope struct {
	Snap *cluster.Snapshot
	Who  api.Caller
	All  bool
}

// Of says what a caller may see.
func Of(snap *cluster.Snapshot, who api.Caller) Scope {
	v := Scope{Snap: snap, Who: who}
	if proven(who) || !Restricts(snap.Config()) {
		v.All = true
		return v
	}
	v.name()
	v.All = v.leads()
	return v
}

// proven reports whether a caller sees all by what it is, whatever the books say.
func proven(who api.Caller) bool { return who.Operator() || who.Sees }

// name finds the caller's name where only the number is known.
func (v *Scope) name() {
	if v.Who.User != "" {
		return
	}
	u, err := users.ByID.Get(v.Who.UID)
	if err != nil {
		return
	}
	v.Who.User = u.Name
	v.Who.GID = u.GID
	v.Who.Groups = u.Groups
}

// leaders are the levels of the books that may see all.
var leaders = []string{"Operator", "Administrator"}

// leads reports whether the books name the caller as an operator or administrator.
func (v *Scope) leads() bool {
	if v.Who.User == "" {
		return false
	}
	u, ok := v.Snap.User(v.Who.User)
	return ok && slices.Contains(leaders, u.AdminLevel)
}

// Operates reports whether a caller is an operator or administrator, or reads as one.
func Operates(snap *cluster.Snapshot, who api.Caller) bool {
	if proven(who) {
		return true
	}
	v := Scope{Snap: snap, Who: who}
	v.name()
	return v.leads()
}

// Restricts reports whether PrivateData hides anything at all.
func Restricts(cfg *cluster.Config) bool {
	text := cfg.Keys["privatedata"]
	return text != "" && !strings.EqualFold(text, "none")
}

// Hides reports whether a kind of information is kept from the caller where it concerns others.
func (v Scope) Hides(what cluster.Private) bool { return !v.All && v.Snap.Config().Hides(what) }

// Job reports whether the caller may see a job.
func (v Scope) Job(j *cluster.Job) bool {
	if !v.Hides(cluster.PrivateJobs) || j.Spec.UID == v.Who.UID {
		return true
	}
	return v.Snap.Coordinates(v.Who.User, j.Spec.Account)
}

// Step reports whether the caller may see a step.
func (v Scope) Step(st *cluster.Step) bool {
	if !v.Hides(cluster.PrivateJobs) {
		return true
	}
	j, ok := v.Snap.Job(st.ID.Job)
	return ok && v.Job(j)
}

// Nodes refuses callers who may not see the states of nodes.
func (v Scope) Nodes() error {
	if v.Hides(cluster.PrivateNodes) {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "nodes are shown to operators only (PrivateData)")
	}
	return nil
}

// Reservation reports whether the caller may see a reservation.
func (v Scope) Reservation(r *cluster.Reservation) bool {
	if !v.Hides(cluster.PrivateReservations) {
		return true
	}
	spec := cluster.JobSpec{User: v.Who.User, GID: v.Who.GID, Groups: v.Who.Groups}
	if r.Allows(&spec) {
		return true
	}
	for spec.Account = range v.accounts() {
		if r.Allows(&spec) {
			return true
		}
	}
	return false
}

// noName is the name of nobody.
const noName = "\x00"

// is reports whether the caller has a name; user "" stands for an account, and a caller without a name is nobody.
func (v Scope) is(user string) bool { return user == cmp.Or(v.Who.User, noName) }

// accounts yields the accounts of which the caller is a user.
func (v Scope) accounts() iter.Seq[string] {
	return func(yield func(string) bool) {
		for a := range v.Snap.Assocs() {
			if v.is(a.User) && !yield(a.Account) {
				return
			}
		}
	}
}

// Span reports whether the caller may see a time of a reservation in history. That knows users and accounts alone: one
// that was for a group or a QOS is shown to operators.
func (v Scope) Span(r *cluster.ResvSpan) bool {
	users := r.Users
	if len(r.Users)+len(r.Accounts) == 0 {
		users = []string{noName}
	}
	return v.Reservation(&cluster.Reservation{
		Users: users, UsersNot: r.UsersNot, Accounts: r.Accounts, AccountsNot: r.AccountsNot,
	})
}

// Events refuses callers who may not see what happened to nodes.
func (v Scope) Events() error {
	if v.Hides(cluster.PrivateEvents) {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "events are shown to operators only (PrivateData)")
	}
	return v.Nodes()
}

// Owner reports whether the caller may see a kind of what is a user's in an account; user "" is the account itself.
func (v Scope) Owner(what cluster.Private, user, account string) bool {
	if !v.Hides(what) || v.is(user) {
		return true
	}
	if v.Snap.Coordinates(v.Who.User, account) {
		return true
	}
	return user == "" && v.in(account)
}

// in reports whether the caller is a user of an account.
func (v Scope) in(account string) bool {
	for own := range v.accounts() {
		if own == account {
			return true
		}
	}
	return false
}

// OnlyOwn leaves of sums those that the caller may see.
func (v Scope) OnlyOwn(rows []cluster.UsageRow) []cluster.UsageRow {
	return slices.DeleteFunc(rows,
		func(r cluster.UsageRow) bool { return !v.Owner(cluster.PrivateUsage, r.User, r.Account) })
}
