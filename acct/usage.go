package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// The tables of usage, which reports sum. They follow from the records alone: rebuild makes them again.
//
// run has a row for each time in which a job ran; class what the runs have in common. The key lets a report read,
// of each class, only what ended after the report's beginning. load has the step functions of Utilization: how
// much of a resource runs, or is waited for, over time. A step of n at second s is kept in s's hour as n, and as n
// times the seconds of the hour that were over: with what was before, that gives the hour's sum.
// trail has the audit trail. txn has the changes of the books. node and resv have a row for each time in which a
// node was as it was, or a reservation was. loaded has archived records that are to come back, and what is to be
// changed of jobs, once the past is here.
const usageSchema = `
CREATE TABLE IF NOT EXISTS class (id INTEGER PRIMARY KEY, data TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS run (
  class INTEGER NOT NULL, s1 INTEGER NOT NULL, s0 INTEGER NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY (class, s1, s0, seq, n)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS load (
  what TEXT NOT NULL, hour INTEGER NOT NULL, n INTEGER NOT NULL, moment INTEGER NOT NULL, PRIMARY KEY (what, hour)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS node (
  name TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (name, started)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS node_ended ON node (ended, started);
CREATE TABLE IF NOT EXISTS resv (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (name, started)) STRICT;
CREATE TABLE IF NOT EXISTS txn (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, data TEXT NOT NULL, UNIQUE (at, data)) STRICT;
CREATE TABLE IF NOT EXISTS trail (
	id INTEGER PRIMARY KEY, at INTEGER NOT NULL, data TEXT NOT NULL, UNIQUE (at, data)) STRICT;
CREATE TABLE IF NOT EXISTS loaded (id INTEGER PRIMARY KEY, data TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS job_user ON job (uid, ended, submitted);`

// hour is the grain of load.
const hour = 3600

// Names of the rows that load keeps: behind "run " and "wait " a resource, behind "in " a reservation, a slash and
// a resource.
const (
	loadRun  = "run "
	loadWait = "wait "
	loadIn   = "in "
)

type loadKey struct {
	what string
	hour int64
}

type loadStep struct{ n, moment int64 }

// usage keeps the tables of usage in step with the records, in one transaction.
type usage struct {
	tx      *sql.Tx
	classes map[string]int64
	steps   map[loadKey]loadStep
	stmts   map[string]*sql.Stmt // of this transaction, which closes them
}

func newUsage(tx *sql.Tx) *usage {
	return &usage{tx: tx, classes: map[string]int64{}, steps: map[loadKey]loadStep{}, stmts: map[string]*sql.Stmt{}}
}

// stmt prepares a statement once.
func (u *usage) stmt(query string) (*sql.Stmt, error) {
	if s, ok := u.stmts[query]; ok {
		return s, nil
	}
	s, err := u.tx.Prepare(query)
	if err == nil {
		u.stmts[query] = s
	}
	return s, err
}

func (u *usage) exec(query string, args ...any) error {
	s, err := u.stmt(query)
	if err == nil {
		_, err = s.Exec(args...)
	}
	return err
}

// insert adds a row and returns its number, 0 if there is such a one. (RETURNING would have SQLite keep a journal
// of each statement.)
func (u *usage) insert(query string, args ...any) (id int64, err error) {
	s, err := u.stmt(query)
	if err != nil {
		return 0, err
	}
	r, err := s.Exec(args...)
	if err != nil {
		return 0, err
	}
	if n, err := r.RowsAffected(); n == 0 {
		return 0, err
	}
	return r.LastInsertId()
}

// row reads the columns of one row; sql.ErrNoRows says that there is none.
func (u *usage) row(query string, args []any, to ...any) error {
	s, err := u.stmt(query)
	if err != nil {
		return err
	}
	return s.QueryRow(args...).Scan(to...)
}

