package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/federation"
	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
	fed "dev.muster/cluster/federation"
)

// A federation is clusters that share jobs. Their messages come by PeerFederationPath with the peer's
// token, to the leader.

// PeerFederationPath is where members of a federation speak to each other, on the port of the page.
const PeerFederationPath = "/muster/peer/federation"

// topicFederation is which federation this cluster is in.
const topicFederation = "federation"

// federationRoutes are those of federations.
func federationRoutes(s *Server, m *api.Mux) {
	handle(s, m, api.ShowFederation, showFederation(s))
	handle(s, m, api.PutFederation, putFederation(s))
	handle(s, m, api.CallFederation, callFederation(s))
}

// federate does for one term this cluster's part in its federation.
func federate(term context.Context, s *Server) {
	own := fedCluster{s}
	s.others.mu.Lock()
	s.others.offers = federation.NewOffers(own)
	s.others.mu.Unlock()
	federation.Run(term, own, s.slog)
}

// fedCluster is this cluster as package federation needs it.
type fedCluster struct{ s *Server }

func (f fedCluster) Snapshot() *cluster.Snapshot { return f.s.committed() }

func (f fedCluster) Propose(ctx context.Context, cmds ...cluster.Command) ([]any, error) {
	values, _, err := f.s.propose(ctx, cluster.Identity{System: true}, cmds...)
	return values, err
}

func (f fedCluster) Moved() <-chan struct{} { return f.s.wakeups.await(topicAny) }

func (f fedCluster) Changed() <-chan struct{} { return f.s.wakeups.await(topicFederation) }

// Complete fills in a job of a peer's user as if it were submitted here.
func (f fedCluster) Complete(ctx context.Context, p *cluster.PeerCluster, user string, q *api.SubmitRequest) (
	by cluster.Identity, err error,
) {
	who, err := PeerCaller(f.s, p, user)
	if err == nil {
		err = api.CheckTexts(q)
	}
	if err != nil {
		return by, err
	}
	if q.Spec.UID = who.UID; users.GroupName(q.Spec.GID) != q.Spec.Group {
		q.Spec.GID = who.GID
	}
	done, err := f.s.complete(ctx, who, q, -1)
	if err != nil {
		return by, err
	}
	snap := f.s.Snapshot()
	admitted, err := cluster.Admit(snap, done.by, done.spec)
	if err != nil {
		return by, err
	}
	if bad := f.s.feasible(snap, &admitted); bad != nil {
		return by, bad
	}
	q.Spec = done.spec
	return done.by, nil
}

func (f fedCluster) Change(ctx context.Context, r fed.Record) error {
	_, err := changeFederation(ctx, f.s, cluster.Identity{System: true}, r)
	return err
}

func (f fedCluster) Call(ctx context.Context, p *cluster.PeerCluster, q *api.FederationCall) (
	out api.FederationAnswer, err error,
) {
	err = askPeer(ctx, p, f.s.Snapshot().Config().ClusterName, PeerFederationPath, q, &out)
	return out, err
}

// showFederation tells of the federation.
func showFederation(s *Server) func(context.Context, api.Caller, api.AfterQuery) (api.FederationResponse, error) {
	return func(ctx context.Context, _ api.Caller, q api.AfterQuery) (out api.FederationResponse, _ error) {
		snap, err := s.waitAfter(ctx, q.After)
		if err != nil {
			return out, err
		}
		cfg := snap.Config()
		out.Index, out.Cluster = snap.Index, cfg.ClusterName
		out.Display = federal(snap)
		f := snap.Federation()
		if f == nil || f.Record.Gone {
			return out, nil
		}
		out.Record = &f.Record
		for _, l := range f.Links {
			if l.Away {
				out.Away = out.Away.With(l.ID)
			}
		}
		return out, nil
	}
}

// federal reports whether lists are of the whole federation where nothing else is asked for (fed_display).
func federal(snap *cluster.Snapshot) bool {
	if cluster.FederationSelf(snap) == nil {
		return false
	}
	words := strings.Split(strings.ToLower(snap.Config().Keys["federationparameters"]), ",")
	return slices.ContainsFunc(words, func(w string) bool { return strings.TrimSpace(w) == "fed_display" })
}

// putFederation makes a federation or changes it, at all its members: those that are new must say yes.
func putFederation(s *Server) func(context.Context, api.Caller, fed.Record) (api.WriteResponse, error) {
	return func(ctx context.Context, who api.Caller, r fed.Record) (out api.WriteResponse, err error) {
		by := s.actor(who, api.PutFederation.Rights)
		out.Index, err = changeFederation(ctx, s, by, r)
		return out, err
	}
}

