package agent

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/origin"
	"dev.muster/api"
	"dev.muster/cluster"
)

// browser is a visitor of a bubble's page.
type browser struct {
	t     *testing.T
	pages http.Handler
	jar   []*http.Cookie
	extra http.Header
}

func (v *browser) ask(method, path string, form url.Values) *httptest.ResponseRecorder {
	v.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, path, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for k, list := range v.extra {
		r.Header[k] = list
	}
	for _, c := range v.jar {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	v.pages.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.Path == "/" { // others are for the provider's end alone
			v.jar = []*http.Cookie{c}
		}
	}
	return w
}

var csrfField = regexp.MustCompile(`name="csrf" value="([0-9a-f]+)"`)

// csrf is the token of a form.
func (v *browser) csrf(path string) string {
	v.t.Helper()
	m := csrfField.FindStringSubmatch(v.ask("GET", path, nil).Body.String())
	if m == nil {
		v.t.Fatalf("%s has no form", path)
	}
	return m[1]
}

func as(uid uint32) api.Caller { return api.Caller{Identity: cluster.Identity{UID: uid, GID: uid}} }

// link makes a login link for a user, and returns its secret.
func (b *bubble) link(uid uint32) string {
	b.t.Helper()
	r, err := api.CallAs(context.Background(), b.handler.callAs, as(uid), api.CreateLogin, api.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Path != "/login" || u.Host != "s1:7480" {
		b.t.Fatalf("%v: %s", err, r.URL)
	}
	return u.Query().Get("once")
}

// visitor is somebody who has logged in.
func (b *bubble) visitor(uid uint32) *browser {
	b.t.Helper()
	v := &browser{t: b.t, pages: b.pages}
	if w := v.ask("POST", "/login", url.Values{"once": {b.link(uid)}}); w.Code != 303 {
		b.t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	return v
}

func (b *bubble) submitAs(uid uint32) cluster.JobID {
	b.t.Helper()
	r, err := api.CallAs(context.Background(), b.handler.callAs, as(uid), api.SubmitJob, api.SubmitRequest{
		Spec: cluster.JobSpec{
			Layout: &cluster.Layout{}, Name: "job", UID: uid, GID: uid, WorkDir: "/", Stdout: "out",
		},
		Script: cluster.BlobText("#!/bin/sh\n"),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Job
}

func (v *browser) user() string {
	m := regexp.MustCompile(`<span>([^<]*)</span> <button>log out`).FindStringSubmatch(v.ask("GET", "/queue", nil).Body.String())
	if m == nil {
		return ""
	}
	return m[1]
}

// TestWebLogin: a link opens one session, once and soon; the cookie is out of reach of scripts and other sites,
// ends with its time or by logging out, and is nothing when it was changed.
func TestWebLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Hour)
		defer b.api.Close()
		time.Sleep(time.Second)
		once := b.link(1)
		v := &browser{t: t, pages: b.pages, jar: []*http.Cookie{{Name: "muster", Value: "chosen-by-somebody-else"}}}
		for range 2 {
			if w := v.ask("GET", "/login?once="+once, nil); w.Code != 200 || !strings.Contains(w.Body.String(), "<b>daemon</b>") || len(w.Result().Cookies()) != 0 {
				t.Fatalf("the form: %d %s", w.Code, w.Body)
			}
		}
		w := v.ask("POST", "/login", url.Values{"once": {once}})
		set := w.Header().Get("Set-Cookie")
		if w.Code != 303 || !strings.Contains(set, "; HttpOnly; SameSite=Strict") || !strings.Contains(set, "Max-Age=43200") || strings.Contains(set, "Secure") || strings.Contains(set, "chosen") {
			t.Fatalf("login: %d, cookie %s", w.Code, set)
		}
		if who := v.user(); who != "daemon" {
			t.Errorf("after the login the page speaks to %q", who)
		}
		if w := (&browser{t: t, pages: b.pages}).ask("POST", "/login", url.Values{"once": {once}}); w.Code != 410 || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("the link again: %d", w.Code)
		}
		whole := v.jar[0].Value
		left, right, _ := strings.Cut(whole, ".")
		for _, bad := range []string{
			"", ".", left, left + ".", "e30." + right, whole[:len(whole)-2] + "AA",
			strings.Replace(whole, left[:4], "eyJJ", 1) + "x",
		} {
			if who := (&browser{t: t, pages: b.pages, jar: []*http.Cookie{{Name: "muster", Value: bad}}}).user(); who != "" {
				t.Errorf("cookie %q is one of %q", bad, who)
			}
		}
		forged := &browser{t: t, pages: b.pages, extra: http.Header{"X-Forwarded-Proto": {"https"}}}
		if w := forged.ask("POST", "/login", url.Values{"once": {b.link(1)}}); strings.Contains(w.Header().Get("Set-Cookie"), "Secure") {
			t.Errorf("a header of the caller's own is believed: %s", w.Header().Get("Set-Cookie"))
		}
		proxy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.pages.ServeHTTP(w, origin.Marked(r, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})) // httptest's
		})
		tls := &browser{t: t, pages: proxy, extra: http.Header{"X-Forwarded-Proto": {"https"}}}
		if w := tls.ask("POST", "/login", url.Values{"once": {b.link(1)}}); !strings.HasPrefix(w.Header().Get("Set-Cookie"), "__Host-muster=") || !strings.Contains(w.Header().Get("Set-Cookie"), "; Secure") {
			t.Errorf("by TLS: %s", w.Header().Get("Set-Cookie"))
		}
		copied := &browser{t: t, pages: b.pages, jar: v.jar}
		if w := v.ask("POST", "/logout", url.Values{"csrf": {v.csrf("/queue")}}); w.Code != 303 || v.jar[0].MaxAge >= 0 {
			t.Errorf("logout: %d, %v", w.Code, v.jar)
		}
		if who := copied.user(); who != "" {
			t.Errorf("after the logout its cookie is still one of %q", who)
		}
		late, day := b.link(2), b.visitor(2)
		time.Sleep(5*time.Minute + time.Second)
		if w := day.ask("POST", "/login", url.Values{"once": {late}}); w.Code != 410 {
			t.Errorf("a link of five minutes ago: %d", w.Code)
		}
		if day.user() != "bin" {
			t.Error("a session of five minutes is over")
		}
		time.Sleep(12 * time.Hour)
		if who := day.user(); who != "" {
			t.Errorf("after twelve hours the session is still one of %q", who)
		}
	})
}

