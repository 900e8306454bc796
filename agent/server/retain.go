package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dev.muster/agent/hooks"
	"dev.muster/api"
	"dev.muster/cluster"
)

// forgetOld writes what of history is to go into files, as the hook says. Doing it again writes the same files.
func forgetOld(ctx context.Context, s *Server, r *hooks.Runner, e *cluster.Hook, cfg *cluster.Config) error {
	if !s.hist.Whole() {
		return errors.New("the history of this server is not whole yet")
	}
	if err := s.hist.Flush(ctx); err != nil {
		return err
	}
	if e.Retain.Script != "" {
		return r.Program(ctx, e, cfg, false)
	}
	for _, c := range e.Retain.Cutoffs {
		if !c.Archive || c.Kind == cluster.UsageRecords {
			continue
		}
		file, n, err := s.hist.Archive(ctx, c, e.Retain.Dir, cfg.ClusterName)
		if err != nil {
			return fmt.Errorf("archive %s records in %s: %w", c.Kind, e.Retain.Dir, err)
		}
		s.slog.Info("records archived", "kind", c.Kind, "count", n, "file", file, "before",
			time.Unix(c.Before, 0).UTC())
	}
	return nil
}

// archiveHistory has old records archived and forgotten now, and answers when that is done.
func (s *Server) archiveHistory(ctx context.Context, who api.Caller, c cluster.Retain) (api.WriteResponse, error) {
	values, index, err := s.proposeOf(ctx, s.actor(who, api.ArchiveHistory.Rights), &c)
	if err != nil {
		return api.WriteResponse{}, err
	}
	id, _ := values[0].(uint64)
	for id != 0 {
		moved := s.wakeups.await(topicAny)
		snap := s.committed()
		if index = snap.Index; snap.Retained.Hook != id {
			if snap.Retained.Failed != "" {
				return api.WriteResponse{Index: index}, cluster.Errorf(cluster.Conflict, "",
					"%s; nothing was taken out of history", snap.Retained.Failed)
			}
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return api.WriteResponse{Index: index}, ctx.Err()
		}
	}
	return api.WriteResponse{Index: index}, nil
}
