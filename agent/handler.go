package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"dev.muster/agent/server"
	"dev.muster/agent/trust"
	"dev.muster/agent/turns"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// maxHeader bounds the head of a call, which has what a GET call asks for.
const maxHeader = 1 << 20

// serve answers calls on a listener until ctx ends: the local socket, or a lane of the port.
func serve(ctx context.Context, ln net.Listener, mux *api.Mux, d *gateway, log *slog.Logger) error {
	return serveUntil(ctx, callServer(ctx, mux, d, log), ln)
}

// callServer answers calls of callers whom their connections name.
func callServer(ctx context.Context, mux *api.Mux, d *gateway, log *slog.Logger) *http.Server {
	h := &handler{mux: mux, log: log, ctx: ctx, gateway: d}
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			who, err := peer(c)
			if err != nil {
				log.Warn("caller unknown", "err", err)
				return ctx
			}
			return context.WithValue(ctx, callerKey{}, who)
		}}
}

// serveUntil has a server answer what a listener takes until ctx ends.
func serveUntil(ctx context.Context, srv *http.Server, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// handler puts the table of routes behind net/http.
type handler struct {
	mux     *api.Mux
	log     *slog.Logger
	ctx     context.Context
	gateway *gateway // nil without a network

	bodies    bodies
	turns     turns.Turns
	histories turns.Turns
	refusals  refusals
}

// caller is who is at the other end of a connection.
type caller struct {
	api.Caller
	peer  trust.Peer  // of a member's connection
	addr  string      // of a member's or joiner's connection
	beats *memberConn // its connection, if it wants to see that a call is worked on
	token bool        // a token or another cluster says who it is: it does not do what only machines of the cluster may
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, ok := r.Context().Value(callerKey{}).(caller)
	if !ok {
		h.fail(w, r, cluster.Errorf(cluster.Denied, "", "the caller is not known"))
		return
	}
	route, known, err := h.routeOf(from, r)
	if err == nil && from.Exported != nil && route.Access != api.Joiner { // nothing is read from callers whom nobody knows
		w.Header().Set("Connection", "close")
		err = joinersOnly(r)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	body, done, err := h.readBody(w, r, from, mostOf(route, r.Method))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer done()
	if r.Method == http.MethodGet && r.URL.RawQuery != "" {
		if body, err = requestOf(r.URL.Query()); err != nil {
			h.fail(w, r, err)
			return
		}
	}
	w, end := beatFor(&from, w)
	defer end()
	c := call{
		handler: h, w: w, r: r, from: from, body: body, route: route, known: known,
		vouch: r.Header.Get(api.VouchHeader),
	}
	if from.Member != "" {
		c.seen, _ = strconv.ParseUint(r.Header.Get(api.AfterHeader), 10, 64) // none, mostly
	}
	if c.who, err = h.authorise(&c); err != nil {
		c.who = from.Caller
		c.logRefusal(err)
		h.fail(w, r, err)
		return
	}
	if c.relayed() {
		return
	}
	switch {
	case known && route.Tunnel != nil:
		c.tunnel()
		return
	case route.Tunnel != nil:
		c.carryTunnel()
		return
	case route.Stream != nil:
		c.stream()
		return
	}
	leave, err := c.turn()
	if err != nil {
		return // the caller has gone
	}
	defer leave()
	c.answer()
}

// routeOf finds what a request calls: here, or, for callers of this machine, on the servers.
func (h *handler) routeOf(from caller, r *http.Request) (route api.Route, here bool, err error) {
	route, here = h.mux.Lookup(r.Method, r.URL.Path)
	if here {
		return route, true, nil
	}
	if h.gateway == nil || from.Member != "" || from.Exported != nil {
		return route, false, noSuchCall(r)
	}
	route, there := h.gateway.remote.Lookup(r.Method, r.URL.Path)
	if !there {
		return route, false, noSuchCall(r)
	}
	return route, false, nil
}

func noSuchCall(r *http.Request) error {
	return cluster.Errorf(cluster.NotFound, "", "no such call: %s %s", r.Method, r.URL.Path)
}

func joinersOnly(r *http.Request) error {
	return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is not for machines that join", r.URL.Path)
}

// call is one request under way.
type call struct {
	*handler
	w     http.ResponseWriter
	r     *http.Request
	from  caller
	who   api.Caller
	body  []byte
	route api.Route
	known bool   // a mode of this process serves it
	vouch string // header
	seen  uint64 // index of the log that the caller has seen
	// passed says that another server has sent the call on: it tries again, this one does not pass it
	// further.
	passed bool
}

// name is what an assertion is bound to.
func (c *call) name() string { return c.r.Method + " " + c.r.URL.Path }

// authorise says as whom the caller acts, or refuses.
func (h *handler) authorise(c *call) (api.Caller, error) {
	deny := func(text string) (api.Caller, error) {
		return api.Caller{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is for %s only", c.r.URL.Path, text)
	}
	joiner := c.from.Exported != nil
	switch access := c.route.Access; {
	case joiner != (access == api.Joiner):
		return deny("machines that join")
	case joiner:
		return c.from.Caller, nil
	case c.from.Member != "":
		return h.gateway.authorise(c)
	case access != api.User && (c.from.token || !c.from.Operator()):
		return deny("members of the cluster")
	case c.from.token && c.r.URL.Path == api.SaveCluster: // it holds all keys
		return deny("users of a server itself, not by a token")
	}
	who := c.from.Caller
	if who.Origin == "" && !who.System {
		who.Origin = h.here()
	}
	return who, nil
}

func (c *call) answer() {
	doubt := false // an earlier try may have done it
	for end := time.Now().Add(c.patience()); ; {
		var reply api.Reply
		var err error
		if c.known && (!c.route.Leader || c.gateway.leads()) {
			reply, err = c.handle()
			if errors.Is(err, api.ErrElsewhere) {
				reply, err = c.gateway.forward(c)
			} else if err != nil {
				err = api.AsError(c.stopped(err)) // a call that it made in turn and that was not sent does not make it undone
			}
		} else {
			reply, err = c.gateway.forward(c)
		}
		if err == nil {
			c.reply(reply)
			answers.Put(&reply.Body)
			return
		}
		doubt = doubt || inDoubt(err)
		if c.gateway == nil || c.passed || !again(err, c.repeatable()) || time.Now().After(end) || c.r.Context().Err() != nil {
			if c.route.Access != api.Joiner { // the server tells of those
				c.logRefusal(err)
			}
			c.fail(c.w, c.r, c.verdict(err, doubt))
			return
		}
		c.gateway.breathe(c.r.Context())
	}
}

// stopped words the error of a call that ended because this process does.
func (c *call) stopped(err error) error {
	switch {
	case c.ctx.Err() == nil, !errors.Is(err, context.Canceled):
		return err
	case c.r.Method == http.MethodGet:
		return cluster.Errorf(cluster.Unavailable, "", "this daemon is stopping; try again")
	}
	return server.Uncertain("this daemon is stopping")
}

// patience is for how long a call is tried again. A member asks another server itself, which may know a leader.
func (c *call) patience() time.Duration {
	if c.from.Member != "" {
		return memberTime
	}
	return retryTime
}

// repeatable reports whether the call does no harm when it is done twice: it reads, is a submission, which names
// itself by a key, or tells of a node what is so until it tells something else, or by a number.
func (c *call) repeatable() bool {
	switch c.r.URL.Path {
	case api.SubmitJob.Path, api.SubmitHet.Path:
		var named struct {
			Key string `json:"key"`
		}
		return wire.Unmarshal(c.body, &named) == nil && named.Key != ""
	case api.RegisterNodes.Path, api.ReportWork.Path, api.AskHistory.Path:
		return true
	}
	return c.r.Method == http.MethodGet
}

// again reports whether a failed call may be made once more: it cannot have done anything, or may be
// done twice.
func again(err error, repeatable bool) bool {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code == cluster.Unavailable && (e.Kind == cluster.ErrNoLeader || e.Kind == cluster.ErrUncertain && repeatable)
	}
	return errors.Is(err, api.ErrNotSent) || errors.Is(err, api.ErrUnreachable) && repeatable
}

// inDoubt reports whether nobody knows what became of a failed call.
func inDoubt(err error) bool {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Kind == cluster.ErrUncertain
	}
	return errors.Is(err, api.ErrUnreachable) && !errors.Is(err, api.ErrNotSent)
}

// verdict is the last error of a call that may have been done by an earlier try: that it is refused now is what is
// so, but not that nothing was done.
func (c *call) verdict(err error, doubt bool) error {
	var e *api.Error
	told := errors.As(err, &e)
	if !doubt || c.r.Method == http.MethodGet || told && (e.Code != cluster.Unavailable || e.Kind == cluster.ErrUncertain) {
		if errors.Is(err, api.ErrUnreachable) { // this server was reached, but not the leader
			return server.NoLeader()
		}
		return err
	}
	return server.Uncertain("no server is reachable, and an earlier attempt may have been carried out")
}

// handle lets this process answer.
func (c *call) handle() (api.Reply, error) {
	c.gateway.ownWrites(c.r.Context(), c.seen)
	own := c.reads()
	if own != nil {
		own.Freshen(c.r.Context())
	}
	ctx, done := c.counting()
	defer done()
	v, err := c.route.Handle(ctx, c.who, c.body)
	if err != nil {
		return api.Reply{}, err
	}
	var buf []byte
	if used, ok := answers.Get().(*[]byte); ok {
		buf = (*used)[:0]
	}
	text, err := wire.Append(buf, v)
	out := api.Reply{Status: http.StatusOK, Body: text}
	if own != nil {
		out.Age = own.Age()
	}
	return out, err
}

// reads is the server of this process if its state is what the call is about; nil if the call changes something, or
// the leader alone can answer it.
func (c *call) reads() *server.Server {
	reads := c.r.Method == http.MethodGet || c.r.URL.Path == api.AskHistory.Path
	if c.gateway == nil || c.route.Access != api.User || c.route.Leader || !reads {
		return nil
	}
	return c.gateway.server
}

// answers are buffers that were written and may be used again. Those of long lists, thrown away,
// would soon bring about a garbage collection, which looks at every job.
var answers sync.Pool

func (c *call) reply(r api.Reply) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(r.Body)))
	if r.Age > 0 {
		h.Set(api.AgeHeader, strconv.FormatInt(r.Age.Milliseconds(), 10))
	}
	c.w.WriteHeader(r.Status)
	c.write(r.Body)
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := api.AsError(err)
	if e.Code == cluster.Internal && r.Context().Err() == nil { // else the caller has gone
		h.log.Error("call failed", "err", err)
	}
	text, _ := wire.Marshal(e)
	(&call{w: w}).reply(api.Reply{Status: api.Status(e.Code), Body: text})
}

