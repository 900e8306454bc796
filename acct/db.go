// Package acct is history: a SQLite projection of the cluster's events, and its queries. The
// projection is a pure function of the events; the index up to which it has taken them is stored
// in the same transaction, so that taking an event twice changes nothing.
package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
	_ "modernc.org/sqlite" // the driver
)

// Limits of the projection.
const (
	gatherTime = 500 * time.Millisecond // events are gathered this long, unless somebody waits, then written together
	maxQueued  = 1 << 16                // events waiting; beyond that the log waits for the disk
	maxRested  = 4096                   // events that are written with rests
	workTime   = 2 * time.Millisecond   // between rests
	readers    = 4
	checkTime  = 300 * time.Millisecond // a file is checked for damage so long when it is opened: that is some ten thousand jobs
	quietTime  = 10 * time.Second       // after it without a write the memory of SQLite's pages is given back
)

const schema = `
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS job (
  seq INTEGER PRIMARY KEY, job INTEGER NOT NULL, submitted INTEGER NOT NULL, array INTEGER NOT NULL, uid INTEGER NOT NULL,
  phase INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (job, submitted)) STRICT;
CREATE INDEX IF NOT EXISTS job_array ON job (array) WHERE array != 0;
CREATE INDEX IF NOT EXISTS job_ended ON job (ended, submitted);
DROP INDEX IF EXISTS job_uid; -- of earlier versions: job_user has what it had
CREATE TABLE IF NOT EXISTS step (
  job INTEGER NOT NULL, attempt INTEGER NOT NULL, step INTEGER NOT NULL, started INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (job, attempt, step, started)) STRICT, WITHOUT ROWID;`

// schemaVersion is PRAGMA user_version of this schema. Version 2 added the tables of usage.
const schemaVersion = 2

// DB is the history of one server.
type DB struct {
	log  *slog.Logger
	path string

	files   sync.RWMutex // held for reading by whoever reads the file, for writing while it is replaced
	r       *sql.DB
	writing sync.Mutex // held while the file changes; taken after files
	w       *sql.DB

	mu     sync.Mutex
	queue  []batch
	queued int               // events in queue
	gone   int               // batches that were in it before
	rests  map[jobKey][2]int // of arrays, the batches with the first and the last record of what still waits, counted with those gone
	index  uint64            // of the newest events queued
	done   uint64            // of the newest events on disk
	lacks  bool              // the past before this file began is not here yet (whole.go)
	moved  chan struct{}
	more   chan struct{}
	hurry  chan struct{} // somebody waits: do not gather

	sweeping bool // rows may be left that are forgotten (retain.go); mu holds it

	asking chan struct{} // has one for each question in SQL that is being answered
}

// batch is what one log index brought.
type batch struct {
	index  uint64
	events []cluster.Event
}

// Open opens (or makes) the database in dir. A file that is damaged is set aside and a new one
// begun; the log refills it as far as it reaches.
func Open(dir string, log *slog.Logger) (*DB, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of history: %w", err)
	}
	path := filepath.Join(dir, "history.db")
	d, err := open(path, log)
	if err == nil {
		if err = d.sound(); err == nil {
			return d, d.tidy()
		}
		d.close()
	}
	aside := fmt.Sprintf("%s.damaged-%d", path, time.Now().Unix())
	if rerr := os.Rename(path, aside); rerr != nil {
		return nil, errors.Join(err, rerr)
	}
	remove(path) // what belonged to it
	log.Error("history was damaged; a new file is begun", "err", err, "aside", aside)
	return open(path, log)
}

// sound checks the file for damage. One that can not be read in checkTime is taken as it is: a server must not be
// away for that.
func (d *DB) sound() error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	err := checkFile(ctx, d.r) // whose cache is small
	if err != nil && ctx.Err() != nil {
		d.log.Info("history is too large to be checked for damage at the start", "after", checkTime)
		return nil
	}
	return err
}

// Options of every connection.
const common = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"

func open(path string, log *slog.Logger) (*DB, error) {
	if err := sqlFunctions(); err != nil {
		return nil, fmt.Errorf("prepare SQL: %w", err)
	}
	d := &DB{
		log: log, path: path, rests: map[jobKey][2]int{}, moved: make(chan struct{}),
		more: make(chan struct{}, 1), hurry: make(chan struct{}, 1), asking: make(chan struct{}, sqlAtOnce),
	}
	return d, d.reopen()
}

