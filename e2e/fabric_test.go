package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// sysfs is a /sys tree on disk that a test changes under a running daemon.
type sysfs struct {
	t   *testing.T
	dir string
}

// adapters makes a tree of so many adapters mlx5_0 …, each below one PCI switch with the GPU of the same number
// that h100 tells of; half of them are on each socket.
func adapters(t *testing.T, n int) *sysfs {
	t.Helper()
	s := &sysfs{t, t.TempDir()}
	for i := range n {
		half := 2 * i / n
		up := fmt.Sprintf("devices/pci0000:%d0/0000:%[1]d0:%02[2]d.0/0000:5%[2]d:00.0", half, i)
		nic, gpu := fmt.Sprintf("%s/0000:6%d:00.0/0000:7%[2]d:00.0", up, i), fmt.Sprintf("0000:%02x:00.0", 0x1b+i)
		dev := fmt.Sprintf("mlx5_%d", i)
		at := nic + "/infiniband/" + dev
		for name, value := range map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp",
			"rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand",
			"counters/symbol_error": "0", "counters/link_downed": "0"} {
			s.set(at+"/ports/1/"+name, value)
		}
		s.set(nic+"/numa_node", fmt.Sprint(half))
		s.set(nic+fmt.Sprintf("/net/ib%d/dev_port", i), "0")
		s.link(at+"/device", "../..")
		s.link("class/infiniband/"+dev, "../../"+at)
		s.set(fmt.Sprintf("%s/0000:8%d:00.0/%s/numa_node", up, i, gpu), fmt.Sprint(half))
		s.link("bus/pci/devices/"+gpu, fmt.Sprintf("../../../%s/0000:8%d:00.0/%s", up, i, gpu))
	}
	return s
}

// set replaces a file at once.
func (s *sysfs) set(name, value string) {
	s.t.Helper()
	name = filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name+".new", []byte(value+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sysfs) link(name, to string) {
	s.t.Helper()
	name = filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		s.t.Fatal(err)
	}
}

// port changes a file of an adapter's port.
func (s *sysfs) port(device, name, value string) {
	s.t.Helper()
	s.set("class/infiniband/"+device+"/ports/1/"+name, value)
}

// TestPorts: a port that goes down drains the node with its name and since when, and the node comes back by itself;
// errors are a note.
func TestPorts(t *testing.T) {
	t.Parallel()
	s := adapters(t, 4)
	d := startDev(t, "--node", "n1", "--gpu-every", "50ms", "--sysfs", s.dir)
	reason := func() string { return strings.TrimSpace(d.must("sinfo", "-h", "-N", "-o", "%t|%E")) }
	d.wait("the node", func() bool { return reason() == "idle|none" })
	job := d.must("sbatch", "--parsable", "-c1", "--mem=10", "-o", "/dev/null", "--wrap", "sleep 600")
	d.wait("the job", func() bool { return d.must("squeue", "-h", "-o", "%t") == "R" })
	s.port("mlx5_3", "state", "1: DOWN")
	d.wait("the drain", func() bool { return strings.HasPrefix(reason(), "drng|mlx5_3 port 1: link down since ") })
	expect(t, "the job", d.must("squeue", "-h", "-o", "%i %t"), job+" R")
	d.stop()
	d.start() // it remembers that the port was up
	d.wait("the same after a restart", func() bool {
		out, _, code := d.run("sinfo", "-h", "-N", "-o", "%t|%E")
		return code == 0 && strings.HasPrefix(out, "drng|mlx5_3 port 1: link down since ")
	})
	s.port("mlx5_3", "state", "4: ACTIVE")
	d.wait("the return", func() bool { return reason() == "mix|none" })
	s.port("mlx5_0", "counters/link_downed", "3")
	const flaps = "mix|mlx5_0 port 1: the link flaps: link_downed rose by more than 2 within an hour"
	d.wait("the note", func() bool { return reason() == flaps })
	d.must("scancel", job)
}

