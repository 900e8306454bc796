package server

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
)

// pageServer is the pages of a server with a state of its own.
func pageServer(t testing.TB, nodes, jobs int) (*pages, *cluster.State) {
	state := cluster.NewState()
	s := &pages{name: "s1", version: "v", log: slog.New(slog.NewTextHandler(io.Discard, nil)), snapshot: state.Snapshot, leads: func() bool { return true }, panics: func() uint64 { return 0 }, stats: newStats(),
		servers: func() []api.Server { return []api.Server{{Name: "s1", Leader: true, Voter: true}} }, heard: time.Now, sessions: newSessions(func() *cluster.CA { return nil }), events: newEventLog(maxFeed)}
	s.logOut = func(_ context.Context, in *session) { s.sessions.end(in.ID, in.Until, time.Now()) }
	n := uint64(0)
	do := func(c cluster.Command) any {
		t.Helper()
		n++
		out := state.Apply(cluster.Entry{Index: n, At: time.Now(), By: cluster.Identity{System: true}, Cmd: c})
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		return out.Result
	}
	inv := cluster.Inventory{Sockets: 2, CoresPerSocket: 32, ThreadsPerCore: 1, CPUs: 64, MemMB: 512_000}
	inv.SpecCPUs = inv.LastCores(4) // which jobs can not have
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, Type: "h100", Cores: cluster.RangeIDSet(0, 63)})
	}
	for i := range nodes {
		do(&cluster.NodeUp{Name: cluster.NodeName(fmt.Sprintf("n%05d", i)), Inventory: inv})
	}
	for i := range jobs {
		id := do(&cluster.Submit{Spec: &cluster.JobSpec{Name: "<script>alert(1)</script>", UID: 1000, User: `a"><img src=x>`, Partitions: []string{"main"}, Kind: cluster.Batch,
			Limit: time.Hour, Layout: &cluster.Layout{PerNode: []cluster.GRES{{Name: "gpu", Count: 8}}}}}).(cluster.JobID)
		if i < nodes {
			do(&cluster.Decide{Decisions: []cluster.Decision{{Job: id, Task: cluster.TaskAny, Start: &cluster.Alloc{Partition: "main", Types: map[string]int64{"h100": 8},
				Shares: []cluster.Share{{Node: cluster.NodeName(fmt.Sprintf("n%05d", i)), CPUs: cluster.RangeIDSet(0, 7), GPUs: cluster.RangeIDSet(0, 7), Tasks: 1}}}}}})
		}
	}
	return s, state
}

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
	views := map[string]string{"/": "3</a> <small>of 3 in use", "/map": "n00001", "/map?by=health": "well",
		"/map?by=nonsense": "n00001", "/queue": "1 to 5 of 5",
		"/queue?state=pending&user=nobody": "none", "/queue?from=99999": "of 5", "/queue?from=-4": "1 to 5", "/jobs/1": "starting", "/jobs/5": "Why it waits",
		"/nodes/n00001": "GPU 7 h100", "/nodes/n00002": "8 of 60", "/accounts": "There are no accounts", "/reservations": "none"}
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
	for path, code := range map[string]int{"/jobs/99": 404, "/jobs/x": 404, "/nodes/none": 404, "/static/../page.go": 404, "/static/%2e%2e/ui.go": 404, "/static/..%2fui.go": 404, "/static/%2e%2e%2fui.go": 404,
		"/static/../../etc/passwd": 404, "/static//etc/passwd": 404, "/static/": 404, "/static": 404, "/nope": 404, "/static/page.css": 200, "/livez": 200} {
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
	s.watching.Store(maxLive)
	for _, path := range []string{"/live", "/v1/events"} {
		if w := get(t, h, "GET", path); w.Code != 503 || s.watching.Load() != maxLive {
			t.Errorf("%s: %d, %d follow", path, w.Code, s.watching.Load())
		}
	}
	s.watching.Store(maxLive - 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest("GET", "/live", nil).WithContext(ctx)); w.Code != 200 || s.watching.Load() != maxLive-1 {
		t.Errorf("%d, %d follow", w.Code, s.watching.Load())
	}
}

