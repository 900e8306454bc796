// Package consensus is an ordered, durable, replicated log of opaque entries: hashicorp/raft over
// raft-boltdb. The Machine gives the entries their meaning.
package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// Limits of the log.
const (
	maxBatchEntries  = 1024                 // proposals packed into one raft entry
	maxBatchBytes    = 8 << 20              // and their size; a single larger proposal goes alone
	maxGather        = 2 * time.Millisecond // how long an entry waits for more proposals
	maxWaiting       = 4096                 // proposals waiting to be packed
	logCacheEntries  = 512
	maxCachedBytes   = 256 << 10 // larger entries are not kept in memory
	maxAppendEntries = 1024
	snapshotsKept    = 2
	snapshotChecks   = time.Second // how often a log of few entries is looked at
)

// ErrNotLeader is what Propose answers on a server that does not lead.
var ErrNotLeader = errors.New("this server is not the leader")

// ErrUncertain is what Propose answers when the lead was lost on the way: the entries may be applied
// or not.
var ErrUncertain = errors.New("the lead was lost before the entry was known to be durable")

// Machine is the state that the log drives. Apply is called from one goroutine, in order, with
// all entries of one raft index; it must not block. An entry holds no newline.
type Machine interface {
	Apply(index uint64, entries [][]byte) []any
	// Snapshot returns a function that writes the state of this moment; it runs beside Apply.
	Snapshot() (write func(io.Writer) error, err error)
	// Restore replaces the state and returns the index of the last entry in it.
	Restore(io.Reader) (index uint64, err error)
}

// Config says where the log lives and who this server is.
type Config struct {
	Dir       string
	ID        string // server id, never used again
	Addr      string // address in the transport
	Bootstrap bool   // make a new single-server group if Dir holds none
	// Timeout is raft's heartbeat and election timeout; 0 means 200 ms.
	Timeout time.Duration
	// SnapshotEvery is after how many entries the log is compacted; 0 means some thousands.
	SnapshotEvery uint64
	// Mark is a file that is made when the log begins. Where it is and the log is not, that was lost (ErrLost);
	// empty: nobody looks.
	Mark string
	// Wrote is told how long entries took to be on the disk; nil: nobody is.
	Wrote func(time.Duration)
	// Fatal is told why this server cannot go on, and does not return; nil: it panics.
	Fatal func(error)
	// Memory keeps the log in memory only (tests), and wrap puts something before it.
	Memory bool
	wrap   func(raft.LogStore) raft.LogStore
}

type proposal struct {
	entries [][]byte
	done    chan result // holds one
}

type result struct {
	values []any
	err    error
}

// Log is the replicated log of this server.
type Log struct {
	raft    *raft.Raft
	logs    raft.LogStore
	machine Machine
	log     *slog.Logger
	queue   chan proposal
	size    *compaction
	close   []func() error

	mu        sync.Mutex
	applied   uint64
	moved     chan struct{} // closed and replaced when applied grows
	leadMoved chan struct{} // and when another server leads
}

// Open starts this server's raft. Run must be called to serve proposals.
func Open(cfg Config, m Machine, trans raft.Transport, logger *slog.Logger) (*Log, error) {
	l := &Log{machine: m, log: logger, queue: make(chan proposal, maxWaiting), size: newCompaction(),
		moved: make(chan struct{}), leadMoved: make(chan struct{})}
	if err := l.open(cfg, trans); err != nil {
		return nil, errors.Join(err, l.closeAll())
	}
	return l, nil
}

func (l *Log) open(cfg Config, trans raft.Transport) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = damaged(cfg.Dir, r)
		}
	}()
	logs, stable, snaps, err := l.stores(cfg)
	if err != nil {
		return err
	}
	if cfg.wrap != nil {
		logs = cfg.wrap(logs)
	}
	watched := newStopwatch(logs)
	l.logs = watched
	rc := raftConfig(cfg, l.log)
	if cfg.Bootstrap {
		if err := bootstrap(cfg, rc, logs, stable, snaps, trans); err != nil {
			return err
		}
	}
	l.raft, err = raft.NewRaft(rc, fsm{l}, watched, stable, snaps, commitBounded{trans, watched})
	if err != nil && strings.Contains(err.Error(), "snapshot") {
		return fmt.Errorf("%w: %s: %w; the log has said why", ErrDamaged, filepath.Join(cfg.Dir, "snapshots"), err)
	}
	if err != nil {
		return fmt.Errorf("start raft in %s: %w", cfg.Dir, err)
	}
	if g, ok := stable.(*guarded); ok {
		g.opened.Store(true)
	}
	return nil
}

