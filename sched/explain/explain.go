// Package explain says to people why a job waits, when and where it is to start, who holds what it is to get there, and
// with which changes it would start sooner.
//
// Of what keeps a job, package sched tells the facts (sched.Inquiry); here they become sentences, with the commands
// that help. Nothing here decides.
package explain

import (
	"fmt"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/place"
)

// Job says why a pending job waits, and when it is to start, to somebody who may see all jobs.
func Job(s *cluster.Snapshot, now time.Time, id cluster.JobID) Explanation {
	return JobFor(s, now, id, nil)
}

// JobFor is Job for somebody who may see some jobs: the causes name no other. nil: all.
func JobFor(s *cluster.Snapshot, now time.Time, id cluster.JobID, sees Sight) Explanation {
	e := CausesFor(s, now, id, sees)
	then := Foretell(s, now, id)
	then.Causes, then.Notes = e.Causes, e.Notes
	return then
}

// Foretell says when and where a pending job is to start, and who holds what it is to get there. Of a job deep in the
// queue that takes as long as a pass.
func Foretell(s *cluster.Snapshot, now time.Time, id cluster.JobID) (e Explanation) {
	if j, ok := s.Job(id); ok && j.Phase == cluster.Pending && j.Held == cluster.NotHeld {
		e.explainStart(s, now, id)
	}
	return e
}

// CausesFor says why a pending job waits, to somebody who may see some jobs; nil: all.
func CausesFor(s *cluster.Snapshot, now time.Time, id cluster.JobID, sees Sight) Explanation {
	e := Explanation{sees: sees}
	j, ok := s.Job(id)
	if !ok || j.Phase != cluster.Pending {
		return e
	}
	if _, why := s.Ready(j, now); why != cluster.NoReason {
		e.explainNotReady(s, j, why)
	}
	if a := j.Spec.Array; a != nil && !j.Tasks.Empty() && a.Limit > 0 && s.RunningTasks(j.ArrayID) >= a.Limit {
		e.addCause(cluster.WaitArrayLimit, fmt.Sprintf("scontrol update jobid=%d arraytaskthrottle=N", j.ArrayID),
			"%s, at most %d at once; %s",
			place.Count(s.RunningTasks(j.ArrayID), "task of the array runs", "tasks of the array run"), a.Limit,
			place.Count(j.Tasks.Len(), "task waits", "tasks wait"))
	}
	for _, a := range j.Avoid {
		e.addCause(cluster.EndLaunchFailure, fmt.Sprintf("scontrol release %d", j.ID),
			"node %s could not launch it, it does not go there again: %s", a.Node, a.Why)
	}
	e.Notes = s.UnheldOf(j)
	q := sched.Inquire(s, now, j)
	if q.NoReservation() {
		e.explainNoReservation(s, j)
	}
	e.licenses(q, s, now, j)
	for _, name := range j.Spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			e.addCause(cluster.WaitPartitionDown, otherPartitionHint(j), "partition %s does not exist any more", name)
			continue
		}
		e.explainCompleting(q, s.Config(), p)
		for _, a := range q.Prospects(p) {
			e.explainProspect(a, s, now, j)
		}
	}
	e.explainPreemption(q, s, now, j)
	if j.Het != nil {
		e.explainComponents(q.Together(), s, now, j)
	}
	if ahead := aheadOf(s, j); ahead > 0 && j.Held == cluster.NotHeld {
		e.addCause(cluster.WaitPriority, "", "%s ahead in the queue", place.Count(ahead, "job is", "jobs are"))
	}
	return e
}

