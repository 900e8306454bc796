package metrics

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// hardwareFresh is how old a sample may be to be told of.
const hardwareFresh = 5 * time.Minute

// hardwareNames are the metrics of samples: of a node, of a GPU and of a job on a node.
var hardwareNames = []struct {
	name, help string
	of         [3]int // the field, of nodes, GPUs and jobs; -1: not of these
	scale      float64
}{
	{
		"muster_node_cpu_busy_percent", "CPUs of the node that were busy in the last sample",
		[3]int{telemetry.NodeCPU, -1, -1}, 1,
	},
	{"muster_node_memory_busy_bytes", "memory of the node that was in use", [3]int{telemetry.NodeMem, -1, -1}, 1 << 20},
	{"muster_gpu_utilization", "time in which kernels ran on the GPU, percent", [3]int{-1, telemetry.GPUUtil, -1}, 1},
	{"muster_gpu_memory_used_bytes", "memory of the GPU in use", [3]int{-1, telemetry.GPUMem, -1}, 1 << 20},
	{"muster_gpu_power_watts", "power drawn by the GPU", [3]int{-1, telemetry.GPUPower, -1}, 1},
	{"muster_gpu_temperature_celsius", "temperature of the GPU", [3]int{-1, telemetry.GPUTemp, -1}, 1},
	{
		"muster_gpu_throttle_reasons", "bits of why the GPU's clocks were slowed",
		[3]int{-1, telemetry.GPUThrottle, -1}, 1,
	},
	{"muster_job_cpus_busy", "CPUs that the job kept busy on the node", [3]int{-1, -1, telemetry.JobCPU}, 1},
	{
		"muster_job_memory_bytes", "memory of the job that was resident on the node",
		[3]int{-1, -1, telemetry.JobMem}, 1 << 20,
	},
}

// hardwareMetrics are the latest samples of all nodes: a series for each node, GPU and job on a node, and
// who has which GPU as metrics to join with.
func (s *Exporter) hardwareMetrics(m *series, snap *cluster.Snapshot) {
	if s.Samples == nil {
		return
	}
	latest := s.Samples.Recent(hardwareFresh)
	names := slices.SortedFunc(maps.Keys(latest), cluster.CompareNodes)
	for _, k := range hardwareNames {
		put := func(values []float64, field int, labels ...string) {
			if field >= 0 && values[field] >= 0 {
				m.put(k.name, k.help, values[field]*k.scale, labels...)
			}
		}
		for _, name := range names {
			l, node := latest[name], string(name)
			put(l.Own.Own, k.of[0], "node", node)
			for i := range l.Own.GPUs {
				put(l.Own.GPUs[i].Values, k.of[1], "node", node, "gpu", strconv.Itoa(l.Own.GPUs[i].Index))
			}
			for _, id := range slices.Sorted(maps.Keys(l.Jobs)) {
				put(l.Jobs[id].Own, k.of[2], "node", node, "jobid", strconv.Itoa(int(id)))
			}
		}
	}
	jobInfos(m, snap)
}

// jobInfos say of each job that runs who it is and what it has, to be joined with what GPUs and nodes do.
func jobInfos(m *series, snap *cluster.Snapshot) {
	for j := range snap.Live() {
		if j.Alloc == nil || j.Phase == cluster.Ended {
			continue
		}
		id := strconv.Itoa(int(j.ID))
		m.put("muster_job_info", "a job that runs: 1", 1, "jobid", id, "user", j.Spec.User,
			"account", j.Spec.Account, "partition", j.Alloc.Partition, "name", j.Spec.Name)
		for i := range j.Alloc.Shares {
			for g := range j.Alloc.Shares[i].GPUs.All() {
				m.put("muster_gpu_job", "the job that has the GPU: 1", 1, "node",
					string(j.Alloc.Shares[i].Node), "gpu", strconv.Itoa(g), "jobid", id)
			}
		}
	}
}

// idleMetrics count the GPUs that jobs have and do not use, by partition.
func (s *Exporter) idleMetrics(m *series, snap *cluster.Snapshot) {
	if s.Samples == nil {
		return
	}
	count := map[string]float64{}
	for _, p := range snap.Config().Partitions {
		count[p.Name] = 0
	}
	for _, one := range s.Samples.Idle(snap, 0, time.Now()) {
		count[one.Job.Alloc.Partition] += float64(one.Idle)
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		m.put("muster_gpus_idle",
			"GPUs that jobs have and that did nothing for the IdleGPUTime of the partition", count[name],
			"partition", name)
	}
}
