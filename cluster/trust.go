package cluster

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// Role is what a member of the cluster is; its certificate says so.
type Role string

// The roles. Package agent/trust decides what each may vouch for.
const (
	RoleServer Role = "server" // a member of the server group
	RoleNode   Role = "node"   // a compute node
	RoleLogin  Role = "login"  // a host where users work; runs no jobs
)

// Valid reports whether the role is one of those above.
func (r Role) Valid() bool {
	return r == RoleServer || r == RoleNode || r == RoleLogin
}

// Word is what people call a role: by the daemon that the machine runs.
func (r Role) Word() string {
	if r == RoleNode {
		return "client"
	}
	return string(r)
}

// Machine is what a machine of a role is.
func (r Role) Machine() string {
	if r == RoleLogin {
		return "login host"
	}
	return r.Word()
}

// CA is the cluster's certificate authority. It lives in the replicated state, so that every server
// can admit members; it never leaves the servers.
type CA struct {
	ClusterID string `json:"cluster_id"`
	Cert      string `json:"cert"` // PEM
	Key       string `json:"key"`  // PEM
	// Gossip are the keys of the gossip layer, the one in use first; new members get them all.
	Gossip   [][]byte  `json:"gossip,omitempty"`
	GossipAt time.Time `json:"gossip_at,omitzero"` // when the first was made
}

// Token lets machines join. Only a hash of its secret is kept.
type Token struct {
	ID       string    `json:"id"`
	Role     Role      `json:"role"`
	Verifier string    `json:"verifier"` // hex of SHA-256 of the secret: the key of the proof
	Expires  time.Time `json:"expires"`
	Uses     int       `json:"uses"` // left
	Hollow   bool      `json:"hollow,omitempty"`
	Replace  bool      `json:"replace,omitempty"` // may take the name of a living member
	Made     time.Time `json:"made"`
	By       uint32    `json:"by"` // uid
}

// Alive reports whether the token lets somebody join at that time.
func (k *Token) Alive(now time.Time) bool {
	return k.Uses > 0 && now.Before(k.Expires)
}

