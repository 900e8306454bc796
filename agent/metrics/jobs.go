package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// jobWords are the words of Slurm's metrics for a job's state. Those that muster's jobs are never in are 0.
var jobWords = [...]string{
	"bootfail", "cancelled", "completed", "completing", "configuring", "deadline", "expediting", "failed",
	"fed_requeued", "node_failed", "outofmemory", "pending", "powerup_node", "preempted", "requeued",
	"resizing", "revoked", "running", "signaling", "stageout", "suspended", "timeout",
}

// jobWord is a job's.
func jobWord(j *cluster.Job) string {
	switch j.Phase {
	case cluster.Starting:
		return "configuring"
	case cluster.Ending:
		return "completing"
	}
	word := api.JobWord(j)
	other := map[string]string{"timed_out": "timeout", "out_of_memory": "outofmemory", "boot_failed": "bootfail"}
	return cmp.Or(other[word], word)
}

// jobSums counts jobs, and sums what they hold. Tasks of arrays are counted as Slurm 26.05 does: each while it waits,
// those that have ended together once, and in the totals of users, accounts and partitions once.
type jobSums struct {
	words                         map[string]float64
	jobs, hold, started, finished float64
	records, live                 float64 // as jobs, tasks of an array that do not differ counted once; and not ended
	cpus, gpus, memory            float64
	nodes                         map[cluster.NodeName]bool
	asks, asksFree                nodesAsked // Free: by those that nobody holds
	tooLarge                      float64
}

func (t *jobSums) add(j *cluster.Job) {
	if t.words == nil {
		t.words, t.nodes = map[string]float64{}, map[cluster.NodeName]bool{}
	}
	n := float64(max(1, j.Tasks.Len()))
	t.jobs += n
	t.records++
	if j.Phase == cluster.Pending {
		t.live++
		t.words[jobWord(j)] += n
		t.waits(j, n)
		return
	}
	t.words[jobWord(j)]++
	t.started++
	if j.Phase == cluster.Ended {
		t.finished++
		return
	}
	t.live++
	if j.Alloc == nil {
		return
	}
	for _, sh := range j.Alloc.Shares {
		t.cpus, t.gpus = t.cpus+float64(sh.CPUs.Len()), t.gpus+float64(sh.GPUs.Len())
		t.memory += float64(sh.MemMB) * (1 << 20)
		t.nodes[sh.Node] = true
	}
}

// nodesAsked are the most nodes of which any pending job wants so many at least, or takes so many at most.
type nodesAsked struct{ least, most int }

func (a *nodesAsked) add(s *cluster.JobSpec) {
	least := max(1, s.MinNodes)
	most := s.MaxNodes
	if most == 0 {
		most = max(least, s.Tasks) // a task a node
	}
	a.least, a.most = max(a.least, least), max(a.most, most)
}

// waits counts a pending job.
func (t *jobSums) waits(j *cluster.Job, n float64) {
	t.asks.add(j.Spec)
	if j.Held != cluster.NotHeld {
		t.hold += n
		return
	}
	if j.Wait == cluster.WaitPartitionNodes {
		t.tooLarge += n
	}
	t.asksFree.add(j.Spec)
}

// total is a count under the name that the others begin with.
type total struct {
	help string
	n    float64
}

// put adds the counts under names that begin alike.
func (t *jobSums) put(m *series, prefix string, all total, labels ...string) {
	m.put(prefix, all.help, all.n, labels...)
	for _, word := range jobWords {
		m.put(prefix+"_"+word, "jobs in this state", t.words[word], labels...)
	}
	m.put(prefix+"_hold", "pending jobs that are held", t.hold, labels...)
	m.put(prefix+"_started", "jobs that do not wait, those that have ended too", t.started, labels...)
	m.put(prefix+"_finished", "jobs that have ended", t.finished, labels...)
	m.put(prefix+"_cpus_alloc", "CPUs that jobs hold", t.cpus, labels...)
	m.put(prefix+"_gpus_alloc", "GPUs that jobs hold", t.gpus, labels...)
	m.put(prefix+"_memory_alloc", "bytes of memory that jobs hold", t.memory, labels...)
}

// jobMetrics are those of all jobs.
func jobMetrics(m *series, snap *cluster.Snapshot) {
	var all jobSums
	for j := range snap.Jobs() {
		all.add(j)
	}
	all.put(m, "slurm_jobs", total{"jobs that are known, tasks of arrays counted each", all.jobs})
	m.put("slurm_jobs_nodes_alloc", "nodes on which jobs are", float64(len(all.nodes)))
}

// sums adds jobs by a name of theirs.
type sums map[string]*jobSums

func (s sums) add(name string, j *cluster.Job) {
	if s[name] == nil {
		s[name] = &jobSums{}
	}
	s[name].add(j)
}

// jobsByOwner has the jobs of each user and account.
func jobsByOwner(m *series, snap *cluster.Snapshot) {
	users, accounts := sums{}, sums{}
	for j := range snap.Jobs() {
		users.add(j.Spec.User, j)
		accounts.add(j.Spec.Account, j)
	}
	for _, of := range [...]struct {
		prefix, label string
		sums          sums
	}{{"slurm_user_jobs", "username", users}, {"slurm_account_jobs", "account", accounts}} {
		for _, name := range slices.Sorted(maps.Keys(of.sums)) {
			t := of.sums[name]
			known := total{"jobs that are known, tasks of an array that do not differ counted once", t.records}
			t.put(m, of.prefix, known, of.label, name)
			m.put(of.prefix+"_nodes_alloc", "nodes on which jobs are", float64(len(t.nodes)), of.label, name)
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
		m.put("muster_jobs_waiting", "pending jobs that are not held, by the reason that squeue shows",
			why[reason], "reason", reason)
	}
	m.put("muster_queue_oldest_seconds", "how long the job has waited that could begin for the longest time",
		oldest.Seconds())
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
