package acct

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// State is a phase, for ended jobs with an outcome.
type State struct {
	Phase   cluster.Phase
	Outcome cluster.Outcome
}

// Query selects records; every filter that is not empty must match.
type Query struct {
	Refs       []cluster.Ref
	Users      []uint32
	Accounts   []string
	Partitions []string
	Names      []string
	QOS        []string
	Nodes      []cluster.NodeName
	States     []State
	From, To   time.Time // jobs that lived between them; zero: no bound
	Duplicates bool      // every attempt, not only the last
	Steps      bool
	// Latest asks for so many records that match, those that ended or were submitted last; 0: for all.
	Latest int
	// MaxSteps bounds the steps that are read with the latest records, to those that began last of the newest jobs.
	MaxSteps int
	// Before leaves those that ended before it; zero: no bound.
	Before time.Time
	cluster.HistoryFilter
}

// Record is one attempt of one job.
type Record struct {
	Job   *cluster.Job
	Steps []*cluster.Step
	// Rest says that an earlier page has the record with its first steps.
	Rest bool
}

// OwnSteps are those of a job that no node has reported.
func (r *Record) OwnSteps() []*cluster.Step {
	return slices.DeleteFunc(r.Job.OwnSteps(), func(own *cluster.Step) bool {
		return slices.ContainsFunc(r.Steps, func(st *cluster.Step) bool { return st.ID == own.ID })
	})
}

// Jobs yields the records in the order in which they entered history. An error ends the sequence.
func (d *DB) Jobs(ctx context.Context, q Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		d.files.RLock()
		defer d.files.RUnlock()
		if err := d.components(ctx, &q); err != nil {
			yield(Record{}, err)
			return
		}
		where, args := q.where()
		order := " ORDER BY seq"
		if q.Latest > 0 {
			order = " ORDER BY ended DESC, submitted DESC, seq DESC LIMIT " + strconv.Itoa(maxLatest)
		}
		rows, err := d.r.QueryContext(ctx, "SELECT data FROM job"+where+order, args...)
		if err != nil {
			yield(Record{}, fmt.Errorf("read history: %w", err))
			return
		}
		defer rows.Close()
		var list []*cluster.Job
		var data sql.RawBytes
		var dec wire.Decoder
		for rows.Next() {
			j := &cluster.Job{}
			if err = rows.Scan(&data); err == nil {
				err = dec.Decode(data, j)
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("read history: %w", err))
				return
			}
			if j = j.Settled(); q.matches(j) {
				list = append(list, j)
			}
			if q.Latest > 0 && len(list) == q.Latest {
				break
			}
		}
		if err := rows.Err(); err != nil {
			yield(Record{}, fmt.Errorf("read history: %w", err))
			return
		}
		rows.Close()
		if q.Latest > 0 {
			slices.Reverse(list)
		}
		if !q.Duplicates {
			list = newest(list)
		}
		read := stepsFor(ctx, d, &q, list)
		for some := range slices.Chunk(list, jobsAtOnce) {
			steps, err := read(some)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, j := range some {
				if !yield(Record{Job: j, Steps: stepsOf(j, steps[jobRun{j.ID, j.Attempt}])}, nil) {
					return
				}
			}
		}
	}
}

// maxLatest bounds the records that are looked at for the latest ones that match.
const maxLatest = 20_000

// jobsAtOnce is of how many jobs the steps are read by one question.
const jobsAtOnce = 500

// jobRun is one attempt of a job.
type jobRun struct {
	job     cluster.JobID
	attempt int
}

// components adds references to the components of heterogeneous jobs that are named by their leader, or as a whole.
func (d *DB) components(ctx context.Context, q *Query) error {
	if len(q.Refs) == 0 || q.WholeHet != nil && !*q.WholeHet {
		return nil
	}
	refs := slices.Clone(q.Refs)
	named := Query{Refs: q.Refs}
	where, args := named.where()
	rows, err := d.r.QueryContext(ctx, "SELECT data FROM job"+where+` AND instr(data, '"het":{') > 0`, args...)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var data []byte
		var j cluster.Job
		if err = rows.Scan(&data); err == nil {
			err = wire.Unmarshal(data, &j)
		}
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		if j.Het == nil || q.WholeHet == nil && !slices.ContainsFunc(q.Refs,
			func(r cluster.Ref) bool { return r.Part == 0 && r.Job == j.Het.ID }) {
			continue
		}
		for k := range j.Het.Size {
			refs = append(refs, cluster.Ref{Job: j.Het.ID, Part: k + 1})
		}
	}
	q.Refs = refs
	return rows.Err()
}

