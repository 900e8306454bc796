// Package api is the wire contract: one table of endpoints, their requests and responses, the
// errors, and the client that front-ends, daemons and tests use. It has no logic of its own, and
// it does not link net/http: a front-end must start in a millisecond.
package api

import (
	"context"
	"errors"
	"reflect"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Access says who may call an endpoint.
type Access uint8

// The kinds of caller.
const (
	User   Access = iota // anybody on the local socket; what they may touch is checked by the handler
	Node                 // a compute node's client
	Peer                 // another server
	Joiner               // a machine that joins or renews, over a connection on which it has shown no certificate
)

// Endpoint is one row of the contract. Requests of GET endpoints travel as JSON in the
// parameter q, those of POST endpoints as the body.
type Endpoint[Req, Resp any] struct {
	Method, Path string
	Access       Access
	Leader       bool // only the leader can answer; others forward
	Rights       Rights
}

// Rights say for whom an endpoint does more than for any user, and whether the log keeps who called it.
type Rights uint8

// The rights. Levels of users are those that the books name (AdminLevel).
const (
	Named             Rights = 1 << iota // the entry has the caller's name: a reason, the books or history show it
	ForOperators                         // operators and administrators may what root may
	ForAdministrators                    // administrators may what root may
	ForDeputies                          // operators and administrators may, but for making operators
	ForNodeRoot                          // root of a compute node may, for that node: its checks say what is wrong
)

// Has reports whether all of some rights are there.
func (r Rights) Has(all Rights) bool { return r&all == all }

// read decodes a request, and checks the texts in what users ask.
func (e Endpoint[Req, Resp]) read(ctx context.Context, body []byte) (q Req, err error) {
	if len(body) == 0 {
		return q, nil
	}
	take, _ := ctx.Value(takeKey{}).(func(int) bool)
	err = wire.UnmarshalCounted(body, &q, take)
	if errors.Is(err, wire.ErrHeavy) {
		return q, cluster.Errorf(cluster.Unavailable, cluster.ErrTooBig,
			"the calls of this user that are under way take too much memory: ask for less at once in %s", e.Path)
	}
	if err != nil {
		return q, cluster.Errorf(cluster.Invalid, "", "bad request to %s: %v", e.Path, err)
	}
	return q, e.check(q)
}

type takeKey struct{}

// Counting has take count the bytes that requests read with ctx need beyond those of their bodies; false refuses one.
func Counting(ctx context.Context, take func(bytes int) bool) context.Context {
	return context.WithValue(ctx, takeKey{}, take)
}

// MaxValues bounds the bytes that what another machine says may take in memory, where no user is to answer for it.
const MaxValues = 512 << 20

// Read reads what another machine says, which may be made to fill the memory (wire.UnmarshalCounted).
func Read(text []byte, v any) error {
	held := 0
	return wire.UnmarshalCounted(text, v, func(n int) bool {
		held += n
		return held <= MaxValues
	})
}

// check looks at the texts in what users ask.
func (e Endpoint[Req, Resp]) check(q Req) error {
	if e.Access != User {
		return nil
	}
	if b, ok := any(q).(interface{ bound() error }); ok {
		if err := b.bound(); err != nil {
			return err
		}
	}
	return checkTexts(q)
}

// Caller is who called, as the transport proved it.
type Caller struct {
	cluster.Identity
	PID    int
	Groups []uint32 // of the user, as the member that vouches knows them
	// Member and Role say over whose connection the call came; empty on the local socket.
	Member string
	Role   cluster.Role
	// Sees says that the call is root's on a member: it reads everything, though as nobody it changes nothing.
	Sees bool
	// Exported is the secret of a joiner's connection, which its proof is bound to.
	Exported []byte
}

// Handler answers one call: body in, value out.
type Handler func(ctx context.Context, who Caller, body []byte) (any, error)

// TunnelHandler takes over a connection after its request was read.
type TunnelHandler func(ctx context.Context, who Caller, req []byte, conn Conn) error

// StreamHandler answers one call with lines of JSON until ctx ends, the caller has gone or does not keep up. send
// writes lines that belong together at once; its error ends the stream.
type StreamHandler func(ctx context.Context, who Caller, req []byte, send func(lines []byte) error) error

// Route is a registered endpoint.
type Route struct {
	Access Access
	Leader bool
	Rights Rights
	Handle Handler
	// Direct is Handle of a request of this process; known is false if it is of another type.
	Direct func(ctx context.Context, who Caller, q any) (v any, known bool, err error)
	Tunnel TunnelHandler
	Stream StreamHandler
	// MaxBody bounds the body of a request, in bytes; 0: as for all.
	MaxBody int64
	// Request is the type of what is asked; nil for a tunnel.
	Request reflect.Type
	// Check refuses a tunnel before the connection is upgraded.
	Check func(who Caller, req []byte) error
}

// Mux is the table of routes, by "METHOD path".
type Mux struct{ routes map[string]Route }

// NewMux returns an empty table.
func NewMux() *Mux { return &Mux{routes: map[string]Route{}} }

// All are the routes, by "METHOD path".
func (m *Mux) All() map[string]Route { return m.routes }

// Lookup finds a route.
func (m *Mux) Lookup(method, path string) (Route, bool) {
	r, ok := m.routes[method+" "+path]
	return r, ok
}

// Handle registers the function that answers an endpoint.
func Handle[Q, R any](m *Mux, e Endpoint[Q, R], f func(context.Context, Caller, Q) (R, error)) {
	m.routes[e.Method+" "+e.Path] = Route{Access: e.Access, Leader: e.Leader, Rights: e.Rights,
		Request: reflect.TypeFor[Q](), MaxBody: bodyOf(reflect.TypeFor[Q]()),
		Handle: func(ctx context.Context, who Caller, body []byte) (any, error) {
			q, err := e.read(ctx, body)
			if err != nil {
				return nil, err
			}
			return f(ctx, who, q)
		},
		Direct: func(ctx context.Context, who Caller, asked any) (any, bool, error) {
			q, ok := asked.(Q)
			if !ok {
				return nil, false, nil
			}
			if err := e.check(q); err != nil {
				return nil, true, err
			}
			v, err := f(ctx, who, q)
			return v, true, err
		}}
}

// bodyOf is the bound for a type of request: texts of users, such as scripts, have theirs. 0: none of its own.
func bodyOf(t reflect.Type) int64 {
	if t.Kind() != reflect.Struct {
		return 0
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == reflect.TypeFor[cluster.BlobText]() || bodyOf(f.Type) > 0 {
			return MaxBody
		}
	}
	return 0
}

// HandleTunnel registers a function that takes over connections upgraded on path.
func HandleTunnel(m *Mux, path string, access Access, check func(Caller, []byte) error, f TunnelHandler) {
	m.routes["POST "+path] = Route{Access: access, Check: check, Tunnel: f}
}

// HandleStream registers the function that answers an endpoint with a stream of its responses, each a line. It is
// called with batches of them to send. An error before anything was sent is the answer.
func HandleStream[Q, R any](m *Mux, e Endpoint[Q, R],
	f func(ctx context.Context, who Caller, q Q, send func([]R) error) error) {
	m.routes[e.Method+" "+e.Path] = Route{Access: e.Access, Leader: e.Leader, Rights: e.Rights,
		Request: reflect.TypeFor[Q](), MaxBody: bodyOf(reflect.TypeFor[Q]()),
		Stream: func(ctx context.Context, who Caller, req []byte, send func([]byte) error) error {
			q, err := e.read(ctx, req)
			if err != nil {
				return err
			}
			return f(ctx, who, q, func(batch []R) error {
				var lines []byte
				for i := range batch {
					var err error
					if lines, err = wire.Append(lines, &batch[i]); err != nil {
						return err
					}
					lines = append(lines, '\n')
				}
				return send(lines)
			})
		}}
}

// Error is the error of the contract.
type Error = cluster.Error

// Statuses maps error codes to HTTP statuses, for both ends.
func Status(c cluster.Code) int {
	switch c {
	case cluster.Invalid:
		return 400
	case cluster.Denied:
		return 403
	case cluster.NotFound:
		return 404
	case cluster.Conflict:
		return 409
	case cluster.Unavailable:
		return 503
	}
	return 500
}

// AsError makes any error one that may be shown: coded errors as they are, others as internal.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return cluster.Errorf(cluster.Internal, "", "%v", err)
}
