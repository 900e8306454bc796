package agent

import (
	"context"
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestPortBeats: a member whose call is held sees that it is worked on; one of an older version, that does not know
// of beats, gets its answer all the same.
func TestPortBeats(t *testing.T) {
	for name, offers := range map[string][]string{"a member of this version": nil, "an older one": {trust.ProtoAPI}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoorstep(t, nil)
				const hold = time.Minute
				held := api.Endpoint[api.Empty, api.Empty]{Method: "GET", Path: "/v1/held", Access: api.Node}
				mux := api.NewMux()
				api.Handle(mux, held, func(ctx context.Context, _ api.Caller, q api.Empty) (api.Empty, error) {
					select {
					case <-time.After(hold):
						return q, nil
					case <-ctx.Done():
						return q, ctx.Err()
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- serve(ctx, d.p.kinds[trust.ProtoAPI], mux, &gateway{}, quiet) }()
				conf := trust.ClientTLS(d.ring, trust.ProtoAPI, cluster.RoleServer)
				if offers != nil {
					conf.NextProtos = offers
				}
				beats := 0
				c := &api.Client{Dial: func(context.Context) (api.Conn, error) {
					conn := tls.Client(d.dial(), conf)
					if err := conn.Handshake(); err != nil {
						return nil, err
					}
					return &countingConn{&calledConn{conn, "s1"}, &beats}, nil
				}}
				began := time.Now()
				_, err := api.Call(t.Context(), c, held, api.Empty{})
				if took := time.Since(began); err != nil || took != hold {
					t.Errorf("%v after %v", err, took)
				}
				if saw := beats > int(hold/api.BeatEvery)/2; saw != (offers == nil) {
					t.Errorf("%d pieces came", beats)
				}
				// One end after the other: where both say goodbye at once on a pipe, the server waits with its lock held,
				// and the bubble's clock stands.
				c.Close()
				synctest.Wait()
				cancel()
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// countingConn counts what comes.
type countingConn struct {
	*calledConn
	pieces *int
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.calledConn.Read(b)
	*c.pieces++
	return n, err
}

// namedConn is a connection to a server that was or was not closed.
type namedConn struct {
	api.Conn
	addr   string
	closed bool
}

func (c *namedConn) Close() error { c.closed = true; return nil }

// TestFleetDial: a server that accepts and says no more does not keep a member from the next one, and one that is
// only slow is not given up.
func TestFleetDial(t *testing.T) {
	const never = time.Hour
	for _, c := range []struct {
		name  string
		takes map[string]time.Duration // to connect; a negative one to fail
		want  string
		after time.Duration
	}{
		{"all are well", nil, "s1", 0},
		{"the first is stopped", map[string]time.Duration{"s1": never}, "s2", nextDial},
		{"two are stopped", map[string]time.Duration{"s1": never, "s2": never}, "s3", 2 * nextDial},
		{"the first refuses", map[string]time.Duration{"s1": -1}, "s2", 1},
		{
			"all have much to do",
			map[string]time.Duration{"s1": 5 * time.Second, "s2": 6 * time.Second, "s3": 7 * time.Second},
			"s1", 5 * time.Second,
		},
		{
			"none is there", map[string]time.Duration{"s1": -1, "s2": -time.Second, "s3": -2 * time.Second},
			"", 1 + nextDial + 2*time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{addrs: []string{"s1", "s2", "s3"}}
				var made []*namedConn
				began := time.Now()
				conn, err := f.dial(t.Context(), func(ctx context.Context, addr string) (api.Conn, error) {
					takes := c.takes[addr]
					select {
					case <-time.After(max(takes, -takes)):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					if takes < 0 {
						return nil, context.DeadlineExceeded
					}
					made = append(made, &namedConn{addr: addr})
					return made[len(made)-1], nil
				})
				took := time.Since(began)
				synctest.Wait()
				if c.want == "" {
					if err == nil || took != c.after {
						t.Errorf("%v after %v", err, took)
					}
					return
				}
				if err != nil || conn.(*namedConn).addr != c.want || took != c.after || f.first() != c.want {
					t.Errorf("%+v, %v after %v, first is %s", conn, err, took, f.first())
				}
				for _, m := range made {
					if m.closed == (m.addr == c.want) {
						t.Errorf("the connection to %s is closed: %v", m.addr, m.closed)
					}
				}
			})
		})
	}
}

// TestFleetLeave: of many calls that fail at one server one turns to the next.
func TestFleetLeave(t *testing.T) {
	f := &fleet{addrs: []string{"s1", "s2", "s3"}, client: &api.Client{}}
	for range 3 {
		f.leave("s1")
	}
	if f.first() != "s2" {
		t.Errorf("first is %s", f.first())
	}
}
