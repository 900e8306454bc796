package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/durable"
	"dev.muster/wire"
)

// forgetOld writes what of history is to go into files, as the hook says. Doing it again writes the same files.
func (s *Server) forgetOld(ctx context.Context, e *cluster.Hook, cfg *cluster.Config) error {
	if !s.hist.Whole() {
		return errors.New("the history of this server is not whole yet")
	}
	if err := s.hist.Flush(ctx); err != nil {
		return err
	}
	if e.Retain.Script != "" {
		return s.runHook(ctx, e, cfg, false)
	}
	for _, c := range e.Retain.Cutoffs {
		if !c.Archive || c.Kind == cluster.UsageRecords {
			continue
		}
		file, n, err := s.archive(ctx, c, e.Retain.Dir, cfg.ClusterName)
		if err != nil {
			return fmt.Errorf("archive %s records in %s: %w", c.Kind, e.Retain.Dir, err)
		}
		s.slog.Info("records archived", "kind", c.Kind, "count", n, "file", file, "before", time.Unix(c.Before, 0).UTC())
	}
	return nil
}

// archive writes the records that a cutoff takes into a file, which is whole once it has its name. Without any
// there is none.
func (s *Server) archive(ctx context.Context, c cluster.Cutoff, dir, name string) (file string, n int, err error) {
	f, err := os.CreateTemp(dir, ".archive-*")
	if err != nil {
		return "", 0, err
	}
	defer func() {
		if file == "" {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	out := bufio.NewWriterSize(f, 1<<16)
	first := time.Unix(c.Before, 0)
	line := api.AppendArchiveHead(nil, name, c.Kind)
	for a, err := range s.hist.Old(ctx, c) {
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		if err == nil {
			line, err = wire.Append(line[:0], &a)
		}
		if err != nil {
			return "", 0, errors.Join(err, f.Close())
		}
		if at := a.Began(); n == 0 || at.Before(first) {
			first = at
		}
		n++
	}
	_, err = out.Write(append(line, '\n'))
	if err := errors.Join(err, out.Flush(), f.Sync(), f.Close()); err != nil || n == 0 {
		return "", 0, err
	}
	stamp := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }
	to := filepath.Join(dir, fmt.Sprintf("%s_%s_archive_%s_%s", name, c.Kind, stamp(first), stamp(time.Unix(c.Before, 0))))
	if err := durable.Rename(f.Name(), to); err != nil {
		return "", 0, err
	}
	return to, n, nil
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
				return api.WriteResponse{Index: index}, cluster.Errorf(cluster.Conflict, "", "%s; nothing was taken out of history", snap.Retained.Failed)
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

// named is a caller with the name that the books may know.
func (s *Server) named(who api.Caller) cluster.Identity {
	if u, err := users.get(who.UID); err == nil && !who.NodeRoot {
		who.User = u.name
	}
	return who.Identity
}
