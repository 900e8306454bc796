package consensus

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// bridge makes raft's hclog lines part of our slog.
func bridge(l *slog.Logger) hclog.Logger {
	return hclog.FromStandardLogger(log.New(slogWriter{l}, "", 0), &hclog.LoggerOptions{Level: hclog.Warn})
}

type slogWriter struct{ l *slog.Logger }

var _ io.Writer = slogWriter{}

func (w slogWriter) Write(b []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.Contains(b, []byte("starting election: last-leader-addr= ")) {
		level = slog.LevelDebug // there was no leader: a server has started, which is nothing to warn of
	}
	w.l.Log(context.Background(), level, "raft", "text", string(trimNewline(b)))
	return len(b), nil
}

func trimNewline(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		return b[:n-1]
	}
	return b
}
