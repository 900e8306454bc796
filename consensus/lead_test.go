package consensus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// hanging is a log store whose writes wait while it is held.
type hanging struct {
	raft.LogStore
	gate sync.RWMutex
}

func (h *hanging) StoreLogs(list []*raft.Log) error {
	h.gate.RLock()
	defer h.gate.RUnlock()
	return h.LogStore.StoreLogs(list)
}

// trio starts three servers of one group in memory.
func trio(t *testing.T) (logs []*Log, disks []*hanging) {
	t.Helper()
	var transports []*raft.InmemTransport
	var addrs []raft.ServerAddress
	for range 3 {
		addr, trans := raft.NewInmemTransport("")
		addrs, transports = append(addrs, addr), append(transports, trans)
	}
	for i, tr := range transports {
		for k, other := range transports {
			if i != k {
				tr.Connect(addrs[k], other)
			}
		}
		disk := &hanging{}
		cfg := Config{ID: fmt.Sprint("s", i), Addr: string(addrs[i]), Bootstrap: i == 0, Memory: true,
			wrap: func(s raft.LogStore) raft.LogStore {
				disk.LogStore = s
				return disk
			}}
		l, err := Open(cfg, &recorder{}, tr, quiet)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			<-done // what a group that falls apart says of its end is nothing to this test
		})
		logs, disks = append(logs, l), append(disks, disk)
	}
	for lead := range logs[0].LeaderCh() {
		if lead {
			break
		}
	}
	for i := 1; i < 3; i++ {
		if err := logs[0].Add(fmt.Sprint("s", i), string(addrs[i]), true); err != nil {
			t.Fatal(err)
		}
	}
	return logs, disks
}

// TestDiskHangs: a leader whose disk hangs is replaced, though it runs and is heard of; it is not sure of its lead
// then. Commands proposed to it meanwhile are in nobody's log.
func TestDiskHangs(t *testing.T) {
	logs, disks := trio(t)
	if err := <-logs[0].Verify(); err != nil {
		t.Fatalf("a leader with a majority: %v", err)
	}
	disks[0].gate.Lock()
	moved := logs[1].LeadMoved()
	ctx, cancel := context.WithCancel(t.Context())
	proposed := make(chan error, 1)
	go func() {
		_, err := logs[0].Propose(ctx, []byte("lost"))
		proposed <- err
	}()
	var next *Log
	for next == nil {
		<-moved
		moved = logs[1].LeadMoved()
		for _, l := range logs[1:] {
			if _, self := l.Leader(); self {
				next = l
			}
		}
	}
	select {
	case err := <-logs[0].Verify():
		if err == nil {
			t.Error("a leader whose disk hangs is sure that it leads")
		}
	case <-time.After(10 * time.Millisecond): // it has no answer
	}
	if _, err := next.Propose(t.Context(), []byte("kept")); err != nil {
		t.Fatalf("the next leader: %v", err)
	}
	cancel()
	if err := <-proposed; !errors.Is(err, context.Canceled) {
		t.Errorf("a proposal to a disk that hangs: %v", err)
	}
	disks[0].gate.Unlock()
	if err := next.Barrier(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		if err := l.Applied(t.Context(), next.AppliedIndex()); err != nil {
			t.Fatal(err)
		}
		m := l.machine.(*recorder)
		m.mu.Lock()
		if fmt.Sprint(m.entries) != "[kept]" {
			t.Errorf("one server has %v", m.entries)
		}
		m.mu.Unlock()
	}
}
