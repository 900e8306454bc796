package gpu

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// amdVendor is AMD's PCI vendor number as the kernel's KFD topology writes it.
const amdVendor = "4098"

// Where AMD's compute driver shows its devices, and the processes that use them (the kernel's
// drivers/gpu/drm/amd/amdkfd/kfd_topology.c and kfd_process.c).
const (
	amdNodes = "sys/class/kfd/kfd/topology/nodes"
	amdProcs = "sys/class/kfd/kfd/proc"
)

// amdNode is a GPU of the driver's topology.
type amdNode struct {
	dir   string            // in amdNodes
	dev   string            // of the device's own files
	props map[string]string // the file properties
}

// amdList lists the GPUs of the topology; CPUs are nodes too.
func amdList(root fs.FS) (out []amdNode) {
	entries, _ := fs.ReadDir(root, amdNodes)
	for _, e := range entries {
		n := amdNode{dir: amdNodes + "/" + e.Name(), props: map[string]string{}}
		for line := range strings.Lines(file(root, n.dir+"/properties")) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				n.props[key] = value
			}
		}
		if n.props["vendor_id"] == amdVendor && n.props["simd_count"] != "0" {
			n.dev = "sys/class/drm/renderD" + n.props["drm_render_minor"] + "/device"
			out = append(out, n)
		}
	}
	return out
}

// uuid is as rocm-smi and ROCR_VISIBLE_DEVICES have it; "" if the device has none.
func (n *amdNode) uuid() string {
	if id, err := strconv.ParseUint(n.props["unique_id"], 10, 64); err == nil && id != 0 {
		return fmt.Sprintf("GPU-%016x", id)
	}
	return ""
}

// amdGPUs lists the GPUs that AMD's compute driver has, with the product name from the device's own files or rocm-smi.
func amdGPUs(ctx context.Context, root fs.FS, call run) (out []Reading) {
	var names map[string]string
	for _, n := range amdList(root) {
		minor, _ := strconv.Atoi(n.props["drm_render_minor"])
		at, _ := strconv.Atoi(n.props["location_id"]) // bus, device and function
		domain, _ := strconv.Atoi(n.props["domain"])
		g := cluster.GPU{
			UUID: n.uuid(), Minor: minor,
			PCI: fmt.Sprintf("%04x:%02x:%02x.%x", domain, at>>8, at>>3&31, at&7),
		}
		if g.Model = file(root, n.dev+"/product_name"); g.Model == "" {
			if names == nil {
				names = rocmNames(call(ctx, "rocm-smi", "--showproductname", "--showbus", "--csv"))
			}
			g.Model = names[g.PCI]
		}
		g.Model = cmp.Or(g.Model, cmp.Or(file(root, n.dir+"/name"), "GPU"))
		if !strings.HasPrefix(g.Model, cluster.AMDModels) {
			g.Model = cluster.AMDModels + g.Model
		}
		g.Type = TypeName(g.Model)
		if total, err := strconv.ParseInt(file(root, n.dev+"/mem_info_vram_total"), 10, 64); err == nil {
			g.MemMB = cluster.MemMB(total >> 20)
		}
		Near(root, &g)
		r := Reading{GPU: g}
		n.health(root, &r)
		out = append(out, r)
	}
	return out
}

// health adds what the device's own files tell: errors of its memory, temperature, power and load.
func (n *amdNode) health(root fs.FS, r *Reading) {
	for line := range strings.Lines(file(root, n.dev+"/ras/umc_err_count")) {
		switch kind, count, _ := strings.Cut(strings.TrimSpace(line), ": "); kind {
		case "ue":
			r.ECCUncorrected, _ = strconv.ParseUint(count, 10, 64)
		case "ce":
			r.ECCCorrected, _ = strconv.ParseUint(count, 10, 64)
		}
	}
	l := n.load(root)
	r.TempC, r.PowerMW = l.TempC, l.PowerMW
	r.Util, r.MemUsedMB, r.Procs = max(l.Util, 0), l.MemUsedMB, l.Procs
}

// sensor is a thousandth of what the first file that fits a pattern says.
func (n *amdNode) sensor(root fs.FS, pattern string) int {
	found, _ := fs.Glob(root, n.dev+"/"+pattern)
	if len(found) == 0 {
		return 0
	}
	v, _ := strconv.Atoi(file(root, found[0]))
	return v / 1000
}

// load is what runs on the GPU.
func (n *amdNode) load(root fs.FS) Load {
	l := Load{UUID: n.uuid(), Util: -1, TempC: n.sensor(root, "hwmon/hwmon*/temp1_input"),
		PowerMW: n.sensor(root, "hwmon/hwmon*/power1_average")}
	if busy, err := strconv.Atoi(file(root, n.dev+"/gpu_busy_percent")); err == nil {
		l.Util = busy
	}
	if used, err := strconv.ParseInt(file(root, n.dev+"/mem_info_vram_used"), 10, 64); err == nil {
		l.MemUsedMB = used >> 20
	}
	id := file(root, n.dir+"/gpu_id")
	procs, _ := fs.ReadDir(root, amdProcs)
	for _, e := range procs {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if used, err := strconv.ParseInt(file(root, amdProcs+"/"+e.Name()+"/vram_"+id), 10, 64); err == nil {
			l.Procs = append(l.Procs, Proc{PID: pid, MemMB: used >> 20})
		}
	}
	return l
}

// amdLoads is one sample of AMD's GPUs.
func amdLoads(root fs.FS) []Load {
	out := []Load{}
	for _, n := range amdList(root) {
		out = append(out, n.load(root))
	}
	return out
}

// rocmNames reads product names by bus address from rocm-smi's CSV, whose columns vary: the first line names them.
func rocmNames(csv string) map[string]string {
	names, bus, series := map[string]string{}, -1, -1
	for line := range strings.Lines(csv) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if bus < 0 || series < 0 {
			for i, head := range f {
				switch strings.ToLower(head) {
				case "pci bus":
					bus = i
				case "card series":
					series = i
				}
			}
			continue
		}
		if len(f) > max(bus, series) {
			names[strings.ToLower(f[bus])] = f[series]
		}
	}
	return names
}
