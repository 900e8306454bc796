package mcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

var nodesTool = tool{name: "nodes", title: "Nodes and free blocks", help: "Show what is free: GPUs by type, how many " +
	"nodes have how many free GPUs, entirely free nodes of each switch or block, and a list of nodes."}

type nodesIn struct {
	Names     []string `json:"names,omitempty" jsonschema:"only these nodes"`
	Partition string   `json:"partition,omitempty"`
	Free      bool     `json:"free,omitempty" jsonschema:"only nodes with a free GPU (or CPU, if they have no GPUs)"`
	Limit     int      `json:"limit,omitempty" jsonschema:"rows, at most 200; default 25"`
	Cursor    string   `json:"cursor,omitempty" jsonschema:"value of next: from the previous page"`
}

// room is a node and what is free there.
type room struct {
	*api.NodeInfo
	kind         string // of its GPUs
	gpus, free   int
	cpus, idle   int
	inService    bool
	memMB, memOf cluster.MemMB
}

func roomOf(n *api.NodeInfo) room {
	inv := &n.Inventory
	r := room{NodeInfo: n, cpus: inv.JobCPUCount(), memOf: inv.MemMB - inv.SpecMemMB}
	found := inv.Found()
	r.gpus = len(found)
	for _, g := range found {
		r.kind = cmp.Or(r.kind, g.Type, "gpu")
	}
	r.inService = n.Up && !n.Down && !n.Drain
	if r.inService {
		r.free = r.gpus - n.Load.GPUs.Len()
		r.idle = r.cpus - n.Load.CPUs.Len()
		r.memMB = r.memOf - n.Load.MemMB
	}
	return r
}

// whole reports whether nothing of the node is in use.
func (r *room) whole() bool { return r.inService && len(r.Load.Jobs) == 0 && !r.Ending }

func (c *caller) nodes(_ context.Context, in nodesIn) (string, error) {
	s := c.sys()
	var names []cluster.NodeName
	for _, n := range in.Names[:min(len(in.Names), maxIDs)] {
		names = append(names, cluster.NodeName(n))
	}
	resp, err := front.Call(s, api.ListNodes, api.NodeQuery{Names: names, Listed: true})
	if err != nil {
		return "", err
	}
	belongs, err := inPartition(&resp, in.Partition)
	if err != nil {
		return "", err
	}
	var all []room
	for i := range resp.Nodes {
		if belongs(resp.Nodes[i].Name) {
			all = append(all, roomOf(&resp.Nodes[i]))
		}
	}
	t := &table{}
	freeBlocks(t, all)
	c.domains(s, t, all)
	if in.Free {
		all = slices.DeleteFunc(all, func(r room) bool { return r.free <= 0 && (r.gpus > 0 || r.idle <= 0) })
	}
	t.row("node", "state", "gpu type", "gpus free", "cpus free", "mem free", "reason")
	err = t.page(in.Cursor, in.Limit, len(all), func(i int) {
		r := &all[i]
		t.row(
			string(r.Name),
			show.StateWord(show.NodeState(r.NodeInfo), true),
			r.kind,
			fmt.Sprintf("%d/%d", r.free, r.gpus),
			fmt.Sprintf("%d/%d", r.idle, r.cpus),
			format.Mem(r.memMB),
			r.Reason,
		)
	})
	return t.String(), err
}

// inPartition selects the nodes of a partition.
func inPartition(resp *api.NodesResponse, name string) (func(cluster.NodeName) bool, error) {
	if name == "" {
		return func(cluster.NodeName) bool { return true }, nil
	}
	i := slices.IndexFunc(resp.Partitions, func(p cluster.Partition) bool { return p.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown partition: %s; see muster://cluster", cutAt(name, 40))
	}
	p, has := &resp.Partitions[i], map[cluster.NodeName]bool{}
	for _, n := range p.Nodes {
		has[n] = true
	}
	return func(n cluster.NodeName) bool { return p.All || has[n] }, nil
}

// freeBlocks tells by type of GPU how many are free, and on how many nodes how many.
func freeBlocks(t *table, all []room) {
	total := map[string]int{}
	free := map[string]int{}
	by := map[string]map[int]int{} // nodes by how many GPUs are free there
	for i := range all {
		r := &all[i]
		if r.gpus == 0 {
			continue
		}
		total[r.kind] += r.gpus
		free[r.kind] += r.free
		if by[r.kind] == nil {
			by[r.kind] = map[int]int{}
		}
		by[r.kind][r.free]++
	}
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		var blocks []string
		delete(by[kind], 0)
		for _, n := range slices.Backward(slices.Sorted(maps.Keys(by[kind]))) {
			blocks = append(blocks, fmt.Sprintf("%d free on %d", n, by[kind][n]))
		}
		fmt.Fprintf(t, "%s: %d of %d GPUs free; nodes: %s\n", cell(kind), free[kind], total[kind],
			cmp.Or(strings.Join(blocks, ", "), "none"))
	}
}

