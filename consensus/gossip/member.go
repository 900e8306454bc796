package gossip

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// Config says who this member is and how it reaches others.
type Config struct {
	Cluster string // its id: the gossip of other clusters is not listened to
	Self    Member
	// Role is of the members that Members lists and Changes tells of; empty means all.
	Role string
	// Keys are those of the cluster, 32 bytes each; the first encrypts, all decrypt.
	Keys [][]byte
	// Packets is the UDP socket and Streams the listener of the one port; Dial makes a stream.
	Packets net.PacketConn
	Streams net.Listener
	Dial    func(ctx context.Context, addr string) (net.Conn, error)
	Log     *slog.Logger
}

// Member is one member as gossip knows it.
type Member struct {
	Name, Role, Addr, Version string
	Failed                    bool      // it does not answer; members that left are not listed
	Since                     time.Time // when it was first heard of, or failed
}
