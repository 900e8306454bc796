package control

import (
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// power is scontrol power {up|down} [asap|force] ALL|LIST.
func power(c *control, args []string) int {
	set := cluster.NodeSet{Action: cluster.NodePowerUp}
	word := strings.ToLower(args[0])
	rest := args[1:]
	how := ""
	if len(rest) > 1 {
		how, rest = strings.ToLower(rest[0]), rest[1:]
	}
	switch {
	case word != "up" && word != "down", how == "asap" && word == "up", how != "" && how != "asap" && how != "force":
		return c.complain("invalid argument: '" + strings.Join(args, " ") + "'")
	case len(rest) != 1:
		return c.complain("Missing node list. Specify ALL|<NodeList>")
	case word == "down" && how == "force":
		set.Action = cluster.NodePowerDownForce
	case word == "down":
		set.Action = cluster.NodePowerDown
	}
	var err error
	if set.Nodes, err = c.nodeList(rest[0]); err == nil {
		err = c.setNodes(set)
	}
	if err != nil {
		return c.failed(err, "", "scontrol_power_nodes error")
	}
	return 0
}

// getAddrs is scontrol getaddrs LIST: where the daemons of nodes listen.
func getAddrs(c *control, args []string) int {
	names, err := c.nodeList(strings.Join(args, ","))
	if err != nil {
		return c.failed(err, "", "scontrol_getaddrs error")
	}
	resp, err := front.Call(c.sys, api.ListNodes, api.NodeQuery{Names: names})
	if err != nil {
		return c.failed(err, "", "scontrol_getaddrs error")
	}
	for i := range resp.Nodes {
		n := &resp.Nodes[i]
		_, _ = c.out.WriteString(string(n.Name) + ": " + show.NodeAddr(n) + ":" + show.NodePort(n) + "\n")
	}
	return 0
}
