package server

import (
	"context"
	"fmt"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// levelLife is for how long it counts that a server has said which level it knows.
const levelLife = 5 * time.Second

// knows notes which level of the log another server knows, and how many entries it lacks.
func (o *others) knows(name string, level int, behind uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.levels[name], o.behind[name] = level, behind
}

// lag is how many entries of the log another server lacked when it last answered.
func (o *others) lag(name string) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.behind[name]
}

// level is the one that another server knows; ok is false if it has not said so lately.
func (o *others) level(name string, now time.Time) (level int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	level, said := o.levels[name]
	return level, said && now.Sub(o.heard[name]) < levelLife
}

// commonLevel is the highest that all servers of the group know, or the log's as long as one has not said what it
// knows.
func (s *Server) commonLevel(now time.Time) (int, error) {
	group, err := s.log.Group()
	if err != nil {
		return 0, err
	}
	common := cluster.Newest
	for _, v := range group {
		if v.ID == s.cfg.Name {
			continue
		}
		level, ok := s.others.level(v.ID, now)
		if !ok {
			return s.Snapshot().Level(), nil
		}
		common = min(common, level)
	}
	return common, nil
}

// raiseLevel has the log hold, from now on, what all servers know.
func (s *Server) raiseLevel(ctx context.Context) error {
	old := s.Snapshot().Level()
	if old == cluster.Newest {
		return nil
	}
	common, err := s.commonLevel(time.Now())
	if err != nil || common <= old {
		return err
	}
	s.slog.Info("all servers know a newer level of the log", "level", common, "was", old)
	_, _, err = s.propose(ctx, cluster.Identity{System: true}, &cluster.RaiseLevel{Level: common})
	return err
}

// atLevel is a command as all servers of the group read it. The command that raises the level comes before what
// uses it.
func (s *Server) atLevel(cmd cluster.Command) (cluster.Command, error) {
	if _, raises := cmd.(*cluster.RaiseLevel); raises || s.level.Load() >= cluster.Newest {
		return cmd, nil
	}
	return cluster.AtLevel(cmd, int(s.level.Load()))
}

// admitLevel refuses a server that does not know what the log holds: it would stop at the first entry of that.
func (s *Server) admitLevel(name string, level int) error {
	log := s.Snapshot().Level()
	if level >= log {
		return nil
	}
	return cluster.Errorf(cluster.Conflict, "",
		"server %s runs an older muster: the log of this cluster is of level %d, and it knows up to %d; "+
			"install version %s there, or a later one", name, log, level, s.cfg.Version)
}

// levels tells what each server of a list knows, as far as it has said so.
func (s *Server) levels(list []api.Server) {
	now := time.Now()
	for i := range list {
		if list[i].Name == s.cfg.Name {
			list[i].Level = cluster.Newest
			continue
		}
		list[i].Level, _ = s.others.level(list[i].Name, now)
	}
}

// tellPanic tells of a defect that a command met.
func (s *Server) tellPanic(index uint64, what string) {
	s.panics.Add(1)
	s.slog.Error("a defect of muster: please report it. The command was taken back, on all servers alike",
		"index", index, "panic", fmt.Sprintf("%.4000s", what))
}
