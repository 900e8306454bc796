package agent

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// redirectEvery is how often it is looked whether PageRedirect has changed.
const redirectEvery = 2 * time.Second

// redirect sends those on who come to another port without TLS, port 80 say, as PageRedirect has it, until ctx ends.
// The page is at a port of its own.
func (x *webTLS) redirect(ctx context.Context, page net.Addr) {
	_, port, _ := net.SplitHostPort(page.String())
	at, stop := "", func() {}
	defer func() { stop() }()
	tick := time.NewTicker(redirectEvery)
	defer tick.Stop()
	for {
		if s := x.settings(); s.Redirect != at {
			stop()
			at, stop = s.Redirect, x.redirectAt(ctx, s.Redirect, port)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// redirectAt listens at an address, if there is one; stop ends that.
func (x *webTLS) redirectAt(ctx context.Context, addr, port string) (stop func()) {
	if addr == "" {
		return func() {}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		x.log.Warn("nobody is sent to the page from there (PageRedirect)", "err", err)
		return func() {}
	}
	srv := openServer(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := x.settings()
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		scheme := map[bool]string{true: "https://", false: "http://"}[s.TLS()]
		to := cmp.Or(s.URL, scheme+net.JoinHostPort(host, port))
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}), x.log)
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			x.log.Warn("nobody is sent to the page any more (PageRedirect)", "err", err)
		}
	}()
	return func() { _ = srv.Close() }
}