// reopen opens the file, making it if need be, and reads how far it reaches.
func (d *DB) reopen() error {
	w, err := sql.Open("sqlite", "file:"+d.path+common+"&_txlock=immediate&_pragma=cache_size(-65536)") // KiB: the tables of usage are written all over
	if err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	w.SetMaxOpenConns(1)
	meta, err := prepare(w)
	if err != nil {
		return errors.Join(fmt.Errorf("prepare %s: %w", d.path, err), w.Close())
	}
	r, err := sql.Open("sqlite", "file:"+d.path+common+"&_pragma=query_only(1)")
	if err != nil {
		return errors.Join(err, w.Close())
	}
	r.SetMaxOpenConns(readers)
	d.w, d.r = w, r
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done, d.lacks = meta["applied"], meta["lacks"] != 0
	d.index = max(d.index, d.done)
	for _, s := range keepings() {
		d.sweeping = d.sweeping || meta[sweptKey(s.kind)] < meta[forgetKey(s.kind)]
	}
	if d.sweeping {
		poke(d.more)
	}
	return nil
}

// prepare makes the tables and returns what the file says of itself.
func prepare(w *sql.DB) (map[string]uint64, error) {
	var version int
	if err := w.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return nil, err
	}
	if version > schemaVersion {
		return nil, fmt.Errorf("history has schema %d, this binary knows %d", version, schemaVersion)
	}
	if _, err := w.Exec(schema + usageSchema + sampleSchema + hardwareSchema); err != nil {
		return nil, err
	}
	if version == 1 {
		if err := rebuild(w); err != nil {
			return nil, fmt.Errorf("sum up the usage of an older history: %w", err)
		}
	}
	if _, err := w.Exec(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return nil, err
	}
	rows, err := w.Query("SELECT key, value FROM meta")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	meta := map[string]uint64{}
	for rows.Next() {
		var key string
		var value uint64
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		meta[key] = value
	}
	return meta, rows.Err()
}

// Apply queues the events of one log index. Indexes at or below what is stored are ignored. It
// waits only when maxQueued events are not yet written.
func (d *DB) Apply(index uint64, events []cluster.Event) {
	for {
		d.mu.Lock()
		if index <= d.index {
			d.mu.Unlock()
			return
		}
		if d.queued < maxQueued {
			break
		}
		moved := d.moved
		d.mu.Unlock()
		poke(d.hurry)
		<-moved
	}
	d.queue = append(d.queue, batch{index, d.newest(events)})
	d.queued += len(events)
	d.index = index
	d.mu.Unlock()
	poke(d.more)
}

// newest returns the events of a batch that joins the queue, and takes out of it what was told between the first
// and these of the tasks of an array that wait: each start tells of them anew, of an array of a million they are a
// bit each, and the last record of a job is what is stored. Called with mu held.
func (d *DB) newest(events []cluster.Event) []cluster.Event {
	own, here := false, d.gone+len(d.queue)
	for i := range events {
		j := events[i].Job
		if j == nil || j.Phase != cluster.Pending || j.Tasks.Empty() {
			continue
		}
		if !own {
			events, own = slices.Clone(events), true
		}
		key := keyOfJob(j)
		at, ok := d.rests[key]
		if !ok {
			at = [2]int{here, here}
		} else if last := at[1]; last > at[0] && last < here {
			for k, e := range d.queue[last-d.gone].events {
				if e.Job != nil && keyOfJob(e.Job) == key {
					d.queue[last-d.gone].events[k].Job = nil
				}
			}
		}
		at[1] = here
		d.rests[key] = at
	}
	return events
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Flush returns once everything applied before is in the file; a loss of power may take the newest of it away.
func (d *DB) Flush(ctx context.Context) error {
	d.mu.Lock()
	want := d.index // what comes meanwhile may never end
	d.mu.Unlock()
	for {
		d.mu.Lock()
		done, moved := d.done >= want, d.moved
		d.mu.Unlock()
		if done {
			return nil
		}
		poke(d.hurry)
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Sync returns once everything applied before is on the disk for good: a commit whose synchronous is FULL waits for
// it and for all commits before it (https://www.sqlite.org/pragma.html#pragma_synchronous).
func (d *DB) Sync(ctx context.Context) error {
	if err := d.Flush(ctx); err != nil {
		return err
	}
	d.files.RLock()
	defer d.files.RUnlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	for _, q := range []string{
		"PRAGMA synchronous = FULL",
		"INSERT INTO meta VALUES ('synced', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1",
		"PRAGMA synchronous = NORMAL",
	} {
		if _, err := d.w.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("sync history: %w", err)
		}
	}
	return nil
}

// Run writes queued events until ctx ends, the rest included.
func (d *DB) Run(ctx context.Context) error {
	defer d.close()
	var quiet <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return d.write(math.MaxUint64)
		case <-quiet:
			quiet = nil
			d.shrink(ctx)
			continue
		case <-d.more:
			quiet = time.After(quietTime)
		}
		select {
		case <-ctx.Done():
		case <-d.hurry:
		case <-time.After(gatherTime):
		}
		if err := errors.Join(d.write(math.MaxUint64), d.sweep()); err != nil {
			d.log.Error("history could not be written; trying again", "err", err)
			select {
			case <-time.After(time.Second):
				poke(d.more)
			case <-ctx.Done():
			}
		}
	}
}

