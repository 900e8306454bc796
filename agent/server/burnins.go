package server

import (
	"context"

	"dev.muster/agent/visibility"
	"dev.muster/api"
)

// listBurnins tells what acceptance tests found.
func (s *Server) listBurnins(ctx context.Context, who api.Caller, q api.BurninQuery) (api.BurninsResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.BurninsResponse{}, err
	}
	if err := visibility.Of(snap, who).Nodes(); err != nil {
		return api.BurninsResponse{}, err
	}
	return api.BurninsResponse{Index: snap.Index, Parts: snap.Tested(q.Names)}, nil
}
