package acct

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Bounds of one page of records. A job's record takes some 4 KB of memory, a step's 2 KB.
const (
	PageJobs  = 10_000
	PageSteps = 50_000
)

// pageSize is how many jobs and steps a page holds.
type pageSize struct{ jobs, steps int }

// Cursor is where a page begins: after the record with the number Seq, or, if Steps is not 0, with the steps of that
// record after so many.
type Cursor struct {
	Seq   int64
	Steps int
}

// Page returns records in the order in which they entered history, and where the next page begins, nil after the last
// one. A job with more steps than a page holds is on several pages, each of which has its record.
func (d *DB) Page(ctx context.Context, q Query, at Cursor) (list []Record, next *Cursor, err error) {
	p := &page{d: d, q: &q, at: at, size: pageSize{PageJobs, PageSteps}}
	return p.all(ctx)
}

// all reads the whole page.
func (p *page) all(ctx context.Context) (list []Record, next *Cursor, err error) {
	p.d.files.RLock()
	defer p.d.files.RUnlock()
	if err := p.d.components(ctx, p.q); err != nil {
		return nil, nil, err
	}
	if err := p.read(ctx); err != nil {
		return nil, nil, fmt.Errorf("read history: %w", err)
	}
	if err := p.dropOld(ctx); err != nil {
		return nil, nil, fmt.Errorf("read earlier attempts of jobs: %w", err)
	}
	if !p.q.Steps {
		for _, r := range p.rows {
			list = append(list, Record{Job: r.job})
		}
		return list, p.next, nil
	}
	return p.withSteps(ctx)
}

// page is what is being read.
type page struct {
	d    *DB
	q    *Query
	at   Cursor
	size pageSize
	rows []numbered
	next *Cursor
}

// numbered is a record with its number.
type numbered struct {
	seq int64
	job *cluster.Job
}

// read reads the page's jobs.
func (p *page) read(ctx context.Context) error {
	where, args := p.q.where()
	from := "job"
	if p.at.Seq > 0 {
		// By the numbers: an index would have all records sorted again for each page.
		from, where = "job NOT INDEXED", and(where, "seq > ?")
		args = append(args, p.at.Seq-int64(min(p.at.Steps, 1)))
	}
	return p.eachJob(ctx, "FROM "+from+where+" ORDER BY seq", args, func(r numbered) bool {
		if !p.q.matches(r.job) {
			return true
		}
		p.rows = append(p.rows, r)
		if len(p.rows) == p.size.jobs {
			p.next = &Cursor{Seq: r.seq}
			return false
		}
		return true
	})
}

// and adds a term to the text of a condition, which may be empty.
func and(where, term string) string {
	if where == "" {
		return " WHERE " + term
	}
	return where + " AND " + term
}

