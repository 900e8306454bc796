package page

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/agenttest"
	"dev.muster/agent/eventlog"
	"dev.muster/agent/metrics"
	"dev.muster/agent/session"
	"dev.muster/agent/visibility"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
)

// testServer is a group of one, which has no tokens; tests change what they are about.
type testServer struct {
	state    func() *cluster.Snapshot
	foretell func(*cluster.Snapshot, []*cluster.Job)
	sessions *session.Store
	scraped  *metrics.Exporter
}

func (s *testServer) Snapshot() *cluster.Snapshot { return s.state() }

func (s *testServer) Servers() []api.Server {
	return []api.Server{{Name: "s1", Leader: true, Voter: true}}
}

func (s *testServer) Foretell(snap *cluster.Snapshot, jobs []*cluster.Job) {
	if s.foretell != nil {
		s.foretell(snap, jobs)
	}
}

func (s *testServer) Follow(context.Context, api.Caller, api.EventQuery, func([]api.Event) error) error {
	return errors.New("nobody follows here")
}

func (s *testServer) TokenCaller(string) (api.Caller, error) {
	return api.Caller{}, errors.New("no token is taken here")
}

func (s *testServer) Link(_ context.Context, link string, open bool) (session.Session, bool) {
	if open {
		return s.sessions.Open(link, time.Now())
	}
	return s.sessions.Invited(link, time.Now())
}

func (*testServer) Note(context.Context, *session.Session, string, cluster.AuditNote) {}

func (s *testServer) LogOut(_ context.Context, in *session.Session) {
	s.sessions.End(in.ID, in.Until, time.Now())
}

// pageServer is the pages of a server with a state of its own.
func pageServer(t testing.TB, nodes, jobs int) (*pages, *cluster.State) {
	t.Helper()
	state := agenttest.Cluster(t, nodes, jobs)
	server := &testServer{state: state.Snapshot, sessions: session.New("s1", func() *cluster.CA { return nil }, func(*session.Session) bool { return false })}
	server.scraped = &metrics.Exporter{
		Name: "s1", Version: "v", Stats: metrics.NewStats(), Snapshot: server.Snapshot, Servers: server.Servers,
		Leads: func() bool { return true }, Panics: func() uint64 { return 0 }, Heard: time.Now,
	}
	s := newPages(webpage.Config{
		Server: server, Name: "s1", Version: "v", Log: slog.New(slog.DiscardHandler),
		Sessions: server.sessions, Events: eventlog.New(eventlog.Size), More: server.scraped.Routes,
	})
	s.hardware.wait, s.starts.wait, s.today.wait = time.Minute, time.Minute, time.Minute
	return s, state
}

// of is the server of a test's pages.
func of(s *pages) *testServer { return s.Server.(*testServer) }

