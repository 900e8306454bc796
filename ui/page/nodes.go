package page

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/samples"
	"dev.muster/agent/visibility"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// colors are what the cells of the map may mean; the last one lists nodes instead.
var colours = []string{"user", "job", "health", "list"}

// pageList bounds the nodes of a list.
const pageList = 500

// viewMap shows all nodes, or those of a partition or with a word: as a map, or as a list.
func (s *pages) viewMap(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	if err := sees.Nodes(); err != nil {
		return "", "", nil, err
	}
	form := r.URL.Query()
	v := ui.Map{As: form.Get("by"), Partition: form.Get("partition"), Find: strings.TrimSpace(form.Get("find")),
		All: sees.Snap.NodeCount()}
	if !slices.Contains(colours, v.As) {
		v.As = colours[0]
	}
	for _, c := range colours {
		own := url.Values{"by": {c}}
		for _, k := range []string{"partition", "find"} {
			if x := form.Get(k); x != "" {
				own.Set(k, x)
			}
		}
		v.By = append(v.By, ui.Link{Text: c, To: "/map?" + own.Encode(), Here: c == v.As})
	}
	v.Partitions = partitionRows(sees)
	word, nodes := strings.ToLower(v.Find), []*cluster.Node(nil)
	for n := range nodesOf(sees.Snap, v.Partition) {
		if v.Find == "" || nodeMentions(sees.Snap, n, word) {
			nodes = append(nodes, n)
		}
	}
	if v.Shown = len(nodes); v.As == "list" {
		for _, n := range nodes[:min(len(nodes), pageList)] {
			v.List = append(v.List, tile(sees, n, palette{}, false))
		}
		return "map", "Nodes", &v, nil
	}
	colour := painter(sees, v.As)
	v.Groups = grouped(sees, nodes, colour)
	v.Legend = append([]ui.Cell{{Class: "free", Title: "free"}, {Class: "gone",
		Title: "missing or out of service"}}, colour.legend...)
	if len(nodes) > pageCells {
		v.Dense = colour.dense
	}
	if v.As == "health" {
		v.Legend[0] = ui.Cell{Class: "used", Title: "well"}
	}
	return "map", "Nodes", &v, nil
}

// nodesOf are the nodes of a partition, or all.
func nodesOf(snap *cluster.Snapshot, partition string) iter.Seq[*cluster.Node] {
	if p, ok := snap.Partition(partition); ok {
		return snap.PartitionNodes(p)
	}
	return snap.Nodes()
}

// nodeMentions reports whether a node's name, state, reason or features have a word in them.
func nodeMentions(snap *cluster.Snapshot, n *cluster.Node, word string) bool {
	text := strings.Join(append([]string{string(n.Name), n.Word(len(snap.Load(n.Name).Jobs) > 0), n.Reason},
		n.Inventory.Features...), " ")
	return strings.Contains(strings.ToLower(text), word)
}

// grouped puts nodes together that belong together.
func grouped(sees visibility.Scope, nodes []*cluster.Node, colour palette) (out []ui.Group) {
	place, order := places(sees.Snap.Wiring())
	groups := map[string]*ui.Group{}
	for _, n := range nodes {
		name := cmp.Or(place[n.Name], "nodes")
		g := groups[name]
		if g == nil {
			g = &ui.Group{Name: name}
			groups[name] = g
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
		g.Nodes = append(g.Nodes, tile(sees, n, colour, len(nodes) <= pageCells))
	}
	for _, name := range order {
		if g := groups[name]; g != nil {
			out = append(out, *g)
		}
	}
	return out
}

// partitionRows says of each partition what it has and who waits for it.
func partitionRows(sees visibility.Scope) (rows []ui.Partition) {
	m, waiting, running := samples.Measure(sees.Snap), map[string]int{}, map[string]int{}
	for j := range sees.Snap.Jobs() {
		switch {
		case !sees.Job(j):
		case j.Phase == cluster.Pending:
			for _, p := range j.Spec.Partitions {
				waiting[p] += max(j.Tasks.Len(), 1)
			}
		case j.Phase != cluster.Ended && j.Alloc != nil:
			running[j.Alloc.Partition]++
		}
	}
	for _, p := range sees.Snap.Config().Partitions {
		if p.Hidden && !sees.Who.Operator() {
			continue
		}
		row := ui.Partition{Name: p.Name, State: strings.ToLower(string(p.State)), Limit: span(cmp.Or(p.MaxTime,
			cluster.Unlimited)),
			GPU: gaugeOf("GPUs", m.Of("partition_gpu", p.Name)), CPU: gaugeOf("CPUs", m.Of("partition_cpu", p.Name)),
			Waiting: waiting[p.Name], Running: running[p.Name]}
		for range nodesOf(sees.Snap, p.Name) {
			row.Nodes++
		}
		rows = append(rows, row)
	}
	return rows
}

func (s *pages) viewNode(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	snap := sees.Snap
	if err := sees.Nodes(); err != nil {
		return "", "", nil, err
	}
	n, ok := snap.Node(cluster.NodeName(r.PathValue("name")))
	if !ok {
		return "", "", nil, cluster.Errorf(cluster.NotFound, "", "no such node: %s", r.PathValue("name"))
	}
	l, inv, now := snap.Load(n.Name), &n.Inventory, time.Now()
	t := tile(sees, n, painter(sees, "job"), true)
	v := ui.One{Did: did(r, "nodes", string(n.Name)), Actions: offered(sees, nil, n), State: t.State,
		Head: n.Reason, Node: &t}
	if n.Reason != "" && n.ReasonBy != "" {
		v.Head += fmt.Sprintf(" (by %s, %s)", n.ReasonBy, stamped(n.ReasonAt))
	}
	var rows rowList
	rows.add("sockets", fmt.Sprintf("%d of %s with %s", inv.Sockets, several(float64(inv.CoresPerSocket), "core"),
		several(float64(inv.ThreadsPerCore), "thread")))
	rows.add("features", strings.Join(inv.Features, ", "))
	rows.add("system", strings.TrimSpace(inv.OS+" "+inv.Arch))
	rows.add("client", inv.Version)
	rows.add("address", inv.Addr)
	rows.add("job isolation", inv.Isolation)
	rows.add("lacks", n.Lacks)
	v.Rows = rows
	for i, c := range t.Cells {
		_, what, _ := strings.Cut(c.Title, ": ")
		v.GPUs = append(v.GPUs, ui.Row{Name: fmt.Sprintf("GPU %d %s", i, inv.GPUs[i].Type), To: c.To,
			Value: strings.Join(strings.Fields(what+" "+inv.GPUs[i].PCI+" "+inv.GPUs[i].UUID), " ")})
	}
	for _, p := range inv.NICs {
		v.NICs = append(v.NICs, ui.Row{Name: fmt.Sprintf("%s port %d", p.Device, p.Port),
			Value: strings.TrimSpace(p.Link + " " + p.State + " " + p.Rate)})
	}
	for _, id := range l.Jobs {
		if j, ok := snap.Job(id); ok && sees.Job(j) {
			v.Jobs = append(v.Jobs, jobRow(snap, j, now))
		}
	}
	v.More = []ui.Link{{Text: "ended jobs", To: "/queue?state=ended&node=" +
		url.QueryEscape(string(n.Name))},
		{Text: "events", To: "/events?kind=nodes&find=" + url.QueryEscape(string(n.Name))}}
	v.Curves = nodeCurves(r.Context(), s, n)
	return "one", "Node " + string(n.Name), v, nil
}
