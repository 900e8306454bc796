package server

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
)

// Limits of tokens.
const (
	tokenLife    = 24 * time.Hour
	maxTokenLife = 365 * 24 * time.Hour
	maxTokenUses = 100_000
)

var memberName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

// Leads reports whether this server is sure that it leads, and its state is current.
func (s *Server) Leads() bool {
	s.termMu.Lock()
	defer s.termMu.Unlock()
	return s.isSure(time.Now())
}

// LeadMoved is closed when another server leads than now, or none.
func (s *Server) LeadMoved() <-chan struct{} { return s.log.LeadMoved() }

// Applied returns once the entry with this index is applied here.
func (s *Server) Applied(ctx context.Context, index uint64) error { return s.log.Applied(ctx, index) }

// LeaderAddr is where another server listens that leads, empty if none is known.
func (s *Server) LeaderAddr() string {
	addr, self := s.log.Leader()
	if self || addr == s.cfg.Log.Addr {
		return ""
	}
	return addr
}

// InGroup reports whether the group knows this server under an address, and its state has arrived.
func (s *Server) InGroup(addr string) bool {
	v, err := s.inGroup(s.cfg.Name)
	return err == nil && v.Addr == addr && s.committed().CA() != nil
}

// Servers lists the group.
func (s *Server) Servers() []api.Server { return s.servers() }

// Member finds a member that was not revoked.
func (s *Server) Member(name string) (*cluster.Member, bool) {
	m, ok := s.Snapshot().Member(name)
	return m, ok && m.Revoked.IsZero()
}

// Admit decides of a machine with a valid certificate whether it still is a member. A server whose
// state has not arrived yet lets other servers in: they bring it.
func (s *Server) Admit(p trust.Peer, proto string) error {
	snap := s.Snapshot()
	m, ok := snap.Member(p.Name)
	if !ok && s.readAhead() == nil { // a server that starts knows its members from the log
		snap = s.Snapshot()
		m, ok = snap.Member(p.Name)
	}
	switch {
	case proto == trust.ProtoRaft && p.Role != cluster.RoleServer:
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is a %s: the log is for servers", p.Name, p.Role)
	case snap.CA() == nil && p.Role == cluster.RoleServer:
		return nil
	case !ok || m.Key != p.Key || m.Role != p.Role:
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s %s is not a member (any more)", p.Role, p.Name)
	case !m.Revoked.IsZero():
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s was revoked at %s", p.Name,
			m.Revoked.Format(time.RFC3339))
	}
	return nil
}

// HasJobOn reports whether a user has a job now on a node of the member.
func (s *Server) HasJobOn(ctx context.Context, member string, uid uint32) bool {
	if hasJobOn(s.Snapshot(), member, uid) {
		return true
	}
	s.CatchUp(ctx) // it may have begun a moment ago
	return hasJobOn(s.Snapshot(), member, uid)
}

func hasJobOn(snap *cluster.Snapshot, member string, uid uint32) bool {
	for range jobsOn(snap, member, uid) {
		return true
	}
	return false
}

// jobsOn yields the jobs that a user has now on nodes of a member.
func jobsOn(snap *cluster.Snapshot, member string, uid uint32) iter.Seq[*cluster.Job] {
	return func(yield func(*cluster.Job) bool) {
		on := func(n *cluster.Node) bool {
			for _, id := range snap.Load(n.Name).Jobs {
				j, ok := snap.Job(id)
				own := ok && j.Spec.UID == uid && !snap.Hearsay(j) // else members could say for whom they may speak
				if own && !yield(j) {
					return false
				}
			}
			return true
		}
		if n, ok := snap.Node(cluster.NodeName(member)); ok && n.Owner == member && !on(n) {
			return
		}
		if m, ok := snap.Member(member); !ok || !m.Hollow {
			return
		}
		for n := range snap.Nodes() {
			if n.Owner == member && string(n.Name) != member && !on(n) {
				return
			}
		}
	}
}

// AsJobsSay is a caller for whom a compute node vouches, with the name and the groups that the user's jobs there have,
// not with those that the node says: by the groups of others it would have jobs read and write their files on all
// nodes. false: the user has no job there now.
func (s *Server) AsJobsSay(ctx context.Context, who api.Caller) (api.Caller, bool) {
	if !s.HasJobOn(ctx, who.Member, who.UID) {
		return who, false
	}
	first, groups := (*cluster.JobSpec)(nil), []uint32{}
	for j := range jobsOn(s.Snapshot(), who.Member, who.UID) {
		if first == nil {
			first = j.Spec
		}
		groups = append(append(groups, j.Spec.GID), j.Spec.Groups...)
	}
	if first == nil { // it has just ended
		return who, false
	}
	slices.Sort(groups)
	who.User, who.Groups = first.User, slices.Compact(groups)
	if !slices.Contains(who.Groups, who.GID) {
		who.GID = first.GID
	}
	return who, true
}

