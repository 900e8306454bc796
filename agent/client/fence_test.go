package client

import (
	"os"
	"path/filepath"
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
	devices = t.TempDir()
	defer func() { devices = "/dev" }()
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
