package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dev.muster/cluster"
)

// History makes a trace of what a cluster's accounting has: its jobs that ran and ended, as if submitted when they
// could first start. nodes is a file with a table of nodes, or empty for those that the cluster has now.
func History(jobs []*cluster.Job, nodes string, now []*cluster.Node, parts []cluster.Partition) (*Trace, error) {
	t := &Trace{}
	if err := t.nodeTable(nodes); err != nil {
		return nil, err
	}
	if nodes == "" {
		t.liveNodes(now, parts)
	}
	if len(t.Nodes) == 0 {
		return nil, fmt.Errorf("the cluster has no nodes: give --nodes FILE")
	}
	var first time.Time
	for _, j := range jobs {
		if at := ready(j); ran(j) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	never := 0
	for _, j := range jobs {
		if ran(j) {
			t.Jobs = append(t.Jobs, pastJob(j, first))
		} else {
			never++
		}
	}
	found := len(t.Jobs)
	t.clean()
	t.leave(never, "that have not run and ended")
	switch {
	case len(jobs) == 0:
		return nil, fmt.Errorf("accounting has no job of that time: give an earlier --since or a later --until")
	case found == 0:
		return nil, fmt.Errorf("none of the %d jobs that accounting has of that time has run and ended: give another --since or --until",
			len(jobs))
	case len(t.Jobs) == 0:
		return nil, fmt.Errorf("none of the %d jobs that ran fits the %d nodes: give those that the cluster had by --nodes FILE",
			found, len(t.Nodes))
	}
	return t, nil
}

// ran reports whether a job's run is over and known.
func ran(j *cluster.Job) bool {
	return j.Phase == cluster.Ended && j.Alloc != nil && !j.Started.IsZero() && j.Ended.After(j.Started)
}

// ready is when a job could first have started.
func ready(j *cluster.Job) time.Time {
	if j.Eligible.After(j.Submitted) && !j.Eligible.After(j.Started) {
		return j.Eligible
	}
	return j.Submitted
}

// pastJob is a job that ran, by what it was given; the number of nodes is open if it did not ask for one.
func pastJob(j *cluster.Job, first time.Time) Job {
	spec := j.Spec
	out := Job{ID: fmt.Sprint(j.ID), Submit: seconds(ready(j).Sub(first)),
		Run:  max(seconds(j.Ended.Sub(j.Started)-j.SuspendTotal), 1),
		User: spec.User, Group: spec.Account, Partition: j.Alloc.Partition, GPUMilli: 1000}
	if out.Limit = seconds(j.Limit); j.Limit == 0 || j.Limit == cluster.Unlimited {
		out.Limit = max(out.Run, 365*24*3600)
	}
	if spec.MinNodes > 0 || len(spec.NodeList) > 0 || spec.Sharing == cluster.ShareExclusive {
		out.Nodes = len(j.Alloc.Shares)
	}
	for _, sh := range j.Alloc.Shares {
		out.CPUs, out.GPUs, out.MemMB = out.CPUs+sh.CPUs.Len(), out.GPUs+sh.GPUs.Len(), out.MemMB+int64(sh.MemMB)
	}
	for _, g := range slices.Concat(spec.PerNode, spec.PerJob, spec.PerTask, spec.PerSocket) {
		out.GPUType = cmp.Or(out.GPUType, g.Type)
	}
	return out
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// liveNodes takes the nodes of the cluster. A node of a trace is in one partition or in all: where partitions overlap
// they do not count.
func (t *Trace) liveNodes(nodes []*cluster.Node, parts []cluster.Partition) {
	overlap := false
	for _, n := range nodes {
		inv := &n.Inventory
		one := Node{Name: string(n.Name), CPUs: inv.CPUs, GPUs: len(inv.GPUs), MemMB: int64(inv.MemMB)}
		if one.CPUs == 0 { // it has never registered
			continue
		}
		if one.GPUs > 0 {
			one.GPUType = inv.GPUs[0].Type
		}
		for _, p := range parts {
			if p.All || slices.Contains(p.Nodes, n.Name) {
				overlap = overlap || one.Partition != ""
				one.Partition = p.Name
			}
		}
		t.Nodes = append(t.Nodes, one)
	}
	if overlap || len(parts) == 1 {
		for i := range t.Nodes {
			t.Nodes[i].Partition = ""
		}
	}
}