// eachJob calls f with the jobs that a query selects, until it returns false.
func (p *page) eachJob(ctx context.Context, query string, args []any, f func(numbered) bool) error {
	rows, err := p.d.r.QueryContext(ctx, "SELECT seq, data "+query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var data sql.RawBytes
	var dec wire.Decoder
	for rows.Next() {
		r := numbered{job: &cluster.Job{}}
		if err := rows.Scan(&r.seq, &data); err != nil {
			return err
		}
		if err := dec.Decode(data, r.job); err != nil {
			return err
		}
		r.job = r.job.Settled()
		if !f(r) {
			return nil
		}
	}
	return rows.Err()
}

// dropOld drops the records of attempts that others followed, unless all are asked for.
func (p *page) dropOld(ctx context.Context) error {
	if p.q.Duplicates {
		return nil
	}
	last := lastRuns{}
	for _, r := range p.rows {
		last.note(r.job, r.seq)
	}
	if p.next != nil || p.at.Seq > 0 { // else there are no records but these
		for some := range slices.Chunk(p.rows, jobsAtOnce) {
			if err := p.noteOthers(ctx, some, last); err != nil {
				return err
			}
		}
	}
	p.rows = slices.DeleteFunc(p.rows, func(r numbered) bool { return !last.keeps(r.job, r.seq) })
	return nil
}

// noteOthers notes the records of some jobs that are on other pages.
func (p *page) noteOthers(ctx context.Context, some []numbered, last lastRuns) error {
	var ids []any
	for _, r := range some {
		ids = append(ids, r.job.ID)
	}
	list := marks(len(ids))
	const several = "FROM job WHERE job IN (SELECT job FROM job WHERE job IN (%s) GROUP BY job HAVING count(*) > 1)"
	return p.eachJob(ctx, fmt.Sprintf(several, list)+" ORDER BY seq", ids, func(r numbered) bool {
		if p.q.inTime(r.job) && p.q.matches(r.job) {
			last.note(r.job, r.seq)
		}
		return true
	})
}

// marks are n places for values of a query.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// inTime reports whether a job is within what where selects by times and users.
func (q *Query) inTime(j *cluster.Job) bool {
	switch {
	case len(q.Users) > 0 && !slices.Contains(q.Users, j.Spec.UID):
		return false
	case !q.To.IsZero() && j.Submitted.After(q.To):
		return false
	case !q.From.IsZero() && !j.Ended.IsZero() && j.Ended.Before(q.From):
		return false
	}
	return q.Before.IsZero() || !j.Ended.IsZero() && j.Ended.Before(q.Before)
}

// withSteps adds the jobs' steps, and ends the page where they are too many.
func (p *page) withSteps(ctx context.Context) (list []Record, next *Cursor, err error) {
	room := p.size.steps
	for rows := p.rows; len(rows) > 0; {
		some, n, err := p.fitting(ctx, rows, room)
		if err != nil {
			return nil, nil, err
		}
		again := p.at.Steps > 0 && some[0].seq == p.at.Seq
		if n > room && len(list) > 0 {
			return list, &Cursor{Seq: rows[0].seq - 1}, nil
		}
		var more []Record
		if n > room || again {
			more, next, err = p.partOf(ctx, some[0], again)
		} else {
			more, err = p.records(ctx, some)
		}
		if list = append(list, more...); err != nil || next != nil {
			return list, next, err
		}
		rows, room = rows[len(more):], room-n
	}
	return list, p.next, nil
}

// fitting returns the first rows, with the number of their steps: as many rows as are read at once, or one if the steps
// of these are more than room.
func (p *page) fitting(ctx context.Context, rows []numbered, room int) (some []numbered, n int, err error) {
	some = rows[:min(jobsAtOnce, len(rows))]
	if n, err = p.countSteps(ctx, some); n > room {
		some = some[:1]
		n, err = p.countSteps(ctx, some)
	}
	return some, n, err
}

// records reads the steps of some jobs.
func (p *page) records(ctx context.Context, some []numbered) (list []Record, err error) {
	steps, err := readSteps(ctx, p.d.r, jobsIn(some), -1)
	for _, r := range some {
		list = append(list, Record{Job: r.job, Steps: stepsOf(r.job, steps[jobRun{r.job.ID, r.job.Attempt}])})
	}
	return list, err
}

// partOf returns a record with so many of its steps as a page holds; next is nil if these are the last ones.
func (p *page) partOf(ctx context.Context, of numbered, again bool) (list []Record, next *Cursor, err error) {
	skip := 0
	if again {
		skip = p.at.Steps
	}
	from := "step WHERE job = ?" + stepOrder + " LIMIT ? OFFSET ?"
	steps, n, err := scanSteps(ctx, p.d.r, from, of.job.ID, p.size.steps, skip)
	if err != nil {
		return nil, nil, err
	}
	r := Record{Job: of.job, Steps: stepsOf(of.job, steps[jobRun{of.job.ID, of.job.Attempt}]), Rest: again}
	if n == p.size.steps {
		next = &Cursor{Seq: of.seq, Steps: skip + n}
	}
	return []Record{r}, next, nil
}

func jobsIn(list []numbered) (jobs []*cluster.Job) {
	for _, r := range list {
		jobs = append(jobs, r.job)
	}
	return jobs
}

// countSteps counts the steps of jobs.
func (p *page) countSteps(ctx context.Context, list []numbered) (n int, err error) {
	var ids []any
	for _, r := range list {
		ids = append(ids, r.job.ID)
	}
	err = p.d.r.QueryRowContext(ctx, "SELECT count(*) FROM step WHERE job IN ("+marks(len(ids))+")", ids...).Scan(&n)
	return n, err
}

// lastRuns has the last attempt of each job, with all sizes that it had. Jobs of other clusters have numbers of their
// own.
type lastRuns map[jobOf]lastRun

type lastRun struct {
	seq       int64
	submitted time.Time
	attempt   int
}

// note takes a record into account. Of this cluster's, the one that entered history last is the last; of a Slurm
// cluster's, the one that was submitted last.
func (m lastRuns) note(j *cluster.Job, seq int64) {
	of, now := jobOfRecord(j), lastRun{seq, j.Submitted, j.Attempt}
	old, have := m[of]
	later := 0
	if j.Imported != nil {
		later = now.submitted.Compare(old.submitted)
	}
	if !have || cmp.Or(later, cmp.Compare(seq, old.seq)) > 0 {
		m[of] = now
	}
}

// keeps reports whether a record is the last one of its job, or one of the sizes that the last attempt had.
func (m lastRuns) keeps(j *cluster.Job, seq int64) bool {
	last := m[jobOfRecord(j)]
	return last.seq == seq || j.Outcome == cluster.Resized && (j.Imported != nil || j.Attempt == last.attempt)
}
