package agent

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"dev.muster/api"
	"dev.muster/cluster"
)

// zeros is a body of so many bytes.
func zeros(n int64) io.Reader { return io.LimitReader(bytes.NewReader(make([]byte, n)), n) }

func bodyCaller(uid uint32) caller {
	return caller{Caller: api.Caller{Identity: cluster.Identity{UID: uid}}}
}

// TestBodiesOfUser: one user's calls under way have so many bytes at most; those of others, and later ones, are taken.
func TestBodiesOfUser(t *testing.T) {
	h := &handler{}
	read := func(uid uint32, n int64, claimed bool) (func(), error) {
		r := httptest.NewRequest("POST", "/", zeros(n))
		if r.ContentLength = -1; claimed {
			r.ContentLength = n
		}
		body, done, err := h.readBody(httptest.NewRecorder(), r, bodyCaller(uid), api.MaxBody)
		if err == nil && int64(len(body)) != n {
			t.Errorf("%d bytes of %d", len(body), n)
		}
		return done, err
	}
	first, err := read(1000, 40<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	second, err := read(1000, 40<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(1000, 60<<20, true); err == nil || api.AsError(err).Code != cluster.Unavailable {
		t.Errorf("a third one: %v", err)
	}
	for _, uid := range []uint32{1001, 0, 0, 0, 0} {
		done, err := read(uid, 60<<20, true)
		if err != nil {
			t.Errorf("of user %d: %v", uid, err)
		} else {
			defer done()
		}
	}
	first()
	second()
	done, err := read(1000, 60<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if n := h.bodies.held[holder{uid: 1000}]; n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// TestBodiesOfMember: the calls of one node have so many bytes at most, and those of servers have no bound.
func TestBodiesOfMember(t *testing.T) {
	h := &handler{}
	for role, want := range map[cluster.Role]bool{cluster.RoleServer: true, cluster.RoleNode: false} {
		from := caller{Caller: api.Caller{Member: "m-" + string(role), Role: role}}
		if !h.bodies.share(&from).take(bodiesOfMember - 1<<20) {
			t.Fatalf("no room for any call of a %s", role)
		}
		r := httptest.NewRequest("POST", "/", zeros(2<<20))
		_, _, err := h.readBody(httptest.NewRecorder(), r, from, api.MaxBody)
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "member m-") {
			t.Errorf("more of a %s: %v", role, err)
		}
		c := call{handler: h, r: r, from: from}
		ctx, done := c.counting()
		defer done()
		m := api.NewMux()
		api.Handle(m, api.ReportWork, func(context.Context, api.Caller, api.ReportRequest) (api.WriteResponse, error) {
			return api.WriteResponse{}, nil
		})
		route, _ := m.Lookup("POST", api.ReportWork.Path)
		many := `{"reports":[{"updates":[` + strings.Repeat(`{},`, 1<<14) + `{}]}]}` // some MB
		if _, err := route.Handle(ctx, from.Caller, []byte(many)); (err == nil) != want {
			t.Errorf("a report of a %s that takes much memory: %v", role, err)
		}
	}
}

// TestBodyBounds: each endpoint takes no more than it can need.
func TestBodyBounds(t *testing.T) {
	m := api.NewMux()
	api.Handle(m, api.SubmitJob, nil)
	api.Handle(m, api.CancelJob, nil)
	api.Handle(m, api.ReportWork, nil)
	for path, want := range map[string]int64{
		api.SubmitJob.Path: api.MaxBody, api.CancelJob.Path: api.UserBody, api.ReportWork.Path: api.MaxBody,
	} {
		r, _ := m.Lookup("POST", path)
		if got := mostOf(r, "POST"); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	h := &handler{}
	r := httptest.NewRequest("POST", "/", zeros(101))
	if _, _, err := h.readBody(httptest.NewRecorder(), r, bodyCaller(1000), 100); err == nil || !strings.Contains(err.Error(), "at most 100 bytes") {
		t.Errorf("101 bytes of 100: %v", err)
	}
}

// TestSlowBody: a body that does not arrive in time is waited for no longer.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		var err error
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _, err = h.readBody(w, r, bodyCaller(1000), api.MaxBody)
		})}
		ours, theirs := net.Pipe()
		ln := &oneConn{conn: theirs}
		go func() { _ = srv.Serve(ln) }() // ends with the server
		began := time.Now()
		if _, werr := io.WriteString(ours, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome"); werr != nil {
			t.Fatal(werr)
		}
		answer := make([]byte, 1)
		_, _ = ours.Read(answer)
		if took := time.Since(began); err == nil || took > bodyTime+time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		if n := h.bodies.held[holder{uid: 1000}]; n != 0 {
			t.Errorf("%d bytes are still counted", n)
		}
		ours.Close()
		srv.Close()
	})
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn net.Conn
	net.Listener
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn, l.closed = nil, make(chan struct{})
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	if l.closed != nil {
		close(l.closed)
	}
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{} }

// TestHeavySets: a small call that names many sets of millions of tasks is refused before it fills the memory, and
// what it took is given back.
func TestHeavySets(t *testing.T) {
	mux := api.NewMux()
	asked := 0
	api.Handle(mux, api.ListJobs, func(_ context.Context, _ api.Caller, q api.JobQuery) (api.JobsResponse, error) {
		asked = len(q.Refs)
		return api.JobsResponse{}, nil
	})
	api.Handle(mux, api.SubmitHet, func(_ context.Context, _ api.Caller, q api.HetRequest) (api.SubmitResponse, error) {
		t.Logf("%d components of %d bytes", len(q.Specs), unsafe.Sizeof(q.Specs[0]))
		return api.SubmitResponse{}, nil
	})
	h := &handler{mux: mux, log: slog.New(slog.NewTextHandler(io.Discard, nil)), ctx: t.Context()}
	call := func(who api.Caller, refs int) int {
		t.Helper()
		body := `{"refs":[` + strings.Repeat(`{"job":1,"tasks":"4000000"},`, refs-1) + `{"job":1,"tasks":"0-4000000"}]}`
		status, _, err := h.callAs(t.Context(), who, "GET", api.ListJobs.Path, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	user := api.Caller{Identity: cluster.Identity{UID: 1000, Origin: "test"}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if status := call(user, 1000); status == http.StatusOK { // 500 MB
		t.Error("1000 sets of 4 million tasks are taken")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 2*bodiesOfUser {
		t.Errorf("the refused call took %d MB", took>>20)
	}
	hollow := []byte(`{"specs":[` + strings.Repeat("{},", 1<<20) + `{}]}`) // 3 MB, which would take more than a GB
	if status, _, err := h.callAs(t.Context(), user, "POST", api.SubmitHet.Path, hollow); err != nil || status == http.StatusOK {
		t.Errorf("a million empty components: %d, %v", status, err)
	}
	for range 10 {
		if status := call(user, 100); status != http.StatusOK || asked != 100 {
			t.Fatalf("100 sets: status %d, %d asked", status, asked)
		}
	}
	if len(h.bodies.held) > 0 {
		t.Errorf("still held: %v", h.bodies.held)
	}
}
