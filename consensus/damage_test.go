package consensus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// written makes the folder of a log with so many entries, and a snapshot if one is asked for.
func written(t testing.TB, entries int, snapshot bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	addr, trans := raft.NewInmemTransport("")
	l, err := Open(Config{Dir: dir, ID: "a", Addr: string(addr), Bootstrap: true, SnapshotEvery: 4},
		&recorder{}, trans, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	for lead := range l.LeaderCh() {
		if lead {
			break
		}
	}
	propose := func(n int) {
		for i := range n {
			if _, err := l.Propose(ctx, []byte(fmt.Sprintf("entry %d %0*d", i, i%3000, 0))); err != nil {
				t.Fatal(err)
			}
		}
	}
	propose(entries)
	if snapshot {
		if err := l.TakeSnapshot(); err != nil {
			t.Fatal(err)
		}
		propose(5)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return dir
}

// reopen opens a log, and tells its error.
func reopen(t *testing.T, dir, mark string) error {
	t.Helper()
	addr, trans := raft.NewInmemTransport("")
	l, err := Open(Config{Dir: dir, ID: "a", Addr: string(addr), Mark: mark}, &recorder{}, trans, quiet)
	if err == nil {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	}
	return err
}

func noise(t *testing.T, path string, from, n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(uint64(from), uint64(n)))
	for i := from; i < min(from+n, len(text)); i++ {
		text[i] = byte(rnd.Uint32())
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamaged: a log that cannot be read ends with a sentence, and one that can be is opened, whatever else is broken.
func TestDamaged(t *testing.T) {
	db := func(dir string) string { return filepath.Join(dir, "raft.db") }
	snapshots := func(t *testing.T, dir, name string) []string {
		list, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", name))
		if err != nil || len(list) == 0 {
			t.Fatal("there is no ", name, err)
		}
		return list
	}
	for name, c := range map[string]struct {
		snapshot bool
		spoil    func(t *testing.T, dir string) error
		whole    bool
	}{
		"nothing": {true, func(*testing.T, string) error { return nil }, true},
		"noise near the start": {false, func(t *testing.T, dir string) error {
			noise(t, db(dir), 9000,
				60_000)
			return nil
		}, false},
		"noise at the start": {false, func(t *testing.T, dir string) error {
			noise(t, db(dir), 0,
				60_000)
			return nil
		}, false},
		"cut to a third": { // half of a file may be all that is in use: it is doubled when it is full
			false, func(t *testing.T, dir string) error {
				info, err := os.Stat(db(dir))
				return errors.Join(err, os.Truncate(db(dir), info.Size()/3))
			}, false},
		"cut to a few bytes": {false, func(_ *testing.T, dir string) error {
			return os.Truncate(db(dir),
				5000)
		}, false},
		"empty meta.json": {true, func(t *testing.T, dir string) (err error) {
			for _, f := range snapshots(t, dir, "meta.json") {
				err = errors.Join(err, os.Truncate(f, 0))
			}
			return err
		}, false},
		"newest meta.json empty": {true, func(t *testing.T, dir string) error {
			list := snapshots(t, dir, "meta.json")
			return os.Truncate(list[len(list)-1], 0)
		}, false},
		"snapshot cut": {true, func(t *testing.T, dir string) (err error) {
			for _, f := range snapshots(t, dir, "state.bin") {
				err = errors.Join(err, os.Truncate(f, 1))
			}
			return err
		}, false},
		"snapshots gone": {true, func(_ *testing.T, dir string) error {
			return os.RemoveAll(filepath.Join(dir,
				"snapshots"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, 200, c.snapshot)
			if err := c.spoil(t, dir); err != nil {
				t.Fatal(err)
			}
			switch err := reopen(t, dir, ""); {
			case c.whole && err != nil:
				t.Errorf("it cannot be opened: %v", err)
			case !c.whole && err == nil:
				t.Error("it was opened")
			default:
				t.Log(err)
			}
		})
	}
}

// TestLostLog: a server whose log is gone does not begin an empty one, but one that never had any does.
func TestLostLog(t *testing.T) {
	dir, mark := t.TempDir(), filepath.Join(t.TempDir(), "begun")
	addr, trans := raft.NewInmemTransport("")
	open := func(bootstrap bool) error {
		l, err := Open(Config{Dir: dir, ID: "a", Addr: string(addr), Bootstrap: bootstrap, Mark: mark},
			&recorder{}, trans, quiet)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return l.Run(ctx)
	}
	for range 2 { // a server that waits to be taken in has none yet
		if err := open(false); err != nil || hasMark(mark) {
			t.Fatalf("%v, marked %v", err, hasMark(mark))
		}
	}
	for range 2 {
		if err := open(true); err != nil || !hasMark(mark) {
			t.Fatalf("%v, marked %v", err, hasMark(mark))
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also the second time, though a file is there then
		if err := open(true); !errors.Is(err, ErrLost) {
			t.Errorf("without its log: %v", err)
		}
	}
}

// TestCheckStore: whatever is broken in a file, what the check lets through can be opened, read and written.
func TestCheckStore(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(written(t, 300, false), "raft.db"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "raft.db")
	rnd := rand.New(rand.NewPCG(1, 2))
	passed := 0
	const rounds = 400
	for i := range rounds {
		text := append([]byte(nil), whole...)
		from, n := rnd.IntN(len(text)), 1<<rnd.IntN(14)
		if i%4 == 0 { // in the head of a page
			from, n = from&^(os.Getpagesize()-1)+rnd.IntN(64), 1+rnd.IntN(4)
		}
		for k := from; k < min(from+n, len(text)); k++ {
			text[k] = byte(rnd.Uint32())
		}
		if i%10 == 9 {
			text = text[:from]
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if checkStore(path) != nil {
			continue
		}
		passed++
		if err := useStore(path); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("round %d, %d bytes from %d: %v", i, n, from, err)
		}
	}
	t.Logf("%d of %d were let through", passed, rounds)
	if passed == 0 || passed == rounds {
		t.Error("it does not tell them apart")
	}
}

// useStore reads and writes a file as raft does.
func useStore(path string) (err error) {
	store, err := boltdb.New(boltdb.Options{Path: path, BoltOptions: &bbolt.Options{NoFreelistSync: true,
		NoSync: true}})
	if err != nil {
		return err
	}
	defer store.Close()
	g := &guarded{store: store, path: path, wrote: func(time.Duration) {}}
	defer func() {
		if r := recover(); r != nil {
			err = damaged(path, r)
		}
	}()
	first, err1 := g.FirstIndex()
	last, err2 := g.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for i := first; i <= last && i > 0; i++ {
		var e raft.Log
		if err := g.GetLog(i, &e); err != nil {
			return err
		}
	}
	if err := g.StoreLogs([]*raft.Log{{Index: last + 1, Data: []byte("more")}}); err != nil {
		return err
	}
	return g.DeleteRange(first, (first+last)/2)
}
