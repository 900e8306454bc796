package conf

import (
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// nodeStates are the states that a line gives to nodes which are not known yet; UNKNOWN and IDLE leave them to
// themselves. A cluster's knowledge of a node counts more.
var nodeStates = [...]struct {
	word string
	set  func(n *cluster.Node)
}{
	{"UNKNOWN", func(*cluster.Node) {}}, {"IDLE", func(*cluster.Node) {}},
	{"CLOUD", func(n *cluster.Node) { n.Expected = cluster.ExpectedCloud }},
	{"FUTURE", func(n *cluster.Node) { n.Expected = cluster.ExpectedFuture }},
	{"EXTERNAL", func(n *cluster.Node) { n.Expected = cluster.ExpectedExternal }},
	{"DOWN", func(n *cluster.Node) { n.Down = true }}, {"DRAIN", func(n *cluster.Node) { n.Drain = true }},
	{"FAIL", func(n *cluster.Node) { n.Failing = true }},
	{"DRAINED", func(n *cluster.Node) { n.Drain = true }}, {"FAILING", func(n *cluster.Node) { n.Failing = true }},
}

// stateWord is how a line says the state of a node.
func stateWord(n *cluster.Node) string {
	for _, s := range nodeStates[2:] {
		var o cluster.Node
		if s.set(&o); o.Expected == n.Expected && o.Down == n.Down && o.Drain == n.Drain && o.Failing == n.Failing {
			return s.word
		}
	}
	return ""
}

// setState gives a node the state that a word names, and the reason for it.
func (r *reader) setState(file string, line int, n *cluster.Node, word, reason string) {
	i := slices.IndexFunc(nodeStates[:], func(s struct {
		word string
		set  func(n *cluster.Node)
	}) bool {
		return strings.EqualFold(s.word, word)
	})
	if i < 0 {
		r.note(file, line, "State=%s is not known: want UNKNOWN, CLOUD, FUTURE, DOWN, DRAIN or FAIL; ignored", word)
		return
	}
	if nodeStates[i].set(n); n.Down || n.Drain || n.Failing {
		n.Reason, n.ReasonBy = reason, "root"
	}
}

// downLine is a line DownNodes=LIST State=… Reason=…, which counts once all nodes are declared.
type downLine struct {
	file          string
	line          int
	nodes         []string
	state, reason string
}

func (r *reader) downNodes(file string, n int, ps []pair) {
	d := downLine{file: file, line: n, state: "DOWN"}
	for _, p := range ps {
		switch p.key {
		case "downnodes":
			var err error
			if d.nodes, err = hostlist.Expand(p.value); err != nil {
				r.note(file, n, "DownNodes=%s: %v; ignored", p.value, err)
				return
			}
		case "state":
			d.state = p.value
		case "reason":
			d.reason = p.value
		default:
			r.note(file, n, "DownNodes: %s is neither State nor Reason; ignored", p.key)
		}
	}
	r.downs = append(r.downs, d)
}

// settleDown gives declared nodes the states of DownNodes lines.
func (r *reader) settleDown() {
	for _, d := range r.downs {
		for _, name := range d.nodes {
			i := slices.IndexFunc(r.cfg.Declared, func(n cluster.Node) bool { return string(n.Name) == name })
			if i < 0 {
				r.note(d.file, d.line, "DownNodes: there is no NodeName line for %s; ignored", name)
				continue
			}
			r.setState(d.file, d.line, &r.cfg.Declared[i], d.state, d.reason)
		}
	}
}
