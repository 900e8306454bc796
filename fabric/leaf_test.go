package fabric

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// answer is what smpquery of infiniband-diags 44.0 prints of a simulated switch.
const answer = `# Node info: DR path slid 65535; dlid 65535; 0,1
BaseVers:........................1
ClassVers:.......................1
NodeType:........................Switch
NumPorts:........................8
SystemGuid:......................0x0000000000200000
Guid:............................0x0000000000200000
PortGuid:........................0x0000000000200000
LocalPort:.......................1
`

// TestLeaves: InfiniBand ports by smpquery, RoCE ports by LLDP; what is down or not connected to a switch has none.
func TestLeaves(t *testing.T) {
	ib := func(device, state string) cluster.NIC {
		return cluster.NIC{Device: device, Port: 1, State: state, Link: "InfiniBand"}
	}
	nics := []cluster.NIC{ib("mlx5_0", "ACTIVE"), ib("mlx5_1", "DOWN"), ib("mlx5_2", "ACTIVE"), ib("mlx5_3", "ACTIVE"),
		{Device: "mlx5_4", Port: 1, State: "ACTIVE", Link: "Ethernet", Net: "eth1"},
		{Device: "mlx5_5", Port: 1, State: "ACTIVE", Link: "Ethernet", Net: "eth2.7"}}
	said := map[string]string{
		"smpquery -C mlx5_0 -P 1 -D nodeinfo 0,1": answer,
		"smpquery -C mlx5_0 -P 1 -D nodedesc 0,1": "Node Description:...........................MF0;leaf1:MQM9700/U1\n",
		"smpquery -C mlx5_2 -P 1 -D nodeinfo 0,1": strings.Replace(answer, "Switch", "Channel Adapter", 1),
		"smpquery -C mlx5_3 -P 1 -D nodeinfo 0,1": answer,
		"smpquery -C mlx5_3 -P 1 -D nodedesc 0,1": "Node Description:...........................Quantum Mellanox Technologies\n",
		"lldpcli -f keyvalue show neighbors": "lldp.eth1.via=LLDP\nlldp.eth1.chassis.mac=24:8a:07:00:00:01\nlldp.eth1.chassis.name=tor1\nlldp.eth1.port.ifname=swp1\n" +
			"lldp.eth2.7.chassis.mac=24:8a:07:00:00:02\nlldp.eth2.7.chassis.name=tor2\n",
	}
	var calls int
	run := func(_ context.Context, name string, args ...string) (string, error) {
		calls++
		text, ok := said[name+" "+strings.Join(args, " ")]
		if !ok {
			t.Errorf("called %s %q", name, args)
		}
		return text, nil
	}
	got := fmt.Sprint(Leaves(t.Context(), run, nics))
	if want := "map[mlx5_0/1:{leaf1 0x0000000000200000} mlx5_3/1:{0x0000000000200000 0x0000000000200000} mlx5_4/1:{tor1 24:8a:07:00:00:01} mlx5_5/1:{tor2 24:8a:07:00:00:02}]"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	calls = 0
	none := func(context.Context, string, ...string) (string, error) {
		calls++
		return "", &exec.Error{Name: "smpquery", Err: exec.ErrNotFound}
	}
	if got := Leaves(t.Context(), none, nics); len(got) != 0 || calls != 2 {
		t.Errorf("without the programs: %v after %d calls", got, calls)
	}
}

// TestSimulatedFabric asks a simulated InfiniBand fabric (ibsim) of four hosts, two leaves and a spine.
func TestSimulatedFabric(t *testing.T) {
	libs, _ := filepath.Glob("/usr/lib/*/umad2sim/libumad2sim.so")
	sim, err := exec.LookPath("ibsim")
	if _, err2 := exec.LookPath("smpquery"); err != nil || err2 != nil || len(libs) == 0 {
		t.Skip("wants ibsim-utils and infiniband-diags")
	}
	dir := t.TempDir()
	log, err := os.Create(dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(sim, "-s", "testdata/fabric.net")
	cmd.Stdout, cmd.Stderr = log, log
	in, err := cmd.StdinPipe() // it reads commands
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for host, want := range map[string]string{"node1": "leaf1", "node2": "leaf1", "node3": "leaf2"} {
		run := func(ctx context.Context, name string, args ...string) (string, error) {
			return Tool(ctx, "env", append([]string{"SIM_HOST=" + host, "LD_PRELOAD=" + libs[0], name}, args...)...)
		}
		nics := []cluster.NIC{{Device: "ibsim0", Port: 1, State: cluster.PortActive, Link: "InfiniBand"}}
		var got Leaf
		for end := time.Now().Add(20 * time.Second); got.Name == "" && time.Now().Before(end); { // until it listens
			got = Leaves(t.Context(), run, nics)["ibsim0/1"]
		}
		if got.Name != want || !strings.HasPrefix(got.GUID, "0x") {
			t.Errorf("%s is on %+v, want %s", host, got, want)
		}
	}
}
