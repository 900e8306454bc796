package server

import (
	"context"

	"dev.muster/agent/usertoken"
	"dev.muster/api"
	"dev.muster/cluster"
)

// newIssuer makes the issuer of this server's tokens for users.
func newIssuer(s *Server) *usertoken.Issuer {
	return &usertoken.Issuer{
		Snapshot: s.Snapshot,
		Propose:  s.proposeAndWait,
		Note: func(ctx context.Context, by cluster.Identity, n cluster.AuditNote) {
			note(ctx, s, by, n)
		},
		Leads:     s.Leads,
		KnowsEnds: func() bool { return knowsEnds(s) },
		Moved:     func() <-chan struct{} { return s.wakeups.await(topicAny) },
		AccountOf: s.userOf,
		Actor:     s.actor,
		Level:     s.privilege,
		Derived:   func() []byte { return s.credentials.sessions.MAC("token", "") },
		Refused:   func() { s.stats.Times.RefusedTokens.Add(1) },
		Log:       s.slog,
	}
}

// proposeAndWait proposes a user's command and waits until the state here has it.
func (s *Server) proposeAndWait(ctx context.Context, by cluster.Identity, cmd cluster.Command) (uint64, error) {
	_, index, err := s.proposeOf(ctx, by, cmd)
	if err != nil {
		return index, err
	}
	return index, s.Applied(ctx, index)
}

// TokenCaller says as whom a token lets somebody act.
func (s *Server) TokenCaller(token, named, from string) (api.Caller, error) {
	return s.credentials.tokens.Caller(token, named, from)
}

// tokenRoutes are those of the tokens by which members join and users ask.
func tokenRoutes(s *Server, m *api.Mux) {
	issuer := s.credentials.tokens
	handle(s, m, api.MakeUserToken, issuer.Make)
	handle(s, m, api.ListJWT, issuer.List)
	handle(s, m, api.RotateJWT, issuer.Rotate)
	handle(s, m, api.EndJWT, issuer.End)
	handle(s, m, api.CreateToken, s.createToken)
	handle(s, m, api.ListTokens, s.listTokens)
	write(m, s, api.RevokeToken)
}
