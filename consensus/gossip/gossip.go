// Package gossip says who is out there: hashicorp/memberlist over the cluster's one port, packets
// over UDP and streams over connections that the caller makes and accepts. Its word about a member
// is a hint, never a decision.
package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Pace of the gossip. It is quick to suspect: a suspicion only makes somebody look.
const (
	probeEvery  = 500 * time.Millisecond // each member asks one other this often, in turn
	probeTime   = 250 * time.Millisecond // then others are asked to ask it, and a stream is tried
	spreadEvery = 100 * time.Millisecond
	leaveTime   = 500 * time.Millisecond
	reclaimTime = 5 * time.Second // then another address may take a failed member's name
	streamTime  = 5 * time.Second
	failedKept  = time.Hour // failed members are remembered this long
	maxPatience = 4         // times probeTime a member that is late itself gives others (A. Dadgar et al., "Lifeguard", 2017)
)

// Gossip is this member's part in it.
type Gossip struct {
	list    *memberlist.Memberlist
	keys    *memberlist.Keyring
	role    string
	changes chan struct{}

	mu      sync.Mutex
	self    Member
	leaving bool
	members map[string]Member    // others
	heard   map[string]time.Time // when each name was last said to be there
	swept   time.Time            // when those of before were last forgotten
}

// Open starts to take part; Join makes others known.
func Open(cfg Config) (*Gossip, error) {
	if len(cfg.Keys) == 0 {
		return nil, errors.New("gossip needs a key")
	}
	ring, err := memberlist.NewKeyring(cfg.Keys, cfg.Keys[0])
	if err != nil {
		return nil, fmt.Errorf("gossip keys: %w", err)
	}
	g := &Gossip{
		keys: ring, self: cfg.Self, role: cfg.Role, changes: make(chan struct{}, 1),
		members: map[string]Member{}, heard: map[string]time.Time{},
	}
	if n := len(g.NodeMeta(memberlist.MetaMaxSize)); n == 0 {
		return nil, fmt.Errorf("what gossip says of %s (%s) has more than %d bytes", cfg.Self.Name,
			cfg.Self.Addr, memberlist.MetaMaxSize)
	}
	t, err := newTransport(cfg, &vetter{label: cfg.Cluster, keys: ring.GetKeys})
	if err != nil {
		return nil, err
	}
	c := memberlist.DefaultLANConfig()
	c.Name, c.Label, c.Keyring, c.Transport = cfg.Self.Name, cfg.Cluster, ring, t
	c.AdvertiseAddr, c.AdvertisePort, c.BindPort = t.ip.String(), t.port, t.port
	c.ProbeInterval, c.ProbeTimeout, c.GossipInterval, c.TCPTimeout = probeEvery, probeTime, spreadEvery, streamTime
	c.SuspicionMult, c.AwarenessMaxMultiplier = 1, maxPatience
	c.DeadNodeReclaimTime, c.EnableCompression = reclaimTime, false
	c.Delegate, c.Events, c.Alive = g, events{g}, events{g}
	c.Logger = log.New(bridge{cfg.Log}, "", 0)
	if g.list, err = memberlist.Create(c); err != nil {
		t.stop()
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	return g, nil
}

// Join makes the members at these addresses known here, and this one there. One that answers is
// enough: it knows the others.
func (g *Gossip) Join(addrs []string) error {
	var err error
	for _, a := range addrs {
		if _, err = g.list.Join([]string{a}); err == nil {
			return nil
		}
	}
	return err
}

// Changes tells that Members has changed since it was last read from.
func (g *Gossip) Changes() <-chan struct{} { return g.changes }

// Members lists the others by name, those that have failed too.
func (g *Gossip) Members() []Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []Member
	for name, m := range g.members {
		if m.Failed && time.Since(m.Since) > failedKept {
			delete(g.members, name)
			continue
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Rotate replaces the keys: the first encrypts from now on, all decrypt.
func (g *Gossip) Rotate(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("gossip needs a key")
	}
	for _, k := range keys {
		if err := g.keys.AddKey(k); err != nil {
			return fmt.Errorf("gossip keys: %w", err)
		}
	}
	if err := g.keys.UseKey(keys[0]); err != nil {
		return fmt.Errorf("gossip keys: %w", err)
	}
	for _, old := range slices.Clone(g.keys.GetKeys()) {
		if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, old) }) {
			if err := g.keys.RemoveKey(old); err != nil {
				return fmt.Errorf("gossip keys: %w", err)
			}
		}
	}
	return nil
}

