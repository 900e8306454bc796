package metrics

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
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

// sample is one value.
type sample struct {
	suffix string   // of the name
	labels []string // name, value, name, value …
	value  float64
}

// family is values of one name.
type family struct {
	name, help string
	kind       string // a counter only rises
	samples    []sample
}

// series collects families in the order in which they come.
type series struct {
	list []*family
	at   map[string]*family
}

func (m *series) put(name, help string, value float64, labels ...string) {
	f := m.family(name, help)
	f.samples = append(f.samples, sample{"", labels, value})
}

// count adds a value that only rises while this server runs; its name ends in _total.
func (m *series) count(name, help string, value float64, labels ...string) {
	f := m.family(name, help)
	f.kind = "counter"
	f.samples = append(f.samples, sample{"", labels, value})
}

// buckets adds what a histogram has counted; its name ends in _seconds.
func (m *series) buckets(name, help string, h *Histogram, labels ...string) {
	f := m.family(name, help)
	f.kind = "histogram"
	upTo, sum := h.Read()
	for i, n := range upTo {
		le := "+Inf"
		if i < len(Bounds) {
			le = strconv.FormatFloat(Bounds[i], 'g', -1, 64)
		}
		f.samples = append(f.samples, sample{"_bucket", append(slices.Clip(labels), "le", le), float64(n)})
	}
	f.samples = append(f.samples, sample{"_sum", labels, sum}, sample{"_count", labels, float64(upTo[len(upTo)-1])})
}

func (m *series) family(name, help string) *family {
	if m.at == nil {
		m.at = map[string]*family{}
	}
	f := m.at[name]
	if f == nil {
		f = &family{name: name, help: help, kind: "gauge"}
		m.at[name], m.list = f, append(m.list, f)
	}
	return f
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// text writes them out.
func (m *series) text() string {
	var b strings.Builder
	for _, f := range m.list {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, s := range f.samples {
			b.WriteString(f.name + s.suffix)
			for i := 0; i < len(s.labels); i += 2 {
				b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
				b.WriteString(s.labels[i] + `="` + escape.Replace(s.labels[i+1]) + `"`)
			}
			if len(s.labels) > 0 {
				b.WriteByte('}')
			}
			b.WriteString(" " + strconv.FormatFloat(s.value, 'g', -1, 64) + "\n")
		}
	}
	return b.String()
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

// truth is 1 or 0.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
