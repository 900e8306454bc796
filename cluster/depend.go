package cluster

import (
	"iter"
	"slices"
	"time"
)

// termState is what is known of a dependency term.
type termState uint8

const (
	unmet termState = iota
	met
	never
)

// judge tells where one dependency term of a record stands. task is the task the question is
// about (aftercorr), or TaskAny.
func (t *tables) judge(j *Job, d Depend, task int) termState {
	if d.Type == SingletonOf {
		return t.judgeSingleton(j)
	}
	if parentElsewhere(t, d) != 0 {
		return judgeElsewhere(d)
	}
	if stagesStill(t, j, d) {
		return unmet
	}
	if d.Type == AfterCorr && task != TaskAny && t.isArray(d.Job) {
		d.Task = task
		d.Type = AfterOK
	}
	switch c, ok := t.arrays.Get(d.Job); {
	case ok && d.countsTasks():
		return c.judgeTerm(d)
	case ok && d.Task == TaskAny && d.Type == After:
		return judgeLatest(t, c, d)
	}
	return judgeAll(d, t.parents(d), t.Now)
}

// stagesStill reports whether a parent of a term is over, but for what it stages out, and j waits for that.
func stagesStill(t *tables, j *Job, d Depend) bool {
	if !stagesFor(j, d) {
		return false
	}
	if c, ok := t.arrays.Get(d.Job); ok && d.Task == TaskAny {
		return c.staging > 0
	}
	return slices.ContainsFunc(t.parents(d), StagesOut)
}

// judgeLatest tells where a term stands that waits for some time after all tasks of an array have begun.
func judgeLatest(t *tables, c arrayCount, d Depend) termState {
	latest := latestStart(t, d.Job)
	if c.pending > 0 || d.Plus > 0 && !latest.IsZero() && t.Now.Before(latest.Add(d.Plus)) {
		return unmet
	}
	return met
}

// countsTasks reports whether the counts of an array's tasks say where a term on it stands; of what has not begun, and
// of time since, the records know.
func (d Depend) countsTasks() bool {
	if d.Task == TaskAny {
		return d.Plus == 0
	}
	return d.Type != After
}

// judgeTerm tells where a term on the array, or on one of its tasks, stands.
func (c arrayCount) judgeTerm(d Depend) termState {
	if d.Task == TaskAny {
		return c.judge(d.Type)
	}
	return c.judgeTask(d.Type, d.Task)
}

// judgeAll tells where a term on these records stands.
func judgeAll(d Depend, parents []*Job, now time.Time) termState {
	if len(parents) == 0 {
		return met // unknown ids count as met, as in Slurm
	}
	v := met
	anyBad := false
	for _, p := range parents {
		switch one := judgeOne(d, p, now); {
		case one == never:
			anyBad = true
		case one == unmet:
			v = unmet
		}
	}
	if d.Type == AfterNotOK { // of an array: all ended, and at least one failed
		if v == unmet {
			return unmet
		}
		if anyBad && !anyFailed(parents) {
			return never
		}
		return met
	}
	if anyBad {
		return never
	}
	return v
}

func anyFailed(parents []*Job) bool {
	for _, p := range parents {
		if p.Phase == Ended && RanAs(p) != Completed {
			return true
		}
	}
	return false
}

func judgeOne(d Depend, p *Job, now time.Time) termState {
	switch d.Type {
	case After:
		return judgeBegun(d, p, now)
	case ExpandJob:
		return judgeExpanded(p)
	}
	if p.Phase != Ended {
		return unmet
	}
	well := RanAs(p) == Completed
	ended := endTerms(d.Type)
	if well && !ended.well || !well && !ended.badly {
		return never
	}
	return met
}

// endTerm is which ends of a job meet a term.
type endTerm struct{ well, badly bool }

// endTerms are the ends that meet a term of a type: any, of afterany and what behaves like it.
func endTerms(kind DependType) endTerm {
	switch kind {
	case AfterOK, AfterCorr:
		return endTerm{well: true}
	case AfterNotOK:
		return endTerm{badly: true}
	}
	return endTerm{well: true, badly: true}
}

// judgeExpanded tells where a term stands that waits for a job which it is to expand.
func judgeExpanded(p *Job) termState {
	if begunAndGoesOn(p) {
		return met
	}
	if p.Phase >= Ending {
		return never
	}
	return unmet
}

