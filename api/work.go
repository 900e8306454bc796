package api

import (
	"fmt"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// A job has a share for each of its nodes, and each of them is told of it: what a large one costs would grow with the square of its
// nodes. So it comes once for all nodes of a client, and shares that differ in nothing but their node come as one.

// GatheredJob is a job without the shares of its allocation and the nodes that it waits for, and these.
type GatheredJob struct {
	Job     *cluster.Job `json:"job"`
	Runs    []ShareRun   `json:"runs,omitempty"`
	Waiting string       `json:"waiting,omitempty"` // as a host list
}

// ShareRun is the shares of nodes that have the same, in their order.
type ShareRun struct {
	Nodes string        `json:"nodes"` // as a host list
	Share cluster.Share `json:"share"` // without its node
}

// Gather moves jobs of several nodes to Jobs.
func (w *Work) Gather() {
	moved := map[cluster.JobID]bool{}
	for i := range w.Nodes {
		nw := &w.Nodes[i]
		own := nw.Jobs[:0:0]
		for _, j := range nw.Jobs {
			if j.Alloc == nil || len(j.Alloc.Shares) < 2 {
				own = append(own, j)
				continue
			}
			if !moved[j.ID] {
				moved[j.ID] = true
				w.Jobs = append(w.Jobs, gathered(j))
			}
			nw.Gathered = append(nw.Gathered, j.ID)
		}
		nw.Jobs = own
	}
}

func gathered(j *cluster.Job) GatheredJob {
	n, a := *j, *j.Alloc
	n.Alloc, a.Shares = &a, nil
	out := GatheredJob{Job: &n, Waiting: hosts(j.Waiting)}
	n.Waiting = nil
	var names []cluster.NodeName
	for i, shares := 0, j.Alloc.Shares; i < len(shares); {
		run := shares[i]
		names = names[:0]
		for ; i < len(shares) && run.Same(&shares[i]); i++ {
			names = append(names, shares[i].Node)
		}
		run.Node = ""
		out.Runs = append(out.Runs, ShareRun{hosts(names), run})
	}
	return out
}

// Spread gives each node all its jobs again.
func (w *Work) Spread() error {
	jobs := make(map[cluster.JobID]*cluster.Job, len(w.Jobs))
	for i := range w.Jobs {
		j, err := w.Jobs[i].spread()
		if err != nil {
			return err
		}
		jobs[j.ID] = j
	}
	for i := range w.Nodes {
		nw := &w.Nodes[i]
		for _, id := range nw.Gathered {
			j, ok := jobs[id]
			if !ok {
				return fmt.Errorf("the work of node %s names job %d, which did not come with it", nw.Node, id)
			}
			nw.Jobs = append(nw.Jobs, j)
		}
		nw.Gathered = nil
	}
	w.Jobs = nil
	return nil
}

func (g *GatheredJob) spread() (*cluster.Job, error) {
	if g.Job == nil || g.Job.Alloc == nil {
		return nil, fmt.Errorf("a job of several nodes came without an allocation")
	}
	for _, run := range g.Runs {
		names, err := hostlist.Expand(run.Nodes)
		if err != nil {
			return nil, fmt.Errorf("nodes %q of job %d: %w", run.Nodes, g.Job.ID, err)
		}
		for _, name := range names {
			run.Share.Node = cluster.NodeName(name)
			g.Job.Alloc.Shares = append(g.Job.Alloc.Shares, run.Share)
		}
	}
	names, err := hostlist.Expand(g.Waiting)
	if err != nil {
		return nil, fmt.Errorf("nodes %q that job %d waits for: %w", g.Waiting, g.Job.ID, err)
	}
	for _, name := range names {
		g.Job.Waiting = append(g.Job.Waiting, cluster.NodeName(name))
	}
	return g.Job, nil
}

// hosts is nodes as a host list, in their order.
func hosts(nodes []cluster.NodeName) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	return hostlist.Compress(names)
}
