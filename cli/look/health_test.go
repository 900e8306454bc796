package look

import (
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// TestHealthOf: what of a node needs attention, and what to do about it.
func TestHealthOf(t *testing.T) {
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	node := func(change func(*api.NodeInfo)) *api.NodeInfo {
		n := &api.NodeInfo{
			Node: cluster.Node{Name: "n1", Up: true, Registered: now, Inventory: cluster.Inventory{CPUs: 8}},
		}
		change(n)
		return n
	}
	down := cluster.Fault{
		Kind: cluster.FaultPort, Part: "mlx5_3/1", Cause: "down",
		Text: "mlx5_3 port 1: link down since 14:02", Action: cluster.FaultDrain, Passing: true,
	}
	for _, c := range []struct {
		name string
		n    *api.NodeInfo
		want string
	}{
		{"well", node(func(n *api.NodeInfo) {}), ""},
		{"a port", node(func(n *api.NodeInfo) {
			n.Inventory.Faults = []cluster.Fault{down}
			n.Drain, n.ReasonBy = true, "slurm"
			n.DrainedFor = []cluster.Fault{down}
		}),
			"port mlx5_3 port 1: link down since 14:02 > look at the cable and the switch's port; the node returns by itself"},
		{"an XID that is over", node(func(n *api.NodeInfo) {
			n.Drain, n.ReasonBy, n.DrainedFor = true, "slurm", []cluster.Fault{
				{Part: "GPU-1", Cause: "xid 48", Text: "XID 48", Action: cluster.FaultDrain},
			}
		}), "gpu XID 48 > reset the GPU; then resume the node"},
		{
			"drained by an operator",
			node(func(n *api.NodeInfo) { n.Drain, n.Reason, n.ReasonBy = true, "new disks", "root" }), "",
		},
		{
			"drained by muster",
			node(func(n *api.NodeInfo) { n.Drain, n.Reason, n.ReasonBy = true, "Prolog error", "slurm" }),
			"node Prolog error > scontrol update nodename=n1 state=resume, once it is well",
		},
		{"lost",
			node(func(n *api.NodeInfo) { n.Up, n.Down, n.Reason, n.ReasonBy = false, true, "Not responding", "slurm" }),
			"node Not responding > look at the machine; it returns when its client does, or by scontrol update nodename=n1 state=resume"},
		{
			"never came", node(func(n *api.NodeInfo) { n.Up, n.Registered = false, time.Time{} }),
			"node its client has never come > start muster client there",
		},
		{
			"switched off",
			node(func(n *api.NodeInfo) { n.Up, n.Power = false, &cluster.Power{State: cluster.PowerOff} }),
			"",
		},
		{"could not be switched on", node(func(n *api.NodeInfo) {
			n.Up, n.Down, n.Reason, n.ReasonBy, n.Power = false, true, "ResumeTimeout reached", "slurm", &cluster.Power{
				State: cluster.PowerOff, Retry: now,
			}
		}), "node ResumeTimeout reached > look at the servers' log and at the provider; it is tried again at " + front.Stamp(now) + ", or by scontrol update nodename=n1 state=resume"},
		{
			"lacking", node(func(n *api.NodeInfo) { n.Lacks = "gpu: 7 of 8 found" }),
			"node gpu: 7 of 8 found > look at the machine",
		},
		{
			"shaky",
			node(func(n *api.NodeInfo) { n.Trouble = &cluster.FailureScore{Points: 6000, At: now} }),
			"node much went wrong recently; large jobs avoid it > test it",
		},
		{
			"in another place", node(func(n *api.NodeInfo) { n.Misplaced = "topology.conf is wrong" }),
			"topology topology.conf is wrong > correct topology.conf or the cables",
		},
	} {
		h := healthOf(c.n, now)
		var got []string
		for _, f := range h.Findings {
			got = append(got, f.Kind+" "+f.Text+" > "+f.ToDo)
		}
		if strings.Join(got, "\n") != c.want || h.Well != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
