// Package fence says what a job may use of a node, as its cgroup is to hold it: cores, memory, processes and the files
// of GPUs. It makes nothing: package cgroup does. Start with Of.
package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dev.muster/agent/cgroup"
	"dev.muster/cluster"
)

// How many processes and threads a job may have: more than programs need, less than would stop the machine.
const (
	pidsOfJob = 16 << 10
	pidsOfCPU = 1 << 10
)

// Of is what a job may use of a node: its share, and no GPUs but its own. CPUs and devices of a hollow node are
// not this machine's.
// Devices that were found and that no line of gres.conf gives to jobs are nobody's.
func Of(cfg *cluster.Config, inv *cluster.Inventory, found []cluster.GPU, sh cluster.Share) cgroup.Fence {
	f := cgroup.Fence{PIDs: pidsOfJob + pidsOfCPU*sh.CPUs.Len()}
	f.MemMB = Memory(cfg, sh)
	if inv.Hollow {
		return f
	}
	if !cfg.Constrain.NoCores {
		f.CPUs = sh.CPUs
	}
	if !cfg.Constrain.NoDevices {
		f.Denied = denied(slices.Concat(inv.GPUs, found), GPUs(inv, sh))
	}
	return f
}

// Memory is what a job may use of a node's memory, in MB; 0: all.
func Memory(cfg *cluster.Config, sh cluster.Share) cluster.MemMB {
	if !cfg.MemAlloc || cfg.Constrain.NoMemory {
		return 0
	}
	return sh.MemMB
}

// OfStep is a job's fence around a step, which has no more memory than it named.
func OfStep(f cgroup.Fence, s *cluster.StepSpec, sh cluster.Share) cgroup.Fence {
	if own := cluster.StepMem(s, sh); own < f.MemMB {
		f.StepMemMB = own
	}
	return f
}

// GPUs are the devices of a share, that too of which it has a part.
func GPUs(inv *cluster.Inventory, sh cluster.Share) (own []*cluster.GPU) {
	ids := sh.GPUs
	if sh.Part != nil {
		ids = ids.Union(cluster.NewIDSet(sh.Part.GPU))
	}
	for id := range ids.All() {
		own = append(own, &inv.GPUs[id])
	}
	return own
}

// denied lists the files of all GPUs but a job's own. A slice of a GPU is reached through the file of the whole, which
// several jobs have, and through two of its own, for its GPU instance and its compute instance.
func denied(all []cluster.GPU, own []*cluster.GPU) (out []cgroup.Device) {
	mine := map[cgroup.Device]bool{}
	for _, g := range own {
		for _, d := range filesOf(g) {
			mine[d] = true
		}
	}
	for k := range all {
		for _, d := range filesOf(&all[k]) {
			if !mine[d] {
				mine[d] = true // once is enough
				out = append(out, d)
			}
		}
	}
	return out
}

// filesOf are the device files through which programs use a GPU, or a slice of one.
func filesOf(g *cluster.GPU) (out []cgroup.Device) {
	if d, ok := device(g); ok {
		out = append(out, d)
	}
	if g.AMD() {
		out = append(out, drawing(g)...)
	}
	if g.MIG != nil {
		out = append(out, grants(g)...)
	}
	return out
}

// drawing are the files through which programs draw by one of AMD's GPUs.
func drawing(g *cluster.GPU) (out []cgroup.Device) {
	cards := fmt.Sprintf("%s/renderD%d/device/drm/card*", renderers, g.Minor)
	for _, name := range entries(cards) {
		d, ok := cgroup.DeviceAt(filepath.Join(devices, "dri", name))
		if ok {
			out = append(out, d)
		}
	}
	return out
}

// grants are the files that let a program use a slice: of its GPU instance, and of its compute instance.
func grants(g *cluster.GPU) (out []cgroup.Device) {
	instance := fmt.Sprintf("%s/gpu%d/mig/gi%d", capabilities, g.Minor, g.MIG.Instance)
	compute := fmt.Sprintf("%s/ci%d", instance, g.MIG.Compute)
	for _, at := range []string{instance, compute} {
		minor, ok := capability(at + "/access")
		if !ok {
			continue
		}
		d, ok := cgroup.DeviceAt(filepath.Join(devices, "nvidia-caps", "nvidia-cap"+minor))
		if ok {
			out = append(out, d)
		}
	}
	return out
}

// capability reads which device file grants what a file of the driver stands for ("DeviceFileMinor: 12").
func capability(file string) (minor string, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		if minor, ok = strings.CutPrefix(line, "DeviceFileMinor:"); ok {
			return strings.TrimSpace(minor), true
		}
	}
	return "", false
}

// Where device files are, and where the driver tells which of them grant what of a GPU that is cut into slices
// (NVIDIA's MIG user guide, "Device Nodes and Capabilities"). And where the kernel lists what draws.
var devices, capabilities, renderers = "/dev", "/proc/driver/nvidia/capabilities", "/sys/class/drm"

// entries are the names of the files that a pattern matches.
func entries(pattern string) (names []string) {
	list, _ := filepath.Glob(pattern)
	for _, path := range list {
		names = append(names, filepath.Base(path))
	}
	return names
}

// device is the file through which programs use a GPU. All of AMD's share /dev/kfd, which everybody may open: its
// driver asks the kernel for each GPU whether the process may use that one's own file.
func device(g *cluster.GPU) (cgroup.Device, bool) {
	if g.AMD() {
		return cgroup.DeviceAt(fmt.Sprintf("%s/dri/renderD%d", devices, g.Minor))
	}
	return cgroup.DeviceAt(devices + "/nvidia" + strconv.Itoa(g.Minor))
}

// Fenced reports whether the jobs of a node see no GPUs but their own, so that their programs number these from 0.
func Fenced(cfg *cluster.Config, inv *cluster.Inventory) bool {
	if inv.Hollow || cfg.Constrain.NoDevices || !strings.Contains(inv.Isolation, "devices") || len(inv.GPUs) == 0 {
		return false
	}
	_, ok := device(&inv.GPUs[0])
	return ok
}
