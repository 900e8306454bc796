package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"dev.muster/agent/server"
	"dev.muster/agent/trust"
	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Pace of calls that wait for a leader.
const (
	retryTime  = 20 * time.Second // an election takes well under a second; a restart of all servers some
	retryPause = 20 * time.Millisecond
	// memberTime is how long a member's call waits for a leader: about as long as an election takes.
	memberTime = 500 * time.Millisecond
	// lateAnswer is how long the answer of a server is waited for that leads no more: it may have done the call as
	// its last.
	lateAnswer = 300 * time.Millisecond
	// ownWriteTime is how long a read waits for what was written by the same server, and looks whether anybody
	// leads then.
	ownWriteTime = time.Second
	ownWriteMost = 5 * time.Second
)

// memberVouch is what a server writes instead of an assertion when it forwards a node's own call.
const memberVouch = "member "

// gateway is the network side of the process: it decides as whom members' calls are served, and
// carries calls that this process cannot answer to those who can.
type gateway struct {
	ring    *keyring
	check   trust.Checker
	server  *server.Server // nil where none runs
	fleet   *fleet
	peers   *peers   // servers by address
	remote  *api.Mux // what is answered elsewhere only: by servers or clients, where none runs here
	relay   *relay
	revoked revocations
	log     *slog.Logger
	// written is the index of the newest write that went through here to the leader: who wrote by this
	// server finds it in what they read here.
	written atomic.Uint64
}

func (d *gateway) leads() bool { return d == nil || d.server == nil || d.server.Leads() }

// breathe waits a moment before a call is made again.
func (d *gateway) breathe(ctx context.Context) {
	t := time.NewTimer(retryPause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// authorise says as whom a member's call is served.
func (d *gateway) authorise(c *call) (api.Caller, error) {
	who, p := c.from.Caller, c.from.peer
	name, behalf := strings.CutPrefix(c.vouch, memberVouch)
	if behalf {
		m, ok := d.check.Member(name)
		if p.Role != cluster.RoleServer || !ok {
			return who, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s may not speak for member %s",
				p.Name, name)
		}
		who.Member, who.Role, c.passed = m.Name, m.Role, true
	}
	switch c.route.Access {
	case api.Node:
		who.Identity = cluster.Identity{Node: cluster.NodeName(who.Member)}
	case api.Peer:
		if who.Role != cluster.RoleServer {
			return who, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
				"%s is for servers only, %s is a %s", c.r.URL.Path, who.Member, who.Role)
		}
		who.Identity = cluster.Identity{System: true}
	case api.User:
		a, err := d.check.Check(c.vouch, p, c.name(), c.body, time.Now())
		if err != nil {
			return who, err
		}
		who.Member, who.Groups = a.By, a.Groups
		if a.Via != "" && p.Role == cluster.RoleServer {
			who.Member, c.passed = a.Via, true
		}
		who.Identity = cluster.Identity{
			UID: a.UID, GID: a.GID, User: a.Name, Admin: a.Admin, Node: cluster.NodeName(who.Member),
			Origin: vouchedOrigin(&a, p.Role, c.from.addr),
		}
		return d.policy(who, c)
	}
	return who, nil
}

// nobody is as whom reads are served that a member may not vouch for.
const nobody = 65534

// otherNode is why a compute node does not vouch for a user.
const otherNode = "a compute node vouches for users who have a job there now: submit on a login host"

// policy holds whom a member may vouch for: a server for anybody, a login host for anybody but root,
// a compute node for users who have a job there now. A question that everybody may ask is nobody's.
func (d *gateway) policy(who api.Caller, c *call) (api.Caller, error) {
	role := who.Role
	if who.Member != c.from.peer.Name { // a server forwards
		m, ok := d.check.Member(who.Member)
		if !ok {
			return who, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s is not a member", who.Member)
		}
		role = m.Role
	}
	who.Role = role
	var why string
	switch {
	case role == cluster.RoleServer:
		return who, nil
	case c.r.URL.Path == api.CallByToken: // which says who it is
		who.Identity = cluster.Identity{UID: nobody, GID: nobody, Node: who.Node, Origin: who.Origin}
		return who, nil
	case role == cluster.RoleNode && who.UID == 0 && c.route.Rights.Has(api.ForNodeRoot):
		who.Identity = cluster.Identity{
			UID: nobody, GID: nobody, User: "root", Node: who.Node, NodeRoot: true, Origin: who.Origin,
		}
		return who, nil
	case who.UID == 0 || who.Admin:
		why = "only a server vouches for root: work as root on a server"
	case role == cluster.RoleLogin:
		return who, nil
	case d.server != nil: // what it does may count on all nodes
		if as, ok := d.server.AsJobsSay(c.r.Context(), who); ok {
			return as, nil
		}
		why = otherNode
	case d.jobOn(c.r.Context(), who.Member, who.UID):
		return who, nil
	default:
		why = otherNode
	}
	if c.r.Method == "GET" {
		who.Sees = who.UID == 0 || who.Admin
		who.Identity = cluster.Identity{UID: nobody, GID: nobody, Node: who.Node, Origin: who.Origin}
		return who, nil
	}
	return who, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "%s may not vouch for user %d: %s",
		who.Member, who.UID, why)
}

