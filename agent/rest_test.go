package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"dev.muster/api"
	"dev.muster/cluster"
)

// heldDialect answers requests of the REST interface once it is let.
type heldDialect struct {
	api.Dialect
	asked chan uint32
	let   chan struct{}
}

func (d *heldDialect) ServeREST(q *api.RESTRequest, begin func(int, string) io.Writer) {
	d.asked <- q.Who.UID
	<-d.let
	_, _ = io.WriteString(begin(http.StatusOK, "text/plain"), "done")
}

// testREST is the interface for callers who say themselves who they are.
func testREST(d api.Dialect) (x *rest, ask func(uid uint32, body string) *httptest.ResponseRecorder) {
	x = &rest{cfg: &Config{Dialect: d}, as: &handler{log: quiet}, cluster: func() string { return "" }}
	return x, func(uid uint32, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/slurm/v0.0.41/job/submit", strings.NewReader(body))
		x.serve(w, r, func(*http.Request) (api.Caller, error) {
			return api.Caller{Identity: cluster.Identity{UID: uid}}, nil
		})
		return w
	}
}

// TestBodiesOfTokens: bodies of the REST interface count with the other calls of the user.
func TestBodiesOfTokens(t *testing.T) {
	d := &heldDialect{asked: make(chan uint32, 9), let: make(chan struct{})}
	close(d.let)
	x, ask := testREST(d)
	const held = bodiesOfUser - 4
	x.as.bodies.take(holder{uid: 1}, held)
	for _, c := range []struct {
		name string
		uid  uint32
		body string
		code int
	}{
		{"too much at once", 1, "{     }", 503},
		{"no body", 1, "", 200},
		{"another user", 2, "{     }", 200},
		{"root", 0, "{     }", 200},
		{"too large", 2, strings.Repeat(" ", maxREST+1), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			if w := ask(c.uid, c.body); w.Code != c.code {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	x.as.bodies.release(holder{uid: 1}, held)
	if w := ask(1, "{     }"); w.Code != 200 || len(x.as.bodies.held) != 0 {
		t.Errorf("after the others were answered: %d %s, %v", w.Code, w.Body, x.as.bodies.held)
	}
}

// TestAnswersOfTokens: a few answers of the REST interface are made for a user at a time; others do not wait for that.
func TestAnswersOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &heldDialect{asked: make(chan uint32, 1000), let: make(chan struct{})}
		_, ask := testREST(d)
		codes := make(chan int, 1000)
		for range 3 * answersOfUser {
			go func() { codes <- ask(1, "").Code }()
		}
		synctest.Wait()
		if n := len(d.asked); n != answersOfUser {
			t.Errorf("%d are made at once", n)
		}
		for range 2 * answersOfUser {
			go func() { codes <- ask(0, "").Code }()
		}
		go func() { codes <- ask(2, "").Code }()
		synctest.Wait()
		if n := len(d.asked); n != 3*answersOfUser+1 {
			t.Errorf("%d are made with those of others", n)
		}
		close(d.let)
		for range 5*answersOfUser + 1 {
			if code := <-codes; code != 200 {
				t.Errorf("%d", code)
			}
		}
	})
}
