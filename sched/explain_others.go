package sched

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
)

// What is told of other jobs and of reservations that keep a job from nodes.

// explainCompleting explains that completing jobs are waited for, in the partition or in one that shares nodes with it.
func (e *Explanation) explainCompleting(c *cycle, p *cluster.Partition) {
	cfg := c.s.Config()
	at := slices.IndexFunc(cfg.Partitions, func(o cluster.Partition) bool {
		q, ok := c.s.Partition(o.Name)
		return ok && c.completing[q] != nil && (q == p || c.completing[p] == nil && shareNodes(p, q))
	})
	if at < 0 {
		return
	}
	own, _ := c.s.Partition(cfg.Partitions[at].Name)
	j, what := c.completing[own], "nothing starts in partition "+p.Name
	if own != p {
		what = fmt.Sprintf("nothing starts on nodes of partition %s that are of partition %s too", p.Name, own.Name)
	}
	if cfg.CompleteLocal {
		what += " (reduce_completing_frag)"
	}
	e.addCause("None", fmt.Sprintf("scontrol show job %d", j.ID),
		"%s while a job ends (CompleteWait=%d in slurm.conf): job %d of %s does, and is waited for until %s at most",
		what, int(cfg.CompleteWait.Seconds()), j.ID, j.Spec.User, cfg.SettlesUntil(j).Format(time.DateTime))
}

// explainPreemption explains who leaves for a job, whom it lets go first, and why it makes nobody leave now.
func (e *Explanation) explainPreemption(c *cycle, j *cluster.Job) {
	if c.preemption == nil {
		return
	}
	if c.s.Yields(j, c.now) {
		e.addCause(cluster.WaitPriority, "", "it made room for job %d, which goes first", j.Preempt.By)
	}
	j = c.hetMembers(j)[0] // others leave for all of a heterogeneous job
	var ids []string
	for _, v := range c.preemption.leavingFor[j.ID] {
		ids = append(ids, fmt.Sprint(v.ID))
	}
	if ids != nil {
		e.addCause(cluster.WaitResources, "", "%s to leave for it: %s", count(len(ids), "job is", "jobs are"),
			strings.Join(ids, ", "))
	}
	if next := j.Evicted.Next(); next.After(c.now) && ids == nil {
		e.addCause(cluster.WaitResources, "", "it has made others leave %s, last at %s, and did not stay running: it may again from %s on",
			count(j.Evicted.Count, "time", "times"), j.Evicted.Last.Format(time.DateTime), next.Format(time.DateTime))
	}
}

// explainNoReservation explains that none of the reservations that a job asks for is in force.
func (e *Explanation) explainNoReservation(s *cluster.Snapshot, j *cluster.Job) {
	for _, name := range j.Spec.ResvNames() {
		switch r, ok := s.Reservation(name); {
		case !ok:
			e.addCause(cluster.WaitReservation, updateHint([]*cluster.Job{j}, "reservationname="),
				"reservation %s does not exist any more", name)
		case !r.Allows(j.Spec):
			e.addCause(cluster.WaitReservation, "", "reservation %s is not for user %s and account %s", name, j.Spec.User,
				j.Spec.Account)
		default:
			e.addCause(cluster.WaitReservation, "", "reservation %s begins at %s", name, r.Start.Format(time.DateTime))
		}
	}
}

// explainReserved explains which reservations keep a job from nodes that are free, and what would help.
func (e *Explanation) explainReserved(c *cycle, shape *jobShape, j *cluster.Job) {
	for _, rn := range c.reserved {
		if rn == shape.reservation || !rn.Keeps(c.now, endOf(c.now, j.Limit)) || rn.Lets(j.Spec) {
			continue
		}
		hint := ""
		if left := rn.Start.Sub(c.now).Truncate(time.Minute); left > 0 {
			hint = updateHint(c.detainedComponents(j, rn), fmt.Sprintf("timelimit=%d", int(left.Minutes())))
		} else if rn.MaxStartDelay > 0 {
			hint = fmt.Sprintf("sbatch --signal=R:SIGNAL@%d or less: it may run there until a job of the reservation wants its nodes",
				int(rn.MaxStartDelay.Seconds()))
		}
		e.addCause(cluster.WaitNodeNotAvail, hint, "reservation %s%s has %s from %s to %s, and the job may run until %s",
			rn.Name, map[bool]string{true: ", for maintenance,"}[rn.Flags&cluster.ResvMaint != 0],
			rn.amountText(c.s), rn.Start.Format(time.DateTime), rn.End.Format(time.DateTime), endOf(c.now,
				j.Limit).Format(time.DateTime))
	}
}

// amountText says how much a reservation has.
func (rn *reservedNodes) amountText(s *cluster.Snapshot) string {
	text := count(len(s.Reserved(rn.Reservation)), "node", "nodes")
	if rn.CPUs == nil {
		return text
	}
	n := 0
	for _, ids := range rn.CPUs {
		n += ids.Len()
	}
	return count(n, "CPU", "CPUs") + " of " + text
}

// detainedComponents are the components that may run into a reservation which keeps them from nodes that are free; a
// plain job is its own only one.
func (c *cycle) detainedComponents(j *cluster.Job, rn *reservedNodes) []*cluster.Job {
	return slices.DeleteFunc(c.hetMembers(j), func(o *cluster.Job) bool {
		if !rn.Keeps(c.now, endOf(c.now, o.Limit)) || rn.Lets(o.Spec) {
			return true
		}
		shapes, _, _ := c.feasible(o, nil)
		return !slices.ContainsFunc(shapes, func(shape *jobShape) bool {
			return rn != shape.reservation &&
				c.reservedNote(shape, o) != ""
		})
	})
}
