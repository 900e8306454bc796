package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
)

// History is where events go and where the past is asked for; acct.DB in the product. Apply only
// queues; Flush returns once everything applied so far can be asked for, Sync once a loss of power leaves it.
// Restored, Export, Adopt and GiveUp bring the past to a server whose state came in one piece.
type History interface {
	Apply(index uint64, events []cluster.Event)
	Flush(context.Context) error
	Sync(context.Context) error
	Jobs(context.Context, acct.Query) iter.Seq2[acct.Record, error]
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

// Pace of filling a gap in history.
const (
	gapRetry  = 500 * time.Millisecond
	gapGiveUp = time.Minute // how long a leader believes that somebody may have what is missing
)

// ErrElsewhere says that the leader should be asked instead.
var ErrElsewhere = errors.New("it has not come to this server yet: the leader knows")

// fillGaps fetches the past from another server whenever history lacks some.
func (s *Server) fillGaps(ctx context.Context) {
	for {
		select {
		case <-s.gap:
		case <-ctx.Done():
			return
		}
		for began := time.Now(); !s.hist.Whole() && ctx.Err() == nil; {
			if err := s.fillGap(ctx, began); err != nil && ctx.Err() == nil {
				s.slog.Warn("the past could not be fetched; trying again", "err", err)
			}
			if s.hist.Whole() {
				s.slog.Info("history is whole")
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
func (s *Server) fillGap(ctx context.Context, began time.Time) error {
	group, err := s.log.Group()
	if err != nil {
		return err
	}
	alone, last := false, error(nil)
	for _, v := range group {
		if v.ID == s.cfg.Name {
			alone = len(group) == 1
			continue
		}
		if last = s.fetchHistory(ctx, v.Addr); last == nil {
			return nil
		}
	}
	if alone || s.Leads() && time.Since(began) > gapGiveUp {
		return s.hist.GiveUp(ctx)
	}
	return last
}

func (s *Server) fetchHistory(ctx context.Context, addr string) error {
	if s.cfg.Peer == nil {
		return errors.New("there is no way to other servers")
	}
	conn, err := api.Tunnel(ctx, s.cfg.Peer(addr), api.CopyHistory, "muster-history", api.Empty{})
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
	return s.hist.Adopt(ctx, &exactly{conn, size})
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

// copyHistory sends a copy of the history to another server.
func (s *Server) copyHistory(ctx context.Context, _ api.Caller, _ []byte, conn api.Conn) error {
	file, _, err := s.copyAt(ctx)
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
func (s *Server) copyAt(ctx context.Context) (file string, snap *cluster.Snapshot, err error) {
	file, err = s.hist.Export(ctx, func() (uint64, error) {
		snap = s.committed()
		return snap.Index, s.log.Applied(ctx, snap.Index)
	})
	return file, snap, err
}

// ownSteps are those of a job that no node has reported.
func ownSteps(r acct.Record) []*cluster.Step {
	return slices.DeleteFunc(r.Job.OwnSteps(), func(own *cluster.Step) bool {
		return slices.ContainsFunc(r.Steps, func(st *cluster.Step) bool { return st.ID == own.ID })
	})
}

// overWith has the steps of a job that is over be over, too, whose end no node has told yet.
func overWith(j *cluster.Job, steps []*cluster.Step) []*cluster.Step {
	for k, st := range steps {
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

func (s *Server) listHistory(ctx context.Context, who api.Caller, q api.HistoryQuery) (api.HistoryResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.HistoryResponse{}, err
	}
	if !s.hist.Whole() {
		return api.HistoryResponse{}, ErrElsewhere
	}
	if err := s.hist.Flush(ctx); err != nil {
		return api.HistoryResponse{}, err
	}
	query := acct.Query{Refs: q.Refs, Users: q.Users, Accounts: q.Accounts, Partitions: q.Partitions, Names: q.Names, QOS: q.QOS,
		Nodes: q.Nodes, From: q.From, To: q.To, Duplicates: q.Duplicates, Steps: q.Steps, HistoryFilter: q.HistoryFilter}
	for _, st := range q.States {
		query.States = append(query.States, acct.State{Phase: st.Phase, Outcome: st.Outcome})
	}
	out := api.HistoryResponse{Now: time.Now(), Brief: q.Brief}
	sees := visibilityOf(snap, who)
	for r, err := range s.hist.Jobs(ctx, query) {
		if err != nil {
			return api.HistoryResponse{}, err
		}
		if !sees.job(r.Job) {
			continue
		}
		if q.Steps {
			r.Steps = overWith(r.Job, append(r.Steps, ownSteps(r)...))
		}
		out.Records = append(out.Records, api.JobHistory{Job: r.Job, Steps: r.Steps})
	}
	return out, nil
}
