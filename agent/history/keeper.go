// Package history keeps what a server knows of the past whole, copies it, answers from it and writes it into files:
// records of jobs and changes, samples of hardware and of the cluster. How it is stored is acct's. It decides nothing:
// what is told here has happened. Start with Keeper.
package history

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/samples"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
)

// History is where events go and where the past is asked for; acct.DB in the product. Apply only
// queues; Flush returns once everything applied so far can be asked for, Sync once a loss of power leaves it.
// Reached is the index of the newest entry of the log whose events can be asked for.
// Restored, Export, Adopt and GiveUp bring the past to a server whose state came in one piece.
type History interface {
	Apply(index uint64, events []cluster.Event)
	Flush(context.Context) error
	Sync(context.Context) error
	Reached() uint64
	Jobs(context.Context, acct.Query) iter.Seq2[acct.Record, error]
	Page(context.Context, acct.Query, acct.Cursor) (list []acct.Record, next *acct.Cursor, err error)
	Usage(context.Context, cluster.UsageQuery) ([]cluster.UsageRow, error)
	Utilization(context.Context, cluster.Span) ([]cluster.Utilization, error)
	Reservations(context.Context, cluster.Span) ([]cluster.ResvSpan, error)
	NodeSpans(context.Context, cluster.Span) ([]cluster.NodeSpan, error)
	SQL(context.Context, string) (acct.Table, error)
	Old(context.Context, cluster.Cutoff) iter.Seq2[cluster.Archived, error]
	Changes(context.Context, cluster.Span) ([]cluster.Transaction, error)
	Run(context.Context) error
	Restored(index uint64) error
	Whole() bool
	Export(ctx context.Context, at func() (uint64, error)) (file string, err error)
	Adopt(context.Context, io.Reader) error
	GiveUp(context.Context) error
}

// Keeper is the history of one server, and what of the server it asks.
type Keeper struct {
	History
	Name, Version string
	Log           *consensus.Log
	Slog          *slog.Logger
	Samples       *samples.Store
	// Snapshot is the state as well as the server knows it, Committed as the log has brought it about.
	Snapshot, Committed func() *cluster.Snapshot
	// After is the state once an index is applied.
	After func(context.Context, uint64) (*cluster.Snapshot, error)
	// Applied waits until an index is applied.
	Applied func(context.Context, uint64) error
	// Known is the index of the newest entry of the log that the server knows of.
	Known func() uint64
	// Elsewhere reports whether another server can be asked.
	Elsewhere func() bool
	Leads     func() bool
	// Owns refuses a caller that speaks for a node of somebody else.
	Owns    func(api.Caller, cluster.NodeName) error
	Counted func() api.JobCounts
	// Federal reports whether lists are of the whole federation where nothing else is asked for.
	Federal func(*cluster.Snapshot) bool
	Peer    func(addr string) *api.Client // nil where there can be no other server
	Current <-chan struct{}               // closed once the state has caught up with the log

	gap   chan struct{} // something may be missing
	notes notes
}

// New makes the keeper of a history; what it asks of the server is the caller's to fill in.
func New(h History) *Keeper {
	return &Keeper{History: h, Samples: samples.New(), gap: make(chan struct{}, 1)}
}

// Check has it looked whether something is missing, and fetched.
func (k *Keeper) Check() {
	select {
	case k.gap <- struct{}{}:
	default:
	}
}

// Pace of filling a gap in history.
const (
	gapRetry  = 500 * time.Millisecond
	gapGiveUp = time.Minute // how long a leader believes that somebody may have what is missing
)

// FillGaps fetches the past from another server whenever history lacks some.
func (k *Keeper) FillGaps(ctx context.Context) {
	for {
		select {
		case <-k.gap:
		case <-ctx.Done():
			return
		}
		for began := time.Now(); !k.Whole() && ctx.Err() == nil; {
			if err := k.fillGap(ctx, began); err != nil && ctx.Err() == nil {
				k.Slog.Warn("the past could not be fetched; trying again", "err", err)
			}
			if k.Whole() {
				k.Slog.Info("history is whole")
				break
			}
			select {
			case <-time.After(gapRetry):
			case <-ctx.Done():
			}
		}
	}
}

// fillGap tries each other server. With none, or when this server leads and none has had the past for
// long, what is missing is lost.
func (k *Keeper) fillGap(ctx context.Context, began time.Time) error {
	group, err := k.Log.Group()
	if err != nil {
		return err
	}
	alone, last := false, error(nil)
	for _, v := range group {
		if v.ID == k.Name {
			alone = len(group) == 1
			continue
		}
		if last = k.fetch(ctx, v.Addr); last == nil {
			return nil
		}
	}
	if alone || k.Leads() && time.Since(began) > gapGiveUp {
		return k.GiveUp(ctx)
	}
	return last
}

func (k *Keeper) fetch(ctx context.Context, addr string) error {
	if k.Peer == nil {
		return errors.New("there is no way to other servers")
	}
	conn, err := api.Tunnel(ctx, k.Peer(addr), api.CopyHistory, "muster-history", api.Empty{})
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var size uint64
	if err := binary.Read(conn, binary.BigEndian, &size); err != nil {
		return fmt.Errorf("read history from %s: %w", addr, err)
	}
	return k.Adopt(ctx, &exactly{conn, size})
}

