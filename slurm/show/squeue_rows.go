package show

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// rows makes the lines of the jobs that the options leave.
func (o *queueOptions) rows(v *View, jobs []*cluster.Job) []JobRow {
	rows := make([]JobRow, 0, len(jobs))
	for _, j := range o.combined(jobs) {
		r := NewRow(v, j)
		if !o.keeps(&r) {
			continue
		}
		if r.Tasks.Empty() && !o.perPart {
			rows = append(rows, r)
			continue
		}
		for _, one := range o.split(r) {
			if !o.perPart || j.Phase != cluster.Pending || len(j.Spec.Partitions) < 2 {
				rows = append(rows, one)
				continue
			}
			for _, p := range j.Spec.Partitions {
				if len(o.query.Partitions) > 0 && !slices.Contains(o.query.Partitions, p) {
					continue
				}
				one.part = p
				rows = append(rows, one)
			}
		}
	}
	return rows
}

// combined joins what waits of one array in one partition, as Slurm shows it without -r: the first
// record stands for all of them, without its throttle and with the reasons of all.
func (o *queueOptions) combined(jobs []*cluster.Job) []*cluster.Job {
	type key struct {
		array cluster.JobID
		parts string
	}
	if o.perTask || o.data.On || slices.ContainsFunc(o.query.Refs,
		func(r cluster.Ref) bool { return !r.Tasks.Empty() }) {
		return jobs
	}
	split := func(j *cluster.Job) bool { return j.Phase == cluster.Pending && j.ArrayID != 0 }
	first := map[key]int{}
	out := make([]*cluster.Job, 0, len(jobs))
	for _, j := range jobs {
		if !split(j) {
			out = append(out, j)
			continue
		}
		k := key{j.ArrayID, strings.Join(j.Spec.Partitions, ",")}
		at, old := first[k]
		if !old {
			first[k] = len(out)
			out = append(out, j)
			continue
		}
		out[at] = joinTasks(out[at], j)
	}
	return out
}

// joinTasks is one record for the tasks of two; that with more tasks gives the rest.
func joinTasks(a, b *cluster.Job) *cluster.Job {
	tasks := func(j *cluster.Job) cluster.IDSet {
		if j.Task >= 0 {
			return cluster.NewIDSet(j.Task)
		}
		return j.Tasks
	}
	all := tasks(a).Union(tasks(b))
	if a.Task >= 0 && b.Task < 0 {
		a, b = b, a
	}
	n, spec := *a, *a.Spec
	n.Task, n.Tasks, n.Spec = cluster.TaskAny, all, &spec
	if spec.Array != nil {
		array := *spec.Array
		array.Limit, spec.Array = 0, &array
	}
	ra, rb := NewRow(nil, a), NewRow(nil, b)
	why := strings.Split(ra.Reason(), ",")
	for _, w := range strings.Split(rb.Reason(), ",") {
		if !slices.Contains(why, w) {
			why = append(why, w)
		}
	}
	n.Wait, n.WaitNote = cluster.Reason(strings.Join(why, ",")), ""
	return &n
}

func (o *queueOptions) keeps(r *JobRow) bool {
	if len(o.states) == 0 && !o.allStates && !o.data.On && isRevoked(r.Job) {
		return false
	}
	if len(o.states) > 0 && !o.allStates && !slices.Contains(o.states, r.State) {
		return false
	}
	if !o.keepsRunning(r) || o.choice.notMe && r.Spec.UID == r.View.Sys.UID {
		return false
	}
	if o.reservation != "" && r.Spec.Reservation != o.reservation {
		return false
	}
	if len(o.licenses) == 0 {
		return true
	}
	return slices.ContainsFunc(front.SplitList(r.Spec.Licenses), func(l string) bool {
		name, _, _ := strings.Cut(l, ":")
		return slices.Contains(o.licenses, name)
	})
}

// keepsRunning reports whether a job has run for as long as --running-over and --running-under want.
func (o *queueOptions) keepsRunning(r *JobRow) bool {
	over, under := o.choice.over, o.choice.under
	if over == 0 && under == 0 {
		return true
	}
	running := []cluster.Phase{cluster.Running, cluster.Suspended, cluster.Ending}
	if !slices.Contains(running, r.Phase) {
		return false
	}
	ran := r.Elapsed()
	return ran > over && ran < cmp.Or(under, cluster.Unlimited)
}

// split makes one line of each task with -r, and leaves only the tasks that -j names.
func (o *queueOptions) split(r JobRow) []JobRow {
	if r.Tasks.Empty() {
		return []JobRow{r}
	}
	want := r.Tasks
	if len(o.query.Refs) > 0 {
		want = cluster.IDSet{}
		for _, ref := range o.query.Refs {
			if ref.Job == r.ArrayID || ref.Job == r.ID {
				if ref.Tasks.Empty() {
					want = r.Tasks
					break
				}
				want = want.Union(ref.Tasks.Intersect(r.Tasks))
			}
		}
	}
	if !o.perTask && want.Equal(r.Tasks) {
		return []JobRow{r}
	}
	var rows []JobRow
	for task := range want.All() {
		one := *r.Job
		one.Task, one.Tasks = task, cluster.IDSet{}
		rows = append(rows, NewRow(r.View, &one))
	}
	return rows
}

// StepRows joins steps and jobs.
func StepRows(v *View, resp api.StepsResponse) (rows []StepRow) {
	jobs := make(map[cluster.JobID]*cluster.Job, len(resp.Jobs))
	for _, j := range resp.Jobs {
		jobs[j.ID] = j
	}
	for _, st := range resp.Steps {
		if j := jobs[st.ID.Job]; j != nil {
			rows = append(rows, StepRow{Step: st, Job: NewRow(v, j)})
		}
	}
	return rows
}