func (s *Server) join(ctx context.Context, who api.Caller, q api.JoinRequest) (api.JoinResponse, error) {
	out, err := s.admitJoiner(ctx, who, q)
	if err != nil {
		s.credentials.refused.Say(s.slog.Warn, "join refused",
			"name", q.Name, "role", q.Role, "token", q.Token, "err", err)
	} else {
		s.slog.Info("joined", "name", q.Name, "role", q.Role, "addr", q.Addr)
	}
	return out, err
}

func (s *Server) admitJoiner(ctx context.Context, who api.Caller, q api.JoinRequest) (api.JoinResponse, error) {
	var none api.JoinResponse
	snap := s.Snapshot()
	ca := snap.CA()
	if ca == nil {
		return none, cluster.Errorf(cluster.Unavailable, cluster.ErrNoLeader,
			"this server does not know the cluster's authority yet")
	}
	if !memberName.MatchString(q.Name) {
		return none, cluster.Errorf(cluster.Invalid, "",
			"%q cannot be a member's name: want letters, digits, dots and dashes", q.Name)
	}
	tok, ok := snap.Token(q.Token)
	if !ok {
		s.CatchUp(ctx)
		tok, ok = s.Snapshot().Token(q.Token)
	}
	if !ok || !trust.CheckProof(tok, who.Exported, trust.JoinText(q.Token, q.Role, q.Name, q.Addr, q.CSR), q.Proof) {
		return none, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"the token is unknown, revoked, expired or not whole: make one with muster token create")
	}
	if owner := s.otherOwner(q.Name); owner != "" && !tok.Replace {
		return none, cluster.Errorf(cluster.Conflict, "",
			"node %s is one of member %s: choose another name with --node, or use a token made with --replace", q.Name, owner)
	}
	if q.Role == cluster.RoleServer {
		if err := s.admitLevel(q.Name, q.Level); err != nil {
			return none, err
		}
	}
	cert, public, err := trust.Issue(ca, q.CSR, q.Role, q.Name, time.Now())
	if err != nil {
		return none, err
	}
	cmd := cluster.MemberJoin{Token: q.Token, Member: cluster.Member{Name: q.Name, Role: q.Role, Addr: q.Addr,
		Key: trust.KeyHash(public), Public: public}}
	cmd.From = who.Origin
	if err := s.asServer(ctx, &cmd); err != nil {
		return none, err
	}
	return api.JoinResponse{Cert: cert, CA: []byte(ca.Cert), Servers: s.servers()}, nil
}

// otherOwner is the member that a node belongs to which has another name, "" if there is none: a hollow node's.
func (s *Server) otherOwner(node string) string {
	n, ok := s.Snapshot().Node(cluster.NodeName(node))
	if !ok || n.Owner == "" || n.Owner == node {
		return ""
	}
	if _, lives := s.Member(n.Owner); !lives {
		return ""
	}
	return n.Owner
}

// asServer proposes a member's admission here, or has the leader do it.
func (s *Server) asServer(ctx context.Context, cmd *cluster.MemberJoin) error {
	if s.Leads() || s.cfg.Peer == nil {
		_, _, err := s.propose(ctx, cluster.Identity{System: true, Origin: cmp.Or(cmd.From, "unknown")}, cmd)
		return err
	}
	addr := s.LeaderAddr()
	if addr == "" {
		return NoLeader()
	}
	r, err := api.Call(ctx, s.cfg.Peer(addr), api.AdmitMember, *cmd)
	if err != nil {
		return err
	}
	return s.log.Applied(ctx, r.Index) // so that the new member is known here when it calls
}

// admitMember answers another server, at which a machine has joined.
func (s *Server) admitMember(ctx context.Context, who api.Caller, cmd cluster.MemberJoin) (api.WriteResponse, error) {
	by := cluster.Identity{System: true, Origin: cmp.Or(cmd.From, "host:"+who.Member)}
	_, index, err := s.proposeOf(ctx, by, &cmd)
	return api.WriteResponse{Index: index}, err
}

func (s *Server) renew(_ context.Context, _ api.Caller, q api.RenewRequest) (api.RenewResponse, error) {
	out, err := s.reissue(q)
	if err != nil {
		s.credentials.refused.Say(s.slog.Warn, "renewal refused", "name", q.Name, "err", err)
	}
	return out, err
}

