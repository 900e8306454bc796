package metrics

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// schedulerMetrics are those of sdiag. One pass here does what Slurm does in two: what it counts of backfill apart is
// the pass as well. Each pass comes to the end of the queue, and tries each job once.
func (s *Exporter) schedulerMetrics(m *series, snap *cluster.Snapshot) {
	counted := s.Stats.Counted()
	jobs := &counted.Jobs
	waiting, running := 0.0, 0.0
	for j := range snap.Jobs() {
		switch j.Phase {
		case cluster.Pending:
			waiting += float64(max(j.Tasks.Len(), 1))
		case cluster.Running, cluster.Starting:
			running++
		}
	}
	began := time.Now()
	latency := time.Since(began)
	passMetrics(m, &counted.Cycles, snap.QueueLen())
	putAll(m, []plain{
		{"backfilled_jobs", "jobs that started before others of higher priority", float64(jobs.Backfilled)},
		{"backfilled_het_jobs", "components of heterogeneous jobs among them", float64(jobs.BackfilledHet)},
		{"last_backfilled_jobs", "such jobs since this server counts", float64(jobs.Backfilled)},
		{"sdiag_jobs_submitted", "jobs submitted since this server counts", float64(jobs.Submitted)},
		{"sdiag_jobs_started", "jobs started since then", float64(jobs.Started)},
		{"sdiag_jobs_completed", "jobs completed since then", float64(jobs.Completed)},
		{"sdiag_jobs_canceled", "jobs cancelled since then", float64(jobs.Canceled)},
		{"sdiag_jobs_failed", "jobs failed since then", float64(jobs.Failed)},
		{"sdiag_jobs_pending", "jobs that wait", waiting},
		{"sdiag_jobs_running", "jobs that run", running},
		{"sdiag_job_states_ts", "when they were counted, in seconds since 1970", seconds(time.Now())},
		{"sdiag_latency", "microseconds of looking at the clock", micros(latency)},
		{"last_proc_req_start", "when this server was last asked: now, in seconds since 1970", seconds(began)},
		{"sched_stats_timestamp", "when this was told, in seconds since 1970", seconds(time.Now())},
		{"server_thread_cnt", "threads of this server's work", float64(runtime.NumGoroutine())},
		{"agent_cnt", "calls of servers to nodes: nodes ask servers", 0},
		{"agent_queue_size", "calls that wait to be made again", 0},
		{"agent_thread_cnt", "threads of such calls", 0},
		{"slurmdbd_queue_size", "records that wait for a database daemon: there is none", 0},
	})
	m.put("muster_server_leads", "1 at the server that leads", truth(s.Leads()), "server", s.Name)
	m.put("muster_log_index", "log index of this server's state", float64(snap.Index), "server", s.Name)
	m.put("muster_log_level", "level of what the log holds: it rises when all servers know it",
		float64(snap.Level()), "server", s.Name)
	m.put("muster_apply_panics", "commands that met a defect of muster, since this server began",
		float64(s.Panics()), "server", s.Name)
	m.put("muster_servers", "members of the server group", float64(len(s.Servers())))
}

// plain is a metric without labels, but for the slurm_ before its name.
type plain struct {
	name, help string
	value      float64
}

func putAll(m *series, list []plain) {
	for _, v := range list {
		m.put("slurm_"+v.name, v.help, v.value)
	}
}

func micros(d time.Duration) float64 { return float64(d.Microseconds()) }