// judgeBegun tells where a term stands that waits for a job to begin, and for some time more.
func judgeBegun(d Depend, p *Job, now time.Time) termState {
	tooSoon := d.Plus > 0 && !p.Started.IsZero() && now.Before(p.Started.Add(d.Plus))
	if tooSoon || !begunAnywhere(p) {
		return unmet
	}
	return met
}

// parents are the records a term speaks of.
func (t *tables) parents(d Depend) (out []*Job) {
	if d.Task != TaskAny {
		return recordsOfTask(t, d.Job, d.Task)
	}
	for m := range t.Members(d.Job) {
		out = append(out, m)
	}
	if out == nil {
		return t.Find(Ref{Job: d.Job})
	}
	return out
}

// Counterpart is the task that a term of a record speaks of, TaskAny for whole jobs: of aftercorr the one of its
// own number.
func (t *tables) Counterpart(j *Job, d Depend) int {
	if d.Type == AfterCorr && d.Task == TaskAny && t.isArray(d.Job) {
		return j.Task
	}
	return d.Task
}

// Awaited lists the records that a term speaks of, and the tasks whose records have left live state: those that
// ended well, and the others.
func (t *tables) Awaited(d Depend) (list []*Job, ok, failed IDSet) {
	list = t.parents(d)
	if c, is := t.arrays.Get(d.Job); is && c.gone != nil {
		var here []int
		for _, o := range list {
			if o.Task != TaskAny {
				here = append(here, o.Task)
			}
		}
		ok = c.ok.Minus(NewIDSet(here...))
		failed = c.failed.Minus(NewIDSet(here...))
		if d.Task != TaskAny {
			ok = ok.Intersect(NewIDSet(d.Task))
			failed = failed.Intersect(NewIDSet(d.Task))
		}
	}
	return list, ok, failed
}

// judgeSingleton: no older job of the same user and name may be alive.
func (t *tables) judgeSingleton(j *Job) termState {
	for range t.Namesakes(j) {
		return unmet
	}
	return met
}

// Namesakes yields the older jobs of the same user and name that are not over, but for tasks of its array and
// components of its heterogeneous job.
func (t *tables) Namesakes(j *Job) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		t.names.Ascend(nameKey{uid: j.Spec.UID, name: j.Spec.Name}, func(k nameKey) bool {
			if k.uid != j.Spec.UID || k.name != j.Spec.Name || k.id >= j.ID {
				return false
			}
			o, _ := t.jobs.Get(k.id)
			return o.ArrayID != 0 && o.ArrayID == j.ArrayID || o.partnerOf(j) || yield(o)
		})
	}
}

// evaluate drops the terms of a pending record that are met, marks those that can never be,
// and sets when it becomes eligible. It changes j, which must not be in a table yet.
func (t *tx) evaluate(j *Job) {
	j.Depends = t.remaining(j)
	j.Eligible = t.at
	if j.Spec.Begin.After(t.at) {
		j.Eligible = j.Spec.Begin
	}
	if len(j.Depends.Terms) > 0 {
		j.Eligible = clockTerms(t, j)
	}
	if j.Held == NotHeld {
		j.Wait = t.waitOf(j)
		j.WaitNote = ""
	}
	t.accrue(j)
}

// clockTerms is when the terms are met that only wait for the clock; zero if there are none.
func clockTerms(t *tx, j *Job) (at time.Time) {
	for _, d := range j.Depends.Terms {
		if d.Type != After || d.Plus == 0 {
			continue
		}
		if d.Task == TaskAny && t.isArray(d.Job) {
			if latest := latestStart(t.tables, d.Job); !latest.IsZero() {
				at = later(at, latest.Add(d.Plus))
			}
			continue
		}
		for _, p := range t.parents(d) {
			if p.Phase > Pending && !p.Started.IsZero() {
				at = later(at, p.Started.Add(d.Plus))
			}
		}
	}
	return at
}

func (t *tx) remaining(j *Job) Depends {
	var left []Depend
	for _, d := range j.Depends.Terms {
		if parentElsewhere(t.tables, d) != 0 {
			left = append(left, d) // as that cluster has said
			continue
		}
		ofArray := d.Task == TaskAny && t.isArray(d.Job)
		named := d.Type != SingletonOf && !ofArray
		if d.Failed && named && len(t.parents(d)) == 0 {
			left = append(left, d) // failed before its job was purged
			continue
		}
		d.Failed = false
		d.Array = d.Array || ofArray
		state := t.judge(j, d, j.Task)
		d.Failed = state == never && !d.failsByTask(j)
		if state != met {
			left = append(left, d)
			continue
		}
		if j.Depends.Any {
			return Depends{}
		}
	}
	return Depends{Any: j.Depends.Any, Terms: left}
}

