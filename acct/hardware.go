package acct

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// The past of hardware: what each node and its GPUs did, and each job on each of its nodes. Nodes' samples
// are kept for two days as they came, and joined to hours for two years. Those of jobs are kept as they
// came for two days, and are joined then so that none has more than jobPoints for each of its nodes,
// however long it runs.

const (
	jobPoints   = 240
	jobKept     = 366 * 24 * time.Hour
	hourLate    = 2 * time.Minute // after the end of an hour it is summed up
	thinAtATime = 500             // jobs
)

const hardwareSchema = `
CREATE TABLE IF NOT EXISTS hardware (
  node TEXT NOT NULL, hourly INTEGER NOT NULL, at INTEGER NOT NULL, span INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (node, hourly, at)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS job_hardware (
  job INTEGER NOT NULL, node TEXT NOT NULL, at INTEGER NOT NULL, span INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (job, node, at)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS job_thinned (job INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;`

// Hardware is what a node, or a job on a node, did in a time. A sample of a node has no job.
type Hardware struct {
	Job  cluster.JobID
	Node cluster.NodeName
	At   time.Time
	Span time.Duration
	Data []byte // packed
}

// Samples are the samples of hardware of a history.
type Samples struct{ d *DB }

// SamplesOf gives access to the samples of hardware of a history.
func SamplesOf(d *DB) Samples { return Samples{d} }

