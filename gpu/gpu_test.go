package gpu

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// tree is a file system of small files.
func tree(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

// brief writes what jobs may use.
func brief(s *Scan) string {
	var out []string
	for _, g := range s.Devices() {
		out = append(out,
			fmt.Sprintf("%d:%s:%s:%s:minor=%d:numa=%d:cpus=%s:mem=%d", g.Index, g.Type, g.UUID, g.PCI,
				g.Minor, g.NUMA, g.Cores.String(), g.MemMB))
	}
	return strings.Join(out, "\n")
}

// TestPlain looks without a library at what drivers show in /proc and sysfs, and what the makers' programs print.
func TestPlain(t *testing.T) {
	information := func(model, uuid string, minor int) string { // as driver 550 has it
		return fmt.Sprintf("Model: \t\t %s\nIRQ:   \t\t 121\nGPU UUID: \t %s\nVideo BIOS: \t 96.00\nBus Location: \t 0000:c6:00.0\nDevice Minor: \t %d\n",
			model, uuid, minor)
	}
	nvidia := tree(map[string]string{
		"proc/driver/nvidia/gpus/0000:C6:00.0/information": information("NVIDIA A100-SXM4-40GB", "GPU-b", 0),
		"proc/driver/nvidia/gpus/0000:1b:00.0/information": information("NVIDIA A100-SXM4-40GB", "GPU-a", 1),
		"sys/bus/pci/devices/0000:1b:00.0/local_cpulist":   "0-3,8-11\n",
		"sys/bus/pci/devices/0000:1b:00.0/numa_node":       "-1\n",
		"sys/bus/pci/devices/0000:c6:00.0/local_cpulist":   "4-7\n",
		"sys/bus/pci/devices/0000:c6:00.0/numa_node":       "1\n",
		"sys/bus/pci/devices/0000:c6:00.0/vendor":          "0x10de\n",
		"sys/bus/pci/devices/0000:c6:00.0/class":           "0x030200\n",
	})
	amd := tree(map[string]string{
		"sys/class/kfd/kfd/topology/nodes/0/properties":       "cpu_cores_count 64\nsimd_count 0\nvendor_id 0\n",
		"sys/class/kfd/kfd/topology/nodes/1/properties":       "cpu_cores_count 0\nsimd_count 1216\nvendor_id 4098\nlocation_id 1280\ndomain 0\ndrm_render_minor 128\nunique_id 1311768467463790320\n",
		"sys/class/kfd/kfd/topology/nodes/2/properties":       "cpu_cores_count 0\nsimd_count 1216\nvendor_id 4098\nlocation_id 9728\ndomain 0\ndrm_render_minor 136\nunique_id 2\n",
		"sys/class/drm/renderD128/device/product_name":        "AMD Instinct MI300X OAM\n",
		"sys/class/drm/renderD128/device/mem_info_vram_total": "206141652992\n",
		"sys/bus/pci/devices/0000:05:00.0/local_cpulist":      "0-31\n",
	})
	tools := map[string]string{
		"nvidia-smi --query-gpu": "GPU-a, 40960, 3, Disabled, 2, 550.54.15\nGPU-b, 40960, [N/A], Enabled, [N/A], 550.54.15\n",
		"nvidia-smi -L": "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-a)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-b)\n" +
			"  MIG 3g.20gb     Device  0: (UUID: MIG-1)\n  MIG 1g.5gb      Device  1: (UUID: MIG-2)\n",
		"rocm-smi": "device,PCI Bus,Card Series,Card Model\ncard0,0000:05:00.0,x,y\ncard1,0000:26:00.0,AMD Instinct MI300X,0x74a1\n",
	}
	with := func(_ context.Context, name string, args ...string) string {
		for k, out := range tools {
			if w := strings.Fields(k); w[0] == name && (len(w) == 1 || strings.HasPrefix(args[0], w[1])) {
				return out
			}
		}
		return ""
	}
	without := func(context.Context, string, ...string) string { return "" }
	for _, c := range []struct {
		name string
		root fstest.MapFS
		call run
		want string
	}{
		{"nothing", tree(nil), with, ""},
		{
			"NVIDIA, no tools", nvidia, without,
			"0:a100:GPU-a:0000:1b:00.0:minor=1:numa=0:cpus=0-3,8-11:mem=0\n1:a100:GPU-b:0000:c6:00.0:minor=0:numa=1:cpus=4-7:mem=0",
		},
		{"NVIDIA", nvidia, with, "0:a100:GPU-a:0000:1b:00.0:minor=1:numa=0:cpus=0-3,8-11:mem=40960\n" +
			"1:a100_3g.20gb:MIG-1:0000:c6:00.0:minor=0:numa=1:cpus=4-7:mem=0\n2:a100_1g.5gb:MIG-2:0000:c6:00.0:minor=0:numa=1:cpus=4-7:mem=0"},
		{"AMD", amd, with, "0:mi300x:GPU-123456789abcdef0:0000:05:00.0:minor=128:numa=0:cpus=0-31:mem=196592\n" +
			"1:mi300x:GPU-0000000000000002:0000:26:00.0:minor=136:numa=0:cpus=:mem=0"},
	} {
		s, err := plain(t.Context(), c.root, c.call)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := brief(&s); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	if n := onBus(nvidia); n != 1 {
		t.Errorf("%d NVIDIA devices on the bus, want 1", n)
	}
}