// tunnel hands the bare connection to the route. The first bytes behind the request stay readable.
func (c *call) tunnel() {
	if c.r.Header.Get("Upgrade") == "" {
		c.fail(c.w, c.r, cluster.Errorf(cluster.Invalid, "", "%s needs an Upgrade header", c.r.URL.Path))
		return
	}
	if check := c.route.Check; check != nil {
		if err := check(c.who, c.body); err != nil {
			c.fail(c.w, c.r, err)
			return
		}
	}
	conn, err := upgrade(c.w, c.r.Header.Get("Upgrade"))
	if err != nil {
		c.fail(c.w, c.r, err)
		return
	}
	defer conn.Close()
	caller := &byeReader{Reader: conn.r}
	if err := c.route.Tunnel(c.ctx, c.who, c.body, &bufferedConn{conn.Conn, caller}); err != nil {
		c.log.Debug("tunnel ended", "path", c.r.URL.Path, "err", err)
	}
	c.srunEnded(caller)
}

// bufferedConn reads what net/http had read ahead first.
type bufferedConn struct {
	net.Conn
	r io.Reader
}

func (c *bufferedConn) Read(b []byte) (int, error) { return c.r.Read(b) }

// memberCaller says who is at the other end of a connection of the port.
func memberCaller(conn *memberConn) (caller, error) {
	s := conn.tls().ConnectionState()
	if s.NegotiatedProtocol == trust.ProtoJoin {
		secret, err := trust.Exported(&s)
		out := caller{Caller: api.Caller{Exported: secret}}
		out.Origin = "address:" + hostOf(conn.RemoteAddr().String())
		return out, err
	}
	p, err := trust.PeerOf(&s)
	out := caller{Caller: api.Caller{Member: p.Name, Role: p.Role}, peer: p, addr: hostOf(conn.RemoteAddr().String())}
	if s.NegotiatedProtocol == trust.ProtoBeat {
		out.beats = conn
	}
	return out, err
}
