package slurmtest

import (
	"context"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// Books are the accounts of the reference.
func Books() api.BooksResponse {
	out := api.BooksResponse{Cluster: "oracle", TRES: []string{"gres/gpu", "gres/gpu:h100"}}
	for i, a := range []struct {
		parent        cluster.AssocID
		account, user string
	}{
		{0, "root", ""}, {1, "root", "root"}, {1, "team-a", ""}, {1, "team-b", ""}, {3, "team-a", "alice"},
		{4, "team-b", "bob"}, {4, "team-b", "carol"}, {3, "team-a", "carol"},
	} {
		out.Assocs = append(out.Assocs, &cluster.Association{
			ID: cluster.AssocID(i + 1), Parent: a.parent, Account: a.account, User: a.user,
		})
		if a.user == "" {
			out.Accounts = append(out.Accounts, &cluster.Account{Name: a.account})
		}
	}
	return out
}

// WithBooks adds what accounting asks for.
func WithBooks(m *api.Mux, f *Server) {
	books := Books()
	books.QOS = []*cluster.QOS{
		{ID: 1, Name: "normal"},
		{ID: 2, Name: "high", Priority: 9, Limits: cluster.Limits{{Name: "MaxTRESPerUser", TRES: "gres/gpu", Max: 4}}},
	}
	books.Users = []*cluster.User{
		{Name: "alice", DefaultAccount: "team-a", WCKeys: []cluster.WCKey{{ID: 1, Name: "w"}}},
		{Name: "bob", DefaultAccount: "team-b", AdminLevel: "Operator"},
	}
	api.Handle(m, api.ListBooks,
		func(context.Context, api.Caller, api.AfterQuery) (api.BooksResponse, error) { return books, nil })
	api.Handle(m, api.ListHistory, func(context.Context, api.Caller, api.HistoryQuery) (api.HistoryResponse, error) {
		out := api.HistoryResponse{Now: f.Now}
		for _, j := range f.Jobs {
			out.Records = append(out.Records, api.JobHistory{Job: j})
		}
		return out, nil
	})
	api.Handle(m, api.ShowUsage, func(context.Context, api.Caller, api.UsageRequest) (api.UsageResponse, error) {
		return api.UsageResponse{Now: f.Now, Cluster: "oracle"}, nil
	})
	api.Handle(m, api.ListReservations, func(context.Context, api.Caller, api.ReservationQuery) (api.ReservationsResponse, error) {
		return api.ReservationsResponse{
			Now: f.Now,
			Reservations: []cluster.Reservation{
				{Name: "r", Start: f.Now, End: f.Now.Add(time.Hour), Nodes: Nodes(1, 2)},
			},
			Cores: []int{32}, CPUs: []int{32},
		}, nil
	})
	api.Handle(m, api.ListPriorities, func(context.Context, api.Caller, api.AfterQuery) (out api.PrioritiesResponse, _ error) {
		for _, j := range f.Jobs {
			out.Jobs = append(out.Jobs, api.JobPriority{Job: j, Partition: "train"})
		}
		return out, nil
	})
	Logged(m, f, api.ChangeAccounts)
	Logged(m, f, api.CancelJob)
	Logged(m, f, api.SubmitJob)
}

// WithCounts adds what the leader has counted, and shares.
func WithCounts(m *api.Mux, f *Server) {
	books := Books()
	books.Priority.Multifactor = true
	books.QOS = []*cluster.QOS{{ID: 1, Name: "normal", UsageFactor: 1, Flags: []string{"DenyOnLimit"},
		Preempt: []string{"low"},
		Limits:  cluster.Limits{{Name: "MaxTRESPerUser", TRES: "gres/gpu", Max: 4}, {Name: "MaxWall", Max: 3600}}}}
	books.Users = []*cluster.User{{Name: "alice", DefaultAccount: "team-a", WCKeys: []cluster.WCKey{{ID: 1,
		Name: "w"}}}, {Name: "bob", AdminLevel: "Operator"}}
	books.Accounts[1].Coordinators = []string{"bob"}
	books.Assocs[4].Limits = cluster.Limits{{Name: "GrpTRES", TRES: "cpu", Max: 8}, {Name: "MaxJobs", Max: 3}}
	api.Handle(m, api.ListBooks, func(context.Context, api.Caller, api.AfterQuery) (api.BooksResponse,
		error) {
		return books, nil
	})
	api.Handle(m, api.ShowStats, func(context.Context, api.Caller, api.StatsRequest) (api.StatsResponse, error) {
		return api.StatsResponse{Now: f.Now, Since: f.Now.Add(-time.Hour), Calls: []api.CallCount{{Name: "jobs",
			N: 2, Time: time.Second}},
			Users: []api.CallCount{{UID: 0, N: 2}}}, nil
	})
	api.Handle(m, api.ListHistory, func(context.Context, api.Caller, api.HistoryQuery) (api.HistoryResponse, error) {
		out := api.HistoryResponse{Now: f.Now}
		for _, j := range f.Jobs {
			h := api.JobHistory{Job: j}
			if j.Alloc != nil {
				h.Steps = []*cluster.Step{{ID: cluster.StepID{Job: j.ID}, Name: "s", Tasks: 1,
					Shares: j.Alloc.Shares, Started: f.Now, Ended: j.Ended}}
			}
			out.Records = append(out.Records, h)
		}
		return out, nil
	})
}
