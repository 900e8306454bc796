package api

import (
	"time"

	"dev.muster/cluster"
)

// Peers: other clusters that are asked in the name of the user who asks.
var (
	InvitePeer = Endpoint[PeerInvitation, PeerInvited]{"POST", "/v1/peers/invite", User, true, 0}
	AddPeer    = Endpoint[PeerRequest, PeerAdded]{"POST", "/v1/peers/add", User, true, 0}
	ListPeers  = Endpoint[Empty, PeersResponse]{"GET", "/v1/peers", User, false, 0}
	RemovePeer = Endpoint[cluster.PeerDrop, WriteResponse]{"POST", "/v1/peers/remove", User, true, 0}
	// NameSlurm makes a running Slurm a peer, which the commands of users call themselves.
	NameSlurm = Endpoint[SlurmPeerRequest, WriteResponse]{"POST", "/v1/peers/slurm", User, true, 0}
	AdmitPeer = Endpoint[cluster.PeerPut, WriteResponse]{"POST", "/v1/peers/admit", Peer, true, 0}
)

// CallPeer is the tunnel to a server of another cluster, which serves on it what this contract has, in the name of the
// caller.
const CallPeer = "/v1/peers/call"

// PeerProtocol is what such tunnels speak.
const PeerProtocol = "muster-peer"

// PeerReached is the first line of a tunnel whose other end is there; any other says why it is not.
const PeerReached = "reached"

// PeerQuery names the cluster of a tunnel.
type PeerQuery struct {
	Cluster string `json:"cluster"`
}

// PeerInvitation asks for the token by which a cluster becomes a peer.
type PeerInvitation struct {
	Name string `json:"name"`
	Root bool   `json:"root,omitempty"` // its root is root here
}

// PeerInvited is the token; it is told once.
type PeerInvited struct {
	Token string `json:"token"`
	Index uint64 `json:"index,omitempty"`
}

// PeerRequest shows an invitation to the cluster that has made it.
type PeerRequest struct {
	URLs  string `json:"urls"`
	Token string `json:"token"`
	Own   string `json:"own,omitempty"` // where this cluster is asked; empty: at the server that is asked to add it
	Root  bool   `json:"root,omitempty"`
}

// SlurmPeerRequest names a running Slurm, and says how it is reached.
type SlurmPeerRequest struct {
	Name string `json:"name"`
	cluster.SlurmPeer
}

// PeerAdded is the name of the new peer.
type PeerAdded struct {
	Name  string `json:"name"`
	Index uint64 `json:"index,omitempty"`
}

// PeerInfo is a peer without its tokens.
type PeerInfo struct {
	Name  string    `json:"name"`
	URLs  string    `json:"urls,omitempty"`
	Asks  bool      `json:"asks,omitempty"`  // it may ask this cluster
	Asked bool      `json:"asked,omitempty"` // it can be asked
	Root  bool      `json:"root,omitempty"`
	Made  time.Time `json:"made"`
	// Slurm says how the commands of users call those of a Slurm; nil: the peer runs muster.
	Slurm *cluster.SlurmPeer `json:"slurm,omitempty"`
}

// PeersResponse lists the peers.
type PeersResponse struct {
	Own   string     `json:"own"`
	Peers []PeerInfo `json:"peers,omitempty"`
}
