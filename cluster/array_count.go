package cluster

import (
	"cmp"
	"time"
)

// arrayCount counts the records of an array and knows how its tasks ended: an array may have a hundred thousand,
// and each that ends has others ask. The count of a task outlives its record (MinJobAge) for as long as any
// record of the array is left.
type arrayCount struct {
	pending, live, ended int // records
	staging              int // of those that have ended: they stage out
	all                  IDSet
	ok, failed           IDSet      // tasks that have ended
	gone                 *GoneTasks // nil: no record has left
}

// GoneTasks is what is kept of the tasks of an array whose records have left live state while others are left. It
// is never changed.
type GoneTasks struct {
	Array JobID `json:"array"`
	// OK and Failed are the tasks that have ended, those with records included.
	OK     IDSet `json:"ok,omitzero"`
	Failed IDSet `json:"failed,omitzero"`
	// Begun: one of those that left had begun. Sum sums them up; Unwell: it was no good end for one of them.
	Begun  bool     `json:"begun,omitempty"`
	Sum    ArraySum `json:"sum"`
	Unwell bool     `json:"unwell,omitempty"`
}

// over reports whether no task is pending or live.
func (c arrayCount) over() bool { return c.pending+c.live == 0 }

func (t *tables) isArray(id JobID) bool {
	_, is := t.arrays.Get(id)
	return is
}

// RunningTasks is the number of an array's tasks that hold resources.
func (t *tables) RunningTasks(array JobID) int { c, _ := t.arrays.Get(array); return c.live }

// TasksOver reports whether no task of an array is pending or live; so it is of what is no array.
func (t *tables) TasksOver(array JobID) bool { c, _ := t.arrays.Get(array); return c.over() }

// tasks are the task numbers that a record stands for.
func (j *Job) tasks() IDSet {
	if j.Tasks.Empty() {
		return NewIDSet(j.Task)
	}
	return j.Tasks
}

// countTask takes a record into the counts of its array, or with -1 out of it.
func (t *tables) countTask(j *Job, d int) {
	if j.ArrayID == 0 {
		return
	}
	c, _ := t.arrays.Get(j.ArrayID)
	switch {
	case j.Phase == Pending:
		c.pending += d
	case j.holds():
		c.live += d
	default:
		if c.ended += d; d > 0 {
			c.note(j)
		}
		if StagesOut(j) {
			c.staging += d
		}
	}
	if c.all.Empty() && j.Spec.Array != nil {
		c.all = j.Spec.Array.Tasks
	}
	t.arrays.Set(j.ArrayID, c)
}

// taskKey finds the records of a task of an array. A record of several tasks has TaskAny.
type taskKey struct {
	array JobID
	task  int
	id    JobID
}

func taskLess(x, y taskKey) bool {
	return cmp.Or(cmp.Compare(x.array, y.array), cmp.Compare(x.task, y.task), cmp.Compare(x.id, y.id)) < 0
}

// recordsOfTask are the records that stand for a task of an array.
func recordsOfTask(t *tables, array JobID, task int) (out []*Job) {
	for _, key := range [...]int{TaskAny, task} {
		t.tasks.Ascend(taskKey{array: array, task: key}, func(k taskKey) bool {
			if k.array != array || k.task != key {
				return false
			}
			if j, ok := t.jobs.Get(k.id); ok && (j.Task == task || j.Tasks.Has(task)) {
				out = append(out, j)
			}
			return true
		})
	}
	return out
}

// startKey finds when the records of an array began.
type startKey struct {
	array JobID
	at    time.Time
	id    JobID
}

func startLess(x, y startKey) bool {
	return cmp.Or(cmp.Compare(x.array, y.array), x.at.Compare(y.at), cmp.Compare(x.id, y.id)) < 0
}

// latestStart is when the last record of an array began that has begun; zero if none has.
func latestStart(t *tables, array JobID) (at time.Time) {
	t.starts.Descend(startKey{array: array + 1}, func(k startKey) bool {
		if k.array > array {
			return true
		}
		if k.array == array {
			at = k.at
		}
		return false
	})
	return at
}

