package server

import (
	"context"
	"log/slog"

	"dev.muster/api"
	"dev.muster/cluster"
)

// LogLevel is what this process logs: one that serves has one log.
var LogLevel = new(slog.LevelVar)

// setLogLevel has this server log more or less, until it is started again.
func setLogLevel(s *Server) func(context.Context, api.Caller, api.LogLevelRequest) (api.Empty, error) {
	return func(_ context.Context, who api.Caller, q api.LogLevelRequest) (none api.Empty, _ error) {
		if !s.actor(who, api.SetLogLevel.Rights).Operator() {
			return none, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
				"only administrators change the log level")
		}
		if err := LogLevel.UnmarshalText([]byte(q.Level)); err != nil {
			return none, cluster.Errorf(cluster.Invalid, "", "level %q: want debug, info, warn or error", q.Level)
		}
		s.slog.Warn("log level changed", "level", q.Level, "by", who.User)
		return none, nil
	}
}