func raftConfig(cfg Config, logger *slog.Logger) *raft.Config {
	rc := raft.DefaultConfig()
	rc.LocalID = raft.ServerID(cfg.ID)
	rc.Logger = bridge(logger)
	rc.BatchApplyCh, rc.MaxAppendEntries = true, maxAppendEntries
	t := cfg.Timeout
	if t == 0 {
		t = 200 * time.Millisecond
	}
	rc.HeartbeatTimeout, rc.ElectionTimeout, rc.LeaderLeaseTimeout = t, t, t
	if n := cfg.SnapshotEvery; n > 0 {
		rc.SnapshotThreshold, rc.TrailingLogs, rc.SnapshotInterval = n, n, snapshotChecks
	}
	return rc
}

// bootstrap makes a group of this server alone, unless it has a log.
func bootstrap(cfg Config, rc *raft.Config, logs raft.LogStore, stable raft.StableStore,
	snaps raft.SnapshotStore, trans raft.Transport) error {
	has, err := raft.HasExistingState(logs, stable, snaps)
	if err != nil {
		return fmt.Errorf("read raft state in %s: %w", cfg.Dir, err)
	}
	if has {
		return nil
	}
	group := raft.Configuration{Servers: []raft.Server{{ID: rc.LocalID, Address: raft.ServerAddress(cfg.Addr)}}}
	if err := raft.BootstrapCluster(rc, logs, stable, snaps, trans, group); err != nil {
		return fmt.Errorf("bootstrap raft: %w", err)
	}
	return nil
}

func (l *Log) stores(cfg Config) (raft.LogStore, raft.StableStore, raft.SnapshotStore, error) {
	if cfg.Memory {
		s := raft.NewInmemStore()
		return s, s, raft.NewInmemSnapshotStore(), nil
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, nil, nil, fmt.Errorf("make raft folder: %w", err)
	}
	disk, err := l.openStore(cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	cache, err := raft.NewLogCache(logCacheEntries, disk)
	if err != nil {
		return nil, nil, nil, err
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, snapshotsKept, bridge(l.log))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("open snapshots in %s: %w", cfg.Dir, err)
	}
	if err := checkSnapshots(cfg.Dir, disk, snaps); err != nil {
		return nil, nil, nil, err
	}
	return &retaining{LogStore: &thrifty{LogStore: cache, disk: disk}}, disk, snaps, nil
}

// openStore opens the files of the log.
func (l *Log) openStore(cfg Config) (*guarded, error) {
	files := filesOf(cfg.Dir)
	path, err := files.name()
	if err != nil {
		return nil, err
	}
	if err := checkStore(path); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	store, err := boltdb.New(boltdb.Options{Path: path, BoltOptions: &bbolt.Options{NoFreelistSync: true,
		Timeout: 5 * time.Second}})
	if err != nil {
		return nil, fmt.Errorf("open raft store %s: %w", path, err)
	}
	ahead, err := files.open(store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	l.close = append(l.close, func() error { return files.end(ahead, store) })
	g := &guarded{store: ahead, path: files.opened, mark: cfg.Mark, fatal: cfg.Fatal, wrote: cfg.Wrote}
	if g.wrote == nil {
		g.wrote = func(time.Duration) {}
	}
	if g.fatal == nil {
		g.fatal = func(error) {} // it panics then
	}
	lost, err := g.lost()
	if err == nil && lost {
		err = fmt.Errorf("%w: %s is missing or empty", ErrLost, path)
	}
	return g, err
}

func (l *Log) closeAll() error {
	var errs []error
	for _, f := range l.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Run packs proposals into raft entries until ctx ends, then stops raft. One entry is on its way at a time, and what
// is proposed meanwhile goes with the next: each costs the disks and the network of all servers a round.
func (l *Log) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { l.watchLead(ctx.Done()) })
	watching.Go(func() { l.compact(ctx.Done()) })
	last, round := 1, time.Duration(0) // how many proposals the last entry had, and how long it took
	for {
		select {
		case <-ctx.Done():
			err := l.raft.Shutdown().Error()
			l.drain()
			return errors.Join(err, l.closeAll())
		case first := <-l.queue:
			batch := l.collect(first, last, min(round/2, maxGather))
			began := time.Now()
			deliver(batch, l.raft.Apply(encode(batch), 0)) // raft answers at shutdown, too
			last, round = len(batch), time.Since(began)
		}
	}
}

func (l *Log) drain() {
	for {
		select {
		case p := <-l.queue:
			p.done <- result{err: ErrNotLeader}
		default:
			return
		}
	}
}

// collect takes what waits, and waits itself as long as patience for so many proposals: those who were answered by the
// last entry are likely to propose again.
func (l *Log) collect(first proposal, likely int, patience time.Duration) []proposal {
	batch := []proposal{first}
	count, size := len(first.entries), sizeOf(first)
	var late <-chan time.Time
	for count < maxBatchEntries && size < maxBatchBytes {
		var p proposal
		select {
		case p = <-l.queue:
		default:
			if len(batch) >= likely {
				return batch
			}
			if late == nil {
				late = time.After(patience)
			}
			select {
			case p = <-l.queue:
			case <-late:
				return batch
			}
		}
		batch = append(batch, p)
		count, size = count+len(p.entries), size+sizeOf(p)
	}
	return batch
}

