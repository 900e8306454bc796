package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"dev.muster/agent/metrics"
	"dev.muster/agent/server"
	"dev.muster/agent/webpage"
	"dev.muster/api"
)

// The status page and the metrics have a port of their own: browsers and scrapers have no certificate of the
// cluster. Changes by the page need a session that the local socket, a provider or a password has opened.
const (
	// DefaultWebPort is that of the page.
	DefaultWebPort = "7480"
	// WebAuto listens where the members' port does, if nobody else is there.
	WebAuto = "auto"
)

// WebConfig says what a server shows to browsers and programs.
type WebConfig struct {
	// Addr is where a server shows the status page and the metrics, ADDRESS:PORT, WebAuto, or "" for nowhere.
	Addr string
	// Page makes the status page; nil: there are only the metrics.
	Page webpage.Maker
	// Tools answers an agent's requests at /mcp, for the caller that a token names; nil: nothing is there.
	Tools func(w http.ResponseWriter, r *http.Request, by *api.RESTRequest)
	// RESTSocket is a socket for the REST interface beside that port; "": none.
	RESTSocket string
}

// web is where the page is served, and whether that was asked for; "" nowhere.
func (cfg *Config) web() (addr string, asked bool) {
	switch {
	case !cfg.Server || cfg.Web.Addr == "" || cfg.Web.Addr == "none":
		return "", false
	case cfg.Web.Addr != WebAuto:
		return cfg.Web.Addr, true
	case cfg.Bind == "":
		return net.JoinHostPort("127.0.0.1", DefaultWebPort), false
	}
	host, _, err := net.SplitHostPort(cfg.Bind)
	if err != nil {
		return "", false
	}
	return net.JoinHostPort(host, DefaultWebPort), false
}

// pageURL is where others find what listens at an address: at the host by which members know this machine, if it
// listens on all of them.
func pageURL(ln net.Addr, n *network) string {
	host, port, err := net.SplitHostPort(ln.String())
	if err != nil {
		return "http://" + ln.String() + "/"
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if n != nil {
			if at, _, err := net.SplitHostPort(n.addr); err == nil {
				host = at
			}
		}
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// Limits of callers of the page. WriteTimeout is for whole answers; streams give each write its own.
const (
	webHeaderTime = 10 * time.Second
	webReadTime   = 30 * time.Second
	webWriteTime  = time.Minute
	webIdleTime   = 2 * time.Minute
	maxWebHeader  = 64 << 10
)

// webServer serves pages within the limits.
func webServer(ctx context.Context, pages http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: pages, ReadHeaderTimeout: webHeaderTime, ReadTimeout: webReadTime,
		WriteTimeout: webWriteTime, IdleTimeout: webIdleTime, MaxHeaderBytes: maxWebHeader,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }}
}

// openServer serves pages to anybody who reaches a port.
func openServer(ctx context.Context, pages http.Handler, log *slog.Logger) *http.Server {
	srv := webServer(ctx, pages, log)
	srv.ConnState = newCrowd(maxVisitors).note
	return srv
}

// serveWeb serves pages until ctx ends. The server is told where they are.
func serveWeb(ctx context.Context, cfg *Config, n *network, s *server.Server, pages http.Handler) error {
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
	secret := newWebTLS(s, n, cfg.Log)
	srv := openServer(ctx, secret.secured(pages), cfg.Log)
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	url := pageURL(ln.Addr(), n)
	s.ShowsPage(url)
	cfg.Log.Info("status page", "url", url)
	go secret.redirect(ctx, ln.Addr())
	if err := srv.Serve(secret.listen(ctx, ln)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// serveGPUs shows the load of this machine's GPUs at /metrics until ctx ends, if that is asked for.
func serveGPUs(ctx context.Context, cfg *Config, text func() string) error {
	if cfg.GPU.Metrics == "" {
		return nil
	}
	ln, err := net.Listen("tcp", cfg.GPU.Metrics)
	if err != nil {
		return fmt.Errorf("listen for the metrics of GPUs on %s (--gpu-metrics): %w", cfg.GPU.Metrics, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { metrics.Write(w, r, text()) })
	srv := openServer(ctx, mux, cfg.Log)
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the metrics of GPUs: %w", err)
	}
	return nil
}
