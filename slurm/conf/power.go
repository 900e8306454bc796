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
		power.ExceptNodes, power.KeepOn = nil, nil
		for set := range setsOf(p.value) {
			text, count, counted := strings.Cut(set, ":")
			names, err := hostlist.Expand(text)
			k, bad := strconv.Atoi(count)
			if err != nil || counted && (bad != nil || k < 1) {
				r.note(file, n,
					"SuspendExcNodes=%s: want a list of nodes, or NODES:COUNT to keep some of them on; ignored",
					set)
				continue
			}
			var nodes []cluster.NodeName
			for _, name := range names {
				nodes = append(nodes, cluster.NodeName(name))
			}
			if counted {
				power.KeepOn = append(power.KeepOn, cluster.KeepOn{Nodes: nodes, Count: k})
			} else {
				power.ExceptNodes = append(power.ExceptNodes, nodes...)
			}
		}
	case "suspendexcparts":
		power.ExceptParts = strings.Split(p.value, ",")
	case "suspendexcstates":
		r.note(file, n,
			"SuspendExcStates has no effect: nodes that are drained, failing or about to reboot are never suspended")
	}
}

// setsOf cuts a list of nodes at the commas that are not in brackets.
func setsOf(list string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for list != "" {
			depth := 0
			i := strings.IndexFunc(list, func(c rune) bool {
				switch c {
				case '[':
					depth++
				case ']':
					depth--
				}
				return c == ',' && depth == 0
			})
			if i < 0 {
				yield(list)
				return
			}
			if !yield(list[:i]) {
				return
			}
			list = list[i+1:]
		}
	}
}
