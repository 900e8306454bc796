package server

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// maxWorkHold bounds one long poll of a client.
const maxWorkHold = 2 * time.Minute

func (s *Server) registerNodes(ctx context.Context, who api.Caller, q api.RegisterRequest) (api.RegisterResponse, error) {
	cmds := make([]cluster.Command, len(q.Nodes), 2*len(q.Nodes))
	names := make([]cluster.NodeName, len(q.Nodes))
	for i := range q.Nodes {
		n := &q.Nodes[i]
		if err := s.mayBe(who, n); err != nil {
			return api.RegisterResponse{}, err
		}
		n.Owner = s.speaker(who)
		if err := cluster.Check(s.Snapshot(), n); err != nil {
			return api.RegisterResponse{}, err
		}
		cmds[i], names[i] = n, n.Name
	}
	if len(names) == 0 {
		return api.RegisterResponse{}, cluster.Errorf(cluster.Invalid, "", "no nodes to register")
	}
	over := s.heartbeats.Open(names, 0, time.Now())
	defer func() { over(time.Now()) }()
	anew := s.unsure(names)
	ask := s.asks(&q, anew)
	for _, name := range anew {
		if _, first := ask[name]; !first {
			tell := tellOf(name, q.Seen[name])
			tell.Ended = ownNews(s, who, name, tell.Ended)
			cmds = append(cmds, tell)
		}
	}
	_, index, err := s.propose(ctx, who.Identity, cmds...)
	if err != nil {
		return api.RegisterResponse{}, err
	}
	s.slog.Info("nodes registered", "count", len(names), "node", names[0])
	snap := s.Snapshot()
	s.tellMisplaced(snap, names)
	out := api.RegisterResponse{
		Index: index, Anew: anew, Ask: ask, Config: clientConfig(snap, names),
		GPUs: map[cluster.NodeName][]cluster.GPU{},
	}
	for i, name := range names {
		if n, ok := snap.Node(name); ok && (n.Inventory.Renumbered() || !reflect.DeepEqual(n.Inventory.GPUs, q.Nodes[i].Inventory.GPUs)) {
			out.GPUs[name] = n.Inventory.GPUs
		}
	}
	return out, nil
}

// tellMisplaced logs how topology.conf contradicts what nodes say of their place.
func (s *Server) tellMisplaced(snap *cluster.Snapshot, names []cluster.NodeName) {
	if cfg := snap.Config(); len(cfg.Topology)+len(cfg.Blocks) == 0 {
		return
	}
	misplaced := snap.Misplaced()
	for _, name := range names {
		if text := misplaced[name]; text != "" {
			s.slog.Warn("topology.conf contradicts a node", "node", name, "what", text)
		}
	}
}

// mayBe refuses a member that registers a node which it is not: a member is the node of its own name,
// one that joined by a token for hollow nodes may be others too.
func (s *Server) mayBe(who api.Caller, n *cluster.NodeUp) error {
	if who.Member == "" || string(n.Name) == who.Member && who.Role != cluster.RoleLogin {
		return nil
	}
	m, ok := s.Member(who.Member)
	if _, taken := s.Member(string(n.Name)); ok && m.Hollow && n.Inventory.Hollow && !taken &&
		memberName.MatchString(string(n.Name)) {
		return nil
	}
	return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "member %s may not be node %s", who.Member, n.Name)
}

// speaker is the member that calls; in a cluster of one process there is none.
func (s *Server) speaker(who api.Caller) string {
	if who.Member == "" && s.cfg.Peer != nil {
		return s.cfg.Name // the client in this process
	}
	return who.Member
}

// owns refuses a member that speaks for a node of another member, or for an unknown node that it cannot be: the leader
// remembers every node that it hears from.
func (s *Server) owns(who api.Caller, name cluster.NodeName) error {
	n, ok := s.Snapshot().Node(name)
	own := ok && n.Owner == s.speaker(who)
	if !ok {
		own = who.Member == "" || string(name) == who.Member || isHollow(s.Snapshot(), who.Member)
	}
	if !own {
		return cluster.Errorf(cluster.Denied, cluster.ErrAccess, "node %s does not belong to member %s",
			name, s.speaker(who))
	}
	return nil
}

// isHollow reports whether a member may be nodes of any name.
func isHollow(snap *cluster.Snapshot, member string) bool {
	m, ok := snap.Member(member)
	return ok && m.Hollow
}

