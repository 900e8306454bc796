package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
)

// nodeList names nodes as commands take them: a host list, or ALL.
func (c *control) nodeList(text string) ([]cluster.NodeName, error) {
	if strings.EqualFold(text, "ALL") {
		resp, err := front.Call(c.sys, api.ListNodes, api.NodeQuery{})
		var out []cluster.NodeName
		for _, n := range resp.Nodes {
			out = append(out, n.Name)
		}
		return out, err
	}
	list, err := hostlist.Expand(text)
	if err != nil {
		return nil, cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "%q names no nodes: %v", text, err)
	}
	return front.NodeNames(list), nil
}

const createNodeError = "Error creating the node(s)"

// createNodes is scontrol create NodeName=... with the keys of a line of slurm.conf.
func (c *control) createNodes(args []string) int {
	nodes, notes := conf.Nodes(args)
	if len(nodes) == 0 || len(notes) > 0 {
		lines := []string{"scontrol: error: Failed to parse nodeline '" + strings.Join(args, " ") + "'"}
		for _, n := range notes {
			lines = append(lines, "scontrol: error: "+n)
		}
		return c.complain(append(lines, createNodeError+": Unspecified error")...)
	}
	if nodes[0].Expected == "" {
		return c.complain(
			"scontrol: error: Only State=FUTURE, CLOUD, or EXTERNAL allowed for nodes created by scontrol",
			createNodeError+": Invalid node state specified")
	}
	if _, err := front.Call(c.sys, api.CreateNodes, cluster.NodeCreate{Nodes: nodes}); err != nil {
		return c.failed(err, "", createNodeError)
	}
	return 0
}

// deleteNodes is scontrol delete NodeName=LIST; word is how the command was begun.
func (c *control) deleteNodes(list, word string) int {
	names, err := c.nodeList(list)
	if err == nil {
		_, err = front.Call(c.sys, api.DeleteNodes, cluster.NodeDelete{Nodes: names})
	}
	if err == nil {
		return 0
	}
	if !front.IsKind(err, cluster.ErrUser) {
		c.complain("scontrol: error: failed to delete nodes " + list)
	}
	return c.failed(err, "", "delete_node "+word)
}

// rebootNext reads the words of reboot nextstate=.
func rebootNext(word string) (next cluster.NodeAction, known bool) {
	switch strings.ToLower(word) {
	case "resume":
		return cluster.NodeResume, true
	case "down":
		return cluster.NodeSetDown, true
	}
	return "", false
}

// reboot is scontrol reboot [ASAP] [nextstate=S] [reason=TEXT] ALL|LIST.
func (c *control) reboot(args []string) int {
	var q cluster.NodeReboot
	rest := slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		key, value, ok := strings.Cut(a, "=")
		switch key = strings.ToLower(key); {
		case !ok && key == "asap":
			q.Asap = true
		case ok && front.IsKey(key, 4, "nextstate"):
			q.Next = cluster.NodeAction(value)
		case ok && front.IsKey(key, 3, "reason"):
			q.Reason = strings.Trim(value, `"'`)
		default:
			return false
		}
		return true
	})
	next, known := rebootNext(string(q.Next))
	switch {
	case q.Next != "" && !known:
		return c.complain("Invalid state: "+string(q.Next), "Valid states: DOWN, RESUME")
	case len(rest) == 0:
		return c.complain("Missing node list. Specify ALL|<NodeList>")
	case len(rest) > 1:
		return c.complain("too many arguments for keyword:reboot")
	}
	q.Next = next
	r, err := c.cluster()
	if err == nil && r.Config.RebootProgram == "" {
		return c.complain("scontrol: error: RebootProgram isn't defined",
			"scontrol_reboot_nodes error: Unspecified error")
	}
	if err == nil {
		q.Nodes, err = c.nodeList(rest[0])
	}
	if err == nil {
		_, err = front.Call(c.sys, api.RebootNodes, q)
	}
	if err != nil {
		return c.failed(err, "", "scontrol_reboot_nodes error")
	}
	return 0
}

// cancelReboot is scontrol cancel_reboot LIST.
func (c *control) cancelReboot(args []string) int {
	switch len(args) {
	case 0:
		return c.complain("missing argument for keyword:cancel_reboot")
	case 1:
	default:
		return c.complain("too many arguments for keyword:cancel_reboot")
	}
	names, err := c.nodeList(args[0])
	if err == nil {
		_, err = front.Call(c.sys, api.RebootNodes, cluster.NodeReboot{Nodes: names, Cancel: true})
	}
	if err != nil {
		return c.failed(err, "", "slurm_update error")
	}
	return 0
}

// reconfigure has the server that leads read its files again.
func (c *control) reconfigure([]string) int {
	r, err := front.Call(c.sys, api.Reconfigure, api.Empty{})
	if err != nil {
		return c.failed(err, "", "slurm_reconfigure error")
	}
	for _, n := range r.Notes {
		c.complain("scontrol: " + n)
	}
	return 0
}

// noController is what is shown when no server answers.
const noController = "*****************************************\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n*****************************************\n"

// ping says which servers answer, the one that leads first.
func (c *control) ping(args []string) int {
	if len(args) > 0 {
		return c.complain("too many arguments for keyword:ping")
	}
	resp, err := front.Call(c.sys, api.Ping, api.Empty{})
	if err != nil {
		host := "localhost"
		if c.sys.Hostname != nil {
			host, _ = c.sys.Hostname()
		}
		resp.Servers = []api.Server{{Name: host}}
	}
	slices.SortStableFunc(resp.Servers,
		func(a, b api.Server) int { return cmp.Compare(front.BoolInt(b.Leader), front.BoolInt(a.Leader)) })
	if c.data.On {
		return c.sys.Answer(&c.data, c.out, c.view(resp.Now).Config().Config.ClusterName, data.Each("pings",
			&pingTable, pingRows(resp.Servers)))
	}
	code := 1
	for i, s := range resp.Servers {
		state := "DOWN"
		if s.Up {
			state, code = "UP", 0
		}
		_, _ = c.out.WriteString("Slurmctld(" + serverRole(i, len(resp.Servers)) + ") at " + s.Name + " is " + state + "\n")
	}
	if code != 0 {
		_, _ = c.out.WriteString(noController)
	}
	return code
}

// serverRole is what Slurm calls the i-th of n servers.
func serverRole(i, n int) string {
	switch {
	case i == 0:
		return "primary"
	case n == 2:
		return "backup"
	}
	return "backup" + strconv.Itoa(i)
}