func (s *Server) reissue(q api.RenewRequest) (api.RenewResponse, error) {
	snap := s.Snapshot()
	m, ok := snap.Member(q.Name)
	if !ok || !m.Revoked.IsZero() || snap.CA() == nil {
		return api.RenewResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is not a member", q.Name)
	}
	cert, public, err := trust.Issue(snap.CA(), q.CSR, m.Role, m.Name, time.Now())
	if err != nil {
		return api.RenewResponse{}, err
	}
	if trust.KeyHash(public) != m.Key {
		return api.RenewResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"the request is not by %s: it has another key", q.Name)
	}
	return api.RenewResponse{Cert: cert}, nil
}

// mayVouch tells a node whether another one may vouch for a user.
func (s *Server) mayVouch(ctx context.Context, _ api.Caller, q api.VouchQuery) (api.VouchAnswer, error) {
	return api.VouchAnswer{OK: s.HasJobOn(ctx, q.Member, q.UID)}, nil
}

// revoke shuts a member out. A server leaves the group first.
func (s *Server) revoke(ctx context.Context, who api.Caller, q cluster.MemberRevoke) (api.WriteResponse, error) {
	if err := operator(who, "revoke members"); err != nil {
		return api.WriteResponse{}, err
	}
	if _, err := s.inGroup(q.Name); err == nil {
		if _, err := s.removeServer(ctx, who, api.ServerRequest{Name: q.Name}); err != nil {
			return api.WriteResponse{}, err
		}
	}
	_, index, err := s.propose(ctx, who.Identity, &q)
	return api.WriteResponse{Index: index}, err
}

// leaveMember lets the member that calls go: nobody else can be meant. Its node goes with it, unless a
// configuration speaks of that or jobs have it.
func (s *Server) leaveMember(ctx context.Context, who api.Caller, _ api.Empty) (api.WriteResponse, error) {
	if who.Member == "" || who.Role == cluster.RoleServer {
		return api.WriteResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"compute nodes and login hosts leave by themselves; servers by muster server leave")
	}
	by := cluster.Identity{System: true, Login: "member " + who.Member, Origin: "host:" + who.Member}
	_, index, err := s.propose(ctx, by, &cluster.MemberRevoke{Name: who.Member})
	if err != nil {
		return api.WriteResponse{}, err
	}
	s.slog.Info("member has left", "name", who.Member)
	snap := s.Snapshot()
	declared := func(name cluster.NodeName) bool {
		return slices.ContainsFunc(snap.Config().Declared, func(n cluster.Node) bool { return n.Name == name })
	}
	var gone cluster.NodeDelete
	for n := range snap.Nodes() {
		if n.Owner == who.Member && !declared(n.Name) && len(snap.Load(n.Name).Jobs) == 0 {
			gone.Nodes = append(gone.Nodes, n.Name)
		}
	}
	if gone.Nodes != nil {
		_, index, err = s.propose(ctx, by, &gone)
	}
	return api.WriteResponse{Index: index}, err
}

