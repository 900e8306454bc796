package sched

import (
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// shape is everything of a job that decides where it fits: equal shapes are one question.
type shape struct {
	part       *cluster.Partition
	numbers    [13]int
	mem        cluster.Mem
	tmp        int64
	sharing    cluster.Sharing
	overcommit bool
	sockets    bool // fill one socket before the next
	constraint string
	lists      string
}

// question is what jobs of one shape ask, and what this cycle has found out about it.
type question struct {
	want   *demand
	why    cluster.Reason // if it can not run at all now
	note   string
	from   int      // no node before this place of the partition's list has room
	failed []uint64 // sets of reservations to stay off with which it did not fit
}

// ask finds the question of a job, or makes it.
func (c *cycle) ask(p *cluster.Partition, j *cluster.Job) *question {
	key := shapeOf(p, j.Spec, j.Avoid)
	q, ok := c.asked[key]
	if !ok {
		q = &question{want: newDemand(c.s, p, j.Spec, j.Avoid)}
		q.why, q.note = q.want.possible(c.s, c.idle)
		c.asked[key] = q
	}
	return q
}

func shapeOf(p *cluster.Partition, s *cluster.JobSpec, avoid []cluster.Avoided) shape {
	k := shape{part: p, mem: s.Mem, tmp: s.TmpMB, sharing: s.Sharing, overcommit: s.Overcommit, sockets: cluster.BlockSockets(s.Distribution), constraint: s.Constraint,
		numbers: [13]int{s.MinNodes, s.MaxNodes, s.Tasks, s.TasksPerNode, s.TasksPerGPU, s.CPUsPerTask, s.CPUsPerGPU, s.MinCPUs,
			s.SocketsPerNode, s.CoresPerSocket, s.ThreadsPerCore}}
	if len(s.PerNode)+len(s.PerJob)+len(s.PerTask)+len(s.NodeList)+len(s.Exclude)+len(avoid) == 0 {
		return k
	}
	var b strings.Builder
	for _, list := range [][]cluster.GRES{s.PerNode, s.PerJob, s.PerTask} {
		for _, g := range list {
			b.WriteString(g.Name)
			b.WriteByte(':')
			b.WriteString(g.Type)
			b.WriteByte(':')
			b.WriteString(strconv.FormatInt(g.Count, 10))
			b.WriteByte(',')
		}
		b.WriteByte(';')
	}
	for _, list := range [][]cluster.NodeName{s.NodeList, s.Exclude} {
		for _, n := range list {
			b.WriteString(string(n))
			b.WriteByte(',')
		}
		b.WriteByte(';')
	}
	for _, a := range avoid {
		b.WriteString(string(a.Node))
		b.WriteByte(',')
	}
	k.lists = b.String()
	return k
}
