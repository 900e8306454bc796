package page

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/session"
)

// endless is a body of which it counts what is read.
type endless struct {
	head string
	read int64
}

// mostSent is how much tests send.
const mostSent = 8 << 20

func (b *endless) Read(p []byte) (n int, err error) {
	if b.read >= mostSent {
		return 0, io.EOF
	}
	if b.read < int64(len(b.head)) {
		n = copy(p, b.head[b.read:])
	} else {
		n = copy(p, bytes.Repeat([]byte("a"), len(p)))
	}
	b.read += int64(n)
	return n, nil
}

// TestBodiesOfVisitors: who has no session sends no more than a form to log in by, and writes no files.
func TestBodiesOfVisitors(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, _ := pageServer(t, 1, 1)
	h := s.handler()
	const parts = "--x\r\nContent-Disposition: form-data; name=\"q\"; filename=\"f\"\r\n\r\n"
	for _, path := range []string{
		"/", "/find", "/queue", "/queue/act", "/jobs/1/log", "/jobs/1/log/more", "/jobs/1/log/file/out", "/jobs/1/cancel",
		"/jobs/1/shell", "/usage.csv", "/accounts", "/plan", "/submit", "/submit/check", "/login", "/login/password",
		"/login/oidc/done", "/logout", "/nodes/n00001/drain", "/none",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT"} {
			for mime, head := range map[string]string{
				"multipart/form-data; boundary=x": parts, "application/x-www-form-urlencoded": "q=",
			} {
				body := &endless{head: head}
				r := httptest.NewRequest(method, path, body)
				r.Header.Set("Content-Type", mime)
				h.ServeHTTP(httptest.NewRecorder(), r)
				if body.read > maxForm+1 {
					t.Errorf("%s %s, %s: %d bytes were read", method, path, mime, body.read)
				}
			}
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestFormsOfUser: a user has a few forms under way, and others have theirs meanwhile.
func TestFormsOfUser(t *testing.T) {
	s, _ := pageServer(t, 1, 1)
	h := s.handler()
	send := func(uid uint32, body io.Reader) int {
		who := session.Begin(session.Session{UID: uid, GID: uid, User: "u"}, time.Now())
		value, err := s.Sessions.Seal(&who)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/submit", body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(&http.Cookie{Name: "muster", Value: value})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	var open []*io.PipeWriter
	codes := make(chan int)
	for range maxForms {
		in, out := io.Pipe()
		open = append(open, out)
		go func() { codes <- send(1, in) }()
		if _, err := io.WriteString(out, "csrf="); err != nil { // once it is read
			t.Fatal(err)
		}
	}
	wrong := url.Values{"csrf": {"x"}}.Encode()
	if code := send(1, strings.NewReader(wrong)); code != http.StatusTooManyRequests {
		t.Errorf("one more: %d", code)
	}
	if code := send(2, strings.NewReader(wrong)); code != http.StatusForbidden {
		t.Errorf("another user's: %d", code)
	}
	for _, out := range open {
		out.Close()
		if code := <-codes; code != http.StatusForbidden {
			t.Errorf("%d", code)
		}
	}
	if code := send(1, strings.NewReader(wrong)); code != http.StatusForbidden {
		t.Errorf("after they are over: %d", code)
	}
}