// Revoked lists the keys of members that were shut out and whose certificates may still be good.
func (s *Server) Revoked() (keys []string) {
	for m := range s.Snapshot().MemberList() {
		if !m.Revoked.IsZero() && time.Since(m.Revoked) < trust.LeafLife+time.Hour {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// TrustMoved is closed when members may have been revoked.
func (s *Server) TrustMoved() <-chan struct{} { return s.wakeups.await(topicTrust) }

func operator(who api.Caller, what string) error {
	if who.Operator() {
		return nil
	}
	return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "only an operator may %s", what)
}

func (s *Server) createToken(ctx context.Context, who api.Caller, q api.TokenRequest) (api.TokenResponse, error) {
	var none api.TokenResponse
	if err := operator(who, "make join tokens"); err != nil {
		return none, err
	}
	ca := s.Snapshot().CA()
	if ca == nil {
		return none, cluster.Errorf(cluster.Conflict, "", "this server has no network: start it with --bind")
	}
	if q.Uses == 0 {
		q.Uses = 1
	}
	if q.Life == 0 {
		q.Life = tokenLife
	}
	if q.Uses < 0 || q.Uses > maxTokenUses || q.Life < 0 || q.Life > maxTokenLife {
		return none, cluster.Errorf(cluster.Invalid, "", "a token has 1 to %d uses and lives up to %v",
			maxTokenUses, maxTokenLife)
	}
	text, id, verifier, err := trust.NewToken(ca)
	if err != nil {
		return none, err
	}
	k := cluster.Token{
		ID: id, Role: q.Role, Verifier: verifier, Expires: time.Now().Add(q.Life), Uses: q.Uses,
		Hollow: q.Hollow, Replace: q.Replace,
	}
	if _, _, err := s.propose(ctx, who.Identity, &cluster.TokenPut{Token: k}); err != nil {
		return none, err
	}
	return api.TokenResponse{Text: text, Token: k, Servers: s.servers()}, nil
}

func (s *Server) listTokens(_ context.Context, who api.Caller, _ api.Empty) (api.TokensResponse, error) {
	if err := operator(who, "see join tokens"); err != nil {
		return api.TokensResponse{}, err
	}
	var out api.TokensResponse
	for k := range s.Snapshot().Tokens() {
		shown := *k
		shown.Verifier = ""
		out.Tokens = append(out.Tokens, shown)
	}
	return out, nil
}

func (s *Server) listMembers(context.Context, api.Caller, api.Empty) (api.MembersResponse, error) {
	out := api.MembersResponse{
		Servers: s.servers(), Level: s.Snapshot().Level(), Versions: s.versions(), Heard: s.heard(),
		Now: time.Now(),
	}
	s.levels(out.Servers)
	for m := range s.Snapshot().MemberList() {
		shown := *m
		shown.Public = nil
		out.Members = append(out.Members, shown)
	}
	return out, nil
}

// addServer takes a server into the group, without a vote until it has caught up (tend).
func (s *Server) addServer(_ context.Context, who api.Caller, q api.ServerRequest) (api.Empty, error) {
	if !who.System || !strings.Contains(q.Addr, ":") {
		return api.Empty{}, cluster.Errorf(cluster.Invalid, "", "server %q at %q cannot be added", q.Name, q.Addr)
	}
	if who.Member != "" && who.Member != q.Name {
		return api.Empty{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"server %s may not add server %s", who.Member, q.Name)
	}
	if err := s.admitLevel(q.Name, q.Level); err != nil {
		return api.Empty{}, err
	}
	group, err := s.log.Group()
	if err != nil {
		return api.Empty{}, err
	}
	voter := false
	for _, v := range group {
		if v.ID == q.Name && v.Addr == q.Addr {
			return api.Empty{}, nil
		}
		voter = voter || v.ID == q.Name && v.Voter
	}
	s.slog.Info("server added", "name", q.Name, "addr", q.Addr)
	return api.Empty{}, asLeader(s.log.Add(q.Name, q.Addr, voter))
}

func (s *Server) removeServer(ctx context.Context, who api.Caller, q api.ServerRequest) (api.Empty, error) {
	if err := operator(who, "take servers out of the group"); err != nil {
		return api.Empty{}, err
	}
	v, err := s.inGroup(q.Name)
	if err != nil {
		return api.Empty{}, err
	}
	if v.Leader {
		if err := s.transfer(consensus.Voter{}); err != nil {
			return api.Empty{}, cluster.Errorf(cluster.Conflict, "",
				"server %s leads and no other could take over: %v", q.Name, err)
		}
		return api.Empty{}, cluster.Errorf(cluster.Unavailable, cluster.ErrNoLeader, "the lead moves; try again")
	}
	s.slog.Info("server removed", "name", q.Name)
	if err := s.log.Remove(q.Name); err != nil {
		return api.Empty{}, asLeader(err)
	}
	note(ctx, s, who.Identity, cluster.AuditNote{Action: "server remove", Object: "server " + q.Name})
	return api.Empty{}, nil
}

func (s *Server) transferLead(ctx context.Context, who api.Caller, q api.ServerRequest) (api.Empty, error) {
	if err := operator(who, "move the lead"); err != nil {
		return api.Empty{}, err
	}
	change := cluster.AuditNote{Action: "server transfer", Object: "server " + cmp.Or(q.Name, "(any)")}
	if q.Name == "" {
		note(ctx, s, who.Identity, change) // before: another server leads then
		return api.Empty{}, s.transfer(consensus.Voter{})
	}
	v, err := s.inGroup(q.Name)
	if err != nil || v.Leader {
		return api.Empty{}, err
	}
	if !v.Voter {
		return api.Empty{}, cluster.Errorf(cluster.Conflict, "",
			"server %s has no vote yet: it is still catching up", q.Name)
	}
	note(ctx, s, who.Identity, change)
	return api.Empty{}, s.transfer(v)
}

// transferTries is how often the lead is offered: a server that is busy may miss it.
const transferTries = 5

// transfer gives the lead to a server, or to the most current one.
func (s *Server) transfer(to consensus.Voter) (err error) {
	for range transferTries {
		if err = s.log.Transfer(to.ID, to.Addr); err == nil || errors.Is(err, consensus.ErrNotLeader) {
			return asLeader(err)
		}
		s.slog.Warn("the lead was not taken over", "to", to.ID, "err", err)
	}
	return err
}

// asLeader makes it known to callers that another server leads by now.
func asLeader(err error) error {
	if errors.Is(err, consensus.ErrNotLeader) {
		return NoLeader()
	}
	return err
}

// NoLeader is the error of a call that waits for a leader in vain, and of which nothing was done.
func NoLeader() error {
	return cluster.Errorf(cluster.Unavailable, cluster.ErrNoLeader,
		"no server leads now, a majority of them must be up; nothing was done, try again")
}