// change runs something that writes, as one transaction.
func (s Samples) change(ctx context.Context, what string, do func(tx *sql.Tx) error) error {
	d := s.d
	d.files.RLock()
	defer d.files.RUnlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	tx, err := d.w.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing once it is committed
	if err = do(tx); err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Add keeps samples, instead of those of the same time if there are any.
func (s Samples) Add(ctx context.Context, list []Hardware) error {
	return s.change(ctx, "keep samples of hardware", func(tx *sql.Tx) error {
		ofNode, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO hardware VALUES (?, 0, ?, ?, ?)")
		if err != nil {
			return err
		}
		defer ofNode.Close()
		ofJob, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO job_hardware VALUES (?, ?, ?, ?, ?)")
		if err != nil {
			return err
		}
		defer ofJob.Close()
		for i := range list {
			h := &list[i]
			at, span := h.At.Unix(), int64(h.Span/time.Second)
			if h.Job == 0 {
				_, err = ofNode.ExecContext(ctx, string(h.Node), at, span, h.Data)
			} else {
				_, err = ofJob.ExecContext(ctx, int64(h.Job), string(h.Node), at, span, h.Data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// read runs a query whose columns are node, at, span and data.
func (s Samples) read(ctx context.Context, job cluster.JobID, query string, args ...any) (out []Hardware, err error) {
	s.d.files.RLock()
	defer s.d.files.RUnlock()
	rows, err := s.d.r.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read samples of hardware: %w", err)
	}
	defer rows.Close()
	return scanHardware(rows, job)
}

func scanHardware(rows *sql.Rows, job cluster.JobID) (out []Hardware, err error) {
	for rows.Next() {
		h := Hardware{Job: job}
		var at, span int64
		if err := rows.Scan(&h.Node, &at, &span, &h.Data); err != nil {
			return nil, fmt.Errorf("read samples of hardware: %w", err)
		}
		h.At, h.Span = time.Unix(at, 0), time.Duration(span)*time.Second
		out = append(out, h)
	}
	return out, rows.Err()
}

// Node reads the samples of a node in a time, the oldest first: as they came, or hours where those are gone.
func (s Samples) Node(ctx context.Context, name cluster.NodeName, from, to time.Time) ([]Hardware, error) {
	hourly := 0
	if time.Since(from) > minutesKept {
		hourly = 1
	}
	return s.read(ctx, 0, `SELECT node, at, span, data FROM hardware
WHERE node = ? AND hourly = ? AND at >= ? AND at < ? ORDER BY at`, string(name), hourly, from.Unix(), to.Unix())
}

// Job reads the samples of a job in a time, by node and the oldest first; of one node if one is named.
func (s Samples) Job(ctx context.Context, job cluster.JobID, node cluster.NodeName, from, to time.Time,
) ([]Hardware, error) {
	return s.read(ctx, job, `SELECT node, at, span, data FROM job_hardware
WHERE job = ?1 AND (?2 = '' OR node = ?2) AND at >= ?3 AND at < ?4 ORDER BY node, at`,
		int64(job), string(node), from.Unix(), to.Unix())
}

// distinct lists what a column has, by looking for the next value after each.
func distinct[T any](ctx context.Context, tx *sql.Tx, query string, first T) (out []T, err error) {
	next, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer next.Close()
	for at := first; ; {
		var v sql.Null[T]
		if err := next.QueryRowContext(ctx, at).Scan(&v); err != nil {
			return nil, err
		}
		if !v.Valid {
			return out, nil
		}
		at = v.V
		out = append(out, at)
	}
}

// Hour joins the samples of nodes of an hour, and forgets what is too old. now is later than the hour.
func (s Samples) Hour(ctx context.Context, hour, now time.Time) error {
	return s.change(ctx, "sum up an hour of hardware", func(tx *sql.Tx) error {
		nodes, err := distinct(ctx, tx, "SELECT min(node) FROM hardware WHERE node > ?", "")
		if err != nil {
			return err
		}
		for _, name := range nodes {
			if err := joinHour(ctx, tx, name, hour.Unix()); err != nil {
				return err
			}
			for hourly, kept := range []time.Duration{minutesKept, hoursKept} {
				const forget = "DELETE FROM hardware WHERE node = ? AND hourly = ? AND at < ?"
				if _, err := tx.ExecContext(ctx, forget, name, hourly, now.Add(-kept).Unix()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// joinHour joins the samples of one node and hour.
func joinHour(ctx context.Context, tx *sql.Tx, name string, hour int64) error {
	rows, err := tx.QueryContext(ctx, `SELECT node, at, span, data FROM hardware
WHERE node = ? AND hourly = 0 AND at >= ? AND at < ?`, name, hour, hour+hourSpan)
	if err != nil {
		return err
	}
	list, err := scanHardware(rows, 0)
	if err = firstError(err, rows.Close()); err != nil || len(list) == 0 {
		return err
	}
	var j telemetry.Joiner
	for i := range list {
		if one, err := telemetry.Unpack(list[i].Data); err == nil {
			j.Add(one, list[i].Span.Seconds())
		}
	}
	if j.Empty() {
		return nil
	}
	const put = "INSERT OR REPLACE INTO hardware VALUES (?, 1, ?, 3600, ?)"
	_, err = tx.ExecContext(ctx, put, name, hour, j.Sample().Pack())
	return err
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// Thin joins samples of jobs that are older than two days, so that no job has too many, and forgets the
// oldest; a part of the jobs, those after one, at a time. It returns the last of them; 0: there are no
// more.
func (s Samples) Thin(ctx context.Context, now time.Time, after cluster.JobID) (last cluster.JobID, err error) {
	err = s.change(ctx, "thin out samples of jobs", func(tx *sql.Tx) error {
		if after == 0 {
			if err := forgetJobs(ctx, tx, now.Add(-jobKept).Unix()); err != nil {
				return err
			}
		}
		for n, at := 0, after; n < thinAtATime; n++ {
			var job sql.NullInt64
			err := tx.QueryRowContext(ctx, "SELECT min(job) FROM job_hardware WHERE job > ?", int64(at)).Scan(&job)
			if err != nil || !job.Valid {
				last = 0
				return err
			}
			at, last = cluster.JobID(job.Int64), cluster.JobID(job.Int64)
			if err := thinJob(ctx, tx, job.Int64, now); err != nil {
				return err
			}
		}
		return nil
	})
	return last, err
}

// forgetJobs drops the samples of jobs that were thinned for the last time and are too old.
func forgetJobs(ctx context.Context, tx *sql.Tx, before int64) error {
	for _, q := range []string{"DELETE FROM job_hardware WHERE job IN (SELECT job FROM job_thinned WHERE last < ?)",
		"DELETE FROM job_thinned WHERE last < ?"} {
		if _, err := tx.ExecContext(ctx, q, before); err != nil {
			return err
		}
	}
	return nil
}

// thinSpan is how long samples of a job of so many seconds are: a minute, two, four and so on.
func thinSpan(seconds int64) int64 {
	span := int64(minuteSpan)
	for seconds/span > jobPoints {
		span *= 2
	}
	return span
}

// thinJob joins the old samples of one job.
func thinJob(ctx context.Context, tx *sql.Tx, job int64, now time.Time) error {
	var done bool
	const thinned = "SELECT EXISTS (SELECT 1 FROM job_thinned WHERE job = ?)"
	if err := tx.QueryRowContext(ctx, thinned, job).Scan(&done); done || err != nil {
		return err
	}
	old := now.Add(-minutesKept).Unix()
	var first, last int64
	err := tx.QueryRowContext(ctx, "SELECT min(at), max(at) FROM job_hardware WHERE job = ?", job).Scan(&first, &last)
	if err != nil || first >= old {
		return err
	}
	span := thinSpan(last - first)
	old = old / span * span // parts are whole
	rows, err := tx.QueryContext(ctx, `SELECT node, at, span, data FROM job_hardware
WHERE job = ? AND at < ? AND span < ? ORDER BY node, at`, job, old, span)
	if err != nil {
		return err
	}
	list, err := scanHardware(rows, cluster.JobID(job))
	if err = firstError(err, rows.Close()); err != nil {
		return err
	}
	if err := replaceJoined(ctx, tx, list, span, old); err != nil {
		return err
	}
	if last < old {
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO job_thinned VALUES (?, ?)", job, last)
	}
	return err
}

// replaceJoined puts joined samples of a span in the place of those of a job.
func replaceJoined(ctx context.Context, tx *sql.Tx, list []Hardware, span, old int64) error {
	if len(list) == 0 {
		return nil
	}
	job := int64(list[0].Job)
	const forget = "DELETE FROM job_hardware WHERE job = ? AND at < ? AND span < ?"
	if _, err := tx.ExecContext(ctx, forget, job, old, span); err != nil {
		return err
	}
	part := func(h Hardware) int64 { return h.At.Unix() / span * span }
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(h Hardware) bool { return h.Node != list[0].Node || part(h) != part(list[0]) })
		if n < 0 {
			n = len(list)
		}
		var j telemetry.Joiner
		for _, h := range list[:n] {
			if one, err := telemetry.Unpack(h.Data); err == nil {
				j.Add(one, h.Span.Seconds())
			}
		}
		if !j.Empty() {
			const put = "INSERT OR REPLACE INTO job_hardware VALUES (?, ?, ?, ?, ?)"
			data := j.Sample().Pack()
			if _, err := tx.ExecContext(ctx, put, job, string(list[0].Node), part(list[0]), span, data); err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}
