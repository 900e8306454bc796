package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Old records go as events say. An event only stores how far a kind is forgotten (meta "forget ..."); the rows go
// behind that, some thousands at a time between other work, until "swept ..." has come up to it. Both are in the
// file, so that a restart goes on, and a copy for another server goes on there.

// sweepRows bounds how many rows go in one transaction.
const sweepRows = 2000

// keeping is how records of a kind are read, in the order in which they entered history, and how they go: those
// that ended before a time, at most so many; rows says how many went.
type keeping struct {
	kind cluster.RecordKind
	old  string                                                       // number and data of those before ?1, Unix nanoseconds; empty: none is read
	data func(a *cluster.Archived) any                                // what the data is
	rows func(u *usage, before int64, limit int) (n int64, err error) // before: Unix nanoseconds
}

// Which rows of node are events that have a record still.
const oldEvents = ` FROM node WHERE ended > 0 AND ended < ?1 / 1000000000 AND json_extract(CAST(data AS TEXT), '$.forgotten') IS NULL
	AND (json_extract(CAST(data AS TEXT), '$.down') OR json_extract(CAST(data AS TEXT), '$.drain'))`

const oldResvs = ` FROM resv WHERE ended < ?1 / 1000000000 AND json_extract(CAST(data AS TEXT), '$.forgotten') IS NULL`

func keepings() []keeping {
	return []keeping{
		{cluster.StepRecords,
			"SELECT 0, data FROM step WHERE started < ? AND json_extract(data, '$.ended') IS NOT NULL ORDER BY job, attempt, started, step",
			func(a *cluster.Archived) any { a.Step = &cluster.Step{}; return a.Step }, sweepSteps},
		{cluster.JobRecords, "SELECT seq, data FROM job WHERE ended > 0 AND ended < ? ORDER BY seq",
			func(a *cluster.Archived) any { a.Job = &cluster.Job{}; return a.Job }, sweepJobs},
		{cluster.EventRecords, "SELECT 0, data" + oldEvents + " ORDER BY started, name",
			func(a *cluster.Archived) any { a.Event = &cluster.NodeSpan{}; return a.Event },
			func(u *usage, before int64, limit int) (int64, error) {
				return u.strip("UPDATE node SET data = %s WHERE (name, started) IN (SELECT name, started"+oldEvents+" LIMIT ?2)",
					"'$.reason', '$.by', '$.by_uid'", before, limit)
			}},
		{cluster.ResvRecords, "SELECT 0, data" + oldResvs + " ORDER BY id",
			func(a *cluster.Archived) any { a.Resv = &cluster.ResvSpan{}; return a.Resv },
			func(u *usage, before int64, limit int) (int64, error) {
				return u.strip("UPDATE resv SET data = %s WHERE id IN (SELECT id"+oldResvs+" LIMIT ?2)",
					"'$.nodes', '$.users', '$.accounts'", before, limit)
			}},
		{cluster.TxnRecords, "SELECT 0, data FROM txn WHERE at < ? ORDER BY at, id",
			func(a *cluster.Archived) any { a.Change = &cluster.Transaction{}; return a.Change },
			func(u *usage, before int64, limit int) (int64, error) {
				n, err := u.remove("DELETE FROM txn WHERE id IN (SELECT id FROM txn WHERE at < ?1 LIMIT ?2)",
					before, limit)
				if err != nil || n > 0 {
					return n, err
				}
				return u.remove("DELETE FROM trail WHERE id IN (SELECT id FROM trail WHERE at < ?1 LIMIT ?2)",
					before, limit)
			}},
		{cluster.UsageRecords, "", nil, sweepUsage},
	}
}

// strip takes fields out of records whose rows stay for reports.
func (u *usage) strip(update, fields string, before int64, limit int) (int64, error) {
	return u.remove(fmt.Sprintf(update,
		"CAST(json_set(json_remove(CAST(data AS TEXT), "+fields+"), '$.forgotten', json('true')) AS BLOB)"),
		before, limit)
}

func sweepSteps(u *usage, before int64, limit int) (int64, error) {
	return u.remove(`DELETE FROM step WHERE (job, attempt, step, started) IN (SELECT job, attempt, step, started FROM step
		WHERE started < ?1 AND json_extract(data, '$.ended') IS NOT NULL LIMIT ?2)`, before, limit)
}

// sweepJobs takes away jobs with their steps.
func sweepJobs(u *usage, before int64, limit int) (int64, error) {
	const old = " FROM job WHERE ended > 0 AND ended < ?1 ORDER BY ended, submitted LIMIT ?2"
	if _, err := u.remove(`DELETE FROM step WHERE job IN (SELECT job`+old+`)
		AND NOT EXISTS (SELECT 1 FROM job WHERE job.job = step.job AND (job.ended = 0 OR job.ended >= ?1))`, before, limit); err != nil {
		return 0, err
	}
	return u.remove("DELETE FROM job WHERE seq IN (SELECT seq"+old+")", before, limit)
}

