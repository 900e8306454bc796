package client

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// TestFence: a job is held to its share of a node, and kept off the devices of others, those too that are nobody's.
func TestFence(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("device files need root")
	}
	defer func(d, c string) { devices, capabilities = d, c }(devices, capabilities)
	devices, capabilities = t.TempDir(), t.TempDir()
	var found []cluster.GPU
	for i := range 4 {
		if err := unix.Mknod(filepath.Join(devices, "nvidia"+strconv.Itoa(i)), unix.S_IFCHR|0o600, int(unix.Mkdev(195, uint32(i)))); err != nil {
			t.Skip(err)
		}
		found = append(found, cluster.GPU{Index: i, Minor: i})
	}
	inv := cluster.Inventory{CPUs: 8, GPUs: found[:3], Isolation: "cgroup2(memory,devices)"} // the last is left out by gres.conf
	cfg := cluster.DefaultConfig()
	sh := cluster.Share{CPUs: cluster.RangeIDSet(2, 3), GPUs: cluster.NewIDSet(1), MemMB: 100}
	denied := func(f step.Fence) (out string) {
		for _, d := range f.Denied {
			out += strconv.Itoa(int(d.Minor))
		}
		return out
	}
	f := fence(&cfg, &inv, found, sh)
	if f.MemMB != 100 || !f.CPUs.Equal(sh.CPUs) || denied(f) != "023" || f.PIDs == 0 || !fenced(&cfg, &inv) {
		t.Errorf("fence %+v", f)
	}
	for mb, want := range map[cluster.MemMB]cluster.MemMB{0: 0, 30: 60, 50: 0, 200: 0} {
		s := &cluster.StepSpec{Layout: cluster.Layout{Mem: cluster.Mem{Per: cluster.MemPerCPU, MB: mb}}}
		if got := stepFence(f, s, sh); got.StepMemMB != want || got.MemMB != 100 {
			t.Errorf("of a step with %d MB for each of 2 CPUs: %+v, want %d", mb, got, want)
		}
	}
	part := cluster.Share{CPUs: sh.CPUs, Part: &cluster.GPUPart{Name: "shard", GPU: 2, Count: 1}}
	if f := fence(&cfg, &inv, found, part); denied(f) != "013" {
		t.Errorf("with a part of GPU 2: %+v", f)
	}
	cfg.Constrain = cluster.Constrain{NoMemory: true, NoCores: true, NoDevices: true}
	if f := fence(&cfg, &inv, found, sh); f.MemMB != 0 || !f.CPUs.Empty() || f.Denied != nil || fenced(&cfg, &inv) {
		t.Errorf("with all turned off: %+v", f)
	}
	cfg.Constrain, inv.Hollow = cluster.Constrain{}, true
	if f := fence(&cfg, &inv, found, sh); f.MemMB != 100 || !f.CPUs.Empty() || f.Denied != nil || fenced(&cfg, &inv) {
		t.Errorf("of a hollow node: %+v", f)
	}
}

// TestSliceFence: of two slices of one GPU each job has the GPU's file, and those of its own slice.
func TestSliceFence(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("device files need root")
	}
	defer func(d, c string) { devices, capabilities = d, c }(devices, capabilities)
	devices, capabilities = t.TempDir(), t.TempDir()
	node := func(path string, major, minor uint32) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(devices, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(filepath.Join(devices, path), unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor))); err != nil {
			t.Skip(err)
		}
	}
	node("nvidia0", 195, 0)
	var gpus []cluster.GPU
	for i, minor := range []int{12, 21} {
		at := filepath.Join(capabilities, "gpu0/mig/gi"+strconv.Itoa(i+1))
		if err := os.MkdirAll(at+"/ci0", 0o755); err != nil {
			t.Fatal(err)
		}
		for k, file := range []string{"/access", "/ci0/access"} {
			node("nvidia-caps/nvidia-cap"+strconv.Itoa(minor+k), 236, uint32(minor+k))
			if err := os.WriteFile(at+file, []byte("DeviceFileMinor: "+strconv.Itoa(minor+k)+"\nDeviceFileMode: 292\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		gpus = append(gpus, cluster.GPU{Index: i, MIG: &cluster.MIG{Instance: i + 1}})
	}
	inv, cfg := cluster.Inventory{CPUs: 8, GPUs: gpus}, cluster.DefaultConfig()
	f := fence(&cfg, &inv, gpus, cluster.Share{CPUs: cluster.NewIDSet(0), GPUs: cluster.NewIDSet(1)})
	if want := []step.Device{{Major: 236, Minor: 12}, {Major: 236, Minor: 13}}; !slices.Equal(f.Denied, want) {
		t.Errorf("denied %v, want %v", f.Denied, want)
	}
}

// TestAMDFence: of AMD's GPUs a job has the files of its own, and the one that all share.
func TestAMDFence(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("device files need root")
	}
	defer func(d, r string) { devices, renderers = d, r }(devices, renderers)
	devices, renderers = t.TempDir(), t.TempDir()
	if err := os.Mkdir(devices+"/dri", 0o755); err != nil {
		t.Fatal(err)
	}
	var gpus []cluster.GPU
	for i := range 2 {
		for name, minor := range map[string]int{"renderD": 128 + i, "card": 1 + i} {
			if err := unix.Mknod(devices+"/dri/"+name+strconv.Itoa(minor), unix.S_IFCHR|0o600, int(unix.Mkdev(226, uint32(minor)))); err != nil {
				t.Skip(err)
			}
		}
		if err := os.MkdirAll(renderers+"/renderD"+strconv.Itoa(128+i)+"/device/drm/card"+strconv.Itoa(1+i), 0o755); err != nil {
			t.Fatal(err)
		}
		gpus = append(gpus, cluster.GPU{Index: i, Minor: 128 + i, Model: "AMD Instinct MI300X"})
	}
	inv, cfg := cluster.Inventory{CPUs: 8, GPUs: gpus, Isolation: "cgroup2(devices)"}, cluster.DefaultConfig()
	f := fence(&cfg, &inv, gpus, cluster.Share{CPUs: cluster.NewIDSet(0), GPUs: cluster.NewIDSet(1)})
	if want := []step.Device{{Major: 226, Minor: 128}, {Major: 226, Minor: 1}}; !slices.Equal(f.Denied, want) || !fenced(&cfg, &inv) {
		t.Errorf("denied %v, want %v", f.Denied, want)
	}
}
