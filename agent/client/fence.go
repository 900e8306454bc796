package client

import (
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
func fence(cfg *cluster.Config, inv *cluster.Inventory, sh cluster.Share) step.Fence {
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
		for k := range inv.GPUs {
			if d, ok := device(&inv.GPUs[k]); ok && !own[inv.GPUs[k].Minor] {
				f.Denied = append(f.Denied, d)
			}
		}
	}
	return f
}

// device is the file through which programs use a GPU.
func device(g *cluster.GPU) (step.Device, bool) {
	return step.DeviceAt("/dev/nvidia" + strconv.Itoa(g.Minor))
}

// fenced reports whether the jobs of a node see no GPUs but their own, so that their programs number these from 0.
func fenced(cfg *cluster.Config, inv *cluster.Inventory) bool {
	if inv.Hollow || cfg.Constrain.NoDevices || !strings.Contains(inv.Isolation, "devices") || len(inv.GPUs) == 0 {
		return false
	}
	_, ok := device(&inv.GPUs[0])
	return ok
}
