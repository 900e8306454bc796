// Package peer is how the servers of an MPI step's nodes know each other: by the digests of certificates
// that each makes for one step. It is apart from package pmi, which srun has in it, since what TLS and the
// network need would slow the start of each front-end.
package peer

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"time"
)

// Credential is what a server shows the others.
type Credential struct {
	own      tls.Certificate
	listener net.Listener
}

// New makes a credential.
func New() (*Credential, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	own := tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
	return &Credential{own: own}, nil
}

// Digest is by what the others know it.
func (c *Credential) Digest() string { return digestOf(c.own.Certificate[0]) }

func digestOf(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return string(sum[:])
}

// Conn is a connection to a peer.
type Conn = interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
}

// Listen begins to listen, and tells where a host of that name is reached now. Close ends it.
func (c *Credential) Listen(host string) (addr string, err error) {
	conf := net.ListenConfig{KeepAliveConfig: keepAlive()}
	if c.listener, err = conf.Listen(context.Background(), "tcp", ":0"); err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(c.listener.Addr().String())
	return net.JoinHostPort(host, port), err
}

// Close ends Await.
func (c *Credential) Close() error { return c.listener.Close() }

// Await gives those who come and are known, until Close. Others are turned away.
func (c *Credential) Await(ctx context.Context, known func(digest string) bool, give func(Conn, string)) {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		go func() { // ends with ctx
			if safe, digest, err := greet(ctx, tls.Server(conn, c.config(known))); err == nil {
				give(safe, digest)
			}
		}()
	}
}

// Connect makes a connection to who is known.
func (c *Credential) Connect(ctx context.Context, addr string, known func(digest string) bool) (Conn, string, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive()}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, "", err
	}
	return greet(ctx, tls.Client(conn, c.config(known)))
}

// keepAlive keeps a connection that is idle from the first fence of a program to its last: firewalls forget such ones.
// A cut that heals must not end it, since it is a lost node that ends a step.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: time.Minute, Count: 100}
}

// greet makes sure that the other end is known.
func greet(ctx context.Context, conn *tls.Conn) (Conn, string, error) {
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, "", err
	}
	return conn, digestOf(conn.ConnectionState().PeerCertificates[0].Raw), nil
}

// config is that of a connection to who is known.
func (c *Credential) config(known func(digest string) bool) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{c.own},
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true,
		// Small records at the beginning are for who shows pages; here each is one more write and read.
		DynamicRecordSizingDisabled: true,
		InsecureSkipVerify:          true, // no authority has signed: VerifyConnection knows each certificate
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !known(digestOf(s.PeerCertificates[0].Raw)) {
				return errors.New("it is no server of this step")
			}
			return nil
		},
	}
}
