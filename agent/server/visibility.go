package server

import (
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
)

// nobody is who looks at the page without a login.
const nobody = 65534

// stranger is a caller of whom nothing is known.
var stranger = api.Caller{Identity: cluster.Identity{UID: nobody, GID: nobody}}

// visibility is what a caller may see of a snapshot: all, but for what PrivateData keeps to operators and to whom
// it concerns.
type visibility struct {
	snap *cluster.Snapshot
	who  api.Caller
	all  bool
}

// visibilityOf says what a caller may see.
func visibilityOf(snap *cluster.Snapshot, who api.Caller) visibility {
	v := visibility{snap: snap, who: who, all: who.Operator() || who.Sees || !private(snap.Config())}
	if v.all {
		return v
	}
	v.name()
	v.all = v.leads()
	return v
}

// name finds the caller's name where only the number is known.
func (v *visibility) name() {
	if v.who.User == "" {
		if u, err := users.get(v.who.UID); err == nil {
			v.who.User, v.who.GID, v.who.Groups = u.name, u.gid, u.groups
		}
	}
}

// leads reports whether the books name the caller as an operator or administrator.
func (v *visibility) leads() bool {
	u, ok := v.snap.User(v.who.User)
	return ok && v.who.User != "" && (u.AdminLevel == "Operator" || u.AdminLevel == "Administrator")
}

// operates reports whether a caller is an operator or administrator, or reads as one.
func operates(snap *cluster.Snapshot, who api.Caller) bool {
	v := visibility{snap: snap, who: who}
	if who.Operator() || who.Sees {
		return true
	}
	v.name()
	return v.leads()
}

// visibleTo is what a caller may see of the present. Where nothing is hidden no snapshot is made for it.
func (s *Server) visibleTo(who api.Caller) visibility {
	s.mu.Lock()
	cfg := s.state.Config()
	s.mu.Unlock()
	if who.Operator() || !private(cfg) {
		return visibility{who: who, all: true}
	}
	return visibilityOf(s.committed(), who)
}

// private reports whether PrivateData hides anything at all.
func private(cfg *cluster.Config) bool {
	text := cfg.Keys["privatedata"]
	return text != "" && !strings.EqualFold(text, "none")
}

// hides reports whether a kind of information is kept from the caller where it concerns others.
func (v visibility) hides(what cluster.Private) bool { return !v.all && v.snap.Config().Hides(what) }

// job reports whether the caller may see a job.
func (v visibility) job(j *cluster.Job) bool {
	return !v.hides(cluster.PrivateJobs) || j.Spec.UID == v.who.UID || v.snap.Coordinates(v.who.User, j.Spec.Account)
}

// step reports whether the caller may see a step.
func (v visibility) step(st *cluster.Step) bool {
	if !v.hides(cluster.PrivateJobs) {
		return true
	}
	j, ok := v.snap.Job(st.ID.Job)
	return ok && v.job(j)
}

// nodes refuses callers who may not see the states of nodes.
func (v visibility) nodes() error {
	if v.hides(cluster.PrivateNodes) {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "nodes are shown to operators only (PrivateData)")
	}
	return nil
}

// reservation reports whether the caller may see a reservation.
func (v visibility) reservation(r *cluster.Reservation) bool {
	if !v.hides(cluster.PrivateReservations) {
		return true
	}
	spec := cluster.JobSpec{User: v.who.User, GID: v.who.GID, Groups: v.who.Groups}
	if r.Allows(&spec) {
		return true
	}
	for a := range v.snap.Assocs() {
		if spec.Account = a.Account; a.User == spec.User && r.Allows(&spec) {
			return true
		}
	}
	return false
}

// span reports whether the caller may see a time of a reservation in history.
func (v visibility) span(r *cluster.ResvSpan) bool {
	return v.reservation(&cluster.Reservation{Users: r.Users, Accounts: r.Accounts})
}

// owner reports whether the caller may see a kind of what is a user's in an account; user "" is the account itself.
func (v visibility) owner(what cluster.Private, user, account string) bool {
	return !v.hides(what) || user == v.who.User || v.snap.Coordinates(v.who.User, account) ||
		user == "" && slices.ContainsFunc(slices.Collect(v.snap.Assocs()), func(a *cluster.Association) bool { return a.Account == account && a.User == v.who.User })
}

// onlyOwn leaves of sums those that the caller may see.
func (v visibility) onlyOwn(rows []cluster.UsageRow) []cluster.UsageRow {
	return slices.DeleteFunc(rows, func(r cluster.UsageRow) bool { return !v.owner(cluster.PrivateUsage, r.User, r.Account) })
}
