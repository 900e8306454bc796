package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Files beside the database.
const (
	beforeName = "history.before" // what was here when the state jumped ahead of it
	baseName   = "history.base"   // another server's file, on its way to replace ours
	copyName   = "history.copy-*" // a copy on its way to somebody else
)

// ErrNotWhole says that the past is still on its way here.
var ErrNotWhole = errors.New("the history of this server is not whole yet")

// tidy removes what an earlier life left behind.
func (d *DB) tidy() error {
	dir := filepath.Dir(d.path)
	left, err := filepath.Glob(filepath.Join(dir, copyName))
	if err != nil {
		return err
	}
	left = append(left, filepath.Join(dir, baseName))
	if !d.lacks {
		left = append(left, filepath.Join(dir, beforeName))
	}
	for _, f := range left {
		remove(f)
	}
	return nil
}

// remove deletes a database that is closed; one that is not there is fine.
func remove(path string) {
	for _, f := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		_ = os.Remove(f)
	}
}

// Restored says that the state came from a snapshot of this index instead of from the log. If the file
// does not reach that far, events are missing in between: it is set aside and a new one begun, which
// lacks the past until Adopt or GiveUp brings it. It must not be called beside Apply.
func (d *DB) Restored(index uint64) error {
	d.mu.Lock()
	fine := index <= d.index
	d.mu.Unlock()
	if fine {
		return nil
	}
	d.files.Lock()
	defer d.files.Unlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := d.writeNow(index); err != nil {
		return err
	}
	d.log.Warn("history ends before the state begins; its past is still to come", "history", d.done, "state", index)
	if err := errors.Join(d.w.Close(), d.r.Close()); err != nil {
		return fmt.Errorf("close history: %w", err)
	}
	before := filepath.Join(filepath.Dir(d.path), beforeName)
	if d.lacks {
		remove(d.path) // what came since an earlier jump is part of what will be brought
	} else if err := os.Rename(d.path, before); err != nil {
		return fmt.Errorf("set the old history aside: %w", err)
	}
	if err := d.reopen(); err != nil {
		return err
	}
	if _, err := d.w.Exec("INSERT INTO meta VALUES ('applied', ?), ('lacks', 1)", index); err != nil {
		return fmt.Errorf("begin a new history: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index, d.done, d.lacks = index, index, true
	d.announce()
	return nil
}

// Whole reports whether the file has the past from its beginning.
func (d *DB) Whole() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.lacks
}

// Export makes a copy of the database as it was at one log index, which at tells when it is called:
// meanwhile nothing is written. The file belongs to the caller.
func (d *DB) Export(ctx context.Context, at func() (uint64, error)) (file string, err error) {
	d.files.RLock()
	defer d.files.RUnlock()
	if !d.Whole() {
		return "", ErrNotWhole
	}
	f, err := os.CreateTemp(filepath.Dir(d.path), copyName)
	if err != nil {
		return "", fmt.Errorf("copy history: %w", err)
	}
	file = f.Name()
	defer func() {
		if err != nil {
			remove(file)
		}
	}()
	if err := errors.Join(f.Close(), begin(file)); err != nil {
		return "", fmt.Errorf("copy history: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+d.path+common)
	if err != nil {
		return "", err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return "", fmt.Errorf("copy history: %w", err)
	}
	defer conn.Close()
	if err := run(ctx, conn, "ATTACH '"+file+"' AS copy", "PRAGMA copy.synchronous=OFF"); err != nil {
		return "", fmt.Errorf("copy history: %w", err)
	}
	if err := d.pin(ctx, conn, at); err != nil {
		return "", fmt.Errorf("copy history: %w", err)
	}
	// The connection sees the file as it was when pinned, whatever is written now.
	if err := run(ctx, conn, "INSERT INTO copy.meta SELECT * FROM main.meta", "INSERT INTO copy.job SELECT * FROM main.job ORDER BY seq",
		"INSERT INTO copy.step SELECT * FROM main.step", "INSERT INTO copy.class SELECT * FROM main.class", "INSERT INTO copy.run SELECT * FROM main.run",
		"INSERT INTO copy.load SELECT * FROM main.load", "INSERT INTO copy.node SELECT * FROM main.node", "INSERT INTO copy.resv SELECT * FROM main.resv", "INSERT INTO copy.txn SELECT * FROM main.txn",
		"COMMIT", "DETACH copy"); err != nil {
		return "", fmt.Errorf("copy history: %w", err)
	}
	return file, nil
}

// begin makes an empty database for a copy.
func begin(path string) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	_, err = prepare(db)
	return errors.Join(err, db.Close())
}

func run(ctx context.Context, conn *sql.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// pin opens a transaction that sees everything up to the index that at tells and nothing beyond.
func (d *DB) pin(ctx context.Context, conn *sql.Conn, at func() (uint64, error)) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	index, err := at()
	if err != nil {
		return err
	}
	if err := d.writeNow(index); err != nil {
		return err
	}
	if err := run(ctx, conn, "BEGIN"); err != nil {
		return err
	}
	var n int
	return conn.QueryRowContext(ctx, "SELECT count(*) FROM main.meta").Scan(&n)
}

// Adopt takes another server's copy as the past of this file. It returns once that is done; what is
// lacking may come from another try if it fails.
func (d *DB) Adopt(ctx context.Context, r io.Reader) error {
	base := filepath.Join(filepath.Dir(d.path), baseName)
	remove(base)
	defer remove(base)
	f, err := os.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("take over history: %w", err)
	}
	_, err = io.Copy(f, r)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("take over history: %w", err)
	}
	return d.adopt(ctx, base)
}