// getWork answers a client's long poll.
func (s *Server) getWork(ctx context.Context, who api.Caller, q api.WorkRequest) (api.Work, error) {
	names := slices.Sorted(maps.Keys(q.Nodes))
	for _, name := range names {
		if err := s.owns(who, name); err != nil {
			return api.Work{}, err
		}
	}
	noteImages(s, names, q.Images)
	hold := min(max(q.Hold, time.Second), maxWorkHold)
	over := s.heartbeats.Open(names, hold, time.Now())
	defer func() {
		over(time.Now())
		s.poke() // the leader counts the silence from now
	}()
	term := s.leading()
	timer := time.NewTimer(hold)
	defer timer.Stop()
	for {
		moved := s.wakeups.awaitNodes(names)
		w := s.workOf(names, q.Nodes)
		w.Config, w.ConfigIndex = s.configAfter(q.Config, names)
		w.NextJob = s.Snapshot().NextID
		if len(w.Nodes) > 0 || len(w.Unknown) > 0 || w.Config != nil {
			if q.Gather {
				w.Gather()
			}
			return w, nil
		}
		select {
		case <-moved:
		case <-timer.C:
			return api.Work{NextJob: s.Snapshot().NextID}, nil
		case <-term.Done():
			return api.Work{}, cluster.Errorf(cluster.Unavailable, cluster.ErrNoLeader, "this server leads no more")
		case <-ctx.Done():
			return api.Work{}, ctx.Err()
		}
	}
}

// noteImages notes which images some nodes have.
func noteImages(s *Server, names []cluster.NodeName, keys []string) {
	for _, name := range names {
		s.images.Set(name, keys)
	}
	snap := s.Snapshot()
	if s.images.Len() <= snap.NodeCount() {
		return
	}
	s.images.Keep(func(name cluster.NodeName) bool {
		_, ok := snap.Node(name)
		return ok
	})
}

// configAfter is the configuration for the client of some nodes, if it is newer than what that knows.
func (s *Server) configAfter(index uint64, names []cluster.NodeName) (*cluster.Config, uint64) {
	s.mu.Lock()
	at := s.confs
	s.mu.Unlock()
	if at <= index {
		return nil, 0
	}
	cfg := clientConfig(s.Snapshot(), names)
	return &cfg, at
}

// clientConfig is the configuration without what the client of some nodes does not need. Keys stay: clients read some
// (PrologFlags, MpiParams).
func clientConfig(snap *cluster.Snapshot, names []cluster.NodeName) cluster.Config {
	cfg := *snap.Config()
	cfg.Declared = declaredAmong(cfg.Declared, names)
	return cfg
}

// declaredAmong is what a configuration declares of some nodes.
func declaredAmong(list []cluster.Node, names []cluster.NodeName) (own []cluster.Node) {
	asked := map[cluster.NodeName]bool{}
	for _, n := range names {
		asked[n] = true
	}
	for i := range list {
		if asked[list[i].Name] {
			own = append(own, list[i])
		}
	}
	return own
}

// workOf collects the nodes whose work is newer than the client knows.
func (s *Server) workOf(names []cluster.NodeName, after map[cluster.NodeName]uint64) api.Work {
	changed := s.workChanged(names) // before the snapshot: a client that is told an index asks for nothing up to it again
	snap := s.Snapshot()
	var w api.Work
	for i, name := range names {
		n, ok := snap.Node(name)
		if !ok || !n.Up || n.Unsure {
			w.Unknown = append(w.Unknown, name)
			continue
		}
		if changed[i] <= after[name] {
			continue
		}
		nw := api.NodeWork{
			Node: name, Index: max(snap.Index, changed[i]), JobCPUs: n.Inventory.JobCPUCount(),
			Unconfirmed: n.IsUnconfirmed(),
		}
		if n.Reboot.Issued() {
			nw.Reboot = &api.Reboot{Program: snap.Config().RebootProgram, Issued: n.Reboot.IssuedAt}
		}
		for _, id := range snap.Load(name).Jobs {
			j, ok := snap.Job(id)
			if ok && !j.Preparing() && j.Spec.Kind != cluster.External && cluster.Concerns(j, name) {
				j = j.On(name)
				nw.Jobs = append(nw.Jobs, j.ForTasks())
				nw.Peers = peersOf(snap, j, name, names, nw.Peers)
				if j.Het != nil && j.Alloc.Shares[0].Node == name {
					addSisters(snap, j, names, &nw)
				}
			}
		}
		w.Nodes = append(w.Nodes, nw)
	}
	return w
}

// workChanged is the index at which the work of each node last changed.
func (s *Server) workChanged(names []cluster.NodeName) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]uint64, len(names))
	for i, name := range names {
		out[i] = max(s.work[name], s.floor, 1)
	}
	return out
}

