package fabric

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"dev.muster/cluster"
)

// machine is a /sys tree with so many adapters mlx5_0 …, two below each PCI switch with two GPUs, one root complex
// for each four adapters.
func machine(n int) fstest.MapFS {
	sys := fstest.MapFS{}
	for i := range n {
		root := fmt.Sprintf("devices/pci%04d:00/%04[1]d:00:%02[2]d.0/%04[1]d:01:00.0", i/4, i%4/2)
		nic := fmt.Sprintf("%s/%04d:02:0%d.0/%04[2]d:%02[4]d:00.0", root, i/4, i%2, 40+i)
		gpu := fmt.Sprintf("%s/%04d:02:1%d.0/%s", root, i/4, i%2, busOf(i))
		dev := fmt.Sprintf("mlx5_%d", i)
		link(sys, class+"/"+dev, "../../"+nic+"/infiniband/"+dev)
		link(sys, "bus/pci/devices/"+busOf(i), "../../../"+gpu)
		at := nic + "/infiniband/" + dev
		link(sys, at+"/device", "../../../"+filepath.Base(nic))
		set(sys, nic+"/numa_node", fmt.Sprint(i/4))
		set(sys, nic+"/net/ib"+fmt.Sprint(i)+"/dev_port", "0")
		set(sys, at+"/board_id", "MT_0000000838")
		for name, value := range map[string]string{
			"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)",
			"link_layer": "InfiniBand",
		} {
			set(sys, at+"/ports/1/"+name, value)
		}
		for _, ru := range rules() {
			if ru.counter != "" {
				set(sys, at+"/ports/1/counters/"+ru.counter, "0")
			}
		}
	}
	return sys
}

// busOf is the bus address of a GPU.
func busOf(gpu int) string { return fmt.Sprintf("%04d:%02d:00.0", gpu/4, 10+gpu) }

func set(sys fstest.MapFS, name, value string) {
	sys[name] = &fstest.MapFile{Data: []byte(value + "\n"), Mode: 0o444}
}

func link(sys fstest.MapFS, name, to string) {
	sys[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
}

// port changes a file of a port.
func port(sys fstest.MapFS, device, file, value string) {
	for name := range sys {
		if strings.HasSuffix(name, "/infiniband/"+device+"/ports/1/"+file) {
			set(sys, name, value)
			return
		}
	}
	panic(device + " has no " + file)
}

func texts(faults []cluster.Fault) (out []string) {
	for _, f := range faults {
		out = append(out, string(f.Action)+" "+f.Text)
	}
	return out
}

// start is the time of the first look.
var start = time.Date(2026, 3, 1, 14, 0, 0, 0, time.Local)

// watched is a watch over a tree; look makes so many looks, ten seconds apart, and returns what the last finds.
func watched(t *testing.T, sys fs.FS, file string) (look func(n int) Found) {
	t.Helper()
	w, err := NewWatch(sys, file)
	if err != nil {
		t.Fatal(err)
	}
	at := start
	return func(n int) (f Found) {
		t.Helper()
		for range n {
			if f, err = w.Look(at); err != nil {
				t.Fatal(err)
			}
			at = at.Add(10 * time.Second)
		}
		return f
	}
}

func want(t *testing.T, what string, f Found, list ...string) {
	t.Helper()
	if got := texts(f.Faults); !slices.Equal(got, list) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, list)
	}
}

func TestProbe(t *testing.T) {
	nics, err := Probe(machine(2))
	if err != nil || len(nics) != 2 {
		t.Fatal(nics, err)
	}
	got := fmt.Sprintf("%+v", nics[1])
	if got != "{Device:mlx5_1 Port:1 State:ACTIVE Rate:400 Gb/sec (4X NDR) Link:InfiniBand PCI:0000:41:00.0 NUMA:0 Net:ib1 Near:[] Leaf: LeafGUID: Errors:[]}" {
		t.Error(got)
	}
	if nics, err := Probe(fstest.MapFS{}); nics != nil || err != nil {
		t.Error("a machine without ports:", nics, err)
	}
}

// TestRules: every row of the table is complete and names its source.
func TestRules(t *testing.T) {
	rows := 0
	for line := range strings.Lines(portTable) {
		if !strings.HasPrefix(line, "#") {
			rows++
		}
	}
	if rows != len(rules()) || rows < 10 {
		t.Errorf("%d rows, %d read", rows, len(rules()))
	}
	for _, r := range rules() {
		if r.action != cluster.FaultNote && r.action != cluster.FaultShun && r.action != cluster.FaultDrain || r.meaning == "" {
			t.Errorf("%+v", r)
		}
	}
}

// TestPortDown: a port that was up and is down drains after three looks, and for half a minute longer than it takes.
func TestPortDown(t *testing.T) {
	sys := machine(8)
	look := watched(t, sys, "")
	want(t, "all well", look(5))
	port(sys, "mlx5_3", "state", "1: DOWN")
	want(t, "at once", look(patience-1))
	want(t, "later", look(1), "drain mlx5_3 port 1: link down since 14:00")
	want(t, "much later", look(100), "drain mlx5_3 port 1: link down since 14:00")
	port(sys, "mlx5_3", "state", "4: ACTIVE")
	want(t, "up for a moment", look(calm-1), "drain mlx5_3 port 1: link down since 14:00")
	want(t, "well again", look(1))
	port(sys, "mlx5_3", "state", "2: INIT")
	look(patience - 1)
	port(sys, "mlx5_3", "state", "4: ACTIVE")
	want(t, "a moment's loss", look(10))
	port(sys, "mlx5_3", "state", "2: INIT")
	want(t, "no subnet manager", look(patience), "drain mlx5_3 port 1: link not set up by a subnet manager since 14:25")
}

