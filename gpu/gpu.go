// Package gpu looks at this machine's GPUs: which there are, and later whether they are well.
// This build reads what the driver shows in /proc and sysfs; it needs no library and no cgo.
package gpu

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// Probe lists the NVIDIA GPUs of this machine by minor number; none is no error.
func Probe(ctx context.Context) ([]cluster.GPU, error) { return ProbeFS(ctx, os.DirFS("/")) }

// ProbeFS is Probe below another root.
func ProbeFS(_ context.Context, root fs.FS) ([]cluster.GPU, error) {
	const dir = "proc/driver/nvidia/gpus"
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil, nil // no driver, no GPUs
	}
	var out []cluster.GPU
	for _, e := range entries {
		g, err := readInformation(root, dir+"/"+e.Name()+"/information")
		if err != nil {
			return nil, err
		}
		g.PCI = e.Name()
		near(root, &g)
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b cluster.GPU) int { return a.Minor - b.Minor })
	for i := range out {
		out[i].Index = i
	}
	return out, nil
}

// readInformation parses the driver's "Name: value" lines.
func readInformation(root fs.FS, path string) (g cluster.GPU, err error) {
	f, err := root.Open(path)
	if err != nil {
		return g, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch name {
		case "Model":
			g.Model, g.Type = value, TypeName(value)
		case "GPU UUID":
			g.UUID = value
		case "Device Minor":
			g.Minor, _ = strconv.Atoi(value)
		}
	}
	return g, nil
}

// near adds the CPUs and the NUMA node close to the device.
func near(root fs.FS, g *cluster.GPU) {
	base := "sys/bus/pci/devices/" + strings.ToLower(g.PCI) + "/"
	if b, err := fs.ReadFile(root, base+"local_cpulist"); err == nil {
		if set, err := cluster.ParseIDSet(strings.TrimSpace(string(b))); err == nil {
			g.Cores = set
		}
	}
	if b, err := fs.ReadFile(root, base+"numa_node"); err == nil {
		g.NUMA, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
}
