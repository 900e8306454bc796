// Package server is server mode: it holds the replicated state, answers requests from snapshots
// of it, and leads when it is the leader.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/agent/burst"
	"dev.muster/agent/container/locality"
	"dev.muster/agent/eventlog"
	"dev.muster/agent/guests"
	"dev.muster/agent/heartbeat"
	"dev.muster/agent/history"
	"dev.muster/agent/metrics"
	"dev.muster/agent/session"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
	"dev.muster/sched"
	"github.com/hashicorp/raft"
)

// Config says how a server runs.
type Config struct {
	Name    string
	Log     consensus.Config
	Version string
	// Load reads the configuration of this server's file, with notes of what has no effect in it. It is
	// activated when this server leads, unless it is already. Nil leaves the cluster's own, a new
	// cluster's being DefaultConfig.
	Load func() (*cluster.Config, []string, error)
	// Authority and Self are proposed by the first server of a cluster that has no authority yet.
	Authority *cluster.CA
	Self      cluster.Member
	// Peer calls another server, by address; nil where there can be none.
	Peer func(addr string) *api.Client
	// Reach tells whether a machine answers at an address; nil where there is no gossip.
	Reach func(ctx context.Context, addr string) heartbeat.Answer
	Hooks Hooks
	// Dialect words and runs what goes out; nil: no hooks are run, and pages do not say why a job has ended.
	Dialect api.Dialect
	// Page makes the status page; nil: there is none.
	Page webpage.Maker
	// DeadAfter is how long a server may be silent before it is taken out of the group; 0 means 72 h.
	DeadAfter time.Duration
	// Past makes a past for a new cluster's history, for demonstrations; nil: there is none.
	Past history.Past
}

// Hooks is what the programs and scripts of hooks find.
type Hooks struct {
	// Socket is where these programs find a server.
	Socket string
	// Front is the program that becomes muster's front-ends; "": there is none.
	Front string
	// Filter runs the site's script; nil: there is none.
	Filter JobFilter
	// Burst calls functions of the script for burst buffers; nil: there is none.
	Burst burst.Script
}

// Server is one member of the server group.
type Server struct {
	cfg     Config
	slog    *slog.Logger
	log     *consensus.Log
	hist    *history.Keeper
	wakeups *wakeups
	events  *eventlog.Log
	// share bounds what each user takes of this server.
	share share
	// credentials are by what browsers and programs are known.
	credentials credentials
	// inName makes calls for users, of what becomes of their jobs; nil until somebody answers calls.
	inName     atomic.Pointer[api.InNameOf]
	heartbeats *heartbeat.Heartbeats
	lookout    *heartbeat.Lookout
	others     *others
	wake       chan struct{} // something changed: the leader looks again
	booted     time.Time
	current    chan struct{} // closed once the state has caught up with the log

	// ahead is the state as the log would have it, for readers, while nobody knows what of it is committed.
	ahead   atomic.Pointer[cluster.Snapshot]
	aheadMu sync.Mutex                // held while ahead is made
	led     atomic.Pointer[time.Time] // when this server last led
	// tookOver is when it began to lead last.
	tookOver atomic.Pointer[time.Time]

	termMu sync.Mutex
	term   context.Context // ends when this server stops leading
	ended  context.CancelFunc
	reign  reign

	mu     sync.Mutex // guards state and snap
	state  *cluster.State
	snap   *cluster.Snapshot           // of state, nil when stale
	work   map[cluster.NodeName]uint64 // index at which a node's work last changed
	floor  uint64                      // work indexes below are unknown: after a restore
	level  atomic.Int64                // of the log, see cluster.Newest
	panics atomic.Uint64               // defects that Apply has met

	confs uint64 // index at which the configuration last changed, as far as known

	judge  judge
	images *locality.Table // what nodes told this server while it led

	stats *metrics.Stats

	fore forecasts
}

// judge says what can ever run, one question at a time.
type judge struct {
	mu sync.Mutex
	sched.Judge
}

// New opens the server's log. Run serves it.
func New(cfg Config, trans raft.Transport, hist history.History, logger *slog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, slog: logger, hist: history.New(hist), images: locality.NewTable(), wakeups: newWakeups(), events: eventlog.New(eventlog.Size),
		share:      share{followers: eventlog.Followers[uint32]{All: maxFollowers, Each: maxFollowing}},
		heartbeats: heartbeat.New(), others: newOthers(), wake: make(chan struct{}, 1),
		state: cluster.NewState(), work: map[cluster.NodeName]uint64{},
		stats: metrics.NewStats(), booted: time.Now(), current: make(chan struct{})}
	s.level.Store(int64(s.state.Level()))
	s.share.guests = guests.New(cfg.Log.Dir)
	s.lookout = &heartbeat.Lookout{Heartbeats: s.heartbeats, Rumours: heartbeat.NewRumours(), Reach: cfg.Reach,
		Snapshot: s.Snapshot, Poke: s.poke, Log: logger}
	s.credentials.sessions = session.New(s.cfg.Name, func() *cluster.CA { return s.Snapshot().CA() },
		func(who *session.Session) bool {
			return !knowsEnds(s) || cluster.SessionOver(s.Snapshot(), who.ID, who.Until)
		})
	s.credentials.tokens = newIssuer(s)
	cfg.Log.Wrote = s.stats.Times.Fsync.Observe
	log, err := consensus.Open(cfg.Log, machine{s}, trans, logger)
	if err != nil {
		return nil, err
	}
	s.log = log
	s.fillKeeper()
	return s, nil
}