// newest keeps the last attempt of each job.
func newest(list []*cluster.Job) (out []*cluster.Job) {
	last := lastRuns{}
	for i, j := range list {
		last.note(j, int64(i))
	}
	for i, j := range list {
		if last.keeps(j, int64(i)) {
			out = append(out, j)
		}
	}
	return out
}

// jobOf is a job of a cluster; of this one without a name.
type jobOf struct {
	cluster string
	id      cluster.JobID
}

func jobOfRecord(j *cluster.Job) jobOf {
	if j.Imported == nil {
		return jobOf{id: j.ID}
	}
	return jobOf{j.Imported.Cluster, j.ID}
}

func (q *Query) where() (string, []any) {
	var terms []string
	var args []any
	if len(q.Refs) > 0 {
		var ids []string
		for _, r := range q.Refs {
			id := r.One()
			ids = append(ids, "job = ? OR array = ? AND array != 0")
			args = append(args, id, id)
		}
		terms = append(terms, "("+strings.Join(ids, " OR ")+")")
	}
	if len(q.Users) > 0 {
		marks := make([]string, len(q.Users))
		for i, u := range q.Users {
			marks[i] = "?"
			args = append(args, u)
		}
		terms = append(terms, "uid IN ("+strings.Join(marks, ",")+")")
	}
	if !q.To.IsZero() {
		terms = append(terms, "submitted <= ?")
		args = append(args, q.To.UnixNano())
	}
	if !q.From.IsZero() {
		terms = append(terms, "(ended >= ? OR ended = 0)")
		args = append(args, q.From.UnixNano())
	}
	if !q.Before.IsZero() {
		terms = append(terms, "ended > 0 AND ended < ?")
		args = append(args, q.Before.UnixNano())
	}
	if terms == nil {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}

// matches reports whether a job is asked for.
func (q *Query) matches(j *cluster.Job) bool {
	in := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	if !in(q.Accounts, j.Spec.Account) || !in(q.Names, j.Spec.Name) || !in(q.QOS, j.Spec.QOS) {
		return false
	}
	if len(q.Refs) > 0 && !slices.ContainsFunc(q.Refs, func(r cluster.Ref) bool {
		if j.Het != nil && r.Part == 0 && q.WholeHet != nil && !*q.WholeHet {
			return r.Job == j.ID
		}
		return r.Names(j)
	}) {
		return false
	}
	if len(q.Partitions) > 0 && !slices.ContainsFunc(partitions(j),
		func(p string) bool { return slices.Contains(q.Partitions, p) }) {
		return false
	}
	if len(q.Nodes) > 0 && !slices.ContainsFunc(j.AllocNodes(),
		func(n cluster.NodeName) bool { return slices.Contains(q.Nodes, n) }) {
		return false
	}
	if !q.HistoryFilter.Matches(j) || !j.Ended.IsZero() && j.Ended.Before(q.From) {
		return false
	}
	return q.inWindow(j)
}

// inWindow reports whether a job was in one of the states in the window, or was eligible by its end.
func (q *Query) inWindow(j *cluster.Job) bool {
	if j.Imported != nil && len(q.Refs) == 0 && neverEligible(j) {
		return false
	}
	if len(q.States) == 0 {
		return len(q.Refs) > 0 || q.To.IsZero() || !j.Eligible.After(q.To)
	}
	return slices.ContainsFunc(q.States, func(s State) bool { return q.wasIn(j, s) })
}

// neverEligible reports whether a job of a Slurm cluster was not eligible yet, or never. Slurm lists such jobs only
// where they are named.
func neverEligible(j *cluster.Job) bool {
	return j.Eligible.IsZero() || j.Eligible.After(time.Now())
}

// wasIn reports whether a job was in a state at some time of the window, as sacct's -s, -S and -E mean it.
func (q *Query) wasIn(j *cluster.Job, s State) bool {
	until := func(end time.Time) bool { return end.IsZero() || end.After(q.From) }
	since := func(begin time.Time) bool { return !begin.IsZero() && (q.To.IsZero() || !begin.After(q.To)) }
	switch s.Phase {
	case cluster.Pending:
		begin, end := j.Eligible, j.Started
		if begin.IsZero() {
			begin = j.Submitted
		}
		if end.IsZero() {
			end = j.Ended
		}
		return since(begin) && until(end)
	case cluster.Running:
		return since(j.Started) && until(j.Ended)
	case cluster.Ended:
		return j.Phase == cluster.Ended && s.Outcome == j.Outcome && since(j.Ended)
	}
	return s.Phase == j.Phase
}

func partitions(j *cluster.Job) []string {
	if j.Alloc != nil {
		return []string{j.Alloc.Partition}
	}
	return j.Spec.Partitions
}

// readSteps reads so many steps of jobs, those that began last, of all their attempts; -1: all of them.
func readSteps(ctx context.Context, db *sql.DB, jobs []*cluster.Job, most int) (map[jobRun][]*cluster.Step, error) {
	ids := make([]any, len(jobs), len(jobs)+1)
	for i, j := range jobs {
		ids[i] = j.ID
	}
	from := "step WHERE job IN (" + marks(len(ids)) + ")"
	if most >= 0 {
		from = "(SELECT * FROM " + from + " ORDER BY started DESC, step DESC LIMIT ?)"
		ids = append(ids, most)
	}
	out, _, err := scanSteps(ctx, db, from+stepOrder, ids...)
	return out, err
}

// stepOrder is the order of steps in answers.
const stepOrder = " ORDER BY job, attempt, started, step"

// scanSteps reads steps by the end of a query.
func scanSteps(ctx context.Context, db *sql.DB, from string, args ...any) (
	out map[jobRun][]*cluster.Step, n int, err error) {
	rows, err := db.QueryContext(ctx, "SELECT job, attempt, data FROM "+from, args...)
	if err != nil {
		return nil, 0, fmt.Errorf("read steps: %w", err)
	}
	defer rows.Close()
	out = map[jobRun][]*cluster.Step{}
	var data sql.RawBytes
	var dec wire.Decoder
	for rows.Next() {
		var of jobRun
		if err := rows.Scan(&of.job, &of.attempt, &data); err != nil {
			return nil, 0, err
		}
		s := &cluster.Step{}
		if err := dec.Decode(data, s); err != nil {
			return nil, 0, err
		}
		out[of] = append(out[of], s)
		n++
	}
	return out, n, rows.Err()
}

// stepsFor returns what reads the steps that a query asks for, of some of its jobs at a time.
func stepsFor(ctx context.Context, d *DB, q *Query, all []*cluster.Job) func(some []*cluster.Job) (
	map[jobRun][]*cluster.Step, error) {
	switch {
	case !q.Steps:
		return func([]*cluster.Job) (map[jobRun][]*cluster.Step, error) { return nil, nil }
	case q.Latest > 0:
		latest := sync.OnceValues(func() (map[jobRun][]*cluster.Step, error) {
			return latestSteps(ctx, d, all, q.MaxSteps)
		})
		return func([]*cluster.Job) (map[jobRun][]*cluster.Step, error) { return latest() }
	}
	return func(some []*cluster.Job) (map[jobRun][]*cluster.Step, error) { return readSteps(ctx, d.r, some, -1) }
}

// latestSteps reads so many steps of jobs at most, of the last jobs first.
func latestSteps(ctx context.Context, d *DB, jobs []*cluster.Job, most int) (map[jobRun][]*cluster.Step, error) {
	all := map[jobRun][]*cluster.Step{}
	for end := len(jobs); end > 0 && most > 0; end -= jobsAtOnce {
		some, err := readSteps(ctx, d.r, jobs[max(end-jobsAtOnce, 0):end], most)
		if err != nil {
			return nil, err
		}
		for of, list := range some {
			if all[of] == nil { // a job that has changed its size has several records
				all[of] = list
				most -= len(list)
			}
		}
	}
	return all, nil
}

// stepsOf are those of an attempt's steps that belong to this record of it: one that waits again has none, and one
// of a job that has changed its size those that began while it had this one.
func stepsOf(j *cluster.Job, all []*cluster.Step) (out []*cluster.Step) {
	if j.Imported != nil {
		return all
	}
	if j.Started.IsZero() {
		return nil
	}
	for _, s := range all {
		if s.Started.Before(j.ResizedAt()) || j.Outcome == cluster.Resized && !s.Started.Before(j.Ended) {
			continue
		}
		out = append(out, s)
	}
	return out
}