// TestNCCL: tasks are told the ports nearest to their GPUs, and NCCL is with --nccl-env unless the user has set it.
func TestNCCL(t *testing.T) {
	t.Parallel()
	s := adapters(t, 4)
	g := startGPUs(t, h100(4), "--sysfs", s.dir)
	const show = "echo $MUSTER_NCCL_IB_HCA,$NCCL_IB_HCA,$MUSTER_NCCL_NET_GDR_LEVEL"
	for _, c := range []struct{ what, option, script, want string }{
		{"one GPU", "--gpus=1", show, "=mlx5_0:1,,PIX"},
		{"asked for", "--nccl-env", show, "=mlx5_0:1,mlx5_1:1,=mlx5_0:1,mlx5_1:1,PIX"},
		{
			"set by the user", "--nccl-env", "NCCL_IB_HCA=mlx5_9 srun --gpus=2 sh -c '" + show + "'",
			"=mlx5_0:1,mlx5_1:1,mlx5_9,PIX",
		},
		{"a step of a job", "--nccl-env", "srun --gpus=1 sh -c '" + show + "'", "=mlx5_0:1,=mlx5_0:1,PIX"},
	} {
		gpus := "--gpus=2"
		if c.option == "--gpus=1" {
			gpus = c.option
		}
		g.must("sbatch", "--wait", "-o", "out", gpus, c.option, "--wrap", c.script)
		expect(t, c.what, strings.TrimSpace(g.read("out")), c.want)
		g.wait("its GPUs to be free", func() bool { return g.must("squeue", "-h") == "" })
	}
	const line = "NICs=mlx5_0:400Gb:active mlx5_1:400Gb:active mlx5_2:400Gb:active mlx5_3:400Gb:active\n"
	if text := g.must("scontrol", "show", "node", "-d", "n1"); !strings.Contains(text, line) {
		t.Errorf("scontrol show node -d:\n%s", text)
	}
	if text := g.must("sinfo", "--json"); !strings.Contains(text, `"PIX": "0"`) {
		t.Errorf("sinfo --json:\n%s", text)
	}
}

// TestLeaves: a node asks for the leaf switches of its ports; scontrol shows the topology that was found, and
// muster why where topology.conf contradicts it.
func TestLeaves(t *testing.T) {
	t.Parallel()
	s := adapters(t, 2)
	tools, conf := t.TempDir(), t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(tools+"/smpquery", `#!/bin/sh
case "$6" in
nodeinfo) echo "NodeType:........................Switch"; echo "Guid:............................0x00$2" ;;
nodedesc) echo "Node Description:.....................MF0;leaf-$2:MQM9700/U1" ;;
esac
`, 0o755)
	write(conf+"/slurm.conf", "ClusterName=c\nNodeName=n1,n2\nPartitionName=p Nodes=ALL Default=YES\n", 0o644)
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	d := newDev(t, dir, "dev", []string{
		"--node", "n1", "--gpu-every", "50ms", "--sysfs", s.dir, "--conf", conf + "/slurm.conf",
	})
	d.inside = []string{"env", "PATH=" + tools + ":" + os.Getenv("PATH")}
	t.Cleanup(d.cleanup)
	d.start()
	topology := func() string {
		out, _, _ := d.run("scontrol", "show", "topology")
		return out
	}
	d.wait("the leaves", func() bool { return strings.Contains(topology(), "leaf-mlx5_1") })
	expect(t, "the topology", topology(), "SwitchName=leaf-mlx5_0+leaf-mlx5_1 Level=0 LinkSpeed=1 Nodes=n1\nSwitchName=unknown Level=0 LinkSpeed=1 Nodes=n2\n"+
		"SwitchName=fabric Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=leaf-mlx5_0+leaf-mlx5_1,unknown\n")
	if text := d.must("scontrol", "show", "node", "-d", "n1"); !strings.Contains(text, "NICs=mlx5_0:400Gb:active:leaf-mlx5_0 mlx5_1:400Gb:active:leaf-mlx5_1\n") {
		t.Errorf("scontrol show node -d:\n%s", text)
	}
	write(conf+"/topology.conf", "SwitchName=leaf-mlx5_0 Nodes=n2\nSwitchName=leaf-mlx5_9 Nodes=n1\n", 0o644)
	write(conf+"/slurm.conf",
		"ClusterName=c\nTopologyPlugin=topology/tree\nNodeName=n1,n2\nPartitionName=p Nodes=ALL Default=YES\n",
		0o644)
	d.must("scontrol", "reconfigure")
	if text := d.must("muster", "why", "n1"); !strings.Contains(text, "topology.conf places n1 under leaf-mlx5_9, but its ports report leaf-mlx5_0, leaf-mlx5_1\n") {
		t.Errorf("muster why n1:\n%s", text)
	}
}

