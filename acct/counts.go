package acct

import (
	"context"
	"fmt"
	"time"

	"dev.muster/cluster"
)

// JobCounts are numbers of jobs: how many started in a time, and how many ended in it by outcome.
type JobCounts struct {
	Started int
	Ended   map[cluster.Outcome]int
}

// Count counts the jobs that started and ended from a moment on. Each task of an array is one.
func (p Past) Count(ctx context.Context, from time.Time) (c JobCounts, err error) {
	d := p.d
	d.files.RLock()
	defer d.files.RUnlock()
	since := from.UnixNano()
	// A job that started after this moment still runs or ended after it, so the index on the end finds them all.
	row := d.r.QueryRowContext(ctx,
		"SELECT count(*) FROM job WHERE (ended = 0 OR ended >= ?1) AND started >= ?1", since)
	if err := row.Scan(&c.Started); err != nil {
		return c, fmt.Errorf("count jobs of history: %w", err)
	}
	rows, err := d.r.QueryContext(ctx, "SELECT ifnull(json_extract(data, '$.outcome'), 0) AS outcome, count(*) "+
		"FROM job WHERE ended >= ? GROUP BY outcome", since)
	if err != nil {
		return c, fmt.Errorf("count jobs of history: %w", err)
	}
	defer rows.Close()
	c.Ended = map[cluster.Outcome]int{}
	for rows.Next() {
		var outcome cluster.Outcome
		var n int
		if err := rows.Scan(&outcome, &n); err != nil {
			return c, fmt.Errorf("count jobs of history: %w", err)
		}
		c.Ended[outcome] = n
	}
	return c, rows.Err()
}
