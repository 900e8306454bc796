package server

import (
	"os"
	"strings"
	"testing"
)

// notOurs are names of Slurm 26.05's metrics that muster has nothing to tell of.
var notOurs = []string{"slurm_bf_exit_", "slurm_sched_exit_", "slurm_bf_table", "slurm_bf_mean_table",
	"slurm_bf_try", "slurm_bf_depth_try",
	"slurm_bf_last_depth_try", "slurm_backfilled_het_jobs", "slurm_last_backfilled_jobs",
	"slurm_sdiag_latency", "slurm_last_proc_req_start"}

// TestMetricNames: a scrape file and dashboards made for Slurm find the names that a 26.05 server gave
// (testdata/openmetrics.txt).
func TestMetricNames(t *testing.T) {
	s, _ := pageServer(t, 3, 5)
	h := s.handler()
	text, err := os.ReadFile("testdata/openmetrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	bodies, missing, found := map[string]string{}, 0, 0
	for line := range strings.Lines(string(text)) {
		path, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if bodies[path] == "" {
			bodies[path] = get(t, h, "GET", path).Body.String()
		}
		if strings.Contains(bodies[path], "# TYPE "+name+" ") {
			found++
			continue
		}
		if missing++; !hasPrefix(name, notOurs) {
			t.Errorf("%s lacks %s", path, name)
		}
	}
	t.Logf("%d names are there, %d are not", found, missing)
}

func hasPrefix(name string, of []string) bool {
	for _, p := range of {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// TestMetricMeaning: nodes that are in use in part are mixed, and each node counts for one of its base states.
func TestMetricMeaning(t *testing.T) {
	s, _ := pageServer(t, 3, 5)
	h := s.handler()
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
