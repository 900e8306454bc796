package cluster

import (
	"cmp"
	"time"
)

// Tables that derive from the records of jobs and nodes, and are kept in step with them. Decode makes them by the same
// functions.

// putJob puts a job's record, and has happen what follows from its change.
func (t *tx) putJob(j *Job) {
	old, _ := t.jobs.Get(j.ID)
	t.replaceJob(old, j)
	t.onUndo(func() { t.replaceJob(j, old) })
	t.announce(old, j)
}

func (t *tx) deleteJob(j *Job) {
	t.replaceJob(j, nil)
	t.onUndo(func() { t.replaceJob(nil, j) })
}

// replaceJob is the only place where the job table and what derives from it change.
func (t *tables) replaceJob(old, j *Job) {
	t.changes.add(StateChange{Job: cmp.Or(old, j).ID})
	if old != nil {
		t.unindex(old)
		if old.Phase == Ended && j != nil && j.Phase != Ended && j.ArrayID != 0 {
			t.unend(old)
		}
		if j == nil {
			t.jobs.Delete(old.ID)
			if c, ok := t.arrays.Get(old.ArrayID); ok && c.pending+c.live+c.ended == 0 {
				t.arrays.Delete(old.ArrayID)
			}
		}
	}
	if j != nil {
		t.jobs.Set(j.ID, j)
		t.index(j)
	}
	if t.config.counting() {
		t.recount(old, j)
	}
}

func (t *tables) unindex(j *Job) {
	switch {
	case j.Phase == Pending:
		if k, ok := t.queueAt.Delete(j.ID); ok {
			t.queue.Delete(k)
		}
		for _, d := range j.Depends.Terms {
			t.depends.Delete(pairKey{d.Job, j.ID})
		}
	case j.holds():
		t.live.Delete(j.ID)
	}
	t.countTask(j, -1)
	holdTexts(t, j, -1)
	if j.Phase != Ended {
		t.names.Delete(nameKey{j.Spec.UID, j.Spec.Name, j.ID})
	}
	if j.Key != "" {
		t.keys.Delete(submitKey{j.Spec.UID, j.Key, j.ID})
	}
	if j.ArrayID != 0 {
		t.members.Delete(pairKey{j.ArrayID, j.ID})
		task, start, begun := keysOfTask(j)
		if t.tasks.Delete(task); begun {
			t.starts.Delete(start)
		}
	}
	if ats, ok := t.timerAt.Delete(j.ID); ok {
		for _, at := range ats {
			t.timers.Delete(timerKey{at, j.ID})
		}
	}
}

func (t *tables) index(j *Job) {
	switch {
	case j.Phase == Pending:
		if !Elsewhere(j) {
			k := t.keyOf(j)
			t.queue.Set(k)
			t.queueAt.Set(j.ID, k)
		}
		for _, d := range j.Depends.Terms {
			t.depends.Set(pairKey{d.Job, j.ID})
		}
	case j.holds():
		t.live.Set(j.ID, j)
	}
	t.countTask(j, 1)
	holdTexts(t, j, 1)
	if j.Phase != Ended {
		t.names.Set(nameKey{j.Spec.UID, j.Spec.Name, j.ID})
	}
	if j.Key != "" {
		t.keys.Set(submitKey{j.Spec.UID, j.Key, j.ID})
	}
	if j.ArrayID != 0 {
		t.members.Set(pairKey{j.ArrayID, j.ID})
		task, start, begun := keysOfTask(j)
		if t.tasks.Set(task); begun {
			t.starts.Set(start)
		}
	}
	if ats := t.timersOf(j); ats != [2]time.Time{} {
		t.timerAt.Set(j.ID, ats)
		for _, at := range ats {
			if !at.IsZero() {
				t.timers.Set(timerKey{at, j.ID})
			}
		}
	}
}

// timersOf is when the clock alone changes the job or makes it startable; zero if never.
func (t *tables) timersOf(j *Job) (at [2]time.Time) {
	switch j.Phase {
	case Pending:
		return pendingTimers(t, j)
	case Starting, Running:
		return runningTimers(t, j)
	case Suspended:
		at[0] = j.Preempt.until()
	case Ended:
		if t.hetOver(j) && !owes(t, j) && !BurstOpen(j) {
			at[0] = j.Ended.Add(t.config.MinJobAge)
		}
	}
	return at
}

func pendingTimers(t *tables, j *Job) (at [2]time.Time) {
	if Elsewhere(j) {
		return at
	}
	if j.Eligible.After(t.Now) {
		at[0] = j.Eligible
	}
	at[1] = j.deadline()
	return at
}

func runningTimers(t *tables, j *Job) (at [2]time.Time) {
	at[1] = j.deadline()
	if j.Preparing() {
		return at
	}
	if !Fetching(j) {
		at[0] = j.EndLimit(t.config)
	}
	at[0] = sooner(at[0], j.LaunchLimit(t.config))
	at[0] = sooner(at[0], j.Preempt.until())
	at[1] = sooner(at[1], j.nextNotice(t.config))
	return at
}

// touch derives a record's keys again after something else that they depend on has changed.
func (t *tx) touch(jobs ...*Job) {
	for _, j := range jobs {
		c := *j
		t.putJob(&c)
	}
}

func (t *tx) putNode(n *Node) {
	old, _ := t.nodes.Get(n.Name)
	t.setNode(old, n)
	t.onUndo(func() { t.setNode(n, old) })
	t.regather(old, n)
	watchNode(t, old, n)
}

func (t *tables) setNode(old, n *Node) {
	if old == nil || n == nil || !old.Registered.Equal(n.Registered) || old.counts() != n.counts() {
		t.scale = nil
	}
	if old == nil || n == nil || !n.hosts(old) {
		t.changes.add(StateChange{Node: cmp.Or(old, n).Name})
	}
	t.regroup(old, n)
	if old != nil {
		if n == nil || n.Order != old.Order {
			t.order.Delete(old.Order)
		}
		t.timed.Delete(old.Name)
		t.powers.Delete(old.Name)
		t.mute.Delete(old.Name)
	}
	if n == nil {
		t.listed.Delete(old)
		t.nodes.Delete(old.Name)
		return
	}
	t.nodes.Set(n.Name, n)
	t.order.Set(n.Order, n)
	t.listed.Set(n)
	if n.Reboot != nil || !n.ResumeAt.IsZero() {
		t.timed.Set(n.Name, n)
	}
	if n.Power != nil {
		t.powers.Set(n.Name, n)
	}
	if n.Quiet {
		t.mute.Set(n.Name, n)
	}
}

func (t *tx) deleteNode(n *Node) {
	t.setNode(n, nil)
	dropValue(t, t.loads, n.Name)
	t.onUndo(func() { t.setNode(nil, n) })
	t.regather(n, nil)
}