// keysOfTask are an array's record in the tables of tasks and of starts; begun: it is in both.
func keysOfTask(j *Job) (task taskKey, start startKey, begun bool) {
	task = taskKey{array: j.ArrayID, task: j.Task, id: j.ID}
	start = startKey{array: j.ArrayID, at: j.Started, id: j.ID}
	return task, start, j.Phase > Pending && !j.Started.IsZero()
}

// note remembers how tasks ended.
func (c *arrayCount) note(j *Job) {
	tasks := j.tasks()
	here := &c.ok
	other := &c.failed
	if j.Outcome != Completed {
		here, other = other, here
	}
	if !here.Contains(tasks) {
		*here = here.Union(tasks)
	}
	if !other.Intersect(tasks).Empty() {
		*other = other.Minus(tasks)
	}
}

// unend forgets how tasks ended that are to run again.
func (t *tables) unend(j *Job) {
	if c, ok := t.arrays.Get(j.ArrayID); ok {
		c.ok, c.failed = c.ok.Minus(j.tasks()), c.failed.Minus(j.tasks())
		t.arrays.Set(j.ArrayID, c)
	}
}

// purge takes the record of a job that has ended away.
func (t *tx) purge(j *Job) {
	before, counted := t.arrays.Get(j.ArrayID)
	t.onUndo(func() {
		if counted {
			t.arrays.Set(j.ArrayID, before)
		}
	})
	t.deleteJob(j)
	if c, ok := t.arrays.Get(j.ArrayID); ok && j.ArrayID != 0 {
		g := GoneTasks{Array: j.ArrayID, Sum: sumFrom(j)}
		if c.gone != nil {
			g = *c.gone
		}
		g.Begun = g.Begun || j.Attempt > 0
		g.Unwell = g.Unwell || !j.Outcome.well()
		g.Sum.add(j)
		c.gone = &g
		t.arrays.Set(j.ArrayID, c)
	}
}

// sumFrom is a sum to which tasks are added, this one among them.
func sumFrom(j *Job) ArraySum { return ArraySum{Outcome: j.Outcome, MinExit: j.Exit.Code} }

// well reports whether users are told of an end, and not of a failure.
func (o Outcome) well() bool {
	return o == Completed || o == Cancelled
}

// add takes a task into the sum.
func (s *ArraySum) add(j *Job) {
	if j.Outcome != s.Outcome {
		s.Outcome = NoOutcome
	}
	s.MinExit = min(s.MinExit, j.Exit.Code)
	s.MaxExit = max(s.MaxExit, j.Exit.Code)
	s.MaxSignal = max(s.MaxSignal, j.Exit.Signal)
}

// Gone is what is kept of tasks of an array whose records have left live state; nil: none has, or all have.
func (t *tables) Gone(array JobID) *GoneTasks {
	c, _ := t.arrays.Get(array)
	if c.gone == nil {
		return nil
	}
	g := *c.gone
	g.OK = c.ok
	g.Failed = c.failed
	return &g
}

// judge tells where a term on a whole array stands.
func (c arrayCount) judge(kind DependType) termState {
	switch {
	case kind == After:
		if c.pending > 0 {
			return unmet
		}
		return met
	case (kind == AfterOK || kind == AfterCorr) && !c.failed.Empty():
		return never
	case !c.over():
		return unmet
	case kind == AfterNotOK && c.failed.Empty():
		return never
	}
	return met
}

// judgeTask tells where a term on the end of one task stands; unknown ones count as met, as in Slurm.
func (c arrayCount) judgeTask(kind DependType, task int) termState {
	ok := c.ok.Has(task)
	failed := c.failed.Has(task)
	switch {
	case !ok && !failed && c.all.Has(task):
		return unmet
	case failed && (kind == AfterOK || kind == AfterCorr), ok && kind == AfterNotOK:
		return never
	}
	return met
}

// corrMet are those of some tasks whose counterparts in the array let them start.
func (c arrayCount) corrMet(tasks IDSet) IDSet { return tasks.Minus(c.all.Minus(c.ok)) }

// ArraySum sums up an array whose tasks have all ended.
type ArraySum struct {
	Outcome   Outcome `json:"outcome,omitempty"` // of all tasks; NoOutcome if they differ
	MinExit   int     `json:"min_exit,omitempty"`
	MaxExit   int     `json:"max_exit,omitempty"`
	MaxSignal int     `json:"max_signal,omitempty"`
}
