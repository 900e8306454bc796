package cluster

import (
	"time"
)

// Due is what the clock alone demands at now.
func Due(s *Snapshot, now time.Time) []Command {
	jobs := jobsDue(s, now)
	out := jobs.commands()
	out = append(out, cronDue(s, now)...)
	if nevers := neverSatisfied(s); nevers != nil {
		out = append(out, &Expire{Jobs: nevers, Why: WaitDependencyNever})
	}
	idle := idleBlobs(s, now)
	if jobs.purge != nil || idle != nil || sessionsDue(s, now) {
		out = append(out, &Purge{Jobs: jobs.purge, Blobs: idle})
	}
	programs, _ := triggersDue(&s.tables, now)
	for _, c := range []Command{s.resvsDue(now), s.rebootsDue(now), resumesDue(&s.tables, now),
		s.turnsDue(now), programs} {
		if c != nil {
			out = append(out, c)
		}
	}
	if c, _ := s.powerDue(now); c != nil {
		out = append(out, c)
	}
	if c, _ := s.retainDue(now); c != nil {
		out = append(out, c)
	}
	if hasCome(s.decayDue(), now) {
		out = append(out, &Decay{})
	}
	return out
}

// dueJobs are the jobs of which the clock demands something, by what that is.
type dueJobs struct {
	over   []JobID // their time limit is reached
	late   []JobID // their deadline is missed
	leave  []JobID // they had a grace, and make room now
	remind []JobID // their users are to be told how much of their time is over
	purge  []JobID
	count  int
}

// jobsDue lists them, as many as go into one command.
func jobsDue(s *Snapshot, now time.Time) (due dueJobs) {
	s.timers.Scan(func(k timerKey) bool {
		if k.at.After(now) || due.count >= maxPurge {
			return false
		}
		j, _ := s.jobs.Get(k.id)
		if list := due.listOf(j, s.config, now); list != nil {
			*list = append(*list, j.ID)
			due.count++
		}
		return true
	})
	return due
}

// dueRows are what the clock may demand of a job, the first that holds.
var dueRows = [...]struct {
	is   func(j *Job, c *Config, now time.Time) bool
	list func(*dueJobs) *[]JobID
}{
	{
		func(j *Job, _ *Config, _ time.Time) bool { return j.Phase == Ended },
		func(d *dueJobs) *[]JobID { return &d.purge },
	},
	{
		func(j *Job, _ *Config, now time.Time) bool { return hasCome(j.deadline(), now) },
		func(d *dueJobs) *[]JobID { return &d.late },
	},
	{
		func(j *Job, _ *Config, now time.Time) bool {
			return j.Phase > Pending && j.Phase < Ending && j.Preempt.ends(now)
		},
		func(d *dueJobs) *[]JobID { return &d.leave },
	},
	{
		func(j *Job, c *Config, now time.Time) bool {
			return j.Phase != Pending && hasCome(j.EndLimit(c), now) && !Configuring(j)
		},
		func(d *dueJobs) *[]JobID { return &d.over },
	},
	{
		func(j *Job, c *Config, now time.Time) bool {
			return j.Phase == Running && hasCome(j.nextNotice(c), now)
		},
		func(d *dueJobs) *[]JobID { return &d.remind },
	},
}

// listOf is where a job belongs; nil if nothing is to be done about it.
func (d *dueJobs) listOf(j *Job, c *Config, now time.Time) *[]JobID {
	for i := range dueRows {
		if dueRows[i].is(j, c, now) {
			return dueRows[i].list(d)
		}
	}
	return nil
}

// commands are what is to be done about the jobs, but for those that are purged.
func (d *dueJobs) commands() (out []Command) {
	ends := []Expire{
		{Jobs: d.over, Why: EndTimeLimit},
		{Jobs: d.late, Why: EndDeadline},
		{Jobs: d.leave, Why: EndPreempted},
	}
	for i := range ends {
		if ends[i].Jobs != nil {
			out = append(out, &ends[i])
		}
	}
	if d.remind != nil {
		out = append(out, &Remind{Jobs: d.remind})
	}
	return out
}

// idleBlobs are the texts that nobody has referred to for a while.
func idleBlobs(s *Snapshot, now time.Time) (idle []BlobHash) {
	s.idle.Scan(func(h BlobHash, b *Blob) bool {
		if now.Sub(b.Added) >= idleBlobAge {
			idle = append(idle, h)
		}
		return len(idle) < maxPurge
	})
	return idle
}

// neverSatisfied lists pending jobs to cancel because their dependency cannot come true.
func neverSatisfied(s *Snapshot) (out []JobID) {
	last := JobID(0)
	s.depends.Scan(func(k pairKey) bool {
		j, ok := s.jobs.Get(k.b)
		if !ok || j.ID == last || !j.DependNever() {
			return true
		}
		last = j.ID
		kill := s.config.KillInvalidDepend
		if j.Spec.KillInvalidDepend != nil {
			kill = *j.Spec.KillInvalidDepend
		}
		if kill {
			out = append(out, j.ID)
		}
		return len(out) < maxPurge
	})
	return out
}

// NextTimer is the first moment after now at which the clock alone changes something; zero if never.
func (t *tables) NextTimer(now time.Time) (at time.Time) {
	t.timers.Ascend(timerKey{at: now.Add(1)}, func(k timerKey) bool {
		at = k.at
		return false
	})
	next := func(x time.Time) {
		if x.After(now) {
			at = sooner(at, x)
		}
	}
	if _, b, ok := t.idle.Min(); ok {
		next(b.Added.Add(idleBlobAge))
	}
	next(t.nextResv(now))
	next(t.nextTurn(now))
	next(t.decayDue())
	_, retain := t.retainDue(now)
	next(retain)
	_, power := t.powerDue(now)
	next(power)
	_, trigger := triggersDue(t, now)
	next(trigger)
	next(t.nextSettled(now))
	for n := range valuesOf(t.timed) {
		next(t.rebootEnd(n))
		next(n.ResumeAt)
	}
	return at
}

// SettlesUntil is how long a job that ends keeps others from starting (CompleteWait); zero: it does not.
func (c *Config) SettlesUntil(j *Job) time.Time {
	if c.CompleteWait == 0 || j.Phase != Ending {
		return time.Time{}
	}
	return j.EndingAt.Add(c.CompleteWait)
}

// nextSettled is when the next job that ends does so no more, if it has not ended by then; zero: none does.
func (t *tables) nextSettled(now time.Time) (at time.Time) {
	if t.config.CompleteWait == 0 {
		return at
	}
	for j := range t.Live() {
		if x := t.config.SettlesUntil(j); x.After(now) {
			at = sooner(at, x)
		}
	}
	return at
}
