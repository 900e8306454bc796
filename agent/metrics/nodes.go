package metrics

import (
	"maps"
	"slices"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// seen is a node as metrics see it.
type seen struct {
	api.NodeInfo
	planned bool
}

// nodesSeen are all nodes.
func nodesSeen(snap *cluster.Snapshot) (list []seen) {
	mark := api.ReservedNow(snap, time.Now())
	planned := map[cluster.NodeName]bool{}
	for j := range snap.Queue() {
		for _, name := range j.PlannedNodes {
			planned[name] = true
		}
	}
	for n := range snap.Nodes() {
		v := seen{api.NodeInfo{Node: *n, Load: *snap.Load(n.Name)}, planned[n.Name] && len(snap.Load(n.Name).Jobs) == 0}
		v.Ending = slices.ContainsFunc(v.Load.Jobs, func(id cluster.JobID) bool {
			j, ok := snap.Job(id)
			return ok && j.On(n.Name).Phase == cluster.Ending
		})
		mark(&v.NodeInfo)
		list = append(list, v)
	}
	return list
}

func (v *seen) cpus() int    { return v.Inventory.JobCPUCount() }
func (v *seen) down() bool   { return v.Down || v.Reboot.Issued() }
func (v *seen) known() bool  { return v.Up || !v.Registered.IsZero() || v.Node.Power != nil }
func (v *seen) silent() bool { return (!v.Up || v.Quiet) && !v.Off() && !v.Leaving() }

// power reports whether the machine is in a state between off and on.
func (v *seen) power(p cluster.PowerState) bool {
	return v.Node.Power != nil && v.Node.Power.State == p
}

// nodeWords are the words of Slurm's metrics for nodes, of the cluster and, where it is another one, of partitions. A
// node counts for each that fits. Those that muster's nodes are never in are 0.
var nodeWords = [...]struct {
	word, part string
	is         func(v *seen) bool
}{
	{"alloc", "", func(v *seen) bool { return !v.down() && v.cpus() > 0 && v.Load.CPUs.Len() >= v.cpus() }},
	{"mixed", "", func(v *seen) bool { return !v.down() && v.Load.CPUs.Len() > 0 && v.Load.CPUs.Len() < v.cpus() }},
	{"idle", "", func(v *seen) bool { return !v.down() && v.known() && v.Load.CPUs.Len() == 0 }},
	{"down", "", (*seen).down},
	{"unknown", "", func(v *seen) bool { return !v.down() && !v.known() && v.Expected != cluster.ExpectedFuture }},
	{"future", "", func(v *seen) bool { return v.Expected == cluster.ExpectedFuture }},
	{"drain", "", func(v *seen) bool { return v.Drain }},
	{"drained", "", func(v *seen) bool { return v.Drain && len(v.Load.Jobs) == 0 }},
	{"draining", "", func(v *seen) bool { return v.Drain && len(v.Load.Jobs) > 0 }},
	{"completing", "cg", func(v *seen) bool { return v.Ending }},
	{"noresp", "no_resp", (*seen).silent},
	{"fail", "", func(v *seen) bool { return v.Failing }},
	{"maint", "", func(v *seen) bool { return v.Maint }},
	{"resv", "", func(v *seen) bool { return v.Reserved }},
	{"planned", "", func(v *seen) bool { return v.planned }},
	{"cloud", "", func(v *seen) bool { return v.Expected == cluster.ExpectedCloud }},
	{"powered_down", "", func(v *seen) bool { return v.power(cluster.PowerOff) }},
	{"powering_down", "", func(v *seen) bool { return v.power(cluster.PowerDown) }},
	{"powering_up", "", func(v *seen) bool { return v.power(cluster.PowerUp) }},
	{"power_down", "", func(v *seen) bool { return v.power(cluster.PowerEmpty) }},
	{"power_up", "", func(v *seen) bool { return v.power(cluster.PowerAsked) }},
	{"reboot_issued", "", func(v *seen) bool { return v.Reboot.Issued() }},
	{"reboot_req", "reboot_requested", func(v *seen) bool { return v.Reboot != nil && !v.Reboot.Issued() }},
	{
		"blocked", "", nil,
	}, {"dyn_future", "", nil}, {"dyn_normal", "", nil}, {
		"external", "", func(v *seen) bool { return v.Expected == cluster.ExpectedExternal },
	}, {"invalid_reg", "", nil},
}

// nodeSums are nodes counted by their words, and what they have.
type nodeSums struct {
	words                                     [len(nodeWords)]float64
	nodes, cpus, usedCPUs, gpus, usedGPUs     float64
	memory, usedMemory, freeMemory, jobMemory float64
}

func (t *nodeSums) add(v *seen) {
	for i, w := range nodeWords {
		if w.is != nil && w.is(v) {
			t.words[i]++
		}
	}
	t.nodes++
	t.cpus, t.usedCPUs = t.cpus+float64(v.cpus()), t.usedCPUs+float64(v.Load.CPUs.Len())
	t.gpus, t.usedGPUs = t.gpus+float64(len(v.Inventory.Found())), t.usedGPUs+float64(v.Load.GPUs.Len())
	t.memory, t.usedMemory = t.memory+bytesOf(v.Inventory.MemMB), t.usedMemory+bytesOf(v.Load.MemMB)
	t.freeMemory += bytesOf(v.Inventory.FreeMemMB)
	t.jobMemory += bytesOf(v.Inventory.MemMB - v.Inventory.SpecMemMB)
}

func bytesOf(mb cluster.MemMB) float64 { return float64(mb) * (1 << 20) }

// nodeStates counts nodes by state.
func nodeStates(m *series, snap *cluster.Snapshot) {
	var all nodeSums
	list := nodesSeen(snap)
	for i := range list {
		all.add(&list[i])
	}
	m.put("slurm_nodes", "nodes", all.nodes)
	for i, w := range nodeWords {
		m.put("slurm_nodes_"+w.word, "nodes in this state", all.words[i])
	}
}

// nodeMetrics has each node.
func nodeMetrics(m *series, snap *cluster.Snapshot) {
	list := nodesSeen(snap)
	for i := range list {
		v := &list[i]
		name, cpus, used := string(v.Name), float64(v.cpus()), float64(v.Load.CPUs.Len())
		m.put("slurm_node_cpus", "CPUs of the node that jobs can have", cpus, "node", name)
		m.put("slurm_node_cpus_alloc", "CPUs in use", used, "node", name)
		m.put("slurm_node_cpus_effective", "CPUs of the node that jobs can have", cpus, "node", name)
		m.put("slurm_node_cpus_idle", "CPUs that nobody uses", cpus-used, "node", name)
		m.put("slurm_node_memory_bytes", "memory of the node", bytesOf(v.Inventory.MemMB), "node", name)
		m.put("slurm_node_memory_alloc_bytes", "memory in use", bytesOf(v.Load.MemMB), "node", name)
		m.put("slurm_node_memory_effective_bytes", "memory of the node that jobs can have",
			bytesOf(v.Inventory.MemMB-v.Inventory.SpecMemMB), "node", name)
		m.put("slurm_node_memory_free_bytes", "memory that the system says is free",
			bytesOf(v.Inventory.FreeMemMB), "node", name)
		m.put("slurm_node_gpus", "GPUs of the node that were found", float64(len(v.Inventory.Found())), "node", name)
		m.put("slurm_node_gpus_alloc", "GPUs in use", float64(v.Load.GPUs.Len()), "node", name)
		m.put("muster_node_usable", "1 if jobs may start there", truth(v.Usable()), "node", name)
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
			c.have, c.used, c.out = c.have+1, c.used+truth(used), c.out+truth(!used && (g.Missing || !n.Usable()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		c := kinds[name]
		m.put("muster_gpus", "GPUs by type", c.have, "type", name)
		m.put("muster_gpus_used", "GPUs in use", c.used, "type", name)
		m.put("muster_gpus_out", "GPUs that are missing, or whose nodes are out of service", c.out, "type", name)
	}
}

// partitionMetrics has each partition: its jobs and its nodes.
func partitionMetrics(m *series, snap *cluster.Snapshot) {
	jobs, nodes := sums{}, map[cluster.NodeName]*seen{}
	for j := range snap.Jobs() {
		for _, p := range api.PartitionsOf(j) {
			jobs.add(p, j)
		}
	}
	list := nodesSeen(snap)
	for i := range list {
		nodes[list[i].Name] = &list[i]
	}
	all := snap.Config().Partitions
	m.put("slurm_partitions", "partitions", float64(len(all)))
	for i := range all {
		p := &all[i]
		var t nodeSums
		for n := range snap.PartitionNodes(p) {
			t.add(nodes[n.Name])
		}
		t.put(m, p.Name)
		of := jobs[p.Name]
		if of == nil {
			of = &jobSums{}
		}
		live := total{"jobs that have not ended, tasks of an array that do not differ counted once", of.live}
		of.put(m, "slurm_partition_jobs", live, "partition", p.Name)
		asks := func(of, by string, n int) {
			m.put("slurm_partition_jobs_"+of, "the most nodes that a pending job asks for"+by, float64(n),
				"partition", p.Name)
		}
		asks("max_job_nodes", " at most", of.asks.most)
		asks("max_job_nodes_nohold", " at most, but for held ones", of.asksFree.most)
		asks("min_job_nodes", " at least", of.asks.least)
		asks("min_job_nodes_nohold", " at least, but for held ones", of.asksFree.least)
		m.put("slurm_partition_jobs_wait_part_node_limit", "jobs that wait for the partition's limit of nodes",
			of.tooLarge, "partition", p.Name)
	}
}

// put adds what a partition's nodes are and have.
func (t *nodeSums) put(m *series, partition string) {
	one := func(name, help string, value float64) {
		m.put("slurm_partition_"+name, help, value, "partition", partition)
	}
	one("nodes", "nodes of the partition", t.nodes)
	one("cpus", "CPUs of the partition that jobs can have", t.cpus)
	one("gpus", "GPUs of the partition that were found", t.gpus)
	for i, w := range nodeWords {
		word := w.word
		if w.part != "" {
			word = w.part
		}
		one("nodes_"+word, "nodes in this state", t.words[i])
	}
	one("nodes_cpus_efctv", "CPUs of the partition that jobs can have", t.cpus)
	one("nodes_cpus_alloc", "CPUs in use", t.usedCPUs)
	one("nodes_cpus_idle", "CPUs that nobody uses", t.cpus-t.usedCPUs)
	one("nodes_mem_tot", "bytes of memory of the nodes", t.memory)
	one("nodes_mem_alloc", "bytes of memory in use", t.usedMemory)
	one("nodes_mem_avail", "bytes of memory that jobs can have", t.jobMemory)
	one("nodes_mem_free", "bytes of memory that the systems say are free", t.freeMemory)
}