// failsByTask reports whether a term of a record that is an array's fails for some of its tasks alone.
func (d Depend) failsByTask(j *Job) bool {
	return d.Type == AfterCorr && j.Task == TaskAny && !j.Tasks.Empty()
}

// asked is the dependency as a user may give it: without what only Apply knows.
func (d Depends) asked() Depends {
	d.Terms = slices.Clone(d.Terms)
	for i := range d.Terms {
		d.Terms[i].Failed = false
	}
	return d
}

// DependNever reports whether the record's dependency can never be satisfied.
func (j *Job) DependNever() bool {
	failed := 0
	for _, d := range j.Depends.Terms {
		if d.Failed {
			failed++
		}
	}
	if j.Depends.Any {
		return failed > 0 && failed == len(j.Depends.Terms)
	}
	return failed > 0
}

// waitOf is the reason that follows from the record itself, without the scheduler.
func (t *tables) waitOf(j *Job) Reason {
	switch {
	case j.Held != NotHeld:
		return j.Wait
	case j.DependNever():
		return WaitDependencyNever
	case len(j.Depends.Terms) > 0 && t.startable(j).Empty() && !t.startsWhole(j):
		return WaitDependency
	case j.Eligible.After(t.Now):
		return WaitBegin
	}
	return NoReason
}

// startsWhole reports whether a record that is one job may start as far as dependencies go.
func (t *tables) startsWhole(j *Job) bool {
	if !j.Tasks.Empty() {
		return false
	}
	return t.dependsMet(j, j.Task)
}

func (t *tables) dependsMet(j *Job, task int) bool {
	if len(j.Depends.Terms) == 0 {
		return true
	}
	for _, d := range j.Depends.Terms {
		v := t.judge(j, d, task)
		if j.Depends.Any && v == met {
			return true
		}
		if !j.Depends.Any && v != met {
			return false
		}
	}
	return !j.Depends.Any
}

// startable are the task numbers of an array record whose dependencies are met.
func (t *tables) startable(j *Job) IDSet {
	if len(j.Depends.Terms) == 0 {
		return j.Tasks
	}
	var out IDSet
	for i, d := range j.Depends.Terms {
		var these IDSet
		if c, ok := t.arrays.Get(d.Job); ok && d.Type == AfterCorr {
			these = c.corrMet(j.Tasks)
		} else if t.judge(j, d, TaskAny) == met {
			these = j.Tasks
		}
		switch {
		case i == 0:
			out = these
		case j.Depends.Any:
			out = out.Union(these)
		default:
			out = out.Intersect(these)
		}
	}
	return out
}

// partNever makes tasks that will never start, for their counterparts have failed, records of their own, as Slurm does.
func (t *tx) partNever(id JobID) {
	j, ok := t.jobs.Get(id)
	if !ok || j.Phase != Pending || j.Tasks.Empty() {
		return
	}
	var never IDSet
	for _, d := range j.Depends.Terms {
		if c, ok := t.arrays.Get(d.Job); ok && d.Type == AfterCorr {
			never = never.Union(c.failed.Intersect(j.Tasks))
		}
	}
	if never.Empty() {
		return
	}
	for _, one := range t.split(id, never) {
		t.reevaluate(one.ID)
	}
}

// Ready tells whether a pending record may start at now as far as holds, begin time and
// dependencies go, and for an array record which tasks. The reason says why not.
func (t *tables) Ready(j *Job, now time.Time) (tasks IDSet, why Reason) {
	if j.Held != NotHeld {
		return IDSet{}, j.Wait
	}
	if j.DependNever() {
		return IDSet{}, WaitDependencyNever
	}
	if j.Fed != nil {
		if why := shareWait(t, j); why != NoReason {
			return IDSet{}, why
		}
	}
	if j.Eligible.After(now) && len(j.Depends.Terms) == 0 {
		return IDSet{}, WaitBegin
	}
	if len(j.Depends.Terms) > 0 {
		at := *t // the clock may have met a term since the last entry
		at.Now = later(t.Now, now)
		if j.Tasks.Empty() && !at.dependsMet(j, j.Task) {
			return IDSet{}, WaitDependency
		}
		if tasks = at.startable(j); !j.Tasks.Empty() && tasks.Empty() {
			return IDSet{}, WaitDependency
		}
		if j.Spec.Begin.After(now) {
			return IDSet{}, WaitBegin
		}
	} else {
		tasks = j.Tasks
	}
	if why := burstWait(t, j); why != NoReason {
		return IDSet{}, why
	}
	return tasks, NoReason
}