// addSisters adds other components of a heterogeneous job: to its leader all, to the others the leader, with where its
// first node is, which starts their steps.
func addSisters(snap *cluster.Snapshot, j *cluster.Job, own []cluster.NodeName, nw *api.NodeWork) {
	all := snap.Components(j)
	if !j.Follows() {
		for _, o := range all[1:] {
			nw.Sisters = append(nw.Sisters, o.ForTasks())
		}
		return
	}
	if lead := all[0]; !lead.Follows() && lead.Alloc != nil && len(lead.Alloc.Shares) > 0 {
		nw.Sisters = append(nw.Sisters, lead.ForTasks())
		nw.Peers = addPeers(snap, lead.Alloc.Shares[:1], own, nw.Peers)
	}
}

// peersOf adds where the job's nodes of other clients are: for its first node all, else the first.
func peersOf(snap *cluster.Snapshot, j *cluster.Job, name cluster.NodeName, own []cluster.NodeName,
	out []api.NodePeer) []api.NodePeer {
	others := j.Alloc.Shares[:1]
	if others[0].Node == name {
		others = append(slices.Clip(j.Alloc.Shares[1:]), j.Leaving()...)
	}
	return addPeers(snap, others, own, out)
}

func addPeers(snap *cluster.Snapshot, others []cluster.Share, own []cluster.NodeName, out []api.NodePeer) []api.NodePeer {
	for _, sh := range others {
		n, ok := snap.Node(sh.Node)
		if _, mine := slices.BinarySearch(own, sh.Node); mine || !ok || n.Inventory.Addr == "" ||
			slices.ContainsFunc(out, func(p api.NodePeer) bool { return p.Node == sh.Node }) {
			continue
		}
		out = append(out, api.NodePeer{Node: n.Name, Addr: n.Inventory.Addr, Member: n.Owner, Inventory: n.Inventory})
	}
	return out
}

func (s *Server) reportWork(ctx context.Context, who api.Caller, q api.ReportRequest) (api.WriteResponse, error) {
	cmds, names := make([]cluster.Command, len(q.Reports)), make([]cluster.NodeName, len(q.Reports))
	for i := range q.Reports {
		if err := s.owns(who, q.Reports[i].Node); err != nil {
			return api.WriteResponse{}, err
		}
		cmds[i], names[i] = &q.Reports[i], q.Reports[i].Node
	}
	s.heartbeats.Hear(names, time.Now())
	if len(q.Images) > 0 { // before the jobs' end is known: the next one may want the same image
		noteImages(s, names, q.Images)
	}
	if err := s.settled(); err != nil {
		return api.WriteResponse{}, err
	}
	for i := range q.Reports {
		r := &q.Reports[i]
		r.Updates = ownNews(s, who, r.Node, r.Updates)
	}
	_, index, err := s.propose(ctx, who.Identity, cmds...)
	return api.WriteResponse{Index: index}, err
}

// ownNews returns the news that concerns jobs of the node. It drops the rest instead of refusing the report: late news
// is not the node's fault, and the node would send a refused report again and again.
func ownNews(s *Server, who api.Caller, node cluster.NodeName, news []cluster.Update) []cluster.Update {
	all := len(news)
	news = s.Snapshot().NewsOf(node, news, time.Now())
	if left := all - len(news); left > 0 {
		s.slog.Debug("news of jobs left out that are not the node's (any more)", "node", node, "member", who.Member,
			"count", left)
	}
	return news
}

func (s *Server) getBlob(_ context.Context, who api.Caller, q api.BlobRequest) (api.BlobResponse, error) {
	snap := s.Snapshot()
	b, ok := snap.Blob(q.Hash)
	ok = ok && beginsText(s, snap, who, &q)
	if !ok && !s.Leads() {
		return api.BlobResponse{}, api.ErrElsewhere // of a job which the leader has told of and which is not known here
	}
	if !ok {
		return api.BlobResponse{}, cluster.Errorf(cluster.NotFound, "", "no stored text %s", q.Hash)
	}
	return api.BlobResponse{Text: b.Text}, nil
}

// beginsText reports whether a member begins a job with a text as its script or environment. All users see the hashes
// of texts in the records of jobs; what these stand for is for the job's first node.
func beginsText(s *Server, snap *cluster.Snapshot, who api.Caller, q *api.BlobRequest) bool {
	begins := func(j *cluster.Job) bool {
		has := j.Spec.Script == q.Hash || j.Spec.Env == q.Hash
		return has && j.Alloc != nil && len(j.Alloc.Shares) > 0 && s.owns(who, j.Alloc.Shares[0].Node) == nil
	}
	if q.Job != 0 {
		j, ok := snap.Job(q.Job)
		return ok && begins(j)
	}
	for j := range snap.Live() {
		if begins(j) {
			return true
		}
	}
	return false
}