func get(t testing.TB, h http.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// TestPages: every view is there and whole, what users wrote is text in it, and nothing is changed through it.
func TestPages(t *testing.T) {
	s, _ := pageServer(t, 3, 5)
	h := s.handler()
	views := map[string]string{
		"/": "3</a> <small>of 3 in use", "/map": "n00001", "/map?by=health": "well",
		"/map?by=nonsense": "n00001", "/queue": "1 to 5 of 5", "/queue?state=pending&user=nobody": "none",
		"/queue?from=99999": "of 5", "/queue?from=-4": "1 to 5", "/jobs/1": "starting",
		"/jobs/5": "Why it is pending", "/nodes/n00001": "GPU 7 h100", "/nodes/n00002": "8 of 60",
		"/accounts": "There are no accounts", "/reservations": "none",
	}
	for path, want := range views {
		w := get(t, h, "GET", path)
		body := w.Body.String()
		if w.Code != 200 || !strings.Contains(body, want) || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
			t.Errorf("%s: %d, %q is not in\n%s", path, w.Code, want, body)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") {
			t.Errorf("%s: what a user wrote is not escaped", path)
		}
		if regexp.MustCompile(`(src|href)="(https?:)?//`).MatchString(body) || strings.Contains(body, "style=") || strings.Contains(body, "<script>") {
			t.Errorf("%s: needs another host, or what its policy forbids", path)
		}
		if !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, w.Header())
		}
	}
	for path, code := range map[string]int{
		"/jobs/99": 404, "/jobs/x": 404, "/nodes/none": 404, "/static/../page.go": 404,
		"/static/%2e%2e/ui.go": 404, "/static/..%2fui.go": 404, "/static/%2e%2e%2fui.go": 404,
		"/static/../../etc/passwd": 404, "/static//etc/passwd": 404, "/static/": 404, "/static": 404,
		"/nope": 404, "/static/page.css": 200, "/livez": 200,
	} {
		w, at := get(t, h, "GET", path), path
		for range 3 { // where a browser would end up
			if w.Code/100 == 3 {
				at = w.Header().Get("Location")
				w = get(t, h, "GET", at)
			}
		}
		if w.Code != code || code != 200 && strings.Contains(w.Body.String(), "package ") {
			t.Errorf("%s, from there %s: %d, want %d", path, at, w.Code, code)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		if w := get(t, h, method, "/queue"); w.Code != 405 {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// TestPageFollowers: so many pages follow a server, and no more; each that goes makes room.
func TestPageFollowers(t *testing.T) {
	s, _ := pageServer(t, 1, 1)
	h := s.handler()
	for i := range maxLive {
		at := netip.AddrFrom4([4]byte{10, 0, byte(i / maxLiveFrom), byte(i % maxLiveFrom)})
		network, _ := at.Prefix(32)
		if _, ok := s.watching.Enter(network, true); !ok {
			t.Fatalf("page %d does not follow", i)
		}
	}
	for _, path := range []string{"/live", "/v1/events"} {
		if w := get(t, h, "GET", path); w.Code != 503 || s.watching.Count() != maxLive {
			t.Errorf("%s: %d, %d follow", path, w.Code, s.watching.Count())
		}
	}
	s.watching.All++
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/live", nil).WithContext(ctx))
		return w.Code
	}
	if code := ask(); code != 200 || s.watching.Count() != maxLive {
		t.Errorf("%d, %d follow", code, s.watching.Count())
	}
	s.watching.All = 2 * maxLive
	own, _ := netip.MustParseAddr("192.0.2.1").Prefix(32) // that of httptest
	for range maxLiveFrom {
		if _, ok := s.watching.Enter(own, true); !ok {
			t.Fatal("a page of one address does not follow")
		}
	}
	if code := ask(); code != 503 {
		t.Errorf("one page too many of one address: %d", code)
	}
}

// onePast is a history of one job and its step.
type onePast struct {
	webpage.History
	whole bool
	job   *cluster.Job
	step  *cluster.Step
}

func (h *onePast) Whole() bool { return h.whole }
func (h *onePast) Jobs(_ context.Context, q acct.Query) iter.Seq2[acct.Record, error] {
	return func(yield func(acct.Record, error) bool) {
		if len(q.Refs) == 1 && q.Refs[0].Job == h.job.ID {
			yield(acct.Record{Job: h.job, Steps: []*cluster.Step{h.step}}, nil)
		}
	}
}

// plainVerdict is a dialect that words why jobs have ended, and nothing else.
type plainVerdict struct{ api.Dialect }

func (plainVerdict) Verdict(j *cluster.Job, steps []*cluster.Step) string {
	return fmt.Sprintf("program: %d, %d steps", j.Exit.Code, len(steps))
}

// TestPastJob: a job that has left the queue is shown from history, with its steps and the verdict, to those who
// may see it, and nothing can be done to it.
func TestPastJob(t *testing.T) {
	s, state := pageServer(t, 1, 1)
	began := time.Now().Add(-time.Hour)
	j := &cluster.Job{
		ID: 77, Phase: cluster.Ended, Outcome: cluster.Failed, Exit: cluster.ExitStatus{Code: 3},
		Submitted: began, Started: began.Add(time.Minute), Ended: began.Add(11 * time.Minute),
		Limit: time.Hour,
		Spec: &cluster.JobSpec{
			Name: "<b>old", UID: 1000, User: "ada", Account: "ml", Kind: cluster.Batch,
			Layout: &cluster.Layout{},
		},
		Contain: true,
		Alloc: &cluster.Alloc{
			Partition: "main",
			Shares:    []cluster.Share{{Node: "n00000", CPUs: cluster.RangeIDSet(0, 3), Tasks: 1}},
		},
	}
	h := &onePast{
		job: j,
		step: &cluster.Step{
			ID: cluster.StepID{Job: 77}, Name: "train", Tasks: 2, Started: j.Started, Ended: j.Ended,
			Outcome: cluster.Failed, Exit: cluster.ExitStatus{Code: 3},
		},
	}
	s.History, s.Dialect = h, plainVerdict{}
	if w := get(t, s.handler(), "GET", "/jobs/77"); w.Code != 503 || !strings.Contains(w.Body.String(),
		"history is still on its way") {
		t.Errorf("before history is whole: %d %s", w.Code, w.Body)
	}
	if w := get(t, s.handler(), "GET", "/jobs/5"); w.Code != 503 {
		t.Errorf("another job: %d", w.Code)
	}
	h.whole = true
	body := get(t, s.handler(), "GET", "/jobs/77").Body.String()
	for _, want := range []string{"From the job history", "<h1>&lt;b&gt;old</h1>", `class="state failed"`,
		"waited 1 min 0 s, ran 10 min 0 s", "4 CPUs, 1 node<", "n00000", "exit code 3", "program: 3, 2 steps",
		"77.extern", "77.0 train", "2 tasks for 10 min 0 s"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	for _, not := range []string{"/jobs/77/log", "/jobs/77/cancel", "/jobs/77/requeue"} {
		if strings.Contains(body, not) {
			t.Errorf("the page leads to %s", not)
		}
	}
	if w := get(t, s.handler(), "GET", "/jobs/78"); w.Code != 404 || !strings.Contains(w.Body.String(),
		"there is no job 78, and history has none") {
		t.Errorf("no such job: %d %s", w.Code, w.Body)
	}
	cfg := *state.Config()
	cfg.Keys = map[string]string{"privatedata": "jobs"}
	state.Apply(cluster.Entry{
		Index: 100, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Configure{Config: &cfg},
	})
	if name, _, _, err := s.viewJob(visibility.Of(state.Snapshot(), as(1001, "bob")), pastRequest()); err == nil {
		t.Errorf("somebody else sees %s", name)
	}
	if _, _, _, err := s.viewJob(visibility.Of(state.Snapshot(), as(1000, "ada")), pastRequest()); err != nil {
		t.Errorf("its owner: %v", err)
	}
}

func pastRequest() *http.Request {
	r := httptest.NewRequest("GET", "/jobs/77", nil)
	r.SetPathValue("id", "77")
	return r
}

func as(uid uint32, user string) api.Caller {
	return api.Caller{Identity: cluster.Identity{UID: uid, User: user}}
}

// TestPrivatePages: with PrivateData nothing is shown.
func TestPrivatePages(t *testing.T) {
	s, state := pageServer(t, 1, 1)
	cfg := *state.Config()
	cfg.Keys = map[string]string{"privatedata": "jobs,nodes"}
	state.Apply(cluster.Entry{
		Index: 100, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Configure{Config: &cfg},
	})
	for _, path := range []string{"/", "/queue", "/metrics", "/jobs/1", "/live", "/accounts.csv"} {
		if w := get(t, s.handler(), "GET", path); w.Code != 403 || strings.Contains(w.Body.String(), "alert") {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// largeViews are the views that BenchmarkPages measures, of 10,000 nodes.
var largeViews = []string{"/", "/plan", "/map", "/queue", "/queue?user=x", "/jobs/1", "/nodes/n00001", "/accounts",
	"/reservations", "/events", "/metrics", "/metrics/nodes"}

// TestPagesLarge: each view of 10,000 nodes is there.
func TestPagesLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	s, state := pageServer(t, 10_000, 10_000)
	snap := state.Snapshot()
	of(s).state = func() *cluster.Snapshot { return snap }
	h := s.handler()
	for _, path := range largeViews {
		if w := get(t, h, "GET", path); w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
}

// BenchmarkPages measures views of a full cluster, whose bar is 20 ms, and of a large one.
func BenchmarkPages(b *testing.B) {
	for _, c := range []struct {
		name        string
		nodes, jobs int
	}{{"full", 1000, 12_000}, {"large", 10_000, 50_000}} {
		s, state := pageServer(b, c.nodes, c.jobs)
		s.starts.wait = laterWait
		snap := state.Snapshot()
		of(s).state = func() *cluster.Snapshot { return snap }
		h := s.handler()
		waits := fmt.Sprintf("/jobs/%d", c.jobs-100)
		for _, path := range append(slices.Clip(largeViews), waits) {
			b.Run(c.name+path, func(b *testing.B) {
				size := 0
				for b.Loop() {
					size = get(b, h, "GET", path).Body.Len()
				}
				b.ReportMetric(float64(size), "bytes")
			})
		}
	}
}
