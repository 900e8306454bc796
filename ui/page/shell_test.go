package page

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dev.muster/agent/session"
)

// TestShellTellsNothing: who asks for a shell in another user's job does not learn whether that starts.
func TestShellTellsNothing(t *testing.T) {
	s, _ := pageServer(t, 1, 1)
	h := s.handler()
	j, ok := s.Snapshot().Job(1)
	if !ok {
		t.Fatal("there is no job")
	}
	for _, c := range []struct {
		name string
		uid  uint32
		want bool
	}{{"the user's own", j.Spec.UID, true}, {"another's", j.Spec.UID + 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			who := session.Begin(session.Session{UID: c.uid, GID: c.uid, User: "u"}, time.Now())
			value, err := s.Sessions.Seal(&who)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("GET", "/jobs/1/shell", nil)
			r.AddCookie(&http.Cookie{Name: "muster", Value: value})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := w.Header().Get("Refresh") != ""; w.Code != http.StatusForbidden || got != c.want {
				t.Errorf("%d, the page reloads: %v", w.Code, got)
			}
		})
	}
}