// sweepUsage takes away what reports sum up. Of load, which has steps up and down, what was before becomes one step.
func sweepUsage(u *usage, before int64, limit int) (int64, error) {
	secs := before / int64(time.Second)
	n, err := u.remove("DELETE FROM run WHERE (class, s1, s0, seq, n) IN (SELECT class, s1, s0, seq, n FROM run WHERE s1 < ?1 LIMIT ?2)",
		secs, limit)
	if err != nil || n > 0 {
		return n, err
	}
	for _, statement := range []string{
		`CREATE TEMP TABLE folded AS SELECT what, sum(n) AS n FROM load WHERE hour < ?1 GROUP BY what HAVING sum(n) != 0`,
		"DELETE FROM load WHERE hour < ?1",
		"INSERT INTO load (what, hour, n, moment) SELECT what, ?1 - 1, n, 0 FROM folded"} {
		if _, err := u.tx.Exec(statement, secs/hour); err != nil {
			return 0, err
		}
	}
	if _, err := u.tx.Exec("DROP TABLE folded"); err != nil {
		return 0, err
	}
	if _, err := u.remove("DELETE FROM node WHERE ended > 0 AND ended < ?1", secs, 0); err != nil {
		return 0, err
	}
	_, err = u.remove("DELETE FROM resv WHERE ended < ?1", secs, 0)
	return 0, err
}

