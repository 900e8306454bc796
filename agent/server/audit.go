package server

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/users"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
)

// The audit trail: each accepted change is in the state, and a line of the log of the server that leads.

// noteTime is how long a change that is not a command may take to be recorded.
const noteTime = 2 * time.Second

// traced completes the identity of a caller for the audit trail.
func traced(s *Server, by cluster.Identity) cluster.Identity {
	if by.Origin == "" || by.User != "" || by.Login != "" || by.System {
		return by
	}
	if u, err := users.ByID.Get(by.UID); err == nil {
		by.Login = u.Name
	}
	return by
}

// logAudits writes a line for each change of the audit trail.
func logAudits(s *Server, events []cluster.Event) {
	for i := range events {
		if a := events[i].Audit; a != nil {
			s.slog.Info("audit", auditLine(a)...)
		}
	}
}

func auditLine(a *cluster.Audit) []any {
	line := []any{"action", a.Action, "object", a.Object, "by", a.By, "uid", a.UID, "origin", a.Origin}
	if a.Old != "" {
		line = append(line, "old", a.Old)
	}
	if a.New != "" {
		line = append(line, "new", a.New)
	}
	return line
}

// logUncertain writes a line for changes that may have been accepted.
func logUncertain(s *Server, by cluster.Identity, cmds []cluster.Command) {
	for _, c := range cmds {
		if a := cluster.Describe(s.Snapshot(), by, c); a != nil {
			s.slog.Info("audit", append(auditLine(a), "outcome", "uncertain")...)
		}
	}
}

// note records a change that is not a command of the log. It is done whether it can be recorded or not; the log of this
// server tells then.
func note(ctx context.Context, s *Server, by cluster.Identity, n cluster.AuditNote) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if err := sendNote(ctx, s, by, n); err != nil {
		a := cluster.Describe(s.Snapshot(), by, &n)
		if a == nil {
			a = &cluster.Audit{Action: n.Action, Object: n.Object, UID: by.UID, By: by.User, Origin: by.Origin}
		}
		s.slog.Log(ctx, slog.LevelWarn, "audit", append(auditLine(a), "recorded", false, "err", err)...)
	}
}

// sendNote records a change here, or at the server that leads.
func sendNote(ctx context.Context, s *Server, by cluster.Identity, n cluster.AuditNote) error {
	if s.Leads() || s.cfg.Peer == nil {
		_, _, err := s.propose(ctx, by, &n)
		return err
	}
	addr := s.LeaderAddr()
	if addr == "" {
		return NoLeader()
	}
	_, err := api.Call(ctx, s.cfg.Peer(addr), api.NoteAudit, api.AuditNote{By: traced(s, by), Note: n})
	return err
}

// noteAudit records what another server has done for a caller.
func noteAudit(s *Server) func(context.Context, api.Caller, api.AuditNote) (api.WriteResponse, error) {
	return func(ctx context.Context, _ api.Caller, q api.AuditNote) (api.WriteResponse, error) {
		_, index, err := s.propose(ctx, q.By, &q.Note)
		return api.WriteResponse{Index: index}, err
	}
}

// listAudit answers with the changes that a caller may see: operators and administrators all, others their own.
func listAudit(s *Server) func(context.Context, api.Caller, api.AuditQuery) (api.AuditResponse, error) {
	return func(_ context.Context, who api.Caller, q api.AuditQuery) (api.AuditResponse, error) {
		snap := s.Snapshot()
		all := visibility.Operates(snap, who)
		list := slices.DeleteFunc(snap.Audits(), func(a *cluster.Audit) bool {
			own := a.UID == who.UID && who.UID != visibility.Nobody
			return !all && !own || !auditMatches(&q, a)
		})
		if q.Last > 0 && len(list) > q.Last {
			list = list[len(list)-q.Last:]
		}
		return api.AuditResponse{Changes: list, Own: !all}, nil
	}
}

func auditMatches(q *api.AuditQuery, a *cluster.Audit) bool {
	return !a.At.Before(q.Since) && (q.User == "" || a.By == q.User) &&
		strings.HasPrefix(a.Action, q.Action) && strings.Contains(a.Object, q.Object)
}
