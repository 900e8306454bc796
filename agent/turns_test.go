package agent

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// question is one that the test answers.
var question = api.Endpoint[struct{}, string]{Method: "GET", Path: "/v1/question", Access: api.User}

// ofUser is a connection of a user.
type ofUser struct {
	net.Conn
	uid uint32
}

func (c ofUser) Caller() api.Caller {
	return api.Caller{Identity: cluster.Identity{UID: c.uid, Admin: c.uid == 0}}
}

// fed is a listener that is given its connections.
type fed struct {
	conns chan net.Conn
	once  sync.Once
}

func (f *fed) Accept() (net.Conn, error) {
	if c, ok := <-f.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (f *fed) Close() error   { f.once.Do(func() { close(f.conns) }); return nil }
func (f *fed) Addr() net.Addr { return &net.UnixAddr{} }

func (f *fed) ask(t *testing.T, uid uint32) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	f.conns <- ofUser{far, uid}
	if _, err := io.WriteString(near, "GET "+question.Path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Error(err)
	}
	return near
}

// TestUnreadAnswers: a user who asks a hundred times and reads no answer has few of them in memory, for a short time,
// and others are answered meanwhile.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		mux := api.NewMux()
		api.Handle(mux, question, func(context.Context, api.Caller, struct{}) (string, error) {
			made.Add(1)
			return strings.Repeat("x", 2*answerPart), nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ln := &fed{conns: make(chan net.Conn)}
		done := make(chan error)
		go func() { done <- serve(ctx, ln, mux, nil, slog.New(slog.DiscardHandler)) }()
		var bobs []net.Conn
		for range 100 {
			bobs = append(bobs, ln.ask(t, 1000))
		}
		synctest.Wait()
		if n := made.Load(); n != answersOfUser {
			t.Errorf("%d answers of a user who reads none, want %d", n, answersOfUser)
		}
		for _, uid := range []uint32{1001, 0} {
			conn := ln.ask(t, uid)
			if _, err := io.ReadFull(conn, make([]byte, answerPart)); err != nil {
				t.Errorf("user %d: %v", uid, err)
			}
			conn.Close()
		}
		time.Sleep(stallTime + time.Second)
		synctest.Wait()
		if n := made.Load(); n != 2*answersOfUser+2 {
			t.Errorf("%d answers, want those of the next %d calls too: the first are given up", n, answersOfUser)
		}
		for _, conn := range bobs {
			conn.Close()
		}
		stop()
		<-done
	})
}

// TestHistoriesOfUser: a user has few answers from history in memory, also those that many nodes ask for, and others do
// not wait for that.
func TestHistoriesOfUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		ask := func(uid uint32, member string) (leave func(), err error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := &call{
				handler: h, r: httptest.NewRequest("GET", api.ListHistory.Path, nil).WithContext(ctx),
				from: caller{Caller: api.Caller{Member: member, Identity: cluster.Identity{UID: uid}}},
				who:  api.Caller{Identity: cluster.Identity{UID: uid}},
			}
			return c.turn()
		}
		var last func()
		for i := range historiesOfUser {
			leave, err := ask(1000, []string{"", "n1", "n2"}[i%3])
			if err != nil {
				t.Fatal(err)
			}
			last = leave
		}
		for _, member := range []string{"", "n1", "n9"} {
			if _, err := ask(1000, member); err == nil {
				t.Errorf("one more is answered, which comes from %q", member)
			}
		}
		for range 2 * historiesOfUser {
			if _, err := ask(0, ""); err != nil {
				t.Error(err)
			}
		}
		if _, err := ask(1001, "n1"); err != nil {
			t.Error(err)
		}
		last()
		if _, err := ask(1000, "n1"); err != nil {
			t.Error(err)
		}
	})
}

// TestConnsOfUser: one user cannot take all connections of the local socket, and gets places back.
func TestConnsOfUser(t *testing.T) {
	ln := fair(&fed{conns: make(chan net.Conn, 9)})
	ln.most = 2
	under := ln.Listener.(*fed)
	var theirs []net.Conn
	come := func(uid uint32) net.Conn {
		near, far := net.Pipe()
		theirs = append(theirs, near)
		under.conns <- ofUser{far, uid}
		return near
	}
	accept := func(uid uint32) net.Conn {
		t.Helper()
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if who, err := peer(conn); err != nil || who.UID != uid {
			t.Fatalf("user %d, want %d: %v", who.UID, uid, err)
		}
		return conn
	}
	come(1000)
	come(1000)
	first := accept(1000)
	accept(1000)
	third := come(1000)
	said := make(chan string)
	go func() { text, _ := io.ReadAll(third); said <- string(text) }()
	come(1001)
	come(0)
	accept(1001)
	accept(0)
	if text := <-said; !strings.Contains(text, "503") || !strings.Contains(text, "user 1000 has 2 connections") {
		t.Errorf("a third connection is told %q", text)
	}
	first.Close()
	first.Close()
	come(1000)
	accept(1000)
	for _, c := range theirs {
		c.Close()
	}
}

// TestRefusedConnection: our own client tells what a daemon says to a connection too many.
func TestRefusedConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	inner, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln := fair(inner)
	go func() { // ends with the listener
		for {
			conn, err := inner.Accept()
			if err != nil {
				return
			}
			ln.refuse(conn, 1000)
		}
	}()
	defer inner.Close()
	c := &api.Client{Dial: func(ctx context.Context) (api.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	if _, err := api.Call(t.Context(), c, question, struct{}{}); err == nil || !strings.Contains(err.Error(), "connections to this daemon") {
		t.Errorf("it is told %v", err)
	}
}

// TestConnsOfTokens: a user who comes by tokens, or by another cluster, has no more connections than on the socket.
func TestConnsOfTokens(t *testing.T) {
	p := newInner(t.Context().Done())
	p.users.most = 2
	take := func(uid uint32) (net.Conn, bool) {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close() })
		go func() { _, _ = io.Copy(io.Discard, near) }()
		done := make(chan bool)
		who := caller{Caller: api.Caller{Identity: cluster.Identity{UID: uid}}, token: true}
		go func() { done <- p.put(&innerConn{far, who}) }()
		select {
		case c := <-p.conns:
			return c, <-done
		case ok := <-done:
			return nil, ok
		}
	}
	first, _ := take(1000)
	if _, ok := take(1000); !ok {
		t.Error("a second one is refused")
	}
	if _, ok := take(1000); ok {
		t.Error("a third one is taken")
	}
	for _, uid := range []uint32{0, 0, 0, 1001} {
		if _, ok := take(uid); !ok {
			t.Errorf("one of user %d is refused", uid)
		}
	}
	first.Close()
	if _, ok := take(1000); !ok {
		t.Error("a place that was given back is not free")
	}
}
