package server

import (
	"context"
	"crypto/sha256"
	"fmt"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// sourceOf names a configuration as its file has it. Changes made since by scontrol do not change it: so
// a new leader with the same file has nothing to put in force.
func sourceOf(cfg cluster.Config) (string, error) {
	cfg.Source = ""
	text, err := wire.Marshal(&cfg)
	if err != nil {
		return "", fmt.Errorf("encode the configuration: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// load reads this server's file.
func (s *Server) load() (*cluster.Config, []string, error) {
	cfg, notes, err := s.cfg.Load()
	if err == nil {
		cfg.Source, err = sourceOf(*cfg)
	}
	return cfg, notes, err
}

// putInForce gives the cluster the configuration of this server's file, if it has another one, and a
// new cluster its first.
func (s *Server) putInForce(ctx context.Context, snap *cluster.Snapshot) error {
	cfg := cluster.DefaultConfig()
	want := &cfg
	if s.cfg.Load != nil {
		var err error
		if want, _, err = s.load(); err != nil {
			s.slog.Error("the configuration can not be read; the old one stays in force", "err", err)
			return nil
		}
	}
	if s.cfg.Load == nil && snap.Index > 0 || s.cfg.Load != nil && want.Source == snap.Config().Source {
		return nil
	}
	_, _, err := s.propose(ctx, cluster.Identity{System: true}, &cluster.Configure{Config: want})
	return err
}

// reconfigure reads this server's file again and puts it in force, whatever was changed since.
func (s *Server) reconfigure(ctx context.Context, who api.Caller, _ api.Empty) (api.ReconfigureResponse, error) {
	var none api.ReconfigureResponse
	if !who.Operator() {
		return none, cluster.Errorf(cluster.Denied, cluster.ErrUser, "only an operator may reconfigure the cluster")
	}
	if s.cfg.Load == nil {
		return none, cluster.Errorf(cluster.Conflict, "", "server %s, which leads, was started without --conf FILE: there is nothing to read again", s.cfg.Name)
	}
	want, notes, err := s.load()
	if err != nil {
		return none, cluster.Errorf(cluster.Invalid, "", "%v", err)
	}
	old := s.Snapshot()
	_, index, err := s.propose(ctx, who.Identity, &cluster.Configure{Config: want})
	if err != nil {
		return none, err
	}
	s.slog.Info("configuration read again", "notes", len(notes))
	return api.ReconfigureResponse{Index: index, Notes: append(notes, unchanged(old, want)...)}, nil
}

// unchanged tells what of a new configuration does not come true by itself.
func unchanged(old *cluster.Snapshot, want *cluster.Config) (notes []string) {
	declared := map[cluster.NodeName]bool{}
	for _, d := range want.Declared {
		declared[d.Name] = true
	}
	for _, d := range old.Config().Declared {
		if _, there := old.Node(d.Name); there && !declared[d.Name] {
			notes = append(notes, fmt.Sprintf("node %s is not in the file any more; it stays until scontrol delete nodename=%s", d.Name, d.Name))
		}
	}
	if want.FirstJobID < old.NextID && want.FirstJobID != old.Config().FirstJobID {
		notes = append(notes, fmt.Sprintf("FirstJobId=%d: the next job is %d already", want.FirstJobID, old.NextID))
	}
	if want.ClusterName != old.Config().ClusterName {
		notes = append(notes, fmt.Sprintf("ClusterName=%s: jobs that run keep %s", want.ClusterName, old.Config().ClusterName))
	}
	return notes
}
