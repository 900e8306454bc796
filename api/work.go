package api

import (
	"fmt"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// Messages between a client and the servers about its nodes and their work.

// RegisterRequest brings up the nodes of one client (several when they are hollow).
type RegisterRequest struct {
	Nodes []cluster.NodeUp `json:"nodes"`
	// Seen is what each has seen and runs, where it comes again.
	Seen map[cluster.NodeName]*Seen `json:"seen,omitempty"`
}

// Seen is what a node knows of jobs: the servers may have forgotten it (cluster.NodeTell).
type Seen struct {
	Index uint64 `json:"index,omitempty"` // of the log, of the work last taken
	// Asked: it answers RegisterResponse.Ask, of which Ended is what became of those that run no more.
	Asked   bool             `json:"asked,omitempty"`
	Ended   []cluster.Update `json:"ended,omitempty"`
	NextJob cluster.JobID    `json:"next_job,omitempty"`
	Jobs    []*cluster.Job   `json:"jobs,omitempty"`    // of which it runs an attempt
	Unknown []cluster.JobID  `json:"unknown,omitempty"` // of which it runs something, and knows nothing else
}

// RegisterResponse tells a client what it needs of the configuration.
type RegisterResponse struct {
	Index  uint64         `json:"index"`
	Config cluster.Config `json:"config"`
	// GPUs are the devices of nodes whose driver has other numbers for them than jobs have.
	GPUs map[cluster.NodeName][]cluster.GPU `json:"gpus,omitempty"`
	// Ask are the attempts that nodes are taken to run by servers whose state was brought back from a file: they
	// register once more, and say what became of them.
	Ask map[cluster.NodeName][]cluster.Held `json:"ask,omitempty"`
	// Again are nodes that have seen a log which is not the servers' any more: they ask for all of their work.
	Anew []cluster.NodeName `json:"anew,omitempty"`
}

// ReportRequest carries the reports of one client's nodes.
type ReportRequest struct {
	Reports []cluster.Report `json:"reports"`
	// Images are those of WorkRequest where they are others than were told before.
	Images []string `json:"images,omitempty"`
}

// WorkRequest is a long poll of one client for its nodes: it answers as soon as the work of some
// node is newer than the index given for it, or with nothing after Hold. The open call is the
// nodes' lease: when it breaks and no other follows, they are lost.
type WorkRequest struct {
	Nodes map[cluster.NodeName]uint64 `json:"nodes"`
	Hold  time.Duration               `json:"hold"`
	// Config is the index of the configuration that the client has.
	Config uint64 `json:"config,omitempty"`
	// Gather: jobs of several nodes are to come as Work.Jobs.
	Gather bool `json:"gather,omitempty"`
	// Images are keys of those that the client's store holds (package locality).
	Images []string `json:"images,omitempty"`
}

// Work has the nodes whose work changed, each with the whole set of what it should be doing.
type Work struct {
	Nodes []NodeWork `json:"nodes"`
	// Unknown nodes must register again.
	Unknown []cluster.NodeName `json:"unknown,omitempty"`
	// Config is a configuration that the client does not have yet, without what no client needs, and its index.
	Config      *cluster.Config `json:"config,omitempty"`
	ConfigIndex uint64          `json:"config_index,omitempty"`
	// NextJob is the number that the next job gets: what a node has heard of outlives the servers' state.
	NextJob cluster.JobID `json:"next_job,omitempty"`
	// Jobs are those of several nodes, each once; its nodes have its number (NodeWork.Gathered).
	Jobs []GatheredJob `json:"jobs,omitempty"`
}

// NodeWork is the whole set of one node's jobs.
type NodeWork struct {
	Node  cluster.NodeName `json:"node"`
	Index uint64           `json:"index"`
	Jobs  []*cluster.Job   `json:"jobs"`
	// Gathered are the numbers of others, which are in Work.Jobs.
	Gathered []cluster.JobID `json:"gathered,omitempty"`
	// JobCPUs is how many CPUs jobs can have of it; 0: from a server that does not tell.
	JobCPUs int `json:"job_cpus,omitempty"`
	// Peers are the other clients' nodes of those jobs: all of them for a job led here, else the first.
	Peers []NodePeer `json:"peers,omitempty"`
	// Sisters are other components of heterogeneous jobs: for the leader's first node all, for others' first ones
	// the leader.
	Sisters []*cluster.Job `json:"sisters,omitempty"`
	// Reboot is the restart of the node's machine that is due.
	Reboot *Reboot `json:"reboot,omitempty"`
	// Unconfirmed: it gets no jobs, since it did not confirm one. A node that is well registers again.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
}

// Reboot tells a node to restart its machine by a program, once.
type Reboot struct {
	Program string    `json:"program"`
	Issued  time.Time `json:"issued"`
}

// A job has a share for each of its nodes, and each of them is told of it: what a large one costs would grow with
// the square of its nodes. So it comes once for all nodes of a client, and shares that differ in nothing but their
// node come as one.

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
			if j.Alloc == nil || len(j.Alloc.Shares) < 2 || j.EndingWhy == cluster.Resized { // this is how that node alone is to see it
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
	out := GatheredJob{Job: &n, Waiting: hostlist.CompressNames(j.Waiting)}
	n.Waiting = nil
	var names []cluster.NodeName
	for i, shares := 0, j.Alloc.Shares; i < len(shares); {
		run := shares[i]
		names = names[:0]
		for ; i < len(shares) && run.Same(&shares[i]); i++ {
			names = append(names, shares[i].Node)
		}
		run.Node = ""
		out.Runs = append(out.Runs, ShareRun{hostlist.CompressNames(names), run})
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