// TestWebActions: what a session may do is what its user may do by the commands; forms of others do nothing;
// refusals are said in words.
func TestWebActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", 100*time.Hour)
		defer b.api.Close()
		time.Sleep(time.Second)
		own, other := b.submitAs(1), b.submitAs(2)
		time.Sleep(time.Second)
		user, root := b.visitor(1), b.visitor(0)
		path := func(id cluster.JobID, act string) string { return fmt.Sprintf("/jobs/%d/%s", id, act) }
		for name, c := range map[string]struct {
			v    *browser
			path string
			form url.Values
			from string
			code int
			says string
		}{
			"no session": {
				&browser{t: t, pages: b.pages}, path(own, "cancel"), url.Values{}, "", 403,
				"Nothing was changed",
			},
			"no token": {user, path(own, "cancel"), url.Values{}, "", 403, "Nothing was changed"},
			"another's token": {
				user, path(own, "cancel"), url.Values{"csrf": {root.csrf("/")}}, "", 403,
				"Nothing was changed",
			},
			"another site": {
				user, path(own, "cancel"), url.Values{"csrf": {user.csrf("/")}}, "cross-site", 403,
				"cross-origin",
			},
			"another's job": {
				user, path(other, "cancel"), url.Values{"csrf": {user.csrf("/")}}, "", 403,
				"Not done: job " + fmt.Sprint(other) + " belongs to user 2",
			},
			"no job": {
				user, path(99, "cancel"), url.Values{"csrf": {user.csrf("/")}}, "", 404, "No such job",
			},
			"node by a user": {
				user, "/nodes/node-001/drain", url.Values{"csrf": {user.csrf("/")}, "reason": {"x"}}, "",
				403, "Only operators",
			},
			"drain for nothing": {
				root, "/nodes/node-001/drain", url.Values{"csrf": {root.csrf("/")}, "reason": {"  "}}, "",
				422, "Enter a reason",
			},
			"node that is none": {
				root, "/nodes/nope/drain", url.Values{"csrf": {root.csrf("/")}, "reason": {"x"}}, "", 404,
				"does not exist",
			},
			"form without limit": {
				user, path(own, "cancel"), url.Values{"csrf": {strings.Repeat("x", 1<<20)}}, "", 413,
				"too large",
			},
		} {
			c.v.extra = http.Header{}
			if c.from != "" {
				c.v.extra.Set("Sec-Fetch-Site", c.from)
			}
			w := c.v.ask("POST", c.path, c.form)
			c.v.extra = nil
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		if j := b.job(own); j.Phase != cluster.Running {
			t.Fatalf("what was refused has changed the job: phase %d", j.Phase)
		}
		b.act(user, path(own, "requeue"), "", "is being requeued")
		time.Sleep(time.Second)
		if j := b.job(own); j.Restarts != 1 {
			t.Errorf("after the requeue: %d restarts", j.Restarts)
		}
		b.act(user, path(own, "hold"), "", "is held")
		if j := b.job(own); j.Held != cluster.HeldUser {
			t.Errorf("after the hold: held %d", j.Held)
		}
		b.act(user, path(own, "release"), "", "is released")
		b.act(user, path(own, "cancel"), "", "is being cancelled")
		b.act(root, path(other, "cancel"), "", "is being cancelled")
		time.Sleep(time.Second)
		for _, id := range []cluster.JobID{own, other} {
			if j := b.job(id); j.Outcome != cluster.Cancelled {
				t.Errorf("job %d: phase %d, outcome %d", id, j.Phase, j.Outcome)
			}
		}
		b.act(root, "/nodes/node-001/drain", "bad fan", "is draining")
		nodes, err := api.Call(context.Background(), b.api, api.ListNodes, api.NodeQuery{})
		if err != nil || !nodes.Nodes[0].Drain || nodes.Nodes[0].Reason != "bad fan" || nodes.Nodes[0].ReasonBy != "root" {
			t.Errorf("after the drain: %v, %+v", err, nodes.Nodes)
		}
		b.act(root, "/nodes/node-001/resume", "", "is in service")
	})
}

