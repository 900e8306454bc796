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

// amdGPUs lists the GPUs that AMD's compute driver has (/sys/class/kfd/kfd/topology/nodes, whose files are described in
// the kernel's drivers/gpu/drm/amd/amdkfd/kfd_topology.c), with the product name from the device's own files or rocm-smi.
func amdGPUs(ctx context.Context, root fs.FS, call run) (out []Reading) {
	const dir = "sys/class/kfd/kfd/topology/nodes"
	entries, _ := fs.ReadDir(root, dir)
	var names map[string]string
	for _, e := range entries {
		p := map[string]string{}
		for line := range strings.Lines(file(root, dir+"/"+e.Name()+"/properties")) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				p[key] = value
			}
		}
		if p["vendor_id"] != amdVendor || p["simd_count"] == "0" { // CPUs are nodes too
			continue
		}
		minor, _ := strconv.Atoi(p["drm_render_minor"])
		at, _ := strconv.Atoi(p["location_id"]) // bus, device and function
		domain, _ := strconv.Atoi(p["domain"])
		g := cluster.GPU{Minor: minor, PCI: fmt.Sprintf("%04x:%02x:%02x.%x", domain, at>>8, at>>3&31, at&7)}
		if id, err := strconv.ParseUint(p["unique_id"], 10, 64); err == nil && id != 0 {
			g.UUID = fmt.Sprintf("GPU-%016x", id) // as rocm-smi and ROCR_VISIBLE_DEVICES have it
		}
		dev := "sys/class/drm/renderD" + p["drm_render_minor"] + "/device/"
		if g.Model = file(root, dev+"product_name"); g.Model == "" {
			if names == nil {
				names = rocmNames(call(ctx, "rocm-smi", "--showproductname", "--showbus", "--csv"))
			}
			g.Model = names[g.PCI]
		}
		g.Model = cmp.Or(g.Model, "AMD "+cmp.Or(file(root, dir+"/"+e.Name()+"/name"), "GPU"))
		g.Type = TypeName(g.Model)
		if n, err := strconv.ParseInt(file(root, dev+"mem_info_vram_total"), 10, 64); err == nil {
			g.MemMB = cluster.MemMB(n >> 20)
		}
		Near(root, &g)
		out = append(out, Reading{GPU: g})
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
