package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"dev.muster/agent/cgroup"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// instead has a variable be a folder of the test's own until its end.
func instead(t *testing.T, of *string) {
	was := *of
	*of = t.TempDir()
	t.Cleanup(func() { *of = was })
}

// makeDevice makes a device file below devices, with its folder.
func makeDevice(t *testing.T, name string, major, minor int) {
	t.Helper()
	path := filepath.Join(devices, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	device := unix.Mkdev(uint32(major), uint32(minor))
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(device)); err != nil {
		t.Skip(err)
	}
}

// TestFence: a job is held to its share of a node, and kept off the devices of others, those too that are nobody's.
func TestFence(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("device files need root")
	}
	instead(t, &devices)
	instead(t, &capabilities)
	var found []cluster.GPU
	for i := range 4 {
		makeDevice(t, "nvidia"+strconv.Itoa(i), 195, i)
		found = append(found, cluster.GPU{Index: i, Minor: i})
	}
	inv := cluster.Inventory{
		CPUs: 8, GPUs: found[:3], Isolation: "cgroup2(memory,devices)",
	} // the last is left out by gres.conf
	cfg := cluster.DefaultConfig()
	sh := cluster.Share{CPUs: cluster.RangeIDSet(2, 3), GPUs: cluster.NewIDSet(1), MemMB: 100}
	denied := func(f cgroup.Fence) (out string) {
		for _, d := range f.Denied {
			out += strconv.Itoa(int(d.Minor))
		}
		return out
	}
	f := Of(&cfg, &inv, found, sh)
	if f.MemMB != 100 || !f.CPUs.Equal(sh.CPUs) || f.PIDs == 0 {
		t.Errorf("fence %+v", f)
	}
	if denied(f) != "023" || !Fenced(&cfg, &inv) {
		t.Errorf("devices of the fence %+v", f)
	}
	for mb, want := range map[cluster.MemMB]cluster.MemMB{0: 0, 30: 60, 50: 0, 200: 0} {
		s := &cluster.StepSpec{Layout: cluster.Layout{Mem: cluster.Mem{Per: cluster.MemPerCPU, MB: mb}}}
		if got := OfStep(f, s, sh); got.StepMemMB != want || got.MemMB != 100 {
			t.Errorf("of a step with %d MB for each of 2 CPUs: %+v, want %d", mb, got, want)
		}
	}
	part := cluster.Share{CPUs: sh.CPUs, Part: &cluster.GPUPart{Name: "shard", GPU: 2, Count: 1}}
	if f := Of(&cfg, &inv, found, part); denied(f) != "013" {
		t.Errorf("with a part of GPU 2: %+v", f)
	}
	cfg.Constrain = cluster.Constrain{NoMemory: true, NoCores: true, NoDevices: true}
	if f := Of(&cfg, &inv, found, sh); f.MemMB != 0 || !f.CPUs.Empty() || f.Denied != nil || Fenced(&cfg, &inv) {
		t.Errorf("with all turned off: %+v", f)
	}
	cfg.Constrain, inv.Hollow = cluster.Constrain{}, true
	if f := Of(&cfg, &inv, found, sh); f.MemMB != 100 || !f.CPUs.Empty() || f.Denied != nil || Fenced(&cfg, &inv) {
		t.Errorf("of a hollow node: %+v", f)
	}
}

// TestSliceFence: of two slices of one GPU each job has the GPU's file, and those of its own slice.
func TestSliceFence(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("device files need root")
	}
	instead(t, &devices)
	instead(t, &capabilities)
	makeDevice(t, "nvidia0", 195, 0)
	var gpus []cluster.GPU
	for i, minor := range []int{12, 21} {
		at := filepath.Join(capabilities, "gpu0/mig/gi"+strconv.Itoa(i+1))
		if err := os.MkdirAll(at+"/ci0", 0o755); err != nil {
			t.Fatal(err)
		}
		for k, file := range []string{"/access", "/ci0/access"} {
			number := strconv.Itoa(minor + k)
			makeDevice(t, "nvidia-caps/nvidia-cap"+number, 236, minor+k)
			text := "DeviceFileMinor: " + number + "\nDeviceFileMode: 292\n"
			if err := os.WriteFile(at+file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		gpus = append(gpus, cluster.GPU{Index: i, MIG: &cluster.MIG{Instance: i + 1}})
	}
	inv, cfg := cluster.Inventory{CPUs: 8, GPUs: gpus}, cluster.DefaultConfig()
	f := Of(&cfg, &inv, gpus, cluster.Share{CPUs: cluster.NewIDSet(0), GPUs: cluster.NewIDSet(1)})
	if want := []cgroup.Device{{Major: 236, Minor: 12}, {Major: 236, Minor: 13}}; !slices.Equal(f.Denied, want) {
		t.Errorf("denied %v, want %v", f.Denied, want)
	}
}

// TestAMDFence: of AMD's GPUs a job has the files of its own, and the one that all share.
func TestAMDFence(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("device files need root")
	}
	instead(t, &devices)
	instead(t, &renderers)
	var gpus []cluster.GPU
	for i := range 2 {
		for name, minor := range map[string]int{"renderD": 128 + i, "card": 1 + i} {
			makeDevice(t, "dri/"+name+strconv.Itoa(minor), 226, minor)
		}
		card := fmt.Sprintf("renderD%d/device/drm/card%d", 128+i, 1+i)
		if err := os.MkdirAll(filepath.Join(renderers, card), 0o755); err != nil {
			t.Fatal(err)
		}
		gpus = append(gpus, cluster.GPU{Index: i, Minor: 128 + i, Model: "AMD Instinct MI300X"})
	}
	inv, cfg := cluster.Inventory{CPUs: 8, GPUs: gpus, Isolation: "cgroup2(devices)"}, cluster.DefaultConfig()
	f := Of(&cfg, &inv, gpus, cluster.Share{CPUs: cluster.NewIDSet(0), GPUs: cluster.NewIDSet(1)})
	want := []cgroup.Device{{Major: 226, Minor: 128}, {Major: 226, Minor: 1}}
	if !slices.Equal(f.Denied, want) || !Fenced(&cfg, &inv) {
		t.Errorf("denied %v, want %v", f.Denied, want)
	}
}
