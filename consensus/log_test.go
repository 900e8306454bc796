package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/hashicorp/raft"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// recorder is a machine that remembers what was applied.
type recorder struct {
	mu      sync.Mutex
	entries []string
	batches int
}

func (r *recorder) Apply(_ uint64, entries [][]byte) []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches++
	out := make([]any, len(entries))
	for i, e := range entries {
		r.entries = append(r.entries, string(e))
		out[i] = "did " + string(e)
	}
	return out
}

func (r *recorder) Snapshot() (func(io.Writer) error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := []byte(fmt.Sprint(len(r.entries)))
	return func(w io.Writer) error { _, err := w.Write(text); return err }, nil
}

func (r *recorder) Restore(in io.Reader) (uint64, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = []string{"restored " + string(bytes.TrimSpace(text))}
	return 0, nil
}

func start(t *testing.T, dir string, m Machine) (*Log, func()) {
	t.Helper()
	addr, trans := raft.NewInmemTransport("")
	l, err := Open(Config{
		Dir: dir, ID: "a", Addr: string(addr), Bootstrap: true, Timeout: 50 * time.Millisecond,
	}, m, trans, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
	t.Cleanup(stop)
	for lead := range l.LeaderCh() {
		if lead {
			break
		}
	}
	return l, stop
}

// giver is a machine whose answers are large.
type giver struct {
	recorder
	given []weak.Pointer[[1 << 20]byte]
}

func (g *giver) Apply(index uint64, entries [][]byte) []any {
	out := g.recorder.Apply(index, entries)
	for i := range out {
		large := new([1 << 20]byte)
		out[i], g.given = large, append(g.given, weak.Make(large))
	}
	return out
}

// TestAnswersGo: what Apply returned is not kept beside the latest entries once it was told.
func TestAnswersGo(t *testing.T) {
	g := &giver{}
	l, stop := start(t, t.TempDir(), g)
	const n = 50
	for range n {
		if got, err := l.Propose(t.Context(), []byte("a"), []byte("b")); err != nil || len(got) != 2 || got[1].(*[1 << 20]byte) == nil {
			t.Fatal(got, err)
		}
	}
	runtime.GC()
	kept := 0
	for _, p := range g.given {
		if p.Value() != nil {
			kept++
		}
	}
	stop()
	if len(g.given) != 2*n || kept > 4 { // the last answer may lie on a stack
		t.Errorf("%d of %d answers are kept", kept, len(g.given))
	}
}

func TestProposeTogether(t *testing.T) {
	m := &recorder{}
	l, _ := start(t, t.TempDir(), m)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			a, b := fmt.Sprintf("%d-a", i), fmt.Sprintf("%d-b", i)
			got, err := l.Propose(context.Background(), []byte(a), []byte(b))
			if err != nil || len(got) != 2 || got[0] != "did "+a || got[1] != "did "+b {
				t.Errorf("proposal %d: %v %v", i, got, err)
			}
		})
	}
	wg.Wait()
	if len(m.entries) != 400 {
		t.Errorf("%d entries applied, want 400", len(m.entries))
	}
	for i := 0; i < len(m.entries); i += 2 { // the two of one proposal stay together
		if m.entries[i][:len(m.entries[i])-2] != m.entries[i+1][:len(m.entries[i+1])-2] {
			t.Errorf("%q and %q were torn apart", m.entries[i], m.entries[i+1])
		}
	}
	if m.batches >= 200 {
		t.Errorf("200 proposals took %d raft entries: nothing was packed", m.batches)
	}
}

func TestRestartReplays(t *testing.T) {
	dir := t.TempDir()
	l, stop := start(t, dir, &recorder{})
	for i := range 3 {
		if _, err := l.Propose(context.Background(), []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	m := &recorder{}
	l, stop = start(t, dir, m)
	if err := l.Barrier(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(m.entries) != "[0 1 2]" {
		t.Errorf("replayed %v", m.entries)
	}
	if err := l.TakeSnapshot(); err != nil {
		t.Fatal(err)
	}
	stop()
	m = &recorder{}
	l, _ = start(t, dir, m)
	if err := l.Barrier(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if len(m.entries) == 0 || m.entries[0] != "restored 3" {
		t.Errorf("after a snapshot: %v", m.entries)
	}
}

func TestApplied(t *testing.T) {
	l, _ := start(t, t.TempDir(), &recorder{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := l.Applied(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an index that is not there: %v", err)
	}
	if _, err := l.Propose(context.Background(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := l.Applied(context.Background(), 2); err != nil {
		t.Errorf("an index that is there: %v", err)
	}
}

func TestProposeAfterEnd(t *testing.T) {
	l, stop := start(t, t.TempDir(), &recorder{})
	stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := l.Propose(ctx, []byte("x")); err == nil {
		t.Error("a proposal to a stopped log was acknowledged")
	}
}

// An entry waits for as many proposals as the last one had, but not for long.
func TestCollect(t *testing.T) {
	for _, c := range []struct {
		name   string
		likely int
		after  []time.Duration // when others propose
		want   int
		took   time.Duration
	}{
		{"one proposes alone", 1, nil, 1, 0},
		{"those who wait go with it", 1, []time.Duration{0, 0}, 3, 0},
		{
			"they come again", 3, []time.Duration{200 * time.Microsecond, 700 * time.Microsecond}, 3,
			700 * time.Microsecond,
		},
		{"fewer come", 3, []time.Duration{200 * time.Microsecond}, 2, time.Millisecond},
		{"nobody comes", 9, nil, 1, time.Millisecond},
		{"they come too late", 3, []time.Duration{2 * time.Millisecond, 2 * time.Millisecond}, 1, time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &Log{queue: make(chan proposal, 8)}
				var others sync.WaitGroup
				defer others.Wait()
				for _, d := range c.after {
					if d == 0 {
						l.queue <- proposal{}
					} else {
						others.Go(func() { time.Sleep(d); l.queue <- proposal{} })
					}
				}
				began := time.Now()
				if got := len(l.collect(proposal{}, c.likely, time.Millisecond)); got != c.want || time.Since(began) != c.took {
					t.Errorf("%d proposals after %v, want %d after %v", got, time.Since(began), c.want, c.took)
				}
			})
		})
	}
}

// TestLargeEntriesGo: entries of megabytes lie on the disk, not in memory, and are there for who needs them.
func TestLargeEntriesGo(t *testing.T) {
	m := &recorder{}
	l, stop := start(t, t.TempDir(), m)
	used := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	large := bytes.Repeat([]byte("x"), 4<<20)
	before := used()
	const n = 16
	for i := range n {
		if _, err := l.Propose(t.Context(), large); err != nil {
			t.Fatal(err)
		}
		m.mu.Lock()
		if got := m.entries[len(m.entries)-1]; len(m.entries) != i+1 || got != string(large) {
			t.Errorf("entry %d has %d bytes", i, len(got))
		}
		m.entries[i] = ""
		m.mu.Unlock()
	}
	if more := int64(used()) - int64(before); more > 4*int64(len(large)) {
		t.Errorf("%d entries of %d bytes take %d bytes of memory", n, len(large), more)
	}
	var e raft.Log
	last, err := l.logs.LastIndex()
	if err == nil {
		err = l.logs.GetLog(last, &e)
	}
	if err != nil || len(e.Data) != len(large)+1 {
		t.Errorf("the last entry: %d bytes, %v", len(e.Data), err)
	}
	stop()
}
