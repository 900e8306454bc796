package fabric

import (
	"io/fs"
	"path"
	"strings"

	"dev.muster/cluster"
)

// Near says for each port which GPUs are near it, by the places of both on the PCI buses below a /sys tree. GPUs go by
// their minor numbers; those that are across sockets (SYS) are not named.
func Near(sysfs fs.FS, nics []cluster.NIC, gpus []cluster.GPU) {
	paths := gpuPaths(sysfs, gpus)
	for i := range nics {
		n := &nics[i]
		own := devicePath(sysfs, path.Join(class, n.Device))
		near := map[string]cluster.IDSet{}
		for k := range gpus {
			g := &gpus[k]
			c := distance(own, paths[g.PCI], n.NUMA, g.NUMA)
			near[c] = near[c].Union(cluster.NewIDSet(g.Minor))
		}
		delete(near, cluster.DistanceSYS)
		n.Near = nil
		for _, c := range cluster.Distances {
			if set := near[c]; !set.Empty() {
				n.Near = append(n.Near, cluster.NearGPUs{Distance: c, GPUs: set})
			}
		}
	}
}

// gpuPaths are the paths of GPUs by their bus addresses.
func gpuPaths(sysfs fs.FS, gpus []cluster.GPU) map[string]string {
	paths := map[string]string{}
	for i := range gpus {
		to, err := fs.ReadLink(sysfs, "bus/pci/devices/"+strings.ToLower(gpus[i].PCI))
		if err == nil && gpus[i].PCI != "" {
			paths[gpus[i].PCI] = pciPath(path.Join("bus/pci/devices", to))
		}
	}
	return paths
}

// distance is how far two PCI devices are from each other in the words of nvidia-smi topo.
func distance(a, b string, numaA, numaB int) string {
	if a == "" || b == "" {
		return cluster.DistanceSYS
	}
	x := strings.Split(a, "/")
	y := strings.Split(b, "/")
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	const root = 2 // devices/pci0000:15
	switch {
	case same < root && numaA == numaB:
		return cluster.DistanceNODE
	case same < root:
		return cluster.DistanceSYS
	case same == root:
		return cluster.DistancePHB
	case max(len(x), len(y))-same <= 2: // each behind a port of the same switch
		return cluster.DistancePIX
	}
	return cluster.DistancePXB
}
