package conf

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// suspend reads when idle nodes are switched off, and which are not.
func (r *reader) suspend(file string, n int, p pair) {
	power := &r.cfg.Power
	switch p.key {
	case "suspendtime":
		switch seconds, err := strconv.Atoi(p.value); {
		case strings.EqualFold(p.value, "infinite"), err == nil && seconds < 0:
			power.After = 0
		case err != nil:
			r.note(file, n, "SuspendTime=%s is not a number of seconds, INFINITE or -1; ignored", p.value)
		default:
			power.After = max(time.Duration(seconds)*time.Second, time.Second)
		}
	case "suspendexcnodes":
		names, err := hostlist.Expand(p.value)
		if err != nil || strings.Contains(p.value, ":") {
			r.note(file, n, "SuspendExcNodes=%s: want a list of nodes (a number of them, NODES:COUNT, is not kept on yet); ignored", p.value)
			return
		}
		for _, name := range names {
			power.ExceptNodes = append(power.ExceptNodes, cluster.NodeName(name))
		}
	case "suspendexcparts":
		power.ExceptParts = strings.Split(p.value, ",")
	case "suspendexcstates":
		r.note(file, n, "SuspendExcStates has no effect: nodes that are drained, failing or about to reboot are never suspended")
	}
}
