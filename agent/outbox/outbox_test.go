package outbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/cluster"
)

const self = cluster.NodeName("n1")

// TestOutboxSurvives: reports outlive a crash, a line that it cut off, and a new file.
func TestOutboxSurvives(t *testing.T) {
	dir := t.TempDir()
	put := func(b *box, n int) {
		for range n {
			if _, err := b.Put(self, []cluster.Update{{Kind: cluster.NodeDone, Job: 1}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := func() *box {
		b, err := openBox(dir)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := open()
	put(b, 3)
	if err := b.Ack(b.Pending()[:2]); err != nil {
		t.Fatal(err)
	}
	_ = b.file.Close() // a crash: no close of ours
	b = open()
	if p := b.Pending(); len(p) != 1 || p[0].Seq != 3 || b.Seq(self) != 2 {
		t.Fatalf("after a restart: %+v, last known %d", p, b.Seq(self))
	}
	_ = b.file.Close()
	f, err := os.OpenFile(filepath.Join(dir, "outbox"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"node":"n1","seq":4,"upd`); err != nil { // a line cut off by a crash
		t.Fatal(err)
	}
	_ = f.Close()
	b = open()
	put(b, 1)
	if p := b.Pending(); len(p) != 2 || p[1].Seq != 4 {
		t.Fatalf("after a torn line: %+v", p)
	}
	if err := b.Ack(b.Pending()); err != nil {
		t.Fatal(err)
	}
	if err := b.renew(); err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	if b = open(); len(b.Pending()) != 0 || b.Seq(self) != 4 {
		t.Errorf("after renewal: %d pending, last number %d, want 0 and 4", len(b.Pending()), b.Seq(self))
	}
	_ = b.Close()
}

// TestLargeReports: what is told at once is no more than servers take, whatever users' command lines have, and what is
// on file is read again, however long a line is.
func TestLargeReports(t *testing.T) {
	dir := t.TempDir()
	b, err := openBox(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{20 << 20, 5 << 20, 5 << 20, 5 << 20, 100} {
		begun := &cluster.Step{SubmitLine: strings.Repeat("x", size)}
		if _, err := b.Put(self, []cluster.Update{{Kind: cluster.StepNow, Step: begun}}); err != nil {
			t.Fatal(err)
		}
	}
	if all := b.All(); len(all) != 5 {
		t.Errorf("all reports are %d", len(all))
	}
	for _, want := range []int{1, 1, 1, 2, 0} {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if b, err = openBox(dir); err != nil {
			t.Fatal(err)
		}
		told := b.Pending()
		if len(told) != want {
			t.Fatalf("%d reports are told at once, not %d", len(told), want)
		}
		if want == 0 {
			break
		}
		if err := b.Ack(told); err != nil {
			t.Fatal(err)
		}
	}
	_ = b.Close()
}