// passMetrics are those of the scheduler's passes.
func passMetrics(m *series, c *api.CycleCounts, queue int) {
	mean := func(sum float64) float64 { return sum / float64(max(c.Count, 1)) }
	putAll(m, []plain{
		{"schedule_cycle_cnt", "passes of the scheduler", float64(c.Count)},
		{"schedule_cycle_last", "microseconds of the last pass", micros(c.Last)},
		{"schedule_cycle_max", "microseconds of the longest pass", micros(c.Max)},
		{"schedule_cycle_tot", "microseconds of all passes", micros(c.Sum)},
		{"schedule_cycle_depth", "jobs that were looked at in all passes", float64(c.Depth)},
		{"schedule_queue_len", "records in the queue", float64(queue)},
		{"sched_mean_cycle", "microseconds of a pass", mean(micros(c.Sum))},
		{"sched_mean_depth_cycle", "jobs that a pass looks at", mean(float64(c.Depth))},
		{"sched_exit_end", "passes that came to the end of the queue", float64(c.Count)},
		{"sched_exit_max_depth", "passes that looked at the most jobs that they may: none", 0},
		{"sched_exit_max_job_start", "passes that started the most jobs that they may: none", 0},
		{"sched_exit_lic", "passes that licences ended: none", 0},
		{"sched_exit_rpc_cnt", "passes that other work ended: none", 0},
		{"sched_exit_timeout", "passes that took too long: none", 0},
		{"bf_exit_end", "passes that came to the end of the queue", float64(c.Count)},
		{"bf_exit_max_job_start", "passes that started the most jobs that they may: none", 0},
		{"bf_exit_max_job_test", "passes that looked at the most jobs that they may: none", 0},
		{"bf_exit_state_changed", "passes that a change ended: none", 0},
		{"bf_exit_table_limit", "passes whose table of times was full: none", 0},
		{"bf_exit_timeout", "passes that took too long: none", 0},
		{"bf_active", "1 while a pass of backfill goes on", 0},
		{"bf_cycle_cnt", "passes that look behind the first job that waits: all", float64(c.Count)},
		{"bf_cycle_last", "microseconds of the last pass", micros(c.Last)},
		{"bf_cycle_max", "microseconds of the longest pass", micros(c.Max)},
		{"bf_cycle_tot", "microseconds of all passes", micros(c.Sum)},
		{"bf_mean_cycle", "microseconds of a pass", mean(micros(c.Sum))},
		{"bf_depth_tot", "jobs that were looked at in all passes", float64(c.Depth)},
		{"bf_depth_mean", "jobs that a pass looks at", mean(float64(c.Depth))},
		{"bf_last_depth", "jobs that the last pass looked at", float64(c.Queue)},
		{"bf_depth_try_tot", "jobs that were tried in all passes", float64(c.Depth)},
		{"bf_try_depth_mean", "jobs that a pass tries", mean(float64(c.Depth))},
		{"bf_last_depth_try", "jobs that the last pass tried", float64(c.Queue)},
		{"bf_table_size", "records of a table of times: there is none", 0},
		{"bf_table_size_tot", "their sum over all passes", 0},
		{"bf_mean_table_sz", "records of such a table in a pass", 0},
		{"bf_queue_len", "jobs that waited in the last pass", float64(c.Queue)},
		{"bf_queue_len_tot", "their sum over all passes", float64(c.Depth)},
		{"bf_queue_len_mean", "jobs that wait in a pass", mean(float64(c.Depth))},
		{"bf_when_last_cycle", "when the last pass began, in seconds since 1970", seconds(c.At)},
	})
}

// seconds is a time since 1970, 0 if it is none.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// ownMetrics are those of this server's process, and rates of what it does.
func (s *Exporter) ownMetrics(m *series, _ *cluster.Snapshot) {
	counted := s.Stats.Counted()
	jobs, c := &counted.Jobs, &counted.Cycles
	calls := slices.SortedFunc(slices.Values(counted.Calls), func(a, b api.CallCount) int {
		return strings.Compare(a.Name, b.Name)
	})
	m.put("muster_build_info", "1; its labels say which program this is", 1, "version", s.Version, "go",
		runtime.Version())
	m.put("muster_counting_since_seconds", "since when this server counts, in seconds since 1970",
		seconds(counted.Since), "server", s.Name)
	for _, f := range Process() {
		if f.Rises {
			m.count(f.Name, f.Help, f.Value)
			continue
		}
		m.put(f.Name, f.Help, f.Value)
	}
	m.put("go_goroutines", "threads of this server's work", float64(runtime.NumGoroutine()))
	for _, v := range [...]struct {
		name string
		n    int
	}{{"submitted", jobs.Submitted}, {"started", jobs.Started}, {"completed", jobs.Completed}, {"cancelled",
		jobs.Canceled},
		{"failed", jobs.Failed}, {"backfilled", jobs.Backfilled}} {
		m.count("muster_jobs_"+v.name+"_total", "jobs, since this server counts", float64(v.n), "server", s.Name)
	}
	m.count("muster_passes_total", "passes of the scheduler at this server", float64(c.Count), "server", s.Name)
	m.count("muster_pass_seconds_total", "how long they took", c.Sum.Seconds(), "server", s.Name)
	t := &s.Stats.Times
	m.buckets("muster_log_fsync_seconds", "how long entries take to be on this server's disk", &t.Fsync,
		"server", s.Name)
	m.buckets("muster_submission_seconds", "how long calls take that submit jobs, at this server",
		&t.Submission, "server", s.Name)
	m.buckets("muster_pass_seconds", "how long passes of the scheduler take", &t.Pass, "server", s.Name)
	m.count("muster_tokens_refused_total", "users' tokens that were not taken", float64(t.RefusedTokens.Load()),
		"server", s.Name)
	s.lagMetrics(m)
	for _, one := range calls {
		m.count("muster_calls_total", "calls that this server answered", float64(one.N), "call", one.Name)
	}
	for _, one := range calls {
		m.count("muster_call_seconds_total", "how long they took", one.Time.Seconds(), "call", one.Name)
	}
}

