package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The status page and the metrics have a port of their own, without TLS: browsers and scrapers have no certificate of the
// cluster. All of it is read only.
const (
	webPort = "7480"
	// WebAuto listens where the members' port does, if nobody else is there.
	WebAuto = "auto"
)

// web is where the page is served, and whether that was asked for; "" nowhere.
func (cfg *Config) web() (addr string, asked bool) {
	switch {
	case !cfg.Server || cfg.Web == "" || cfg.Web == "none":
		return "", false
	case cfg.Web != WebAuto:
		return cfg.Web, true
	case cfg.Bind == "":
		return net.JoinHostPort("127.0.0.1", webPort), false
	}
	host, _, err := net.SplitHostPort(cfg.Bind)
	if err != nil {
		return "", false
	}
	return net.JoinHostPort(host, webPort), false
}

// serveWeb serves pages until ctx ends.
func serveWeb(ctx context.Context, cfg *Config, pages http.Handler) error {
	addr, asked := cfg.web()
	if addr == "" {
		return nil
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		err = fmt.Errorf("listen for the page on %s (--http says where, or none): %w", addr, err)
		if asked {
			return err
		}
		cfg.Log.Warn("no status page here", "err", err)
		return nil
	}
	srv := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	cfg.Log.Info("status page", "url", "http://"+ln.Addr().String()+"/")
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