// Close tells the others that this member leaves, and ends its part.
func (g *Gossip) Close() error {
	g.mu.Lock()
	g.leaving = true
	g.mu.Unlock()
	// Others cannot tell leaving from failing by memberlist's own word for it, so the data says so.
	_ = g.list.UpdateNode(leaveTime)
	_ = g.list.Leave(leaveTime)
	return g.list.Shutdown()
}

// leavingMark is the fourth word of the data of a member that is about to leave.
const leavingMark = "leaving"

// NodeMeta implements memberlist.Delegate: role, address and version, one a line.
func (g *Gossip) NodeMeta(limit int) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	words := []string{g.self.Role, g.self.Addr, g.self.Version}
	if g.leaving {
		words = append(words, leavingMark)
	}
	text := strings.Join(words, "\n")
	if len(text)+len(leavingMark)+1 > limit {
		return nil
	}
	return []byte(text)
}

// NotifyMsg implements memberlist.Delegate.
func (g *Gossip) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate.
func (g *Gossip) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (g *Gossip) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (g *Gossip) MergeRemoteState([]byte, bool) {}

// events notes who comes and goes. They are called with memberlist's lock held.
type events struct{ g *Gossip }

func (e events) NotifyJoin(n *memberlist.Node)   { e.g.note(n, false) }
func (e events) NotifyUpdate(n *memberlist.Node) { e.g.note(n, false) }
func (e events) NotifyLeave(n *memberlist.Node)  { e.g.note(n, true) }

// Bounds of the members that are taken in: who has the key can make them up.
const (
	maxMembers = 1 << 16
	maxName    = 253
)

// NotifyAlive implements memberlist.AliveDelegate: it keeps members out that are too many or too large.
func (e events) NotifyAlive(n *memberlist.Node) error {
	g, now := e.g, time.Now()
	if len(n.Name) > maxName || len(n.Meta) > memberlist.MetaMaxSize {
		return fmt.Errorf("its name has %d bytes and what it says %d", len(n.Name), len(n.Meta))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(now)
	if _, known := g.heard[n.Name]; !known && len(g.heard) >= maxMembers {
		return fmt.Errorf("there are %d members", len(g.heard))
	}
	g.heard[n.Name] = now
	return nil
}

// forget forgets members that were not heard of for long, once a minute where there are as many as may be. Called with
// mu held.
func (g *Gossip) forget(now time.Time) {
	if len(g.heard) < maxMembers || now.Sub(g.swept) <= time.Minute {
		return
	}
	g.swept = now
	isOld := func(_ string, last time.Time) bool {
		return now.Sub(last) > failedKept
	}
	maps.DeleteFunc(g.heard, isOld)
}

func (g *Gossip) note(n *memberlist.Node, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n.Name == g.self.Name {
		return
	}
	words := append(strings.Split(string(n.Meta), "\n"), "", "", "")
	if g.role != "" && words[0] != g.role {
		return
	}
	switch leaves := slices.Contains(words, leavingMark); {
	case gone && leaves:
		delete(g.members, n.Name)
	case !leaves:
		g.members[n.Name] = Member{
			Name: n.Name, Role: words[0], Addr: words[1], Version: words[2], Failed: gone,
			Since: time.Now(),
		}
	}
	select {
	case g.changes <- struct{}{}:
	default:
	}
}

// bridge makes memberlist's lines part of our log. Its errors are other machines' faults.
type bridge struct{ log *slog.Logger }

func (b bridge) Write(text []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.Contains(text, []byte("Conflicting address")) {
		level = slog.LevelWarn
	}
	b.log.Log(context.Background(), level, "gossip", "text", string(bytes.TrimSpace(text)))
	return len(text), nil
}
