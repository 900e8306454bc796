package acct

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Usage sums what jobs used in a time, as a query keeps it apart. Rows come in order of account, user and wckey,
// those of one owner in the order in which their class was first seen.
func (d *DB) Usage(ctx context.Context, q cluster.UsageQuery) ([]cluster.UsageRow, error) {
	if len(q.Refs) > 0 || len(q.Nodes) > 0 {
		return d.usageOfJobs(ctx, q)
	}
	d.files.RLock()
	defer d.files.RUnlock()
	// The tables' order makes this one range of run for each class. CASE costs half of min and max.
	rows, err := d.r.QueryContext(ctx, `SELECT class.data, sum(CASE WHEN run.s1 > ?2 THEN ?2 ELSE run.s1 END - CASE WHEN run.s0 < ?1 THEN ?1 ELSE run.s0 END), sum(run.n = 0)
		FROM class CROSS JOIN run ON run.class = class.id AND run.s1 > ?1 WHERE run.s0 < ?2 GROUP BY class.id`, q.Time.From, q.Time.To)
	if err != nil {
		return nil, fmt.Errorf("sum up history: %w", err)
	}
	defer rows.Close()
	s := newSums(&q)
	for rows.Next() {
		var data []byte
		var secs, jobs int64
		if err := rows.Scan(&data, &secs, &jobs); err != nil {
			return nil, fmt.Errorf("sum up history: %w", err)
		}
		var c cluster.UsageClass
		if err := wire.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("sum up history: %w", err)
		}
		if err := s.add(&c, secs, jobs); err != nil {
			return nil, err
		}
	}
	return s.rows(), rows.Err()
}

// usageOfJobs is Usage where jobs or nodes are named: it reads the records.
func (d *DB) usageOfJobs(ctx context.Context, q cluster.UsageQuery) ([]cluster.UsageRow, error) {
	s := newSums(&q)
	for r, err := range d.Jobs(ctx, Query{Refs: q.Refs, Nodes: q.Nodes, Duplicates: true}) {
		if err != nil {
			return nil, err
		}
		f := r.Job.Footprint()
		for i, run := range f.Runs {
			if secs := run.Within(q.Time); secs > 0 {
				n := int64(0)
				if i == 0 {
					n = 1
				}
				if err := s.add(&f.Class, secs, n); err != nil {
					return nil, err
				}
			}
		}
	}
	return s.rows(), nil
}

// sums gathers the rows of a report.
type sums struct {
	q    *cluster.UsageQuery
	at   map[string]int
	list []cluster.UsageRow
}

func newSums(q *cluster.UsageQuery) *sums { return &sums{q: q, at: map[string]int{}} }

func (s *sums) add(c *cluster.UsageClass, secs, jobs int64) error {
	if !s.q.Selects(c) {
		return nil
	}
	key := s.q.Key(c)
	text, err := wire.Marshal(&key)
	if err != nil {
		return err
	}
	i, ok := s.at[string(text)]
	if !ok {
		i, s.list = len(s.list), append(s.list, cluster.UsageRow{UsageClass: key})
		s.at[string(text)] = i
	}
	s.list[i].Add(c, secs, jobs)
	return nil
}

func (s *sums) rows() []cluster.UsageRow {
	slices.SortStableFunc(s.list, func(a, b cluster.UsageRow) int {
		return strings.Compare(a.Account+"\x00"+a.User+"\x00"+a.WCKey, b.Account+"\x00"+b.User+"\x00"+b.WCKey)
	})
	return s.list
}

// NodeSpans lists how nodes were in a time, by node and time.
func (d *DB) NodeSpans(ctx context.Context, t cluster.Span) (out []cluster.NodeSpan, err error) {
	d.files.RLock()
	defer d.files.RUnlock()
	err = each(ctx, d.r, fmt.Sprintf("SELECT data FROM node WHERE started < %d AND (ended > %d OR ended = 0) ORDER BY name, started",
		t.To, t.From), func(data []byte) error {
		var s cluster.NodeSpan
		if err := wire.Unmarshal(data, &s); err != nil {
			return err
		}
		out = append(out, s)
		return nil
	})
	return out, err
}

// Reservations lists the reservations of a time by when they began, with what their jobs used of all of theirs.
func (d *DB) Reservations(ctx context.Context, t cluster.Span) ([]cluster.ResvSpan, error) {
	out, err := d.resvSpans(ctx, t)
	out = slices.DeleteFunc(out, func(s cluster.ResvSpan) bool { return s.Forgotten })
	for i := range out {
		if err == nil {
			err = d.resvUse(ctx, &out[i], t.To)
		}
	}
	return out, err
}

func (d *DB) resvSpans(ctx context.Context, t cluster.Span) ([]cluster.ResvSpan, error) {
	d.files.RLock()
	defer d.files.RUnlock()
	rows, err := d.r.QueryContext(ctx,
		"SELECT id, data FROM resv WHERE started < ? AND ended > ? ORDER BY started, name", t.To, t.From)
	if err != nil {
		return nil, fmt.Errorf("read reservations: %w", err)
	}
	defer rows.Close()
	var out []cluster.ResvSpan
	for rows.Next() {
		var id int64
		var data []byte
		var s cluster.ResvSpan
		if err = rows.Scan(&id, &data); err == nil {
			err = wire.Unmarshal(data, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("read reservations: %w", err)
		}
		s.ID = id
		out = append(out, s)
	}
	return out, rows.Err()
}

// resvUse fills in what the jobs of a reservation used before the end of a time.
func (d *DB) resvUse(ctx context.Context, s *cluster.ResvSpan, end int64) error {
	rows, err := d.Usage(ctx, cluster.UsageQuery{Time: cluster.Span{From: s.From, To: min(s.To, end)}, Resv: s.Name})
	for i := range rows {
		s.Used = cluster.AddAmounts(s.Used, rows[i].Used, 1)
	}
	return err
}

// Changes lists the changes of the books in a time, oldest first.
func (d *DB) Changes(ctx context.Context, t cluster.Span) (out []cluster.Transaction, err error) {
	d.files.RLock()
	defer d.files.RUnlock()
	err = each(ctx, d.r, fmt.Sprintf("SELECT data FROM txn WHERE at >= %d AND at < %d ORDER BY at, id",
		t.From*int64(time.Second), t.To*int64(time.Second)), func(data []byte) error {
		var x cluster.Transaction
		if err := wire.Unmarshal(data, &x); err != nil {
			return err
		}
		out = append(out, x)
		return nil
	})
	return out, err
}
