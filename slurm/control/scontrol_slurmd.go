package control

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// writeSlurmd tells of the daemons of nodes, and returns the exit code.
func writeSlurmd(v *show.View, out io.Writer, names []cluster.NodeName) int {
	if len(names) == 0 {
		_, _ = io.WriteString(v.Sys.Stderr, "scontrol: error: slurm_slurmd_info: Connection refused\n"+
			"scontrol: why: this machine is not a node of the cluster: name one, as in scontrol show slurmd NODE\n")
		return 1
	}
	nodes, err := front.Call(v.Sys, api.ListNodes, api.NodeQuery{Names: names})
	if err != nil {
		return show.LoadFailed(v.Sys, "slurm_load_slurmd_status", err)
	}
	steps, err := front.Call(v.Sys, api.ListSteps, api.StepQuery{})
	if err != nil {
		return show.LoadFailed(v.Sys, "slurm_load_slurmd_status", err)
	}
	v.Now = steps.Now
	rows := show.StepRows(v, steps)
	for _, name := range names {
		if !slices.ContainsFunc(nodes.Nodes, func(n api.NodeInfo) bool { return n.Name == name }) {
			_, _ = io.WriteString(v.Sys.Stderr, "Node "+string(name)+" not found\n")
			return 1
		}
	}
	for _, n := range nodes.Nodes {
		var active []string
		for i := range rows {
			if slices.ContainsFunc(rows[i].Shares, func(sh cluster.Share) bool { return sh.Node == n.Name }) {
				active = append(active, rows[i].ShownID())
			}
		}
		_, _ = io.WriteString(out, slurmdText(v, &n, active))
	}
	return 0
}

// slurmdText is what scontrol show slurmd tells of a node's daemon: the steps that it runs, and what it found on the
// machine. Slurm's process number, log level and log file are left out, because the servers do not know them.
func slurmdText(v *show.View, n *api.NodeInfo, steps []string) string {
	inv := &n.Inventory
	active := "NONE"
	if len(steps) > 0 {
		active = strings.Join(steps, ",")
	}
	var b strings.Builder
	for _, line := range []struct {
		name  string
		value any
	}{
		{"Active Steps", active},
		{"Actual CPUs", inv.CPUs},
		{"Actual Boards", 1},
		{"Actual sockets", inv.Sockets},
		{"Actual cores", inv.Sockets * inv.CoresPerSocket},
		{"Actual threads per core", inv.ThreadsPerCore},
		{"Actual real memory", fmt.Sprintf("%d MB", inv.MemMB)},
		{"Actual temp disk space", fmt.Sprintf("%d MB", inv.TmpMB)},
		{"Boot time", v.Stamp(n.Registered, "NONE")},
		{"Hostname", cmp.Or(inv.Host, string(n.Name))},
		{"Last slurmctld msg time", v.Stamp(v.Now, "NONE")},
		{"Version", cmp.Or(inv.Version, front.SlurmVersion)},
	} {
		_, _ = fmt.Fprintf(&b, "%-24s = %v\n", line.name, line.value)
	}
	return b.String()
}

// licenseText is the licenses as scontrol shows them, a line each where oneLine says so; name "" is all of them.
func licenseText(conf *api.ClusterResponse, name string, oneLine bool) string {
	if len(conf.Config.Licenses) == 0 {
		return "No licenses configured in Slurm.\n"
	}
	between := "\n    "
	if oneLine {
		between = " "
	}
	var b strings.Builder
	for _, l := range show.LicenseRows(conf) {
		if name == "" || name == l.Name {
			_, _ = fmt.Fprintf(&b, "LicenseName=%s%sTotal=%d Used=%d Free=%d Reserved=%d Remote=no\n", l.Name, between,
				l.Total, l.Used, max(l.Total-l.Used, 0), l.Reserved)
		}
	}
	return b.String()
}