// TestPortSlow: fewer lanes than before drain, fewer than those of like adapters are noted.
func TestPortSlow(t *testing.T) {
	sys := machine(8)
	port(sys, "mlx5_1", "rate", "200 Gb/sec (2X NDR)")
	look := watched(t, sys, "")
	want(t, "from the beginning", look(5),
		"note mlx5_1 port 1: link at 200 Gb/sec (2X NDR), while those of 7 like adapters are at 400 Gb/sec")
	sys = machine(8)
	look = watched(t, sys, "")
	look(1)
	port(sys, "mlx5_1", "rate", "100 Gb/sec (1X NDR)")
	want(t, "since then", look(5),
		"drain mlx5_1 port 1: link at 100 Gb/sec (1X NDR) instead of 400 Gb/sec (4X NDR) since 14:00")
}

// TestPortUnused: a port that was never up is noted if all like it are; two such say nothing.
func TestPortUnused(t *testing.T) {
	sys := machine(8)
	port(sys, "mlx5_7", "state", "1: DOWN")
	want(t, "one", watched(t, sys, "")(5), "note mlx5_7 port 1: link down, while those of 7 like adapters are up")
	port(sys, "mlx5_6", "state", "1: DOWN")
	want(t, "two", watched(t, sys, "")(5))
}

// TestPortGone: a device that vanishes drains; the file remembers it over a restart.
func TestPortGone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports")
	watched(t, machine(4), file)(1)
	want(t, "after a restart", watched(t, machine(3), file)(patience),
		"drain mlx5_3 port 1: not found any more since 14:00")
	want(t, "after another", watched(t, machine(3), file)(1), "drain mlx5_3 port 1: not found any more since 14:00")
	want(t, "it is back", watched(t, machine(4), file)(calm))
	w, err := NewWatch(machine(2), filepath.Join(t.TempDir(), "no", "such", "folder"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := w.Look(start); err == nil || len(f.NICs) != 2 {
		t.Errorf("what cannot be written down: %v, %v", f, err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewWatch(machine(1), file); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Error("a broken file:", err)
	}
}

// TestPortCounters: errors are judged by how many there were within an hour, and forgotten after it.
func TestPortCounters(t *testing.T) {
	sys := machine(2)
	port(sys, "mlx5_0", "counters/symbol_error", "100000") // from before
	look := watched(t, sys, "")
	want(t, "old errors", look(10))
	port(sys, "mlx5_0", "counters/symbol_error", "100120")
	want(t, "a few more", look(10))
	port(sys, "mlx5_0", "counters/symbol_error", "100121")
	port(sys, "mlx5_1", "counters/link_downed", "3")
	noted := []string{
		"note mlx5_0 port 1: a bad cable, transceiver or connector: symbol_error rose by more than 120 within an hour",
		"shun mlx5_1 port 1: the link flaps: link_downed rose by more than 2 within an hour",
	}
	want(t, "too many", look(1), noted...)
	want(t, "50 minutes later", look(300), noted...)
	want(t, "70 minutes later", look(120))
	port(sys, "mlx5_0", "counters/symbol_error", "0")
	want(t, "counted anew", look(1))
}

// TestNear: GPUs by distance to each adapter, as nvidia-smi topo has it.
func TestNear(t *testing.T) {
	sys := machine(8)
	nics, err := Probe(sys)
	if err != nil {
		t.Fatal(err)
	}
	var gpus []cluster.GPU
	for i := range 8 {
		gpus = append(gpus, cluster.GPU{Minor: i, PCI: busOf(i), NUMA: i / 4})
	}
	Near(sys, nics, gpus)
	if got := fmt.Sprint(nics[0].Near); got != "[{PIX 0-1} {PHB 2-3}]" {
		t.Error("mlx5_0:", got)
	}
	if got := fmt.Sprint(nics[6].Near); got != "[{PIX 6-7} {PHB 4-5}]" {
		t.Error("mlx5_6:", got)
	}
	if nics[6].DistanceTo(&gpus[0]) != cluster.DistanceSYS || nics[6].DistanceTo(&gpus[7]) != cluster.DistancePIX {
		t.Error("DistanceTo")
	}
	const up = "devices/pci0000:00/0000:00:01.0/0000:01:00.0/"
	for _, c := range []struct {
		a, b         string
		numaA, numaB int
		want         string
	}{
		{up + "0000:02:00.0/0000:03:00.0", up + "0000:02:01.0/0000:04:00.0", 0, 0, "PIX"},
		{up + "0000:02:00.0/0000:03:00.0", up + "0000:02:00.0/0000:03:00.1", 0, 0, "PIX"},
		{up + "0000:02:00.0/0000:03:00.0", up + "0000:02:01.0/0000:04:00.0/0000:05:00.0/0000:06:00.0", 0, 0, "PXB"},
		{up + "0000:02:00.0", "devices/pci0000:00/0000:00:02.0/0000:07:00.0", 0, 0, "PHB"},
		{up + "0000:02:00.0", "devices/pci0000:40/0000:40:02.0/0000:07:00.0", 0, 0, "NODE"},
		{up + "0000:02:00.0", "devices/pci0000:40/0000:40:02.0/0000:07:00.0", 0, 1, "SYS"},
		{"", up + "0000:02:00.0", 0, 0, "SYS"},
	} {
		if got := distance(c.a, c.b, c.numaA, c.numaB); got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.a, c.b, got, c.want)
		}
	}
}
