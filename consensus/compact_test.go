package consensus

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"
)

// TestCompactsByBytes: few entries that are large are compacted as many are: a start would have to read them all.
func TestCompactsByBytes(t *testing.T) {
	dir := t.TempDir()
	l, _ := start(t, dir, &recorder{})
	large := bytes.Repeat([]byte("x"), 1<<20)
	for range mostLog / len(large) {
		if _, err := l.Propose(context.Background(), large); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		found, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "meta.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the log was never compacted")
		}
	}
}

func TestCompactionDue(t *testing.T) {
	for _, c := range []struct {
		read, snapshot int64
		busy, quiet    bool
	}{
		{quietLog - 1, 0, false, false},
		{quietLog, 100 << 20, false, true},
		{mostLog, 0, true, true},
		{mostLog, mostLog + 1, false, true},
		{mostLog + 1, mostLog + 1, true, true},
	} {
		k := newCompaction()
		k.read.Store(c.read)
		k.snapshot.Store(c.snapshot)
		if k.due(false) != c.busy || k.due(true) != c.quiet {
			t.Errorf("%d bytes after a snapshot of %d: due %v, when quiet %v", c.read, c.snapshot,
				k.due(false), k.due(true))
		}
	}
}
