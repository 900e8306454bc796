package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/cluster"
)

// TestMoment: what follows without a session is made once for all of them, again for the next moment, and never for
// who has logged in or opens a page.
func TestMoment(t *testing.T) {
	s, state := pageServer(t, 2, 3)
	var made atomic.Int64
	h := s.page(func(sees visibility.Scope, _ *http.Request) (string, string, any, error) {
		made.Add(1)
		return "say", "x", sees.Snap.Index, nil
	})
	ask := func(path, part string) string {
		r := httptest.NewRequest("GET", path, nil)
		if part != "" {
			r.Header.Set("X-Part", part)
		}
		w := httptest.NewRecorder()
		h(w, r)
		return w.Body.String()
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { ask("/", "1") })
	}
	all.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times for followers of one moment", n)
	}
	ask("/?past=week", "1")
	ask("/", "")
	ask("/", "")
	if n := made.Load(); n != 4 {
		t.Errorf("made %d times", n)
	}
	before := ask("/", "1")
	state.Apply(cluster.Entry{
		Index: 700, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Submit{Spec: &cluster.JobSpec{
			Name: "x", UID: 1, User: "u", Partitions: []string{"main"}, Limit: time.Hour,
			Layout: &cluster.Layout{MinNodes: 1},
		}},
	})
	s.moment.mu.Lock()
	s.moment.at = time.Now().Add(-time.Minute)
	s.moment.mu.Unlock()
	if after := ask("/", "1"); after == before || !strings.Contains(after, "700") {
		t.Errorf("the next moment: %s", after)
	}
}