// TestHealth: muster health names what is wrong and what to do, for one node all its parts, and its exit code tells.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := adapters(t, 2)
	g := startGPUs(t, h100(2), "--sysfs", s.dir, "--gpu-every", "50ms")
	is := func(what string, code int, parts []string, args ...string) string {
		t.Helper()
		out, errs, got := g.run("muster", append([]string{"health"}, args...)...)
		if got != code {
			t.Errorf("%s: exit code %d\n%s%s", what, got, out, errs)
		}
		for _, p := range parts {
			if !strings.Contains(out, p) {
				t.Errorf("%s: no %q in\n%s", what, p, out)
			}
		}
		return out
	}
	g.wait("the node", func() bool { return g.node() != "" })
	is("well", 0, []string{"1 nodes, nothing needs attention\n"})
	s.port("mlx5_1", "state", "1: DOWN")
	s.port("mlx5_0", "counters/symbol_error", "1000")
	g.wait("the drain", func() bool { return strings.HasPrefix(g.node(), "drain|") })
	table := []string{
		"NODE  STATE", "n1    drained", "mlx5_1 port 1: link down since ",
		"look at the cable and the switch's port", "a bad cable, transceiver or connector",
		"1 of 1 nodes need attention",
	}
	g.wait("both faults", func() bool {
		out, _, _ := g.run("muster", "health")
		return strings.Contains(out, "a bad cable")
	})
	is("the table", 1, table)
	is("the node", 1, []string{
		"node n1 is drained\n", "  score        4.0 points", "mlx5_1  down    400 Gb/sec (4X NDR)", "PIX=1",
		"symbol_error=1000", "GPU-00000001-1111",
	}, "n1")
	var doc struct {
		Nodes []struct {
			Node     string
			Well     bool
			Findings []struct{ Kind, Part, Cause, Action string }
		}
	}
	if err := json.Unmarshal([]byte(is("the JSON", 1, nil, "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(doc); got != "{[{n1 false [{port mlx5_0/1 symbol_error note} {port mlx5_1/1 down drain}]}]}" {
		t.Errorf("the JSON: %s", got)
	}
	if out, errs, code := g.run("muster", "health", "n9"); code != 1 || !strings.Contains(errs, "there is no node n9; see sinfo") {
		t.Errorf("a node that is not there: %d %s%s", code, out, errs)
	}
}

// TestDiskFull: a file system that fills up is the node's reason until there is space again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	data := dir + "/d"
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=64m"); err != nil {
		_ = os.RemoveAll(dir)
		t.Skip("file systems cannot be mounted: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
	d := startDevAt(t, dir, "--node", "n1", "--gpu-every", "50ms")
	reason := func() string { return strings.TrimSpace(d.must("sinfo", "-h", "-N", "-o", "%t|%E")) }
	if err := os.WriteFile(data+"/big", make([]byte, 62<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	d.wait("the note", func() bool { return strings.Contains(reason(), "idle|"+data+": less than 5 % free") })
	if err := os.Remove(data + "/big"); err != nil {
		t.Fatal(err)
	}
	d.wait("space", func() bool { return !strings.Contains(reason(), data) })
}
