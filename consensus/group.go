package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/hashicorp/raft"
)

// changeTimeout bounds one change of the group.
const changeTimeout = 10 * time.Second

// Voter is one server of the group.
type Voter struct {
	ID, Addr string
	Voter    bool
	Leader   bool
}

// Group lists the servers as this one knows them.
func (l *Log) Group() ([]Voter, error) {
	f := l.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, fmt.Errorf("read the group: %w", err)
	}
	_, leader := l.raft.LeaderWithID()
	var out []Voter
	for _, s := range f.Configuration().Servers {
		out = append(out, Voter{
			ID: string(s.ID), Addr: string(s.Address), Voter: s.Suffrage == raft.Voter,
			Leader: s.ID == leader,
		})
	}
	return out, nil
}

// Add takes a server into the group or notes its new address; without a vote it only follows. The
// leader alone can.
func (l *Log) Add(id, addr string, vote bool) error {
	if vote {
		return leaderErr(l.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(addr), 0, changeTimeout).Error())
	}
	return leaderErr(l.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(addr), 0, changeTimeout).Error())
}

// Remove takes a server out of the group. The leader alone can.
func (l *Log) Remove(id string) error {
	return leaderErr(l.raft.RemoveServer(raft.ServerID(id), 0, changeTimeout).Error())
}

// Transfer hands the lead to another server, the most current one if id is empty.
func (l *Log) Transfer(id, addr string) error {
	if id == "" {
		return leaderErr(l.raft.LeadershipTransfer().Error())
	}
	return leaderErr(l.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(addr)).Error())
}

func leaderErr(err error) error {
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) {
		return fmt.Errorf("%w (%w)", ErrNotLeader, err)
	}
	return err
}

// LastContact is when this server last heard of the leader; now, if it leads.
func (l *Log) LastContact() time.Time {
	if l.raft.State() == raft.Leader {
		return time.Now()
	}
	return l.raft.LastContact()
}

// Seed makes the folder of a log that begins with a state, in a group of one server.
func Seed(dir, id string, index uint64, write func(io.Writer) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make raft folder: %w", err)
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, bridge(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("open snapshots in %s: %w", dir, err)
	}
	_, trans := raft.NewInmemTransport("")
	group := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(id), Address: raft.ServerAddress(id)}}}
	sink, err := snaps.Create(raft.SnapshotVersionMax, index, 1, group, index, trans)
	if err != nil {
		return fmt.Errorf("begin the log: %w", err)
	}
	return persister{write, newCompaction()}.Persist(sink)
}

// CaughtUp reports whether everything known to be committed is applied here.
func (l *Log) CaughtUp() bool {
	return l.raft.AppliedIndex() >= l.raft.CommitIndex() && l.raft.CommitIndex() > 0
}

// Committed returns the index of the last entry that is known to be committed.
func (l *Log) Committed() uint64 {
	applied := l.AppliedIndex()
	for i := l.raft.CommitIndex(); i > applied; i-- {
		var e raft.Log
		if l.logs.GetLog(i, &e) != nil { // a snapshot that was restored has it
			break
		}
		if e.Type == raft.LogCommand { // raft's own entries change nothing
			return i
		}
	}
	return applied
}

// AppliedIndex is the index of the last entry applied here.
func (l *Log) AppliedIndex() uint64 { l.mu.Lock(); defer l.mu.Unlock(); return l.applied }

// Network makes the transport of a group whose servers are on several machines, over connections
// that the listener accepts and dial makes.
func Network(ln net.Listener, dial func(addr string, timeout time.Duration) (net.Conn, error),
	log *slog.Logger) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: stream{ln, dial}, MaxPool: 3,
		// Not two: raft's pipeline without a buffer blocks indefinitely when a follower refuses an entry while
		// the next one is sent, and then raft never shuts down.
		MaxRPCsInFlight: 1, Timeout: 2 * time.Second, Logger: bridge(log)})
}

type stream struct {
	net.Listener
	dial func(string, time.Duration) (net.Conn, error)
}

func (s stream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.dial(string(addr), timeout)
}