// putJob stores a job's record and what follows from it.
func (u *usage) putJob(j *cluster.Job) error {
	data, err := wire.Marshal(j)
	if err != nil {
		return err
	}
	seq := int64(0)
	if j.Phase == cluster.Pending { // most likely new
		if seq, err = u.insertJob(j, data, 0); err != nil {
			return err
		}
	}
	if seq == 0 {
		if seq, err = u.updateJob(j, data); err != nil {
			return err
		}
	}
	return u.count(seq, j.Footprint(), 1)
}

// updateJob stores the record of a job that may have one, data on the wire, and returns its number.
func (u *usage) updateJob(j *cluster.Job, data []byte) (seq int64, err error) {
	var before []byte
	err = u.row("SELECT seq, data FROM job WHERE job = ? AND submitted = ?", []any{j.ID, unix(j.Submitted)},
		&seq, &before)
	if errors.Is(err, sql.ErrNoRows) {
		return u.insertJob(j, data, 0)
	}
	var old cluster.Job
	if err == nil {
		err = wire.Unmarshal(before, &old)
	}
	if err == nil {
		err = u.count(seq, old.Footprint(), -1)
	}
	if err != nil {
		return 0, err
	}
	return seq, u.exec("UPDATE job SET phase = ?, started = ?, ended = ?, data = ? WHERE seq = ?", j.Phase,
		unix(j.Started), unix(j.Ended), data, seq)
}

// insertJob stores the record of a job, data on the wire, by a number, or with 0 by the next one, and returns that;
// 0 if the job has one.
func (u *usage) insertJob(j *cluster.Job, data []byte, seq int64) (int64, error) {
	const columns = "INSERT INTO job (seq, job, submitted, array, uid, phase, started, ended, data) VALUES "
	values := []any{j.ID, unix(j.Submitted), j.ArrayID, j.Spec.UID, j.Phase, unix(j.Started), unix(j.Ended), data}
	if seq > 0 {
		return u.insert(columns+"(?, ?, ?, ?, ?, ?, ?, ?, ?)", append([]any{seq}, values...)...)
	}
	return u.insert(columns+`(1 + max(ifnull((SELECT max(seq) FROM job), 0), ifnull((SELECT value FROM meta WHERE key = '`+seqKey+`'), 0)), ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job, submitted) DO NOTHING`, values...)
}

// count adds (sign 1) or takes away (-1) what a record leaves.
func (u *usage) count(seq int64, f cluster.Footprint, sign int64) error {
	u.step(loadWait+"cpu", f.Wait, sign*f.Waits)
	if len(f.Runs) == 0 {
		return nil
	}
	class, err := u.classOf(&f.Class)
	if err != nil {
		return err
	}
	change := "INSERT OR REPLACE INTO run (class, s1, s0, seq, n) VALUES (?, ?, ?, ?, ?)"
	if sign < 0 {
		change = "DELETE FROM run WHERE class = ? AND s1 = ? AND s0 = ? AND seq = ? AND n = ?"
	}
	for i, r := range f.Runs {
		if err := u.exec(change, class, r.To, r.From, seq, i); err != nil {
			return err
		}
		for _, a := range f.Class.TRES {
			u.step(loadRun+a.TRES, r, sign*int64(a.N))
			if f.Class.Reservation != "" {
				u.step(loadIn+f.Class.Reservation+"/"+a.TRES, r, sign*int64(a.N))
			}
		}
	}
	return nil
}

// step adds n during a span to a step function.
func (u *usage) step(what string, s cluster.Span, n int64) {
	if n == 0 || s.From == s.To {
		return
	}
	at := func(second, n int64) {
		if second == cluster.Endless {
			return
		}
		k := loadKey{what, second / hour}
		x := u.steps[k]
		x.n, x.moment = x.n+n, x.moment+n*(second%hour)
		u.steps[k] = x
	}
	at(s.From, n)
	at(s.To, -n)
}

func (u *usage) classOf(c *cluster.UsageClass) (id int64, err error) {
	data, err := wire.Marshal(c)
	if err != nil {
		return 0, err
	}
	if id, ok := u.classes[string(data)]; ok {
		return id, nil
	}
	err = u.row("SELECT id FROM class WHERE data = ?", []any{string(data)}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		id, err = u.insert("INSERT INTO class (data) VALUES (?)", string(data))
	}
	if err == nil {
		u.classes[string(data)] = id
	}
	return id, err
}

