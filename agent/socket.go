package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// lockDir makes sure that one process uses a data folder.
func lockDir(dir string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("data folder %s is in use by another muster daemon", dir)
	}
	return func() { f.Close() }, nil
}

// listen opens the local socket, which every user may call; who they are the kernel says.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make folder of the socket: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open local socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

type callerKey struct{}

// known is a connection whose other end was proved in another way than by the kernel.
type known interface{ Caller() api.Caller }

// peer asks the kernel who is at the other end.
func peer(conn net.Conn) (api.Caller, error) {
	if k, ok := conn.(known); ok {
		return k.Caller(), nil
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return api.Caller{}, errors.New("not a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return api.Caller{}, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return api.Caller{}, err
	}
	if cerr != nil {
		return api.Caller{}, cerr
	}
	return api.Caller{PID: int(cred.Pid), Identity: cluster.Identity{UID: cred.Uid, GID: cred.Gid,
		Admin: cred.Uid == uint32(os.Getuid())}}, nil
}

// serve answers calls until ctx ends.
func serve(ctx context.Context, ln net.Listener, mux *api.Mux, log *slog.Logger) error {
	h := &handler{mux: mux, log: log, ctx: ctx}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 20,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			who, err := peer(c)
			if err != nil {
				log.Warn("caller unknown", "err", err)
				return ctx
			}
			return context.WithValue(ctx, callerKey{}, who)
		}}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler puts the table of routes behind net/http.
type handler struct {
	mux *api.Mux
	log *slog.Logger
	ctx context.Context
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, ok := r.Context().Value(callerKey{}).(api.Caller)
	if !ok {
		h.fail(w, cluster.Errorf(cluster.Denied, "", "the caller is not known"))
		return
	}
	route, ok := h.mux.Lookup(r.Method, r.URL.Path)
	if !ok {
		h.fail(w, cluster.Errorf(cluster.NotFound, "", "no such call: %s %s", r.Method, r.URL.Path))
		return
	}
	if route.Access == api.Node && !who.Operator() {
		h.fail(w, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is for nodes only", r.URL.Path))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	if err != nil {
		h.fail(w, cluster.Errorf(cluster.Invalid, cluster.ErrTooBig, "request body: %v", err))
		return
	}
	if q := r.URL.Query().Get("q"); q != "" && r.Method == http.MethodGet {
		body = []byte(q)
	}
	if route.Tunnel != nil {
		h.tunnel(w, r, route, who, body)
		return
	}
	v, err := route.Handle(r.Context(), who, body)
	if err != nil {
		h.fail(w, err)
		return
	}
	buf, _ := answers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	text, err := wire.Append((*buf)[:0], v)
	if err != nil {
		h.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
	*buf = text
	answers.Put(buf)
}

// answers are buffers that were written and may be used again. Those of long lists, thrown away,
// would soon bring about a garbage collection, which looks at every job.
var answers sync.Pool

func (h *handler) fail(w http.ResponseWriter, err error) {
	e := api.AsError(err)
	if e.Code == cluster.Internal {
		h.log.Error("call failed", "err", err)
	}
	text, _ := wire.Marshal(e)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(api.Status(e.Code))
	_, _ = w.Write(text)
}

// tunnel hands the bare connection to the route. The first bytes behind the request stay readable.
func (h *handler) tunnel(w http.ResponseWriter, r *http.Request, route api.Route, who api.Caller, body []byte) {
	if r.Header.Get("Upgrade") == "" {
		h.fail(w, cluster.Errorf(cluster.Invalid, "", "%s needs an Upgrade header", r.URL.Path))
		return
	}
	if check := route.Check; check != nil {
		if err := check(who, body); err != nil {
			h.fail(w, err)
			return
		}
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.fail(w, err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{})
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\n"); err != nil {
		return
	}
	if err := route.Tunnel(h.ctx, who, body, &bufferedConn{conn, buf.Reader}); err != nil {
		h.log.Debug("tunnel ended", "path", r.URL.Path, "err", err)
	}
}

// bufferedConn reads what net/http had read ahead first.
type bufferedConn struct {
	net.Conn
	r io.Reader
}

func (c *bufferedConn) Read(b []byte) (int, error) { return c.r.Read(b) }
