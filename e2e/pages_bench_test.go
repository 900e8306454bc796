package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var openPages = flag.Int("pages", 0, "pages that TestPagesOpen keeps open; 0: it does not run")

// Bars of many open pages on a full cluster.
const (
	pagesCPU  = 0.25 // of a core, a server
	pagesLive = 2 * time.Second
	pagesJobs = 12_000
	pagesDraw = 150 * time.Millisecond // until a browser has drawn something of a page
)

// TestPagesOpen measures what open pages cost servers of 1,000 nodes and 12,000 jobs, one of which changes each
// second, and how long it takes until pages show that. See make pages.
func TestPagesOpen(t *testing.T) {
	if *openPages == 0 {
		t.Skip("see make pages")
	}
	g := fullGroup(t, 0)
	g.join("c1", "s1", "--hollow", "1000x16c256g8gpu:h100", "--hollow-time", "2h")
	g.wait("nodes", func() bool { return strings.TrimSpace(g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D")) == "1000" })
	g.submit(g.at["s1"], load{callers: 8, jobs: pagesJobs}) // some 3,500 run, the others wait
	id := g.must("s1", "sbatch", "--parsable", "-J", "tick-0", "-o", "/dev/null", "--wrap", "true")
	g.wait("jobs that run", func() bool {
		return strings.Count(g.must("s1", "squeue", "-h", "-t", "running", "-o", "%i"), "\n") > 3000
	})

	ctx, cancel := context.WithCancel(t.Context())
	servers := []string{"s1", "s2", "s3"}
	seen := &ticks{at: map[string][]time.Time{}}
	paths := []string{"/", "/queue", "/jobs/" + id, "/map", "/plan", "/jobs/1", "/nodes", "/jobs/" + id}
	var pages sync.WaitGroup
	watching := 0
	for i := range *openPages {
		path := paths[i%len(paths)]
		if strings.HasSuffix(path, "/"+id) {
			watching++
		}
		at := "http://" + g.pageAt(g.host(servers[i%len(servers)]))
		pages.Go(func() { watchPage(ctx, at, path, seen) })
	}
	time.Sleep(5 * time.Second) // all have come
	spent, began := map[string]time.Duration{}, time.Now()
	for _, s := range servers {
		spent[s] = g.at[s].cpu()
	}
	const changes = 30
	when := map[string]time.Time{}
	for i := range changes {
		name := fmt.Sprintf("tick-%d", i+1)
		g.must("s1", "scontrol", "update", "jobid="+id, "name="+name)
		when[name] = time.Now()
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Second)))
	}
	took := time.Since(began)
	for _, s := range servers {
		share := float64(g.at[s].cpu()-spent[s]) / float64(took)
		t.Logf("%s: %.1f %% of a core for %d of %d pages", s, 100*share, *openPages/3, *openPages)
		if share > pagesCPU {
			t.Errorf("%s takes more than %.0f %% of a core", s, 100*pagesCPU)
		}
	}
	time.Sleep(pagesLive)
	cancel()
	pages.Wait()
	late := seen.since(when)
	if want := watching * changes / 2; len(late) < want {
		t.Fatalf("%d changes were shown on %d pages, want %d at least", len(late), watching, want)
	}
	slices.Sort(late)
	most := late[len(late)-1]
	t.Logf("%d changes were shown on %d pages, half within %v, 99 of 100 within %v, all within %v", len(late), watching,
		late[len(late)/2].Round(time.Millisecond), late[len(late)*99/100].Round(time.Millisecond), most.Round(time.Millisecond))
	if most > pagesLive {
		t.Errorf("a change took longer than %v", pagesLive)
	}
	firstPaints(t, "http://"+g.pageAt(g.host("s1")))
}

// firstPaints measures when a browser first draws something of each view, without other pages.
func firstPaints(t *testing.T, base string) {
	b := startBrowser(t, t.TempDir())
	if b == nil {
		return
	}
	const paint = `String((performance.getEntriesByType("paint")[0] || {startTime: -1}).startTime)`
	for _, path := range []string{"/", "/queue", "/nodes", "/map", "/plan", "/jobs/1"} {
		var all []time.Duration
		for range 7 {
			b.open(base+path, 1440, "light")
			var ms float64
			drawn := func() bool {
				_, err := fmt.Sscan(b.seen(paint), &ms)
				return err == nil && ms >= 0
			}
			for end := time.Now().Add(browserTime); !drawn(); {
				if time.Now().After(end) {
					t.Fatalf("%s is never drawn", path)
				}
			}
			all = append(all, time.Duration(ms*float64(time.Millisecond)))
		}
		slices.Sort(all)
		t.Logf("%s: first paint after %v, the middle of %d; %v to %v", path, all[3], len(all), all[0], all[6])
		if all[0] > pagesDraw { // what else runs on the machine makes it later, and never sooner
			t.Errorf("%s is drawn later than after %v", path, pagesDraw)
		}
	}
}

// ticks are when pages showed names.
type ticks struct {
	mu sync.Mutex
	at map[string][]time.Time
}

func (s *ticks) note(text string) {
	_, rest, ok := strings.Cut(text, "tick-")
	if !ok {
		return
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	s.mu.Lock()
	defer s.mu.Unlock()
	name := "tick-" + rest[:max(n, 0)]
	s.at[name] = append(s.at[name], time.Now())
}

// since are how long after its time each page showed each name. One that was followed by the next before a page looked
// is not shown there.
func (s *ticks) since(when map[string]time.Time) (out []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, began := range when {
		for _, at := range s.at[name] {
			out = append(out, at.Sub(began))
		}
	}
	return out
}

// watchPage does what a browser does with an open page: it follows the server's index, and fetches the view again when
// that moves, a second apart at least.
func watchPage(ctx context.Context, at, path string, seen *ticks) {
	get := func(path, part string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, "GET", at+path, nil)
		if err != nil {
			return nil
		}
		if part != "" {
			r.Header.Set("X-Part", part)
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil
		}
		return w
	}
	live := get("/live", "")
	if live == nil {
		return
	}
	defer live.Body.Close()
	last := ""
	news := make(chan string, 1)
	go func() {
		defer close(news)
		for lines := bufio.NewScanner(live.Body); lines.Scan(); {
			if index, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				select {
				case news <- index:
				default: // one is waiting
				}
			}
		}
	}()
	for range news {
		w := get(path, "1")
		if w == nil {
			return
		}
		body, _ := io.ReadAll(w.Body)
		w.Body.Close()
		if text := string(body); text != last {
			last = text
			seen.note(text)
		}
	}
}