// flush stores the steps that were gathered.
func (u *usage) flush() error {
	for k, x := range u.steps {
		if x == (loadStep{}) {
			continue
		}
		if err := u.exec(`INSERT INTO load (what, hour, n, moment) VALUES (?, ?, ?, ?)
			ON CONFLICT (what, hour) DO UPDATE SET n = n + excluded.n, moment = moment + excluded.moment`, k.what, k.hour, x.n, x.moment); err != nil {
			return err
		}
	}
	u.steps = map[loadKey]loadStep{}
	return nil
}

// putEvent stores what an event says of a node or a reservation, or of what is to go from history or to come back.
func (u *usage) putEvent(e *cluster.Event) error {
	switch {
	case e.Imported != nil:
		return u.putImported(e.Imported)
	case e.Change != nil:
		return u.putChange(e.Change)
	case e.Audit != nil:
		return u.putAudit(e.Audit)
	case e.Forget != nil:
		return u.forget(e.Forget)
	case e.Load != nil:
		return u.takeLoaded(e.Load)
	case e.Amend != nil:
		return u.takeLoaded([]cluster.Archived{{Amend: e.Amend}})
	case e.At.IsZero():
		return nil
	case e.Node != nil:
		return u.putNode(e.Span())
	case e.Gone != "":
		return u.endNode(e.Gone, e.At.Unix())
	case e.Resv != nil:
		return u.resv(e)
	}
	return nil
}

// lastNode is the newest span of a node.
func (u *usage) lastNode(name cluster.NodeName) (s cluster.NodeSpan, there bool, err error) {
	var data []byte
	err = u.row("SELECT data FROM node WHERE name = ? ORDER BY started DESC LIMIT 1", []any{name}, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return s, false, nil
	}
	if err == nil {
		err = wire.Unmarshal(data, &s)
	}
	return s, true, err
}

// putNode begins a new span of a node, if it is not as before.
func (u *usage) putNode(s cluster.NodeSpan) error {
	last, there, err := u.lastNode(s.Node)
	if err != nil || there && last.To == 0 && last.Same(&s) && s.To == 0 {
		return err
	}
	if there && last.To == 0 {
		if s.From == last.From && last.Event() && !last.SameEvent(&s) {
			s.From++ // rows are told apart by the second in which they begin, and an event is not to be lost
		}
		s.From = max(s.From, last.From)
		last.To = s.From
		if err := u.storeNode(&last); err != nil {
			return err
		}
	}
	return u.storeNode(&s)
}

func (u *usage) endNode(name cluster.NodeName, at int64) error {
	last, there, err := u.lastNode(name)
	if err != nil || !there || last.To != 0 {
		return err
	}
	last.To = max(at, last.From+1)
	return u.storeNode(&last)
}

func (u *usage) storeNode(s *cluster.NodeSpan) error {
	data, err := wire.Marshal(s)
	if err == nil {
		err = u.exec("INSERT OR REPLACE INTO node (name, started, ended, data) VALUES (?, ?, ?, ?)", s.Node,
			s.From, s.To, data)
	}
	return err
}

// resv stores a time of a reservation; what it has is what its nodes have now, or of cores and GPUs these alone.
func (u *usage) resv(e *cluster.Event) error {
	r := e.Resv
	s := cluster.ResvSpan{
		Name: r.Name, From: r.Start.Unix(), To: r.End.Unix(), Nodes: r.Nodes, Flags: r.Flags,
		Users: r.Users, Accounts: r.Accounts, UsersNot: r.UsersNot, AccountsNot: r.AccountsNot,
	}
	if e.ResvOver {
		if s.To = min(s.To, e.At.Unix()); s.To <= s.From { // it never began
			_, err := u.tx.Exec("DELETE FROM resv WHERE name = ? AND started = ?", s.Name, s.From)
			return err
		}
	}
	for k, n := range r.Nodes {
		if r.CPUs != nil {
			s.TRES = cluster.AddAmounts(s.TRES, []cluster.Amount{{TRES: "cpu", N: float64(r.CPUs[k].Len())}}, 1)
			continue
		}
		last, _, err := u.lastNode(n)
		if err != nil {
			return err
		}
		s.TRES = cluster.AddAmounts(s.TRES, last.TRES, 1)
	}
	s.TRES = cluster.AddAmounts(s.TRES, r.GPUAmounts(), 1)
	// One that is still to come may be moved: its row goes with it.
	if _, err := u.tx.Exec("DELETE FROM resv WHERE name = ? AND started > ? AND started != ?", s.Name,
		e.At.Unix(), s.From); err != nil {
		return err
	}
	return u.putResv(s)
}

