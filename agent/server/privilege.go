package server

import (
	"dev.muster/api"
	"dev.muster/cluster"
)

// The levels of users that the books name (AdminLevel), and what they may do: an operator with jobs, reservations, the books and history
// what root does, but for making operators; an administrator all that, and with nodes, partitions and the configuration too. The entry
// in the log says it, so that it means the same later. A call that a compute node vouches for has no rank: nodes speak for whoever
// runs jobs there, and no more than that is trusted to them.

// privilege is the level that the books give a caller, "" for none.
func (s *Server) privilege(who api.Caller) string {
	if who.Role == cluster.RoleNode || who.NodeRoot || who.Operator() {
		return ""
	}
	u, ok := s.Snapshot().User(s.named(who).User)
	if !ok || u.AdminLevel != "Operator" && u.AdminLevel != "Administrator" {
		return ""
	}
	return u.AdminLevel
}

// withPrivilege is a caller with the rights that the rank gives for a command.
func (s *Server) withPrivilege(who api.Caller, cmd cluster.Command) cluster.Identity {
	id := who.Identity
	switch cmd.(type) {
	case *cluster.Cancel, *cluster.HoldJobs, *cluster.Requeue, *cluster.Suspend, *cluster.UpdateJob, *cluster.TopJobs, *cluster.ReservationPut, *cluster.ReservationDrop:
		id.Admin = id.Admin || s.privilege(who) != ""
	case *cluster.NodeSet, *cluster.NodeReboot, *cluster.NodeCreate, *cluster.NodeDelete, *cluster.PartitionSet, *cluster.Configure:
		id.Admin = id.Admin || s.privilege(who) == "Administrator"
	case *cluster.ChangeAccounts, *cluster.AmendJobs, *cluster.Retain, *cluster.LoadHistory:
		id.Deputy = s.privilege(who) != ""
	}
	return id
}
