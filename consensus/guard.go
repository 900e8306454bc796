package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

// ErrDamaged says that what this server keeps of the log cannot be read.
var ErrDamaged = errors.New("the log of this server is damaged")

// ErrLost says that this server has had a log, which is gone. With an empty one it might vote for a leader that
// lacks what it has helped to acknowledge; so it must not take part under its old identity.
var ErrLost = errors.New("the log of this server is gone")

// diskStore is the file of a log.
type diskStore interface {
	raft.LogStore
	raft.StableStore
}

// guarded ends this server in order when its file turns out to be damaged: bbolt and raft panic, in goroutines of
// their own.
type guarded struct {
	store  diskStore
	path   string
	opened atomic.Bool
	fatal  func(error)
	wrote  func(time.Duration) // entries, in so long
	mark   string              // a file that says that there is a log; empty: none is kept
	marked atomic.Bool
}

var _ diskStore = (*guarded)(nil)

// damage is what a panic carries while the log is opened.
type damage struct{ err error }

// broken does not return.
func (g *guarded) broken(what string, args ...any) {
	err := fmt.Errorf("%w: %s: %s", ErrDamaged, g.path, fmt.Sprintf(what, args...))
	if !g.opened.Load() {
		panic(damage{err})
	}
	g.fatal(err)
	panic(err)
}

// do works on the file. A file that was cut under its map is a fault, which is made a panic here.
func (g *guarded) do(what string, work func() error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			g.broken("%s: %v", what, r)
		}
	}()
	return work()
}

// begin notes that there is a log from now on, before anything in it counts.
func (g *guarded) begin() error {
	if g.marked.Load() {
		return nil
	}
	err := putMark(g.mark)
	g.marked.Store(err == nil)
	return err
}

func putMark(path string) error {
	if path == "" || hasMark(path) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note that there is a log: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close(), dir.Sync(), dir.Close())
}

func hasMark(path string) bool {
	_, err := os.Stat(path)
	return path != "" && err == nil
}

// FirstIndex implements raft.LogStore.
func (g *guarded) FirstIndex() (n uint64, err error) {
	err = g.do("read the first index", func() error { n, err = g.store.FirstIndex(); return err })
	return n, err
}

// LastIndex implements raft.LogStore.
func (g *guarded) LastIndex() (n uint64, err error) {
	err = g.do("read the last index", func() error { n, err = g.store.LastIndex(); return err })
	return n, err
}

// GetLog implements raft.LogStore. Raft may ask for entries before the first one, which are gone in order.
func (g *guarded) GetLog(index uint64, out *raft.Log) error {
	err := g.do(fmt.Sprintf("read entry %d", index), func() error { return g.store.GetLog(index, out) })
	switch {
	case err == nil && out.Index != index:
		g.broken("entry %d says that it is %d", index, out.Index)
	case err != nil && !errors.Is(err, raft.ErrLogNotFound):
		g.broken("read entry %d: %v", index, err)
	case err != nil && g.within(index):
		g.broken("entry %d is missing", index)
	}
	return err
}

// within reports whether an entry should be there.
func (g *guarded) within(index uint64) bool {
	first, err1 := g.FirstIndex()
	last, err2 := g.LastIndex()
	return err1 == nil && err2 == nil && first <= index && index <= last
}

// StoreLog implements raft.LogStore.
func (g *guarded) StoreLog(e *raft.Log) error { return g.StoreLogs([]*raft.Log{e}) }

// StoreLogs implements raft.LogStore.
func (g *guarded) StoreLogs(list []*raft.Log) error {
	if err := g.begin(); err != nil {
		return err
	}
	began := time.Now()
	defer func() { g.wrote(time.Since(began)) }()
	return g.do("write entries", func() error { return g.store.StoreLogs(list) })
}

// DeleteRange implements raft.LogStore.
func (g *guarded) DeleteRange(low, high uint64) error {
	return g.do("delete entries", func() error { return g.store.DeleteRange(low, high) })
}

// Set implements raft.StableStore.
func (g *guarded) Set(key, value []byte) error {
	if err := g.begin(); err != nil {
		return err
	}
	return g.do("write "+string(key), func() error { return g.store.Set(key, value) })
}

// SetUint64 implements raft.StableStore. A term of 0 is none yet.
func (g *guarded) SetUint64(key []byte, value uint64) error {
	if value > 0 {
		if err := g.begin(); err != nil {
			return err
		}
	}
	return g.do("write "+string(key), func() error { return g.store.SetUint64(key, value) })
}

// Get implements raft.StableStore.
func (g *guarded) Get(key []byte) (out []byte, err error) {
	err = g.do("read "+string(key), func() error { out, err = g.store.Get(key); return err })
	return out, err
}

// GetUint64 implements raft.StableStore.
func (g *guarded) GetUint64(key []byte) (n uint64, err error) {
	err = g.do("read "+string(key), func() error { n, err = g.store.GetUint64(key); return err })
	return n, err
}

// termKey is raft's own name for its term.
var termKey = []byte("CurrentTerm")

// lost reports whether this server has had a log that is not in its file, and notes if there is one.
func (g *guarded) lost() (bool, error) {
	term, err := g.GetUint64(termKey)
	if err != nil && !errors.Is(err, boltdb.ErrKeyNotFound) {
		return false, err
	}
	if term > 0 {
		return false, g.begin()
	}
	return hasMark(g.mark), nil
}

// damaged words a panic of whoever opens the log; one that is a mistake of the program's goes on.
func damaged(dir string, r any) error {
	switch r := r.(type) {
	case damage:
		return r.err
	case runtime.Error:
		panic(r)
	case error:
		if errors.Is(r, raft.ErrLogNotFound) {
			return fmt.Errorf("%w: in %s entries are missing behind the last snapshot that can be read",
				ErrDamaged, dir)
		}
		return fmt.Errorf("%w: in %s: %w", ErrDamaged, dir, r)
	}
	panic(r)
}

// checkSnapshots looks whether the state can be had: by the log from its beginning, or by a snapshot that reaches
// where it begins. Raft leaves out snapshots that it cannot read, and finds only later that there is nothing else.
func checkSnapshots(dir string, log raft.LogStore, snaps raft.SnapshotStore) error {
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	list, err := snaps.List()
	if err != nil {
		return fmt.Errorf("list snapshots in %s: %w", dir, err)
	}
	reached := uint64(0)
	for _, s := range list {
		reached = max(reached, s.Index)
	}
	if unread := unreadable(dir, list); unread != "" && (len(list) == 0 || first > reached+1) {
		return fmt.Errorf("%w: %s cannot be read", ErrDamaged, unread)
	}
	if first > reached+1 {
		return fmt.Errorf("%w: in %s it begins with entry %d, and no snapshot reaches that", ErrDamaged, dir, first)
	}
	return nil
}

// unreadable is what describes a snapshot that is not among those that can be read; "" if there is none.
func unreadable(dir string, list []*raft.SnapshotMeta) string {
	all, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "meta.json"))
	if err != nil {
		return ""
	}
	for _, path := range all {
		id := filepath.Base(filepath.Dir(path))
		known := slices.ContainsFunc(list, func(s *raft.SnapshotMeta) bool { return s.ID == id })
		if !known && filepath.Ext(id) != ".tmp" {
			return path
		}
	}
	return ""
}
