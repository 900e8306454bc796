// Package sched decides: from a snapshot of the cluster and a time, which pending jobs start
// where, and for every other job looked at why it waits. Everything here is a pure function.
package sched

import (
	"time"

	"dev.muster/cluster"
)

// Bounds of one cycle.
const (
	maxStarts = 512  // starts in one Decide; the next cycle follows at once
	maxLooked = 5000 // pending records looked at in one cycle
)

// cycle is the working state of one pass.
type cycle struct {
	s       *cluster.Snapshot
	now     time.Time
	free    *pool
	head    *reservation    // the first job that does not fit, and where it will start
	tried   map[string]bool // shapes that did not fit in this cycle
	out     []cluster.Decision
	starts  int
	running map[cluster.JobID]int // array tasks started in this cycle
}

// Schedule is one cycle: 1 order, 2 limits, 3 feasible, 4 place, 5 timeline.
func Schedule(s *cluster.Snapshot, now time.Time) []cluster.Decision {
	c := &cycle{s: s, now: now, free: newPool(s), tried: map[string]bool{}, running: map[cluster.JobID]int{}}
	looked := 0
	for j := range s.Queue() { // 1: the queue is kept in order by Apply
		if looked++; looked > maxLooked || c.starts >= maxStarts {
			break
		}
		if j.Held == cluster.NotHeld {
			c.consider(j)
		}
	}
	return c.out
}

// consider decides one record; of an array record as many tasks as fit now.
func (c *cycle) consider(j *cluster.Job) {
	tasks, why := c.s.Ready(j, c.now) // 2
	if why != cluster.NoReason {
		c.wait(j, why, "", nil)
		return
	}
	if j.Tasks.Empty() {
		c.one(j, cluster.TaskAny)
		return
	}
	for task := range tasks.All() {
		if c.starts >= maxStarts || !c.one(j, task) {
			return
		}
	}
}

// one tries to start a job or one task of an array record; it reports whether it did.
func (c *cycle) one(j *cluster.Job, task int) bool {
	if a := j.Spec.Array; task != cluster.TaskAny && a != nil && a.Limit > 0 &&
		c.s.RunningTasks(j.ArrayID)+c.running[j.ArrayID] >= a.Limit {
		c.wait(j, cluster.WaitArrayLimit, "", nil)
		return false
	}
	why, note := cluster.WaitResources, ""
	for _, name := range j.Spec.Partitions {
		p, ok := c.s.Partition(name)
		if !ok {
			continue
		}
		if r := closed(p, j); r != cluster.NoReason {
			why = r
			continue
		}
		want := newDemand(c.s, p, j.Spec)
		if r, n := want.possible(c.s); r != cluster.NoReason { // 3
			why, note = r, n
			continue
		}
		key := name + want.key()
		if c.tried[key] {
			why = cluster.WaitPriority
			continue
		}
		if alloc := c.fit(want, j); alloc != nil { // 4, 5
			c.start(j, task, alloc)
			return true
		}
		c.tried[key] = true
		why = c.reserve(j, want)
	}
	c.wait(j, why, note, c.head)
	return false
}

// closed tells why a partition starts nothing of this job now.
func closed(p *cluster.Partition, j *cluster.Job) cluster.Reason {
	switch {
	case p.State == cluster.PartitionDown:
		return cluster.WaitPartitionDown
	case p.State == cluster.PartitionInactive:
		return cluster.WaitPartitionInactive
	case p.MaxTime != 0 && p.MaxTime != cluster.Unlimited && j.Limit > p.MaxTime:
		return cluster.WaitPartitionTime
	}
	return cluster.NoReason
}

// fit finds an allocation that is free now and does not delay the reserved head of the queue.
func (c *cycle) fit(want *demand, j *cluster.Job) *cluster.Alloc {
	if c.head == nil {
		return want.place(c.free, nil)
	}
	if j.Limit != cluster.Unlimited && !c.now.Add(j.Limit).After(c.head.at) {
		return want.place(c.free, nil) // over before the head starts
	}
	return want.place(c.free, c.head.nodes)
}

func (c *cycle) start(j *cluster.Job, task int, alloc *cluster.Alloc) {
	c.free.take(alloc)
	c.starts++
	if task != cluster.TaskAny {
		c.running[j.ArrayID]++
	}
	c.out = append(c.out, cluster.Decision{Job: j.ID, Task: task, Start: alloc, Backfilled: c.head != nil})
}

// reserve makes the first job that does not fit the head of the queue: it gets a planned start
// that later jobs of this cycle can not delay (EASY backfill).
func (c *cycle) reserve(j *cluster.Job, want *demand) cluster.Reason {
	if c.head != nil {
		return cluster.WaitPriority
	}
	c.head = plan(c.s, c.free, want, c.now)
	c.head.job = j.ID
	return cluster.WaitResources
}

// wait records why a job waits, if that is news.
func (c *cycle) wait(j *cluster.Job, why cluster.Reason, note string, head *reservation) {
	d := cluster.Decision{Job: j.ID, Task: cluster.TaskAny, Wait: why, Note: note}
	if head != nil && head.job == j.ID && !head.at.Equal(never) {
		d.StartsAt = head.at
		d.Nodes = head.list
	}
	if j.Wait == why && j.WaitNote == note && j.PlannedStart.Equal(d.StartsAt) {
		return
	}
	c.out = append(c.out, d)
}