func (u *usage) putResv(s cluster.ResvSpan) error {
	s.ID = 0
	data, err := wire.Marshal(&s)
	if err == nil {
		_, err = u.tx.Exec(`INSERT INTO resv (name, started, ended, data) VALUES (?, ?, ?, ?)
			ON CONFLICT (name, started) DO UPDATE SET ended = excluded.ended, data = excluded.data`, s.Name, s.From, s.To, data)
	}
	return err
}

// rebuild makes the tables that follow from the jobs' records again.
func rebuild(w *sql.DB) error {
	tx, err := w.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op once committed
	if _, err := tx.Exec("DELETE FROM run; DELETE FROM load; DELETE FROM class"); err != nil {
		return err
	}
	u := newUsage(tx)
	for from := int64(0); ; {
		page, last, err := jobPage(tx, from)
		if err != nil {
			return err
		}
		for seq, j := range page {
			if err := u.count(seq, j.Footprint(), 1); err != nil {
				return fmt.Errorf("job %d: %w", j.ID, err)
			}
		}
		if last == from {
			break
		}
		from = last
	}
	if err := u.flush(); err != nil {
		return err
	}
	return tx.Commit()
}

// pageJobs bounds how many records are held at once while all are read.
const pageJobs = 4096

// jobPage reads records behind a number, and the number of the last.
func jobPage(tx *sql.Tx, from int64) (page map[int64]*cluster.Job, last int64, err error) {
	rows, err := tx.QueryContext(context.Background(),
		"SELECT seq, data FROM job WHERE seq > ? ORDER BY seq LIMIT ?", from, pageJobs)
	if err != nil {
		return nil, from, err
	}
	defer rows.Close()
	page, last = map[int64]*cluster.Job{}, from
	for rows.Next() {
		var data []byte
		if err := rows.Scan(&last, &data); err != nil {
			return nil, from, err
		}
		j := &cluster.Job{}
		if err := wire.Unmarshal(data, j); err != nil {
			return nil, from, err
		}
		page[last] = j
	}
	return page, last, rows.Err()
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func (u *usage) putStep(s *cluster.Step) error {
	data, err := wire.Marshal(s)
	if err != nil {
		return err
	}
	return u.exec(`INSERT INTO step (job, attempt, step, started, data) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET data = excluded.data`, s.ID.Job, s.Attempt, s.ID.Step, unix(s.Started), data)
}

func (u *usage) putChange(x *cluster.Transaction) error {
	data, err := wire.Marshal(x)
	if err != nil {
		return err
	}
	return u.exec("INSERT OR IGNORE INTO txn (at, data) VALUES (?, ?)", unix(x.At), string(data))
}

func (u *usage) putAudit(a *cluster.Audit) error {
	data, err := wire.Marshal(a)
	if err != nil {
		return err
	}
	return u.exec("INSERT OR IGNORE INTO trail (at, data) VALUES (?, ?)", unix(a.At), string(data))
}

// meta reads a number that the file has of itself; 0 if it has none.
func (u *usage) meta(key string) (n int64, err error) {
	err = u.row("SELECT value FROM meta WHERE key = ?", []any{key}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// raise makes a number of the file not less than n.
func (u *usage) raise(key string, n int64) error {
	return u.exec("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
		key, n)
}
