package agent

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/heartbeat"
	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus/gossip"
)

// Pace of this member's part in the gossip.
const (
	keysEvery = time.Minute
	keysRetry = 250 * time.Millisecond // before the first keys
	mendEvery = 5 * time.Second        // a look whether the servers are among the members
)

// gossip takes part in the gossip until ctx ends: it hears of servers, and of members that fail.
func (n *network) gossip(ctx context.Context) {
	keys := n.firstKeys(ctx)
	if len(keys.Keys) == 0 {
		return
	}
	conf := trust.ClientTLS(n.ring, trust.ProtoGossip, cluster.RoleServer, cluster.RoleNode, cluster.RoleLogin)
	cr := n.ring.Credentials()
	role := string(cluster.RoleServer) // others only want to know where the servers are
	if n.gateway.server != nil {
		role = ""
	}
	g, err := gossip.Open(gossip.Config{Cluster: keys.Cluster, Keys: keys.Keys, Packets: n.port.packets,
		Streams: n.port.kinds[trust.ProtoGossip],
		Self:    gossip.Member{Name: cr.Name, Role: string(cr.Role), Addr: n.addr, Version: n.cfg.Version},
		Role:    role, Log: n.cfg.Log,
		Dial: func(dial context.Context, addr string) (net.Conn, error) {
			dial, cancel := context.WithCancel(dial)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return dialTLS(dial, addr, conf)
		}})
	if err != nil {
		n.cfg.Log.Warn("no part in the gossip: silent hosts are seen later, and new servers", "err", err)
		return
	}
	defer func() {
		if err := g.Close(); err != nil {
			n.cfg.Log.Debug("gossip did not end well", "err", err)
		}
	}()
	var upkeep sync.WaitGroup
	defer upkeep.Wait()
	upkeep.Go(func() { n.upkeep(ctx, g) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.Changes():
			n.heard(g.Members())
		}
	}
}

// upkeep keeps the keys fresh and the servers known, which may take its time.
func (n *network) upkeep(ctx context.Context, g *gossip.Gossip) {
	rekey, mend := time.NewTicker(keysEvery), time.NewTicker(mendEvery)
	defer rekey.Stop()
	defer mend.Stop()
	n.mend(g)
	for {
		select {
		case <-ctx.Done():
			return
		case <-mend.C:
			n.mend(g)
		case <-rekey.C:
			if fresh, err := n.gossipKeys(ctx); err != nil {
				n.cfg.Log.Debug("the gossip keys could not be asked for", "err", err)
			} else if err := g.Rotate(fresh.Keys); err != nil {
				n.cfg.Log.Warn("the gossip keys are not good", "err", err)
			}
		}
	}
}

// firstKeys waits until somebody has told the keys.
func (n *network) firstKeys(ctx context.Context) api.GossipResponse {
	for {
		r, err := n.gossipKeys(ctx)
		if err == nil && len(r.Keys) > 0 {
			return r
		}
		select {
		case <-time.After(keysRetry):
		case <-ctx.Done():
			return api.GossipResponse{}
		}
	}
}

func (n *network) gossipKeys(ctx context.Context) (api.GossipResponse, error) {
	if s := n.gateway.server; s != nil {
		if r := s.GossipKeys(); len(r.Keys) > 0 {
			return r, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	return api.Call(ctx, n.fleet.client, api.GossipKeys, api.Empty{})
}

// heard passes on what gossip says: new servers to the list of them, all else to the leader.
func (n *network) heard(members []gossip.Member) {
	var servers []string
	rumours := make([]heartbeat.Rumour, 0, len(members))
	for _, m := range members {
		if m.Role == string(cluster.RoleServer) && !m.Failed {
			servers = append(servers, m.Addr)
		}
		rumours = append(rumours, heartbeat.Rumour{Name: m.Name, Addr: m.Addr, Version: m.Version, Failed: m.Failed})
	}
	if s := n.gateway.server; s != nil {
		s.Hear(rumours)
		return
	}
	if err := n.fleet.add(servers); err != nil {
		n.cfg.Log.Warn("the list of servers could not be kept", "err", err)
	}
}

// mend makes the servers and this member known to each other: at the start, and after this machine
// was cut off for so long that all have forgotten each other. A server wants to know all others, as
// otherwise two halves might never meet again; for others one is enough.
func (n *network) mend(g *gossip.Gossip) {
	missing := slices.DeleteFunc(n.fleet.list(), func(a string) bool { return a == n.addr })
	known := len(missing)
	for _, m := range g.Members() {
		if m.Role == string(cluster.RoleServer) && !m.Failed {
			missing = slices.DeleteFunc(missing, func(a string) bool { return a == m.Addr })
		}
	}
	if len(missing) == 0 || !n.cfg.Server && len(missing) < known {
		return
	}
	if err := g.Join(missing); err != nil {
		n.cfg.Log.Debug("no server could be told of this member", "err", err)
	}
}

// reach looks whether a machine answers at an address. A connection is enough, or its refusal.
func reach(ctx context.Context, addr string) heartbeat.Answer {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	switch {
	case err == nil:
		conn.Close()
		return heartbeat.Answered
	case errors.Is(err, syscall.ECONNREFUSED):
		return heartbeat.Answered
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT),
		errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return heartbeat.NoAnswer
	}
	return heartbeat.Unclear
}