// changeFederation has all members, and those that were, have a new record.
func changeFederation(ctx context.Context, s *Server, by cluster.Identity, r fed.Record) (uint64, error) {
	snap := s.Snapshot()
	old := fed.Record{}
	if f := snap.Federation(); f != nil {
		old = f.Record
	}
	r.By, r.Version = snap.Config().ClusterName, max(old.Version+1, uint64(time.Now().UnixMilli()))
	cmd := &cluster.FederationPut{Record: r}
	if err := wouldTake(s, by, cmd); err != nil {
		return 0, err
	}
	for _, m := range append(r.Members, old.Members...) {
		if strings.EqualFold(m.Name, r.By) {
			continue
		}
		p, ok := snap.PeerCluster(m.Name)
		if !ok {
			continue // it is a peer no more, and was a member
		}
		_, err := fedCluster{s}.Call(ctx, p, &api.FederationCall{From: r.By, Tell: &r})
		if err != nil && r.Member(m.ID) != nil && old.Member(m.ID) == nil {
			return 0, cluster.Errorf(cluster.Unavailable, "", "cluster %s does not join federation %s: %v",
				m.Name, r.Name, err)
		}
		if err != nil {
			s.slog.Warn("a member of the federation has not heard of a change; it will as soon as it answers",
				"cluster", m.Name, "err", err)
		}
	}
	_, index, err := s.proposeOf(ctx, by, cmd)
	return index, err
}

// wouldTake refuses what would be refused now.
func wouldTake(s *Server, by cluster.Identity, cmd cluster.Command) error {
	cmd, err := s.atLevel(cmd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	trial := s.state.Trial()
	s.mu.Unlock()
	if a := trial.Apply(cluster.Entry{Index: trial.Index, At: time.Now(), By: by, Cmd: cmd}); a.Err != nil {
		return a.Err
	}
	return nil
}

// callFederation answers another member.
func callFederation(s *Server) func(context.Context, api.Caller, api.FederationCall) (api.FederationAnswer, error) {
	return func(ctx context.Context, _ api.Caller, q api.FederationCall) (out api.FederationAnswer, err error) {
		snap := s.committed()
		peer, ok := snap.PeerCluster(q.From)
		if !ok {
			return out, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is no peer here", q.From)
		}
		self, f := cluster.FederationSelf(snap), snap.Federation()
		var from *fed.Member
		if f != nil {
			from = f.Record.Named(q.From)
		}
		if q.Tell != nil {
			return out, hearRecord(ctx, s, peer, from, q.Tell)
		}
		if f != nil && f.Record.Version > q.Version {
			out.Record = &f.Record
		}
		switch {
		case out.Record != nil && (self == nil || from == nil):
			return out, nil // it has left, or this cluster has
		case self == nil || from == nil:
			return out, cluster.Errorf(cluster.Conflict, "", "%s and %s are in no federation together here", q.From,
				snap.Config().ClusterName)
		}
		if err := hearReports(ctx, s, from.ID, q.Reports); err != nil {
			return out, err
		}
		if out.Parents, err = judgeParents(ctx, s, q.Parents); err != nil || !q.Pull {
			return out, err
		}
		s.others.mu.Lock()
		offers := s.others.offers
		s.others.mu.Unlock()
		if offers == nil {
			return out, NoLeader()
		}
		record := out.Record
		out = offers.Pull(ctx, from.ID, &q)
		out.Record = record
		return out, ctx.Err()
	}
}

// judgeParents tells which of the terms of another member's jobs are met, or never will be: by the records of jobs that
// are here, and by history of those that were forgotten.
func judgeParents(ctx context.Context, s *Server, terms []cluster.Depend) (out []cluster.ParentTerm, err error) {
	snap := s.committed()
	for _, d := range terms {
		row, settled, known := cluster.JudgeFor(snap, d, time.Now())
		if !known {
			past, err := forgottenJob(ctx, s, d.Job)
			if err != nil {
				return nil, err
			}
			row, settled = cluster.JudgePast(d, past, time.Now())
		}
		if settled {
			out = append(out, row)
		}
	}
	return out, nil
}

// forgottenJob are the records that history has of a job, or of an array's tasks: of each how it has ended at last.
func forgottenJob(ctx context.Context, s *Server, id cluster.JobID) ([]*cluster.Job, error) {
	if s.hist == nil || !s.hist.Whole() {
		return nil, api.ErrElsewhere
	}
	if err := s.hist.Flush(ctx); err != nil {
		return nil, err
	}
	last := map[cluster.JobID]*cluster.Job{}
	query := acct.Query{Refs: []cluster.Ref{{Job: id}}, Duplicates: true}
	for r, err := range s.hist.Jobs(ctx, query) {
		if err != nil {
			return nil, err
		}
		last[r.Job.ID] = r.Job
	}
	return slices.Collect(maps.Values(last)), nil
}

// hearRecord takes what a peer says of a federation: one whose root is root here, or who is a member of it.
func hearRecord(ctx context.Context, s *Server, peer *cluster.PeerCluster, from *fed.Member, r *fed.Record) error {
	if f := s.committed().Federation(); !peer.Root && (from == nil || f == nil || f.Record.Name != r.Name) {
		own := s.Snapshot().Config().ClusterName
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"%s has no right to make %s a member of a federation: "+
				"there, muster peer invite %s --root (or peer add --root) gives it", peer.Name, own, peer.Name)
	}
	if err := r.CheckVersion(time.Now()); err != nil {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "cluster %s: %v", peer.Name, err)
	}
	_, _, err := s.propose(ctx, cluster.Identity{System: true}, &cluster.FederationPut{Record: *r})
	return err
}