func (o *queueOptions) keepsStep(r *StepRow) bool {
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	if !has(o.query.Names, r.Name) || !has(o.query.Partitions, r.Job.Partition()) {
		return false
	}
	if n := o.query.Nodes; len(n) > 0 && !slices.ContainsFunc(r.NodeNames(), func(x cluster.NodeName) bool { return slices.Contains(n, x) }) {
		return false
	}
	if len(o.stepRefs) > 0 && !slices.Contains(o.stepRefs, r.ID) {
		return false
	}
	return len(o.query.Refs) == 0 || slices.ContainsFunc(o.query.Refs, func(ref cluster.Ref) bool {
		return ref.Names(r.Job.Job)
	})
}

// order compares two rows by one letter of --sort, where the text of the column would not do.
type order[T any] struct {
	code byte
	cmp  func(a, b *T) int
}

var jobOrders = [...]order[JobRow]{
	{'A', func(a, b *JobRow) int { return cmp.Compare(a.ID, b.ID) }},
	{'i', func(a, b *JobRow) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.ArrayID, a.ID), cmp.Or(b.ArrayID, b.ID)),
			cmp.Compare(uint(a.Task), uint(b.Task)), cmp.Compare(a.ID, b.ID))
	}},
	{'c', func(a, b *JobRow) int { return cmp.Compare(a.MinCPUs(), b.MinCPUs()) }},
	{'C', func(a, b *JobRow) int { return cmp.Compare(a.NumCPUs(), b.NumCPUs()) }},
	{'d', func(a, b *JobRow) int { return cmp.Compare(a.Spec.TmpMB, b.Spec.TmpMB) }},
	{'D', func(a, b *JobRow) int { return cmp.Compare(a.NumNodes(), b.NumNodes()) }},
	{'e', func(a, b *JobRow) int { return compareTimes(a.End(), b.End()) }},
	{'G', func(a, b *JobRow) int { return cmp.Compare(a.Spec.GID, b.Spec.GID) }},
	{'l', func(a, b *JobRow) int { return cmp.Compare(a.Limit, b.Limit) }},
	{'L', func(a, b *JobRow) int { return cmp.Compare(a.timeLeft(), b.timeLeft()) }},
	{'m', func(a, b *JobRow) int { return cmp.Compare(a.MinMemory(), b.MinMemory()) }},
	{'M', func(a, b *JobRow) int { return cmp.Compare(a.Elapsed(), b.Elapsed()) }},
	{'p', func(a, b *JobRow) int { return cmp.Compare(a.Priority, b.Priority) }},
	{'P', func(a, b *JobRow) int { return cmp.Compare(a.Partition(), b.Partition()) }},
	{'Q', func(a, b *JobRow) int { return cmp.Compare(a.Priority, b.Priority) }},
	{'S', func(a, b *JobRow) int { return compareTimes(a.Start(), b.Start()) }},
	{'t', func(a, b *JobRow) int { return cmp.Compare(a.State.Short, b.State.Short) }},
	{'U', func(a, b *JobRow) int { return cmp.Compare(a.Spec.UID, b.Spec.UID) }},
	{'V', func(a, b *JobRow) int { return compareTimes(a.Submitted, b.Submitted) }},
	{'y', func(a, b *JobRow) int { return cmp.Compare(a.Spec.Nice, b.Spec.Nice) }},
}

var stepOrders = [...]order[StepRow]{
	{'i', func(a, b *StepRow) int {
		return cmp.Or(cmp.Compare(a.ID.Job, b.ID.Job), cmp.Compare(uint(a.ID.Step), uint(b.ID.Step)))
	}},
	{'l', func(a, b *StepRow) int { return cmp.Compare(a.TimeLimit(), b.TimeLimit()) }},
	{'M', func(a, b *StepRow) int { return cmp.Compare(a.runTime(), b.runTime()) }},
	{'S', func(a, b *StepRow) int { return compareTimes(a.Started, b.Started) }},
	{'U', func(a, b *StepRow) int { return cmp.Compare(a.Job.Spec.UID, b.Job.Spec.UID) }},
}

// compareTimes puts unknown times last.
func compareTimes(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return front.BoolInt(a.IsZero()) - front.BoolInt(b.IsZero())
	}
	return a.Compare(b)
}

// sortRows sorts by the letters of spec, each with + or - before it; unknown ones are passed over.
func sortRows[T any](rows []T, cols []format.Column[T], orders []order[T], spec string) {
	type key struct {
		cmp  func(a, b *T) int
		down bool
	}
	var keys []key
	down := false
	for i := range len(spec) {
		switch c := spec[i]; c {
		case '-', '+':
			down = c == '-'
		case ',', '#', ' ':
		default:
			k := slices.IndexFunc(orders, func(o order[T]) bool { return o.code == c })
			if k >= 0 {
				keys = append(keys, key{orders[k].cmp, down})
			} else if col := format.Find(cols, c); col != nil {
				keys = append(keys, key{func(a, b *T) int { return cmp.Compare(col.Of(a), col.Of(b)) }, down})
			}
			down = false
		}
	}
	order := make([]int32, len(rows)) // numbers move faster than rows do
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		for _, k := range keys {
			if n := k.cmp(&rows[i], &rows[j]); n != 0 {
				if k.down {
					return -n
				}
				return n
			}
		}
		return int(i - j)
	})
	sorted := make([]T, len(rows))
	for i, from := range order {
		sorted[i] = rows[from]
	}
	copy(rows, sorted)
}