// act asks for an action by its form, and expects it to be done.
func (b *bubble) act(v *browser, path, reason, says string) {
	b.t.Helper()
	w := v.ask("POST", path, url.Values{"csrf": {v.csrf(path)}, "reason": {reason}})
	if w.Code != 303 {
		b.t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	time.Sleep(100 * time.Millisecond)
	if body := v.ask("GET", w.Header().Get("Location"), nil).Body.String(); !strings.Contains(body, says) {
		b.t.Errorf("%s: %q is not said in %s", path, says, body)
	}
}

// TestWebHeaders: every answer says that it is for no frame, no other site and no guess at its kind.
func TestWebHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Hour)
		defer b.api.Close()
		time.Sleep(time.Second)
		v := b.visitor(0)
		for _, path := range []string{
			"/", "/queue", "/nodes/node-001", "/nodes/node-001/drain", "/login", "/nope", "/static/page.js",
			"/static/nope", "/metrics", "/accounts.csv",
		} {
			h := v.ask("GET", path, nil).Header()
			csp := h.Get("Content-Security-Policy")
			if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" && path != "/static/nope" || h.Get("X-Frame-Options") != "DENY" {
				t.Errorf("%s: %v", path, h)
			}
		}
		if w := v.ask("HEAD", "/v1/events", nil); w.Code != 200 || w.Body.Len() != 0 { // and it ends
			t.Errorf("HEAD of the stream: %d, %s", w.Code, w.Body)
		}
		for _, path := range []string{"/", "/queue", "/login", "/jobs/1/cancel", "/static/page.css", "/v1/events"} {
			for _, method := range []string{"PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"} {
				if w := v.ask(method, path, nil); w.Code != 405 {
					t.Errorf("%s %s: %d", method, path, w.Code)
				}
			}
		}
	})
}

