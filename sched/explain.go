package sched

import (
	"cmp"
	"fmt"
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
			"%s of the array, at most %d run at once; %s", count(s.RunningTasks(j.ArrayID), "task runs", "tasks run"), a.Limit, count(j.Tasks.Len(), "task waits", "tasks wait"))
	}
	for _, a := range j.Avoid {
		e.add(cluster.EndLaunchFailure, fmt.Sprintf("scontrol release %d", j.ID), "node %s could not launch it, it does not go there again: %s", a.Node, a.Why)
	}
	c := newCycle(s, now)
	parts, _ := c.parts(j, nil)
	if len(parts) == 0 {
		e.noReservation(s, j)
	}
	e.licenses(c, j)
	for _, name := range j.Spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			e.add(cluster.WaitPartitionDown, elsewhere(j), "partition %s does not exist any more", name)
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
	return fmt.Sprintf("%d %s", n, plural(n, one, many))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// held words whose doing it is that a job is held; any other reason stands for itself.
var held = map[cluster.Reason]string{
	cluster.WaitHeldUser:         "it is held",
	cluster.WaitHeldAdmin:        "it is held by an administrator, who alone can release it",
	cluster.WaitRequeueHeld:      "it was put back into the queue and is held there",
	cluster.WaitLaunchFailedHeld: "it is held, because no node could launch it",
	cluster.WaitResvDeleted:      "its reservation is over or was deleted, and it is held by the system since; an administrator can release it",
}

// notReady explains what follows from the record itself.
func (e *Explanation) notReady(s *cluster.Snapshot, j *cluster.Job, why cluster.Reason) {
	switch why {
	case cluster.WaitBegin:
		hint := "" // a requeued job waits all the same
		if j.Spec.Begin.After(j.Eligible.Add(-1)) {
			hint = updateHint([]*cluster.Job{j}, "starttime=now")
		}
		e.add(why, hint, "it may not start before %s", later(j.Eligible, j.Spec.Begin).Format(time.DateTime))
	case cluster.WaitDependency, cluster.WaitDependencyNever:
		hint := ""
		if why == cluster.WaitDependencyNever {
			hint = fmt.Sprintf("scancel %s, or change it: %s", wholeText(j), updateHint([]*cluster.Job{j}, "dependency="))
		}
		var terms []string
		for _, d := range j.Depends.Terms {
			terms = append(terms, termText(s, j, d))
		}
		e.add(why, hint, "%s", strings.Join(terms, map[bool]string{false: ", and ", true: ", or "}[j.Depends.Any]))
	default:
		text, ok := held[why]
		if !ok {
			text = fmt.Sprintf("it is held: %s", why)
		}
		e.add(why, "scontrol release "+wholeText(j), "%s", text)
	}
}

// partition explains what keeps the job from starting in one partition.
func (e *Explanation) partition(c *cycle, p *cluster.Partition, j *cluster.Job, own *keptNodes) {
	switch r := c.closed(p, j); r {
	case cluster.NoReason:
	case cluster.WaitPartitionTime:
		e.add(r, updateHint([]*cluster.Job{j}, fmt.Sprintf("timelimit=%d", int(p.MaxTime.Minutes()))), "partition %s allows %s, the job asks for %s", p.Name, spanText(p.MaxTime), spanText(j.Limit))
		return
	case cluster.WaitPartitionNodes:
		e.size(c, p, j, p.Size(c.s), 0)
		return
	case cluster.WaitPartitionDown, cluster.WaitPartitionInactive:
		e.add(r, fmt.Sprintf("%s; an administrator: scontrol update partitionname=%s state=up", elsewhere(j), p.Name), "partition %s is %s, it starts no jobs", p.Name, p.State)
		return
	default:
		if _, who, ok := strings.Cut(string(p.Barred(j.Spec)), "("); ok {
			e.add(r, elsewhere(j)+", or account=NAME, or qos=NAME", "partition %s", strings.TrimSuffix(who, ")"))
			return
		}
		e.add(r, "", "%s", r)
		return
	}
	over := e.overruns(c, p, j, nil)
	q := c.ask(p, j, own)
	switch q.why {
	case cluster.NoReason:
	case cluster.WaitPartitionNodes:
		e.size(c, p, j, cmp.Or(q.want.upTo, p.Size(c.s)), q.want.least)
		return
	case cluster.WaitNodeNotAvail:
		e.unusable(c.s, j, q.want.wanted)
		return
	default:
		e.add(q.why, "ask for less, or for another partition: "+elsewhere(j), "partition %s can not run it even when empty: %s", p.Name, q.want.shortage(c.idle(), off{}))
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
	if c.reservedNote(q, j) != "" {
		e.reserved(c, q, j)
	} else {
		e.add(cluster.WaitResources, "", "partition %s: %s", p.Name, q.want.shortage(c.row(q.want.over), away))
		e.away(c.s, p)
	}
}

// size explains that a partition takes jobs of other numbers of nodes: at least some, at most some.
func (e *Explanation) size(c *cycle, p *cluster.Partition, j *cluster.Job, most, least int) {
	n, verb := most, fmt.Sprintf("allows %s a job", count(most, "node", "nodes"))
	switch {
	case j.Spec.MinNodes < least:
		n, verb = least, fmt.Sprintf("wants %s a job at least", count(least, "node", "nodes"))
	case most == p.Size(c.s):
		verb = "has " + count(most, "node", "nodes")
	}
	e.add(cluster.WaitPartitionNodes, updateHint([]*cluster.Job{j}, fmt.Sprintf("numnodes=%d", n))+", or another partition: partition=NAME", "partition %s %s, the job asks for %d", p.Name, verb, j.Spec.MinNodes)
}

// elsewhere is the command that takes a job to other partitions.
func elsewhere(j *cluster.Job) string { return updateHint([]*cluster.Job{j}, "partition=NAME") }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
