package server

import (
	"context"
	"slices"

	"dev.muster/api"
	"dev.muster/cluster"
)

// triggerRoutes are those of strigger.
func triggerRoutes(s *Server, m *api.Mux) {
	handle(s, m, api.ListTriggers, listTriggers(s))
	handle(s, m, api.SetTrigger, setTrigger(s))
	handle(s, m, api.ClearTriggers, clearTriggers(s))
}

// listTriggers answers with all triggers: who sees that there is one may not clear it.
func listTriggers(s *Server) func(context.Context, api.Caller, api.Empty) (api.TriggersResponse, error) {
	return func(context.Context, api.Caller, api.Empty) (out api.TriggersResponse, _ error) {
		for g := range s.Snapshot().Triggers() {
			if g.News != nil { // it belongs to a channel, and goes with it
				continue
			}
			out.Triggers = append(out.Triggers, api.TriggerRow{ID: g.ID, UID: g.UID, Kind: g.Kind(), Job: g.Job,
				TriggerRequest: api.TriggerRequest{Events: g.Events, Nodes: g.Nodes, Offset: g.Offset,
					Program: g.Program, Permanent: g.Permanent}})
		}
		return out, nil
	}
}

// setTrigger makes a trigger.
func setTrigger(s *Server) func(context.Context, api.Caller, api.TriggerRequest) (api.TriggerResponse, error) {
	return func(ctx context.Context, who api.Caller, q api.TriggerRequest) (out api.TriggerResponse, err error) {
		g := cluster.Trigger{Events: q.Events, Nodes: q.Nodes, Offset: q.Offset, Program: q.Program,
			Permanent: q.Permanent}
		if !who.Operator() {
			g.UID = who.UID
		}
		if g.Job, err = triggerJob(s.Snapshot(), q.Ref); err != nil {
			return out, err
		}
		values, _, err := s.proposeOf(ctx, s.actor(who, api.SetTrigger.Rights), &cluster.TriggerSet{Trigger: g})
		if err != nil {
			return out, err
		}
		out.ID = values[0].(uint32)
		s.slog.Info("trigger set", "id", out.ID, "uid", who.UID, "events", q.Events, "program", q.Program)
		return out, nil
	}
}

// triggerJob is the job that a trigger is about, 0 if it is about none. An array's own number stands for all of it.
func triggerJob(snap *cluster.Snapshot, ref *cluster.Ref) (cluster.JobID, error) {
	switch {
	case ref == nil:
		return 0, nil
	case ref.Tasks.Empty() && ref.Part == 0:
		return ref.Job, nil
	}
	found := snap.Find(*ref)
	if len(found) != 1 || found[0].Phase == cluster.Pending && !ref.Tasks.Empty() {
		return 0, cluster.Errorf(cluster.NotFound, cluster.ErrJobID,
			"a trigger is about one job, or a task of an array that has begun: %d is neither", ref.Job)
	}
	return found[0].ID, nil
}

// clearTriggers takes triggers away.
func clearTriggers(s *Server) func(context.Context, api.Caller, api.TriggerClearRequest) (api.WriteResponse, error) {
	return func(ctx context.Context, who api.Caller, q api.TriggerClearRequest) (out api.WriteResponse, err error) {
		c := &cluster.TriggerClear{ID: q.ID, UID: q.UID}
		if c.Job, err = triggerJob(s.Snapshot(), q.Ref); err != nil {
			return out, err
		}
		values, index, err := s.proposeOf(ctx, s.actor(who, api.ClearTriggers.Rights), c)
		if err != nil {
			return out, err
		}
		return written(values, index), nil
	}
}

// tellLead meets the triggers that wait for another server to lead: followed says that this one did not just start.
func tellLead(term context.Context, s *Server, followed bool) {
	events := []cluster.TriggerEvent{cluster.TriggerLeaderBegins}
	switch {
	case followed && s.led.Load() != nil:
		events = []cluster.TriggerEvent{cluster.TriggerLeaderLost, cluster.TriggerLeaderTakes}
	case followed:
		events = []cluster.TriggerEvent{cluster.TriggerLeaderLost, cluster.TriggerAnotherLeads}
	}
	meetTriggers(term, s, s.cfg.Name, events...)
}

// meetTriggers meets the triggers that wait for an event of a server, if there are any.
func meetTriggers(term context.Context, s *Server, server string, events ...cluster.TriggerEvent) {
	wanted := false
	for g := range s.Snapshot().Triggers() {
		of := func(e cluster.TriggerEvent) bool { return slices.Contains(g.Events, e) }
		wanted = wanted || slices.ContainsFunc(events, of)
	}
	if !wanted {
		return
	}
	_, _, err := s.propose(term, cluster.Identity{System: true}, &cluster.TriggerServer{Events: events, Server: server})
	if err != nil && term.Err() == nil {
		s.slog.Warn("triggers of servers were not met", "err", err)
	}
}
