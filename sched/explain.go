package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Cause is one cause of waiting, with numbers for people.
type Cause struct {
	Reason cluster.Reason
	Text   string
	Hint   string
}

// Explanation is everything that keeps a job from starting, most decisive first, and when and
// where it is expected to start.
type Explanation struct {
	Causes   []Cause
	StartsAt time.Time
	Nodes    []cluster.NodeName
	Holders  []Holder // of what it is to get there
}

func (e *Explanation) add(r cluster.Reason, hint, format string, args ...any) {
	e.Causes = append(e.Causes, Cause{Reason: r, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// Explain says why a pending job waits.
func Explain(s *cluster.Snapshot, now time.Time, id cluster.JobID) Explanation {
	var e Explanation
	j, ok := s.Job(id)
	if !ok || j.Phase != cluster.Pending {
		return e
	}
	if _, why := s.Ready(j, now); why != cluster.NoReason {
		e.notReady(s, j, why)
	}
	if a := j.Spec.Array; a != nil && !j.Tasks.Empty() && a.Limit > 0 && s.RunningTasks(j.ArrayID) >= a.Limit {
		e.add(cluster.WaitArrayLimit, fmt.Sprintf("scontrol update jobid=%d arraytaskthrottle=N", j.ArrayID),
			"the array runs %d tasks at once, its limit is %d; %d tasks wait", s.RunningTasks(j.ArrayID), a.Limit, j.Tasks.Len())
	}
	for _, a := range j.Avoid {
		e.add(cluster.EndLaunchFailure, fmt.Sprintf("scontrol release %d", j.ID), "node %s could not launch it, it does not go there again: %s", a.Node, a.Why)
	}
	c := newCycle(s, now)
	parts, _ := c.parts(j, nil)
	if len(parts) == 0 {
		e.noReservation(s, j)
	}
	if j.Spec.Licenses != "" && !c.licensed(j) {
		e.add(cluster.WaitLicenses, "scontrol show licenses", "it wants licenses %s, others hold too many of them", j.Spec.Licenses)
	}
	for _, name := range j.Spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			e.add(cluster.WaitPartitionDown, "", "partition %s does not exist any more", name)
			continue
		}
		e.settling(c, p)
		for _, own := range parts {
			e.partition(c, p, j, own)
		}
	}
	e.preemption(c, j)
	if j.Het != nil {
		e.together(c, j)
	}
	e.expected(s, now, id)
	if ahead := aheadOf(s, j); ahead > 0 && j.Held == cluster.NotHeld {
		e.add(cluster.WaitPriority, "", "%s ahead in the queue", count(ahead, "job is", "jobs are"))
	}
	return e
}

// aheadOf counts the jobs that go before one, a heterogeneous one as its leader.
func aheadOf(s *cluster.Snapshot, j *cluster.Job) (n int) {
	first := leaderOf(j)
	for o := range s.Queue() {
		if o.ID == first {
			break
		}
		if o.Held == cluster.NotHeld && !o.Follows() {
			n++
		}
	}
	return n
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// notReady explains what follows from the record itself.
func (e *Explanation) notReady(s *cluster.Snapshot, j *cluster.Job, why cluster.Reason) {
	switch why {
	case cluster.WaitBegin:
		begin := j.Eligible
		if j.Spec.Begin.After(begin) {
			begin = j.Spec.Begin
		}
		e.add(why, "", "it may not start before %s", begin.Format(time.DateTime))
	case cluster.WaitDependency, cluster.WaitDependencyNever:
		hint := ""
		if why == cluster.WaitDependencyNever {
			hint = fmt.Sprintf("scancel %d, or change it: %s", leaderOf(j), updateHint([]*cluster.Job{j}, "dependency="))
		}
		var terms []string
		for _, d := range j.Depends.Terms {
			terms = append(terms, termText(s, j, d))
		}
		e.add(why, hint, "%s", strings.Join(terms, map[bool]string{false: ", and ", true: ", or "}[j.Depends.Any]))
	default:
		e.add(why, fmt.Sprintf("scontrol release %d", j.ID), "it is held")
	}
}

// termText tells one dependency term with the states of the jobs it waits for.
func termText(s *cluster.Snapshot, j *cluster.Job, d cluster.Depend) string {
	if d.Type == cluster.SingletonOf {
		return fmt.Sprintf("singleton: an older job named %s of user %s is not over", j.Spec.Name, j.Spec.User)
	}
	head := fmt.Sprintf("%s:%d", d.Type, d.Job)
	if d.Task != cluster.TaskAny {
		head += fmt.Sprintf("_%d", d.Task)
	}
	if d.Plus > 0 {
		head += fmt.Sprintf("+%d", int(d.Plus.Minutes()))
	}
	tally := map[string]int{}
	for _, p := range s.Find(cluster.Ref{Job: d.Job}) {
		if d.Task == cluster.TaskAny || p.Task == d.Task || p.Tasks.Has(d.Task) {
			tally[stateText(p)] += max(p.Tasks.Len(), 1)
		}
	}
	var states []string
	for _, name := range stateOrder {
		if n := tally[name]; n > 1 {
			states = append(states, fmt.Sprintf("%d %s", n, name))
		} else if n == 1 {
			states = append(states, name)
		}
	}
	if len(states) == 0 {
		states = []string{"gone"}
	}
	text := fmt.Sprintf("%s: job %d is %s", head, d.Job, strings.Join(states, ", "))
	if d.Failed {
		text += ", so it can never be met"
	}
	return text
}

var stateOrder = []string{"pending", "starting", "running", "suspended", "ending", "completed", "failed", "cancelled", "timed out", "over"}

func stateText(j *cluster.Job) string {
	if j.Phase != cluster.Ended {
		return stateOrder[j.Phase]
	}
	switch j.Outcome {
	case cluster.Completed:
		return "completed"
	case cluster.Failed, cluster.NodeFailed, cluster.OutOfMemory:
		return "failed"
	case cluster.Cancelled:
		return "cancelled"
	case cluster.TimedOut:
		return "timed out"
	}
	return "over"
}

// partition explains what keeps the job from starting in one partition.
func (e *Explanation) partition(c *cycle, p *cluster.Partition, j *cluster.Job, own *keptNodes) {
	switch r := c.closed(p, j); r {
	case cluster.NoReason:
	case cluster.WaitPartitionTime:
		e.add(r, "", "partition %s allows %s, the job asks for %s", p.Name, limitText(p.MaxTime), limitText(j.Limit))
		return
	case cluster.WaitPartitionDown, cluster.WaitPartitionInactive:
		e.add(r, "", "partition %s is %s", p.Name, p.State)
		return
	default:
		e.add(r, "scontrol update partition, or another account or QOS", "%s", r)
		return
	}
	over := e.overruns(c, p, j, nil)
	q := c.ask(p, j, own)
	switch q.why {
	case cluster.NoReason:
	case cluster.WaitPartitionNodes:
		if q.want.minNodes < q.want.least {
			e.add(q.why, "", "partition %s wants %s a job at least, the job asks for %d", p.Name, count(q.want.least, "node", "nodes"), q.want.minNodes)
		} else if q.want.upTo > 0 {
			e.add(q.why, "", "partition %s allows %s a job, the job asks for %d", p.Name, count(q.want.upTo, "node", "nodes"), q.want.minNodes)
		} else {
			e.add(q.why, "", "partition %s has %s, the job asks for %d", p.Name, count(countNodes(c.s, p), "node", "nodes"), q.want.minNodes)
		}
		return
	case cluster.WaitNodeNotAvail:
		e.add(q.why, "", "it must run on %s, not all of which are in service", strings.Trim(fmt.Sprint(q.want.wanted), "[]"))
		e.away(c.s, p)
		return
	default:
		e.add(q.why, "", "partition %s can not run it even when empty: %s", p.Name, q.want.shortage(c.idle(), off{}))
		e.away(c.s, p)
		return
	}
	away := c.off(own, j, c.now, until(c.now, j.Limit))
	if a := q.want.place(c.row(q.want.over), away); a != nil {
		if !over {
			e.overruns(c, p, j, a)
		}
		return
	}
	if note := c.reservedNote(q, j); note != "" {
		e.reserved(c, q, j, note)
	} else {
		e.add(cluster.WaitResources, "", "partition %s: %s", p.Name, q.want.shortage(c.row(q.want.over), away))
		e.away(c.s, p)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func limitText(d time.Duration) string {
	if d == 0 || d == cluster.Unlimited {
		return "unlimited time"
	}
	return d.String()
}

func countNodes(s *cluster.Snapshot, p *cluster.Partition) (n int) {
	for range s.PartitionNodes(p) {
		n++
	}
	return n
}

// away names the partition's nodes that are out of service, grouped by why.
func (e *Explanation) away(s *cluster.Snapshot, p *cluster.Partition) {
	groups := map[string][]string{}
	n := 0
	for node := range s.PartitionNodes(p) {
		if node.Usable() {
			continue
		}
		what := "not responding"
		switch {
		case node.Down:
			what = "down"
		case node.Drain:
			what = "drained"
		case node.Failing:
			what = "failing"
		}
		if node.Reason != "" {
			what += " (" + node.Reason + ")"
		}
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
		names := groups[k]
		text := strings.Join(names[:min(len(names), 3)], ",")
		if len(names) > 3 {
			text += fmt.Sprintf(" and %d more", len(names)-3)
		}
		parts = append(parts, text+" "+k)
	}
	e.add(cluster.WaitNodesDown, "", "partition %s: %s out of service: %s", p.Name, count(n, "node is", "nodes are"), strings.Join(parts, "; "))
}

// shortage tells on how many nodes there is room, beside what the job must keep off, and which resource is short on the others.
func (d *demand) shortage(p *pool, away off) string {
	room, tasks, nodes := 0, 0, 0
	lack := map[string]int{}
	for _, i := range p.members(d.part) {
		nodes++
		if away.nodes.has(i) {
			lack["reserved for others, or not of its reservation"]++
			continue
		}
		sp := away.cpus.within(int32(i), &p.spaces[i])
		if n := d.capacity(sp); n > 0 {
			room, tasks = room+1, tasks+n
			continue
		}
		lack[d.lacking(sp)]++
	}
	var parts []string
	for _, what := range []string{"reserved for others, or not of its reservation", "excluded", "of another make or feature", "with jobs of other users", "in use (it wants whole nodes)", "short of CPUs", "short of GPUs", "short of memory"} {
		if n := lack[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	text := fmt.Sprintf("it wants %s with %s of %s each", count(d.minNodes, "node", "nodes"), count(d.tasks, "task", "tasks"), count(d.cpusPer, "CPU", "CPUs"))
	if g := d.gpuText(); g != "" {
		text += " and " + g
	}
	text += d.memText() + fmt.Sprintf("; of %d nodes in service %s room now", nodes, count(room, "has", "have"))
	if room > 0 {
		text += fmt.Sprintf(" (for %s)", count(min(tasks, 1<<30), "task", "tasks"))
	}
	if parts != nil {
		text += ", " + strings.Join(parts, ", ")
	}
	return text
}

func (d *demand) memText() string {
	switch {
	case !d.memAlloc:
		return ""
	case d.mem.Per == cluster.MemPerNode && d.mem.MB == 0:
		return ", with all memory of a node"
	case d.mem.MB == 0:
		return ""
	}
	return fmt.Sprintf(", with %d MB a %s", d.mem.MB, [...]string{"node", "node", "CPU", "GPU"}[d.mem.Per&3])
}

func (d *demand) gpuText() string {
	var parts []string
	add := func(list []cluster.GRES, per string) {
		for _, g := range list {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", g.Count, cmp.Or(g.Type, "")))+" GPUs "+per)
		}
	}
	add(d.gpuNode, "a node")
	add(d.gpuTask, "a task")
	add(d.gpuJob, "in all")
	return strings.Join(parts, ", ")
}

// lacking names the first thing that keeps a task off the node.
func (d *demand) lacking(sp *space) string {
	cpus := sp.free
	switch {
	case d.not[sp.node.Name]:
		return "excluded"
	case !d.may(sp.node):
		return "of another make or feature"
	case sp.closed != 0 && sp.closed != int64(d.user)+1, d.alone && !d.own(sp):
		return "with jobs of other users"
	case d.exclusive && sp.busy:
		return "in use (it wants whole nodes)"
	case cpus < d.leastCPUs(sp) || cpus < max(d.cpusPer, 1)*max(min(d.perNode, d.tasks), b2i(d.single)*d.tasks, 1) && !d.overcommit:
		return "short of CPUs"
	case d.cpusByMem(sp, cpus) < max(d.minCPUs, d.cpusPer):
		return "short of memory"
	}
	return "short of GPUs"
}
