package explain

import (
	"fmt"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/place"
)

// Texts about other jobs and reservations that keep a job from nodes.

// explainCompleting explains that completing jobs are waited for, in the partition or in one that shares nodes with it.
func (e *Explanation) explainCompleting(q *sched.Inquiry, cfg *cluster.Config, p *cluster.Partition) {
	own, j := q.Completing(p)
	if j == nil {
		return
	}
	what := "nothing starts in partition " + p.Name
	if own != p {
		what = fmt.Sprintf("nothing starts on nodes of partition %s that are of partition %s too", p.Name, own.Name)
	}
	if cfg.CompleteLocal {
		what += " (reduce_completing_frag)"
	}
	who, hint := hiddenJob, ""
	if e.maySee(j) {
		who = fmt.Sprintf("job %d of %s", j.ID, j.Spec.User)
		hint = fmt.Sprintf("scontrol show job %d", j.ID)
	}
	e.addCause("None", hint,
		"%s while a job ends (CompleteWait=%d in slurm.conf): %s does, and is waited for until %s at most",
		what, int(cfg.CompleteWait.Seconds()), who, cfg.SettlesUntil(j).Format(time.DateTime))
}

// explainPreemption explains who leaves for a job, whom it lets go first, and why it makes nobody leave now.
func (e *Explanation) explainPreemption(q *sched.Inquiry, s *cluster.Snapshot, now time.Time, j *cluster.Job) {
	leaving, ok := q.Leaving()
	if !ok {
		return
	}
	if s.Yields(j, now) {
		e.addCause(cluster.WaitPriority, "", "it made room for %s, which goes first", e.firstText(s, j.Preempt.By))
	}
	j = q.Leader() // others leave for all of a heterogeneous job
	var ids []string
	for _, v := range leaving {
		if e.maySee(v) {
			ids = append(ids, fmt.Sprint(v.ID))
		}
	}
	if hidden := len(leaving) - len(ids); hidden > 0 {
		ids = append(ids, fmt.Sprintf("%d of other users", hidden))
	}
	if ids != nil {
		e.addCause(cluster.WaitResources, "", "%s to leave for it: %s",
			place.Count(len(leaving), "job is", "jobs are"), strings.Join(ids, ", "))
	}
	if next := j.Evicted.Next(); next.After(now) && ids == nil {
		e.addCause(cluster.WaitResources, "",
			"it has made others leave %s, last at %s, and did not stay running: it may again from %s on",
			place.Count(j.Evicted.Count, "time", "times"), j.Evicted.Last.Format(time.DateTime),
			next.Format(time.DateTime))
	}
}

// firstText names the job that another one made room for; it may be gone.
func (e *Explanation) firstText(s *cluster.Snapshot, id cluster.JobID) string {
	if j, ok := s.Job(id); ok {
		return e.jobText(j)
	}
	return "another job"
}

// explainNoReservation explains that none of the reservations that a job asks for is active.
func (e *Explanation) explainNoReservation(s *cluster.Snapshot, j *cluster.Job) {
	for _, name := range j.Spec.ResvNames() {
		switch r, ok := s.Reservation(name); {
		case !ok:
			e.addCause(cluster.WaitReservation, updateHint([]*cluster.Job{j}, "reservationname="),
				"reservation %s does not exist any more", name)
		case !r.Allows(j.Spec):
			e.addCause(cluster.WaitReservation, "", "reservation %s is not for user %s and account %s", name,
				j.Spec.User, j.Spec.Account)
		default:
			e.addCause(cluster.WaitReservation, "", "reservation %s begins at %s", name, r.Start.Format(time.DateTime))
		}
	}
}

// explainReserved explains which reservations keep a job from nodes that are free, and what would help.
func (e *Explanation) explainReserved(a *sched.Prospect, s *cluster.Snapshot, now time.Time, j *cluster.Job) {
	for _, r := range a.InTheWay() {
		hint := ""
		if left := r.Start.Sub(now).Truncate(time.Minute); left > 0 {
			hint = updateHint(a.Detained(r), fmt.Sprintf("timelimit=%d", int(left.Minutes())))
		} else if r.MaxStartDelay > 0 {
			hint = fmt.Sprintf("sbatch --signal=R:SIGNAL@%d or less: "+
				"it may run there until a job of the reservation wants its nodes",
				int(r.MaxStartDelay.Seconds()))
		}
		e.addCause(cluster.WaitNodeNotAvail, hint,
			"%s%s has %s from %s to %s, and the job may run until %s",
			e.reservationText(r), map[bool]string{true: ", for maintenance,"}[r.Flags&cluster.ResvMaint != 0],
			amountText(s, r), r.Start.Format(time.DateTime), r.End.Format(time.DateTime),
			sched.EndOf(now, j.Limit).Format(time.DateTime))
	}
}

// amountText says how much a reservation has.
func amountText(s *cluster.Snapshot, r *cluster.Reservation) string {
	text := place.Count(len(s.Reserved(r)), "node", "nodes")
	if r.CPUs == nil {
		return text
	}
	n := 0
	for _, ids := range r.CPUs {
		n += ids.Len()
	}
	cpus := place.Count(n, "CPU", "CPUs")
	if r.GPUs == nil {
		return cpus + " of " + text
	}
	gpus := 0
	for _, ids := range r.GPUs {
		gpus += ids.Len()
	}
	return place.Count(gpus, "GPU", "GPUs") + " and " + cpus + " of " + text
}