// jobOn asks a server whether a user has a job now on a node of a member.
func (d *gateway) jobOn(ctx context.Context, member string, uid uint32) bool {
	a, err := api.Call(ctx, d.fleet.client, api.MayVouch, api.VouchQuery{Member: member, UID: uid})
	return err == nil && a.OK
}

// vouchFor makes the header of a call that is carried on. A server that carries a member's call has
// checked for whom it is, and vouches itself: an assertion is good for one use only.
func (d *gateway) vouchFor(c *call) (string, error) {
	switch {
	case c.from.Member != "" && c.route.Access != api.User:
		return memberVouch + c.from.Member, nil
	case c.from.Member != "": // this server has checked the member's assertion, and makes one for each try
		uid := c.who.UID
		if c.who.NodeRoot { // the leader sees it as this server did
			uid = 0
		}
		return d.ring.Credentials().Vouch(trust.User{
			UID: uid, GID: c.who.GID, Name: c.who.User, Groups: c.who.Groups, Admin: c.who.Admin,
			Via: c.who.Member, Origin: c.who.Origin,
		},
			c.name(), c.body, time.Now())
	case c.route.Access != api.User:
		return "", nil // the daemon's own call
	}
	u := trust.User{
		UID: c.from.UID, GID: c.from.GID, Admin: c.from.Admin && c.from.UID != 0, Origin: c.from.Origin,
	}
	if name, _, groups, err := users.Lookup(u.UID); err == nil {
		u.Name, u.Groups = name, groups
	}
	return d.ring.Credentials().Vouch(u, c.name(), c.body, time.Now())
}

// forward carries a call to the leader, or from a host without a server to any server.
func (d *gateway) forward(c *call) (none api.Reply, err error) {
	if d == nil {
		return none, server.NoLeader()
	}
	ctx, to, first := c.r.Context(), d.fleet.client, ""
	if d.server == nil {
		first = d.fleet.first()
	} else {
		moved := d.server.LeadMoved()
		addr := d.server.LeaderAddr()
		if addr == "" || d.server.Leads() || c.passed {
			return none, server.NoLeader()
		}
		to = d.peers.at(addr)
		var cancel context.CancelFunc
		ctx, cancel = whileLeading(ctx, moved)
		defer cancel()
	}
	vouch, err := d.vouchFor(c)
	if err != nil {
		return none, err
	}
	q := api.Request{Method: c.r.Method, Path: c.r.URL.Path, Vouch: vouch, After: c.after(), Body: c.body}
	reply, err := to.Forward(ctx, q)
	if err != nil {
		err = c.lost(ctx, err)
		if d.server == nil {
			d.fleet.leave(first)
		}
		return none, err
	}
	if reply.Status == api.Status(cluster.Unavailable) {
		var e api.Error
		if wire.Unmarshal(reply.Body, &e) == nil && again(&e, c.repeatable()) {
			if d.server == nil {
				d.fleet.leave(first)
			}
			return none, &e
		}
	}
	if c.route.Leader && reply.Status == http.StatusOK {
		d.noteWrite(reply.Body)
	}
	return reply, nil
}

// whileLeading is a context that ends with the caller's, and a while after the lead has moved.
func whileLeading(ctx context.Context, moved <-chan struct{}) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-moved:
		case <-out.Done():
			return
		}
		select {
		case <-time.After(lateAnswer):
		case <-out.Done():
		}
	}()
	return out, cancel
}

// lost words the error of a call that was carried on: of one that changes something, and that was sent, nobody
// knows whether it is done. A context of its own ends when the lead moves.
func (c *call) lost(own context.Context, err error) error {
	switch {
	case errors.Is(err, api.ErrNotSent) && c.ctx.Err() != nil:
		return cluster.Errorf(cluster.Unavailable, cluster.ErrAway,
			"this daemon is stopping; nothing was done, try again")
	case errors.Is(err, api.ErrNotSent):
		return err
	case c.r.Context().Err() != nil:
		return c.stopped(err)
	case c.r.Method != http.MethodGet:
		return server.Uncertain(err.Error())
	case own.Err() != nil:
		return server.NoLeader()
	}
	return err
}

// noteWrite remembers the index of an answer that has one.
func (d *gateway) noteWrite(reply []byte) {
	var w api.WriteResponse
	if wire.Unmarshal(reply, &w) != nil {
		return
	}
	for old := d.written.Load(); w.Index > old && !d.written.CompareAndSwap(old, w.Index); old = d.written.Load() {
	}
}

// ownWrites waits until this server has what was written through it, or through the daemon that calls. Where no
// leader is known it does not for long; what is there is answered then, and how old it is.
func (d *gateway) ownWrites(ctx context.Context, seen uint64) {
	if d == nil || d.server == nil || d.leads() {
		return
	}
	seen = max(seen, d.written.Load())
	for waited := time.Duration(0); waited < ownWriteMost; waited += ownWriteTime {
		one, cancel := context.WithTimeout(ctx, ownWriteTime)
		err := d.server.Applied(one, seen)
		cancel()
		if err == nil || ctx.Err() != nil || d.server.LeaderAddr() == "" {
			return
		}
	}
}

// after is the index of the log that the caller has seen: of a daemon without a server what was written through it,
// by whom it may have been, and what another daemon that passes the call on says.
func (c *call) after() uint64 {
	if c.r.Method != http.MethodGet || c.gateway == nil {
		return 0
	}
	seen := c.seen
	if c.from.Member == "" {
		seen = max(seen, c.gateway.written.Load())
	}
	return seen
}
