package trust

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"dev.muster/cluster"
)

// Protocols of the one port, told apart by ALPN.
const (
	ProtoAPI    = "muster-api"    // calls and tunnels between members
	ProtoRaft   = "muster-raft"   // the log, between servers
	ProtoJoin   = "muster-join"   // joining and renewing: the caller shows no certificate
	ProtoGossip = "muster-gossip" // streams of the gossip, between all members
	// ProtoBeat is ProtoAPI where the called side beats (api.BeatEvery). Members of older versions do not know it.
	ProtoBeat = "muster-api-beat"
)

// Lane is the protocol that a connection is served as.
func Lane(proto string) string {
	if proto == ProtoBeat {
		return ProtoAPI
	}
	return proto
}

// exporterLabel binds a proof to its connection (RFC 5705).
const exporterLabel = "EXPORTER-muster-join"

// Exported is the connection's own secret that a proof is bound to.
func Exported(s *tls.ConnectionState) ([]byte, error) {
	return s.ExportKeyingMaterial(exporterLabel, nil, sha256.Size)
}

func (c *Credentials) certificate() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{c.cert.Raw, c.ca.Raw}, PrivateKey: c.key, Leaf: c.cert}
}

// verify checks a chain against the authority; names are checked by role, not by host.
func (c *Credentials) verify(chain []*x509.Certificate) (Peer, error) {
	if len(chain) == 0 {
		return Peer{}, errors.New("no certificate was shown")
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.ca)
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return Peer{}, err
	}
	p, err := peerOf(chain[0])
	if err == nil && p.Cluster != c.Cluster {
		err = fmt.Errorf("%s is a member of another cluster", p.Name)
	}
	return p, err
}

// Keyring gives the credentials of the moment: they change when a certificate is renewed.
type Keyring interface{ Credentials() *Credentials }

// ServerTLS is the configuration of the one port. admit decides of a caller that has a valid
// certificate whether it still is a member.
func ServerTLS(ring Keyring, admit func(Peer, string) error) *tls.Config {
	base := &tls.Config{MinVersion: tls.VersionTLS13,
		NextProtos: []string{ProtoBeat, ProtoAPI, ProtoRaft, ProtoJoin, ProtoGossip},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return ring.Credentials().certificate(), nil },
		VerifyConnection: func(s tls.ConnectionState) error {
			p, err := ring.Credentials().verify(s.PeerCertificates)
			if err != nil {
				return err
			}
			return admit(p, Lane(s.NegotiatedProtocol))
		}}
	open := base.Clone()
	open.NextProtos, open.ClientAuth, open.VerifyConnection = []string{ProtoJoin}, tls.NoClientCert, nil
	base.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Equal(h.SupportedProtos, []string{ProtoJoin}) {
			return open, nil
		}
		return nil, nil
	}
	return base
}

// ClientTLS is the configuration of a call to a member of one of the roles.
func ClientTLS(ring Keyring, proto string, want ...cluster.Role) *tls.Config {
	offer := []string{proto}
	if proto == ProtoAPI {
		offer = []string{ProtoBeat, ProtoAPI}
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: offer,
		InsecureSkipVerify: true, // names are not host names: VerifyConnection does it all
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return ring.Credentials().certificate(), nil
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			p, err := ring.Credentials().verify(s.PeerCertificates)
			if err != nil {
				return err
			}
			if !slices.Contains(want, p.Role) {
				return fmt.Errorf("%s is a %s, want %v", p.Name, p.Role, want)
			}
			if Lane(s.NegotiatedProtocol) != proto {
				return fmt.Errorf("%s does not speak %s", p.Name, proto)
			}
			return nil
		}}
}

// ErrOtherCluster says that a token was made by another cluster.
var ErrOtherCluster = errors.New("this is not the cluster of the token: its authority is another one")

// JoinTLS is the configuration of a machine that joins: all it knows is the hash of the authority's
// key in its token. Nothing was sent before the authority was checked.
func JoinTLS(authority string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{ProtoJoin}, InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if n := len(s.PeerCertificates); n < 2 || KeyHash(s.PeerCertificates[n-1].RawSubjectPublicKeyInfo) != authority {
				return ErrOtherCluster
			}
			named, err := peerOf(s.PeerCertificates[0])
			if err != nil {
				return err
			}
			p, err := (&Credentials{
				ca: s.PeerCertificates[len(s.PeerCertificates)-1], Peer: named,
			}).verify(s.PeerCertificates)
			if err != nil {
				return err
			}
			if p.Role != cluster.RoleServer {
				return fmt.Errorf("%s is a %s; give the address of a server", p.Name, p.Role)
			}
			return nil
		}}
}

// RenewTLS is the configuration of a call by which a member renews its certificate; its old one may
// have expired, so it shows none.
func RenewTLS(ring Keyring) *tls.Config {
	c := ClientTLS(ring, ProtoJoin, cluster.RoleServer)
	c.GetClientCertificate = nil
	return c
}

// PeerOf says who is at the other end of a verified connection.
func PeerOf(s *tls.ConnectionState) (Peer, error) {
	if len(s.PeerCertificates) == 0 {
		return Peer{}, errors.New("no certificate was shown")
	}
	return peerOf(s.PeerCertificates[0])
}
