package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// DebugSuffix is behind the path of the local socket in that of the one for profiles (net/http/pprof), which root
// and the user of the daemon alone may call.
const DebugSuffix = ".debug"

// serveDebug answers with profiles of this process. One that cannot listen does its work all the same.
func serveDebug(ctx context.Context, path string, log *slog.Logger) error {
	ln, err := listen(path, forOwners)
	if err != nil {
		log.Warn("no profiles of this process", "err", err)
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ownersOnly hangs up on callers that are neither root nor the daemon's own user.
type ownersOnly struct{ net.Listener }

func (l ownersOnly) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if who, err := peer(conn); err == nil && who.Operator() {
			return conn, nil
		}
		conn.Close()
	}
}