func sizeOf(p proposal) (n int) {
	for _, e := range p.entries {
		n += len(e)
	}
	return n
}

// encode joins the entries as lines.
func encode(batch []proposal) []byte {
	var b bytes.Buffer
	size := 0
	for _, p := range batch {
		size += sizeOf(p) + len(p.entries)
	}
	b.Grow(size)
	for _, p := range batch {
		for _, e := range p.entries {
			b.Write(e)
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

func decode(data []byte) [][]byte {
	lines := bytes.Split(data, []byte{'\n'})
	return lines[:len(lines)-1]
}

// deliver answers the proposals of an entry. Apply's results are removed from the future: raft's cache of the
// latest entries points into their futures, and would keep it for as long.
func deliver(batch []proposal, future raft.ApplyFuture) {
	err := future.Error()
	var values []any
	if err == nil {
		values, _ = future.Response().([]any)
	} else if errors.Is(err, raft.ErrLeadershipLost) || errors.Is(err, raft.ErrRaftShutdown) ||
		errors.Is(err, raft.ErrAbortedByRestore) {
		err = fmt.Errorf("%w (%w)", ErrUncertain, err)
	} else if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		err = fmt.Errorf("%w (%w)", ErrNotLeader, err)
	}
	for _, p := range batch {
		r := result{err: err}
		if err == nil {
			own := values[:len(p.entries)]
			r.values, values = slices.Clone(own), values[len(p.entries):]
			clear(own)
		}
		p.done <- r
	}
}

// Propose appends the entries, together, and answers what Apply returned for each once they
// are durable on a majority. If ctx ends first the entries may still be applied later.
func (l *Log) Propose(ctx context.Context, entries ...[]byte) ([]any, error) {
	p := proposal{entries: entries, done: make(chan result, 1)}
	select {
	case l.queue <- p:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-p.done:
		return r.values, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Applied returns once the entry with this index is applied here.
func (l *Log) Applied(ctx context.Context, index uint64) error {
	for {
		l.mu.Lock()
		done, moved := l.applied >= index, l.moved
		l.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Leader tells the address of the leader, empty if unknown, and whether it is this server.
func (l *Log) Leader() (addr string, self bool) {
	a, _ := l.raft.LeaderWithID()
	return string(a), l.raft.State() == raft.Leader
}

// LeaderCh tells when this server gains or loses the lead.
func (l *Log) LeaderCh() <-chan bool { return l.raft.LeaderCh() }

// Barrier returns once everything committed before is applied here; a new leader calls it first.
func (l *Log) Barrier(timeout time.Duration) error { return l.raft.Barrier(timeout).Error() }

// TakeSnapshot compacts the log now.
func (l *Log) TakeSnapshot() error { return l.raft.Snapshot().Error() }

// Unread calls each with the entries that are in the log of this server and not applied: without a leader
// nobody knows which of them are committed.
func (l *Log) Unread(each func(index uint64, entries [][]byte) error) error {
	last, err := l.logs.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	first, err := l.logs.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	for i := max(l.raft.AppliedIndex()+1, first); i <= last; i++ {
		var e raft.Log
		if err := l.logs.GetLog(i, &e); err != nil {
			return fmt.Errorf("read entry %d of the log: %w", i, err)
		}
		if e.Type != raft.LogCommand {
			continue
		}
		if err := each(i, decode(e.Data)); err != nil {
			return err
		}
	}
	return nil
}

// fsm adapts a Machine to raft.BatchingFSM.
type fsm struct{ l *Log }

func (f fsm) Apply(e *raft.Log) any { return f.ApplyBatch([]*raft.Log{e})[0] }

func (f fsm) ApplyBatch(logs []*raft.Log) []any {
	out, last := make([]any, len(logs)), uint64(0)
	for i, e := range logs {
		if e.Type == raft.LogCommand {
			out[i], last = f.l.machine.Apply(e.Index, decode(e.Data)), e.Index
		}
	}
	f.l.advance(last)
	f.l.size.applied(logs)
	return out
}

func (l *Log) advance(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if index > l.applied {
		l.applied = index
		close(l.moved)
		l.moved = make(chan struct{})
	}
}

func (f fsm) Snapshot() (raft.FSMSnapshot, error) {
	write, err := f.l.machine.Snapshot()
	f.l.size.read.Store(0)
	return persister{write, f.l.size}, err
}

func (f fsm) Restore(r io.ReadCloser) error {
	defer r.Close()
	index, err := f.l.machine.Restore(r)
	if err == nil {
		f.l.advance(index)
	}
	return err
}

type persister struct {
	write func(io.Writer) error
	size  *compaction
}

func (p persister) Persist(sink raft.SnapshotSink) error {
	counted := &sized{Writer: sink}
	if err := p.write(counted); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	p.size.snapshot.Store(counted.n)
	return sink.Close()
}

func (persister) Release() {}
