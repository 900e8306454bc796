package env

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// gpus sets what shows the devices to a script or task. Without a device fence the numbers are
// those of the node.
func (e *list) gpus(l *cluster.Launch) {
	if p := jobPart(l); p != nil {
		e.part(l, p)
		return
	}
	here := l.ShareHere().GPUs
	if !here.Empty() {
		own := here
		if l.Step != nil {
			own = l.Step.Shares[l.NodeID].GPUs
		}
		if !own.Empty() {
			e.num("SLURM_GPUS_ON_NODE", own.Len())
		}
		if l.Job.Spec.Kind != cluster.SrunJob {
			e.set("SLURM_JOB_GPUS", commas(here))
		}
	}
	if l.GPUs.GPUs.Empty() {
		return
	}
	e.show(l, l.GPUs.GPUs, jobGPUs(l))
}

// seenAs is how a task's own programs name its devices.
func seenAs(l *cluster.Launch) string { return seenOf(l, l.GPUs.GPUs, jobGPUs(l)) }

func seenOf(l *cluster.Launch, some, all cluster.IDSet) string {
	if l.Fenced && (l.Inventory == nil || !l.Inventory.Renumbered()) { // a UUID is the same inside the fence
		return within(some, all)
	}
	return visible(some, l.Inventory)
}

// show makes programs see some of the job's devices.
func (e *list) show(l *cluster.Launch, some, all cluster.IDSet) {
	seen := seenOf(l, some, all)
	for _, v := range gpuVariables {
		if shownBy(some, l.Inventory, v.flag) {
			e.set(v.name, seen)
		}
	}
}

// jobPart is the part of a GPU that the job has on this node; nil if none.
func jobPart(l *cluster.Launch) *cluster.GPUPart {
	for _, sh := range l.Job.Alloc.Shares {
		if sh.Node == l.Node {
			return sh.Part
		}
	}
	return nil
}

// part shows the GPU of which the job has a part, and how much of it that is.
func (e *list) part(l *cluster.Launch, p *cluster.GPUPart) {
	gpu := cluster.NewIDSet(p.GPU)
	e.show(l, gpu, gpu)
	if l.Job.Spec.Kind != cluster.SrunJob {
		e.set("SLURM_JOB_GPUS", commas(gpu))
	}
	if p.Name == "shard" {
		e.num("SLURM_SHARDS_ON_NODE", int(p.Count))
		return
	}
	if p.Of > 0 {
		e.num("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", int(100*p.Count/p.Of))
	}
}

// gpuVariables show devices to programs; the flags are those of gres.conf(5).
var gpuVariables = []struct{ name, flag string }{
	{"CUDA_VISIBLE_DEVICES", "nvidia_gpu_env"},
	{"ROCR_VISIBLE_DEVICES", "amd_gpu_env"},
	{"ZE_AFFINITY_MASK", "intel_gpu_env"},
	{"GPU_DEVICE_ORDINAL", "opencl_env"},
}

// shownBy reports whether a variable shows some of the devices: those that their gres.conf line names, for AMD's
// its own (ROCm takes CUDA_VISIBLE_DEVICES for numbers among those), else all.
func shownBy(s cluster.IDSet, inv *cluster.Inventory, flag string) bool {
	for i := range s.All() {
		if inv == nil || i >= len(inv.GPUs) {
			return true
		}
		g := &inv.GPUs[i]
		if len(g.Env) == 0 && (flag == "amd_gpu_env" || !g.AMD()) || slices.Contains(g.Env, flag) {
			return true
		}
	}
	return false
}

// jobGPUs are the devices that the job has on this node.
func jobGPUs(l *cluster.Launch) (all cluster.IDSet) {
	for _, sh := range l.Job.Alloc.Shares {
		if sh.Node == l.Node {
			all = sh.GPUs
		}
	}
	return all
}

// within numbers devices among all that there are.
func within(s, all cluster.IDSet) string {
	var out []string
	n := 0
	for id := range all.All() {
		if s.Has(id) {
			out = append(out, strconv.Itoa(n))
		}
		n++
	}
	return strings.Join(out, ",")
}

// visible names devices as the driver knows them: by number, or by UUID where the driver has other
// numbers for them now.
func visible(s cluster.IDSet, inv *cluster.Inventory) string {
	if inv == nil || !inv.Renumbered() {
		return commas(s)
	}
	var names []string
	for i := range s.All() {
		if i >= len(inv.GPUs) || inv.GPUs[i].UUID == "" {
			return commas(s)
		}
		names = append(names, inv.GPUs[i].UUID)
	}
	return strings.Join(names, ",")
}
