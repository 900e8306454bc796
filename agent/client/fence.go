package client

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// How many processes and threads a job may have: more than programs need, less than would stop the machine.
const (
	pidsOfJob = 16 << 10
	pidsOfCPU = 1 << 10
)

// fence is what a job may use of a node: its share, and no GPUs but its own. CPUs and devices of a hollow node are
// not this machine's.
// Devices that were found and that no line of gres.conf gives to jobs are nobody's.
func fence(cfg *cluster.Config, inv *cluster.Inventory, found []cluster.GPU, sh cluster.Share) step.Fence {
	f := step.Fence{PIDs: pidsOfJob + pidsOfCPU*sh.CPUs.Len()}
	if cfg.MemAlloc && !cfg.Constrain.NoMemory {
		f.MemMB = sh.MemMB
	}
	if inv.Hollow {
		return f
	}
	if !cfg.Constrain.NoCores {
		f.CPUs = sh.CPUs
	}
	if !cfg.Constrain.NoDevices {
		own := map[int]bool{} // minors: several MIG devices may be of one GPU
		for id := range sh.GPUs.All() {
			own[inv.GPUs[id].Minor] = true
		}
		if sh.Part != nil {
			own[inv.GPUs[sh.Part.GPU].Minor] = true
		}
		denied := map[step.Device]bool{}
		for _, g := range slices.Concat(inv.GPUs, found) {
			if d, ok := device(&g); ok && !own[g.Minor] && !denied[d] {
				denied[d] = true
				f.Denied = append(f.Denied, d)
			}
		}
	}
	return f
}

// devices is where device files are.
var devices = "/dev"

// device is the file through which programs use a GPU.
func device(g *cluster.GPU) (step.Device, bool) {
	return step.DeviceAt(devices + "/nvidia" + strconv.Itoa(g.Minor))
}

// fenced reports whether the jobs of a node see no GPUs but their own, so that their programs number these from 0.
func fenced(cfg *cluster.Config, inv *cluster.Inventory) bool {
	if inv.Hollow || cfg.Constrain.NoDevices || !strings.Contains(inv.Isolation, "devices") || len(inv.GPUs) == 0 {
		return false
	}
	_, ok := device(&inv.GPUs[0])
	return ok
}