// GiveUp goes on with what this server had before, where nobody else has more.
func (d *DB) GiveUp(ctx context.Context) error {
	before := filepath.Join(filepath.Dir(d.path), beforeName)
	d.log.Error("history has a gap that no other server can fill")
	return d.adopt(ctx, before)
}

// adopt puts what came since the file began on top of a base, which takes the file's place.
func (d *DB) adopt(ctx context.Context, base string) error {
	w, err := sql.Open("sqlite", "file:"+base+common)
	if err != nil {
		return err
	}
	defer w.Close()
	w.SetMaxOpenConns(1)
	meta, err := prepare(w)
	if err == nil && meta["lacks"] != 0 {
		err = ErrNotWhole
	}
	if err == nil {
		err = checkFile(ctx, w)
	}
	if err == nil {
		err = d.reach(ctx, meta["applied"])
	}
	if err != nil {
		return fmt.Errorf("take over history: %w", err)
	}
	d.files.Lock()
	defer d.files.Unlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := d.merge(ctx, w); err != nil {
		return fmt.Errorf("take over history: %w", err)
	}
	if err := errors.Join(w.Close(), d.w.Close(), d.r.Close()); err != nil {
		return fmt.Errorf("take over history: %w", err)
	}
	remove(d.path)
	if err := os.Rename(base, d.path); err != nil {
		return fmt.Errorf("take over history: %w", err)
	}
	if err := d.reopen(); err != nil {
		return err
	}
	remove(filepath.Join(filepath.Dir(d.path), beforeName))
	d.mu.Lock()
	d.announce()
	d.mu.Unlock()
	return nil
}

// reach waits until the file has the events of an index: what is in it is then newer than what a base
// of that index has.
func (d *DB) reach(ctx context.Context, index uint64) error {
	for {
		d.mu.Lock()
		there, moved := d.done >= index, d.moved
		d.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mergeAll puts each record that a query selects.
func mergeAll[T any](ctx context.Context, from *sql.DB, query string, put func(*T) error) error {
	return each(ctx, from, query, func(data []byte) error {
		x := new(T)
		if err := wire.Unmarshal(data, x); err != nil {
			return err
		}
		return put(x)
	})
}

// merge writes the file's records into a base. Both files are held.
func (d *DB) merge(ctx context.Context, base *sql.DB) error {
	tx, err := base.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op once committed
	u := newUsage(tx)
	err = each(ctx, d.r, "SELECT data FROM job ORDER BY seq", func(data []byte) error {
		j := &cluster.Job{}
		if err := wire.Unmarshal(data, j); err != nil {
			return err
		}
		return u.putJob(j)
	})
	if err == nil {
		err = each(ctx, d.r, "SELECT data FROM step", func(data []byte) error {
			s := &cluster.Step{}
			if err := wire.Unmarshal(data, s); err != nil {
				return err
			}
			return u.putStep(s)
		})
	}
	if err == nil {
		err = each(ctx, d.r, "SELECT data FROM node ORDER BY started, name", func(data []byte) error {
			var s cluster.NodeSpan
			if err := wire.Unmarshal(data, &s); err != nil {
				return err
			}
			return u.putNode(s)
		})
	}
	if err == nil {
		err = mergeAll(ctx, d.r, "SELECT data FROM resv ORDER BY id", func(s *cluster.ResvSpan) error {
			return u.putResv(*s)
		})
	}
	if err == nil {
		err = mergeAll(ctx, d.r, "SELECT data FROM txn ORDER BY id", u.putChange)
	}
	if err == nil {
		err = mergeAll(ctx, d.r, "SELECT data FROM trail ORDER BY id", u.putAudit)
	}
	if err != nil {
		return err
	}
	if err := u.flush(); err != nil {
		return err
	}
	if err := d.mergeForgotten(ctx, u); err != nil {
		return err
	}
	if err := d.mergeLoaded(ctx, u); err != nil {
		return err
	}
	var applied uint64
	if err := d.r.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = 'applied'").Scan(&applied); err != nil {
		return err
	}
	if _, err := tx.Exec("DELETE FROM meta WHERE key = 'lacks'; INSERT INTO meta VALUES ('applied', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
		applied); err != nil {
		return err
	}
	return tx.Commit()
}

// each calls f with the first column of every row.
func each(ctx context.Context, from *sql.DB, query string, f func(data []byte) error) error {
	rows, err := from.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			return err
		}
		if err := f(data); err != nil {
			return err
		}
	}
	return rows.Err()
}

// mergeForgotten has a base forget what this file was told to.
func (d *DB) mergeForgotten(ctx context.Context, base *usage) error {
	for _, s := range keepings() {
		var before int64
		err := d.r.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", forgetKey(s.kind)).Scan(&before)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			err = base.forget([]cluster.Cutoff{{Kind: s.kind, Before: before}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mergeLoaded puts back into a base what was loaded here while it was on its way.
func (d *DB) mergeLoaded(ctx context.Context, base *usage) error {
	var list []cluster.Archived
	err := each(ctx, d.r, "SELECT data FROM loaded ORDER BY id", func(data []byte) error {
		var a cluster.Archived
		err := wire.Unmarshal(data, &a)
		list = append(list, a)
		return err
	})
	if err == nil && list != nil {
		err = errors.Join(base.loadAll(list), base.flush())
	}
	return err
}
