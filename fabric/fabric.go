// Package fabric looks at this machine's InfiniBand and RoCE ports through sysfs.
package fabric

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// Probe lists the ports below a /sys tree, by device and port number; none is no error.
func Probe(sysfs fs.FS) ([]cluster.NIC, error) {
	const dir = "class/infiniband"
	devices, err := fs.ReadDir(sysfs, dir)
	if err != nil {
		return nil, nil
	}
	var out []cluster.NIC
	for _, d := range devices {
		ports, err := fs.ReadDir(sysfs, path.Join(dir, d.Name(), "ports"))
		if err != nil {
			return nil, err
		}
		for _, p := range ports {
			at := path.Join(dir, d.Name(), "ports", p.Name())
			n := cluster.NIC{Device: d.Name(), Link: text(sysfs, at+"/link_layer"), Rate: text(sysfs, at+"/rate")}
			n.Port, _ = strconv.Atoi(p.Name())
			_, n.State, _ = strings.Cut(text(sysfs, at+"/state"), ": ")
			n.NUMA, _ = strconv.Atoi(text(sysfs, path.Join(dir, d.Name(), "device/numa_node")))
			out = append(out, n)
		}
	}
	return out, nil
}

func text(sysfs fs.FS, name string) string {
	b, err := fs.ReadFile(sysfs, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
