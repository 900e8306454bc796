package consensus

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	boltdb "github.com/hashicorp/raft-boltdb/v2"

	"dev.muster/durable"
)

// files are those of a log. One that was closed in order is a file of bbolt alone, raft.db, as programs know it that
// write nothing ahead. While it is open, and after a crash, that has another name, so that such a program does not take
// it for the whole log: it ends, as without any.
type files struct{ closed, opened, ahead string }

func filesOf(dir string) files {
	return files{
		closed: filepath.Join(dir, "raft.db"),
		opened: filepath.Join(dir, "raft-open.db"),
		ahead:  filepath.Join(dir, "raft-ahead"),
	}
}

// name tells which file is the log's: the one that is or was open, if there is one. A raft.db beside it was made by
// such a program.
func (f files) name() (string, error) {
	_, err := os.Stat(f.opened)
	if errors.Is(err, fs.ErrNotExist) {
		return f.closed, nil
	}
	return f.opened, err
}

// open has entries written ahead of a file that is open, and so locked.
func (f files) open(store *boltdb.BoltStore) (*writeAhead, error) {
	path, err := f.name() // an earlier process may have closed it meanwhile
	if err != nil {
		return nil, err
	}
	crashed := path == f.opened
	if !crashed {
		_ = os.Remove(f.ahead) // all of it is in raft.db
	}
	w, err := openAhead(store, f.ahead, crashed)
	if err != nil || crashed {
		return w, err
	}
	if err := durable.Rename(f.closed, f.opened); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// end leaves raft.db alone, and lets it go. Where that cannot be done all remains as after a crash.
func (f files) end(w *writeAhead, store *boltdb.BoltStore) error {
	err := w.close()
	if err == nil {
		err = durable.Rename(f.opened, f.closed)
	}
	if err == nil {
		err = os.Remove(f.ahead)
	}
	return errors.Join(err, store.Close())
}
