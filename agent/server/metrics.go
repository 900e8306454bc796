package server

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// Metrics in the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/), under the paths and, where
// they say the same, the names of Slurm 25.11. All are gauges taken from this server's snapshot as it is asked.

// sample is one value.
type sample struct {
	labels []string // name, value, name, value …
	value  float64
}

// family is values of one name.
type family struct {
	name, help string
	samples    []sample
}

// series collects families in the order in which they come.
type series struct {
	list []*family
	at   map[string]*family
}

func (m *series) put(name, help string, value float64, labels ...string) {
	if m.at == nil {
		m.at = map[string]*family{}
	}
	f := m.at[name]
	if f == nil {
		f = &family{name: name, help: help}
		m.at[name], m.list = f, append(m.list, f)
	}
	f.samples = append(f.samples, sample{labels, value})
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// text writes them out.
func (m *series) text() string {
	var b strings.Builder
	for _, f := range m.list {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", f.name, f.help, f.name)
		for _, s := range f.samples {
			b.WriteString(f.name)
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

// WriteMetrics answers a scraper, in OpenMetrics 1.0 if it asks for that, else in the text format of Prometheus from which that came.
func WriteMetrics(w http.ResponseWriter, r *http.Request, text string) {
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text") {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
		text = strings.ReplaceAll(text, " counter\n", " unknown\n") + "# EOF\n" // counters have names in _total there: DCGM's have not
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write([]byte(text))
}

// metricRoutes are the paths; /metrics has all that do not grow with the number of nodes and users.
func (s *pages) metricRoutes(mux *http.ServeMux) {
	kinds := map[string][]func(*series, *cluster.Snapshot){
		"":                  {s.jobMetrics, waitMetrics, partitionMetrics, s.schedulerMetrics, gpuMetrics, nodeStates},
		"/jobs":             {s.jobMetrics},
		"/nodes":            {nodeMetrics, nodeStates, gpuMetrics},
		"/partitions":       {partitionMetrics},
		"/scheduler":        {s.schedulerMetrics},
		"/jobs-users-accts": {jobsByOwner},
	}
	for path, fill := range kinds {
		mux.HandleFunc("GET /metrics"+path, func(w http.ResponseWriter, r *http.Request) {
			var m series
			snap := s.snapshot()
			for _, f := range fill {
				f(&m, snap)
			}
			WriteMetrics(w, r, m.text())
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
		if since := time.Since(s.heard()); !s.leads() && since > readyWithin {
			return fmt.Errorf("no leader has been heard of for %v", since.Round(time.Second))
		}
		return nil
	})
	say("/healthz", func() error {
		if !slices.ContainsFunc(s.servers(), func(m api.Server) bool { return m.Leader }) {
			return fmt.Errorf("the group has no leader")
		}
		return nil
	})
}

// readyWithin is how long ago a follower may have heard of its leader.
const readyWithin = 10 * time.Second

// jobStates are the words of Slurm's metrics for a job's state.
var jobStates = []string{"pending", "running", "suspended", "completing", "configuring", "completed", "cancelled", "failed", "timeout", "node_failed", "preempted",
	"outofmemory", "deadline"}

func metricState(j *cluster.Job) string {
	switch j.Phase {
	case cluster.Starting:
		return "configuring"
	case cluster.Ending:
		return "completing"
	}
	word := stateOf(j)
	return cmp.Or(map[string]string{"timed_out": "timeout", "out_of_memory": "outofmemory"}[word], word)
}

// held sums what jobs hold.
type held struct{ jobs, cpus, gpus, nodes, memory float64 }

func (h *held) add(j *cluster.Job) {
	h.jobs += float64(max(1, j.Tasks.Len()))
	if j.Alloc == nil || j.Phase == cluster.Ended {
		return
	}
	for _, sh := range j.Alloc.Shares {
		h.cpus, h.gpus, h.nodes, h.memory = h.cpus+float64(sh.CPUs.Len()), h.gpus+float64(sh.GPUs.Len()), h.nodes+1, h.memory+float64(sh.MemMB)*(1<<20)
	}
}

func (s *pages) jobMetrics(m *series, snap *cluster.Snapshot) {
	byState, sum := map[string]float64{}, held{}
	onHold := 0.0
	for j := range snap.Jobs() {
		n := float64(max(1, j.Tasks.Len()))
		byState[metricState(j)] += n
		sum.add(j)
		if j.Phase == cluster.Pending && j.Held != cluster.NotHeld {
			onHold += n
		}
	}
	m.put("slurm_jobs", "jobs that are known, tasks of arrays counted each", sum.jobs)
	for _, st := range jobStates {
		m.put("slurm_jobs_"+st, "jobs in this state", byState[st])
	}
	m.put("slurm_jobs_hold", "pending jobs that are held", onHold)
	m.put("slurm_jobs_cpus_alloc", "CPUs that jobs hold", sum.cpus)
	m.put("slurm_jobs_gpus_alloc", "GPUs that jobs hold", sum.gpus)
	m.put("slurm_jobs_nodes_alloc", "nodes on which jobs are, once for each", sum.nodes)
	m.put("slurm_jobs_memory_alloc", "bytes of memory that jobs hold", sum.memory)
}

// jobsByOwner has what each user and account holds.
func jobsByOwner(m *series, snap *cluster.Snapshot) {
	users, accounts := map[string]*held{}, map[string]*held{}
	add := func(of map[string]*held, name string, j *cluster.Job) {
		if of[name] == nil {
			of[name] = &held{}
		}
		of[name].add(j)
	}
	for j := range snap.Jobs() {
		if j.Phase != cluster.Ended {
			add(users, j.Spec.User, j)
			add(accounts, j.Spec.Account, j)
		}
	}
	for kind, of := range map[string]map[string]*held{"user": users, "account": accounts} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			h := of[name]
			m.put("slurm_"+kind+"_jobs", "jobs that are not over", h.jobs, kind, name)
			m.put("slurm_"+kind+"_jobs_cpus_alloc", "CPUs in use", h.cpus, kind, name)
			m.put("slurm_"+kind+"_jobs_gpus_alloc", "GPUs in use", h.gpus, kind, name)
		}
	}
}

// waitMetrics has why jobs wait, and for how long the first of those has waited that nobody holds.
func waitMetrics(m *series, snap *cluster.Snapshot) {
	why, oldest := map[string]float64{}, time.Duration(0)
	for j := range snap.Queue() {
		if reason := cmp.Or(string(j.Wait), "None"); j.Held == cluster.NotHeld {
			why[strings.Fields(reason)[0]] += float64(max(1, j.Tasks.Len()))
			oldest = max(oldest, time.Since(later(j.Submitted, j.Eligible)))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		m.put("muster_jobs_waiting", "pending jobs that are not held, by the reason that squeue shows", why[reason], "reason", reason)
	}
	m.put("muster_queue_oldest_seconds", "how long the job has waited that could begin for the longest time", oldest.Seconds())
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func nodeMetrics(m *series, snap *cluster.Snapshot) {
	for n := range snap.Nodes() {
		l := snap.Load(n.Name)
		name := string(n.Name)
		m.put("slurm_node_cpus", "CPUs of the node that jobs can have", float64(n.Inventory.JobCPUCount()), "node", name)
		m.put("slurm_node_cpus_alloc", "CPUs in use", float64(l.CPUs.Len()), "node", name)
		m.put("slurm_node_memory_bytes", "memory of the node", float64(n.Inventory.MemMB)*(1<<20), "node", name)
		m.put("slurm_node_memory_alloc_bytes", "memory in use", float64(l.MemMB)*(1<<20), "node", name)
		m.put("slurm_node_gpus", "GPUs of the node that were found", float64(len(n.Inventory.Found())), "node", name)
		m.put("slurm_node_gpus_alloc", "GPUs in use", float64(l.GPUs.Len()), "node", name)
		m.put("muster_node_usable", "1 if jobs may start there", float64(b2i(n.Usable())), "node", name)
	}
}

// nodeStates counts nodes by state.
func nodeStates(m *series, snap *cluster.Snapshot) {
	states := map[string]float64{}
	for n := range snap.Nodes() {
		states[nodeWord(n, len(snap.Load(n.Name).Jobs) > 0)]++
	}
	m.put("slurm_nodes", "nodes", float64(snap.NodeCount()))
	for _, w := range [][2]string{{"idle", "idle"}, {"running", "alloc"}, {"down", "down"}, {"drained", "drained"}, {"draining", "draining"}, {"silent", "not_responding"}, {"unknown", "unknown"},
		{"off", "powered_down"}, {"powering up", "powering_up"}, {"powering down", "powering_down"}} {
		m.put("slurm_nodes_"+w[1], "nodes in this state", states[w[0]])
	}
}

// gpuMetrics counts GPUs by type.
func gpuMetrics(m *series, snap *cluster.Snapshot) {
	type count struct{ have, used, out float64 }
	kinds := map[string]*count{}
	for n := range snap.Nodes() {
		l := snap.Load(n.Name)
		for i := range n.Inventory.GPUs {
			g := &n.Inventory.GPUs[i]
			c := kinds[g.Type]
			if c == nil {
				c = &count{}
				kinds[g.Type] = c
			}
			used := l.GPUs.Has(i)
			c.have, c.used, c.out = c.have+1, c.used+float64(b2i(used)), c.out+float64(b2i(!used && (g.Missing || !n.Usable())))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		c := kinds[name]
		m.put("muster_gpus", "GPUs by type", c.have, "type", name)
		m.put("muster_gpus_used", "GPUs in use", c.used, "type", name)
		m.put("muster_gpus_out", "GPUs that are missing, or whose nodes are out of service", c.out, "type", name)
	}
}

func partitionMetrics(m *series, snap *cluster.Snapshot) {
	pending, running := map[string]float64{}, map[string]float64{}
	for j := range snap.Jobs() {
		for _, p := range partitionsOf(j) {
			switch {
			case j.Phase == cluster.Pending:
				pending[p] += float64(max(1, j.Tasks.Len()))
			case j.Phase != cluster.Ended:
				running[p]++
			}
		}
	}
	for i := range snap.Config().Partitions {
		p := &snap.Config().Partitions[i]
		nodes, cpus, used := 0.0, 0.0, 0.0
		for n := range snap.PartitionNodes(p) {
			nodes, cpus, used = nodes+1, cpus+float64(n.Inventory.JobCPUCount()), used+float64(snap.Load(n.Name).CPUs.Len())
		}
		m.put("slurm_partition_nodes", "nodes of the partition", nodes, "partition", p.Name)
		m.put("slurm_partition_cpus", "CPUs of the partition that jobs can have", cpus, "partition", p.Name)
		m.put("slurm_partition_cpus_alloc", "CPUs in use", used, "partition", p.Name)
		m.put("slurm_partition_jobs_pending", "jobs that wait for it", pending[p.Name], "partition", p.Name)
		m.put("slurm_partition_jobs_running", "jobs that run in it", running[p.Name], "partition", p.Name)
	}
}

func (s *pages) schedulerMetrics(m *series, snap *cluster.Snapshot) {
	m.put("slurm_sched_queue_len", "records in the queue", float64(snap.QueueLen()))
	m.put("muster_server_leads", "1 at the server that leads", float64(b2i(s.leads())), "server", s.name)
	m.put("muster_log_index", "log index of this server's state", float64(snap.Index), "server", s.name)
	m.put("muster_log_level", "level of what the log holds: it rises when all servers know it", float64(snap.Level()), "server", s.name)
	m.put("muster_apply_panics", "commands that met a defect of muster, since this server began", float64(s.panics()), "server", s.name)
	m.put("muster_servers", "members of the server group", float64(len(s.servers())))
}