// fillKeeper tells the keeper of history whose it is.
func (s *Server) fillKeeper() {
	k := s.hist
	k.Name = s.cfg.Name
	k.Version = s.cfg.Version
	k.Log = s.log
	k.Slog = s.slog
	k.Snapshot = s.Snapshot
	k.Committed = s.committed
	k.After = s.waitAfter
	k.Known = func() uint64 { return known(s) }
	k.Applied = s.log.Applied
	k.Elsewhere = func() bool { return leaderAnswers(s) }
	k.Leads = s.Leads
	k.Owns = s.owns
	k.Counted = func() api.JobCounts { return s.stats.Counted().Jobs }
	k.Federal = federal
	k.Peer = s.cfg.Peer
	k.Current = s.current
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	logCtx, stopLog := context.WithCancel(context.WithoutCancel(ctx))
	errc := make(chan error, 1)
	wg.Go(func() { errc <- s.log.Run(logCtx) })
	histCtx, stopHist := context.WithCancel(context.WithoutCancel(ctx))
	histErr := make(chan error, 1)
	wg.Go(func() { histErr <- s.hist.Run(histCtx) })
	s.hist.Check() // an earlier life may have ended before history was whole
	wg.Go(func() { s.hist.FillGaps(ctx) })
	wg.Go(func() { s.listenToServers(ctx) })
	var keeping sync.WaitGroup
	keeping.Go(func() { s.hist.MakePast(ctx, s.cfg.Past) })
	keeping.Go(func() { s.hist.KeepPast(ctx) })
	keeping.Go(func() { s.hist.KeepSamples(ctx) })
	keeping.Go(func() { s.hist.FetchSamples(ctx) })
	keeping.Go(func() { s.hist.RecallIdle(ctx) })
	s.lead(ctx)
	stopLog() // the log stops before history, so that no event is left behind
	err := <-errc
	keeping.Wait()
	stopHist()
	wg.Wait()
	s.share.guests.Close()
	return errors.Join(err, <-histErr)
}

// Snapshot is the state now, as well as this server knows it.
func (s *Server) Snapshot() *cluster.Snapshot {
	if a := s.ahead.Load(); a != nil {
		return a
	}
	return s.committed()
}

// committed is the state that the log has brought about.
func (s *Server) committed() *cluster.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snap == nil {
		s.snap = s.state.Snapshot()
	}
	return s.snap
}

