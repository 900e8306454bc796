package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"dev.muster/agent/heartbeat"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestReportsWait: for as long as nodes are waited for after a restore no report is taken: it may be of a job that
// another node will tell of, and what is told of a job that is not known is forgotten.
func TestReportsWait(t *testing.T) {
	state, index := cluster.NewState(), uint64(0)
	apply := func(cmd cluster.Command) {
		t.Helper()
		index++
		a := state.Apply(cluster.Entry{Index: index, At: time.Unix(1, 0), By: cluster.Identity{System: true}, Cmd: cmd})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	config := cluster.DefaultConfig()
	apply(&cluster.Configure{Config: &config})
	for _, name := range []cluster.NodeName{"n1", "n2"} {
		apply(&cluster.NodeUp{
			Name:      name,
			Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 1000},
		})
	}
	state.Restore(time.Now(), time.Now())
	s := &Server{state: state, heartbeats: heartbeat.New()}
	now := time.Now()
	s.tookOver.Store(&now)
	waits := func() bool {
		t.Helper()
		_, err := s.reportWork(context.Background(), api.Caller{}, api.ReportRequest{})
		var e *cluster.Error
		return errors.As(err, &e) && e.Code == cluster.Unavailable
	}
	apply(&cluster.NodeTell{Node: "n1"})
	if !waits() {
		t.Error("a report was taken while a node had not told yet what it knows")
	}
	before := now.Add(-settleTime)
	s.tookOver.Store(&before)
	if s.settled() != nil {
		t.Error("a node that does not come is waited for without end")
	}
}
