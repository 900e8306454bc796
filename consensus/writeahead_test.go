package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

// ahead opens the files of a log in a folder.
func ahead(t *testing.T, dir string) (*writeAhead, *boltdb.BoltStore, error) {
	t.Helper()
	f := filesOf(dir)
	path, err := f.name()
	if err != nil {
		t.Fatal(err)
	}
	store, err := boltdb.New(boltdb.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w, err := f.open(store)
	return w, store, err
}

// text is what an entry holds.
func text(index uint64) []byte { return bytes.Repeat([]byte{byte(index)}, int(index%700)) }

// store stores entries, each by a write of its own.
func store(t *testing.T, s raft.LogStore, from, to uint64) {
	t.Helper()
	for i := from; i <= to; i++ {
		e := &raft.Log{Index: i, Term: 3, Data: text(i), Extensions: []byte("x"), AppendedAt: time.Unix(9, int64(i))}
		if err := s.StoreLog(e); err != nil {
			t.Fatal(err)
		}
	}
}

// holds fails unless a log has these entries, and no others.
func holds(t *testing.T, s raft.LogStore, from, to uint64) {
	t.Helper()
	first, err1 := s.FirstIndex()
	last, err2 := s.LastIndex()
	if err1 != nil || err2 != nil || first != from || last != to {
		t.Fatalf("entries %d to %d, want %d to %d (%v, %v)", first, last, from, to, err1, err2)
	}
	for i := from; i <= to; i++ {
		var e raft.Log
		if err := s.GetLog(i, &e); err != nil {
			t.Fatal(i, err)
		}
		same := e.Index == i && e.Term == 3 && bytes.Equal(e.Data, text(i)) && string(e.Extensions) == "x"
		if !same || !e.AppendedAt.Equal(time.Unix(9, int64(i))) {
			t.Fatalf("entry %d is %+v", i, e)
		}
	}
	for _, i := range []uint64{from - 1, to + 1} {
		if err := s.GetLog(i, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
			t.Errorf("entry %d: %v", i, err)
		}
	}
}

// crashed is a copy of a folder as a crash would leave it.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestWriteAhead: whatever was stored is there at once, after a crash, and in the file that programs know which write
// nothing ahead; and that file is not written for each entry.
func TestWriteAhead(t *testing.T) {
	dir := t.TempDir()
	w, behind, err := ahead(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	store(t, w, 5, 5)
	stats := behind.Stats()
	before := stats.TxStats.GetWrite()
	store(t, w, 6, 100)
	stats = behind.Stats()
	if n := stats.TxStats.GetWrite() - before; n != 0 {
		t.Errorf("95 entries took %d writes behind", n)
	}
	holds(t, w, 5, 100)
	store(t, w, 101, 2*aheadEntries)
	holds(t, w, 5, 2*aheadEntries)
	copied := crashed(t, dir)
	if _, err := os.Stat(filepath.Join(copied, "raft.db")); err == nil {
		t.Error("a program that writes nothing ahead would take a part for the log")
	}
	for range 2 { // and again, if it crashes while it comes back
		back, _, err := ahead(t, crashed(t, copied))
		if err != nil {
			t.Fatal(err)
		}
		holds(t, back, 5, 2*aheadEntries)
		store(t, back, 2*aheadEntries+1, 2*aheadEntries+9)
		holds(t, back, 5, 2*aheadEntries+9)
	}
	if err := filesOf(dir).end(w, behind); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("closed in order it leaves %v, %v", list, err)
	}
	old, err := boltdb.NewBoltStore(filepath.Join(dir, "raft.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	holds(t, old, 5, 2*aheadEntries)
}

// TestAheadDeletes: what was deleted does not come back by what was written ahead, nor does what stood in the place of
// others, and an entry may follow a snapshot.
func TestAheadDeletes(t *testing.T) {
	dir := t.TempDir()
	w, _, err := ahead(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	store(t, w, 1, 60)
	if err := errors.Join(w.DeleteRange(1, 20), w.DeleteRange(50, 60)); err != nil {
		t.Fatal(err)
	}
	for _, now := range []string{"at once", "after a crash"} {
		t.Log(now)
		holds(t, w, 21, 49)
		if w, _, err = ahead(t, crashed(t, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.DeleteRange(21, 40); err != nil {
		t.Fatal(err)
	}
	store(t, w, 200, 210)
	dir = crashed(t, filepath.Dir(w.path))
	if w, _, err = ahead(t, dir); err != nil {
		t.Fatal(err)
	}
	for i := uint64(200); i <= 210; i++ {
		if err := w.GetLog(i, &raft.Log{}); err != nil {
			t.Errorf("entry %d behind a snapshot: %v", i, err)
		}
	}
}

// TestAheadLarge: entries that do not fit are behind at once.
func TestAheadLarge(t *testing.T) {
	dir := t.TempDir()
	w, _, err := ahead(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("large"), aheadBytes/4)
	many := make([]*raft.Log, aheadEntries+1)
	for i := range many {
		many[i] = &raft.Log{Index: uint64(4 + i), Data: []byte("many")}
	}
	err = errors.Join(w.StoreLog(&raft.Log{Index: 1}), w.StoreLog(&raft.Log{Index: 2, Data: large}),
		w.StoreLog(&raft.Log{Index: 3}), w.StoreLogs(many))
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(3 + len(many))
	back, _, err := ahead(t, crashed(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= last; i++ {
		var e raft.Log
		if err := back.GetLog(i, &e); err != nil || i == 2 && !bytes.Equal(e.Data, large) {
			t.Errorf("entry %d: %v", i, err)
		}
	}
}

// TestAheadDamaged: a torn end was never acknowledged, and is dropped. Whatever else is broken is told.
func TestAheadDamaged(t *testing.T) {
	dir := t.TempDir()
	w, _, err := ahead(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	store(t, w, 1, 9)
	end := w.end
	store(t, w, 10, 10)
	file := func(dir string) string { return filesOf(dir).ahead }
	spoil := func(at int64) func(string) error {
		return func(dir string) error {
			f, err := os.OpenFile(file(dir), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{0xee, 0xdd}, at)
			return errors.Join(err, f.Close())
		}
	}
	for name, c := range map[string]struct {
		spoil func(dir string) error
		last  uint64 // 0: it is not opened
	}{
		"nothing":           {func(string) error { return nil }, 10},
		"in the last frame": {spoil(w.end - 3), 9},
		"at its head":       {spoil(end + 2), 9},
		"at its length":     {spoil(end + saltBytes), 9},
		"behind it":         {spoil(w.end + 5), 10},
		"in a frame before": {spoil(end - 3), 0},
		"at its length too": {spoil(fileHeader + saltBytes), 0},
		"at the beginning":  {spoil(0), 0},
		"in the salt":       {spoil(int64(len(aheadMagic))), 0},
		"cut":               {func(dir string) error { return os.Truncate(file(dir), end) }, 0},
		"gone":              {func(dir string) error { return os.Remove(file(dir)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashed(t, dir)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			w, _, err := ahead(t, dir)
			if c.last == 0 {
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("it is opened: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			holds(t, w, 1, c.last)
		})
	}
}

// TestAheadForged: what users write into an entry is never taken for one, though it lies where the next would be.
func TestAheadForged(t *testing.T) {
	dir := t.TempDir()
	w, _, err := ahead(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	forged := appendFrame(nil, []*raft.Log{{Index: 2, Term: 9, Data: []byte("forged")}})
	seal(forged, salt{1})
	store(t, w, 1, 1)
	if err := w.StoreLog(&raft.Log{Index: 2, Term: 3, Data: bytes.Repeat(forged, 50)}); err != nil {
		t.Fatal(err)
	}
	if err := w.checkpoint(); err != nil {
		t.Fatal(err)
	}
	store(t, w, 3, 3)
	w, _, err = ahead(t, crashed(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	var e raft.Log
	if last, err := w.LastIndex(); last != 3 || err != nil || w.GetLog(2, &e) != nil || e.Term != 3 {
		t.Errorf("it ends with %d, %v, and the second is of term %d", last, err, e.Term)
	}
}

// TestAheadTogether: entries are read while others are written, at every moment.
func TestAheadTogether(t *testing.T) {
	w, _, err := ahead(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store(t, w, 1, 1)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-done:
					return
				default:
				}
				last, err := w.LastIndex()
				first, err1 := w.FirstIndex()
				if err2 := w.GetLog(last, &raft.Log{}); errors.Join(err, err1, err2) != nil || first != 1 {
					t.Errorf("entries %d to %d: %v, %v, %v", first, last, err, err1, err2)
					return
				}
			}
		})
	}
	store(t, w, 2, 3*aheadEntries)
	close(done)
	readers.Wait()
}

// TestAnsweredSurvives: what was answered is there when all servers crash in that moment.
func TestAnsweredSurvives(t *testing.T) {
	dir := t.TempDir()
	l, stop := start(t, dir, &recorder{})
	defer stop()
	want := []string{}
	for i := range 30 {
		if _, err := l.Propose(context.Background(), []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(i))
	}
	m := &recorder{}
	back, stopped := start(t, crashed(t, dir), m)
	defer stopped()
	if err := back.Barrier(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(m.entries) != fmt.Sprint(want) {
		t.Errorf("after a crash there is %v", m.entries)
	}
}
