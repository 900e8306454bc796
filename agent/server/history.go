package server

import (
	"context"
	"iter"
	"slices"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
)

// History is where events go and where the past is asked for; acct.DB in the product. Apply only
// queues; Flush returns once everything applied so far is durable.
type History interface {
	Apply(index uint64, events []cluster.Event)
	Flush(context.Context) error
	Jobs(context.Context, acct.Query) iter.Seq2[acct.Record, error]
	Run(context.Context) error
}

// ownSteps are those of a job that no node has reported.
func ownSteps(r acct.Record) []*cluster.Step {
	return slices.DeleteFunc(r.Job.OwnSteps(), func(own *cluster.Step) bool {
		return slices.ContainsFunc(r.Steps, func(st *cluster.Step) bool { return st.ID == own.ID })
	})
}

func (s *Server) listHistory(ctx context.Context, _ api.Caller, q api.HistoryQuery) (api.HistoryResponse, error) {
	if _, err := s.waitAfter(ctx, q.After); err != nil {
		return api.HistoryResponse{}, err
	}
	if err := s.hist.Flush(ctx); err != nil {
		return api.HistoryResponse{}, err
	}
	query := acct.Query{Refs: q.Refs, Users: q.Users, Accounts: q.Accounts, Partitions: q.Partitions, Names: q.Names, QOS: q.QOS,
		Nodes: q.Nodes, From: q.From, To: q.To, Duplicates: q.Duplicates, Steps: q.Steps, HistoryFilter: q.HistoryFilter}
	for _, st := range q.States {
		query.States = append(query.States, acct.State{Phase: st.Phase, Outcome: st.Outcome})
	}
	out := api.HistoryResponse{Now: time.Now()}
	for r, err := range s.hist.Jobs(ctx, query) {
		if err != nil {
			return api.HistoryResponse{}, err
		}
		if q.Steps {
			r.Steps = append(r.Steps, ownSteps(r)...)
		}
		out.Records = append(out.Records, api.JobHistory{Job: r.Job, Steps: r.Steps})
	}
	return out, nil
}
