package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Ask answers a question in SQL about some jobs and their steps, which it holds in memory: the tables jobs and steps
// of OwnTables, and nothing else. A question can still fill the memory of the process, which should be one of its own.
func Ask(ctx context.Context, jobs []*cluster.Job, steps []*cluster.Step, query string) (Table, error) {
	if err := checkSQL(query); err != nil {
		return Table{}, err
	}
	if err := sqlFunctions(); err != nil {
		return Table{}, err
	}
	db, err := sql.Open("sqlite", "file::memory:?_pragma=temp_store(2)&_pragma=trusted_schema(1)")
	if err != nil {
		return Table{}, fmt.Errorf("open a database in memory: %w", err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return Table{}, fmt.Errorf("open a database in memory: %w", err)
	}
	defer conn.Close()
	if err := fill(ctx, conn, jobs, steps); err != nil {
		return Table{}, fmt.Errorf("copy jobs: %w", err)
	}
	if err := makeViews(ctx, conn, ownViews()); err != nil {
		return Table{}, fmt.Errorf("make the tables of SQL: %w", err)
	}
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return Table{}, ownError(ctx, err)
	}
	defer rows.Close()
	t, err := readTable(rows)
	if err != nil {
		return Table{}, ownError(ctx, err)
	}
	return t, nil
}

// ownError tells what is wrong with a question.
func ownError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return cluster.Errorf(cluster.Invalid, "", "the question takes too long: use WHERE, LIMIT or aggregates")
	}
	return sqlError(ctx, err)
}

// OwnTables lists the tables of Ask as SQLTables lists all.
func OwnTables() Table { return tablesOf(ownViews()) }

// ownViews are the views of jobs and steps.
func ownViews() (list []view) {
	for _, v := range jobViews() {
		if v.name == "jobs" || v.name == "steps" {
			list = append(list, v)
		}
	}
	return list
}

// fill makes the tables of jobs and steps.
func fill(ctx context.Context, conn *sql.Conn, jobs []*cluster.Job, steps []*cluster.Step) error {
	err := run(ctx, conn,
		"CREATE TABLE job (job INTEGER, submitted INTEGER, array INTEGER, uid INTEGER, started INTEGER, "+
			"ended INTEGER, data BLOB)",
		"CREATE TABLE step (job INTEGER, attempt INTEGER, step INTEGER, started INTEGER, data BLOB)")
	if err != nil {
		return err
	}
	for _, j := range jobs {
		data, err := wire.Marshal(j)
		if err == nil {
			_, err = conn.ExecContext(ctx, "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?)", int64(j.ID),
				unix(j.Submitted), int64(j.ArrayID), int64(j.Spec.UID), unix(j.Started), unix(j.Ended), data)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range steps {
		data, err := wire.Marshal(s)
		if err == nil {
			_, err = conn.ExecContext(ctx, "INSERT INTO step VALUES (?, ?, ?, ?, ?)", int64(s.ID.Job), s.Attempt,
				s.ID.Step, unix(s.Started), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
