package acct

import (
	"context"
	"fmt"
	"time"
)

// The past of the cluster as a whole: what was in use, how long the queue was. Each server keeps it of its own
// state, a sample a minute, and sums minutes up to hours: there is no hole where another one leads.

// How long samples are kept.
const (
	minutesKept = 48 * time.Hour
	hoursKept   = 2 * 366 * 24 * time.Hour
	mostBuckets = 1000
)

// Spans of samples, in seconds.
const (
	minuteSpan = 60
	hourSpan   = 3600
)

const sampleSchema = `
CREATE TABLE IF NOT EXISTS sample (
  span INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  total REAL NOT NULL, used REAL NOT NULL, lost REAL NOT NULL, PRIMARY KEY (span, kind, at, name)) STRICT,
	WITHOUT ROWID;`

// Counted is the kind of samples that count what happened in a time; of all others the mean is kept.
const Counted = "jobs"

// Sample is how much there was of something, how much of it was in use, and how much nobody could have.
type Sample struct {
	At                time.Time // when its time began
	Kind, Name        string
	Total, Used, Lost float64
}

// Past is the samples of a history.
type Past struct{ d *DB }

// PastOf gives access to the samples of a history.
func PastOf(d *DB) Past { return Past{d} }

// hourly sums the minutes of one hour up. A minute that lacks a name counts as nothing.
const hourly = `INSERT OR REPLACE INTO sample
SELECT 3600, ?1, kind, name, sum(total) / n, sum(used) / iif(kind = 'jobs', 1, n), sum(lost) / n
FROM sample, (SELECT max(count(DISTINCT at),
	1) AS n FROM sample WHERE span = 60 AND kind = 'node' AND at >= ?1 AND at < ?1 + 3600)
WHERE span = 60 AND at >= ?1 AND at < ?1 + 3600 GROUP BY kind, name`

// Add keeps the samples of the minute that a moment is in, instead of those that it may have.
func (p Past) Add(ctx context.Context, now time.Time, list []Sample) error {
	d := p.d
	d.files.RLock()
	defer d.files.RUnlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	tx, err := d.w.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("keep a sample: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing once it is committed
	at := now.Unix() / minuteSpan * minuteSpan
	do := func(query string, args ...any) {
		if err == nil {
			_, err = tx.ExecContext(ctx, query, args...)
		}
	}
	for _, s := range list {
		do("INSERT OR REPLACE INTO sample VALUES (60, ?, ?, ?, ?, ?, ?)", at, s.Kind, s.Name, s.Total, s.Used, s.Lost)
	}
	hour := at / hourSpan * hourSpan
	do(hourly, hour)
	if at-hour < 2*minuteSpan { // the hour before may have lacked its end
		do(hourly, hour-hourSpan)
		do("DELETE FROM sample WHERE span = 60 AND at < ?", at-int64(minutesKept/time.Second))
		do("DELETE FROM sample WHERE span = 3600 AND at < ?", at-int64(hoursKept/time.Second))
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("keep a sample: %w", err)
	}
	return nil
}

// Between reads the samples of one kind in a time, as the means of so many parts of it at most, the oldest first.
func (p Past) Between(ctx context.Context, kind string, from, to time.Time, parts int) (out []Sample, err error) {
	d := p.d
	d.files.RLock()
	defer d.files.RUnlock()
	span := int64(minuteSpan)
	if time.Since(from) > minutesKept {
		span = hourSpan
	}
	parts = min(max(parts, 1), mostBuckets)
	width := max((to.Unix()-from.Unix())/int64(parts)/span*span, span)
	rows, err := d.r.QueryContext(ctx,
		`SELECT at / ?1 * ?1 AS part, name, avg(total), iif(?2 = 'jobs', sum(used), avg(used)), avg(lost)
FROM sample WHERE span = ?3 AND kind = ?2 AND at >= ?4 AND at < ?5 GROUP BY part, name ORDER BY part, name`,
		width, kind, span, from.Unix(), to.Unix())
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		s, at := Sample{Kind: kind}, int64(0)
		if err := rows.Scan(&at, &s.Name, &s.Total, &s.Used, &s.Lost); err != nil {
			return nil, fmt.Errorf("read samples: %w", err)
		}
		s.At = time.Unix(at, 0)
		out = append(out, s)
	}
	return out, rows.Err()
}
