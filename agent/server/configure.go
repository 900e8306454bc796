package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// sourceOf names a configuration as its file has it. Changes made since by scontrol do not change it: so
// a new leader with the same file has nothing to activate.
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
	if err != nil {
		return nil, nil, err
	}
	if err := checkScripts(s, cfg); err != nil {
		return nil, nil, err
	}
	cfg.Source, err = sourceOf(*cfg)
	return cfg, notes, err
}

// putInForce gives the cluster the configuration of this server's file, if it has another one, and a
// new cluster its first. One that somebody has applied stays: files of servers may well be older.
func (s *Server) putInForce(ctx context.Context, snap *cluster.Snapshot) error {
	if s.cfg.Load != nil && snap.Config().Applied {
		s.slog.Info("the file of --conf is not read: muster config apply has activated another configuration; scontrol reconfigure goes back to the file")
		return nil
	}
	cfg := cluster.DefaultConfig()
	cfg.LimitsExcept = []string{"MEMLOCK"} // of a login shell it is a few MB, with which RDMA fails
	want := &cfg
	if s.cfg.Load != nil {
		var err error
		if want, _, err = s.load(); err != nil {
			s.slog.Error("the configuration cannot be read; the old one stays active", "err", err)
			return nil
		}
	}
	if s.cfg.Load == nil && snap.Index > 0 || s.cfg.Load != nil && want.Source == snap.Config().Source {
		return nil
	}
	_, _, err := s.propose(ctx, cluster.Identity{System: true}, &cluster.Configure{Config: want, How: "file"})
	return err
}

// configure activates a configuration that the caller has read.
func (s *Server) configure(ctx context.Context, who api.Caller, c cluster.Configure) (api.ReconfigureResponse, error) {
	if err := checkScripts(s, c.Config); err != nil {
		return api.ReconfigureResponse{}, err
	}
	old := s.Snapshot()
	by := s.named(who)
	_, index, err := s.proposeOf(ctx, by, &c)
	if err != nil {
		return api.ReconfigureResponse{}, err
	}
	notes := unchanged(old, c.Config)
	s.slog.Info("configuration changed", "user", by.User, "how", c.How, "notes", len(notes))
	return api.ReconfigureResponse{Index: index, Notes: notes}, nil
}

// showConfig tells the configuration and how it came about.
func (s *Server) showConfig(_ context.Context, _ api.Caller, q api.ConfigQuery) (api.ConfigResponse, error) {
	snap := s.Snapshot()
	out := api.ConfigResponse{Config: snap.Config()}
	if q.At != nil {
		var err error
		if out.Config, err = snap.ConfigAt(*q.At); err != nil {
			return api.ConfigResponse{}, err
		}
	}
	for _, c := range snap.ConfigHistory() {
		c.Was = nil
		out.Changes = append(out.Changes, c)
	}
	return out, nil
}

// reconfigure reads this server's file again and activates it, whatever was changed since.
func (s *Server) reconfigure(ctx context.Context, who api.Caller, _ api.Empty) (api.ReconfigureResponse, error) {
	var none api.ReconfigureResponse
	if !who.Operator() && s.privilege(who) != "Administrator" {
		return none, cluster.Errorf(cluster.Denied, cluster.ErrUser,
			"only an administrator may reconfigure the cluster")
	}
	if s.cfg.Load == nil {
		return none, cluster.Errorf(cluster.Conflict, "",
			"server %s, which leads, was started without --conf FILE: there is nothing to read again; muster config apply FILE loads a file",
			s.cfg.Name)
	}
	want, notes, err := s.load()
	if err != nil {
		return none, cluster.Errorf(cluster.Invalid, "", "%v", err)
	}
	old, cmd := s.Snapshot(), &cluster.Configure{Config: want, How: "reconfigure"}
	_, index, err := s.proposeOf(ctx, s.actor(who, api.Reconfigure.Rights), cmd)
	if err != nil {
		return none, err
	}
	if old.Config().Applied {
		notes = append(notes,
			"the file replaces the configuration that muster config apply had set; muster config undo brings it back")
	}
	s.slog.Info("configuration read again", "notes", len(notes))
	if want.Source == old.Config().Source {
		notes = countEffectless(notes)
	}
	return api.ReconfigureResponse{Index: index, Notes: append(notes, unchanged(old, want)...)}, nil
}

// countEffectless tells in one line how many settings of a file that has not changed have no effect: each was named
// when it was read first.
func countEffectless(notes []string) (out []string) {
	const words = "no effect"
	many := 0
	for _, note := range notes {
		if strings.Contains(note, words) {
			many++
			continue
		}
		out = append(out, note)
	}
	if many == 0 {
		return out
	}
	return append(out, fmt.Sprintf("the file is as it was, and %d of its settings have no effect: "+
		"muster config check FILE names them", many))
}

// unchanged tells what of a new configuration does not come true by itself.
func unchanged(old *cluster.Snapshot, want *cluster.Config) (notes []string) {
	declared := map[cluster.NodeName]bool{}
	for _, d := range want.Declared {
		declared[d.Name] = true
	}
	for _, d := range old.Config().Declared {
		if _, there := old.Node(d.Name); there && !declared[d.Name] {
			notes = append(notes,
				fmt.Sprintf("node %s is not in the file any more; it stays until scontrol delete nodename=%s",
					d.Name, d.Name))
		}
	}
	if want.FirstJobID < old.NextID && want.FirstJobID != old.Config().FirstJobID {
		notes = append(notes, fmt.Sprintf("FirstJobId=%d: the next job is %d already", want.FirstJobID, old.NextID))
	}
	if want.ClusterName != old.Config().ClusterName {
		notes = append(notes,
			fmt.Sprintf("ClusterName=%s: jobs that run keep %s", want.ClusterName, old.Config().ClusterName))
	}
	return notes
}
