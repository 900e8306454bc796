package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver
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
	log.Error("the history file was damaged; a new one is created", "err", err, "aside", aside)
	return open(path, log)
}

// fileMode is that of all files: history has what every user did.
const fileMode = 0o600

// closeToOthers makes the file of a database with the right mode, and gives that to files that are there. SQLite
// gives the files alongside the database its mode.
func closeToOthers(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	all, err := filepath.Glob(filepath.Join(filepath.Dir(path), "history.*"))
	for _, file := range all {
		err = errors.Join(err, os.Chmod(file, fileMode))
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

// sound checks the file for damage. One that cannot be read in checkTime is taken as it is: a server must not be
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

// reopen opens the file, making it if need be, and reads how far it reaches.
func (d *DB) reopen() error {
	if err := closeToOthers(d.path); err != nil {
		return fmt.Errorf("close history to other users: %w", err)
	}
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

func checkFile(ctx context.Context, db *sql.DB) error {
	var result string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("the file is damaged: %s", result)
	}
	return nil
}