// Member is a machine that has joined.
type Member struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Key     string    `json:"key"`            // hex of SHA-256 of its public key (SubjectPublicKeyInfo)
	Public  []byte    `json:"public"`         // the public key itself (SubjectPublicKeyInfo)
	Addr    string    `json:"addr,omitempty"` // where it listens
	Hollow  bool      `json:"hollow,omitempty"`
	Joined  time.Time `json:"joined"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// CA is the cluster's authority, nil before the first server made one.
func (t *tables) CA() *CA { return t.ca }

// Token finds a join token by id.
func (t *tables) Token(id string) (*Token, bool) { return t.tokens.Get(id) }

// Tokens yields the join tokens by id.
func (t *tables) Tokens() iter.Seq[*Token] { return valuesOf(t.tokens) }

// Member finds a member by name.
func (t *tables) Member(name string) (*Member, bool) { return t.joined.Get(name) }

// MemberList yields the members by name, revoked ones too.
func (t *tables) MemberList() iter.Seq[*Member] { return valuesOf(t.joined) }

// TrustInit makes the cluster's authority and its first member; the first server proposes it once.
type TrustInit struct {
	CA     CA     `json:"ca"`
	Member Member `json:"member"`
}

func (*TrustInit) kind() string { return "trust_init" }

func (c *TrustInit) apply(t *tx) (any, error) {
	if err := firstError(
		refuseIf(!t.by.System,
			Denied, ErrAccess, "only a server makes the cluster's authority"),
		refuseIf(t.ca != nil,
			Conflict, "", "the cluster has an authority already"),
	); err != nil {
		return nil, err
	}
	ca := c.CA
	m := c.Member
	ca.GossipAt = t.at
	m.Joined = t.at
	keepOld(t, &t.ca)
	t.ca = &ca
	putValue(t, t.joined, m.Name, &m)
	return nil, nil
}

// isHash reports whether s is a SHA-256 in hex. (Package encoding/hex is initialized too late for a
// front-end, see docs/adr/0002-early-dispatch.md.)
func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// TokenPut stores a join token.
type TokenPut struct {
	Token Token `json:"token"`
}

func (*TokenPut) kind() string { return "token_put" }

func (c *TokenPut) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrAccess, "only an operator may make join tokens")
	}
	k := c.Token
	if err := firstError(
		refuseIf(k.ID == "" || !isHash(k.Verifier),
			Invalid, "", "token %q has no id or verifier", k.ID),
		refuseIf(!k.Role.Valid(),
			Invalid, "", "%q is no role of a member: want server, client or login", k.Role),
		refuseIf(k.Uses < 1,
			Invalid, "", "a token for %d machines is good for none: want one at least", k.Uses),
		refuseIf(!k.Expires.After(t.at),
			Invalid, "", "the token would expire at %s, which is over", k.Expires.Format(time.DateTime)),
	); err != nil {
		return nil, err
	}
	if _, twice := t.tokens.Get(k.ID); twice {
		return nil, Errorf(Conflict, "", "there is a token %s already", k.ID)
	}
	k.Made = t.at
	k.By = t.by.UID
	for old := range t.Tokens() { // what cannot be used any more goes
		if !old.Alive(t.at) {
			dropValue(t, t.tokens, old.ID)
		}
	}
	putValue(t, t.tokens, k.ID, &k)
	return nil, nil
}

// TokenRevoke deletes a join token; members that used it stay.
type TokenRevoke struct {
	ID string `json:"id"`
}

func (*TokenRevoke) kind() string { return "token_revoke" }

func (c *TokenRevoke) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrAccess, "only an operator may revoke join tokens")
	}
	if _, ok := t.tokens.Get(c.ID); !ok {
		return nil, Errorf(NotFound, "", "there is no token %s; muster token list shows them", c.ID)
	}
	dropValue(t, t.tokens, c.ID)
	return nil, nil
}

// MemberJoin admits a machine, using up one use of a token. A server proposes it once the machine
// has proved that it knows the token's secret and holds the key.
type MemberJoin struct {
	Token  string `json:"token"`
	Member Member `json:"member"`
	// From is the address that the machine called from, for the audit trail.
	From string `json:"from,omitempty"`
}

func (*MemberJoin) kind() string { return "member_join" }

func (c *MemberJoin) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrAccess, "only a server admits members")
	}
	k, ok := t.tokens.Get(c.Token)
	if !ok || !k.Alive(t.at) {
		return nil, Errorf(Denied, ErrAccess,
			"token %s is unknown, used up, expired or revoked: make another with muster token create",
			c.Token)
	}
	m := c.Member
	if m.Role != k.Role || m.Name == "" || m.Key == "" {
		return nil, Errorf(Denied, ErrAccess,
			"token %s is for a %s, and %q would join as a %s: muster token create --role %s makes one for it",
			k.ID, k.Role.Machine(), m.Name, m.Role.Machine(), m.Role.Word())
	}
	old, known := t.joined.Get(m.Name)
	if known && old.Revoked.IsZero() && old.Key != m.Key && !k.Replace && !t.silentNode(old) {
		return nil, Errorf(Conflict, "", "%s is a member already: muster node revoke %s first, use a token made with --replace, "+
			"or, if it is a compute node that was installed again, wait until it counts as down", m.Name, m.Name)
	}
	used := *k
	used.Uses--
	putValue(t, t.tokens, used.ID, &used)
	m.Hollow = k.Hollow
	m.Joined = t.at
	m.Revoked = time.Time{}
	putValue(t, t.joined, m.Name, &m)
	return nil, nil
}

// silentNode reports whether a member is a compute node that does not answer: a machine that was installed again may
// take its name.
func (t *tables) silentNode(m *Member) bool {
	n, ok := t.nodes.Get(NodeName(m.Name))
	return m.Role == RoleNode && ok && n.Owner == m.Name && !n.Up
}

// MemberRevoke shuts a member out: its certificate is worth nothing from now on, its nodes are down.
type MemberRevoke struct {
	Name string `json:"name"`
}

func (*MemberRevoke) kind() string { return "member_revoke" }

func (c *MemberRevoke) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrAccess, "only an operator may revoke members")
	}
	m, ok := t.joined.Get(c.Name)
	if !ok || !m.Revoked.IsZero() {
		return nil, Errorf(NotFound, "", "there is no member %s; muster server members and sinfo show them", c.Name)
	}
	gone := *m
	gone.Revoked = t.at
	putValue(t, t.joined, gone.Name, &gone)
	var lost []NodeName
	for n := range t.Nodes() {
		if n.Owner == c.Name && n.Up {
			lost = append(lost, n.Name)
		}
	}
	if lost != nil {
		return (&NodeDown{Nodes: lost, Why: "Revoked"}).apply(t)
	}
	return nil, nil
}

// Refound makes a server the only one of a state that was saved, outside of any log: the other servers
// are shut out, since they may still run with a log of their own, and join again.
func (s *State) Refound(m Member, now time.Time) {
	for old := range s.MemberList() {
		if old.Role == RoleServer && old.Revoked.IsZero() && old.Name != m.Name {
			gone := *old
			gone.Revoked = now
			s.joined.Set(gone.Name, &gone)
		}
	}
	s.joined.Set(m.Name, &m)
}

// MemberMove notes where a member listens now.
type MemberMove struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
}

func (*MemberMove) kind() string { return "member_move" }

func (c *MemberMove) apply(t *tx) (any, error) {
	m, ok := t.joined.Get(c.Name)
	if !t.by.System || !ok || !m.Revoked.IsZero() {
		return nil, Errorf(Denied, ErrAccess, "%s is not a member", c.Name)
	}
	moved := *m
	moved.Addr = c.Addr
	putValue(t, t.joined, moved.Name, &moved)
	return nil, nil
}

// maxGossipKeys bounds the keys that are still understood.
const maxGossipKeys = 3

// GossipRotate puts a new gossip key first.
type GossipRotate struct {
	Key []byte `json:"key"`
}

func (*GossipRotate) kind() string { return "gossip_rotate" }

func (c *GossipRotate) apply(t *tx) (any, error) {
	if !t.by.System || t.ca == nil || len(c.Key) != 32 {
		return nil, Errorf(Denied, ErrAccess, "only a server rotates the gossip key, to one of 32 bytes")
	}
	ca := *t.ca
	ca.Gossip = slices.Insert(slices.Clone(ca.Gossip), 0, c.Key)
	ca.Gossip = ca.Gossip[:min(len(ca.Gossip), maxGossipKeys)]
	ca.GossipAt = t.at
	keepOld(t, &t.ca)
	t.ca = &ca
	return nil, nil
}