// lagMetrics are how many entries of the log each member lacks, as the leader has heard within a second or two.
func (s *Exporter) lagMetrics(m *series) {
	if !s.Leads() {
		return
	}
	for _, v := range s.Servers() {
		if v.Silent.IsZero() {
			m.put("muster_raft_lag_entries", "entries of the log that a member lacks, as it last told the leader",
				float64(v.Behind), "member", v.Name)
		}
	}
}

// compatMetrics are names of the exporter that most sites run beside Slurm (github.com/vpenso/prometheus-slurm-
// exporter), so that dashboards made for it go on.
func compatMetrics(m *series, snap *cluster.Snapshot) {
	var jobs jobSums
	users, accounts := sums{}, sums{}
	blocked := 0.0
	for j := range snap.Jobs() {
		jobs.add(j)
		users.add(j.Spec.User, j)
		accounts.add(j.Spec.Account, j)
		if j.Phase == cluster.Pending && strings.HasPrefix(string(j.Wait), "Dependency") {
			blocked += float64(max(1, j.Tasks.Len()))
		}
	}
	for _, word := range [...]string{"pending", "running", "suspended", "cancelled", "completing", "completed",
		"configuring",
		"failed", "timeout", "preempted"} {
		m.put("slurm_queue_"+word, "jobs in this state", jobs.words[word])
	}
	m.put("slurm_queue_node_fail", "jobs in this state", jobs.words["node_failed"])
	m.put("slurm_queue_pending_dependency", "pending jobs that wait for others", blocked)
	var all nodeSums
	list, other := nodesSeen(snap), 0.0
	for i := range list {
		if all.add(&list[i]); !list[i].Usable() {
			other += float64(list[i].cpus() - list[i].Load.CPUs.Len())
		}
	}
	m.put("slurm_cpus_total", "CPUs", all.cpus)
	m.put("slurm_cpus_alloc", "CPUs in use", all.usedCPUs)
	m.put("slurm_cpus_other", "CPUs of nodes out of service", other)
	m.put("slurm_cpus_idle", "CPUs that nobody uses", all.cpus-all.usedCPUs-other)
	m.put("slurm_gpus_total", "GPUs", all.gpus)
	m.put("slurm_gpus_alloc", "GPUs in use", all.usedGPUs)
	m.put("slurm_gpus_idle", "GPUs that nobody uses", all.gpus-all.usedGPUs)
	m.put("slurm_gpus_utilization", "of all GPUs those in use", all.usedGPUs/max(all.gpus, 1))
	for i, w := range nodeWords {
		if name := compatNodes[w.word]; name != "" {
			m.put("slurm_nodes_"+name, "nodes in this state", all.words[i])
		}
	}
	compatOwners(m, "account", accounts)
	compatOwners(m, "user", users)
}

// compatNodes are that exporter's words for nodes.
var compatNodes = map[string]string{"alloc": "alloc", "completing": "comp", "down": "down", "drain": "drain",
	"fail": "fail",
	"idle": "idle", "maint": "maint", "mixed": "mix", "resv": "resv"}

// compatOwners are the jobs of accounts or users.
func compatOwners(m *series, kind string, of sums) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		t := of[name]
		for _, word := range [...]string{"pending", "running", "suspended"} {
			m.put("slurm_"+kind+"_jobs_"+word, "jobs in this state", t.words[word], kind, name)
		}
		m.put("slurm_"+kind+"_cpus_running", "CPUs in use", t.cpus, kind, name)
	}
}