// maxDomains bounds how many switches or blocks are told.
const maxDomains = 16

// domains tells how many nodes below each leaf switch, or of each block, are entirely free.
func (c *caller) domains(s *front.Sys, t *table, all []room) {
	about, err := front.Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		return
	}
	whole := map[cluster.NodeName]bool{}
	known := map[cluster.NodeName]bool{}
	for i := range all {
		known[all[i].Name] = true
		whole[all[i].Name] = all[i].whole()
	}
	type domain struct {
		name    string
		free, n int
	}
	var list []domain
	count := func(nodes []cluster.NodeName, among map[cluster.NodeName]bool) (n int) {
		for _, name := range nodes {
			if among[name] {
				n++
			}
		}
		return n
	}
	add := func(name string, nodes []cluster.NodeName) {
		list = append(list, domain{name, count(nodes, whole), count(nodes, known)})
	}
	for _, sw := range about.Config.Topology {
		if len(sw.Switches) == 0 {
			add(sw.Name, sw.Nodes)
		}
	}
	for _, b := range about.Config.Blocks {
		add(b.Name, b.Nodes)
	}
	list = slices.DeleteFunc(list, func(d domain) bool { return d.n == 0 })
	slices.SortStableFunc(list, func(a, b domain) int { return cmp.Compare(b.free, a.free) })
	for i, d := range list {
		if i == maxDomains {
			fmt.Fprintf(t, "[%d more switches or blocks]\n", len(list)-i)
			break
		}
		fmt.Fprintf(t, "%s: %d of %d nodes entirely free\n", cell(d.name), d.free, d.n)
	}
}

var planTool = tool{name: "plan", title: "Show the schedule", help: "Show when pending jobs are expected to start " +
	"and when running jobs end at the latest, soonest first. Use submit without confirm to plan a new job."}

type planIn struct {
	User   string `json:"user,omitempty" jsonschema:"all (default) or me"`
	Limit  int    `json:"limit,omitempty" jsonschema:"rows, at most 200; default 25"`
	Cursor string `json:"cursor,omitempty" jsonschema:"value of next: from the previous page"`
}

func (c *caller) plan(_ context.Context, in planIn) (string, error) {
	s := c.sys()
	users, err := usersOf(s, cmp.Or(in.User, "all"))
	if err != nil {
		return "", err
	}
	resp, err := show.ListJobs(s, api.JobQuery{
		Users:  users,
		Phases: []cluster.Phase{cluster.Pending, cluster.Running},
		Brief:  true,
		Listed: true,
		Starts: true,
	})
	if err != nil {
		return "", err
	}
	v := &show.View{Sys: s, Now: resp.Now, Conf: &api.ClusterResponse{}}
	rows := make([]show.JobRow, len(resp.Jobs))
	for i, j := range resp.Jobs {
		rows[i] = show.JobRow{Job: j, View: v}
	}
	at := func(r *show.JobRow) int64 {
		when := r.Start()
		if r.Phase != cluster.Pending {
			when = r.End()
		}
		if when.IsZero() {
			return 1<<63 - 1
		}
		return when.Unix()
	}
	slices.SortStableFunc(rows, func(a, b show.JobRow) int { return cmp.Compare(at(&a), at(&b)) })
	t := &table{}
	t.row("time", "event", "id", "user", "partition", "nodes", "gpus", "reason")
	err = t.page(in.Cursor, in.Limit, len(rows), func(i int) {
		r := &rows[i]
		when := v.Stamp(r.Start(), "unknown")
		what := "start"
		why := string(r.Reason())
		if r.Phase != cluster.Pending {
			when = v.Stamp(r.End(), "no limit")
			what = "end at the latest"
			why = "-"
		}
		t.row(
			when,
			what,
			r.ShownID(),
			r.Spec.User,
			r.Partition(),
			cmp.Or(r.Nodes(), strconv.Itoa(r.NumNodes())),
			strconv.Itoa(r.NumGPUs()),
			why,
		)
	})
	return t.String(), err
}
