package agent

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/server"
	"dev.muster/agent/turns"
	"dev.muster/api"
	"dev.muster/cluster"
)

// The REST interface speaks another program's dialect, which this package does not know: it finds out who asks, by
// a token or on a socket of its own by the kernel, and hands the request to cfg.Dialect with a connection that acts
// as that user.

// maxREST bounds the body of a request: a script of 4 MiB and its environment fit.
const maxREST = 16 << 20

// restPaths are how the paths of the interface begin.
var restPaths = [...]string{"/slurm/", "/slurmdb/", "/util/", "/openapi"}

// changeMargin is how much older than what a client has seen the last change must be to be the same: an entry is
// applied later than it was made, by another clock, and by each server at its own time.
const changeMargin = 2 * server.StaleAfter

// rest serves the interface.
type rest struct {
	cfg     *Config
	as      *handler
	token   func(token, named, from string) (api.Caller, error)
	conns   *innerConns
	cluster func() string // its name
	state   func() uint64 // the index of the log that this server's answers are of
	// unchanged reports whether surely no entry of the log is of a time or of one after it.
	unchanged func(since time.Time) bool
	turns     turns.Turns
}

// withREST puts the interface before the pages.
func withREST(cfg *Config, s *server.Server, as *handler, inner *innerConns, pages http.Handler) http.Handler {
	x := newREST(cfg, s, as, inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case server.PeerHelloPath, server.PeerCallPath, server.PeerFederationPath:
			servePeers(x, s, w, r)
			return
		case api.TokenCallPath:
			x.callByToken(w, r)
			return
		case toolsPath:
			x.serveTools(w, r)
			return
		}
		for _, p := range restPaths {
			if cfg.Dialect != nil && strings.HasPrefix(r.URL.Path, p) {
				x.serve(w, r, x.byToken)
				return
			}
		}
		pages.ServeHTTP(w, r)
	})
}

func newREST(cfg *Config, s *server.Server, as *handler, inner *innerConns) *rest {
	x := &rest{cfg: cfg, as: as, state: func() uint64 { return s.Snapshot().Index }, conns: inner}
	x.cluster = func() string { return s.Snapshot().Config().ClusterName }
	x.unchanged = func(since time.Time) bool {
		return s.Age() == 0 && s.Snapshot().Now.Add(changeMargin).Before(since)
	}
	x.token = s.TokenCaller
	return x
}

// byToken finds out who asks from the headers of Slurm's clients, or of others.
func (x *rest) byToken(r *http.Request) (api.Caller, error) {
	token := r.Header.Get("X-SLURM-USER-TOKEN")
	if token == "" {
		word, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(word, "Bearer") {
			token = strings.TrimSpace(rest)
		}
	}
	who, err := x.token(token, r.Header.Get("X-SLURM-USER-NAME"), r.RemoteAddr) // which tells the log of refusals
	if err == nil {
		who.Origin += "@" + visitorAddress(r)
	}
	return who, err
}

// bySocket is who the kernel says that asks; root may name another user.
func bySocket(r *http.Request) (api.Caller, error) {
	from, ok := r.Context().Value(callerKey{}).(caller)
	if !ok {
		return api.Caller{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "the caller is not known")
	}
	who := from.Caller
	who.Origin = "host:" + hostName()
	return who, nil
}

func (x *rest) serve(w http.ResponseWriter, r *http.Request, whose func(*http.Request) (api.Caller, error)) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	who, err := whose(r)
	if err != nil {
		http.Error(w, "Authentication failure", http.StatusUnauthorized)
		return
	}
	leave, err := x.turn(r, who)
	if err != nil {
		return // the caller has gone
	}
	defer leave()
	body, done, err := x.as.readBody(w, r, caller{Caller: who}, maxREST)
	if err != nil {
		http.Error(w, "the body cannot be read: "+err.Error(), bodyStatus(err))
		return
	}
	defer done()
	if tag := x.tag(r, who); tag != "" {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	q := x.request(r, who)
	q.Body = body
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(webWriteTime))
	var zip *gzip.Writer
	x.cfg.Dialect.ServeREST(q, func(status int, mime string) io.Writer {
		w.Header().Set("Content-Type", mime)
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			zip, _ = gzip.NewWriterLevel(w, gzip.BestSpeed)
		}
		w.WriteHeader(status)
		if zip != nil {
			return zip
		}
		return w
	})
	if zip != nil {
		_ = zip.Close()
	}
}

// turn waits for a place of a user's request: its answer is made from others, and is in memory until it is sent. Root
// has no bound.
func (x *rest) turn(r *http.Request, who api.Caller) (leave func(), err error) {
	if who.UID == 0 || who.Admin {
		return func() {}, nil
	}
	return x.turns.Wait(r.Context(), who.UID, answersOfUser)
}

// bodyStatus is the status of a request whose body is not read. The calls of a user that are under way may have too
// many bytes, which is over soon.
func bodyStatus(err error) int {
	e := api.AsError(err)
	if e.Kind == cluster.ErrTooBig && e.Code == cluster.Invalid {
		return http.StatusRequestEntityTooLarge
	}
	return api.Status(e.Code)
}

// request is what a caller asks, with ways to ask on.
func (x *rest) request(r *http.Request, who api.Caller) *api.RESTRequest {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return &api.RESTRequest{
		Method:    r.Method,
		Path:      r.URL.Path,
		Query:     r.URL.Query(),
		Who:       who,
		Host:      cmp.Or(host, "localhost"),
		YAML:      wantsYAML(r),
		Dial:      func(context.Context) (api.Conn, error) { return x.conns.dial(who) },
		Direct:    x.as.direct(who),
		Unchanged: x.unchanged,
		Cluster:   x.cluster(),
	}
}

func wantsYAML(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "yaml") && !strings.Contains(accept, "json")
}

// unlogged are the last words of paths whose answers change without an entry of the log: loads, counters, times.
var unlogged = [...]string{"nodes", "node", "diag", "ping", "shares", "metrics"}

// tag names the state from which a question is answered. It is taken before the answer is made, so it is never of a
// later one: who asks again with it is told that nothing has changed only if no entry of the log has come since.
func (x *rest) tag(r *http.Request, who api.Caller) string {
	if r.Method != http.MethodGet || x.state == nil {
		return ""
	}
	for word := range strings.SplitSeq(r.URL.Path, "/") {
		if slices.Contains(unlogged[:], word) {
			return ""
		}
	}
	return fmt.Sprintf(`W/"%s.%d.%d.%t"`, x.cfg.Version, x.state(), who.UID, wantsYAML(r))
}

// serveRESTSocket serves the interface on a socket of its own, to callers that the kernel names.
func serveRESTSocket(ctx context.Context, cfg *Config, s *server.Server, as *handler, inner *innerConns) error {
	if cfg.Dialect == nil || cfg.Web.RESTSocket == "" {
		return nil
	}
	ln, err := listen(cfg.Web.RESTSocket, cfg.callers(os.Geteuid()))
	if err != nil {
		return err
	}
	x := newREST(cfg, s, as, inner)
	srv := webServer(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.serve(w, r,
			bySocket)
	}), cfg.Log)
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		who, err := peer(c)
		if err != nil {
			return ctx
		}
		return context.WithValue(ctx, callerKey{}, who)
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(fair(ln)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
