package api

import (
	"time"

	"dev.muster/cluster"
)

// JoinRequest asks to become a member. Proof binds the token's secret to the TLS connection and to
// the rest of the request (package agent/trust).
type JoinRequest struct {
	Token string       `json:"token"` // its id
	Role  cluster.Role `json:"role"`
	Name  string       `json:"name"`
	Addr  string       `json:"addr"` // where the machine will listen
	CSR   []byte       `json:"csr"`
	Proof []byte       `json:"proof"`
	Level int          `json:"level,omitempty"` // of the log, that a server knows
}

// JoinResponse is what a new member needs.
type JoinResponse struct {
	Cert    []byte   `json:"cert"` // PEM
	CA      []byte   `json:"ca"`   // PEM
	Servers []Server `json:"servers"`
}

// RenewRequest asks for a new certificate for a member's own key; the request's signature proves it.
type RenewRequest struct {
	Name string `json:"name"`
	CSR  []byte `json:"csr"`
}

// RenewResponse is the new certificate.
type RenewResponse struct {
	Cert []byte `json:"cert"` // PEM
}

// ServerRequest names a server and where it listens.
type ServerRequest struct {
	Name  string `json:"name,omitempty"`
	Addr  string `json:"addr,omitempty"`
	Level int    `json:"level,omitempty"` // of the log, that it knows
}

// MembersResponse lists who has joined, and the server group.
type MembersResponse struct {
	Members []cluster.Member `json:"members"`
	Servers []Server         `json:"servers"`
	// Level is that of what the log holds: the highest that all servers knew.
	Level int `json:"level,omitempty"`
	// Versions are those of the members' programs, as far as the gossip tells, by name.
	Versions map[string]string `json:"versions,omitempty"`
	Heard    time.Time         `json:"heard"`
	Now      time.Time         `json:"now"`
}

// GossipResponse are the keys of the gossip: the first encrypts, all decrypt.
type GossipResponse struct {
	Cluster string   `json:"cluster"`
	Keys    [][]byte `json:"keys"`
}

// VouchQuery asks whether a compute node may vouch for a user.
type VouchQuery struct {
	Member string `json:"member"`
	UID    uint32 `json:"uid"`
}

// VouchAnswer is yes while the user has a job there.
type VouchAnswer struct {
	OK bool `json:"ok"`
}

// TokenRequest asks for a join token.
type TokenRequest struct {
	Role    cluster.Role  `json:"role"`
	Uses    int           `json:"uses"`
	Life    time.Duration `json:"life"`
	Hollow  bool          `json:"hollow,omitempty"`
	Replace bool          `json:"replace,omitempty"`
}

// TokenResponse is the token, told this once.
type TokenResponse struct {
	Text    string        `json:"text"`
	Token   cluster.Token `json:"token"`
	Servers []Server      `json:"servers"`
}

// TokensResponse lists the join tokens, without their secrets.
type TokensResponse struct {
	Tokens []cluster.Token `json:"tokens"`
}
