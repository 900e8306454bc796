package server

import (
	"context"

	"dev.muster/agent/burst"
	"dev.muster/agent/hooks"
	"dev.muster/api"
	"dev.muster/cluster"
)

// hookRunner does what is to be done outside of the state while this server leads.
func hookRunner(s *Server) *hooks.Runner {
	r := &hooks.Runner{Server: hookServer{s}, Dialect: s.cfg.Dialect, Socket: s.cfg.Hooks.Socket, Log: s.slog,
		Guests: s.share.guests}
	r.Stage = burstStages(s).Do
	r.Retain = func(ctx context.Context, e *cluster.Hook, cfg *cluster.Config) error {
		return forgetOld(ctx, s, r, e, cfg)
	}
	return r
}

// hookServer is this server as package hooks needs it.
type hookServer struct{ *Server }

func (k hookServer) Committed() *cluster.Snapshot { return k.committed() }

func (k hookServer) Moved() <-chan struct{} { return k.wakeups.await(topicHooks) }

func (k hookServer) Done(ctx context.Context, ends []cluster.HookEnd) error {
	_, _, err := k.propose(ctx, cluster.Identity{System: true}, &cluster.HooksDone{Ends: ends})
	return err
}

func (k hookServer) Addresses() (out []string) {
	for _, v := range k.servers() {
		out = append(out, v.Addr)
	}
	return out
}

// burstStages has the site's script called for burst buffers.
func burstStages(s *Server) *burst.Stages {
	return &burst.Stages{Script: s.cfg.Hooks.Burst, Turn: s.share.waitForBurst, Snapshot: s.Snapshot, Log: s.slog}
}

// burstStatus asks the script about its buffers.
func burstStatus(s *Server) func(context.Context, api.Caller, api.BurstStatusRequest) (api.BurstStatusResponse, error) {
	return func(ctx context.Context, who api.Caller, q api.BurstStatusRequest) (
		out api.BurstStatusResponse, err error) {
		out.Text, err = burstStages(s).Status(ctx, who.UID, q.Args)
		return out, err
	}
}