// aheadOf counts the jobs that go before one, a heterogeneous one as its leader.
func aheadOf(s *cluster.Snapshot, j *cluster.Job) (n int) {
	first := j.ID
	if j.Het != nil {
		first = j.Het.ID
	}
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

// heldText words whose doing it is that a job is held; any other reason stands for itself.
func heldText(why cluster.Reason) string {
	switch why {
	case cluster.WaitHeldUser:
		return "it is held"
	case cluster.WaitHeldAdmin:
		return "it is held by an administrator, who alone can release it"
	case cluster.WaitRequeueHeld:
		return "it was put back into the queue and is held there"
	case cluster.WaitLaunchFailedHeld:
		return "it is held, because no node could launch it"
	case cluster.WaitResvDeleted:
		return "its reservation is over or was deleted, and it is held by the system since; " +
			"an administrator can release it"
	}
	return fmt.Sprintf("it is held: %s", why)
}

// explainNotReady explains what follows from the record itself.
func (e *Explanation) explainNotReady(s *cluster.Snapshot, j *cluster.Job, why cluster.Reason) {
	switch why {
	case cluster.WaitBegin:
		hint := "" // a requeued job waits all the same
		if j.Spec.Begin.After(j.Eligible.Add(-1)) {
			hint = updateHint([]*cluster.Job{j}, "starttime=now")
		}
		e.addCause(why, hint, "it may not start before %s", sched.BeginsAt(j).Format(time.DateTime))
	case cluster.WaitDependency, cluster.WaitDependencyNever:
		hint := ""
		if why == cluster.WaitDependencyNever {
			hint = fmt.Sprintf("scancel %s, or change it: %s", hetText(j), updateHint([]*cluster.Job{j}, "dependency="))
		}
		var terms []string
		for _, d := range j.Depends.Terms {
			terms = append(terms, termText(s, j, d))
		}
		e.addCause(why, hint, "%s", strings.Join(terms, map[bool]string{false: ", and ", true: ", or "}[j.Depends.Any]))
	case cluster.WaitBurst, cluster.WaitStageIn, cluster.WaitBurstOperation:
		e.addCause(why, "scontrol show burstbuffer", "its burst buffer is %s", j.Burst.State)
	default:
		e.addCause(why, "scontrol release "+hetText(j), "%s", heldText(why))
	}
}

// explainProspect explains what keeps the job from starting in one partition.
func (e *Explanation) explainProspect(a *sched.Prospect, s *cluster.Snapshot, now time.Time, j *cluster.Job) {
	if why := a.Closed(); why != cluster.NoReason {
		e.explainClosed(s, a.Part, j, why)
		return
	}
	over := a.Overruns(nil)
	e.explainLimits(s, now, a.Part, over)
	switch why := a.Never(); why {
	case cluster.NoReason:
		e.explainShort(a, s, now, j, len(over) > 0)
	case cluster.WaitPartitionNodes:
		least, most := a.Bounds()
		e.explainSize(s, a.Part, j, most, least)
	case cluster.WaitNodeNotAvail:
		e.explainNamedNodes(s, j)
	default:
		e.addCause(why, "ask for less, or for another partition: "+otherPartitionHint(j),
			"partition %s cannot run it even when empty: %s", a.Part.Name, a.ShortIfEmpty())
		e.explainOutOfService(s, a.Part)
	}
}

// explainClosed explains why a partition starts nothing of the job.
func (e *Explanation) explainClosed(s *cluster.Snapshot, p *cluster.Partition, j *cluster.Job, why cluster.Reason) {
	switch why {
	case cluster.WaitPartitionTime:
		e.addCause(why, updateHint([]*cluster.Job{j}, fmt.Sprintf("timelimit=%d", int(p.MaxTime.Minutes()))),
			"partition %s allows %s, the job asks for %s", p.Name, spanText(p.MaxTime), spanText(j.Limit))
	case cluster.WaitPartitionNodes:
		e.explainSize(s, p, j, p.Size(s), 0)
	case cluster.WaitPartitionDown, cluster.WaitPartitionInactive:
		hint := fmt.Sprintf("%s; an administrator: scontrol update partitionname=%s state=up",
			otherPartitionHint(j), p.Name)
		e.addCause(why, hint, "partition %s is %s, it starts no jobs", p.Name, p.State)
	default:
		_, who, barred := strings.Cut(string(p.Barred(j.Spec)), "(")
		if !barred {
			e.addCause(why, "", "%s", why)
			return
		}
		e.addCause(why, otherPartitionHint(j)+", or account=NAME, or qos=NAME", "partition %s",
			strings.TrimSuffix(who, ")"))
	}
}

// explainShort explains what is not free for a job that the partition can run; over: limits that it would go over
// whatever it gets are told already.
func (e *Explanation) explainShort(a *sched.Prospect, s *cluster.Snapshot, now time.Time, j *cluster.Job, over bool) {
	fits := a.Fit()
	switch {
	case fits != nil && over:
	case fits != nil:
		e.explainLimits(s, now, a.Part, a.Overruns(fits))
	case a.Reserved():
		e.explainReserved(a, s, now, j)
	default:
		e.addCause(cluster.WaitResources, "", "partition %s: %s", a.Part.Name, a.Short())
		e.explainOutOfService(s, a.Part)
	}
}

// explainSize explains that a partition takes jobs of other numbers of nodes: at least some, at most some.
func (e *Explanation) explainSize(s *cluster.Snapshot, p *cluster.Partition, j *cluster.Job, most, least int) {
	n := most
	verb := fmt.Sprintf("allows %s a job", place.Count(most, "node", "nodes"))
	switch {
	case j.Spec.MinNodes < least:
		n, verb = least, fmt.Sprintf("wants %s a job at least", place.Count(least, "node", "nodes"))
	case most == p.Size(s):
		verb = "has " + place.Count(most, "node", "nodes")
	}
	hint := updateHint([]*cluster.Job{j}, fmt.Sprintf("numnodes=%d", n)) + ", or another partition: partition=NAME"
	e.addCause(cluster.WaitPartitionNodes, hint, "partition %s %s, the job asks for %d", p.Name, verb, j.Spec.MinNodes)
}

// otherPartitionHint is the command that takes a job to other partitions.
func otherPartitionHint(j *cluster.Job) string {
	return updateHint([]*cluster.Job{j}, "partition=NAME")
}
