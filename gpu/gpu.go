// Package gpu looks at this machine's GPUs: which there are, and whether they are well. A question to the driver
// may hang indefinitely when a GPU is wedged, so it runs in a helper process (Serve), which a Watcher starts, asks with
// deadlines and kills. The helper asks NVML (package gpu/nvml) if its program was built with it, and else reads
// what the kernel and nvidia-smi or rocm-smi tell.
package gpu

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// toolTime bounds a call of nvidia-smi or rocm-smi; the helper must answer within answerTime.
const toolTime = answerTime - time.Second

// tool runs a vendor's program and returns what it prints; "" if it is not there or fails.
func tool(ctx context.Context, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 100 * time.Millisecond
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// run calls a program, for tests to stand in for.
type run func(ctx context.Context, name string, args ...string) string

// plain looks at the GPUs without a library, below a root: NVIDIA's in /proc, AMD's in sysfs, and what the makers'
// own programs add.
func plain(ctx context.Context, root fs.FS, call run) (s Scan, err error) {
	s.Source = "kernel"
	if s.Readings, err = procGPUs(root); err != nil {
		return s, err
	}
	if len(s.Readings) > 0 {
		s.smi(call(ctx, "nvidia-smi",
			"--query-gpu=uuid,memory.total,memory.used,mig.mode.current,ecc.errors.uncorrected.volatile.total,driver_version",
			"--format=csv,noheader,nounits"))
		s.smiSlices(call(ctx, "nvidia-smi", "-L"))
	} else {
		s.Readings = amdGPUs(ctx, root, call)
	}
	s.order()
	return s, nil
}

// procGPUs lists the NVIDIA GPUs that the driver shows in /proc; none is no error.
func procGPUs(root fs.FS) ([]Reading, error) {
	const dir = "proc/driver/nvidia/gpus"
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil, nil // no driver, no GPUs
	}
	var out []Reading
	for _, e := range entries {
		g, err := readInformation(root, dir+"/"+e.Name()+"/information")
		if err != nil {
			return nil, err
		}
		g.PCI = strings.ToLower(e.Name())
		Near(root, &g)
		out = append(out, Reading{GPU: g})
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

// Near adds the CPUs and the NUMA node close to the device, as sysfs has them.
func Near(root fs.FS, g *cluster.GPU) {
	base := "sys/bus/pci/devices/" + strings.ToLower(g.PCI) + "/"
	if set, err := cluster.ParseIDSet(file(root, base+"local_cpulist")); err == nil {
		g.Cores = set
	}
	if n, err := strconv.Atoi(file(root, base+"numa_node")); err == nil {
		g.NUMA = max(n, 0) // -1: there is one only
	}
}

// onBus counts NVIDIA's display controllers on the PCI bus (vendor 10de, class 0300 or 0302), driver or none.
func onBus(root fs.FS) (n int) {
	const dir = "sys/bus/pci/devices"
	entries, _ := fs.ReadDir(root, dir)
	for _, e := range entries {
		class := file(root, dir+"/"+e.Name()+"/class")
		if file(root, dir+"/"+e.Name()+"/vendor") == "0x10de" && (strings.HasPrefix(class, "0x0300") || strings.HasPrefix(class, "0x0302")) {
			n++
		}
	}
	return n
}

// smi adds what nvidia-smi --query-gpu printed, one GPU a line.
func (s *Scan) smi(csv string) {
	for line := range strings.Lines(csv) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 6 {
			continue
		}
		for i := range s.Readings {
			r := &s.Readings[i]
			if r.GPU.UUID != f[0] {
				continue
			}
			mem, _ := strconv.Atoi(f[1]) // [N/A] is 0
			used, _ := strconv.Atoi(f[2])
			bad, _ := strconv.Atoi(f[4])
			r.GPU.MemMB = cluster.MemMB(mem)
			r.MemUsedMB = int64(used)
			r.MIG = f[3] == "Enabled"
			r.ECCUncorrected = uint64(bad)
			s.Driver = f[5]
		}
	}
}

// smiSlices adds the slices that nvidia-smi -L printed below each GPU:
//
//	GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5c…)
//	  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4…)
func (s *Scan) smiSlices(list string) {
	var at *Reading
	for line := range strings.Lines(list) {
		_, uuid, ok := strings.Cut(strings.TrimRight(line, ")\n"), "(UUID: ")
		if !ok {
			continue
		}
		w := strings.Fields(line)
		switch w[0] {
		case "GPU":
			at = nil
			for i := range s.Readings {
				if s.Readings[i].GPU.UUID == uuid {
					at = &s.Readings[i]
				}
			}
		case "MIG":
			if at != nil && at.MIG {
				g := at.GPU
				g.UUID, g.Type, g.MemMB, g.Number = uuid, MIGType(g.Model, w[1]), 0, 0
				g.MIG = &cluster.MIG{Parent: at.GPU.UUID, Profile: w[1]}
				at.Slices = append(at.Slices, g)
			}
		}
	}
}

// Look is one look at this machine's GPUs, by src if that is not nil and works.
func Look(ctx context.Context, src Source) Scan {
	root := os.DirFS("/")
	var s Scan
	if src != nil {
		if s = src.Scan(); s.Cause == "" && len(s.Readings) > 0 {
			return s
		}
	}
	p, err := plain(ctx, root, tool)
	p.Bus = onBus(root)
	switch {
	case err != nil:
		p.Trouble, p.Cause = "the GPUs that the kernel lists cannot be read: "+err.Error(), "kernel"
	case s.Cause == CauseNoLibrary && len(p.Readings) > 0 && p.Bus > 0:
		p.Trouble, p.Cause = "NVML (libnvidia-ml.so.1) is not found: the GPUs' health is not known", s.Cause
	case s.Cause != CauseNoLibrary:
		p.Trouble, p.Cause, p.Unusable = s.Trouble, s.Cause, s.Unusable
	}
	return p
}
