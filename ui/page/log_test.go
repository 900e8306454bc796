package page

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestLinesWith: a word is found in any case, and the last lines are shown; a long word and very many lines take no
// server's time.
func TestLinesWith(t *testing.T) {
	for _, row := range []struct {
		name, text, word, want string
		more                   bool
	}{
		{"cases", "one Loss\ntwo\nLOSS three\n", "loss", "one Loss\nLOSS three\n", false},
		{"none", "one\n", "loss", "", false},
		{"many", strings.Repeat("loss\n", maxLines+1), "Loss", strings.Repeat("loss\n", maxLines), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, more := linesWith(row.text, row.word); got != row.want || more != row.more {
				t.Errorf("%d bytes, %v", len(got), more)
			}
		})
	}
	begun := time.Now()
	linesWith(strings.Repeat("\n", findBytes), strings.Repeat("A", 60<<10))
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestLongSearch: a long word in the list of jobs is read once, and not for each job: anybody may look there.
func TestLongSearch(t *testing.T) {
	const jobs = 1000
	_, state := pageServer(t, 10, jobs)
	snap, long := state.Snapshot(), strings.Repeat("A", 60<<10)
	for _, row := range []struct{ name, word string }{{"word", long}, {"id", "1_" + strings.Repeat("0", 60<<10)}} {
		t.Run(row.name, func(t *testing.T) {
			q := readQueue(httptest.NewRequest("GET", "/queue?q="+row.word, nil))
			before, after := new(runtime.MemStats), new(runtime.MemStats)
			runtime.ReadMemStats(before)
			for j := range snap.Jobs() {
				q.matches(j)
			}
			runtime.ReadMemStats(after)
			if took := (after.TotalAlloc - before.TotalAlloc) / jobs; took > 8<<10 {
				t.Errorf("%d bytes for each job", took)
			}
		})
	}
}

// TestLongAddress: views of long addresses, which are in their links, are not kept for others.
func TestLongAddress(t *testing.T) {
	s, _ := pageServer(t, 1, 1)
	h := s.handler()
	for _, path := range []string{"/queue?q=a", "/queue?q=" + strings.Repeat("A", 60<<10)} {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("X-Part", "1")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("%.20s: %d", path, w.Code)
		}
	}
	if n := len(s.moment.made); n != 1 {
		t.Errorf("%d views are kept, want that of the short address", n)
	}
}
