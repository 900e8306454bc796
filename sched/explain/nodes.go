package explain

import (
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Texts about nodes that are out of service.

// outageText says why a node is out of service.
func outageText(n *cluster.Node) string {
	what := "not responding"
	switch {
	case n.Down:
		what = "down"
	case n.Drain:
		what = "drained"
	case n.Failing:
		what = "failing"
	}
	if n.Reason != "" {
		what += " (" + n.Reason + ")"
	}
	return what
}

// explainNamedNodes explains which of the nodes that a job names are out of service.
func (e *Explanation) explainNamedNodes(s *cluster.Snapshot, j *cluster.Job) {
	var names, out []string
	for _, name := range j.Spec.NodeList {
		names = append(names, string(name))
		if n, ok := s.Node(name); ok && !n.Usable() {
			out = append(out, string(name)+" is "+outageText(n))
		}
	}
	e.addCause(cluster.WaitNodeNotAvail, updateHint([]*cluster.Job{j}, "reqnodelist=NODES")+", or none: reqnodelist=",
		"it must run on %s, and %s", strings.Join(names, ","), strings.Join(out, ", "))
}

// explainOutOfService names the partition's nodes that are out of service, grouped by why.
func (e *Explanation) explainOutOfService(s *cluster.Snapshot, p *cluster.Partition) {
	groups := map[string][]string{}
	n := 0
	for node := range s.PartitionNodes(p) {
		if node.Usable() {
			continue
		}
		what := outageText(node)
		groups[what] = append(groups[what], string(node.Name))
		n++
	}
	if n == 0 {
		return
	}
	var keys, parts []string
	for k := range groups {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		parts = append(parts, named(groups[k], ",")+" "+k)
	}
	e.addCause(cluster.WaitNodesDown, "", "partition %s: %s out of service: %s", p.Name,
		place.Count(n, "node is", "nodes are"), strings.Join(parts, "; "))
}