// TestWebSecrets: neither what opens a session nor the session is in the log.
func TestWebSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log bytes.Buffer
		b := newBubbleLog(t, "1x8c16g", time.Hour,
			slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug})))
		defer b.api.Close()
		time.Sleep(time.Second)
		v, once := &browser{t: t, pages: b.pages}, b.link(0)
		v.ask("GET", "/login?once="+once, nil)
		v.ask("POST", "/login", url.Values{"once": {once}})
		v.ask("GET", "/login?once="+once, nil)
		cookie := v.jar[0].Value
		b.act(v, "/nodes/node-001/drain", "x", "drained")
		mu.Lock()
		defer mu.Unlock()
		left, right, _ := strings.Cut(cookie, ".")
		for _, secret := range []string{once, left, right} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("%q is in the log", secret)
			}
		}
		if !strings.Contains(log.String(), "session opened") || !strings.Contains(log.String(), "action=drain") {
			t.Errorf("what happened is not in the log:\n%s", log.String())
		}
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// TestWebSlow bounds visitors who are slow in any way, and long headers.
func TestWebSlow(t *testing.T) {
	for name, c := range map[string]struct {
		send string
		max  time.Duration
		says string
	}{
		"silent":        {"", webReadTime + time.Second, ""},
		"half a header": {"GET / HTTP/1.1\r\nHost:", webHeaderTime + time.Second, ""},
		"half a form": {
			"POST /login HTTP/1.1\r\nHost: s1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nonce=",
			webReadTime + time.Second, "400",
		},
		"long header": {"GET / HTTP/1.1\r\nHost: s1\r\nX: " + strings.Repeat("x", 2*maxWebHeader), time.Second, "431"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, "1x8c16g", time.Hour)
				defer b.api.Close()
				time.Sleep(time.Second)
				ctx, cancel := context.WithCancel(context.Background())
				ln := newPipes()
				srv, done := webServer(ctx, b.pages, quiet), make(chan error, 1)
				go func() { done <- srv.Serve(ln) }()
				conn, err := ln.dial(ctx)
				if err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.WriteString(conn, c.send) }()
				began := time.Now()
				text, err := io.ReadAll(conn.(net.Conn))
				if took := time.Since(began); err != nil || took > c.max || !strings.Contains(string(text), c.says) {
					t.Errorf("after %v: %v %q", took, err, text)
				}
				conn.Close()
				cancel()
				srv.Close()
				<-done
				time.Sleep(time.Second)
			})
		})
	}
}

// TestWebEvents: browsers are told of changes, and go on where they were cut off.
func TestWebEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Hour)
		defer b.api.Close()
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		ln := newPipes()
		srv, done := webServer(ctx, b.pages, quiet), make(chan error, 1)
		go func() { done <- srv.Serve(ln) }()
		listen := func(header string) *bufio.Scanner {
			conn, err := ln.dial(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			if _, err := io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: s1\r\n"+header+"\r\n"); err != nil {
				t.Fatal(err)
			}
			return bufio.NewScanner(conn)
		}
		// until reads on to a line that has a text, and returns the next id.
		until := func(in *bufio.Scanner, text string) string {
			t.Helper()
			for found := false; in.Scan(); {
				found = found || strings.Contains(in.Text(), text)
				if id, ok := strings.CutPrefix(in.Text(), "id: "); ok && found {
					return id
				}
			}
			t.Fatalf("%q was never told", text)
			return ""
		}
		first := listen("")
		until(first, `"kind":"begin"`)
		b.submit(cluster.JobSpec{Layout: &cluster.Layout{}})
		at := until(first, `"state":"pending"`)
		for began := time.Now(); time.Since(began) < 2*webWriteTime; { // longer than any other answer may take
			until(first, `"kind":"beat"`)
		}
		b.submit(cluster.JobSpec{Layout: &cluster.Layout{}})
		until(first, `"id":2,`)
		if id := until(listen("Last-Event-ID: "+at+"\r\n"), `"state":"running"`); id <= at {
			t.Errorf("after %s came %s", at, id)
		}
		if in := listen("Last-Event-ID: x\r\n"); !in.Scan() || !strings.Contains(in.Text(), "400") {
			t.Errorf("an id that is none: %s", in.Text())
		}
		cancel()
		srv.Close()
		<-done
		time.Sleep(time.Second)
	})
}