func (s *Server) poke() { poke(s.wake) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// propose sends commands as one proposal. It returns their results, the first rejection as the
// error, and the index to read one's own write.
func (s *Server) propose(ctx context.Context, by cluster.Identity, cmds ...cluster.Command) ([]any, uint64, error) {
	now := time.Now()
	by = traced(s, by)
	lines := make([][]byte, len(cmds))
	for i, c := range cmds {
		c, err := s.atLevel(c)
		if err != nil {
			return nil, 0, err
		}
		line, err := cluster.EncodeEntry(cluster.Entry{At: now, By: by, Cmd: c})
		if err != nil {
			return nil, 0, err
		}
		lines[i] = line
	}
	ctx, done, err := s.underReign(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	values, err := s.log.Propose(ctx, lines...)
	if errors.Is(err, consensus.ErrUncertain) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		logUncertain(s, by, cmds)
		return nil, 0, Uncertain("the lead was lost while this was written")
	}
	if errors.Is(err, consensus.ErrNotLeader) {
		return nil, 0, NoLeader()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("propose: %w", err)
	}
	var index uint64
	out := make([]any, len(values))
	var first error
	for i, v := range values {
		a := v.(applied)
		out[i], index = a.Result, a.index
		logAudits(s, a.Events)
		if a.Err != nil && first == nil {
			first = a.Err
		}
	}
	return out, index, first
}

// proposeOf proposes a user's command unless it would be refused now: anybody may ask for what is refused, and as
// often as they like, so that is no reason to write to the log of all servers. The answer counts for this moment;
// Apply decides.
func (s *Server) proposeOf(ctx context.Context, by cluster.Identity, cmd cluster.Command) ([]any, uint64, error) {
	cmd, err := s.atLevel(cmd)
	if err != nil {
		return nil, 0, err
	}
	if err := cluster.Prepare(s.Snapshot(), cmd); err != nil {
		return nil, 0, err
	}
	_, refused := tryCommand(s, by, cmd)
	if refused == nil {
		return s.propose(ctx, by, cmd)
	}
	if err := confirmState(ctx, s); err != nil {
		return nil, 0, err
	}
	if index, err := tryCommand(s, by, cmd); err != nil {
		return nil, index, err
	}
	return s.propose(ctx, by, cmd)
}

// tryCommand applies a command to a copy of the state, as of an index, and says why it is refused.
func tryCommand(s *Server, by cluster.Identity, cmd cluster.Command) (uint64, error) {
	s.mu.Lock()
	trial := s.state.Trial()
	s.mu.Unlock()
	index := trial.Index
	if a := trial.Apply(cluster.Entry{Index: index, At: time.Now(), By: by, Cmd: cmd}); a.Err != nil {
		return index, a.Err
	}
	return index, cluster.Check(s.Snapshot(), cmd) // last: who may not do it at all learns that
}

type applied struct {
	cluster.Applied
	index uint64
}

// machine drives the state from the log.
type machine struct{ s *Server }

func (m machine) Apply(index uint64, lines [][]byte) []any {
	s := m.s
	out := make([]any, len(lines))
	var events []cluster.Event
	var news []eventlog.Record
	trusted, configured, federated := false, false, false // members, the configuration, the federation changed
	var at time.Time
	s.mu.Lock()
	for i, line := range lines {
		e, err := cluster.DecodeEntry(line)
		if err != nil {
			s.stop(unreadable(index, err)) // never skip: this server would differ from the others
		}
		e.Index, at = index, e.At
		a := s.state.Apply(e)
		switch {
		case a.Panic != "":
			s.tellPanic(index, a.Panic)
		case a.Err != nil:
			s.slog.Debug("command rejected", "index", index, "err", a.Err)
		}
		events = append(events, a.Events...)
		news = eventlog.Gather(news, index, e.At, a.Events)
		switch e.Cmd.(type) {
		case *cluster.RaiseLevel:
			s.level.Store(int64(s.state.Level()))
		case *cluster.FederationPut:
			federated = true
		case *cluster.MemberRevoke, *cluster.MemberJoin:
			trusted = true
		case *cluster.Configure, *cluster.PartitionSet:
			s.confs, configured = index, true
		}
		out[i] = applied{a, index}
	}
	s.snap = nil
	s.noteWork(index, events)
	s.events.Append(news) // under the lock: who knows the index finds what happened at it
	hooks, _ := s.state.HookCount()
	s.mu.Unlock()
	s.hist.Note(index, at)
	s.hist.Apply(index, events) // even none: history knows by the index whether it lacks something
	s.wakeups.wakeFor(events)
	s.stats.Note(events)
	if hooks > 0 {
		s.wakeups.wake(topicHooks)
	}
	if configured {
		s.wakeups.wakeAll()
	}
	if federated {
		s.wakeups.wake(topicFederation)
	}
	if trusted {
		s.wakeups.wake(topicTrust)
	}
	s.poke()
	return out
}

// unreadable words why an entry of the log cannot be applied.
func unreadable(index uint64, err error) error {
	if errors.Is(err, cluster.ErrNewer) {
		return fmt.Errorf("entry %d of the log: %w; upgrade this server too", index, err)
	}
	return fmt.Errorf("%w: entry %d: %w", consensus.ErrDamaged, index, err)
}

// stop ends this server, which cannot go on, and does not return.
func (s *Server) stop(err error) {
	s.slog.Error("this server cannot go on", "err", err)
	if s.cfg.Log.Fatal != nil {
		s.cfg.Log.Fatal(err)
	}
	panic(err)
}

// noteWork remembers for which nodes the work has changed. Called with mu held.
func (s *Server) noteWork(index uint64, events []cluster.Event) {
	for _, e := range events {
		if e.Node != nil {
			s.work[e.Node.Name] = index
		}
		if e.Job != nil {
			for _, name := range e.Job.AllNodes() {
				s.work[name] = index
			}
		}
	}
}

// Snapshot has history on disk before the state is: what the log forgets after a snapshot, history could never be
// told again.
func (m machine) Snapshot() (func(io.Writer) error, error) {
	snap := m.s.committed()
	return func(w io.Writer) error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := m.s.hist.Sync(ctx); err != nil {
			return fmt.Errorf("have history on disk before a snapshot: %w", err)
		}
		return snap.Encode(w)
	}, nil
}

func (m machine) Restore(r io.Reader) (uint64, error) {
	st, err := cluster.Decode(r)
	if err != nil {
		return 0, err
	}
	m.s.mu.Lock()
	m.s.state, m.s.snap, m.s.floor, m.s.confs = st, nil, st.Index, st.Index
	m.s.level.Store(int64(st.Level()))
	m.s.events.Restart(st.Index)
	m.s.mu.Unlock()
	m.s.wakeups.wakeAll()
	if err := m.s.hist.Restored(st.Index); err != nil {
		return 0, err
	}
	m.s.hist.Check()
	return st.Index, nil
}

// Hear takes what gossip says of the other members now.
func (s *Server) Hear(list []heartbeat.Rumour) { s.lookout.Rumours.Hear(list) }

// versions are those of the members' programs, as far as the gossip tells.
func (s *Server) versions() map[string]string {
	out := map[string]string{s.cfg.Name: s.cfg.Version}
	for name, r := range s.lookout.Rumours.All() {
		out[name] = r.Version
	}
	return out
}
