package metrics

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/samples"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Metrics in the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/), under the
// paths and names of Slurm 26.05's OpenMetrics; those of muster's own are muster_*. They are taken from this server's
// snapshot as it is asked. Memory is in bytes, as the names say; Slurm gives MB under them.

// Exporter tells scrapers of a cluster, as one of its servers sees it.
type Exporter struct {
	Name, Version string
	Snapshot      func() *cluster.Snapshot
	Servers       func() []api.Server
	Leads         func() bool
	Panics        func() uint64    // defects that Apply has met
	Heard         func() time.Time // of the leader
	Stats         *Stats
	Samples       *samples.Store // nil: none are kept
}

// Write answers a scraper, in OpenMetrics 1.0 if it asks for that, else in the text format of Prometheus from
// which that came.
func Write(w http.ResponseWriter, r *http.Request, text string) {
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text") {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
		text = strings.ReplaceAll(text, " counter\n",
			" unknown\n") + "# EOF\n" // counters have names in _total there: DCGM's have not
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write([]byte(text))
}

// Routes registers the paths; /metrics has all that does not grow with the number of nodes and users.
func (s *Exporter) Routes(mux *http.ServeMux) {
	kinds := map[string][]func(*series, *cluster.Snapshot){
		"": {jobMetrics, waitMetrics, partitionMetrics, s.schedulerMetrics, gpuMetrics, nodeStates, s.ownMetrics,
			s.idleMetrics},
		"/jobs":             {jobMetrics},
		"/nodes":            {nodeMetrics, nodeStates, gpuMetrics},
		"/partitions":       {partitionMetrics},
		"/scheduler":        {s.schedulerMetrics},
		"/jobs-users-accts": {jobsByOwner},
		"/hardware":         {s.hardwareMetrics},
		"/compat":           {compatMetrics},
	}
	for path, fill := range kinds {
		mux.HandleFunc("GET /metrics"+path, func(w http.ResponseWriter, r *http.Request) {
			var m series
			snap := s.Snapshot()
			for _, f := range fill {
				f(&m, snap)
			}
			Write(w, r, m.text())
		})
	}
	say := func(path string, well func() error) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			if err := well(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte("ok\n"))
		})
	}
	say("/livez", func() error { return nil })
	say("/readyz", func() error {
		if since := time.Since(s.Heard()); !s.Leads() && since > readyWithin {
			return fmt.Errorf("no leader has been heard of for %v", since.Round(time.Second))
		}
		return nil
	})
	say("/healthz", func() error {
		if !slices.ContainsFunc(s.Servers(), func(m api.Server) bool { return m.Leader }) {
			return fmt.Errorf("the group has no leader")
		}
		return nil
	})
}

// readyWithin is how long ago a follower may have heard of its leader.
const readyWithin = 10 * time.Second
