package show

import (
	"cmp"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// NICText is a line of a node's ports: mlx5_0:400Gb:active:leaf1, the port's number behind the device where it is
// not the first.
func NICText(inv *cluster.Inventory) string {
	var out []string
	for i := range inv.NICs {
		n := &inv.NICs[i]
		text := NICName(n) + ":" + strconv.FormatFloat(n.Gbits(), 'f', -1, 64) + "Gb:" + strings.ToLower(cmp.Or(n.State, "unknown"))
		if n.Leaf != "" {
			text += ":" + n.Leaf
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// NICName is mlx5_0, or mlx5_0/2 for a second port.
func NICName(n *cluster.NIC) string {
	if n.Port == 1 {
		return n.Device
	}
	return n.Device + "/" + strconv.Itoa(n.Port)
}

// NICJSON is a port in --json; Slurm has no such member.
type NICJSON struct {
	Device    string            `json:"device"`
	Port      int               `json:"port"`
	State     string            `json:"state"`
	Gbits     float64           `json:"gbits"`
	Link      string            `json:"link"`
	PCI       string            `json:"pci"`
	NUMA      int               `json:"numa"`
	Interface string            `json:"interface"`
	Leaf      string            `json:"leaf"`
	LeafGUID  string            `json:"leaf_guid"`
	GPUs      map[string]string `json:"gpus"` // by distance, their minor numbers
	Errors    map[string]uint64 `json:"errors"`
}

// NICList are a node's ports for --json.
func NICList(inv *cluster.Inventory) []NICJSON {
	out := make([]NICJSON, 0, len(inv.NICs))
	for i := range inv.NICs {
		n := &inv.NICs[i]
		j := NICJSON{
			n.Device, n.Port, n.State, n.Gbits(), n.Link, n.PCI, n.NUMA, n.Net, n.Leaf, n.LeafGUID,
			map[string]string{}, map[string]uint64{},
		}
		for _, g := range n.Near {
			j.GPUs[g.Distance] = g.GPUs.String()
		}
		for _, c := range n.Errors {
			j.Errors[c.Name] = c.Count
		}
		out = append(out, j)
	}
	return out
}
