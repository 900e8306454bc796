package server

import (
	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
)

// The levels of users that the books name (AdminLevel), and what they may do: an operator with jobs, reservations,
// the books and history what root does, but for making operators; an administrator all that, and with nodes,
// partitions and the configuration too. The entry in the log says it, so that it means the same later. A call that
// a compute node vouches for has no rank: nodes speak for whoever runs jobs there, and no more than that is trusted
// to them.

// privilege is the level that the books give a caller, "" for none.
func (s *Server) privilege(who api.Caller) string {
	if who.Role == cluster.RoleNode || who.NodeRoot || who.Operator() {
		return ""
	}
	return adminLevel(s.Snapshot(), s.named(who).User)
}

// The levels, as the books have them.
const (
	operatorLevel = "Operator"
	administrator = "Administrator"
)

// adminLevel is that which the books give a user, "" for none.
func adminLevel(snap *cluster.Snapshot, user string) string {
	u, ok := snap.User(user)
	if !ok || u.AdminLevel != operatorLevel && u.AdminLevel != administrator {
		return ""
	}
	return u.AdminLevel
}

// actor is as whom a caller's command is logged: with the name, and with what the level adds to the rights, where
// the endpoint has a column for that.
func (s *Server) actor(who api.Caller, rights api.Rights) cluster.Identity {
	id := who.Identity
	if rights.Has(api.Named) {
		id = s.named(who)
	}
	fromNode := rights.Has(api.ForDeputies) && who.Role == cluster.RoleNode
	if fromNode && adminLevel(s.Snapshot(), id.User) == administrator {
		id.User = "" // the books would know an administrator by the name alone
	}
	if rights&^(api.Named|api.ForNodeRoot) == 0 {
		return id
	}
	level := s.privilege(who)
	switch {
	case level == "":
	case rights.Has(api.ForOperators), rights.Has(api.ForAdministrators) && level == administrator:
		id.Admin = true
	case rights.Has(api.ForDeputies):
		id.Deputy = true
	}
	return id
}

// named is a caller with the name that the books may know.
func (s *Server) named(who api.Caller) cluster.Identity {
	if u, err := users.ByID.Get(who.UID); err == nil && !who.NodeRoot {
		who.User = u.Name
	}
	return who.Identity
}
