// Package trust is identity: the cluster's certificate authority, join tokens, the certificates of
// members, the TLS configurations made of them, and the assertions by which a member vouches for a
// user. It keeps no state but a member's own credentials in a folder.
package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/durable"
)

// Lifetimes of certificates: LeafLife is a member's. A member renews at two thirds; one that slept longer still
// can, as long as it has its key and was not revoked.
const (
	caLife   = 20 * 365 * 24 * time.Hour
	LeafLife = 7 * 24 * time.Hour
	backdate = time.Hour // clocks differ
)

// Peer is who a certificate says is at the other end.
type Peer struct {
	Cluster string
	Role    cluster.Role
	Name    string
	Key     string // hex of SHA-256 of the public key
	Public  string // the public key itself (SubjectPublicKeyInfo)
}

// KeyHash names a public key: hex of SHA-256 of its SubjectPublicKeyInfo.
func KeyHash(spki []byte) string {
	sum := sha256.Sum256(spki)
	return hex.EncodeToString(sum[:])
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T, want ECDSA", key)
	}
	return ec, nil
}

func parseCert(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

func serial() (*big.Int, error) { return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) }

// NewCA makes the authority of a new cluster.
func NewCA(now time.Time) (*cluster.CA, error) {
	id := make([]byte, 8)
	gossip := make([]byte, 32)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	if _, err := rand.Read(gossip); err != nil {
		return nil, err
	}
	key, text, err := newKey()
	if err != nil {
		return nil, err
	}
	num, err := serial()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{SerialNumber: num, Subject: pkix.Name{CommonName: "muster " + hex.EncodeToString(id)},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(caLife), IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true,
		KeyUsage:       x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the cluster's authority: %w", err)
	}
	return &cluster.CA{ClusterID: hex.EncodeToString(id),
		Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:  string(text), Gossip: [][]byte{gossip}}, nil
}

// Issue makes a certificate for the key of a signed request. Whether the one who asks may have it is
// the caller's question.
func Issue(ca *cluster.CA, csr []byte, role cluster.Role, name string, now time.Time) (cert []byte, spki []byte, err error) {
	req, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		return nil, nil, cluster.Errorf(cluster.Invalid, "", "certificate request: %v", err)
	}
	if err := req.CheckSignature(); err != nil {
		return nil, nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"certificate request is not signed by its key: %v", err)
	}
	issuer, err := parseCert([]byte(ca.Cert))
	if err != nil {
		return nil, nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	key, err := parseKey([]byte(ca.Key))
	if err != nil {
		return nil, nil, fmt.Errorf("read the authority's key: %w", err)
	}
	num, err := serial()
	if err != nil {
		return nil, nil, err
	}
	t := &x509.Certificate{SerialNumber: num, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(LeafLife),
		URIs:        []*url.URL{{Scheme: "muster", Host: ca.ClusterID, Path: "/" + string(role) + "/" + name}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, t, issuer, req.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), req.RawSubjectPublicKeyInfo, nil
}

// peerOf reads who a verified certificate names.
func peerOf(c *x509.Certificate) (Peer, error) {
	for _, u := range c.URIs {
		role, name, ok := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
		if u.Scheme == "muster" && ok && cluster.Role(role).Valid() && name != "" {
			return Peer{Cluster: u.Host, Role: cluster.Role(role), Name: name, Key: KeyHash(c.RawSubjectPublicKeyInfo),
				Public: string(c.RawSubjectPublicKeyInfo)}, nil
		}
	}
	return Peer{}, errors.New("the certificate names no member of a cluster")
}

// Credentials are what a member needs to show who it is.
type Credentials struct {
	Peer
	dir    string
	ca     *x509.Certificate
	caText []byte
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// files of the folder, all the owner's alone.
const (
	caFile   = "ca.pem"
	certFile = "cert.pem"
	keyFile  = "key.pem"
)

// ErrNone says that a folder holds no credentials: this machine has not joined.
var ErrNone = errors.New("this machine has not joined a cluster")

// Load reads the credentials in a folder.
func Load(dir string) (*Credentials, error) {
	cert, err := os.ReadFile(filepath.Join(dir, certFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, caFile))
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return assemble(dir, ca, cert, key)
}

func assemble(dir string, ca, cert, key []byte) (*Credentials, error) {
	c := &Credentials{dir: dir, caText: ca}
	var err error
	if c.ca, err = parseCert(ca); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", caFile, dir, err)
	}
	if c.cert, err = parseCert(cert); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", certFile, dir, err)
	}
	if c.key, err = parseKey(key); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", keyFile, dir, err)
	}
	if c.Peer, err = peerOf(c.cert); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", certFile, dir, err)
	}
	return c, nil
}

// Store writes credentials into a folder, the certificate last: without it nothing counts.
func Store(dir string, ca, cert, key []byte) (*Credentials, error) {
	c, err := assemble(dir, ca, cert, key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store credentials: %w", err)
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{caFile, ca}, {keyFile, key}, {certFile, cert}} {
		if err := durable.WriteFile(filepath.Join(dir, f.name), f.text, 0o600); err != nil {
			return nil, fmt.Errorf("store credentials: %w", err)
		}
	}
	return c, nil
}

// Request makes a signed certificate request with the member's key.
func (c *Credentials) Request() ([]byte, error) { return request(c.key) }

func request(key *ecdsa.PrivateKey) ([]byte, error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "muster"},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	return csr, nil
}

// Renewed stores a new certificate for the same key and returns the credentials with it.
func (c *Credentials) Renewed(cert []byte) (*Credentials, error) {
	key, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		return nil, err
	}
	return Store(c.dir, c.caText, cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

// RenewAt is when the certificate should be renewed.
func (c *Credentials) RenewAt() time.Time {
	return c.cert.NotBefore.Add(c.cert.NotAfter.Sub(c.cert.NotBefore) * 2 / 3)
}

// Expires is when the certificate ends.
func (c *Credentials) Expires() time.Time { return c.cert.NotAfter }

// Public is the member's public key (SubjectPublicKeyInfo).
func (c *Credentials) Public() []byte { return c.cert.RawSubjectPublicKeyInfo }

// SelfSigned makes the credentials of the first server, with the authority it has just made.
func SelfSigned(dir string, ca *cluster.CA, name string, now time.Time) (*Credentials, error) {
	key, text, err := newKey()
	if err != nil {
		return nil, err
	}
	csr, err := request(key)
	if err != nil {
		return nil, err
	}
	cert, _, err := Issue(ca, csr, cluster.RoleServer, name, now)
	if err != nil {
		return nil, err
	}
	return Store(dir, []byte(ca.Cert), cert, text)
}

// Applicant is the new key of a machine that joins.
type Applicant struct {
	Text    []byte // the key, PEM
	Request []byte // the signed certificate request
}

// NewApplicant makes a key and a request for it.
func NewApplicant() (*Applicant, error) {
	key, text, err := newKey()
	if err != nil {
		return nil, err
	}
	csr, err := request(key)
	return &Applicant{Text: text, Request: csr}, err
}
