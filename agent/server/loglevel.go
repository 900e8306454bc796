package server

import (
	"context"
	"log/slog"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
)

// LogLevel is what this process logs: one that serves has one log.
var LogLevel = new(slog.LevelVar)

// setLogLevel has this server log more or less, until it is started again.
func setLogLevel(s *Server) func(context.Context, api.Caller, api.LogLevelRequest) (api.Empty, error) {
	return func(ctx context.Context, who api.Caller, q api.LogLevelRequest) (none api.Empty, _ error) {
		by := s.actor(who, api.SetLogLevel.Rights)
		if !by.Operator() {
			return none, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
				"only administrators change the log level")
		}
		old := strings.ToLower(LogLevel.Level().String())
		if err := LogLevel.UnmarshalText([]byte(q.Level)); err != nil {
			return none, cluster.Errorf(cluster.Invalid, "", "level %q: want debug, info, warn or error", q.Level)
		}
		s.slog.Warn("log level changed", "level", q.Level, "by", by.User, "uid", by.UID)
		note(ctx, s, by, cluster.AuditNote{
			Action: "server loglevel", Object: "server " + s.cfg.Name, Old: old, New: q.Level,
		})
		return none, nil
	}
}