// waitingFor are the records that wait for a job.
func waitingFor(t *tables, parent JobID) (list []JobID) {
	t.depends.Ascend(pairKey{a: parent}, func(k pairKey) bool {
		if k.a == parent {
			list = append(list, k.b)
		}
		return k.a == parent
	})
	return list
}

// wakeDependents looks again at every record that waits for this one: at once at those that name it, and once the
// command is done at those that wait for all of its array or for its namesakes. A command may end any number of tasks,
// for which any number of jobs wait.
func (t *tx) wakeDependents(p *Job) {
	if p.ArrayID != 0 {
		wakeLater(t, woken{array: p.ArrayID})
	}
	if p.Phase == Ended {
		wakeLater(t, woken{uid: p.Spec.UID, name: p.Spec.Name})
	}
	var kids []JobID
	if p.ArrayID != p.ID {
		kids = waitingFor(t.tables, p.ID)
	}
	if p.Follows() {
		kids = append(kids, waitingFor(t.tables, p.Het.ID)...)
	}
	for _, id := range kids {
		t.reevaluate(id)
	}
	if p.ArrayID == 0 {
		return
	}
	for _, id := range waitingFor(t.tables, p.ArrayID) {
		if j, ok := t.jobs.Get(id); ok && j.namesTask(p) {
			t.reevaluate(id)
		}
	}
}

// namesTask reports whether a dependency term of j speaks of a record's tasks, and not of all of its array.
func (j *Job) namesTask(p *Job) bool {
	return slices.ContainsFunc(j.Depends.Terms, func(d Depend) bool {
		return d.Job == p.ArrayID && d.Task != TaskAny && (d.Task == p.Task || p.Tasks.Has(d.Task))
	})
}

// woken names records that are looked at again when the command is done: those that wait for all of an array, or jobs
// of a user that wait for their namesakes.
type woken struct {
	array JobID
	uid   uint32
	name  string
}

// wakeLater remembers to look at records, once.
func wakeLater(t *tx, w woken) {
	if t.woken == nil {
		t.woken = map[woken]bool{}
	}
	if !t.woken[w] {
		t.woken[w] = true
		t.wakes = append(t.wakes, w)
	}
}

// wakeAll looks at the records of wakeLater.
func wakeAll(t *tx) {
	for _, w := range t.wakes {
		if w.array == 0 {
			for _, id := range firstNamesakes(t.tables, w.uid, w.name) {
				t.reevaluate(id)
			}
			continue
		}
		for _, id := range waitingFor(t.tables, w.array) {
			if j, ok := t.jobs.Get(id); ok && moved(t.tables, j, w.array) {
				t.reevaluate(id)
			}
		}
	}
}

// moved reports whether a term of a record on all of an array does not stand as it did.
func moved(t *tables, j *Job, array JobID) bool {
	return slices.ContainsFunc(j.Depends.Terms, func(d Depend) bool {
		if d.Job != array || d.Task != TaskAny {
			return false
		}
		if d.Type == AfterCorr || d.Plus != 0 {
			return true
		}
		state := t.judge(j, d, j.Task)
		return state == met || (state == never) != d.Failed
	})
}

// firstNamesakes are the oldest of a user's jobs of a name that are not over, up to the first that has to wait for one
// of them.
func firstNamesakes(t *tables, uid uint32, name string) (list []JobID) {
	var first *Job
	t.names.Ascend(nameKey{uid: uid, name: name}, func(k nameKey) bool {
		if k.uid != uid || k.name != name {
			return false
		}
		j, _ := t.jobs.Get(k.id)
		if first == nil {
			first = j
		}
		together := j == first || first.ArrayID != 0 && first.ArrayID == j.ArrayID || first.partnerOf(j)
		if together && j.waitsForSingleton() {
			list = append(list, k.id)
		}
		return together
	})
	return list
}

func (j *Job) waitsForSingleton() bool {
	return slices.ContainsFunc(j.Depends.Terms, func(d Depend) bool { return d.Type == SingletonOf })
}

func (t *tx) reevaluate(id JobID) {
	old, ok := t.jobs.Get(id)
	if !ok || old.Phase != Pending {
		return
	}
	j := *old
	t.evaluate(&j)
	t.putJob(&j)
	if len(j.Depends.Terms) != len(old.Depends.Terms) || j.DependNever() != old.DependNever() {
		t.tell(&j)
	}
	t.partNever(id)
}
