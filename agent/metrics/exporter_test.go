package metrics

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestMetricNames: a scrape file and dashboards made for Slurm find the names that a 26.05 server gave
// (testdata/openmetrics.txt).
func TestMetricNames(t *testing.T) {
	x := exporter(t, 3, 5)
	h := handler(x)
	text, err := os.ReadFile("testdata/openmetrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	bodies, found := map[string]string{}, 0
	for line := range strings.Lines(string(text)) {
		path, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if bodies[path] == "" {
			bodies[path] = get(t, h, "GET", path).Body.String()
		}
		if strings.Contains(bodies[path], "# TYPE "+name+" ") {
			found++
			continue
		}
		t.Errorf("%s lacks %s", path, name)
	}
	t.Logf("%d names are there", found)
}

// TestMetricMeaning: nodes that are in use in part are mixed, and each node counts for one of its base states.
func TestMetricMeaning(t *testing.T) {
	x := exporter(t, 3, 5)
	h := handler(x)
	nodes := get(t, h, "GET", "/metrics/nodes").Body.String()
	for _, want := range []string{"slurm_nodes 3", "slurm_nodes_alloc 0", "slurm_nodes_mixed 3", "slurm_nodes_idle 0",
		"slurm_nodes_down 0"} {
		if !strings.Contains(nodes, "\n"+want+"\n") {
			t.Errorf("no %q in\n%s", want, nodes)
		}
	}
	own := get(t, h, "GET", "/metrics").Body.String()
	for _, want := range []string{"# TYPE muster_jobs_submitted_total counter",
		`muster_build_info{version="v",go="go1.`,
		"process_resident_memory_bytes ", "process_cpu_seconds_total ", "process_open_fds ",
		"# TYPE muster_pass_seconds histogram", `muster_pass_seconds_bucket{server="s1",le="+Inf"} `,
		`muster_submission_seconds_count{server="s1"} `, `muster_log_fsync_seconds_sum{server="s1"} `,
		`muster_tokens_refused_total{server="s1"} 0`} {
		if !strings.Contains(own, want) {
			t.Errorf("no %q in\n%s", want, own)
		}
	}
	compat := get(t, h, "GET", "/metrics/compat").Body.String()
	for _, want := range []string{"slurm_queue_pending 2", "slurm_gpus_alloc 24", "slurm_nodes_mix 3",
		"slurm_cpus_total 180"} {
		if !strings.Contains(compat, "\n"+want+"\n") {
			t.Errorf("no %q in\n%s", want, compat)
		}
	}
}

// TestArraysCounted: tasks of arrays are counted as Slurm 26.05 counted them: an array of ten, two of which run, held,
// and when it has ended.
func TestArraysCounted(t *testing.T) {
	spec := &cluster.JobSpec{User: "alice", Layout: &cluster.Layout{}}
	tasks := cluster.NewIDSet(3, 4, 5, 6, 7, 8, 9, 10)
	waits := &cluster.Job{ID: 8, ArrayID: 8, Tasks: tasks, Spec: spec}
	runs := func(id cluster.JobID) *cluster.Job { return &cluster.Job{ID: id, Phase: cluster.Running, Spec: spec} }
	ended := func(j *cluster.Job) *cluster.Job {
		n := *j
		n.Phase, n.Outcome = cluster.Ended, cluster.Cancelled
		return &n
	}
	type counts struct{ jobs, records, live, pending, running, cancelled, started, finished float64 }
	for _, c := range []struct {
		jobs []*cluster.Job
		want counts
	}{
		{[]*cluster.Job{waits, runs(9), runs(10)}, counts{10, 3, 3, 8, 2, 0, 2, 0}},
		{[]*cluster.Job{ended(waits), ended(runs(9)), ended(runs(10))}, counts{10, 3, 0, 0, 0, 3, 3, 3}},
	} {
		var s jobSums
		for _, j := range c.jobs {
			s.add(j)
		}
		got := counts{s.jobs, s.records, s.live, s.words["pending"], s.words["running"], s.words["cancelled"],
			s.started, s.finished}
		if got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

// TestMetrics: each line is a comment or a value, each family is told of once.
func TestMetrics(t *testing.T) {
	x := exporter(t, 3, 5)
	h := handler(x)
	line := regexp.MustCompile(`^[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? [-+0-9.e]+$`)
	if body := get(t, h, "GET", "/metrics/nodes").Body.String(); !strings.Contains(body,
		"slurm_node_cpus{node=\"n00001\"} 60\n") {
		t.Errorf("a node keeps 4 of 64 CPUs, but jobs can have, of\n%s", body)
	}
	if body := get(t, h, "GET", "/metrics/partitions").Body.String(); !strings.Contains(body,
		"slurm_partition_cpus{partition=\"main\"} 180\n") {
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
	x := exporter(t, 1, 1)
	for accept, want := range map[string][2]string{
		"": {
			"text/plain; version=0.0.4; charset=utf-8", "\n",
		}, "text/plain;version=0.0.4": {"text/plain; version=0.0.4; charset=utf-8", "\n"},
		"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3": {
			"application/openmetrics-text; version=1.0.0; charset=utf-8", "\n# EOF\n",
		},
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		handler(x).ServeHTTP(w, r)
		if body := w.Body.String(); w.Header().Get("Content-Type") != want[0] || !strings.HasSuffix(body, want[1]) || strings.Count(body, "# EOF") != strings.Count(want[1], "# EOF") {
			t.Errorf("%q: %s, it ends %q", accept, w.Header().Get("Content-Type"), body[max(0, len(body)-40):])
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text")
	Write(w, r, "# TYPE X_TOTAL counter\nX_TOTAL 1\n")
	if got := w.Body.String(); got != "# TYPE X_TOTAL unknown\nX_TOTAL 1\n# EOF\n" {
		t.Error(got)
	}
}

// exporter is that of a server with a state of its own.
func exporter(t testing.TB, nodes, jobs int) *Exporter {
	return &Exporter{
		Name: "s1", Version: "v", Stats: NewStats(),
		Snapshot: agenttest.Cluster(t, nodes, jobs).Snapshot,
		Servers:  func() []api.Server { return []api.Server{{Name: "s1", Leader: true, Voter: true}} },
		Leads:    func() bool { return true },
		Panics:   func() uint64 { return 0 },
		Heard:    time.Now,
	}
}

func handler(x *Exporter) http.Handler {
	mux := http.NewServeMux()
	x.Routes(mux)
	return mux
}

func get(t testing.TB, h http.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// TestNodesAsked: of pending jobs the largest counts, by the fewest nodes that it wants, and by the most.
func TestNodesAsked(t *testing.T) {
	var a nodesAsked
	for _, c := range []struct {
		layout cluster.Layout
		want   nodesAsked
	}{
		{cluster.Layout{MinNodes: 2, MaxNodes: 3, Tasks: 8}, nodesAsked{2, 3}},
		{cluster.Layout{MinNodes: 5, MaxNodes: 5}, nodesAsked{5, 5}},
		{cluster.Layout{Tasks: 7}, nodesAsked{5, 7}},
		{cluster.Layout{}, nodesAsked{5, 7}},
	} {
		if a.add(&cluster.JobSpec{Layout: &c.layout}); a != c.want {
			t.Errorf("%+v: %+v, want %+v", c.layout, a, c.want)
		}
	}
}