// remove deletes rows and says how many.
func (u *usage) remove(statement string, before int64, limit int) (int64, error) {
	args := []any{before}
	if limit > 0 {
		args = append(args, limit)
	}
	r, err := u.tx.Exec(statement, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func forgetKey(k cluster.RecordKind) string { return "forget " + string(k) }
func sweptKey(k cluster.RecordKind) string  { return "swept " + string(k) }

// seqKey is the highest number that a job's record had whose record may be gone: none has it again.
const seqKey = "seq"

// forget stores how far history is forgotten.
func (u *usage) forget(cutoffs []cluster.Cutoff) error {
	for _, c := range cutoffs {
		if err := u.raise(forgetKey(c.Kind), c.Before); err != nil {
			return err
		}
	}
	if err := u.dropLoaded(cutoffs); err != nil {
		return err
	}
	var last int64
	err := u.row("SELECT ifnull(max(seq), 0) FROM job", nil, &last)
	if err == nil {
		err = u.raise(seqKey, last)
	}
	return err
}

// sweepSome takes away rows of one kind that is forgotten; more says that there may be others.
func (u *usage) sweepSome(limit int) (more bool, err error) {
	for _, s := range keepings() {
		forget, err := u.meta(forgetKey(s.kind))
		if err != nil {
			return false, err
		}
		swept, err := u.meta(sweptKey(s.kind))
		if err != nil {
			return false, err
		}
		if swept >= forget {
			continue
		}
		n, err := s.rows(u, forget*int64(time.Second), limit)
		if err == nil && n == 0 {
			err = u.raise(sweptKey(s.kind), forget)
		}
		return true, err
	}
	return false, nil
}

// sweep takes away some of what is forgotten, if there is any.
func (d *DB) sweep() error {
	d.mu.Lock()
	due := d.sweeping
	d.mu.Unlock()
	if !due {
		return nil
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	tx, err := d.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op once committed
	more, err := newUsage(tx).sweepSome(sweepRows)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("remove old records: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweeping = more
	d.announce()
	if more {
		poke(d.more)
	}
	return nil
}

// Swept returns once nothing is left of what was forgotten before.
func (d *DB) Swept(ctx context.Context) error {
	for {
		d.mu.Lock()
		done, moved := d.done >= d.index && !d.sweeping, d.moved
		d.mu.Unlock()
		if done {
			return nil
		}
		poke(d.hurry)
		poke(d.more)
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// load puts an archived record back, unless it is there. The job's usage is in the sums still, if they
// have its run; so is how long it waited, if it never ran.
func (u *usage) load(a *cluster.Archived) error {
	switch {
	case a.Step != nil:
		data, err := wire.Marshal(a.Step)
		if err != nil {
			return err
		}
		return u.exec("INSERT OR IGNORE INTO step (job, attempt, step, started, data) VALUES (?, ?, ?, ?, ?)",
			a.Step.ID.Job, a.Step.Attempt, a.Step.ID.Step, unix(a.Step.Started), data)
	case a.Event != nil:
		return u.restore("UPDATE node SET data = ? WHERE name = ? AND started = ?", a.Event, a.Event.Node, a.Event.From)
	case a.Resv != nil:
		return u.restore("UPDATE resv SET data = ? WHERE name = ? AND started = ?", a.Resv, a.Resv.Name, a.Resv.From)
	case a.Change != nil:
		return u.putChange(a.Change)
	case a.Amend != nil:
		return u.amend(a.Amend)
	}
	j := a.Job
	var there, taken, counted int
	if err := u.row("SELECT count(*) FROM job WHERE job = ? AND submitted = ?",
		[]any{j.ID, unix(j.Submitted)}, &there); err != nil || there > 0 {
		return err
	}
	if err := u.row("SELECT count(*) FROM job WHERE seq = ?", []any{a.Seq}, &taken); err != nil {
		return err
	}
	f := j.Footprint()
	if taken == 0 && len(f.Runs) > 0 {
		class, err := wire.Marshal(&f.Class)
		if err == nil {
			err = u.row("SELECT count(*) FROM run JOIN class ON class.id = run.class WHERE class.data = ? AND s1 = ? AND s0 = ? AND seq = ? AND n = 0",
				[]any{string(class), f.Runs[0].To, f.Runs[0].From, a.Seq}, &counted)
		}
		if err != nil {
			return err
		}
	}
	seq := a.Seq
	if taken > 0 {
		seq = 0
	}
	data, err := wire.Marshal(j)
	if err != nil {
		return err
	}
	if seq, err = u.insertJob(j, data, seq); err != nil || counted > 0 || len(f.Runs) == 0 {
		return err
	}
	return u.count(seq, f, 1)
}

// amend changes the record of a job as somebody says afterwards; one that is gone, or another user's, stays as it is.
func (u *usage) amend(a *cluster.AmendedJob) error {
	var data []byte
	err := u.row("SELECT data FROM job WHERE job = ? AND submitted = ? AND uid = ?",
		[]any{a.ID, unix(a.Submitted), a.UID}, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	var j cluster.Job
	if err == nil {
		err = wire.Unmarshal(data, &j)
	}
	if err != nil {
		return err
	}
	a.Of(&j)
	return u.putJob(&j)
}

// restore gives a row of reports its record back. Without the row, which went with the usage, it stays away: it
// would be all that reports had of that time.
func (u *usage) restore(update string, record any, name any, started int64) error {
	data, err := wire.Marshal(record)
	if err != nil {
		return err
	}
	return u.exec(update, data, name, started)
}

// takeLoaded puts archived records back. Whether they are counted still only the past knows: while that is on its
// way here they wait for it.
func (u *usage) takeLoaded(list []cluster.Archived) error {
	lacks, err := u.meta("lacks")
	if err != nil || lacks == 0 {
		return errors.Join(err, u.loadAll(list))
	}
	for i := range list {
		data, err := wire.Marshal(&list[i])
		if err != nil {
			return err
		}
		if err := u.exec("INSERT INTO loaded (data) VALUES (?)", string(data)); err != nil {
			return err
		}
	}
	return nil
}

// dropLoaded has records that wait go with all others of their age, a job's with its steps.
func (u *usage) dropLoaded(cutoffs []cluster.Cutoff) error {
	rows, err := u.tx.Query("SELECT id, data FROM loaded ORDER BY id")
	if err != nil {
		return err
	}
	defer rows.Close()
	var gone []int64
	jobs, steps := map[cluster.JobID]bool{}, map[int64]cluster.JobID{}
	for rows.Next() {
		var id int64
		var data []byte
		var a cluster.Archived
		if err := rows.Scan(&id, &data); err != nil {
			return err
		}
		if err := wire.Unmarshal(data, &a); err != nil {
			return err
		}
		switch over := slices.ContainsFunc(cutoffs, a.Over); {
		case over:
			gone = append(gone, id)
			if a.Job != nil {
				jobs[a.Job.ID] = true
			}
		case a.Step != nil:
			steps[id] = a.Step.ID.Job
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for id, job := range steps {
		if jobs[job] {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		if err := u.exec("DELETE FROM loaded WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// loadAll puts archived records back, behind everything that was to go before.
func (u *usage) loadAll(list []cluster.Archived) error {
	for more := true; more; {
		var err error
		if more, err = u.sweepSome(math.MaxInt32); err != nil {
			return err
		}
	}
	for i := range list {
		if err := u.load(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// Old yields the records that a cutoff would take, in the order in which they entered history. An error ends the
// sequence.
func (d *DB) Old(ctx context.Context, c cluster.Cutoff) iter.Seq2[cluster.Archived, error] {
	return func(yield func(cluster.Archived, error) bool) {
		d.files.RLock()
		defer d.files.RUnlock()
		all := keepings()
		i := slices.IndexFunc(all, func(k keeping) bool { return k.kind == c.Kind && k.old != "" })
		if i < 0 {
			yield(cluster.Archived{}, fmt.Errorf("records of kind %s cannot be archived", c.Kind))
			return
		}
		rows, err := d.r.QueryContext(ctx, all[i].old, c.Before*int64(time.Second))
		if err != nil {
			yield(cluster.Archived{}, fmt.Errorf("read old records: %w", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var a cluster.Archived
			var data []byte
			if err = rows.Scan(&a.Seq, &data); err == nil {
				err = wire.Unmarshal(data, all[i].data(&a))
			}
			if err != nil {
				yield(a, fmt.Errorf("read old records: %w", err))
				return
			}
			if !yield(a, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(cluster.Archived{}, fmt.Errorf("read old records: %w", err))
		}
	}
}
