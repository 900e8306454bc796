package consensus

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// full is a store on a disk that is full at times.
type full struct {
	raft.LogStore
	now bool
}

func (f *full) StoreLogs(list []*raft.Log) error {
	if f.now {
		return errors.New("no space left on device")
	}
	return f.LogStore.StoreLogs(list)
}

// TestFullDisk: a follower that has deleted entries and could not store the leader's in their place goes on as soon
// as it can.
func TestFullDisk(t *testing.T) {
	disk := &full{LogStore: raft.NewInmemStore()}
	s := &retaining{LogStore: disk}
	entry := func(index, term uint64) *raft.Log { return &raft.Log{Index: index, Term: term} }
	if err := s.StoreLogs([]*raft.Log{entry(1, 1), entry(2, 1), entry(3, 1)}); err != nil {
		t.Fatal(err)
	}
	term := func(index uint64) uint64 {
		t.Helper()
		var e raft.Log
		if err := s.GetLog(index, &e); err != nil {
			t.Fatalf("entry %d: %v", index, err)
		}
		return e.Term
	}
	disk.now = true
	for range 2 { // the leader tries again
		if term(2) != 1 || term(3) != 1 {
			t.Fatal("the old end is not what it was")
		}
		if err := s.DeleteRange(2, 3); err != nil {
			t.Fatal(err)
		}
		if err := s.StoreLogs([]*raft.Log{entry(2, 2)}); err == nil {
			t.Fatal("stored on a full disk")
		}
	}
	disk.now = false
	if err := s.StoreLogs([]*raft.Log{entry(2, 2)}); err != nil {
		t.Fatal(err)
	}
	var e raft.Log
	if err := s.GetLog(3, &e); !errors.Is(err, raft.ErrLogNotFound) || term(2) != 2 {
		t.Errorf("after the second entry there is %v, %+v", err, e)
	}
}

// TestStaleSuffix: a follower that holds an entry which was never committed does not apply it when a later leader
// tells of a commit before he has sent his own entries; it applies those.
func TestStaleSuffix(t *testing.T) {
	addr, trans := raft.NewInmemTransport("")
	m := &recorder{}
	l, err := Open(Config{Dir: t.TempDir(), ID: "f", Addr: string(addr), Timeout: 10 * time.Second}, m, trans, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.raft.Shutdown().Error(); _ = l.closeAll() })
	_, inner := raft.NewInmemTransport("")
	inner.Connect(addr, trans)
	pipeline, err := commitBounded{inner, newStopwatch(nil)}.AppendEntriesPipeline("f", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipeline.Close() })
	group := raft.Configuration{
		Servers: []raft.Server{{ID: "f", Address: addr}, {ID: "x", Address: "x"}, {ID: "y", Address: "y"}},
	}
	send := func(piped bool, term, prev, prevTerm, committed uint64, entries ...*raft.Log) {
		t.Helper()
		header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("x"), Addr: []byte("x")}
		q := &raft.AppendEntriesRequest{
			RPCHeader: header, Term: term, PrevLogEntry: prev, PrevLogTerm: prevTerm,
			LeaderCommitIndex: committed, Entries: entries,
		}
		var r raft.AppendEntriesResponse
		if piped {
			if _, err := pipeline.AppendEntries(q, &r); err != nil {
				t.Fatal(err)
			}
			f := <-pipeline.Consumer()
			if err := f.Error(); err != nil {
				t.Fatal(err)
			}
			r = *f.Response()
		} else if err := (commitBounded{inner, newStopwatch(nil)}).AppendEntries("f", addr, q, &r); err != nil {
			t.Fatal(err)
		}
		if !r.Success {
			t.Fatalf("refused: %+v", r)
		}
	}
	entry := func(index, term uint64, text string) *raft.Log {
		return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: []byte(text + "\n")}
	}
	base := &raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(group)}
	send(false, 1, 0, 0, 1, base, entry(2, 1, "never committed"), entry(3, 1, "nor this"))
	send(false, 2, 1, 1, 2) // made ready before the leader's own entry 2
	send(true, 2, 1, 1, 3)
	send(true, 2, 1, 1, 3, entry(2, 2, "second"))
	send(false, 2, 2, 2, 3, entry(3, 2, "third"))
	if err := l.Applied(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if want := []string{"second", "third"}; !slices.Equal(m.entries, want) {
		t.Errorf("applied %q, want %q", m.entries, want)
	}
}