// shrink gives back the memory of pages that were written.
func (d *DB) shrink(ctx context.Context) {
	d.files.RLock()
	defer d.files.RUnlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	if _, err := d.w.ExecContext(ctx, "PRAGMA shrink_memory"); err != nil && ctx.Err() == nil {
		d.log.Debug("history keeps its pages in memory", "err", err)
	}
}

func (d *DB) close() {
	d.files.Lock()
	defer d.files.Unlock()
	_ = d.w.Close()
	_ = d.r.Close()
}

type jobKey struct {
	job       cluster.JobID
	submitted int64
}

type stepKey struct {
	id      cluster.StepID
	attempt int
	started int64
}

// recordOf is the record of a job that an event tells of, if any.
func recordOf(e *cluster.Event) *cluster.Job {
	switch {
	case e.Sized != nil:
		return e.Sized.Record()
	case e.Job != nil:
		return e.Job.Record()
	}
	return nil
}

func keyOfJob(j *cluster.Job) jobKey { return jobKey{j.ID, j.Submitted.UnixNano()} }

func keyOfStep(s *cluster.Step) stepKey { return stepKey{s.ID, s.Attempt, s.Started.UnixNano()} }

// write stores what is queued up to an index in one transaction; of several events of one job the last
// counts.
func (d *DB) write(limit uint64) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.writeNow(limit)
}

// writeNow is write, with d.writing held.
func (d *DB) writeNow(limit uint64) error {
	d.mu.Lock()
	n, count := 0, 0
	for n < len(d.queue) && d.queue[n].index <= limit {
		count += len(d.queue[n].events)
		n++
	}
	if n == 0 {
		d.mu.Unlock()
		return nil
	}
	events, index := make([]cluster.Event, 0, count), d.queue[n-1].index
	for _, b := range d.queue[:n] {
		events = append(events, b.events...)
	}
	d.mu.Unlock()
	if err := d.store(events, index); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(events, func(e cluster.Event) bool { return e.Forget != nil }) {
		d.sweeping = true
		poke(d.more)
	}
	d.queue = slices.Delete(d.queue, 0, n)
	if d.gone += n; len(d.queue) == 0 {
		d.queue = nil
	}
	maps.DeleteFunc(d.rests, func(_ jobKey, at [2]int) bool { return at[0] < d.gone })
	d.queued -= count
	d.done = index
	d.announce()
	return nil
}

// announce wakes those who wait for the file to change. Called with mu held.
func (d *DB) announce() {
	close(d.moved)
	d.moved = make(chan struct{})
}

func (d *DB) store(events []cluster.Event, index uint64) error {
	tx, err := d.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op once committed
	u := newUsage(tx)
	lastJob, lastStep := map[jobKey]*cluster.Job{}, map[stepKey]*cluster.Step{}
	for _, e := range events {
		if j := recordOf(&e); j != nil {
			lastJob[keyOfJob(j)] = j
		}
		if e.Step != nil {
			lastStep[keyOfStep(e.Step)] = e.Step
		}
	}
	pause := d.pauser(len(events))
	for _, e := range events { // records enter with the first event, so that their order does not depend on what was gathered
		if j := recordOf(&e); j != nil {
			if last, ok := lastJob[keyOfJob(j)]; ok {
				delete(lastJob, keyOfJob(j))
				err = u.putJob(last)
			}
		}
		if e.Step != nil && err == nil {
			if st, ok := lastStep[keyOfStep(e.Step)]; ok {
				delete(lastStep, keyOfStep(e.Step))
				err = u.putStep(st)
			}
		}
		if err == nil {
			err = u.putEvent(&e)
		}
		if err != nil {
			return err
		}
		pause()
	}
	if err := u.flush(); err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO meta VALUES ('applied', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
		index); err != nil {
		return err
	}
	return tx.Commit()
}

// pauser returns what is called after each of so many events are written: it rests as long as it works, so that history
// takes half a core at most from what answers callers, unless somebody waits for it or there is very much to write.
func (d *DB) pauser(events int) func() {
	if events > maxRested {
		return func() {}
	}
	began := time.Now()
	return func() {
		if took := time.Since(began); took >= workTime && len(d.hurry) == 0 {
			time.Sleep(took)
			began = time.Now()
		}
	}
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