// exactly reads so many bytes, and ends badly if they are not there.
type exactly struct {
	r    io.Reader
	left uint64
}

func (e *exactly) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(b[:min(uint64(len(b)), e.left)])
	e.left -= uint64(n)
	if err == io.EOF && e.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// CheckCopy refuses to copy what is not whole.
func (k *Keeper) CheckCopy(api.Caller, []byte) error {
	if k.Whole() {
		return nil
	}
	return cluster.Errorf(cluster.Unavailable, "", "the history of this server is not whole itself")
}

// CopyHistory sends a copy of the history to another server.
func (k *Keeper) CopyHistory(ctx context.Context, _ api.Caller, _ []byte, conn api.Conn) error {
	file, _, err := k.copyAt(ctx)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := binary.Write(conn, binary.BigEndian, uint64(info.Size())); err != nil {
		return err
	}
	_, err = io.Copy(conn, f)
	return err
}

// copyAt makes a copy of the history and the state of the same moment.
func (k *Keeper) copyAt(ctx context.Context) (file string, snap *cluster.Snapshot, err error) {
	file, err = k.Export(ctx, func() (uint64, error) {
		snap = k.Committed()
		return snap.Index, k.Log.Applied(ctx, snap.Index)
	})
	return file, snap, err
}

// overWith has the steps of a job that is over be over, too, whose end no node has told yet.
func overWith(j *cluster.Job, steps []*cluster.Step) []*cluster.Step {
	for k, st := range steps {
		if st.Imported != nil {
			continue // sacct knows when a step of a Slurm cluster shows the end of its job
		}
		if j.Phase == cluster.Ended && st.Ended.IsZero() {
			own := *st
			own.Ended, own.Outcome = j.Ended, j.Outcome
			if own.ID.Step < 0 { // the job's own: it ended as this did
				own.Exit = j.Exit
			}
			steps[k] = &own
		}
	}
	return steps
}

// records reads the latest records that a query asks for, or a page of all.
func (k *Keeper) records(ctx context.Context, q acct.Query, page *api.HistoryCursor) (
	list []acct.Record, next *api.HistoryCursor, err error) {
	if q.Latest > 0 {
		for r, err := range k.Jobs(ctx, q) {
			if err != nil {
				return nil, nil, err
			}
			list = append(list, r)
		}
		return list, nil, nil
	}
	var at acct.Cursor
	if page != nil && page.Server == k.Name { // the records of other servers have other numbers
		at = acct.Cursor{Seq: page.Seq, Steps: max(page.Steps, 0)}
	}
	list, more, err := k.Page(ctx, q, at)
	switch {
	case err != nil || more == nil:
		return list, nil, err
	case page == nil:
		return nil, nil, cluster.Errorf(cluster.Invalid, "", "these are more than %d jobs, or more than %d steps: "+
			"ask for them by pages, or for fewer by a shorter time", acct.PageJobs, acct.PageSteps)
	}
	return list, &api.HistoryCursor{Server: k.Name, Seq: more.Seq, Steps: more.Steps}, nil
}

// ListHistory lists jobs of the past.
func (k *Keeper) ListHistory(ctx context.Context, who api.Caller, q api.HistoryQuery) (api.HistoryResponse, error) {
	snap, err := k.After(ctx, q.After)
	if err != nil {
		return api.HistoryResponse{}, err
	}
	if !k.Whole() {
		return api.HistoryResponse{}, api.ErrElsewhere
	}
	lag, err := k.settle(ctx)
	if err != nil {
		return api.HistoryResponse{}, err
	}
	query := acct.Query{Refs: q.Refs, Users: q.Users, Accounts: q.Accounts, Partitions: q.Partitions,
		Names: q.Names, QOS: q.QOS,
		Nodes: q.Nodes, From: q.From, To: q.To, Duplicates: q.Duplicates, Steps: q.Steps,
		HistoryFilter: q.HistoryFilter, Latest: q.Latest, MaxSteps: api.LatestSteps}
	for _, st := range q.States {
		query.States = append(query.States, acct.State{Phase: st.Phase, Outcome: st.Outcome})
	}
	out := api.HistoryResponse{Now: time.Now(), Brief: q.Brief, Federal: k.Federal(k.Snapshot()), Lag: lag}
	records, next, err := k.records(ctx, query, q.Page)
	if err != nil {
		return api.HistoryResponse{}, err
	}
	out.Next = next
	out.First = q.Page != nil && q.Page.Server != k.Name
	sees := visibility.Of(snap, who)
	for _, r := range records {
		if !sees.Job(r.Job) {
			continue
		}
		if q.Steps && !r.Rest {
			r.Steps = append(r.Steps, r.OwnSteps()...)
		}
		if q.Steps {
			r.Steps = overWith(r.Job, r.Steps)
		}
		out.Records = append(out.Records, api.JobHistory{Job: r.Job, Steps: r.Steps, Rest: r.Rest})
	}
	return out, nil
}
