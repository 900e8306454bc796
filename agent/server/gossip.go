package server

import (
	"context"
	"crypto/rand"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// The life of a gossip key. Members ask for the keys every minute: a new one encrypts only when all
// have had the time to learn it, and the old one goes when all have had the time to stop using it.
const (
	keyLife     = 24 * time.Hour
	keySettling = 5 * time.Minute
)

// usable are the keys at a time, the one that encrypts first.
func usable(ca *cluster.CA, now time.Time) [][]byte {
	switch age := now.Sub(ca.GossipAt); {
	case len(ca.Gossip) < 2:
		return ca.Gossip
	case age < keySettling:
		return [][]byte{ca.Gossip[1], ca.Gossip[0]}
	case age < 2*keySettling:
		return ca.Gossip[:2]
	}
	return ca.Gossip[:1]
}

// GossipKeys are the keys now and the cluster's id, none before the state has arrived.
func (s *Server) GossipKeys() api.GossipResponse {
	ca := s.Snapshot().CA()
	if ca == nil {
		return api.GossipResponse{}
	}
	return api.GossipResponse{Cluster: ca.ClusterID, Keys: usable(ca, time.Now())}
}

func (s *Server) gossipKeys(context.Context, api.Caller, api.Empty) (api.GossipResponse, error) {
	r := s.GossipKeys()
	if len(r.Keys) == 0 {
		return r, cluster.Errorf(cluster.Unavailable, cluster.ErrNoLeader,
			"this server does not know the cluster's authority yet")
	}
	return r, nil
}

// stale reports whether a new key is due: daily, and soon after a member who knows it was revoked.
func stale(snap *cluster.Snapshot, now time.Time) bool {
	ca := snap.CA()
	if ca == nil || now.Sub(ca.GossipAt) < 2*keySettling {
		return false
	}
	if now.Sub(ca.GossipAt) >= keyLife {
		return true
	}
	for m := range snap.MemberList() {
		if m.Revoked.After(ca.GossipAt) {
			return true
		}
	}
	return false
}

// rotateGossip makes a new key if one is due.
func (s *Server) rotateGossip(ctx context.Context) {
	if !stale(s.Snapshot(), time.Now()) {
		return
	}
	key := make([]byte, 32)
	_, err := rand.Read(key)
	if err == nil {
		_, _, err = s.propose(ctx, cluster.Identity{System: true}, &cluster.GossipRotate{Key: key})
	}
	if err != nil {
		s.slog.Warn("the gossip key could not be changed", "err", err)
		return
	}
	s.slog.Info("gossip key changed")
}