// onePast is a history of one job and its step.
type onePast struct {
	History
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
	j := &cluster.Job{ID: 77, Phase: cluster.Ended, Outcome: cluster.Failed, Exit: cluster.ExitStatus{Code: 3}, Submitted: began, Started: began.Add(time.Minute), Ended: began.Add(11 * time.Minute), Limit: time.Hour,
		Spec: &cluster.JobSpec{Name: "<b>old", UID: 1000, User: "ada", Account: "ml", Kind: cluster.Batch, Layout: &cluster.Layout{}}, Contain: true, Alloc: &cluster.Alloc{Partition: "main", Shares: []cluster.Share{{Node: "n00000", CPUs: cluster.RangeIDSet(0, 3), Tasks: 1}}}}
	h := &onePast{job: j, step: &cluster.Step{ID: cluster.StepID{Job: 77}, Name: "train", Tasks: 2, Started: j.Started, Ended: j.Ended, Outcome: cluster.Failed, Exit: cluster.ExitStatus{Code: 3}}}
	s.hist, s.dialect = h, plainVerdict{}
	if w := get(t, s.handler(), "GET", "/jobs/77"); w.Code != 503 || !strings.Contains(w.Body.String(), "history is still on its way") {
		t.Errorf("before history is whole: %d %s", w.Code, w.Body)
	}
	if w := get(t, s.handler(), "GET", "/jobs/5"); w.Code != 503 {
		t.Errorf("another job: %d", w.Code)
	}
	h.whole = true
	body := get(t, s.handler(), "GET", "/jobs/77").Body.String()
	for _, want := range []string{"This is from history", "<h1>&lt;b&gt;old</h1>", `class="state failed"`,
		"waited 1 min 0 s, ran 10 min 0 s", "4 CPUs, 1 node<", "n00000", "code 3, signal 0", "program: 3, 2 steps",
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
	if w := get(t, s.handler(), "GET", "/jobs/78"); w.Code != 404 || !strings.Contains(w.Body.String(), "there is no job 78, and history has none") {
		t.Errorf("no such job: %d %s", w.Code, w.Body)
	}
	cfg := *state.Config()
	cfg.Keys = map[string]string{"privatedata": "jobs"}
	state.Apply(cluster.Entry{Index: 100, At: time.Now(), By: cluster.Identity{System: true}, Cmd: &cluster.Configure{Config: &cfg}})
	if name, _, _, err := s.viewJob(visibilityOf(state.Snapshot(), as(1001, "bob")), pastRequest()); err == nil {
		t.Errorf("somebody else sees %s", name)
	}
	if _, _, _, err := s.viewJob(visibilityOf(state.Snapshot(), as(1000, "ada")), pastRequest()); err != nil {
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
	state.Apply(cluster.Entry{Index: 100, At: time.Now(), By: cluster.Identity{System: true}, Cmd: &cluster.Configure{Config: &cfg}})
	for _, path := range []string{"/", "/queue", "/metrics", "/jobs/1", "/live", "/accounts.csv"} {
		if w := get(t, s.handler(), "GET", path); w.Code != 403 || strings.Contains(w.Body.String(), "alert") {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestMetrics: each line is a comment or a value, each family is told of once.
func TestMetrics(t *testing.T) {
	s, _ := pageServer(t, 3, 5)
	h := s.handler()
	line := regexp.MustCompile(`^[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? [-+0-9.e]+$`)
	if body := get(t, h, "GET", "/metrics/nodes").Body.String(); !strings.Contains(body, "slurm_node_cpus{node=\"n00001\"} 60\n") {
		t.Errorf("a node keeps 4 of 64 CPUs, but jobs can have, of\n%s", body)
	}
	if body := get(t, h, "GET", "/metrics/partitions").Body.String(); !strings.Contains(body, "slurm_partition_cpus{partition=\"main\"} 180\n") {
		t.Errorf("3 nodes keep 4 of 64 CPUs each, but jobs can have, of\n%s", body)
	}
	for path, want := range map[string]string{"/metrics": "slurm_jobs_running 0", "/metrics/jobs": "slurm_jobs_configuring 3", "/metrics/nodes": `slurm_node_gpus_alloc{node="n00001"} 8`,
		"/metrics/partitions": `slurm_partition_jobs_pending{partition="main"} 2`, "/metrics/scheduler": "slurm_schedule_queue_len 2", "/metrics/jobs-users-accts": `slurm_user_jobs_gpus_alloc{username="a\"><img src=x>"} 24`} {
		body := get(t, h, "GET", path).Body.String()
		if !strings.Contains(body, want+"\n") {
			t.Errorf("%s: %q is not in\n%s", path, want, body)
		}
		seen := map[string]bool{}
		for l := range strings.Lines(body) {
			l = strings.TrimSuffix(l, "\n")
			if name, ok := strings.CutPrefix(l, "# TYPE "); ok {
				if seen[name] {
					t.Errorf("%s: twice %s", path, l)
				}
				seen[name] = true
			} else if !strings.HasPrefix(l, "# HELP ") && !line.MatchString(l) {
				t.Errorf("%s: %q", path, l)
			}
		}
	}
}

// TestOpenMetrics: a scraper gets the format that it asks for.
func TestOpenMetrics(t *testing.T) {
	s, _ := pageServer(t, 1, 1)
	for accept, want := range map[string][2]string{
		"": {"text/plain; version=0.0.4; charset=utf-8", "\n"}, "text/plain;version=0.0.4": {"text/plain; version=0.0.4; charset=utf-8", "\n"},
		"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3": {"application/openmetrics-text; version=1.0.0; charset=utf-8", "\n# EOF\n"},
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, r)
		if body := w.Body.String(); w.Header().Get("Content-Type") != want[0] || !strings.HasSuffix(body, want[1]) || strings.Count(body, "# EOF") != strings.Count(want[1], "# EOF") {
			t.Errorf("%q: %s, it ends %q", accept, w.Header().Get("Content-Type"), body[max(0, len(body)-40):])
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text")
	WriteMetrics(w, r, "# TYPE X_TOTAL counter\nX_TOTAL 1\n")
	if got := w.Body.String(); got != "# TYPE X_TOTAL unknown\nX_TOTAL 1\n# EOF\n" {
		t.Error(got)
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
	s.snapshot = func() *cluster.Snapshot { return snap }
	h := s.handler()
	for _, path := range largeViews {
		if w := get(t, h, "GET", path); w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
}

// BenchmarkPages measures views of a large cluster.
func BenchmarkPages(b *testing.B) {
	s, state := pageServer(b, 10_000, 50_000)
	snap := state.Snapshot()
	s.snapshot = func() *cluster.Snapshot { return snap }
	h := s.handler()
	for _, path := range largeViews {
		b.Run(path, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = get(b, h, "GET", path).Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