// hearReports takes note of what is new in reports.
func hearReports(ctx context.Context, s *Server, from fed.ID, all []cluster.FederationReport) error {
	snap := s.committed()
	cmd := &cluster.FederationReports{From: from}
	for i := range all {
		if all[i].Check() == nil && cluster.Hears(snap, from, &all[i], time.Now()) {
			cmd.Rows = append(cmd.Rows, all[i])
		}
	}
	if len(cmd.Rows) == 0 {
		return nil
	}
	_, _, err := s.propose(ctx, cluster.Identity{System: true}, cmd)
	return err
}

// sharedJobRoutes are those of what is done to jobs: to one that another cluster of the federation has it is done
// there.
func sharedJobRoutes(s *Server, m *api.Mux) {
	signals := func(c *cluster.Cancel) (cluster.Ref, bool) { return c.Ref, c.Sig != 0 || c.Step != nil }
	routed(m, s, api.CancelJob, signals, plainWrite[cluster.Cancel](s, api.CancelJob))
	routed(m, s, api.HoldJob, func(c *cluster.HoldJobs) (cluster.Ref, bool) { return c.Ref, true },
		plainWrite[cluster.HoldJobs](s, api.HoldJob))
	routed(m, s, api.RequeueJob, func(c *cluster.Requeue) (cluster.Ref, bool) { return c.Ref, true },
		plainWrite[cluster.Requeue](s, api.RequeueJob))
	routed(m, s, api.SuspendJob, func(c *cluster.Suspend) (cluster.Ref, bool) { return c.Ref, true },
		suspendJob(s))
	routed(m, s, api.UpdateJob, func(c *cluster.UpdateJob) (cluster.Ref, bool) { return c.Ref, true }, updateJob(s))
}

// routed registers an endpoint of a command about a job. of tells which, and whether it can only be done to what runs.
func routed[C any](m *api.Mux, s *Server, e api.Endpoint[C, api.WriteResponse], of func(*C) (cluster.Ref, bool),
	here func(context.Context, api.Caller, C) (api.WriteResponse, error),
) {
	handle(s, m, e, func(ctx context.Context, who api.Caller, c C) (api.WriteResponse, error) {
		ref, runs := of(&c)
		name := cluster.PlaceOf(s.Snapshot(), ref.Job, runs)
		if name == "" {
			return here(ctx, who, c)
		}
		s.others.mu.Lock()
		far := s.others.far
		s.others.mu.Unlock()
		if far == nil {
			return api.WriteResponse{}, cluster.Errorf(cluster.Unavailable, "", "job %d is at cluster %s, which this "+
				"server cannot ask", ref.Job, name)
		}
		there, err := far(who, name)
		if err != nil {
			return api.WriteResponse{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, 2*PeerTime)
		defer cancel()
		out, err := api.Call(ctx, there, e, c)
		out.Index = 0 // of another log
		if e := (*api.Error)(nil); err != nil && !errors.As(err, &e) {
			err = cluster.Errorf(cluster.Unavailable, cluster.ErrAway, "job %d is at cluster %s: %v", ref.Job,
				name, err)
		}
		return out, err
	})
}

// ReachPeers says how servers of peers are asked in the name of a user.
func ReachPeers(s *Server, far func(who api.Caller, name string) (*api.Client, error)) {
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	s.others.far = far
}
